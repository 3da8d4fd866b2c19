"""Whole models on a chip: what experts, latents, windows and chunks do to a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chipsim.arch_configs import names
from chipsim.errors import InfeasibleError
from chipsim.ops.graph import phase_graph
from chipsim.ops.loads import ExpertGroup, distinct_experts
from chipsim.ops.model import ModelSpec
from chipsim.ops.operators import Attention, GroupedGemm, Indexer, LatentAttention, Recurrence
from chipsim.ops.phase import Phase
from chipsim.ops.plan import Parallelism
from chipsim.performance import PerformanceModel
from chipsim.phases import PhaseModel
from tests.ops.test_parts import MLA, MOE, small

if TYPE_CHECKING:
    from chipsim.estimates import OperatorRow, PhaseEstimate

H200 = PerformanceModel("h200-sxm", "ideal")


def phases(model: str | ModelSpec, plan: str = "tp=1", load: str | None = None) -> PhaseModel:
    return PhaseModel(H200, model, plan, precision="bf16", load=load, check_memory=False)


def row(estimate: PhaseEstimate, name: str) -> OperatorRow:
    return next(row for row in estimate.rows if row.name == name)


@pytest.mark.parametrize("name", names("models"))
def test_every_model_of_the_library_runs_in_every_phase(name: str) -> None:
    model = phases(name)
    steps = [
        Phase.prefill(1, 512), Phase.prefill(1, 512, 512), Phase.decode(4, 1024),
        Phase.decode(4, 1024, draft=2), Phase.mixed(256, 256, 4, 1024),
    ]  # fmt: skip
    for step in steps:
        estimate = model.estimate(step)
        assert 0 < estimate.latency_s < 60
        for each in estimate.rows:
            assert each.estimate.lower_bound_s <= each.estimate.latency_s * (1 + 1e-9)


@pytest.mark.parametrize(
    "name", ["mixtral-8x7b", "deepseek-v3.2", "gpt-oss-20b", "nemotron-3-nano", "gemma-3-27b"]
)
def test_a_step_is_never_faster_with_more_to_do(name: str) -> None:
    model = phases(name)
    times = {
        "batch": [Phase.decode(b, 4096) for b in (1, 2, 7, 32, 64, 200)],
        "context": [Phase.decode(8, c) for c in (1, 128, 129, 2048, 2049, 9000, 100_000)],
        "prompt": [Phase.prefill(1, p) for p in (1, 64, 500, 2048, 5000)],
        "decodes": [Phase.mixed(256, 100, b, 1000) for b in (1, 8, 64)],
    }
    times["prefix"] = [Phase.prefill(1, 1, p) for p in (0, 127, 2000, 2048, 3000, 9000)]
    times["beside"] = [Phase.mixed(64, p, 4, 2000) for p in (0, 1984, 1985, 3000)]
    times["decode_context"] = [Phase.mixed(64, 9, 4, c) for c in (1, 128, 2047, 2049, 3000)]
    for steps in times.values():
        seconds = [model.estimate(step).latency_s for step in steps]
        assert seconds == sorted(seconds)


def test_decode_of_experts_reads_the_weights_of_those_that_are_touched() -> None:
    step = phases("mixtral-8x7b").estimate(Phase.decode(2, 64))
    up = row(step, "experts_gate_up").estimate
    weights = distinct_experts(8, 2, 2) * 2 * 14336 * 4096 * 2
    assert up.bound == "memory"
    assert up.memory_bytes == pytest.approx(weights, rel=0.01)
    assert up.latency_s == pytest.approx(up.memory_bytes / 4.8e12, rel=0.02)


def test_one_ranks_tokens_are_not_the_groups() -> None:
    """64 tokens on each of 8 ranks read all experts of a rank, not what 64 would."""
    plan = Parallelism(dp=8, ep=8)
    graph = phase_graph(ModelSpec.load("deepseek-v3"), Phase.decode(512, 64), plan)
    op = graph.nodes["moe.experts_down"]["operator"]
    read = H200.estimate(op).memory_bytes
    assert read >= 32 * (1 - (1 - 8 / 256) ** 512) * 7168 * 2048 * 2
    assert distinct_experts(256, 8, 64) / 8 < 0.88 * 32


def test_the_slowest_rank_decides() -> None:
    busy, broad = (ExpertGroup(2.0, 9000.0),), (ExpertGroup(200.0, 1.0),)
    both = GroupedGemm("up", (busy, broad), 4096, 7168, "bf16", "bf16", "bf16")
    alone = [
        H200.estimate(GroupedGemm("up", (load,), 4096, 7168, "bf16", "bf16", "bf16"))
        for load in (busy, broad)
    ]
    assert H200.estimate(both).latency_s == max(each.latency_s for each in alone)


def test_a_skewed_load_is_slower_in_prefill_than_an_even_one() -> None:
    phase = Phase.prefill(8, 1024)
    even, skewed = (
        row(phases("deepseek-v3", "dp=8,ep=8", load=load).estimate(phase), "moe.experts_down")
        for load in ("uniform", "zipf=1")
    )
    assert skewed.latency_s > 1.5 * even.latency_s


def test_time_to_read_a_latent_does_not_fall_with_tp() -> None:
    phase = Phase.decode(64, 32_768)
    one, eight = (
        row(phases("deepseek-v3", f"tp={tp}").estimate(phase), "moe.attention").estimate
        for tp in (1, 8)
    )
    cached = 64 * 32_768 * 576 * 2
    assert eight.memory_bytes >= cached
    assert one.lower_bound_s >= eight.lower_bound_s >= cached / 4.8e12
    split = row(phases("deepseek-v3", "tp=8,dcp=8").estimate(phase), "moe.attention").estimate
    assert split.memory_bytes < cached / 8 * 1.3


@pytest.mark.parametrize("plan", ["tp=8,ep=8", "cp=8"])
def test_sparse_attention_never_gains_from_a_longer_prefix(plan: str) -> None:
    model = PhaseModel("h200-sxm", "deepseek-v3.2", plan, precision="fp8", check_memory=False)
    for prompt in (1, 200):
        steps = [Phase.prefill(1, prompt, p) for p in (0, 1900, 2000, 2047, 2048, 3000, 9000)]
        seconds = [model.estimate(step).latency_s for step in steps]
        assert seconds == sorted(seconds)


def test_sparse_attention_reads_in_order_or_gathers_whichever_is_faster() -> None:
    """Many queries share the rows of a short context; of a long one each reads its own."""
    picked, dense = (
        H200.estimate(LatentAttention("a", 1, 16, 512, 64, 1000, 2000, top_k))
        for top_k in (2048, 0)
    )
    assert (picked.latency_s, picked.flops) == (dense.latency_s, dense.flops)
    picked, dense = (
        H200.estimate(LatentAttention("a", 1, 128, 512, 64, 1000, 60_000, top_k))
        for top_k in (2048, 0)
    )
    assert picked.latency_s < dense.latency_s / 2


def test_a_window_makes_a_long_context_cheap() -> None:
    model = phases("gpt-oss-20b")
    near, far = (model.estimate(Phase.decode(32, context)) for context in (1000, 100_000))
    window = [row(step, "window.attention").latency_s for step in (near, far)]
    assert window[0] == window[1]
    assert row(far, "full.attention").latency_s > 50 * row(near, "full.attention").latency_s


def test_chunks_cost_more_than_the_whole_in_bytes_and_as_much_in_scores() -> None:
    model = phases("deepseek-v3", "tp=8,ep=8")
    whole = model.estimate(Phase.prefill(1, 8192))
    parts = [model.estimate(phase) for phase in Phase.chunks(1, 8192, 2048)]
    scores = [row(step, "moe.attention").estimate.flops for step in parts]
    assert sum(scores) == row(whole, "moe.attention").estimate.flops
    for name in ("moe.experts_down", "moe.latent_up"):
        read = sum(row(step, name).estimate.memory_bytes for step in parts)
        assert read > 1.5 * row(whole, name).estimate.memory_bytes
    assert sum(step.latency_s for step in parts) > whole.latency_s


def test_a_mixed_step_takes_less_than_its_halves() -> None:
    model = phases("llama-3.1-8b")
    mixed = model.estimate(Phase.mixed(512, 1024, 32, 2048)).latency_s
    halves = [Phase.prefill(1, 512, 1024), Phase.decode(32, 2048)]
    apart = [model.estimate(phase).latency_s for phase in halves]
    assert max(apart) < mixed < sum(apart)


def test_formats_of_a_phase_are_the_models_own_unless_given() -> None:
    own = {"prefill": {"weights": "fp8", "activations": "fp8"}, "decode": {"weights": "w2"}}
    spec = small(precision=own)
    model = PhaseModel(H200, spec)
    assert model.precision_of(Phase.prefill(1, 8)).weights == "fp8"
    assert model.precision_of(Phase.decode(1, 8)).weights == "w2"
    assert model.precision_of(Phase.mixed(8, 0, 1, 8)).weights == "w2"
    assert (
        PhaseModel(H200, spec, precision="bf16").precision_of(Phase.decode(1, 8)).weights
        == "bf16"
    )
    assert PhaseModel(H200, small()).precision_of(Phase.decode(1, 8)).weights == "fp16"


def test_a_scan_has_no_chunks() -> None:
    scan = Recurrence("r", 2, 4096, 1, 16, 1, 1000, 1, "scan")
    assert not H200.estimate(scan).mapping["chunked"]
    longer = Recurrence("r", 2, 4096, 1, 16, 1, 2000, 1, "scan")
    core = [H200.estimate(op).parts["core"] for op in (scan, longer)]
    assert core[1] == pytest.approx(2 * core[0])


@pytest.mark.parametrize("ratio", [4, 128])
def test_rows_that_stand_for_many_tokens_are_read_as_such(ratio: int) -> None:
    """In decode, compressed rows cost what as many latent rows do."""
    many = LatentAttention("a", 16, 64, 512, 0, 1, 32_768, stride=ratio)
    few = LatentAttention("a", 16, 64, 512, 0, 1, 32_768 // ratio)
    first, second = H200.estimate(many), H200.estimate(few)
    assert (first.latency_s, first.memory_bytes) == (second.latency_s, second.memory_bytes)
    assert first.flops == second.flops


COMPRESSED = {
    "kind": "compressed", "heads": 64, "head_dim": 512, "rotary_dim": 64, "q_lora_rank": 64,
    "window": 128, "ratio": 128, "output_groups": 8, "output_rank": 64,
}  # fmt: skip
PICKING = {
    "ratio": 4,
    "overlaps": True,
    "indexer": {"heads": 64, "head_dim": 128, "top_k": 512},
}


@pytest.mark.parametrize("more", [{}, PICKING])
def test_a_longer_context_of_compressed_rows_is_never_faster(more: dict[str, Any]) -> None:
    spec = small(heads=64, attention=COMPRESSED | more)
    model = PhaseModel("h200-sxm", spec, check_memory=False)
    contexts = (1, 3, 4, 127, 128, 129, 500, 2047, 2048, 2049, 9000, 60_000)
    decode = [model.estimate(Phase.decode(16, context)).latency_s for context in contexts]
    assert decode == sorted(decode)
    prefill = [model.estimate(Phase.prefill(1, 64, p)).latency_s for p in (0, *contexts)]
    assert prefill == sorted(prefill)
    prompts = [model.estimate(Phase.prefill(1, prompt)).latency_s for prompt in contexts]
    assert prompts == sorted(prompts)


def test_chunks_of_compressed_attention_have_as_many_scores_as_the_whole() -> None:
    model = PhaseModel("h200-sxm", small(heads=64, attention=COMPRESSED | PICKING))
    whole = model.estimate(Phase.prefill(1, 5000))
    parts = [model.estimate(phase) for phase in Phase.chunks(1, 5000, 700)]
    for name in ("attention", "window_attention", "index_scores"):
        scores = [row(step, name).estimate.flops for step in parts]
        assert sum(scores) == row(whole, name).estimate.flops


def test_windows_and_states_leave_room_for_long_sequences() -> None:
    """A million tokens of a hybrid model fit where a dense one's would not."""
    PhaseModel("h200-sxm", "nemotron-3-nano").estimate(Phase.decode(1, 10**6))
    with pytest.raises(InfeasibleError, match="does not fit"):
        PhaseModel("h200-sxm", "phi-2").estimate(Phase.decode(1, 10**6))


@pytest.mark.parametrize(
    "operator",
    [
        LatentAttention("a", 8, 128, 512, 64, 1, 4096),
        LatentAttention("a", 1, 128, 512, 64, 512, 9000, 2048),
        Attention("a", 1, 16, 2, 512, 512, 700, 4096),  # heads of 512, as in Gemma 4
        Attention("a", 1, 128, 128, 192, 128, 700, 4096),
        Indexer("i", 8, 64, 128, 1, 50_000),
        LatentAttention("a", 8, 64, 512, 0, 1, 128, window=128),
        LatentAttention("a", 8, 64, 512, 0, 1, 50_000, 512, stride=4),
        LatentAttention("a", 1, 64, 512, 0, 700, 50_000, 512, stride=4),
        LatentAttention("a", 1, 64, 512, 0, 700, 50_000, stride=128),
        Indexer("i", 8, 64, 128, 1, 50_000, stride=4),
        Recurrence("r", 8, 32, 16, 128, 128, 1000, 64, "delta"),
        Recurrence("r", 8, 8192, 1, 16, 1, 1000, 1, "scan"),
        Recurrence("r", 8, 32, 16, 128, 128, 1),
        GroupedGemm.even("g", 31.5, 17.2, 4096, 7168),
    ],
    ids=lambda op: type(op).__name__,
)
@pytest.mark.parametrize(
    "chip", ["spad-h100", "llmcompass-ga100", "tpu-v3", "mi300x", "spad-decode"]
)
def test_every_operator_runs_on_every_kind_of_chip(operator: object, chip: str) -> None:
    found = PerformanceModel(chip, "ideal").estimate(operator)  # type: ignore[arg-type]
    assert found.lower_bound_s * (1 - 1e-9) <= found.latency_s < 1.0
    assert 0 < found.utilisation <= 1
    assert found.mapping


def test_experts_and_latents_of_a_small_model_on_many_plans() -> None:
    spec = small(attention=MLA, mlp=MOE | {"shared_intermediate": 32})
    plans = ["tp=1", "tp=2", "tp=4,ep=4", "dp=4,ep=4", "tp=2,dp=2", "tp=2,dp=2,ep=2"]
    for text in [*plans, "pp=2", "cp=2", "tp=2,dcp=2"]:
        plan = Parallelism.parse(text)
        steps = [Phase.prefill(8, 64), Phase.decode(8, 64), Phase.mixed(8, 8, 8, 64)]
        for phase in steps[:1] if plan.cp > 1 else steps:
            assert PhaseModel(H200, spec, plan).estimate(phase).latency_s > 0
