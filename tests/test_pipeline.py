"""Pipeline stages against a schedule played out step by step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.errors import ConfigError, InfeasibleError
from chipsim.estimates import Estimate, OperatorRow
from chipsim.ops.graph import Phase
from chipsim.ops.model import ModelSpec
from chipsim.ops.operators import Elementwise
from chipsim.ops.plan import Parallelism
from chipsim.phases import PhaseModel, estimate
from chipsim.pipeline import pipeline, stage_seconds
from tests.ops.models import llama

SMALL = llama(8, 512, 8, intermediate=2048)
MIXED = llama(
    8, 512, 8, intermediate=2048,
    layer_kinds=[{"name": "full"}, {"name": "near", "attention": {"window": 128}}],
    layer_order=[{"kinds": ["near"], "times": 3}, {"kinds": ["full"], "times": 5}],
)  # fmt: skip


def row(name: str, seconds: float, count: int = 1) -> OperatorRow:
    operator = Elementwise(name, 1)
    made = Estimate(operator, seconds, "memory", 0.0, 0.0, 0.0, {}, {})
    return OperatorRow(name, "", count, made)


def played(stages: list[float], parts: int, *, rounds: int) -> list[float]:
    """When each round of parts is out: a part enters a stage when both are free, and a
    next round of it when its last is out."""
    free = [0.0] * len(stages)
    out, ends = [0.0] * parts, []
    for _ in range(rounds):
        for part in range(parts):
            at = out[part]
            for stage, seconds in enumerate(stages):
                at = max(at, free[stage]) + seconds
                free[stage] = at
            out[part] = at
        ends.append(max(out))
    return ends


@given(
    st.lists(st.floats(0.1, 9), min_size=4, max_size=4), st.integers(1, 9), st.floats(0, 2),
    st.floats(0, 2), st.floats(0, 1),
)  # fmt: skip
def test_stages_as_a_schedule_has_them(
    kinds: list[float], batch: int, embedding: float, head: float, send: float
) -> None:
    near, full = kinds[:2]
    rows = [
        row("embedding", embedding), row("near.a", near, 3), row("full.a", full, 5),
        row("send_stage", send, 3), row("lm_head", head),
    ]  # fmt: skip
    plan = Parallelism(pp=4)
    stages = stage_seconds(MIXED, plan, rows)
    assert stages == pytest.approx(
        [embedding + 2 * near + send, near + full + send, 2 * full + send, 2 * full + head]
    )
    prefill = pipeline(MIXED, plan, Phase.prefill(batch, 64), rows)
    assert prefill.parts == min(4, batch)
    (once,) = played(stages, prefill.parts, rounds=1)
    # the formula holds the parts apart by the slowest stage, as a schedule must in the end
    assert prefill.latency_s == pytest.approx(once)
    decode = pipeline(MIXED, plan, Phase.decode(batch, 64), rows)
    ends = played(stages, decode.parts, rounds=40)
    assert decode.latency_s == pytest.approx((ends[-1] - ends[-21]) / 20, rel=1e-6)
    busy = sum(stages) * decode.parts / (4 * decode.latency_s)
    assert decode.bubble == pytest.approx(1 - busy, abs=1e-9)


@given(st.floats(0.1, 9), st.floats(0.1, 9), st.integers(1, 9), st.floats(0, 2))
def test_uneven_stages_as_a_schedule_has_them(
    near: float, full: float, batch: int, head: float
) -> None:
    """8 layers over 3 stages: 3 near, 3 full, 2 full and the head; the slowest one decides."""
    rows = [row("near.a", near, 3), row("full.a", full, 5), row("lm_head", head)]
    plan = Parallelism(pp=3)
    stages = stage_seconds(MIXED, plan, rows)
    assert stages == pytest.approx([3 * near, 3 * full, 2 * full + head])
    prefill = pipeline(MIXED, plan, Phase.prefill(batch, 64), rows)
    assert prefill.stage_s == max(stages)
    (once,) = played(stages, prefill.parts, rounds=1)
    assert prefill.latency_s == pytest.approx(once)
    decode = pipeline(MIXED, plan, Phase.decode(batch, 64), rows)
    ends = played(stages, decode.parts, rounds=40)
    assert decode.latency_s == pytest.approx((ends[-1] - ends[-21]) / 20, rel=1e-6)


def test_an_estimate_says_what_its_stages_hold() -> None:
    step = estimate(
        "h200-sxm", "deepseek-v3", Phase.decode(64, 1024), "tp=8,ep=8,pp=3", precision="fp8"
    )
    assert step.stage_layers == (20, 21, 20)
    assert step.stage_s < step.latency_s
    one = estimate("spad-h100", "llama-3.1-8b", Phase.decode(1, 512))
    assert one.stage_layers == (32,)


def test_one_stage_is_the_sum() -> None:
    rows = [row("a", 2.0, 3), row("lm_head", 1.0)]
    assert pipeline(SMALL, Parallelism(tp=8), Phase.decode(8, 64), rows) == (1, 7.0, 7.0, 0.0)


def test_stages_that_do_the_same_halve_the_wait_and_not_the_step() -> None:
    """One sequence passes both stages: no faster, but half of the time each stage waits."""
    one = estimate("spad-h100", "llama-3.1-8b", Phase.decode(1, 512))
    two = estimate("spad-h100", "llama-3.1-8b", Phase.decode(1, 512), "pp=2")
    assert two.latency_s >= one.latency_s
    assert two.parts == 1
    assert two.bubble == pytest.approx(0.5)
    assert one.stage_s == one.latency_s
    many = estimate("spad-h100", "llama-3.1-8b", Phase.decode(64, 512), "pp=2")
    assert many.parts == 2
    assert many.bubble < 0.2


def test_a_stage_hands_over_between_machines() -> None:
    model = PhaseModel("spad-h100", "bloom-176b", "tp=8,pp=2")
    step = model.estimate(Phase.prefill(2, 1024))
    (send,) = [row for row in step.rows if row.name == "send_stage"]
    # 1024 tokens of one part, 14336 wide, an eighth of it through a port of 50 GB/s
    assert send.estimate.parts["link"] == pytest.approx(1024 * 14336 * 2 / 8 / 50e9, rel=1e-3)
    assert send.count == 1


def test_a_machine_that_stands_alone_holds_no_more_than_its_chips() -> None:
    with pytest.raises(InfeasibleError, match=r"tp=8,dp=2 takes 16 chips; .* has 8, .*most 8$"):
        estimate("spad-early-decode", "llama-3.1-8b", Phase.decode(2, 16), "tp=8,dp=2")


def test_prompts_are_split_and_decode_is_not() -> None:
    with pytest.raises(ConfigError, match=r"cp: 2 .* allowed: 1 in decode; dcp splits"):
        estimate("h100-sxm", "llama-3.1-8b", Phase.decode(2, 16), "cp=2")
    with pytest.raises(ConfigError, match="allowed: 1 in mixed"):
        estimate("h100-sxm", "llama-3.1-8b", Phase.mixed(16, 0, 2, 16), "cp=2")


@pytest.mark.parametrize("plan", ["pp=2", "tp=2,pp=4", "dp=4", "tp=2,dp=2", "tp=2,cp=2"])
def test_a_larger_batch_is_never_faster(plan: str) -> None:
    model = PhaseModel("h100-sxm", "llama-3.1-8b", plan, check_memory=False)
    for make in (Phase.prefill, Phase.decode) if "cp" not in plan else (Phase.prefill,):
        steps = [model.estimate(make(batch, 256)).latency_s for batch in range(1, 18)]
        assert steps == sorted(steps)


def test_experts_of_all_ranks_share_a_step() -> None:
    model = ModelSpec.load("deepseek-v3")
    step = PhaseModel("h200-sxm", model, "dp=64,ep=64", precision="fp8").estimate(
        Phase.decode(2048, 4096)
    )
    names = [row.name for row in step.rows]
    assert {"moe.dispatch", "moe.combine"} <= set(names)
    experts = next(row for row in step.rows if row.name == "moe.experts_gate_up")
    # 4 experts a chip, all of them touched by 2048 tokens; 8 of 256 picks: 64 rows each
    assert experts.estimate.flops == pytest.approx(2 * 4 * 64 * 4096 * 7168, rel=1e-6)
