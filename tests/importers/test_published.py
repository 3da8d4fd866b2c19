"""Imported models against what their authors publish, and against another program's count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chipsim.arch_configs import names
from chipsim.importers import import_huggingface
from chipsim.ops.layers import Experts
from chipsim.ops.model import ModelSpec
from tests.importers.counted import COUNTED
from tests.importers.files import write
from tests.importers.published import PUBLISHED

if TYPE_CHECKING:
    from pathlib import Path

    from chipsim.importers import Imported


def imported(folder: Path, name: str) -> Imported:
    return import_huggingface(write(folder, PUBLISHED[name].config, f"{name}.json"))


def router_biases(model: ModelSpec) -> int:
    mlps = [(group.layer.mlp, group.count) for group in model.groups]
    return sum(
        mlp.experts * count
        for mlp, count in mlps
        if isinstance(mlp, Experts) and mlp.router_bias
    )


STATED = [n for n, p in PUBLISHED.items() if p.total_b is not None or p.active_b is not None]


def test_every_configuration_has_a_total_of_somebody_else() -> None:
    assert set(PUBLISHED) == set(STATED) | set(COUNTED)


@pytest.mark.parametrize("name", STATED)
def test_parameters_are_the_published_ones(tmp_path: Path, name: str) -> None:
    published = PUBLISHED[name]
    model = imported(tmp_path, name).model
    if published.total_b is not None:
        assert model.parameters / 1e9 == pytest.approx(published.total_b, rel=0.01)
    if published.active_b is not None:
        active = model.active_parameters / 1e9
        assert active == pytest.approx(published.active_b, rel=0.025)


@pytest.mark.parametrize("name", COUNTED)
def test_parameters_are_those_that_another_program_counts(tmp_path: Path, name: str) -> None:
    model = imported(tmp_path, name).model
    assert model.parameters - COUNTED[name] in {0, router_biases(model)}


@pytest.mark.parametrize("name", [n for n, p in PUBLISHED.items() if p.kv_bytes is not None])
def test_bytes_of_a_token_are_those_by_hand(tmp_path: Path, name: str) -> None:
    assert imported(tmp_path, name).kv_bytes_per_token == PUBLISHED[name].kv_bytes


KV = ("num_key_value_heads", "num_attention_heads")
UNLIKE = (
    "layer_types",
    "compress_ratios",
    "cla_share_factor",
    "kv_lora_rank",
    "hybrid_override_pattern",
)


def plain(config: dict[str, Any]) -> bool:
    """Whether every layer caches keys and values of as many heads, all named as usual."""
    return config.get("num_hidden_layers") is not None and not (
        set(config) & {*UNLIKE, "multi_query", "full_attention_interval", "attn_layer_period"}
        or config["model_type"] in {"lfm2", "bamba", "minimax_text_01", "mimo_v2_flash"}
        or "num_attention_heads" not in config
    )


@pytest.mark.parametrize("name", [n for n, p in PUBLISHED.items() if plain(p.config)])
def test_bytes_of_a_token_are_layers_times_heads_times_width(tmp_path: Path, name: str) -> None:
    config = {"head_dim": None} | PUBLISHED[name].config
    if config["model_type"] == "gemma":
        config["head_dim"] = config["head_dim"] or 256  # GemmaConfig's own
    kv_heads = next(config[key] for key in (*KV, "") if config.get(key))
    kv_heads = config.get("num_kv_heads", kv_heads)
    width = config["head_dim"] or config["hidden_size"] // config["num_attention_heads"]
    size = 2 * config["num_hidden_layers"] * kv_heads * width * 2
    assert imported(tmp_path, name).kv_bytes_per_token == size


SHAPE = ("layers", "parameters", "active_parameters", "kv_elements_per_token", "biases")


@pytest.mark.parametrize("name", sorted(set(PUBLISHED) & set(names("models"))))
def test_an_import_has_the_shape_of_the_library(tmp_path: Path, name: str) -> None:
    model, ours = imported(tmp_path, name).model, ModelSpec.load(name)
    for key in SHAPE:
        assert getattr(model, key) == getattr(ours, key), key
    assert [group.count for group in model.groups] == [group.count for group in ours.groups]
    for mine, other in zip(model.groups, ours.groups, strict=True):
        assert (mine.layer.mixer, mine.layer.mlp) == (other.layer.mixer, other.layer.mlp)
