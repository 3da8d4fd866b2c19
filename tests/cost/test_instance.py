"""One instance in dollars, watts and joules, by hand and beside whole machines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.cost import chip_cost, instance_cost
from chipsim.cost.cap import CappedModel
from chipsim.cost.energy import EnergyModel
from chipsim.cost.system import Host, system_cost
from chipsim.errors import ChipsimError
from chipsim.ops.phase import Phase
from chipsim.phases import PhaseModel, estimate

HOST = Host.load()


@given(machines=st.integers(1, 20))
def test_whole_machines_are_those_of_a_system(machines: int) -> None:
    instance = instance_cost("spad-h100", 8 * machines)
    system = system_cost(chip_cost("spad-h100"), 700.0, HOST, machines)
    for end in ("low", "mid", "high"):
        ours, theirs = (getattr(each.capital, end) for each in (instance, system))
        assert ours == pytest.approx(theirs)
    assert instance.tdp_w == pytest.approx(system.power_w)
    assert instance.usd_per_hour.mid == pytest.approx(system.per_hour.mid)
    assert instance.basis == system.basis


def test_half_a_machine_pays_half_of_its_host() -> None:
    half = instance_cost("spad-prefill", 4)
    by_hand = 4 * chip_cost("spad-prefill").total_usd + (21102 + 10908) / 2
    assert half.capital.mid == pytest.approx(by_hand)
    assert half.tdp_w == pytest.approx(4 * 596 + 2300)
    watts = half.tdp_w * 1.56 / 1e3
    assert half.usd_per_hour.mid == pytest.approx(by_hand / (5 * 8760) + watts * 0.0806)


def test_a_step_s_joules_are_those_of_all_its_chips() -> None:
    step = estimate("spad-h100", "bloom-176b", Phase.decode(64, 1024), "tp=8")
    instance = instance_cost("spad-h100", 8)
    of_chip = EnergyModel(instance.energy.chip).phase(step)
    assert instance.step_j(step) == pytest.approx(8 * of_chip.total_j)
    assert instance.power_w(step) == pytest.approx(8 * of_chip.power_w + HOST.power)
    assert instance.idle_power_w < instance.power_w(step) < instance.tdp_w
    cheap, dear = (instance.per_hour(w).mid for w in (instance.power_w(step), instance.tdp_w))
    assert cheap < dear == instance.usd_per_hour.mid


def test_a_capped_instance_is_held_to_its_cap() -> None:
    capped = CappedModel("spad-h100", 450)
    instance = instance_cost("spad-h100", 8, energy=capped)
    assert instance.tdp_w == pytest.approx(8 * 450 + HOST.power)
    step = PhaseModel(capped, "bloom-176b", "tp=8").estimate(Phase.prefill(2, 1024))
    assert instance.power_w(step) <= instance.tdp_w


def test_rented_chips_cost_their_rent_whatever_they_draw() -> None:
    rented = instance_cost("h100-sxm", 4, "street-2026", rent=True)
    assert rented.usd_per_hour.mid == pytest.approx(4 * 2.95)
    assert rented.per_hour(1.0) == rented.usd_per_hour
    assert (rented.capital.mid, rented.basis) == (0.0, "rental")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: instance_cost("spad-h100", 0), "chips: 0"),
        (lambda: instance_cost("h100-sxm", 8, "street-2026"), "manufacturing, street"),
        (lambda: instance_cost("h100-sxm", 8, host="hgx"), "unknown host 'hgx'"),
        (lambda: instance_cost("mi300x", 8, "street-2026", rent=True), "a price per hour"),
        (lambda: instance_cost("spad-h100", 8).per_hour(-1.0), "power_w"),
    ],
)
def test_bad_questions_are_one_line(call: object, told: str) -> None:
    with pytest.raises(ChipsimError, match=told) as error:
        call()  # type: ignore[operator]
    assert "\n" not in str(error.value)
