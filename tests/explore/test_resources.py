"""Values and fractions of a cut, as people write them."""

from __future__ import annotations

import math

import pytest

from chipsim.chip import RESOURCES, Chip
from chipsim.errors import ChipsimError
from chipsim.explore.resources import (
    MOST_POINTS,
    Cut,
    parse_fractions,
    parse_values,
    resource_value,
)

CHIP = Chip.load("spad-h100")


@pytest.mark.parametrize(
    ("resource", "text", "expected"),
    [
        ("memory_bandwidth", "1000 GB/s, 1.5 TB/s", [1e12, 1.5e12]),
        ("memory_capacity", "40 GiB", [40 * 2**30]),
        ("cores", "66,44", [66, 44]),
        ("systolic_array", "16x16, 128", [256, 128]),
        ("vector_width", "16", [16]),
        ("clock", "1.2 GHz", [1.2e9]),
        ("l2", "25 MiB", [25 * 2**20]),
        ("sram", "192 KiB", [192 * 1024]),
        ("link_bandwidth", "300 GB/s", [3e11]),
    ],
)
def test_values_are_read_and_reached(resource: str, text: str, expected: list[float]) -> None:
    assert parse_values(CHIP, resource, text) == expected
    steps = Cut(resource, values=text).steps(CHIP)
    assert [step.value for step in steps] == expected
    for step in steps:
        cut = CHIP.scaled(**{resource: step.asked})
        assert resource_value(cut, resource) == pytest.approx(step.value, rel=1e-12)
        assert step.fraction == pytest.approx(step.value / resource_value(CHIP, resource))


def test_every_resource_that_can_be_cut_has_a_value() -> None:
    for resource in RESOURCES:
        half = Cut(resource, fractions=[0.5]).steps(CHIP)[0]
        assert half.value == resource_value(CHIP, resource) / 2


def test_whole_resources_report_the_fraction_reached() -> None:
    (step,) = Cut("cores", fractions=[0.334]).steps(CHIP)
    assert (step.asked, step.value, step.fraction) == (0.334, 44, 44 / 132)
    (step,) = Cut("cores", fractions="0.0001").steps(CHIP)
    assert step.value == 1


def test_numbers_in_code_are_si() -> None:
    assert Cut("clock", values=[1.2e9]).steps(CHIP) == Cut("clock", values="1.2 GHz").steps(
        CHIP
    )


def test_fractions_are_read() -> None:
    assert parse_fractions("1, 0.9,.5,2e-1") == [1.0, 0.9, 0.5, 0.2]


@pytest.mark.parametrize(
    "text", ["", ",", "1,,2", "0", "-0.5", "nan", "inf", "1e999", "half", "1_0", "1;2", "50 %"]
)
def test_bad_fractions_are_one_line(text: str) -> None:
    with pytest.raises(ChipsimError, match=r"^--fractions: .* is not allowed") as error:
        parse_fractions(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("resource", "text", "says"),
    [
        ("memory_bandwidth", "1000 GB", "'1000 GB'.*bandwidth above 0 with its unit"),
        ("memory_bandwidth", "1000", "'1000'.*with its unit"),
        ("memory_bandwidth", "0 GB/s", "'0 GB/s'"),
        ("memory_bandwidth", "-1 GB/s", "'-1 GB/s'"),
        ("memory_bandwidth", "nan GB/s", "'nan GB/s'"),
        ("memory_bandwidth", "inf GB/s", "'inf GB/s'"),
        ("memory_bandwidth", "1000 GB/s,", "bandwidth"),
        ("memory_bandwidth", "", "bandwidth"),
        ("memory_bandwidth", "1000 GBps\n2", "bandwidth"),
        ("clock", "1.2", "'1.33|'1.2'.*frequency"),
        ("cores", "66.5", "whole number from 1"),
        ("cores", "0", "whole number from 1"),
        ("cores", "-1", "whole number from 1"),
        ("cores", "66 GB", "whole number from 1"),
        ("systolic_array", "16x", "cells or a shape"),
        ("systolic_array", "16x0", "cells or a shape"),
        ("systolic_array", "4x4x4", "cells or a shape"),
        ("systolic_array", "2x128", "'2x128' is not allowed; allowed: 16x16"),
    ],
)
def test_bad_values_are_one_line(resource: str, text: str, says: str) -> None:
    with pytest.raises(ChipsimError, match=f"^--values: {resource}: .*({says})") as error:
        parse_values(CHIP, resource, text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "fractions", [[], [0.0], [-1.0], [math.nan], [math.inf], [True], ["1"]]
)
def test_bad_numbers_in_code_are_one_line(fractions: list[float]) -> None:
    with pytest.raises(ChipsimError, match="--fractions"):
        Cut("cores", fractions=fractions).steps(CHIP)
    with pytest.raises(ChipsimError, match="--values"):
        Cut("clock", values=fractions).steps(CHIP)


def test_too_many_points_are_refused() -> None:
    text = ",".join(["0.5"] * (MOST_POINTS + 1))
    with pytest.raises(ChipsimError, match="10001 points"):
        parse_fractions(text)
    with pytest.raises(ChipsimError, match="10001 points"):
        parse_values(CHIP, "cores", text.replace("0.5", "5"))


def test_unknown_resource_is_suggested() -> None:
    with pytest.raises(ChipsimError, match="did you mean memory_bandwidth"):
        parse_values(CHIP, "memory_bandwith", "1 GB/s")


@pytest.mark.parametrize(("fractions", "values"), [(None, None), ([1.0], [1.0])])
def test_a_cut_has_fractions_or_values(fractions: object, values: object) -> None:
    with pytest.raises(ChipsimError, match="fractions or values"):
        Cut("cores", fractions, values).steps(CHIP)  # type: ignore[arg-type]


def test_a_part_that_the_chip_lacks_is_named() -> None:
    alone = Chip.build("test", **(CHIP.model_dump() | {"link": None}))
    with pytest.raises(ChipsimError, match=r"spad-h100: link: .*has links"):
        Cut("link_bandwidth", fractions=[0.5]).steps(alone)
    core = CHIP.core.model_dump() | {"systolic_array": None}
    plain = Chip.build("test", **(CHIP.model_dump() | {"core": core}))
    with pytest.raises(ChipsimError, match=r"systolic_array: .*has one"):
        Cut("systolic_array", values="16x16").steps(plain)
