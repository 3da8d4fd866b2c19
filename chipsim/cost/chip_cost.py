"""What a chip costs under a price book: dies, memory, packaging.

chip -> blocks -> die area -> dies on a wafer -> yield -> dollars; + memory + packaging
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cost.costs import Cost
from chipsim.cost.dies import Silicon, die_costs, edge_dies, silicon
from chipsim.cost.edge import check_edge
from chipsim.cost.memory import MemoryParts, memory_parts
from chipsim.cost.prices import Basis, PriceBook, book_of, one_basis
from chipsim.cost.ranges import ZERO, Range
from chipsim.cost.whole import listed, whole_cost
from chipsim.errors import ConfigError
from chipsim.ops.checks import positive

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.cost.die import DieCost
    from chipsim.cost.prices import PackageItem

__all__ = ["Cost", "chip_cost"]


def chip_cost(
    chip: Chip | str,
    prices: PriceBook | str = "spad-2025",
    *,
    base: Chip | None = None,
    volume: float | None = None,
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
    volume : float, optional
        Chips that share the cost of the design (NRE); None: it is left out.
    mixed : bool
        Add up prices of different bases; the result says so.

    Raises
    ------
    ConfigError, UnknownNameError
        A die larger than the reticle or the wafer, interfaces that its edge does not hold,
        no price for a part, prices of different bases.

    Examples
    --------
    >>> from chipsim import chip_cost
    >>> cost = chip_cost("spad-prefill", "spad-2025")
    >>> round(cost.die_cost_usd), round(cost.memory_cost_usd), round(cost.total_usd)
    (301, 192, 493)
    """
    from chipsim.chip import Chip

    book = book_of(prices)
    if volume is not None:
        volume = positive("cost", "volume", volume)
    chip = Chip.load(chip) if isinstance(chip, str) else chip
    bought = listed(chip, base, book)
    if bought is not None and bought.entry.price is not None:
        return whole_cost(chip, bought, book, volume)
    if not book.wafers:
        book.chip_price(chip.name)
    return _of_parts(chip, base, book, volume, mixed=mixed)


def _of_parts(
    chip: Chip, base: Chip | None, book: PriceBook, volume: float | None, *, mixed: bool
) -> Cost:
    """Dies, memory, packaging and a share of the design."""
    found, memory = silicon(chip, base), memory_parts(chip, base)
    dies = die_costs(chip, book, found, found.area_mm2)
    perimeter = check_edge(chip, *edge_dies(chip, found.area_mm2), base)
    entry = book.memory_price(memory.technology.technology)
    parts = {
        "die": _together(dies),
        "memory": entry.price * (memory.packages * memory.package.paid),
        "design": _design(book, dies, volume),
    }
    items = _packaging(book, memory, found.area_mm2, parts["die"] + parts["memory"])
    parts["packaging"] = sum(items.values(), ZERO)
    basis = one_basis(f"{chip.name}, {book.name}", _bases(book, memory, entry.basis), mixed)
    return Cost(
        chip.name,
        book.name,
        book.date,
        basis,
        dies,
        **parts,
        total=sum(parts.values(), ZERO),
        packaging_items=items,
        blocks=found.blocks,
        stated_area_mm2=found.stated_mm2,
        modelled_area_mm2=found.modelled_mm2,
        modelled=_modelled(chip, book, found),
        counterfactual=memory.counterfactual,
        memory_packages=memory.packages,
        edge=perimeter,
        volume=volume,
        notes=(*_notes(chip, base, basis), *_unpackaged(book, memory)),
    )


def _together(dies: tuple[DieCost, ...]) -> Range:
    return sum((die.cost * die.count for die in dies), ZERO)


def _design(book: PriceBook, dies: tuple[DieCost, ...], volume: float | None) -> Range:
    if volume is None:
        return ZERO
    total = sum((book.design_price(die.process).total for die in dies), ZERO)
    return total * (1.0 / volume)


def _packaging(
    book: PriceBook, memory: MemoryParts, area_mm2: float, inside: Range
) -> dict[str, Range]:
    """Items of the book, and the loss of what is packaged in vain."""
    items = {
        item.name: item.price
        + item.per_die_area * area_mm2
        + item.per_memory_package * memory.packages
        for item in _items(book, memory)
    }
    technology = memory.technology.technology
    if book.assembly_yield < 1.0 and technology in (book.assembly_memory or (technology,)):
        lost = 1.0 / book.assembly_yield - 1.0
        items["assembly loss"] = (inside + sum(items.values(), ZERO)) * lost
    return items


def _items(book: PriceBook, memory: MemoryParts) -> list[PackageItem]:
    technology = memory.technology.technology
    return [item for item in book.packaging if not item.memory or technology in item.memory]


def _unpackaged(book: PriceBook, memory: MemoryParts) -> tuple[str, ...]:
    """Says so where a book prices the packaging of other memory alone."""
    special = [item for item in book.packaging if item.memory]
    technology = memory.technology.technology
    if not special or any(technology in item.memory for item in special):
        return ()
    names = ", ".join(item.name for item in special)
    return (f"{book.name}: {names} is not of a chip with {technology}, none is counted",)


def _bases(book: PriceBook, memory: MemoryParts, of_memory: Basis | None) -> set[Basis]:
    packages = {item.basis or book.basis for item in _items(book, memory)}
    return {book.basis, of_memory or book.basis} | packages


def _modelled(chip: Chip, book: PriceBook, found: Silicon) -> Range | None:
    """Cost of the dies at the modelled area, beside a stated one."""
    if found.stated_mm2 is None or found.modelled_mm2 is None:
        return None
    try:
        return _together(die_costs(chip, book, found, found.modelled_mm2))
    except ConfigError:
        return None  # the modelled area is larger than what can be made


def _notes(chip: Chip, base: Chip | None, basis: str) -> tuple[str, ...]:
    notes = []
    if basis.startswith("mixed"):
        notes.append(f"prices of different bases are added up ({basis})")
    if chip.die_area is None and base is not None and base.die_area is not None:
        notes.append(f"die area scaled from the {base.die_area:g} mm2 of {base.name}")
    elif chip.die_area is None:
        notes.append("die area as modelled")
    return tuple(notes)
