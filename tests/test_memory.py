"""Weights, KV and what is left of one chip's memory."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipsim.chip import Chip
from chipsim.errors import ConfigError, InfeasibleError
from chipsim.memory import check_fits, memory_notes, memory_plan
from chipsim.ops.model import ModelSpec
from chipsim.ops.parallelism import Parallelism
from chipsim.ops.precision import Precision
from tests.ops.models import BLOOM, GPT3, LLAMA2_70B, LLAMA3_8B, llama

FP16 = Precision()
DEEPSEEK, GPT_OSS = ModelSpec.load("deepseek-v3"), ModelSpec.load("gpt-oss-120b")
HYBRID = llama(
    4, 1024, 16, kv_heads=4, intermediate=4096,
    layer_kinds=[
        {"name": "full"},
        {"name": "recurrent", "attention": {
            "kind": "linear", "rule": "delta", "heads": 16, "key_dim": 128, "value_dim": 128,
            "conv": 4,
        }},
    ],
    layer_order=[{"kinds": ["recurrent"], "times": 3}, {"kinds": ["full"]}],
)  # fmt: skip
EXPERTS = 58 * 256 * 3 * 7168 * 2048
"""Parameters of DeepSeek-V3's routed experts: 58 layers, 256 experts, three matrices."""


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
    most = plan.kv_tokens or 0
    check_fits(chip(80), GPT3, Parallelism(tp=8), FP16, most)
    with pytest.raises(InfeasibleError, match=f"{most + 1} tokens"):
        check_fits(chip(80), GPT3, Parallelism(tp=8), FP16, most + 1)


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


@pytest.mark.parametrize(
    ("plan", "row"),
    [("tp=1", 70_272), ("tp=8", 70_272), ("tp=8,dcp=8", 8_784), ("tp=8,dcp=2", 35_136),
     ("dp=8,ep=8", 70_272), ("tp=2,cp=4", 17_568)],
)  # fmt: skip
def test_a_latent_row_is_whole_on_every_tp_chip(plan: str, row: int) -> None:
    """61 layers of 512 + 64 elements; only context parallelism splits the tokens."""
    found = memory_plan(chip(80), DEEPSEEK, Parallelism.parse(plan), FP16)
    assert found.kv_bytes_per_token == row


def test_a_latent_row_in_two_formats() -> None:
    split = Precision(kv="nvfp4", kv_rotary="fp8")
    assert memory_plan(chip(80), DEEPSEEK, Parallelism(), split).kv_bytes_per_token == 61 * 352
    fp8 = Precision(kv="fp8")
    assert memory_plan(chip(80), DEEPSEEK, Parallelism(), fp8).kv_bytes_per_token == 61 * 576


@pytest.mark.parametrize(
    ("plan", "ep"), [("dp=64,ep=64", 64), ("dp=8,ep=8", 8), ("dp=8,ep=4", 8), ("dp=8", 8)]
)
def test_experts_are_shared_and_attention_is_copied(plan: str, ep: int) -> None:
    """ep whole experts, or columns of all: a chip's part of the experts is the same."""
    found = memory_plan(chip(1000), DEEPSEEK, Parallelism.parse(plan), FP16)
    rest = DEEPSEEK.parameters - EXPERTS
    assert found.weights_bytes_per_chip == 2 * (rest + EXPERTS / ep)


def test_ranks_have_their_own_sequences() -> None:
    one, eight = (
        memory_plan(chip(300), DEEPSEEK, Parallelism.parse(plan), Precision(weights="fp8"))
        for plan in ("tp=8,ep=8", "dp=8,ep=8")
    )
    assert one.largest_batch(4096) == one.kv_tokens // 4096  # type: ignore[operator]
    assert eight.largest_batch(4096) == 8 * (eight.kv_tokens // 4096)  # type: ignore[operator]
    assert eight.missing_bytes([(eight.largest_batch(4096), 4096)]) <= 0
    assert eight.missing_bytes([(eight.largest_batch(4096) + 1, 4096)]) > 0


def test_a_tower_is_in_the_format_of_the_phase_that_runs_it() -> None:
    """3 layers prefill alone, 5 decode alone, 1 both; the head stands on the second tower."""
    kinds = [("pre", ["prefill"]), ("both", ["prefill", "decode"]), ("dec", ["decode"])]
    towers = llama(
        9, 1024, 16, kv_heads=4, intermediate=4096,
        layer_kinds=[{"name": name, "phases": phases} for name, phases in kinds],
        layer_order=[
            {"kinds": ["pre"], "times": 3}, {"kinds": ["both"]}, {"kinds": ["dec"], "times": 5},
        ],
        precision={"prefill": {"weights": "fp8"}, "decode": {"weights": "fp32", "kv": "fp8"}},
    )  # fmt: skip
    layer = 1024 * 64 * (16 + 4 + 4 + 16) + 3 * 1024 * 4096 + 2 * 1024
    table, norm = towers.vocabulary * 1024, 1024
    own = towers.precision
    for precision, here in ((own.prefill, 1), (own.decode, 4)):
        assert precision is not None
        found = memory_plan(chip(80), towers, Parallelism(), precision)
        shared = here * (layer + table)
        assert found.weights_bytes_per_chip == 3 * layer + 5 * 4 * layer + shared + 4 * (
            table + norm
        )
    # One stage has the embedding and 5 layers, the other 4 layers and the head.
    split = memory_plan(chip(80), towers, Parallelism(pp=2), own.prefill or FP16)
    sizes = sorted(stage.weights_bytes for stage in split.stages)
    assert sum(sizes) == 3 * layer + 20 * layer + layer + table + 4 * (table + norm)
    # Formats that the user names hold for all.
    asked = memory_plan(chip(80), towers, Parallelism(), FP16)
    assert asked.weights_bytes_per_chip == 2 * towers.parameters


def test_a_tower_of_another_width_is_refused_by_name() -> None:
    kinds = [{"name": "pre", "phases": ["prefill"]}, {"name": "dec", "hidden": 512}]
    order = [{"kinds": ["pre", "dec"]}]
    with pytest.raises(ConfigError, match=r"layer_kinds\.dec\.hidden: 512 .* another width"):
        llama(2, 1024, 16, intermediate=64, layer_kinds=kinds, layer_order=order)


def test_windows_bound_what_a_sequence_keeps() -> None:
    """gpt-oss-120b: 36 layers of 8 KV heads of 64, every other one with a window of 128."""
    plan = memory_plan(chip(1000), GPT_OSS, Parallelism(), FP16)
    layer = 2 * 8 * 64 * 2
    assert plan.kv_bytes_per_token == 36 * layer
    for context in (64, 128, 129, 8192):
        kept = 18 * layer * (context + min(context, 128))
        assert plan.stages[0].sequence_bytes(context) == kept
        assert plan.largest_batch(context) == math.floor(plan.free_bytes / kept)
        # So many tokens of such sequences, never fewer than whole sequences hold
        assert plan.kv_tokens_at(context) == math.floor(plan.free_bytes * context / kept)
        assert (plan.kv_tokens_at(context) or 0) >= context * plan.largest_batch(context)


def test_states_take_room_per_sequence() -> None:
    """Three layers of 16 states of 128 x 128 in fp32 and three inputs of 3 x 2048 in fp16."""
    plan = memory_plan(chip(80), HYBRID, Parallelism(), FP16)
    state = 3 * (16 * 128 * 128 * 4 + 3 * 3 * 2048 * 2)
    assert plan.state_bytes_per_sequence == state
    assert plan.kv_bytes_per_token == 2 * 4 * 64 * 2
    assert plan.stages[0].sequence_bytes(1000) == state + 1000 * 1024
    halves = memory_plan(chip(80), HYBRID, Parallelism(tp=2), FP16)
    assert halves.state_bytes_per_sequence == state / 2


def test_stages_hold_their_layers() -> None:
    """Llama-2-70B in 4 stages: 20 layers each, the embedding in the first, the head last."""
    plan = memory_plan(chip(80), LLAMA2_70B, Parallelism(pp=4), FP16)
    layers, table = 20 * LLAMA2_70B.layer_parameters, 32000 * 8192
    weights = [stage.weights_bytes / 2 for stage in plan.stages]
    assert weights == [layers + table, layers, layers + table + 8192]
    assert plan.kv_bytes_per_token == 327_680 / 4
    assert plan.weights_bytes_per_chip == 2 * (layers + table + 8192)
    mixed = memory_plan(chip(80), HYBRID, Parallelism(pp=4), FP16)
    assert mixed.kv_bytes_per_token == 2 * 4 * 64 * 2
    assert mixed.state_bytes_per_sequence == HYBRID_STATE


def test_the_fullest_of_uneven_stages_decides() -> None:
    """80 layers in 3 stages, 27, 27 and 26: the first holds most weights, two most rows."""
    plan = memory_plan(chip(80), LLAMA2_70B, Parallelism(pp=3), FP16)
    layer, table = LLAMA2_70B.layer_parameters, 32000 * 8192
    weights = [stage.weights_bytes / 2 for stage in plan.stages]
    assert weights == [27 * layer + table, 27 * layer, 26 * layer + table + 8192]
    assert plan.kv_bytes_per_token == 327_680 * 27 / 80
    assert plan.weights_bytes_per_chip == 2 * (27 * layer + table)


HYBRID_STATE = 16 * 128 * 128 * 4 + 3 * 3 * 2048 * 2


def test_no_row_no_limit() -> None:
    kinds = [HYBRID.layer_kinds[1].model_dump()]
    order = [{"kinds": ["recurrent"], "times": 4}]
    alone = llama(4, 1024, 16, intermediate=4096, layer_kinds=kinds, layer_order=order)
    plan = memory_plan(chip(80), alone, Parallelism(), FP16)
    assert (plan.kv_bytes_per_token, plan.kv_tokens) == (0.0, None)
    assert plan.kv_tokens_at(10**6) == math.floor(plan.free_bytes * 10**6 / (4 * HYBRID_STATE))
    assert plan.largest_batch(10**9) == math.floor(plan.free_bytes / (4 * HYBRID_STATE))


def test_what_windows_and_states_need_is_refused_with_the_numbers() -> None:
    layer = 2 * 8 * 64 * 2
    need = 64 * 18 * layer * (8192 + 128)
    room = GPT_OSS.parameters * 2 + need
    check_fits(chip(room / 1e9 + 1e-9), GPT_OSS, Parallelism(), FP16, 64 * 8192, 64)
    with pytest.raises(InfeasibleError, match="too little"):
        check_fits(chip(room / 1e9 - 1e-6), GPT_OSS, Parallelism(), FP16, 64 * 8192, 64)
    with pytest.raises(InfeasibleError, match="too little"):
        check_fits(chip(room / 1e9 + 1e-9), GPT_OSS, Parallelism(), FP16, 64 * 8192)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(st.floats(1, 500), st.floats(1, 500), st.floats(0.05, 1), st.sampled_from([1, 2, 4, 8]))
def test_more_memory_never_holds_less(a: float, b: float, share: float, tp: int) -> None:
    small, large = (
        memory_plan(chip(size), LLAMA3_8B, Parallelism(tp=tp), FP16, share)
        for size in sorted((a, b))
    )
    assert (small.kv_tokens or 0) <= (large.kv_tokens or 0)
    assert small.fits <= large.fits
    for plan in (small, large):
        used = plan.weights_bytes_per_chip + (plan.kv_tokens or 0) * plan.kv_bytes_per_token
        assert used <= plan.usable_bytes or not plan.fits


@pytest.mark.parametrize(
    ("name", "experts", "weights"),
    [
        ("gpt-oss-120b", "mxfp4", "bf16"),
        ("gpt-oss-20b", "mxfp4", "bf16"),
        ("deepseek-v3", "fp8-block", "fp8-block"),
        ("deepseek-v3.2", "fp8-block", "fp8-block"),
        ("kimi-k2", "fp8-block", "fp8-block"),
    ],
)
def test_models_have_the_formats_of_their_checkpoints(
    name: str, experts: str, weights: str
) -> None:
    for own in (ModelSpec.load(name).precision.prefill, ModelSpec.load(name).precision.decode):
        assert own is not None
        assert own.weights_of("experts") == experts
        assert own.weights == weights


def test_gpt_oss_fits_one_h100_as_it_is_published() -> None:
    own = GPT_OSS.precision.decode
    assert own is not None
    assert memory_plan(Chip.load("h100-sxm"), GPT_OSS, Parallelism(), own).fits


def test_an_encoder_takes_memory() -> None:
    tower = {"layers": 2, "hidden": 256, "heads": 4, "intermediate": 1024, "tokens": 64,
             "outputs": 16}  # fmt: skip
    plain = llama(4, 1024, 16, kv_heads=4, intermediate=4096)
    both = llama(4, 1024, 16, kv_heads=4, intermediate=4096, encoder=tower)
    sizes = [memory_plan(chip(80), m, Parallelism(), FP16).stages[0] for m in (plain, both)]
    extra = sizes[1].weights_bytes - sizes[0].weights_bytes
    matrices = 2 * (4 * 256 * 256 + 2 * 256 * 1024)
    assert 2 * matrices < extra < 2 * 1.02 * matrices


def test_the_checkpoint_of_the_other_phase_is_told() -> None:
    formats = {"prefill": {"weights": "fp8"}, "decode": {"weights": "bf16"}}
    model = llama(4, 1024, 16, kv_heads=4, intermediate=4096, precision=formats)
    own = model.precision.decode
    assert own is not None
    notes = memory_notes(model, Parallelism(), own)
    assert len(notes) == 1
    assert notes[0].startswith("prefill has a checkpoint of its own, fp8: 0.")
    assert not memory_notes(model, Parallelism(), FP16)
