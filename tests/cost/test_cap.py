"""A power cap: never exceeded, monotone, and felt by prefill, not by decode."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipsim.cost.cap import STEPS, CappedModel, capped
from chipsim.errors import ChipsimError, InfeasibleError
from chipsim.ops.operators import AllReduce, Elementwise, Gemm, Norm, Operator
from chipsim.ops.phase import Phase
from chipsim.performance import PerformanceModel
from chipsim.phases import PhaseModel

BIG = Gemm("x", 4096, 4096, 4096)
THIN = Gemm("x", 8, 8192, 8192)
OPERATORS = [BIG, THIN, Norm("x", 4096, 8192), Elementwise("x", 10**8, "fp16", 2, 1, 1)]


def slowdown(cap_w: float, phase: Phase) -> float:
    free, held = (
        PhaseModel(model, "bloom-176b", "tp=8").estimate(phase).latency_s
        for model in (PerformanceModel("spad-h100"), CappedModel("spad-h100", cap_w))
    )
    return held / free


def test_an_h100_at_450_w_slows_prefill_and_not_decode() -> None:
    # SPAD's and Splitwise's capped H100; Splitwise: decode takes half the power without loss
    assert 1.08 < slowdown(450, Phase.prefill(2, 1024)) < 1.25
    assert slowdown(450, Phase.decode(64, 1024)) == pytest.approx(1.0, abs=0.001)
    assert slowdown(350, Phase.decode(64, 1024)) < 1.01
    assert slowdown(350, Phase.prefill(2, 1024)) > 1.2


def test_no_cap_no_change() -> None:
    free = PerformanceModel("spad-h100", "ideal")
    held = capped("spad-h100", 1e6, "ideal")
    for operator in OPERATORS:
        assert held.estimate(operator) == free.estimate(operator)
        assert held.clock(operator) == 1.0


@settings(max_examples=20, deadline=None)
@given(cap_w=st.floats(85, 1000), operator=st.sampled_from(OPERATORS))
def test_the_cap_is_held(cap_w: float, operator: Operator) -> None:
    found = capped("spad-h100", cap_w, "ideal").capped(operator)
    assert found.power_w <= cap_w * (1 + 1e-9)
    latency, parts = found.estimate.latency_s, found.estimate.parts
    assert latency == pytest.approx(
        parts["launch"] + parts["core"] + parts["memory"] - parts["hidden"]
        + parts.get("reduction", 0.0)
    )  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(
    caps=st.lists(st.floats(82, 900), min_size=3, max_size=5),
    operator=st.sampled_from(OPERATORS),
)
def test_more_power_is_never_slower(caps: list[float], operator: Operator) -> None:
    times = [
        capped("spad-h100", cap, "ideal").estimate(operator).latency_s for cap in sorted(caps)
    ]
    assert times == sorted(times, reverse=True)


def test_the_next_higher_clock_would_exceed_the_cap() -> None:
    model = capped("spad-h100", 500, "ideal")
    found = model.capped(BIG)
    assert 0.1 < found.clock < 1
    assert model._at(round(found.clock * STEPS) + 1, BIG).power_w > 500


def test_the_die_takes_the_square_of_its_supply_and_memory_does_not() -> None:
    model = capped("spad-h100", 500, "ideal")
    found = model.capped(BIG)
    supply = model.energy.energies.voltage.supply(found.clock)
    assert 0.7 < supply < 1.0
    full = model.energy.operator(found.estimate).parts
    for name in ("arithmetic", "sram", "l2"):
        assert found.energy.parts[name] == pytest.approx(supply**2 * full[name])
    assert found.energy.parts["arithmetic"] == pytest.approx(
        supply**2 * 4096**3 * model.energy.mac_joules("fp16")
    )
    assert found.energy.parts["memory"] == pytest.approx(full["memory"])


def test_energy_falls_with_the_clock_of_a_product() -> None:
    free, held = capped("spad-h100", 1e6, "ideal"), capped("spad-h100", 400, "ideal")
    # Arithmetic at (V / V0)^2 falls faster than what idles grows.
    assert held.capped(BIG).energy.total_j < free.capped(BIG).energy.total_j
    assert held.capped(BIG).energy.parts["idle"] > free.capped(BIG).energy.parts["idle"]


def test_below_the_lowest_clock_the_chip_pauses() -> None:
    # Streaming at the lowest clock draws some 274 W; half of the active power is twice the
    # time.
    stream = OPERATORS[-1]
    free = PerformanceModel("spad-h100", "ideal").estimate(stream)
    model = capped("spad-h100", 120, "ideal")
    found = model.capped(stream)
    assert found.power_w == pytest.approx(120)
    assert found.estimate.latency_s > 2 * free.latency_s


def test_energy_of_a_phase_under_a_cap() -> None:
    model = CappedModel("spad-h100", 450)
    step = PhaseModel(model, "bloom-176b", "tp=8").estimate(Phase.prefill(2, 1024))
    found = model.phase(step)
    assert found.latency_s == step.latency_s
    assert found.power_w <= 450
    assert found.total_j == pytest.approx(
        sum(row.count * model.operator(row.estimate).total_j for row in step.rows)
    )


def test_a_collective_does_not_feel_the_cap() -> None:
    operator = AllReduce("x", 1e8, 8)
    free = PerformanceModel("spad-h100", "ideal").estimate(operator)
    assert capped("spad-h100", 300, "ideal").estimate(operator).latency_s == free.latency_s


@pytest.mark.parametrize("cap_w", [80, 1, 80.5])
def test_a_cap_below_idle_is_refused(cap_w: float) -> None:
    with pytest.raises(InfeasibleError, match=r"it draws 80\.5 W idle") as error:
        capped("spad-h100", cap_w).estimate(BIG)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("cap_w", [0, -1, float("nan"), float("inf")])
def test_a_cap_that_is_none_is_refused(cap_w: float) -> None:
    with pytest.raises(ChipsimError, match="cap_w"):
        capped("spad-h100", cap_w)
