"""Graphs of chunks, mixed steps, towers and encoders; work that grows with the step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.errors import ConfigError
from chipsim.ops.graph import Phase, layer_graph, phase_graph
from chipsim.ops.loads import distinct_experts
from chipsim.ops.model import ModelSpec
from chipsim.ops.operators import Attention, Gemm, GroupedGemm
from chipsim.ops.plan import Parallelism
from tests.ops.test_parts import MLA, MOE, SSM, small

if TYPE_CHECKING:
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


@given(
    st.sampled_from(["llama-3.1-8b", "deepseek-v3", "gpt-oss-20b", "gemma-3-27b"]),
    st.integers(1, 3000), st.integers(1, 8), st.integers(0, 500),
)  # fmt: skip
def test_chunks_add_up_to_the_whole(name: str, prompt: int, cuts: int, prefix: int) -> None:
    spec, chunk = ModelSpec.load(name), max(1, prompt // cuts)
    whole = phase_graph(spec, Phase.prefill(1, prompt, prefix), layers_only=True)
    parts = [
        phase_graph(spec, phase, layers_only=True)
        for phase in Phase.chunks(1, prompt, chunk, prefix)
    ]
    assert sum(total(part, Attention) for part in parts) == total(whole, Attention)
    # Weights and the prefix are read again by each chunk.
    assert sum(everything(part, "bytes") for part in parts) >= everything(whole, "bytes")


@pytest.mark.parametrize("name", ["deepseek-v3.2", "glm-5"])
@pytest.mark.parametrize(
    ("prompt", "chunk", "prefix"),
    [(9000, 1000, 3000), (8192, 2048, 0), (5000, 999, 0), (2049, 1, 0)],
)
def test_chunks_of_sparse_attention_add_up_too(
    name: str, prompt: int, chunk: int, prefix: int
) -> None:
    spec = ModelSpec.load(name)
    whole = layer_graph(spec, Phase.prefill(1, prompt, prefix))
    names = [key for key, data in whole.nodes.items() if data["group"] == "attention"]
    sums = dict.fromkeys([*names, "index_query", "index_scores", "index_top_k"], 0.0)
    for phase in Phase.chunks(1, prompt, chunk, prefix):
        part = operators(layer_graph(spec, phase))
        for key in sums:
            sums[key] += part[key].flops
    assert sums == {key: operators(whole)[key].flops for key in sums}


@pytest.mark.parametrize(("prompt", "chunk", "prefix"), [(9000, 1000, 3000), (5000, 999, 0)])
def test_chunks_of_the_expanded_form_add_up_as_well(
    prompt: int, chunk: int, prefix: int
) -> None:
    """Scores, picked or masked, and the indexer's; keys and values are made again instead."""
    spec = ModelSpec.load("deepseek-v3.2")
    steps = [Phase.prefill(1, prompt, prefix), *Phase.chunks(1, prompt, chunk, prefix)]
    whole, *parts = [operators(layer_graph(spec, step, latent="expanded")) for step in steps]
    for key in ("attention", "index_query", "index_scores", "index_top_k"):
        assert sum(part[key].flops for part in parts) == whole[key].flops
    assert sum(part["latent_up"].flops for part in parts) > whole["latent_up"].flops


def test_chunks_expand_the_prefix_again_and_read_more_experts() -> None:
    spec, phase = V3, Phase.prefill(1, 4096)
    whole = operators(phase_graph(spec, phase))
    parts = [operators(phase_graph(spec, part)) for part in Phase.chunks(1, 4096, 1024)]
    assert whole["moe.latent_up"].m == 4096
    assert [part["moe.latent_up"].m for part in parts] == [1024, 2048, 3072, 4096]
    read = sum(part["moe.experts_gate_up"].experts for part in parts)
    assert read == pytest.approx(4 * distinct_experts(256, 8, 1024))


@pytest.mark.parametrize(
    "name", ["llama-3.1-8b", "deepseek-v3", "gpt-oss-20b", "nemotron-3-nano"]
)
def test_a_mixed_step_shares_its_weights_and_adds_its_attention(name: str) -> None:
    spec = ModelSpec.load(name)
    prefill, decode = Phase.prefill(1, 512, 1024), Phase.decode(32, 2048)
    mixed = operators(phase_graph(spec, Phase.mixed(512, 1024, 32, 2048)))
    alone, beside = operators(phase_graph(spec, prefill)), operators(phase_graph(spec, decode))
    for key, op in mixed.items():
        if op.kind == "gemm" and key in alone and key in beside and isinstance(op, Gemm):
            assert op.m == alone[key].m + beside[key].m
            assert op.bytes < alone[key].bytes + beside[key].bytes
        elif key.rsplit(".")[-1] == "attention":
            assert op == alone[key]
            second = mixed[f"{key}_decode"]
            assert (second.flops, second.bytes) == (beside[key].flops, beside[key].bytes)
        elif isinstance(op, GroupedGemm):
            assert op.rows == pytest.approx(alone[key].rows + beside[key].rows)
            assert op.experts <= alone[key].experts + beside[key].experts


def test_a_decoder_tower_runs_in_decode_alone() -> None:
    """A prefiller tower builds the cache, a decoder tower reads it: data, not code."""
    spec = small(
        layers=6,
        layer_kinds=[
            {"name": "prefiller"},
            {"name": "decoder", "phases": ["decode"], "attention": {"shares_cache": True}},
        ],
        layer_order=[{"kinds": ["prefiller"], "times": 4}, {"kinds": ["decoder"], "times": 2}],
    )  # fmt: skip
    prefill, decode = (
        phase_graph(spec, p) for p in (Phase.prefill(1, 64), Phase.decode(1, 64))
    )
    assert not any(name.startswith("decoder") for name in prefill)
    assert "lm_head" not in prefill  # the first token is decode's
    assert {"decoder.attention", "lm_head"} <= set(decode)
    assert spec.kv_elements_per_token == 4 * 2 * 64
    mixed = operators(phase_graph(spec, Phase.mixed(64, 0, 8, 64)))
    assert (mixed["prefiller.qkv"].m, mixed["decoder.qkv"].m, mixed["lm_head"].m) == (72, 8, 8)
    assert mixed["decoder.qkv"].n == 64  # queries alone


def test_a_decoder_tower_is_no_layer_of_a_prefill() -> None:
    spec = small(
        layer_kinds=[{"name": "late", "phases": ["decode"]}],
        layer_order=[{"kinds": ["late"], "times": 4}],
    )
    with pytest.raises(ConfigError, match=r"layer: 'late' .* runs in prefill"):
        layer_graph(spec, Phase.prefill(1, 8))
    with pytest.raises(ConfigError, match=r"layer: 'early' .* late"):
        layer_graph(spec, Phase.decode(1, 8), layer="early")


def test_an_encoder_runs_before_prefill() -> None:
    tower = {
        "layers": 2, "hidden": 32, "heads": 4, "intermediate": 128, "tokens": 9, "outputs": 3
    }  # fmt: skip
    graph = phase_graph(small(encoder=tower), Phase.encode(5, 9))
    attention = operators(graph)["attention"]
    assert attention == Attention("attention", 5, 4, 4, 8, 8, 9, 9, causal=False)
    assert total(graph, Gemm) == 2 * 2 * 45 * (4 * 32 * 32 + 2 * 32 * 128)
    with pytest.raises(ConfigError, match="encoder: None"):
        phase_graph(small(), Phase.encode(1, 9))


SMALL = {
    "latent": small(attention=MLA), "experts": small(attention=MLA, mlp=MOE),
    "states": small(attention=SSM | {"conv": 4}), "window": small(attention={"window": 50}),
    "sparse": small(attention=MLA | {"indexer": {"heads": 2, "head_dim": 8, "top_k": 30}}),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
@given(
    st.one_of(
        st.builds(Phase.prefill, st.integers(1, 4), st.integers(1, 99), st.integers(0, 99)),
        st.builds(Phase.decode, st.integers(1, 40), st.integers(4, 400), st.integers(0, 3)),
        st.builds(
            Phase.mixed, st.integers(1, 99), st.integers(0, 99), st.integers(1, 40),
            st.integers(1, 400),
        ),
    ),
    st.sampled_from([{}, {"tp": 2}, {"tp": 4}, {"dp": 2}, {"tp": 2, "dp": 2}]),
)  # fmt: skip
def test_work_never_falls_with_batch_or_context(
    name: str, phase: Phase, degrees: dict[str, int]
) -> None:
    spec, plan = SMALL[name], Parallelism(**degrees)

    def work(phase: Phase) -> list[float]:
        graph = phase_graph(spec, phase, plan)
        assert nx.is_directed_acyclic_graph(graph)
        return [everything(graph, what) for what in ("flops", "bytes")]

    fields = {f: getattr(phase, f) for f in ("kind", "batch", "query", "context", "draft",
                                             "decodes", "decode_context")}  # fmt: skip
    grow = ["batch", "context"]
    grow += ["decodes", "decode_context"] if phase.kind == "mixed" else []
    for field in grow:
        more = work(Phase(**(fields | {field: fields[field] + 1})))
        for before, after in zip(work(phase), more, strict=True):
            assert after >= before * (1 - 1e-12)


@given(st.integers(1, 4), st.integers(1, 99), st.integers(0, 99))
def test_work_of_the_expanded_form_never_falls(batch: int, prompt: int, prefix: int) -> None:
    spec = SMALL["sparse"]
    less, *more = (
        phase_graph(spec, Phase.prefill(*sizes), latent="expanded")
        for sizes in (
            (batch, prompt, prefix), (batch, prompt, prefix + 1), (batch, prompt + 1, prefix),
            (batch + 1, prompt, prefix),
        )
    )  # fmt: skip
    for graph in more:
        for what in ("flops", "bytes"):
            assert everything(graph, what) >= everything(less, what) * (1 - 1e-12)
