"""Selective scans, short convolutions, compressed rows, streams and inputs of every layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.errors import ConfigError, InfeasibleError
from chipsim.ops import parameters
from chipsim.ops.cache import layer_cache, sequence_bytes
from chipsim.ops.collectives import AllReduce, expert_copies
from chipsim.ops.graph import Phase, phase_graph
from chipsim.ops.loads import distinct_experts, rank_loads
from chipsim.ops.operators import Gemm, GroupedGemm, Indexer, LatentAttention, Recurrence
from chipsim.ops.pairs import strided_pairs
from chipsim.ops.parallelism import allowed_tp, check
from chipsim.ops.parameters import Shares
from chipsim.ops.plan import Parallelism
from chipsim.ops.precision import Precision
from tests.ops.test_parts import MOE, SSM, small

if TYPE_CHECKING:
    import networkx as nx

FP16 = Precision()
SCAN: dict[str, Any] = {"kind": "scan", "channels": 128, "state": 16, "rank": 4}
CONV: dict[str, Any] = {"kind": "conv", "channels": 64, "conv": 3}
SPARSE: dict[str, Any] = {
    "kind": "compressed", "heads": 8, "head_dim": 32, "rotary_dim": 8, "q_lora_rank": 24,
    "window": 16, "ratio": 4, "overlaps": True, "output_groups": 4, "output_rank": 12,
    "indexer": {"heads": 4, "head_dim": 16, "top_k": 8},
}  # fmt: skip
HEAVY = {k: v for k, v in SPARSE.items() if k not in {"overlaps", "indexer"}} | {"ratio": 8}


def operators(graph: nx.DiGraph[str]) -> dict[str, Any]:
    return {name: data["operator"] for name, data in graph.nodes(data=True)}


@given(
    before=st.integers(0, 300),
    query=st.integers(1, 200),
    stride=st.integers(1, 40),
    most=st.integers(0, 30),
)
def test_rows_that_stand_for_several_tokens(
    before: int, query: int, stride: int, most: int
) -> None:
    rows = [n // stride for n in range(before + 1, before + query + 1)]
    seen = sum(min(each, most) if most else each for each in rows)
    assert strided_pairs(query, before + query, stride, most) == seen


@given(chunks=st.lists(st.integers(1, 50), min_size=1, max_size=6), stride=st.integers(1, 9))
def test_chunks_of_compressed_attention_add_up(chunks: list[int], stride: int) -> None:
    total, done = 0.0, 0
    for chunk in chunks:
        done += chunk
        total += LatentAttention("a", 2, 4, 8, 0, chunk, done, stride=stride).flops
    whole = LatentAttention("a", 2, 4, 8, 0, done, done, stride=stride)
    assert total == whole.flops


def test_a_scan_in_decode() -> None:
    spec = small(layers=1, attention=SCAN)
    found = operators(phase_graph(spec, Phase.decode(8, 100)))
    step = found["scan"]
    assert step == Recurrence("scan", 8, 128, 1, 16, 1, 1, 1, "scan")
    assert step.flops == 7 * 8 * 128 * 16
    # B and C, x and y and the step size of every channel; states in fp32 in and out
    assert step.bytes == 8 * ((2 * 16 + 3 * 128) * 2 + 2 * 128 * 16 * 4)
    gemms = {n: (o.n, o.k) for n, o in found.items() if isinstance(o, Gemm)}
    assert gemms["scan_input"] == (256, 64)
    assert gemms["scan_parameters"] == (4 + 32, 128)
    assert gemms["step_sizes"] == (128, 4)
    assert gemms["output_projection"] == (64, 128)


def test_a_scan_is_token_by_token_in_prefill_too() -> None:
    step = Recurrence("scan", 2, 128, 1, 16, 1, 1000, 1, "scan")
    assert step.flops == 7 * 2 * 1000 * 128 * 16


def test_what_a_scan_keeps() -> None:
    spec = small(layers=3, attention=SCAN)
    state = 128 * 16 * 4 + 128 * 3 * 2
    for tokens in (1, 10_000):
        assert sequence_bytes(spec, FP16, tokens) == 3 * state
        assert sequence_bytes(spec, FP16, tokens, 4) == 3 * state / 4
    assert spec.kv_elements_per_token == 0


def test_chips_that_split_a_scan_add_up_its_parameters() -> None:
    spec = small(layers=1, attention=SCAN)
    found = operators(phase_graph(spec, Phase.decode(8, 100), Parallelism(tp=2)))
    assert found["all_reduce_scan"] == AllReduce("all_reduce_scan", 8 * 36 * 2.0, 2, 1)
    assert (found["scan"].heads, found["scan_parameters"].k) == (64, 64)


@pytest.mark.parametrize("part", [SCAN, CONV, SPARSE, HEAVY])
def test_what_is_split_is_held_once(part: dict[str, Any]) -> None:
    """What the chips hold beyond a share of everything is what stands on every one."""
    spec = small(layers=1, attention=part, intermediate=96)
    (group,) = spec.groups
    whole, half = (parameters.attention_parameters(spec, group.layer, tp) for tp in (1, 2))
    both = 0
    if part["kind"] == "compressed":
        series = 2 if part.get("overlaps") else 1
        both = 24 * (64 + 1) + (64 + 1) * 32  # query latent, row, their norms
        both += series * 32 * (2 * 64 + part["ratio"]) + 32
    assert 2 * half - whole == both


def test_a_short_convolution() -> None:
    spec = small(layers=2, attention=CONV)
    (group,) = spec.groups
    assert parameters.attention_parameters(spec, group.layer) == 64 * (4 * 64 + 3)
    assert sequence_bytes(spec, FP16, 999) == 2 * 64 * 2 * 2
    found = operators(phase_graph(spec, Phase.prefill(2, 50)))
    assert (found["conv_input"].n, found["output_projection"].k) == (3 * 64, 64)
    assert found["convolution"].flops == 2 * 50 * 64 * (2 * 3 + 2)
    assert allowed_tp(spec) == (1, 2, 4, 8, 16, 32)  # 64 channels, 96 columns


def test_attention_beside_a_state() -> None:
    both = small(layers=1, attention={"beside": SSM})
    alone, state = small(layers=1), small(layers=1, attention=SSM)
    layers = [spec.groups[0].layer for spec in (both, alone, state)]
    counts = [
        parameters.attention_parameters(spec, layer)
        for spec, layer in zip((both, alone, state), layers, strict=True)
    ]
    assert counts[0] == counts[1] + counts[2]
    caches = [layer_cache(layer) for layer in layers]
    assert caches[0].rows == caches[1].rows
    assert caches[0].state_bytes == caches[2].state_bytes > 0
    found = operators(phase_graph(both, Phase.decode(4, 100)))
    assert {"attention", "recurrence", "sum_mixers", "linear_output"} <= set(found)
    assert 8 not in allowed_tp(both)  # 4 heads


def test_a_state_without_a_norm_has_a_gate() -> None:
    with_norm = small(layers=1, attention=SSM)
    without = small(layers=1, attention=SSM | {"norm": False})
    assert with_norm.parameters - without.parameters == 8 * 4
    found = operators(phase_graph(without, Phase.decode(4, 100)))
    assert "state_gate" in found
    assert "linear_norm" not in found


def test_identity_experts_do_nothing() -> None:
    plain = small(layers=1, mlp=MOE | {"top_k": 3})
    idle = small(layers=1, mlp=MOE | {"top_k": 3, "identity_experts": 4})
    assert idle.parameters - plain.parameters == 4 * 64  # of the router
    # Of 3 choices 8 in 12 are experts: 2 on average, 1 less than without.
    expert = 3 * 64 * 40
    assert plain.active_parameters - idle.active_parameters == expert - 4 * 64
    found = operators(phase_graph(idle, Phase.decode(32, 100)))
    up = found["experts_gate_up"]
    assert isinstance(up, GroupedGemm)
    assert up.loads == rank_loads(8, 2, 32)
    assert up.experts == pytest.approx(distinct_experts(8, 2, 32))
    assert found["router"].n == 12


def test_tokens_travel_to_experts_alone() -> None:
    # One choice among 3 experts and 1 that does nothing, each on its own chip.
    assert expert_copies(3, 1, 3, others=1) == pytest.approx(0.75)
    assert expert_copies(8, 2, 4, others=0) == expert_copies(8, 2, 4)


def test_compressed_rows_in_decode() -> None:
    spec = small(layers=1, attention=SPARSE)
    found = operators(phase_graph(spec, Phase.decode(2, 100)))
    window, rows = found["window_attention"], found["attention"]
    assert (window.pairs, window.keys) == (16, 16)
    assert (rows.pairs, rows.keys) == (8, 8)  # 25 rows, of which 8 are picked
    # Key and value are one row: 2 x 32 products per head and pair.
    assert rows.flops == 2 * 2 * 8 * 64 * 8
    scores = found["index_scores"]
    assert isinstance(scores, Indexer)
    assert (scores.pairs, scores.keys, scores.flops) == (25, 25, 2 * 2 * 4 * 16 * 25)
    down = 24 + 32 + 2 * 2 * 32 + 2 * 2 * 16 + 4
    assert (found["latent_down"].n, found["query_up"].n) == (down, 8 * 32)
    groups = found["output_groups"]
    assert (groups.batch, groups.n, groups.k) == (4, 12, 64)
    assert found["output_projection"].k == 48


def test_a_short_prompt_has_no_compressed_row() -> None:
    spec = small(layers=1, attention=HEAVY)
    assert "attention" not in operators(phase_graph(spec, Phase.decode(2, 7)))
    assert "attention" in operators(phase_graph(spec, Phase.decode(2, 8)))


@pytest.mark.parametrize(("part", "beside"), [(SPARSE, 16), (HEAVY, 0)])
def test_what_compressed_attention_keeps(part: dict[str, Any], beside: int) -> None:
    spec = small(layers=2, attention=part)
    ratio = part["ratio"]
    waiting = 2 * ratio * (32 + beside) * (3 if beside else 1) * 2
    for tokens in (1, 16, 17, 4096):
        kept = min(tokens, 16) * 32 * 2 + tokens * (32 + beside) / ratio * 2
        assert sequence_bytes(spec, FP16, tokens) == 2 * (kept + waiting)
    assert spec.kv_elements_per_token == 2 * (32 + (32 + beside) // ratio)


def test_what_does_not_hang_together_in_compressed_attention() -> None:
    for changes, field in (
        ({"ratio": 5}, "ratio"),
        ({"output_groups": 3}, "output_groups"),
        ({"rotary_dim": 33}, "rotary_dim"),
        ({"ratio": 0}, "indexer"),
    ):
        with pytest.raises(ConfigError, match=f"attention.{field}: "):
            small(layers=1, attention=SPARSE | changes)


def test_compressed_attention_is_split_by_groups_of_outputs() -> None:
    spec = small(layers=1, attention=SPARSE)
    assert allowed_tp(spec) == (1, 2, 4)
    with pytest.raises(InfeasibleError, match="4 groups of outputs"):
        check(spec, Parallelism(tp=8))
    with pytest.raises(InfeasibleError, match="dcp"):
        check(spec, Parallelism(tp=4, dcp=2))


def test_streams_are_gathered_and_mixed_around_every_block() -> None:
    plain, several = small(layers=3), small(layers=3, streams=4)
    # A projection of 4 x 64 to 4 + 4 + 16 weights, its bias, 3 scales; at the end to 4.
    block, head = 24 * (4 * 64 + 1) + 3, 4 * (4 * 64 + 1) + 1
    assert several.parameters - plain.parameters == 3 * 2 * block + head
    found = operators(phase_graph(several, Phase.decode(8, 100)))
    assert "residual_attention" not in found
    product, mix = found["stream_weights_mlp"], found["stream_mix_mlp"]
    assert (product.m, product.n, product.k) == (8, 24, 256)
    assert mix.bytes == 8 * 64 * (5 + 4) * 2
    assert found["stream_weights_final"].n == 4
    hand_over = operators(phase_graph(several, Phase.decode(8, 100), Parallelism(pp=3)))
    single = operators(phase_graph(plain, Phase.decode(8, 100), Parallelism(pp=3)))
    assert hand_over["send_stage"].bytes == 4 * single["send_stage"].bytes


def test_streams_need_blocks_one_after_the_other() -> None:
    with pytest.raises(ConfigError, match="streams: 4"):
        small(streams=4, parallel_norms=1)


def test_inputs_of_every_layer() -> None:
    part = {"width": 8, "vocabulary": 1000}
    plain, more = small(layers=3), small(layers=3, per_layer=part)
    table = 1000 * 3 * 8
    work = 64 * 3 * 8 + 8 + 3 * (2 * 64 * 8 + 64)
    assert more.parameters - plain.parameters == table + work
    assert more.active_parameters - plain.active_parameters == work
    found = operators(phase_graph(more, Phase.decode(5, 100)))
    assert found["per_layer_rows"].bytes == 2 * 5 * 24 * 2
    assert (found["per_layer_projection"].n, found["per_layer_gate"].n) == (24, 8)
    assert (found["per_layer_up"].k, found["norm_per_layer"].rows) == (8, 5)
    halves = parameters.module_parameters(more, Shares(tp=2))
    whole = parameters.module_parameters(more)
    both = 64 * 3 * 8 + 3 * 2 * 64 * 8  # projections that every chip has
    assert 2 * halves["mlp"] - whole["mlp"] == both
    assert 2 * halves["embedding"] == whole["embedding"]
