"""What a chip costs, part by part: the answer of `chipsim.cost.chip_cost.chip_cost`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chipsim.cost.ranges import ZERO, Range

if TYPE_CHECKING:
    from chipsim.cost.die import DieCost
    from chipsim.cost.edge import Edge


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
