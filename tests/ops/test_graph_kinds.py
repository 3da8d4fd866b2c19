"""Graphs of latent, sparse, windowed, recurrent and expert layers, against closed forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest

from chipsim.arch_configs import names
from chipsim.errors import ConfigError
from chipsim.ops.graph import Phase, layer_graph, phase_graph
from chipsim.ops.layers import Experts, Grouped, Latent, Linear
from chipsim.ops.loads import ExpertLoad, distinct_experts
from chipsim.ops.model import ModelSpec
from chipsim.ops.operators import (
    Attention,
    Gemm,
    GroupedGemm,
    Indexer,
    LatentAttention,
    Recurrence,
)
from chipsim.ops.parameters import expert_parameters, layer_modules
from chipsim.ops.plan import Parallelism
from chipsim.ops.precision import Precision
from chipsim.ops.recurrent_parameters import linear_widths
from tests.ops.test_parts import MOE, small

if TYPE_CHECKING:
    from chipsim.ops.layers import Layer
    from chipsim.ops.operators import Operator

V3, V32 = ModelSpec.load("deepseek-v3"), ModelSpec.load("deepseek-v3.2")


def operators(graph: nx.DiGraph[str]) -> dict[str, Any]:
    return {name: data["operator"] for name, data in graph.nodes(data=True)}


def total(graph: nx.DiGraph[str], kind: type[Operator], what: str = "flops") -> float:
    return float(
        sum(
            data["count"] * getattr(data["operator"], what)
            for _, data in graph.nodes(data=True)
            if isinstance(data["operator"], kind)
        )
    )


def everything(graph: nx.DiGraph[str], what: str = "flops") -> float:
    return float(
        sum(d["count"] * getattr(d["operator"], what) for _, d in graph.nodes(data=True))
    )


@pytest.mark.parametrize("name", names("models"))
@pytest.mark.parametrize(
    "phase",
    [Phase.prefill(2, 64, 4096), Phase.decode(8, 4096), Phase.mixed(64, 4096, 8, 4096)],
    ids=lambda phase: phase.kind,
)  # fmt: skip
def test_products_with_weights_are_the_active_parameters(name: str, phase: Phase) -> None:
    """2 FLOP per token and weight: the head once per sequence, tables and vectors never."""
    spec = ModelSpec.load(name)
    graph = phase_graph(spec, phase, layers_only=True)
    assert nx.is_directed_acyclic_graph(graph)
    dense, routed = total(graph, Gemm), total(graph, GroupedGemm)
    matrices = sum(group.count * matrix_parameters(spec, group.layer) for group in spec.groups)
    expected = 2 * phase.tokens * matrices
    for group in spec.groups:  # what latent attention expands again, or does without
        mixer = group.layer.mixer
        if isinstance(mixer, Latent) and mixer.indexer is None:
            up = mixer.kv_lora_rank * mixer.heads * (mixer.qk_nope_head_dim + mixer.v_head_dim)
            again = sum(
                s.batch * (s.context - s.query) for s in phase.segments if s.kind == "prefill"
            )
            expected += 2 * group.count * again * up
    expected -= 2 * phase.tokens * spec.hidden * shared_gates(spec)
    assert dense + routed == pytest.approx(expected, rel=1e-9)


def shared_gates(spec: ModelSpec) -> int:
    """Layers with a gate of one number per token, which costs no product of its own."""
    return sum(
        group.count for group in spec.groups if getattr(group.layer.mlp, "shared_gate", False)
    )


def matrix_parameters(spec: ModelSpec, layer: Layer) -> int:
    """Weights of a layer that a token is multiplied with."""
    modules = layer_modules(spec, layer)
    count = sum(modules.values()) - modules["norm"] - modules["experts"]
    mixer, mlp = layer.mixer, layer.mlp
    if isinstance(mixer, Linear):
        _, values, inputs = linear_widths(mixer)
        count -= modules["attention"] - spec.hidden * (inputs + values)
    elif isinstance(mixer, Latent):
        count -= mixer.kv_lora_rank + (mixer.q_lora_rank or 0)
        count -= 2 * mixer.indexer.head_dim if mixer.indexer else 0
    elif isinstance(mixer, Grouped):
        width = (mixer.heads + 2 * mixer.kv_heads) * mixer.head_dim
        count -= width if spec.has_bias("qkv") else 0
        count -= spec.hidden if spec.has_bias("output") else 0
        count -= 2 * mixer.head_dim if mixer.qk_norm == "head" else 0
        count -= mixer.heads if mixer.sinks else 0
    if isinstance(mlp, Experts):
        count -= mlp.experts if mlp.router_bias else 0
        one = expert_parameters(spec, mlp)
        one -= (mlp.intermediate * 2 + spec.hidden) if spec.has_bias("mlp") else 0
        count += mlp.top_k * one
    elif mlp is not None and spec.has_bias("mlp"):
        count -= mlp.intermediate * (2 if mlp.gated else 1) + spec.hidden
    return count


def test_latent_attention_is_expanded_in_prefill() -> None:
    ops = operators(layer_graph(V3, Phase.prefill(2, 100, prefix=900)))
    assert ops["latent_up"] == Gemm("latent_up", 2000, 128 * 256, 512)
    assert ops["attention"] == Attention("attention", 2, 128, 128, 192, 128, 100, 1000)
    assert ops["query_up"] == Gemm("query_up", 200, 128 * 192, 1536)
    assert ops["latent_down"] == Gemm("latent_down", 200, 1536 + 576, 7168)


def test_latent_attention_is_absorbed_in_decode() -> None:
    ops = operators(layer_graph(V3, Phase.decode(32, 4096), Parallelism(tp=4)))
    assert ops["query_absorb"] == Gemm("query_absorb", 32, 512, 128, 32)
    assert ops["value_up"] == Gemm("value_up", 32, 128, 512, 32)
    attention = ops["attention"]
    assert attention == LatentAttention("attention", 32, 32, 512, 64, 1, 4096)
    # One row of 576 per token, whatever the heads: read once for keys and values.
    queries = 32 * 32 * (576 + 512) * 2
    assert attention.bytes == queries + 32 * 4096 * 576 * 2
    assert attention.flops == 2 * 32 * 32 * (576 + 512) * 4096


def test_rows_of_a_latent_do_not_fall_with_tp() -> None:
    rows = []
    for tp in (1, 8, 16):
        op = operators(layer_graph(V3, Phase.decode(32, 4096), Parallelism(tp=tp)))["attention"]
        rows.append(op.batch * op.keys * op.row_bytes)
    assert len(set(rows)) == 1
    split = operators(layer_graph(V3, Phase.decode(32, 4096), Parallelism(tp=8, dcp=8)))
    assert split["attention"].keys == 4096 / 8
    assert split["attention"].heads == 128


def test_both_forms_of_latent_attention_give_the_same_work_on_scores() -> None:
    """Expanded 4 H d per pair with d of 160; absorbed with 544: the price of one row."""
    prefill = operators(layer_graph(V3, Phase.prefill(1, 1)))["attention"]
    decode = operators(layer_graph(V3, Phase.decode(1, 1)))["attention"]
    assert decode.flops / prefill.flops == (576 + 512) / (192 + 128)


def test_formats_of_a_latent_row_reach_attention() -> None:
    precision = Precision(kv="nvfp4", kv_rotary="fp8")
    op = operators(layer_graph(V3, Phase.decode(1, 10), precision=precision))["attention"]
    assert op.row_bytes == 352


def test_sparse_attention_reads_few_rows_and_its_indexer_all_keys() -> None:
    ops = operators(layer_graph(V32, Phase.decode(4, 100_000)))
    assert ops["attention"].pairs == ops["attention"].keys == 2048
    scores = ops["index_scores"]
    assert scores == Indexer("index_scores", 4, 64, 128, 1, 100_000)
    assert scores.bytes == 4 * (64 * 128 * 2 + 100_000 * 128 * 2 + 100_000 * 4)
    assert scores.flops == 4 * 2 * 64 * 128 * 100_000


def test_sparse_attention_expands_its_rows_in_prefill_where_asked() -> None:
    """320 products per head and pair, not 2 x 512 + 64 where all are read: 3.4 times."""
    short = Phase.prefill(1, 500, 1000)
    expanded = operators(layer_graph(V32, short, latent="expanded"))
    absorbed = operators(layer_graph(V32, short))
    assert expanded["latent_up"].m == 1500
    assert expanded["attention"].pairs == absorbed["attention"].pairs
    assert absorbed["attention"].flops == 3.4 * expanded["attention"].flops
    assert expanded["index_scores"] == absorbed["index_scores"]
    long = operators(layer_graph(V32, Phase.prefill(1, 500, 9500), latent="expanded"))
    assert long["attention"].pairs == 500 * 9500 + 500 * 501 // 2
    step = layer_graph(V32, Phase.mixed(64, 0, 4, 4096), latent="expanded")
    assert step.has_edge("index_top_k", "attention")
    assert isinstance(operators(step)["attention"], Attention)
    assert isinstance(operators(step)["attention_decode"], LatentAttention)
    with pytest.raises(ConfigError, match=r"latent: 'dense' .* expanded, absorbed"):
        layer_graph(V32, short, latent="dense")  # type: ignore[arg-type]


def test_absorbed_sparse_attention_is_the_same_at_every_length() -> None:
    """Below what a query may read it reads all that it sees, by the same operators."""
    short, long = (
        operators(layer_graph(V32, phase))
        for phase in (Phase.prefill(1, 100, 1948), Phase.prefill(1, 100, 10_000))
    )
    assert list(short) == list(long)
    assert "latent_up" not in short
    assert short["attention"].pairs == 100 * 1948 + 100 * 101 // 2
    assert long["attention"].pairs == 100 * 2048
    assert short["attention"].keys == 2048


def test_windowed_layers_are_bounded_and_the_others_not() -> None:
    ops = operators(phase_graph(ModelSpec.load("gpt-oss-120b"), Phase.decode(8, 10_000)))
    assert (ops["window.attention"].keys, ops["full.attention"].keys) == (128, 10_000)
    graph = phase_graph(ModelSpec.load("gemma-3-27b"), Phase.decode(8, 10_000))
    counts = {name: data["count"] for name, data in graph.nodes(data=True)}
    assert (counts["local.attention"], counts["global.attention"]) == (52, 10)
    assert counts["local.norm_after_mlp"] == 52


def test_recurrent_layers_do_not_see_the_context() -> None:
    spec = ModelSpec.load("nemotron-3-nano")
    short, long = (operators(phase_graph(spec, Phase.decode(8, c))) for c in (10, 10**6))
    op = short["mamba.recurrence"]
    assert (
        op
        == long["mamba.recurrence"]
        == Recurrence("mamba.recurrence", 8, 64, 8, 128, 64, 1, 128, "ssm")
    )
    state = 64 * 128 * 64
    rows = 2 * (2 * 8 * 128 + 2 * 64 * 64)
    assert op.bytes == 8 * (2 * state * 4 + rows)
    assert op.flops == 8 * 5 * state
    assert long["attention.attention"].keys == 10**6


def test_experts_of_one_rank() -> None:
    ops = operators(layer_graph(V3, Phase.decode(64, 4096), layer="moe"))
    up, down = ops["experts_gate_up"], ops["experts_down"]
    assert up.flops == pytest.approx(2 * 64 * 8 * 7168 * 4096)
    assert up.weight_bytes == pytest.approx(distinct_experts(256, 8, 64) * 7168 * 4096 * 2)
    assert (down.n, down.k) == (7168, 2048)
    assert ops["router"] == Gemm("router", 64, 256, 7168)
    assert ops["shared_gate_up"] == Gemm("shared_gate_up", 64, 4096, 7168)
    assert "dispatch" not in ops


def test_experts_see_the_tokens_of_every_rank_and_its_draft() -> None:
    """64 sequences of each of 8 ranks with 3 drafted tokens: 2048 tokens pick experts."""
    plan = Parallelism(dp=8, ep=8)
    ops = operators(layer_graph(V3, Phase.decode(512, 4096, draft=3), plan, layer="moe"))
    assert ops["latent_down"].m == 64 * 4
    assert ops["experts_gate_up"].rows == pytest.approx(2048 * 8 / 8)
    assert ops["experts_gate_up"].experts == pytest.approx(distinct_experts(256, 8, 2048) / 8)
    assert {"dispatch", "combine"} <= set(ops)


def test_experts_under_tensor_parallelism_need_no_journey() -> None:
    for plan in (Parallelism(tp=8, ep=8), Parallelism(tp=8)):
        ops = operators(layer_graph(V3, Phase.decode(64, 4096), plan, layer="moe"))
        assert "dispatch" not in ops
        assert ops["all_reduce_mlp"].chips == 8
        assert ops["experts_gate_up"].flops == pytest.approx(2 * 64 * 7168 * 4096)
    spread = operators(
        layer_graph(V3, Phase.decode(1, 1), Parallelism(tp=8, ep=8), layer="moe")
    )
    split = operators(layer_graph(V3, Phase.decode(1, 1), Parallelism(tp=8), layer="moe"))
    # One token picks 8 experts: one on each chip, or an eighth of each.
    assert spread["experts_down"].bytes == pytest.approx(split["experts_down"].bytes, rel=0.01)


def test_skewed_loads_reach_the_graph() -> None:
    load = ExpertLoad(kind="zipf", exponent=1.0)
    plan, phase = Parallelism(dp=8, ep=8), Phase.decode(64, 100)
    even, skewed = (
        operators(layer_graph(V3, phase, plan, layer="moe", load=each))["experts_gate_up"]
        for each in (ExpertLoad(), load)
    )
    assert skewed.rows > even.rows


@pytest.mark.parametrize("norms", [1, 2])
def test_blocks_side_by_side_are_reduced_once(norms: int) -> None:
    graph = layer_graph(small(parallel_norms=norms), Phase.decode(8, 64), Parallelism(tp=4))
    ops = operators(graph)
    assert sum(op.kind == "collective" for op in ops.values()) == 1
    assert sum(op.kind == "norm" for op in ops.values()) == norms
    assert set(graph.predecessors("sum_blocks")) == {"output_projection", "down"}


def test_norms_around_a_block() -> None:
    kinds = {"pre": {"norm_attention", "norm_mlp"}}
    kinds["post"] = {"norm_after_attention", "norm_after_mlp"}
    kinds["sandwich"] = kinds["pre"] | kinds["post"]
    for position, expected in kinds.items():
        ops = operators(layer_graph(small(norm_position=position), Phase.decode(8, 64)))
        assert {name for name, op in ops.items() if op.kind == "norm"} == expected


def test_queries_with_a_gate_and_keys_that_are_values() -> None:
    gated = small(attention={"output_gate": True, "qk_norm": "head"})
    ops = operators(layer_graph(gated, Phase.decode(8, 64), qkv="separate"))
    assert (ops["query"].n, ops["key"].n, ops["value"].n) == (128, 64, 64)
    assert ops["output_gate"].elements == 8 * 64
    assert (ops["qk_norm"].rows, ops["qk_norm"].columns) == (8 * 8, 16)
    one = small(attention={"keys_are_values": True, "kv_heads": 2, "qk_norm": "width"})
    ops = operators(layer_graph(one, Phase.decode(8, 64), qkv="separate"))
    assert (ops["query"].n, ops["key"].n, "value" in ops) == (64, 32, False)
    assert (ops["qk_norm"].rows, ops["qk_norm"].columns) == (8, 96)
    assert operators(layer_graph(one, Phase.decode(8, 64)))["qkv"].n == 96
    shared = small(
        layer_kinds=[{"name": "own"}, {"name": "shared", "attention": {"shares_cache": True}}],
        layer_order=[{"kinds": ["own", "shared"], "times": 2}],
    )
    graph = layer_graph(shared, Phase.decode(8, 64), qkv="separate", layer="shared")
    ops = operators(graph)
    assert (ops["query"].n, {"key", "value"} & set(ops)) == (64, set())


def test_experts_behind_a_latent() -> None:
    spec = small(mlp=MOE | {"latent": 16, "shared_intermediate": 32})
    ops = operators(layer_graph(spec, Phase.decode(8, 64), Parallelism(dp=4, ep=4)))
    assert (ops["latent_in"].n, ops["experts_gate_up"].k, ops["latent_out"].k) == (16, 16, 16)
    plain = operators(layer_graph(small(mlp=MOE), Phase.decode(8, 64), Parallelism(dp=4, ep=4)))
    assert ops["dispatch"].bytes == plain["dispatch"].bytes / 4


def test_experts_have_a_format_of_their_own() -> None:
    precision = Precision(weights="bf16", activations="bf16", experts="mxfp4")
    ops = operators(layer_graph(small(mlp=MOE), Phase.decode(8, 64), precision=precision))
    assert (ops["experts_down"].b_format, ops["router"].b_format) == ("mxfp4", "bf16")
