"""Cost, watts and joules beside latency: those of the functions that a script would call."""

from __future__ import annotations

import math

import pytest

from chipsim.chip import Chip
from chipsim.cost.chip_cost import chip_cost
from chipsim.cost.energy import EnergyModel, energy
from chipsim.cost.power import power
from chipsim.errors import ChipsimError
from chipsim.explore.cuts import CutsResult, cuts
from chipsim.ops.phase import Phase

BASE = Chip.load("spad-h100")


def bloom(resources: object, **options: object) -> CutsResult:
    options = {"plan": "tp=8", "execution": "ideal"} | options
    return cuts("spad-h100", "bloom-176b", Phase.decode(8, 512), resources, **options)  # type: ignore[arg-type]


def test_the_uncut_point_is_the_chip_itself() -> None:
    (row,) = bloom({"cores": [1]}).frame().to_dict("records")
    assert row["cost_usd"] == chip_cost("spad-h100").total_usd
    assert row["tdp_w"] == power("spad-h100").tdp_w
    (point,) = bloom({"cores": [1]}).points
    assert point.estimate is not None
    assert row["energy_j"] == energy(point.estimate, "spad-h100").total_j


@pytest.mark.parametrize("resource", ["cores", "memory_bandwidth", "l2", "clock"])
def test_a_cut_point_is_the_cut_chip(resource: str) -> None:
    curve = bloom({resource: [1, 0.8, 0.6]})
    rows = curve.records()
    for row, fraction in zip(rows, (1, 0.8, 0.6), strict=True):
        cut = BASE.scaled(**{resource: fraction})
        assert row["cost_usd"] == chip_cost(cut, base=BASE).total_usd
        assert row["tdp_w"] == power(cut, base=BASE).tdp_w
    watts = [row["tdp_w"] for row in rows]
    costs = [row["cost_usd"] for row in rows]
    assert watts == sorted(watts, reverse=True)
    assert costs == sorted(costs, reverse=True)


def test_a_part_of_a_stack_is_a_counterfactual() -> None:
    curve = bloom({"memory_bandwidth": [1, 0.8, 0.7], "memory_capacity": [1, 0.8]})
    told = {
        (row["fraction"], row["fraction_2"]): row["counterfactual"] for row in curve.records()
    }
    assert told[1, 1] == told[0.8, 0.8] == ""
    assert "stacks" in told[0.7, 0.8]
    assert "stacks" in told[1, 0.8]


def test_what_a_book_does_not_price_is_missing_and_said() -> None:
    curve = bloom({"cores": [1, 0.5]}, prices="street-2026")
    assert all(math.isnan(cost) for cost in curve.frame()["cost_usd"])
    assert curve.frame()["tdp_w"].notna().all()
    assert "spad-h100" in curve.money.unpriced
    listed = cuts(
        "h100-sxm", "llama-3.1-8b", Phase.decode(1, 64), {"cores": [1, 0.5]},
        prices="street-2026", precision="bf16",
    )  # fmt: skip
    assert [math.isnan(cost) for cost in listed.frame()["cost_usd"]] == [False, True]


def test_a_point_that_does_not_run_still_costs() -> None:
    full, small = bloom({"memory_capacity": [1, 0.2]}).records()
    assert small["latency_s"] is None
    assert small["energy_j"] is None
    assert 0 < small["cost_usd"] < full["cost_usd"]


def test_a_cut_clock_takes_fewer_joules_of_the_die() -> None:
    (full, half) = bloom({"clock": [1, 0.5]}).points
    assert full.estimate is not None
    assert half.estimate is not None
    floor = EnergyModel(BASE).energies.voltage.floor
    arithmetic = [
        EnergyModel(point.chip, base=BASE).phase(point.estimate).parts["arithmetic"]
        for point in (full, half)
        if point.estimate is not None
    ]
    assert arithmetic[1] == pytest.approx(floor**2 * arithmetic[0])


def test_money_is_not_computed_before_it_is_asked() -> None:
    curve = bloom({"cores": [1, 0.5]})
    assert "money" not in vars(curve.points[0])
    curve.records()
    assert "money" in vars(curve.points[0])


def test_no_such_book_is_one_line() -> None:
    with pytest.raises(ChipsimError, match="did you mean spad-2025") as error:
        bloom({"cores": [1]}, prices="spad-2024")
    assert "\n" not in str(error.value)
