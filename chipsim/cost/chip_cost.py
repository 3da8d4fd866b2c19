"""What a chip costs under a price book: dies, memory, packaging.

chip -> blocks -> die area -> dies on a wafer -> yield -> dollars; + memory + packaging
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chipsim.arch_configs import names
from chipsim.cost.dies import Silicon, die_costs, edge_dies, silicon
from chipsim.cost.edge import Edge, check_edge, edge
from chipsim.cost.memory import MemoryParts, memory_parts
from chipsim.cost.prices import Basis, PriceBook, book_of, one_basis
from chipsim.cost.ranges import ZERO, Range
from chipsim.errors import ChipsimError, ConfigError
from chipsim.ops.checks import positive

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.cost.die import DieCost
    from chipsim.cost.prices import PackageItem


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
    packaging_items : dict
        Parts of ``packaging``.
    stated_area_mm2, modelled_area_mm2 : float or None
        All dies together, as the chip states it and as its blocks add up to.
    modelled : Range or None
        Cost of the dies at the modelled area, beside a stated one.
    counterfactual : str
        Why no such chip can be built of whole memory packages; else empty.
    memory_packages : float or None
        Stacks, devices or DIMMs of the capacity; None where the technology is not known.
    edge : Edge or None
        Die edge and what takes it; None where area or technology are not known.
    volume : float or None
        Chips that share ``design``; None: it is left out.
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
    packaging_items: dict[str, Range] = field(default_factory=dict)
    blocks: dict[str, float] = field(default_factory=dict)
    stated_area_mm2: float | None = None
    modelled_area_mm2: float | None = None
    modelled: Range | None = None
    design: Range = ZERO
    counterfactual: str = ""
    memory_packages: float | None = None
    edge: Edge | None = None
    volume: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def die_area_mm2(self) -> float:
        """All dies together, as they are paid for; 0 where it is not known.

        Of a chip that is priced as a whole: the stated area, or the modelled one.
        """
        if not self.dies:
            return self.stated_area_mm2 or self.modelled_area_mm2 or 0.0
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
            "die_area_mm2": self.die_area_mm2 or None,
            "blocks": dict(self.blocks),
            "gross_dies": self.gross_dies,
            "yield": self.yield_,
            **{f"{name}_cost_usd": part.mid for name, part in ranges.items()},
            **{
                f"{name}_cost_{end}_usd": getattr(part, end)
                for name, part in ranges.items()
                for end in ("low", "high")
            },
            "design_cost_usd": self.design.mid,
            "design_cost_low_usd": self.design.low,
            "design_cost_high_usd": self.design.high,
            "total_usd": self.total.mid,
            "total_low_usd": self.total.low,
            "total_high_usd": self.total.high,
            "packaging_items_usd": {n: part.mid for n, part in self.packaging_items.items()},
            "dies": [_die_record(die) for die in self.dies],
            "stated_area_mm2": self.stated_area_mm2,
            "modelled_area_mm2": self.modelled_area_mm2,
            "modelled_die_cost_usd": self.modelled.mid if self.modelled else None,
            "memory_packages": self.memory_packages,
            "edge_mm": self.edge.used_mm if self.edge else None,
            "edge_available_mm": self.edge.perimeter_mm if self.edge else None,
            "counterfactual": self.counterfactual,
            "notes": list(self.notes),
        }


def _die_record(die: DieCost) -> dict[str, Any]:
    return {
        "name": die.name,
        "count": die.count,
        "area_mm2": die.area_mm2,
        "process": die.process,
        "gross_dies": die.gross_dies,
        "yield": die.yield_,
        "cost_usd": die.cost.mid,
    }


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
    listed = book.chips.get(chip.name)
    if listed is not None and listed.price is not None:
        return _bought(chip, base or chip, book, listed.price, volume)
    if not book.wafers:
        book.chip_price(chip.name)
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
        notes=_notes(chip, base, basis),
    )


def _bought(
    chip: Chip, base: Chip, book: PriceBook, price: Range, volume: float | None
) -> Cost:
    """A chip that the book prices as a whole: it must be the one that the name stands for."""
    from chipsim.chip import Chip

    whole = Chip.load(chip.name) if chip.name in names("chips") else base
    changed = [name for name in BUILT if getattr(chip, name) != getattr(whole, name)]
    if changed:
        kind = "a cut chip" if base != chip else "a chip with other"
        allowed = f"the uncut {chip.name}: {book.name} prices whole chips"
        got = (
            f"{kind}: {', '.join(changed)}" if base != chip else f"{kind} {', '.join(changed)}"
        )
        raise ConfigError(chip.name, "prices", got, allowed)
    stated, blocks, memory = _described(chip)
    modelled = sum(blocks.values()) if blocks else None
    return Cost(
        chip.name,
        book.name,
        book.date,
        book.basis,
        (),
        ZERO,
        ZERO,
        ZERO,
        price,
        blocks=blocks,
        stated_area_mm2=stated,
        modelled_area_mm2=modelled,
        memory_packages=memory.packages if memory else None,
        edge=_edge(chip, stated or modelled),
        volume=volume,
        notes=("the price of a whole chip: parts are not itemised",),
    )


BUILT = ("cores", "core", "clock", "l2", "memory", "link", "process", "die_area", "floorplan")
"""What makes a chip another one, whatever its name."""


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
    if book.assembly_yield < 1.0:
        lost = 1.0 / book.assembly_yield - 1.0
        items["assembly loss"] = (inside + sum(items.values(), ZERO)) * lost
    return items


def _items(book: PriceBook, memory: MemoryParts) -> list[PackageItem]:
    technology = memory.technology.technology
    return [item for item in book.packaging if not item.memory or technology in item.memory]


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
