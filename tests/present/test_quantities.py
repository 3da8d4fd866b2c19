from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.present.axes import AXES
from chipsim.present.describe import chip_record
from chipsim.present.quantities import PREFIXES, binary, digits, format_si

PREFIX = {"": 0} | {name: 3 * (i - PREFIXES.index("")) for i, name in enumerate(PREFIXES)}


@given(st.floats(1e-11, 1e20))
def test_a_quantity_reads_back_within_three_digits(value: float) -> None:
    number, unit = format_si(value, "s").split()
    assert 1 <= float(number) < 1000 or value >= 1e20
    back = float(number) * 10.0 ** PREFIX[unit.removesuffix("s")]
    assert math.isclose(back, value, rel_tol=5.1e-3)


@pytest.mark.parametrize(
    ("value", "text"),
    [(999.6, "1.00 kB"), (0.0, "0 B"), (-1500.0, "-1.50 kB"), (1e30, "1.00e+30 B")],
)
def test_edges_of_prefixes(value: float, text: str) -> None:
    assert format_si(value, "B") == text


def test_digits_never_use_an_exponent() -> None:
    assert digits(1234567.0) == "1234567"
    assert digits(0.00012345) == "0.000123"


def test_binary_capacities() -> None:
    assert binary(192 * 2**10) == "192 KiB"
    assert binary(74.5 * 2**30) == "74.5 GiB"


def test_every_resource_has_an_axis() -> None:
    from chipsim.chip import RESOURCES

    assert AXES.keys() == RESOURCES.keys()
    assert AXES["memory_bandwidth"].text(2e12) == "2000 GB/s"
    assert AXES["cores"].text(66.0) == "66 cores"


def test_a_record_has_a_unit_on_every_quantity() -> None:
    from chipsim import Chip

    record = chip_record(Chip.load("a100-sxm"))
    assert record["link"]["bandwidth_bytes_per_s"] == 25e9
    assert record["l2"]["bandwidth_bytes_per_cycle"] is not None
    assert record["die_area_mm2"] == 826
