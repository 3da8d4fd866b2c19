"""What a chip costs under a price book: dies, memory, packaging.

chip -> blocks -> die area -> dies on a wafer -> yield -> dollars; + memory + packaging
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chipsim.cost.die import DieCost, check_reticle, die_yield, gross_dies
from chipsim.cost.prices import PriceBook, book_of, one_basis
from chipsim.cost.ranges import ZERO, Range
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.chip import Chip


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one chip, US dollars; each part a range.

    Attributes
    ----------
    chip, prices, date, basis : str
        Chip and price book by name, and the book's date and basis.
    dies : tuple of DieCost
        Kinds of die of the chip.
    blocks : dict
        Modelled area by block, mm2; empty where the chip's blocks are not described.
    die, memory, packaging, design : Range
        Parts of the total; zero where the book does not price them.
    stated_area_mm2, modelled_area_mm2 : float or None
        All dies together, as the chip states it and as its blocks add up to.
    modelled : Range or None
        Cost of the dies at the modelled area, beside a stated one.
    counterfactual : str
        Why no such chip can be built of whole memory packages; else empty.
    notes : tuple of str
        What else a reader must know.
    """

    chip: str
    prices: str
    date: str
    basis: str
    dies: tuple[DieCost, ...]
    die: Range
    memory: Range
    packaging: Range
    total: Range
    blocks: dict[str, float] = field(default_factory=dict)
    stated_area_mm2: float | None = None
    modelled_area_mm2: float | None = None
    modelled: Range | None = None
    design: Range = ZERO
    counterfactual: str = ""
    notes: tuple[str, ...] = ()

    @property
    def die_area_mm2(self) -> float:
        """All dies together, as they are paid for."""
        return sum(die.area_mm2 * die.count for die in self.dies)

    @property
    def gross_dies(self) -> float:
        """Dies on a wafer, of the largest kind; 0 without priced dies."""
        return max(self.dies, key=lambda die: die.area_mm2).gross_dies if self.dies else 0.0

    @property
    def yield_(self) -> float:
        """Share of good dies, of the largest kind; 1 without priced dies."""
        return max(self.dies, key=lambda die: die.area_mm2).yield_ if self.dies else 1.0

    @property
    def die_cost_usd(self) -> float:
        """Good dies of one chip, the middle of the range."""
        return self.die.mid

    @property
    def memory_cost_usd(self) -> float:
        """Memory of one chip, the middle of the range."""
        return self.memory.mid

    @property
    def packaging_cost_usd(self) -> float:
        """Packaging, test and assembly of one chip, the middle of the range."""
        return self.packaging.mid

    @property
    def total_usd(self) -> float:
        """One chip, the middle of the range."""
        return self.total.mid

    def record(self) -> dict[str, Any]:
        """The cost as plain values, units in the names."""
        ranges = {"die": self.die, "memory": self.memory, "packaging": self.packaging}
        return {
            "chip": self.chip,
            "prices": self.prices,
            "date": self.date,
            "basis": self.basis,
            "die_area_mm2": self.die_area_mm2,
            "blocks": dict(self.blocks),
            "gross_dies": self.gross_dies,
            "yield": self.yield_,
            **{f"{name}_cost_usd": part.mid for name, part in ranges.items()},
            "total_usd": self.total.mid,
            "total_low_usd": self.total.low,
            "total_high_usd": self.total.high,
            "counterfactual": self.counterfactual,
            "notes": list(self.notes),
        }


def chip_cost(
    chip: Chip | str,
    prices: PriceBook | str = "spad-2025",
    *,
    base: Chip | None = None,
    mixed: bool = False,
) -> Cost:
    """What one chip costs.

    Parameters
    ----------
    chip : Chip or str
        A chip, or its name.
    prices : PriceBook or str
        A price book, or its name.
    base : Chip, optional
        The uncut chip of a cut one: the stated die area of the base is scaled by what the
        cut takes from the modelled one.
    mixed : bool
        Add up prices of different bases; the result says so.

    Raises
    ------
    ConfigError, UnknownNameError
        A die larger than the reticle or the wafer, no price for a part, prices of
        different bases.

    Examples
    --------
    >>> from chipsim import chip_cost
    >>> cost = chip_cost("spad-prefill", "spad-2025")
    >>> round(cost.die_cost_usd), round(cost.memory_cost_usd), round(cost.total_usd)
    (301, 192, 493)
    """
    from chipsim.chip import Chip

    del base
    book = book_of(prices)
    chip = Chip.load(chip) if isinstance(chip, str) else chip
    dies = _dies(chip, book)
    die = sum((each.cost * each.count for each in dies), ZERO)
    entry = book.memory_price(chip.memory.technology)
    memory = entry.price * chip.memory.capacity
    basis = one_basis(
        f"{chip.name}, {book.name}", {book.basis, entry.basis or book.basis}, mixed
    )
    return Cost(
        chip.name,
        book.name,
        book.date,
        basis,
        dies,
        die,
        memory,
        ZERO,
        die + memory,
        stated_area_mm2=chip.die_area,
    )


def _dies(chip: Chip, book: PriceBook) -> tuple[DieCost, ...]:
    if chip.die_area is None or chip.process is None:
        raise ConfigError(chip.name, "die_area", None, "a chip whose area is known")
    check_reticle(chip.name, chip.die_area)
    wafer = book.wafer(chip.process)
    count = gross_dies(chip.die_area, book.gross_dies)
    good = die_yield(chip.die_area, wafer.defects, book.die_yield)
    cost = wafer.price * (1 / (count * good))
    return (DieCost("die", chip.die_area, 1, chip.process, count, good, cost),)
