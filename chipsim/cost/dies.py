"""The dies of a chip: how large, how many on a wafer, how many good, what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipsim.cost.die import DieCost, check_reticle, gross_dies, harvested_yield
from chipsim.errors import ConfigError
from chipsim.floorplan import Die

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.cost.prices import PriceBook

LEAST_YIELD = 1e-9
"""Below this no die works."""


@dataclass(frozen=True, slots=True)
class Silicon:
    """The area of a chip's dies.

    Attributes
    ----------
    area_mm2 : float
        All dies together, as they are paid for.
    stated_mm2 : float or None
        As the chip states it, or its base scaled to the cut.
    modelled_mm2 : float or None
        As the blocks add up; None without a floor plan.
    blocks : dict
        The blocks, mm2.
    """

    area_mm2: float
    stated_mm2: float | None
    modelled_mm2: float | None
    blocks: dict[str, float]


def silicon(chip: Chip, base: Chip | None = None) -> Silicon:
    """Stated and modelled area of a chip; the stated one is paid for.

    Parameters
    ----------
    base : Chip, optional
        The uncut chip of a cut one: its stated area times what the cut leaves of the
        modelled one.

    Raises
    ------
    ConfigError
        Neither a stated area nor a floor plan.
    """
    from chipsim.cost.area import area_blocks

    blocks = area_blocks(chip, base)
    modelled = sum(blocks.values()) if blocks else None
    stated = chip.die_area
    if stated is None and base is not None and base.die_area is not None:
        whole = sum(area_blocks(base).values())
        stated = base.die_area * (modelled / whole if modelled and whole else 1.0)
    area = stated or modelled
    if area is None:
        raise ConfigError(chip.where, "die_area", None, "an area, or a floor plan to model it")
    return Silicon(area, stated, modelled, blocks)


def die_costs(
    chip: Chip, book: PriceBook, found: Silicon, area_mm2: float
) -> tuple[DieCost, ...]:
    """Every kind of die of a chip whose dies are `area_mm2` together.

    Raises
    ------
    ConfigError, UnknownNameError
        A die larger than the reticle or the wafer, one that never works, no price.
    """
    kinds = _kinds(chip)
    described = sum(die.area * die.count for die in kinds.values())
    costs = []
    for name, die in kinds.items():
        area = area_mm2 * die.area / described
        where = f"{chip.where}: {name}" if len(kinds) > 1 else chip.where
        check_reticle(where, area)
        process = die.process or chip.process
        if process is None:
            raise ConfigError(chip.where, "process", None, "a process, to price its wafer")
        wafer = book.wafer(process)
        count = gross_dies(area, book.gross_dies, where)
        good = _yield(chip, book, found, name, area)
        if good < LEAST_YIELD:
            raise ConfigError(where, "yield", good, f"more than {LEAST_YIELD:g}: no die works")
        cost = wafer.price * (1.0 / (count * good))
        costs.append(DieCost(name, area, die.count, process, count, good, cost))
    return tuple(costs)


def edge_dies(chip: Chip, area_mm2: float) -> tuple[float, int]:
    """Area of one of the dies that have an edge of the package, mm2, and how many."""
    kinds = _kinds(chip)
    described = sum(die.area * die.count for die in kinds.values())
    outer = [die for die in kinds.values() if not die.stacked]
    count = sum(die.count for die in outer)
    together = sum(die.area * die.count for die in outer)
    return area_mm2 * together / described / count, count


def _kinds(chip: Chip) -> dict[str, Die]:
    if chip.floorplan is not None and chip.floorplan.dies:
        return chip.floorplan.dies
    return {"die": Die(area=1.0)}


def _with_cores(kinds: dict[str, Die]) -> list[str]:
    """Dies that hold the cores: those on top, or all."""
    return [name for name, die in kinds.items() if die.stacked] or list(kinds)


def _yield(chip: Chip, book: PriceBook, found: Silicon, name: str, area_mm2: float) -> float:
    model, kinds, plan = book.die_yield, _kinds(chip), chip.floorplan
    defects = book.wafer(kinds[name].process or chip.process or "").defects
    holding = _with_cores(kinds)
    if plan is None or plan.cores is None or not model.harvest or name not in holding:
        return harvested_yield(area_mm2, 0.0, 0, 0, defects, model)
    dies = sum(kinds[each].count for each in holding)
    cores = max(round(plan.cores / dies), -(-chip.cores // dies))
    needed = min(cores, -(-chip.cores // dies))
    # The cores' share of the die as modelled, of the die as paid for.
    holds = sum(kinds[each].area * kinds[each].count for each in holding)
    everything = sum(die.area * die.count for die in kinds.values())
    share = found.blocks["cores"] / sum(found.blocks.values()) * everything / holds
    core = min(share, MOST_CORES) * area_mm2 / cores
    return harvested_yield(area_mm2 - core * cores, core, cores, needed, defects, model)


MOST_CORES = 0.95
"""Largest part of a die that cores are taken to be: an assumption, as some of every die is
shared. Only an MI300X's compute dies meet it, whose cores are modelled at 1.21 of their area;
other chips of the library are at 0.64 or less."""
