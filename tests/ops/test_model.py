"""Parameter counts and KV bytes of published models, and what a model file may not say."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest

from chipsim.errors import ConfigError, UnknownNameError
from chipsim.ops import parameters
from chipsim.ops.model import ModelSpec
from chipsim.ops.precision import Precision
from tests.ops.models import (
    BLOOM,
    GPT3,
    LLAMA2_7B,
    LLAMA2_13B,
    LLAMA2_70B,
    LLAMA3_8B,
    LLAMA3_70B,
    LLAMA3_405B,
    llama,
    opt,
)

FP16 = Precision()

PUBLISHED = {
    "bloom-176b": (BLOOM, 176_247_271_424),
    "opt-30b": (opt(48, 7168, 56), 29_974_540_288),
    "opt-66b": (opt(64, 9216, 72), 65_719_701_504),
    "llama-2-7b": (LLAMA2_7B, 6_738_415_616),
    "llama-2-13b": (LLAMA2_13B, 13_015_864_320),
    "llama-2-70b": (LLAMA2_70B, 68_976_648_192),
    "llama-3.1-8b": (LLAMA3_8B, 8_030_261_248),
    "llama-3.1-70b": (LLAMA3_70B, 70_553_706_496),
    "llama-3.1-405b": (LLAMA3_405B, 405_853_388_800),
    # 175 billion in the paper, whose table rounds; this is its shape worked out by hand
    "gpt3-175b": (GPT3, 96 * (12 * 12288**2 + 13 * 12288) + (50257 + 2048 + 2) * 12288),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_published(name: str) -> None:
    spec, published = PUBLISHED[name]
    assert spec.parameters == published


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_library_holds_the_same_models(name: str) -> None:
    assert ModelSpec.load(name).parameters == PUBLISHED[name][1]


def test_a_layer_is_its_share() -> None:
    h = 12288
    assert GPT3.layer_parameters == 12 * h * h + 13 * h


@pytest.mark.parametrize(
    ("spec", "size"),
    [
        (LLAMA2_70B, 327_680),
        (LLAMA3_70B, 327_680),
        (LLAMA3_8B, 131_072),
        # Qwen3-32B: head_dim 128 although 5120 / 64 = 80
        (llama(64, 5120, 64, kv_heads=8, head_dim=128, intermediate=25600), 262_144),
        (LLAMA2_7B, 2 * 32 * 4096 * 2),
    ],
)
def test_kv_bytes_follow_kv_heads_and_their_width(spec: ModelSpec, size: int) -> None:
    assert spec.kv_bytes_per_token(FP16) == size
    assert spec.kv_bytes_per_token(Precision(kv="fp8")) == size / 2


def test_biases_may_be_listed() -> None:
    none, listed = LLAMA2_7B.parameters, llama(32, 4096, 32, intermediate=11008, biases=["qkv"])
    assert listed.parameters - none == 32 * 3 * 4096
    assert listed.has_bias("qkv")
    assert not listed.has_bias("mlp")


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16])
def test_shares_of_a_plan_hold_the_whole(tp: int) -> None:
    """tp chips hold every parameter once, and the replicated ones tp times."""
    spec = llama(
        3, 64, 16, kv_heads=4, intermediate=96, vocabulary=160, norm="layernorm", biases=True
    )
    copies = 7 * 2 * 64 + 3 * 2 * 64  # norms; biases of output and down
    kv_copies = max(1, tp // 4) - 1
    kv = 3 * 2 * 4 * 4 * (64 + 1)
    held = tp * parameters.model_parameters(spec, tp)
    assert held == spec.parameters + (tp - 1) * copies + kv_copies * kv


def test_vocabulary_is_padded_to_equal_shares() -> None:
    assert parameters.vocabulary_rows(GPT3, 8) == 6283


@pytest.mark.parametrize("field", ["layers", "hidden", "heads", "kv_heads", "vocabulary"])
@pytest.mark.parametrize("bad", [0, -1, 1.5, 2.0, math.nan, math.inf, True, "8", [8]])
def test_bad_numbers_name_file_field_and_value(field: str, bad: object) -> None:
    fields: dict[str, Any] = {"layers": 2, "hidden": 64, "heads": 4, "intermediate": 96}
    with pytest.raises(ConfigError) as caught:
        llama(**(fields | {field: bad}))
    assert str(caught.value).startswith(f"test.yaml: {field}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"heads": 5}, "head_dim: None .* 5 heads do not divide the hidden size 64"),
        ({"kv_heads": 3}, "kv_heads: 3 .* a divisor of the 4 heads"),
        ({"norm": "batchnorm"}, "norm: 'batchnorm'"),
        ({"position": "learned"}, "max_positions: None .* positions are learned"),
        ({"biases": ["head"]}, "biases"),
        ({"biases": 1}, "biases"),
        ({"kv_head": 4}, "kv_head: 4 .* no such key"),
    ],
)
def test_what_does_not_hang_together(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        llama(**({"layers": 2, "hidden": 64, "heads": 4, "intermediate": 96} | fields))


def test_a_missing_key_is_named() -> None:
    with pytest.raises(ConfigError, match=r"intermediate: None .* required"):
        llama(2, 64, 4)


def test_unknown_model_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="did you mean bloom-176b"):
        ModelSpec.load("blom-176b")


def test_models_load_without_networkx() -> None:
    code = "import chipsim.ops.graph, sys; sys.exit('networkx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
