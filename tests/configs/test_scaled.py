"""Cutting and growing a chip's resources."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipsim.chip import RESOURCES, Chip
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

H100 = Chip.load("spad-h100")
CONTINUOUS: dict[str, Callable[[Chip], float]] = {
    "memory_bandwidth": lambda chip: chip.memory.bandwidth,
    "memory_capacity": lambda chip: chip.memory.capacity,
    "clock": lambda chip: chip.clock.tensor,
    "l2": lambda chip: chip.l2.capacity,
    "sram": lambda chip: chip.core.sram,
    "link_bandwidth": lambda chip: chip.link_bandwidth,
}
fractions = st.floats(0.05, 20.0)


@pytest.mark.parametrize("resource", sorted(RESOURCES))
def test_a_whole_fraction_changes_nothing(resource: str) -> None:
    assert H100.scaled(**{resource: 1.0}) == H100


@pytest.mark.parametrize("resource", sorted(CONTINUOUS))
@settings(deadline=None)
@given(first=fractions, second=fractions)
def test_fractions_multiply(resource: str, first: float, second: float) -> None:
    read = CONTINUOUS[resource]
    twice = H100.scaled(**{resource: first}).scaled(**{resource: second})
    assert read(twice) == pytest.approx(read(H100) * first * second, rel=1e-12)


@pytest.mark.parametrize("resource", sorted(CONTINUOUS))
def test_nothing_else_changes(resource: str) -> None:
    changed = H100.scaled(**{resource: 0.5})
    differing = [name for name, read in CONTINUOUS.items() if read(changed) != read(H100)]
    assert differing == [resource]
    assert changed.cores == H100.cores


@settings(deadline=None)
@given(first=fractions, second=fractions)
def test_two_resources_at_once_are_one_after_the_other(first: float, second: float) -> None:
    both = H100.scaled(cores=first, l2=second)
    assert both == H100.scaled(l2=second).scaled(cores=first)


@settings(deadline=None)
@given(fraction=st.floats(1e-6, 1e3))
def test_cores_and_vector_width_are_whole_and_nearest(fraction: float) -> None:
    chip = H100.scaled(cores=fraction, vector_width=fraction)
    assert isinstance(chip.cores, int)
    assert chip.cores >= 1
    assert abs(chip.cores - max(1.0, 132 * fraction)) <= 0.5
    width = chip.core.vector_unit.width
    assert isinstance(width, int)
    assert abs(width - max(1.0, 32 * fraction)) <= 0.5


@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.5, 1.5, 2.0])
def test_derived_peaks_follow_even_when_they_were_read_before(fraction: float) -> None:
    whole_vector, whole_tensor = H100.vector_flops, H100.tensor_flops()
    cut = H100.scaled(clock=fraction)
    assert cut.vector_flops == pytest.approx(whole_vector * fraction)
    assert cut.tensor_flops() == pytest.approx(whole_tensor * fraction)


@pytest.mark.parametrize(
    ("fraction", "shape"),
    [
        (0.5, (16, 16)),
        (0.25, (8, 16)),
        (0.125, (8, 8)),
        (2.0, (32, 32)),
        (4.0, (64, 32)),
        (1e-9, (1, 1)),
    ],
)
def test_an_array_shrinks_at_its_longer_side_and_grows_at_its_shorter(
    fraction: float, shape: tuple[int, int]
) -> None:
    array = H100.scaled(systolic_array=fraction).core.systolic_array
    assert array is not None
    assert sorted((array.rows, array.columns)) == sorted(shape)


@settings(deadline=None)
@given(fraction=st.floats(0.01, 50.0))
def test_an_array_has_about_the_share_of_cells(fraction: float) -> None:
    array = H100.scaled(systolic_array=fraction).core.systolic_array
    assert array is not None
    assert array.rows >= 1
    assert array.columns >= 1
    cells = array.rows * array.columns
    assert cells == pytest.approx(512 * fraction, rel=0.3, abs=2)


@pytest.mark.parametrize("resource", sorted(RESOURCES))
@pytest.mark.parametrize("bad", [0, 0.0, -1, -0.5, math.nan, math.inf, -math.inf, "half", None])
def test_a_fraction_is_a_finite_number_above_0(resource: str, bad: Any) -> None:
    with pytest.raises(ConfigError, match=rf"^scaled: {resource}: .*a finite number above 0$"):
        H100.scaled(**{resource: bad})


@pytest.mark.parametrize("resource", sorted(RESOURCES))
@pytest.mark.parametrize("extreme", [1e300, 1e-300, 5e-324])
def test_an_extreme_fraction_gives_one_line_or_a_chip_of_finite_numbers(
    resource: str, extreme: float
) -> None:
    try:
        chip = H100.scaled(**{resource: extreme})
    except ConfigError as error:
        chip, message = H100, str(error)
    else:
        message = "scaled: "
    assert message.startswith("scaled: ")
    assert "\n" not in message
    assert 0 < chip.tensor_flops() < math.inf


def test_an_unknown_resource_names_those_that_exist() -> None:
    with pytest.raises(
        ConfigError, match=r"memory_bandwidth, memory_capacity, cores"
    ) as caught:
        H100.scaled(memory=0.5)
    assert str(caught.value).startswith("scaled: memory: ")


def test_a_chip_without_links_has_none_to_cut() -> None:
    alone = H100.model_copy(update={"link": None})
    assert alone.link_bandwidth == 0
    with pytest.raises(ConfigError, match="a chip that has links"):
        alone.scaled(link_bandwidth=0.5)
