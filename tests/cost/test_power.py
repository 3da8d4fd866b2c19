"""TDP and idle power: SPAD's Table 3 to the watt, and what must hold of any chip."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.chip import Chip
from chipsim.cost.energies import Energies, Voltage
from chipsim.cost.power import power
from chipsim.errors import ChipsimError


@pytest.mark.parametrize(
    ("name", "watts"), [("spad-prefill", 596), ("spad-decode", 507), ("spad-h100", 700)]
)
def test_the_tdp_of_the_paper(name: str, watts: float) -> None:
    # SPAD, Table 3: by the rule, without what the chips state; and they are held to it
    chip = Chip.load(name)
    bare = chip.model_copy(update={"tdp": None})
    assert round(power(bare).tdp_w) == round(power(chip).modelled_tdp_w) == watts
    assert power(bare).stated_w is None
    assert power(chip).tdp_w == pytest.approx(chip.tdp) == pytest.approx(watts)


def test_the_parts_of_the_paper() -> None:
    # SPAD: 480 W for 814 mm2, 30 W for each of 5 stacks, and nine tenths of it all
    parts = power("spad-h100").modelled
    assert parts == pytest.approx({"die": 480.0, "memory": 150.0, "overhead": 70.0})
    # 4.5 pJ/bit at 2048 GB/s
    assert power("spad-prefill").modelled["memory"] == pytest.approx(4.5e-12 * 8 * 2048e9)


def test_a_supply_stays_above_the_threshold() -> None:
    for floor in (0.3, 0.35):
        with pytest.raises(ChipsimError, match="a threshold below the floor"):
            Voltage.build("test", alpha=1.3, threshold=0.35, floor=floor)


def test_idle_is_what_was_measured() -> None:
    # 80 W of an H200's 700, of which published.yaml takes the part
    assert power("h200-sxm").idle_w == pytest.approx(0.115 * 700)


def test_a_stated_tdp_rules_the_idle_power() -> None:
    chip = Chip.load("spad-h100")
    idle = power(chip).idle_w
    half = chip.model_copy(update={"tdp": 350.0})
    assert power(half).idle_w == pytest.approx(idle / 2)
    assert power(half).tdp_w == pytest.approx(350)
    assert power(half).modelled == power(chip).modelled


def test_dies_have_what_memory_and_supply_leave_of_a_stated_tdp() -> None:
    # by hand: 8 stacks of 30 W, and nine tenths of 1000 W for them and 1600 mm2
    b200 = power("b200-sxm")
    assert b200.parts == pytest.approx({"die": 660.0, "memory": 240.0, "overhead": 100.0})
    assert b200.die_w_per_mm2 == pytest.approx(660 / 1600)
    assert b200.modelled["die"] == pytest.approx(1600 * 480 / 814)
    assert (b200.stated_w, round(b200.modelled_tdp_w)) == (1000.0, 1315)


def test_a_cut_keeps_the_watts_per_area_that_a_stated_tdp_leaves() -> None:
    base = Chip.load("b200-sxm")
    cut = power(base.scaled(cores=0.5), base=base)
    full = power(base)
    assert cut.stated_w is None
    assert cut.die_w_per_mm2 == pytest.approx(full.die_w_per_mm2)
    assert cut.parts["memory"] == full.parts["memory"]
    assert cut.parts["die"] < full.parts["die"]


def test_a_tdp_that_memory_alone_draws_is_refused() -> None:
    chip = Chip.load("spad-h100").model_copy(update={"tdp": 160.0})
    with pytest.raises(ChipsimError, match=r"tdp: '160 W' .* more than 166.7 W") as error:
        power(chip)
    assert "\n" not in str(error.value)


@given(
    resource=st.sampled_from(["cores", "l2", "memory_bandwidth", "sram", "clock"]),
    fraction=st.floats(0.3, 1.0),
)
def test_less_never_draws_more(resource: str, fraction: float) -> None:
    base = Chip.load("spad-h100")
    cut = power(base.scaled(**{resource: fraction}), base=base)
    full = power(base)
    assert cut.tdp_w <= full.tdp_w * (1 + 1e-9)
    assert cut.idle_w <= full.idle_w * (1 + 1e-3)
    assert min(cut.parts.values()) > 0


def test_a_cut_takes_of_the_stated_area_what_it_takes_of_the_modelled_one() -> None:
    base = Chip.load("spad-h100")
    cut = base.scaled(cores=0.5)
    unstated = base.model_copy(update={"die_area": None})
    ratio = power(cut).die_area_mm2 / power(unstated).die_area_mm2
    assert power(cut, base=base).die_area_mm2 == pytest.approx(814 * ratio)
    assert 0.5 < ratio < 1


def test_half_the_clock_takes_less_than_half_of_the_die() -> None:
    base = Chip.load("spad-h100")
    cut = power(base.scaled(clock=0.5), base=base)
    # At half the clock the law is at its floor.
    assert cut.modelled["die"] == pytest.approx(480 * 0.5 * LAW.floor**2)
    assert cut.parts["die"] == pytest.approx(cut.modelled["die"])
    assert cut.parts["memory"] == pytest.approx(150)


def test_a_byte_of_memory_costs_the_same_after_a_cut() -> None:
    base = Chip.load("spad-h100")
    cut = power(base.scaled(memory_bandwidth=0.6), base=base)
    assert cut.memory_j_per_byte == pytest.approx(power(base).memory_j_per_byte)


@pytest.mark.parametrize("name", ["h100-sxm", "a100-sxm", "h200-sxm", "rtx-4090"])
def test_stated_and_modelled_are_near_where_one_die_is_described(name: str) -> None:
    chip = Chip.load(name)
    assert chip.tdp is not None
    assert power(chip).modelled_tdp_w == pytest.approx(chip.tdp, rel=0.06)


def test_no_area_is_one_line() -> None:
    chip = Chip.load("spad-h100").model_copy(update={"die_area": None, "floorplan": None})
    with pytest.raises(ChipsimError, match=r"die_area: None .* floor plan") as error:
        power(chip)
    assert "\n" not in str(error.value)


def test_unknown_process_is_one_line() -> None:
    chip = Chip.load("spad-h100").model_copy(update={"process": "2 nm"})
    with pytest.raises(ChipsimError, match=re.escape("'2 nm'")) as error:
        power(chip)
    assert "\n" not in str(error.value)


def test_sizes_in_descending_order_are_refused() -> None:
    data = Energies.load().model_dump()
    data["sram"] = data["sram"][::-1]
    with pytest.raises(ChipsimError, match="ascending size"):
        Energies.build("energies", **data)


LAW = Energies.load().voltage


@given(clock=st.floats(0.01, 1.0))
def test_the_supply_reaches_the_clock_and_no_less_does(clock: float) -> None:
    supply = LAW.supply(clock)
    assert LAW.floor <= supply <= 1.0
    assert LAW.clock(supply) >= clock * (1 - 1e-9)
    if supply > LAW.floor:
        assert LAW.clock(supply - 1e-6) < clock


def test_without_a_threshold_and_with_alpha_two_the_law_is_linear() -> None:
    law = Voltage(alpha=2.0, threshold=1e-9, floor=0.01)
    for clock in (0.2, 0.5, 1.0):
        assert law.supply(clock) == pytest.approx(clock, rel=1e-6)


def test_sram_energy_is_the_table_and_grows_between_its_rows() -> None:
    energies = Energies.load()
    # Ten Lessons, Table 2: 7.5, 8.5 and 14 pJ per 64 bits of 8 KB, 32 KB and 1 MB at 7 nm
    for size, picojoules in ((8, 7.5), (32, 8.5), (1024, 14.0)):
        found = energies.sram_joules(size * 1024, "7 nm")
        assert found == pytest.approx(picojoules * 1e-12 / 8)
    sizes = [2.0**i for i in range(10, 24)]
    joules = [energies.sram_joules(size, "7 nm") for size in sizes]
    assert joules == sorted(joules)
    assert math.isclose(joules[-1], 14e-12 / 8)
