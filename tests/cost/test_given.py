"""Prices of one's own in place of a book's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.chip import Chip
from chipsim.cost import PriceBook, chip_cost
from chipsim.cost.given import given_prices
from chipsim.cost.memory import technologies
from chipsim.errors import ChipsimError
from tests.cost.chips import H100, with_memory

GIB = 2.0**30


def test_a_price_of_one_s_own_is_paid_by_the_gib_and_named() -> None:
    book = given_prices("spad-2025", ["memory.gddr6x=3"])
    cost = chip_cost("rtx-4090", book)
    assert cost.memory_cost_usd == pytest.approx(24 * 3)
    assert cost.prices == "spad-2025 with memory.GDDR6X=3"
    assert cost.basis == "manufacturing"


def test_a_unit_and_a_range_are_read() -> None:
    plain, unit = (
        given_prices("spad-2025", [f"memory.HBM3 = {text}"]).memory["HBM3"].price
        for text in ("6 to 12", "6 to 12 USD/GB")
    )
    assert (plain.low, plain.mid, plain.high) == pytest.approx((6 / GIB, 9 / GIB, 12 / GIB))
    assert unit.high == pytest.approx(12 / 1e9)
    both = chip_cost("spad-h100", given_prices("spad-2025", ["memory.HBM3=6 to 12"]))
    assert (round(both.total.low), round(both.total.high)) == (795, 1275)  # SPAD


def test_wafers_keep_their_defects() -> None:
    book = given_prices("analysts-2026", ["wafers.4nm=36000"])
    found, before = (chip_cost("h100-sxm", each) for each in (book, "analysts-2026"))
    assert found.yield_ == before.yield_
    assert found.die_cost_usd == pytest.approx(2 * before.die_cost_usd)


def test_a_chip_can_be_given_a_price_and_keeps_its_rent() -> None:
    book = given_prices("street-2026", ["chips.spad-decode=9000", "chips.h100-sxm=20000"])
    assert chip_cost("spad-decode", book).total_usd == 9000
    assert chip_cost("h100-sxm", book).total_usd == 20000
    assert (
        book.chips["h100-sxm"].hourly == PriceBook.load("street-2026").chips["h100-sxm"].hourly
    )


@given(st.sampled_from(technologies()), st.floats(0.01, 100), st.floats(1, 3))
def test_a_dearer_memory_never_makes_a_cheaper_chip(name: str, usd: float, more: float) -> None:
    low, high = (
        given_prices("spad-2025", [f"memory.{name}={each!r}"]) for each in (usd, usd * more)
    )
    chip = with_memory(H100, name, 60e9, 16 * GIB)
    costs = [chip_cost(chip, book).total_usd for book in (low, high)]
    assert costs[0] <= costs[1] * (1 + 1e-12)
    assert math.isfinite(costs[1])


def test_nothing_given_is_the_book_itself() -> None:
    book = PriceBook.load("spad-2025")
    assert given_prices(book, []) is book


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("memory=3", "'memory=3' is not allowed; allowed: memory.TECHNOLOGY"),
        ("memory.GDDR6X", "memory.TECHNOLOGY"),
        ("memory.GDDR6X=", "memory.TECHNOLOGY"),
        ("memory.GDDR8=3", "unknown memory 'GDDR8'"),
        ("memoir.GDDR6X=3", "unknown kind of price 'memoir'; did you mean memory?"),
        ("memory.GDDR6X=-3", "'-3' is not allowed; allowed: an amount: 3, 3 USD/GiB"),
        ("memory.GDDR6X=4 to 3", "'4 to 3' is not allowed"),
        ("memory.GDDR6X=3 W", "a price per byte with its unit"),
        ("memory.GDDR6X=1e999", "1e999"),
        ("memory.GDDR6X=nan", "'nan' is not allowed"),
        ("wafers.4nm=0", "a price above 0 USD"),
        ("wafers.2nm=1", "unknown wafer '2nm'"),
    ],
)
def test_a_bad_price_is_one_line(text: str, told: str) -> None:
    with pytest.raises(ChipsimError) as error:
        given_prices("spad-2025", [text])
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_wafer_without_defects_is_refused_where_a_yield_needs_them() -> None:
    book = PriceBook.load("analysts-2026").model_copy(update={"wafers": {}})
    with pytest.raises(ChipsimError, match="a process whose defects analysts-2026 states"):
        given_prices(book, ["wafers.3nm=20000"])


@pytest.mark.parametrize(
    "name",
    ["GDDR6", "GDDR6X", "GDDR7", "LPDDR5X", "DDR5", "HBM2", "HBM2e", "HBM3", "HBM3e", "HBM4"],
)
def test_makers_book_prices_every_memory_with_a_source(name: str) -> None:
    # the list; a price without a source would be a guess
    entry = PriceBook.load("analysts-2026").memory[name]
    assert 0 < entry.price.low <= entry.price.mid <= entry.price.high
    assert len(entry.source) > 5


def test_no_price_tells_how_to_give_one() -> None:
    with pytest.raises(ChipsimError, match=r"--price memory\.GDDR6X=AMOUNT, or a book$"):
        chip_cost("rtx-4090")


def test_memory_on_a_board_is_not_lost_in_packaging() -> None:
    cost = chip_cost("rtx-4090", "analysts-2026")
    assert set(cost.packaging_items) == {"others"}
    assert any("CoWoS is not of a chip with GDDR6X" in note for note in cost.notes)
    assert "assembly loss" in chip_cost("h100-sxm", "analysts-2026").packaging_items
    assert 24 * 2.5 <= cost.memory_cost_usd <= 24 * 7.4
    assert Chip.load("rtx-4090").memory.capacity == 24 * GIB
