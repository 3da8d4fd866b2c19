"""Weights, KV and what is left of one chip's memory."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipsim.chip import Chip
from chipsim.errors import ConfigError, InfeasibleError
from chipsim.memory import check_fits, memory_plan
from chipsim.ops.parallelism import Parallelism
from chipsim.ops.precision import Precision
from tests.ops.models import BLOOM, GPT3, LLAMA2_70B, LLAMA3_8B, llama

FP16 = Precision()


def chip(gigabytes: float) -> Chip:
    return Chip.build(
        "test", name="test-chip", source="test", cores=1, execution="none",
        core={
            "lanes": 1, "sram": 1e5, "vector_unit": {"width": 32},
            "systolic_array": {"rows": 16, "columns": 16, "macs_per_cycle": {"fp16": 1}},
        },
        clock={"tensor": 1e9, "vector": 1e9}, l2={"capacity": 1e6},
        memory={"technology": "test", "bandwidth": 1e12, "capacity": gigabytes * 1e9},
    )  # fmt: skip


def test_a_small_model_on_one_chip() -> None:
    plan = memory_plan(chip(80), LLAMA3_8B, Parallelism(), FP16, share=0.9)
    assert plan.weights_bytes_per_chip == 2 * 8_030_261_248
    assert plan.kv_bytes_per_token == 131_072
    assert plan.free_bytes == 72e9 - 2 * 8_030_261_248
    assert plan.kv_tokens == math.floor((72e9 - 2 * 8_030_261_248) / 131_072) == 426_784
    assert (plan.fits, plan.shortfall_bytes) == (True, 0.0)
    assert plan.largest_batch(4096) == 104
    assert plan.largest_batch(426_785) == 0


def test_a_group_holds_the_tokens_of_one_chip() -> None:
    plan = memory_plan(chip(80), LLAMA2_70B, Parallelism(tp=8), FP16)
    assert plan.kv_bytes_per_token == 327_680 / 8
    # the norms are on every chip
    norms = 161 * 8192
    assert plan.weights_bytes_per_chip == 2 * ((68_976_648_192 - norms) / 8 + norms)
    assert plan.kv_tokens == math.floor(plan.free_bytes / plan.kv_bytes_per_token)


def test_kv_heads_are_replicated_beyond_one_per_chip() -> None:
    # Qwen3-30B-A3B: 48 layers, 4 KV heads of 128; at tp 8 one head on each chip
    attention = llama(48, 2048, 32, kv_heads=4, head_dim=128, intermediate=6144)
    plan = memory_plan(chip(80), attention, Parallelism(tp=8), FP16)
    assert plan.kv_bytes_per_token == 24_576


def test_what_does_not_fit_is_a_result() -> None:
    plan = memory_plan(chip(80), BLOOM, Parallelism(), FP16, share=1.0)
    assert not plan.fits
    assert plan.shortfall_bytes == 2 * 176_247_271_424 - 80e9
    assert (plan.free_bytes, plan.kv_tokens, plan.largest_batch(1)) == (0.0, 0, 0)


def test_what_does_not_fit_is_an_error_with_the_numbers() -> None:
    with pytest.raises(InfeasibleError) as caught:
        check_fits(chip(80), BLOOM, Parallelism(), FP16, tokens=0)
    assert str(caught.value) == (
        "bloom-176b at tp=1 does not fit test-chip: each chip needs 352.49 GB of weights and "
        "0.00 GB of KV (0 tokens), and has 80.00 GB: 272.49 GB too little"
    )


def test_the_last_token_that_fits() -> None:
    plan = memory_plan(chip(80), GPT3, Parallelism(tp=8), FP16, share=1.0)
    check_fits(chip(80), GPT3, Parallelism(tp=8), FP16, plan.kv_tokens)
    with pytest.raises(InfeasibleError, match=f"{plan.kv_tokens + 1} tokens"):
        check_fits(chip(80), GPT3, Parallelism(tp=8), FP16, plan.kv_tokens + 1)


def test_formats_of_weights_and_kv() -> None:
    small = Precision(weights="fp8", kv="fp8")
    plan = memory_plan(chip(80), LLAMA3_8B, Parallelism(), small)
    assert plan.weights_bytes_per_chip == 8_030_261_248
    assert plan.kv_bytes_per_token == 65_536


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, math.nan, math.inf, True, "0.9", None])
def test_bad_share(share: object) -> None:
    with pytest.raises(ConfigError, match="memory: share"):
        memory_plan(chip(80), GPT3, Parallelism(), FP16, share)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-1, 1.5, math.nan, True])
def test_bad_tokens(bad: object) -> None:
    with pytest.raises(ConfigError, match="memory: tokens"):
        check_fits(chip(80), LLAMA3_8B, Parallelism(), FP16, bad)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="memory: context"):
        memory_plan(chip(80), LLAMA3_8B, Parallelism(), FP16).largest_batch(bad)  # type: ignore[arg-type]


def test_bad_plan() -> None:
    with pytest.raises(InfeasibleError, match="tp: 5 is not allowed"):
        memory_plan(chip(80), GPT3, Parallelism(tp=5), FP16)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(st.floats(1, 500), st.floats(1, 500), st.floats(0.05, 1), st.sampled_from([1, 2, 4, 8]))
def test_more_memory_never_holds_less(a: float, b: float, share: float, tp: int) -> None:
    small, large = (
        memory_plan(chip(size), LLAMA3_8B, Parallelism(tp=tp), FP16, share)
        for size in sorted((a, b))
    )
    assert small.kv_tokens <= large.kv_tokens
    assert small.fits <= large.fits
    for plan in (small, large):
        used = plan.weights_bytes_per_chip + plan.kv_tokens * plan.kv_bytes_per_token
        assert used <= plan.usable_bytes or not plan.fits
