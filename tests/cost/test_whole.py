"""A price is of what a chip is built of, and not of its name."""

from __future__ import annotations

import pytest

from chipsim.chip import Chip
from chipsim.cost import PriceBook, chip_cost
from chipsim.cost.prices import ChipPrice
from chipsim.cost.ranges import Range
from chipsim.cost.system import rental_cost
from chipsim.errors import ChipsimError, ConfigError
from tests.cost.chips import changed

STREET = "street-2026"
H100 = Chip.load("h100-sxm")


def test_another_name_has_the_price_of_what_it_is() -> None:
    mine = changed(H100, name="mine", description="mine")
    cost = chip_cost(mine, STREET)
    assert cost.total == chip_cost(H100, STREET).total
    assert cost.chip == "mine"
    assert "priced as h100-sxm: it is built the same" in cost.notes
    assert rental_cost(mine, STREET, 8).per_hour == rental_cost("h100-sxm", STREET, 8).per_hour


def test_another_chip_of_another_name_has_none() -> None:
    other = changed(H100, name="mine", cores=100)
    with pytest.raises(ChipsimError, match="unknown chip in price book street-2026 'mine'"):
        chip_cost(other, STREET)
    with pytest.raises(ChipsimError, match="unknown chip in price book street-2026 'mine'"):
        rental_cost(other, STREET, 8)


def test_a_cut_of_a_renamed_chip_is_a_cut() -> None:
    mine = changed(H100, name="mine")
    with pytest.raises(ConfigError, match="a cut chip: cores"):
        chip_cost(mine.scaled(cores=0.5), STREET, base=mine)


def test_a_chip_of_the_same_name_and_other_content_is_not_rented() -> None:
    with pytest.raises(ConfigError, match="a chip with other cores"):
        rental_cost(changed(H100, cores=100), STREET, 8)


def test_a_book_of_one_s_own_prices_a_chip_of_one_s_own_by_name_and_says_so() -> None:
    entry = ChipPrice(price=Range.of(5000.0))
    book = PriceBook.load(STREET)
    book = book.model_copy(update={"chips": book.chips | {"mine": entry}})
    mine = changed(H100, name="mine", cores=100)
    cost = chip_cost(mine, book)
    assert cost.total_usd == 5000
    assert any("priced by its name" in note for note in cost.notes)
    with pytest.raises(ConfigError, match="a cut chip"):
        chip_cost(mine.scaled(cores=0.5), book, base=mine)


def test_the_design_of_a_bought_chip_is_in_its_price() -> None:
    cost = chip_cost(H100, STREET, volume=1e5)
    assert cost.total == chip_cost(H100, STREET).total
    assert any("its design is in its price" in note for note in cost.notes)
