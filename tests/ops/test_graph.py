"""Phase graphs: their nodes and edges, and totals against closed forms."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipsim.errors import ConfigError, InfeasibleError, UnknownNameError
from chipsim.ops.graph import Phase, layer_graph, phase_graph
from chipsim.ops.operators import Gemm, Operator
from chipsim.ops.parallelism import Parallelism
from chipsim.ops.precision import Precision
from tests.ops.models import BLOOM, GPT3, LLAMA2_70B, LLAMA3_8B, llama

if TYPE_CHECKING:
    from collections.abc import Callable

    from chipsim.ops.model import ModelSpec

PREFILL, DECODE = Phase.prefill(2, 1024), Phase.decode(64, 1024)
MODELS = (BLOOM, GPT3, LLAMA2_70B)


def operators(graph: nx.DiGraph[str]) -> dict[str, Operator]:
    return {name: data["operator"] for name, data in graph.nodes(data=True)}


def total(graph: nx.DiGraph[str], *kinds: str) -> float:
    used = [data for _, data in graph.nodes(data=True) if data["operator"].kind in kinds]
    return float(sum(data["count"] * data["operator"].flops for data in used))


def counts(graph: nx.DiGraph[str], kind: str) -> int:
    return sum(d["count"] for _, d in graph.nodes(data=True) if d["operator"].kind == kind)


def projections(model: ModelSpec, tp: int) -> int:
    """Weight-matrix elements of a layer on one chip."""
    kv = max(1, model.kv_heads // tp) * model.head_dim
    q = model.heads // tp * model.head_dim
    mlp = (3 if model.gated else 2) * model.intermediate // tp
    return model.hidden * (2 * q + 2 * kv + mlp)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
@pytest.mark.parametrize("phase", [PREFILL, DECODE], ids=lambda p: p.kind)
@pytest.mark.parametrize("tp", [1, 8, 16])
@pytest.mark.parametrize("qkv", ["fused", "separate"])
def test_projection_flops_of_a_layer(
    model: ModelSpec, phase: Phase, tp: int, qkv: Literal["fused", "separate"]
) -> None:
    graph = layer_graph(model, phase, Parallelism(tp=tp), qkv=qkv)
    assert total(graph, "gemm") == 2 * phase.tokens * projections(model, tp)
    assert nx.is_directed_acyclic_graph(graph)


@pytest.mark.parametrize("tp", [1, 4])
def test_a_whole_phase_is_layers_and_head(tp: int) -> None:
    plan = Parallelism(tp=tp)
    layers = total(phase_graph(LLAMA3_8B, PREFILL, plan, layers_only=True), "gemm")
    head = 2 * PREFILL.batch * LLAMA3_8B.hidden * LLAMA3_8B.vocabulary / tp
    assert layers == 32 * 2 * PREFILL.tokens * projections(LLAMA3_8B, tp)
    assert total(phase_graph(LLAMA3_8B, PREFILL, plan), "gemm") == layers + head


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
@pytest.mark.parametrize("phase", [PREFILL, DECODE], ids=lambda p: p.kind)
def test_attention_flops(model: ModelSpec, phase: Phase) -> None:
    per_pair = 4 * model.heads * model.head_dim * phase.batch
    seen = sum(range(phase.context - phase.query + 1, phase.context + 1))
    fused, unfused = (layer_graph(model, phase, attention=a) for a in ("fused", "unfused"))
    assert total(fused, "attention") == per_pair * seen
    assert total(unfused, "batched_gemm") == per_pair * phase.query * phase.context


@pytest.mark.parametrize("phase", [PREFILL, DECODE], ids=lambda p: p.kind)
def test_two_all_reduces_per_layer_and_none_on_one_chip(phase: Phase) -> None:
    graph = phase_graph(BLOOM, phase, Parallelism(tp=8))
    assert counts(graph, "collective") == 2 * BLOOM.layers
    for name in ("all_reduce_attention", "all_reduce_mlp"):
        assert operators(graph)[name].bytes == phase.tokens * BLOOM.hidden * 2
    assert counts(phase_graph(BLOOM, phase), "collective") == 0


def test_edges_of_an_unfused_layer() -> None:
    graph = layer_graph(BLOOM, PREFILL, Parallelism(tp=8), attention="unfused", qkv="separate")
    chain = [
        "norm_attention", "query", "scores", "softmax", "values", "output_projection",
        "all_reduce_attention", "residual_attention", "norm_mlp", "up", "activation",
        "down", "all_reduce_mlp", "residual_mlp",
    ]  # fmt: skip
    extra = {
        ("norm_attention", "key"), ("key", "scores"), ("norm_attention", "value"),
        ("value", "values"), ("residual_attention", "residual_mlp"),
    }  # fmt: skip
    assert set(graph.edges) == set(pairwise(chain)) | extra


def test_edges_of_a_whole_fused_phase() -> None:
    graph = phase_graph(LLAMA3_8B, DECODE)
    chain = [
        "embedding", "norm_attention", "qkv", "rotary", "attention", "output_projection",
        "residual_attention", "norm_mlp", "gate_up", "activation", "down", "residual_mlp",
        "norm_final", "lm_head",
    ]  # fmt: skip
    extra = {
        ("embedding", "residual_attention"), ("qkv", "attention"),
        ("residual_attention", "residual_mlp"),
    }  # fmt: skip
    assert set(graph.edges) == set(pairwise(chain)) | extra


def test_separate_projections_turn_query_and_key_but_not_value() -> None:
    graph = layer_graph(LLAMA3_8B, DECODE, qkv="separate")
    assert set(graph.predecessors("rotary")) == {"query", "key"}
    assert set(graph.predecessors("attention")) == {"rotary", "value"}
    assert operators(graph)["rotary"].flops == 3 * 64 * (32 + 8) * 128


def test_nodes_carry_counts_groups_and_their_own_name() -> None:
    graph = phase_graph(BLOOM, PREFILL, Parallelism(tp=8))
    once = {"embedding", "norm_embedding", "norm_final", "lm_head"}
    for name, data in graph.nodes(data=True):
        assert data["operator"].name == name
        assert data["count"] == (1 if name in once else 70)
        assert data["group"]
    assert graph.graph == {
        "model": "bloom-176b", "phase": PREFILL, "plan": Parallelism(tp=8), "layers": 70,
    }  # fmt: skip
    layers = phase_graph(BLOOM, PREFILL, Parallelism(tp=8), layers_only=True)
    assert set(graph) - set(layers) == once


def test_shapes_of_a_layer_under_a_plan() -> None:
    ops = operators(
        layer_graph(BLOOM, PREFILL, Parallelism(tp=8), attention="unfused", qkv="fused")
    )
    assert ops["qkv"] == Gemm("qkv", 2048, 5376, 14336)
    assert ops["scores"] == Gemm("scores", 1024, 1024, 128, 28, b_is_weight=False)
    assert ops["values"] == Gemm("values", 1024, 128, 1024, 28, b_is_weight=False)
    assert ops["output_projection"] == Gemm("output_projection", 2048, 14336, 1792)
    assert ops["up"] == Gemm("up", 2048, 7168, 14336)
    assert ops["down"] == Gemm("down", 2048, 14336, 7168)


def test_query_heads_of_a_group_share_one_product() -> None:
    ops = operators(layer_graph(LLAMA2_70B, DECODE, Parallelism(tp=2), attention="unfused"))
    # 64 sequences x 4 KV heads on this chip; the 8 query heads of each are rows
    assert ops["scores"] == Gemm("scores", 8, 1024, 128, 256, b_is_weight=False)
    assert ops["softmax"].flops == 10 * 64 * 32 * 1024


def test_more_chips_than_kv_heads_replicate_them() -> None:
    ops = operators(layer_graph(LLAMA2_70B, DECODE, Parallelism(tp=16)))
    attention = ops["attention"]
    assert attention.bytes == 64 * (2 * 4 * 128 * 2 + 2 * 1024 * 128 * 2)
    assert ops["qkv"] == Gemm("qkv", 64, (4 + 1 + 1) * 128, 8192)


def test_prefix_is_context_and_not_work() -> None:
    ops = operators(layer_graph(LLAMA3_8B, Phase.prefill(1, 100, prefix=900)))
    pairs = sum(range(901, 1001))
    assert ops["attention"].flops == 4 * 32 * 128 * pairs
    assert ops["gate_up"] == Gemm("gate_up", 100, 2 * 14336, 4096)


def test_formats_reach_their_tensors() -> None:
    mixed = Precision(weights="fp8", activations="bf16", kv="int8")
    graph = layer_graph(
        BLOOM, DECODE, Parallelism(tp=8), precision=mixed, vector_format="fp32",
        attention="unfused",
    )  # fmt: skip
    ops = operators(graph)
    bf16, fp8 = "bf16", "fp8"
    assert ops["up"] == Gemm("up", 64, 7168, 14336, 1, bf16, fp8, bf16)
    assert ops["scores"] == Gemm("scores", 1, 1024, 128, 64 * 14, bf16, "int8", bf16, False)
    assert ops["softmax"].bytes == 2 * 4 * 64 * 14 * 1024
    assert ops["residual_mlp"].bytes == 3 * 2 * 64 * 14336
    assert ops["all_reduce_mlp"].bytes == 2 * 64 * 14336


def test_learned_positions_are_read_and_added() -> None:
    learned = operators(phase_graph(GPT3, DECODE))["embedding"]
    assert (learned.bytes, learned.flops) == (3 * 2 * 64 * 12288, 64 * 12288)
    assert operators(phase_graph(LLAMA3_8B, DECODE))["embedding"].flops == 0


def test_graphs_do_not_share_state() -> None:
    first, second = (layer_graph(BLOOM, DECODE) for _ in range(2))
    first.remove_node("up")
    assert "up" in second


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"attention": "flash"}, ConfigError, "attention: 'flash' .* fused, unfused"),
        ({"qkv": "joint"}, ConfigError, "qkv: 'joint' .* fused, separate"),
        ({"vector_format": "fp31"}, UnknownNameError, "did you mean fp32"),
        ({"plan": Parallelism(tp=5)}, InfeasibleError, "tp: 5 .* allowed: 1, 2, 4, 7, 8"),
    ],
)
def test_refusals(fields: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        phase_graph(BLOOM, DECODE, **fields)


@pytest.mark.parametrize("bad", [0, -1, 1.5, float("nan"), True, "8", None])
def test_bad_phases(bad: Any) -> None:
    makers: dict[str, Callable[[], Phase]] = {
        "batch": lambda: Phase.prefill(bad, 8),
        "prompt": lambda: Phase.prefill(1, bad),
        "context": lambda: Phase.decode(1, bad),
    }
    for field, make in makers.items():
        with pytest.raises(ConfigError) as caught:
            make()
        assert caught.value.field == field
    if bad != 0:
        with pytest.raises(ConfigError, match="prefill: prefix"):
            Phase.prefill(1, 8, prefix=bad)


@pytest.mark.parametrize(
    "fields", [("train", 1, 1, 1), ("decode", 1, 2, 3), ("prefill", 1, 4, 3)]
)
def test_phases_that_make_no_sense(fields: tuple[Any, ...]) -> None:
    with pytest.raises(ConfigError):
        Phase(*fields)


SMALL = llama(3, 48, 6, kv_heads=3, intermediate=30, vocabulary=101)
PHASES = st.one_of(
    st.builds(Phase.prefill, st.integers(1, 9), st.integers(1, 99), st.integers(0, 99)),
    st.builds(Phase.decode, st.integers(1, 99), st.integers(1, 999)),
)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(PHASES, st.sampled_from([1, 3, 6]), st.sampled_from(["fused", "unfused"]))
def test_work_never_falls_with_batch_context_or_prompt(
    phase: Phase, tp: int, attention: Literal["fused", "unfused"]
) -> None:
    def work(phase: Phase) -> list[float]:
        graph = phase_graph(SMALL, phase, Parallelism(tp=tp), attention=attention)
        assert nx.is_directed_acyclic_graph(graph)
        ops = operators(graph).values()
        return [sum(o.flops for o in ops), sum(o.bytes for o in ops)]

    here = work(phase)
    grown = [
        Phase(phase.kind, phase.batch + 1, phase.query, phase.context),
        Phase(phase.kind, phase.batch, phase.query, phase.context + 1),
    ]
    if phase.kind == "prefill":
        grown.append(Phase("prefill", phase.batch, phase.query + 1, phase.context + 1))
    for bigger in map(work, grown):
        assert all(big >= small for big, small in zip(bigger, here, strict=True))


@settings(max_examples=30, derandomize=True, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=2, max_size=5))
def test_chunked_prefill_does_the_work_of_the_whole(chunks: list[int]) -> None:
    kinds = ("gemm", "attention", "norm", "elementwise", "activation")
    parts, done = 0.0, 0
    for chunk in chunks:
        parts += total(layer_graph(SMALL, Phase.prefill(2, chunk, done)), *kinds)
        done += chunk
    assert parts == total(layer_graph(SMALL, Phase.prefill(2, done)), *kinds)
