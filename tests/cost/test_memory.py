"""Memory comes in whole packages, and shares the die's edge."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.arch_configs import load, names
from chipsim.chip import Chip
from chipsim.cost.area import area_blocks
from chipsim.cost.chip_cost import chip_cost
from chipsim.cost.dies import edge_dies, silicon
from chipsim.cost.edge import check_edge, edge
from chipsim.cost.memory import MemoryTechnology, memory_parts, with_packages
from chipsim.errors import ConfigError, UnknownNameError
from tests.cost.chips import H100, changed, with_memory, with_plan

GIB = 2.0**30
PROMISED = ["HBM2e", "HBM3", "HBM3e", "HBM4", "GDDR6", "GDDR6X", "GDDR7", "LPDDR5X", "DDR5"]
PREFILL = Chip.load("spad-prefill")


@pytest.mark.parametrize("technology", PROMISED)
def test_every_technology_that_is_promised_is_there(technology: str) -> None:
    found = MemoryTechnology.load(technology)
    assert len(found.source) > 10
    assert (found.power is None) != (found.energy is None)


@pytest.mark.parametrize(
    ("technology", "gb_per_s"),
    [
        # printed by JEDEC or the maker: one package of the fastest grade
        ("HBM2e", 460.8), ("HBM3", 819.2), ("HBM3e", 1228.8), ("HBM4", 2048.0),
        ("GDDR6", 80.0), ("GDDR6X", 96.0), ("GDDR7", 128.0), ("LPDDR5X", 68.264),
        ("DDR5", 51.2),
    ],
)  # fmt: skip
def test_a_package_is_as_fast_as_printed(technology: str, gb_per_s: float) -> None:
    assert MemoryTechnology.load(technology).bandwidth / 1e9 == pytest.approx(gb_per_s)


@pytest.mark.parametrize(
    ("chip", "packages", "watts", "per_mm"),
    [
        # SPAD: 30 W per HBM package, 4.5 pJ/bit of GDDR7; 68 and 22 GB/s per mm of edge
        ("spad-h100", 5, 150.0, 68e9),
        ("spad-decode", 5, 150.0, 68e9),
        ("spad-prefill", 16, 2048e9 * 8 * 4.5e-12, 22e9),
    ],
)
def test_spad_s_memories(chip: str, packages: int, watts: float, per_mm: float) -> None:
    described = Chip.load(chip)
    memory = memory_parts(described)
    assert memory.channels == memory.packages == packages
    assert memory.watts == pytest.approx(watts)
    assert memory.package.bandwidth / memory.technology.edge == pytest.approx(per_mm, rel=1e-3)
    assert memory.counterfactual == ""


@pytest.mark.parametrize("name", names("chips"))
def test_the_memory_of_a_chip_of_the_library_is_whole(name: str) -> None:
    chip = Chip.load(name)
    if chip.floorplan is not None:
        assert memory_parts(chip).counterfactual == ""


@given(count=st.integers(1, 12))
def test_bandwidth_capacity_edge_watts_area_and_cost_move_together(count: int) -> None:
    chip = with_packages(H100, count)
    memory, one = memory_parts(chip), memory_parts(with_packages(H100, 1))
    assert (memory.channels, memory.packages, memory.counterfactual) == (count, count, "")
    assert memory.watts == pytest.approx(count * one.watts)
    assert memory.interfaces == math.ceil(1.2 * count - 1e-9)  # one spare to five
    assert memory.edge_mm == pytest.approx(memory.interfaces * 9.86)
    assert chip.memory.bandwidth == pytest.approx(count * 670.4e9)
    assert chip.memory.capacity == pytest.approx(count * 16 * GIB)
    assert area_blocks(chip)["memory_phy"] == pytest.approx(memory.interfaces * 10.45)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_a_stack_less_costs_a_stack_less(count: int) -> None:
    cost = chip_cost(with_packages(H100, count), base=H100)
    assert cost.memory_cost_usd == pytest.approx(count * 144.0)
    assert cost.counterfactual == ""


@pytest.mark.parametrize(
    ("cut", "told"),
    [
        ({"memory_bandwidth": 0.6}, "bandwidth of 3 stacks, capacity of 5: "),
        ({"memory_capacity": 0.6}, "bandwidth of 5 stacks, capacity of 3: "),
        ({"memory_bandwidth": 0.5, "memory_capacity": 0.5}, "bandwidth of 2.5 stacks"),
    ],
)
def test_a_part_of_the_packages_is_a_counterfactual(cut: dict[str, float], told: str) -> None:
    cost = chip_cost(H100.scaled(**cut), base=H100)
    assert cost.counterfactual.startswith(told)
    assert cost.record()["counterfactual"] == cost.counterfactual
    assert cost.memory_cost_usd == pytest.approx(720 * cut.get("memory_capacity", 1.0))


def test_whole_packages_named_in_a_counterfactual_are_whole() -> None:
    told = memory_parts(H100.scaled(memory_bandwidth=0.6)).counterfactual
    assert "(3: 2011.2 GB/s, 48 GiB)" in told
    assert memory_parts(with_packages(H100, 3)).counterfactual == ""


def test_clamshell_doubles_capacity_only() -> None:
    sites = changed(PREFILL.floorplan.memory, clamshell=True) if PREFILL.floorplan else None
    memory = changed(PREFILL.memory, capacity=2 * PREFILL.memory.capacity)
    double = changed(with_plan(PREFILL, memory=sites), memory=memory)
    plain, both = memory_parts(PREFILL), memory_parts(double)
    assert (both.packages, both.channels, both.counterfactual) == (32, 16, "")
    assert (both.edge_mm, both.watts) == (plain.edge_mm, plain.watts)
    assert area_blocks(double) == area_blocks(PREFILL)
    assert chip_cost(double).memory_cost_usd == pytest.approx(2 * 192)


def test_hbm_has_no_clamshell() -> None:
    sites = changed(H100.floorplan.memory, clamshell=True) if H100.floorplan else None
    with pytest.raises(
        ConfigError, match="clamshell: True is not allowed; allowed: false with HBM3"
    ):
        memory_parts(with_plan(H100, memory=sites))


@given(
    technology=st.sampled_from(PROMISED),
    bandwidth=st.floats(1e9, 2e13),
    capacity=st.floats(1e9, 1e12),
)
def test_packages_that_nobody_described_are_as_few_as_can_be(
    technology: str, bandwidth: float, capacity: float
) -> None:
    memory = memory_parts(with_memory(H100, technology, bandwidth, capacity))
    kind = memory.technology
    count = memory.packages
    assert memory.package.bandwidth <= kind.bandwidth * 1.021
    assert memory.package.capacity <= kind.capacity * (1 + 1e-5)
    whole = count == memory.channels == round(count)
    assert whole == (memory.counterfactual == "")
    sizes = (kind.capacity, *kind.smaller)
    assert any(0.92 < memory.package.capacity / size <= 1 + 1e-5 for size in sizes)
    if whole and count > 1 and bandwidth / (count - 1) <= kind.bandwidth * 1.019:
        fewer = capacity / (count - 1)
        assert not any(0.931 < fewer / size <= 1 for size in sizes)


@pytest.mark.parametrize(
    ("technology", "gb_per_s", "gib", "packages", "each"),
    [
        ("HBM3", 3350, 80, 5, 16),  # an H100
        ("HBM2", 900, 32, 4, 8),  # TPU v3
        ("GDDR6X", 1008, 24, 12, 2),  # an RTX 4090
        ("HBM3e", 7700, 180, 8, 24),  # a B200, of which 22.5 are offered
    ],
)
def test_real_memories_are_found_to_be_what_they_are(
    technology: str, gb_per_s: float, gib: float, packages: int, each: float
) -> None:
    memory = memory_parts(with_memory(H100, technology, gb_per_s * 1e9, gib * GIB))
    assert (memory.channels, memory.packages) == (packages, packages)
    assert memory.package.paid == each * GIB
    assert memory.counterfactual == ""


def test_a_part_of_a_package_that_nobody_described_is_a_counterfactual() -> None:
    # 70 GiB are 4.4 stacks of 16 GiB; HBM3 is made of 16 and 24 GiB
    plain = with_memory(H100, "HBM3", 3352e9, 70 * GIB)
    assert "capacity of 2.917" in memory_parts(plain).counterfactual
    base = with_memory(H100, "HBM3", 3352e9, 80 * GIB)
    cut = base.scaled(memory_bandwidth=0.7)
    told = chip_cost(cut, base=base).counterfactual
    assert told.startswith("bandwidth of 3.5 stacks, capacity of 5: ")
    assert chip_cost(with_packages(base, 3), base=base).counterfactual == ""
    assert memory_parts(with_packages(base, 3), base).package.paid == 16 * GIB


def test_fewer_interfaces_than_packages_are_refused() -> None:
    assert H100.floorplan is not None
    sites = changed(H100.floorplan.memory, interfaces=2)
    with pytest.raises(ConfigError, match="interfaces: 2 is not allowed; allowed: at least 5"):
        chip_cost(with_plan(H100, memory=sites))
    with pytest.raises(ConfigError, match=r"interfaces: 5\.5 is not allowed"):
        changed(H100.floorplan.memory, interfaces=5.5)


@pytest.mark.parametrize("count", [2.5, "3", True, -1])
def test_a_number_of_packages_is_whole(count: object) -> None:
    with pytest.raises(ConfigError, match=r"packages: .* is not allowed; allowed: a whole"):
        with_packages(H100, count)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("bandwidth", 900e9, "900 GB/s' is not allowed; allowed: at most 819.2 GB/s per stack"),
        ("capacity", 32 * GIB, "32 GiB' is not allowed; allowed: at most 24 GiB per stack"),
    ],
)
def test_a_package_that_nobody_makes_is_refused(field: str, value: float, told: str) -> None:
    assert H100.floorplan is not None
    sites = H100.floorplan.memory
    package = changed(sites.package, **{field: value})
    with pytest.raises(ConfigError, match=r"floorplan\.memory\.package") as caught:
        memory_parts(with_plan(H100, memory=changed(sites, package=package)))
    assert told in str(caught.value)


def test_an_unknown_memory_is_named() -> None:
    memory = changed(H100.memory, technology="HBM9")
    with pytest.raises(
        UnknownNameError,
        match=r"spad-h100: memory\.technology: unknown memory 'HBM9'; did you mean HBM",
    ):
        chip_cost(changed(H100, memory=memory))


def test_a_chip_without_a_package_is_refused() -> None:
    with pytest.raises(ConfigError, match="packages: 0 is not allowed"):
        with_packages(H100, 0)


# ------------------------------------------------------------------- edge


def test_a_memory_that_the_edge_does_not_hold_is_refused_with_the_numbers() -> None:
    # half as much GDDR7 again as the Prefill chip's: 24 channels of 5.82 mm
    wide = with_packages(PREFILL, 24)
    with pytest.raises(ConfigError) as caught:
        chip_cost(wide)
    text = str(caught.value)
    assert "die edge: '153.5 mm (memory 139.7, links 8.7, host 5.1)' is not allowed" in text
    assert "allowed: at most 115.7 mm, the perimeter of 836 mm2" in text
    assert "\n" not in text


def test_the_edge_is_shared_by_memory_links_and_host() -> None:
    found = edge(PREFILL, 784.0)
    assert found.perimeter_mm == pytest.approx(4 * 28)
    assert found.parts_mm == pytest.approx(
        {"memory": 16 * 5.82, "links": 18 * 0.965 / 2, "host": 16 * 0.64 / 2}
    )
    with pytest.raises(ConfigError, match="the perimeter of 700 mm2"):
        check_edge(PREFILL, 700.0)


@pytest.mark.parametrize(("count", "sides"), [(1, 4), (2, 6), (3, 8), (4, 8), (6, 10)])
def test_dies_side_by_side_have_an_outer_edge(count: int, sides: int) -> None:
    assert edge(H100, 100.0, count).perimeter_mm == pytest.approx(sides * 10)


@pytest.mark.parametrize("name", names("chips"))
def test_every_chip_of_the_library_has_the_edge_that_it_needs(name: str) -> None:
    chip = Chip.load(name)
    if chip.floorplan is not None:
        found = check_edge(chip, *edge_dies(chip, silicon(chip).area_mm2))
        assert 0.0 < found.used_mm <= found.perimeter_mm


def test_a_library_file_of_memory_is_named_as_it_is_filed() -> None:
    for name in names("memories"):
        assert load("memories", name)[0]["name"] == name
