"""Chips that a book prices or rents as a whole: which of its entries a chip is.

A price is of a chip and not of a name: what the chip is built of must be what the entry stands
for, and a chip of another name that is built the same has its price.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipsim.arch_configs import names
from chipsim.cost.costs import Cost
from chipsim.cost.dies import edge_dies, silicon
from chipsim.cost.edge import Edge, edge
from chipsim.cost.memory import MemoryParts, memory_parts
from chipsim.cost.ranges import ZERO
from chipsim.errors import ChipsimError, ConfigError, UnknownNameError

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.cost.prices import ChipPrice, PriceBook
    from chipsim.cost.ranges import Range

BUILT = ("cores", "core", "clock", "l2", "memory", "link", "process", "die_area", "floorplan")
"""What makes a chip another one, whatever its name."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry of a book that a chip is.

    Attributes
    ----------
    note : str
        How it was found, where that is not by a name and a content that agree.
    """

    name: str
    entry: ChipPrice
    note: str = ""


def listed(chip: Chip, base: Chip | None, book: PriceBook) -> Listed | None:
    """The entry of a book that a chip is; None where it is none.

    Raises
    ------
    ConfigError
        The chip has the name of an entry and is built otherwise, or is a cut one.
    """
    whole = base or chip
    if chip.name in book.chips:
        return _named(chip, whole, book)
    known = names("chips")
    for name, entry in book.chips.items():
        if name in known and not _changed(whole, _of_library(name)):
            _check(chip, whole, book, cut=True)
            return Listed(name, entry, f"priced as {name}: it is built the same")
    return None


def _named(chip: Chip, whole: Chip, book: PriceBook) -> Listed:
    entry = book.chips[chip.name]
    if chip.name in names("chips"):
        _check(chip, _of_library(chip.name), book, cut=whole != chip)
        return Listed(chip.name, entry)
    _check(chip, whole, book, cut=True)
    note = f"priced by its name: no chip of the library is {chip.name}, to compare it with"
    return Listed(chip.name, entry, note)


def _check(chip: Chip, whole: Chip, book: PriceBook, *, cut: bool) -> None:
    changed = _changed(chip, whole)
    if changed:
        got = f"{'a cut chip:' if cut else 'a chip with other'} {', '.join(changed)}"
        allowed = f"the uncut {whole.name}: {book.name} prices whole chips"
        raise ConfigError(chip.where, "prices", got, allowed)


def _changed(chip: Chip, whole: Chip) -> list[str]:
    return [name for name in BUILT if getattr(chip, name) != getattr(whole, name)]


@functools.lru_cache(maxsize=64)
def _of_library(name: str) -> Chip:
    from chipsim.chip import Chip

    return Chip.load(name)


def hourly_price(chip: Chip | str, book: PriceBook) -> Range:
    """What a chip rents for, US dollars per hour.

    Raises
    ------
    ConfigError, UnknownNameError
        The book does not rent the chip, or one of the same name that is built otherwise.
    """
    from chipsim.chip import Chip

    described = Chip.load(chip) if isinstance(chip, str) else chip
    found = listed(described, None, book)
    if found is None:
        raise UnknownNameError(f"chip in price book {book.name}", described.name, book.chips)
    if found.entry.hourly is None:
        raise ConfigError(book.name, f"chips.{found.name}.hourly", None, "a price per hour")
    return found.entry.hourly


def whole_cost(chip: Chip, bought: Listed, book: PriceBook, volume: float | None) -> Cost:
    """The cost of a chip that is bought as a whole; its parts are not itemised."""
    stated, blocks, memory = _described(chip)
    modelled = sum(blocks.values()) if blocks else None
    notes = ["the price of a whole chip: parts are not itemised", bought.note]
    notes += ["its design is in its price, whatever the volume"] if volume is not None else []
    if bought.entry.price is None:
        raise ConfigError(book.name, f"chips.{bought.name}.price", None, "a price")
    return Cost(
        chip.name,
        book.name,
        book.date,
        book.basis,
        dies=(),
        die=ZERO,
        memory=ZERO,
        packaging=ZERO,
        total=bought.entry.price,
        blocks=blocks,
        stated_area_mm2=stated,
        modelled_area_mm2=modelled,
        memory_packages=memory.packages if memory else None,
        edge=_edge(chip, stated or modelled),
        volume=volume,
        notes=tuple(note for note in notes if note),
    )


def _described(chip: Chip) -> tuple[float | None, dict[str, float], MemoryParts | None]:
    """Stated area, blocks and memory of a chip, as far as they are known."""
    try:
        found = silicon(chip)
        return found.stated_mm2, found.blocks, memory_parts(chip)
    except ChipsimError:
        return chip.die_area, {}, None


def _edge(chip: Chip, area_mm2: float | None) -> Edge | None:
    try:
        return edge(chip, *edge_dies(chip, area_mm2)) if area_mm2 else None
    except ChipsimError:
        return None
