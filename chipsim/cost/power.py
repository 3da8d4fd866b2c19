"""What a chip draws at most and when it idles.

TDP = (die area x W/mm2 + memory at full bandwidth) / efficiency of the supply
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipsim.cost.dies import silicon
from chipsim.cost.energies import DEFAULT, Energies, energies_of
from chipsim.cost.memory import memory_parts

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.floorplan import Die


@dataclass(frozen=True, slots=True)
class Power:
    """Power of one chip, watts.

    Attributes
    ----------
    parts : dict of str to float
        TDP by ``die``, ``memory`` (at full bandwidth) and ``overhead`` of the supply.
    idle_w : float
        Drawn by an idle chip: a part of its TDP, the stated one where there is one.
    memory_j_per_byte : float
        Memory's part over its bandwidth: what a byte costs.
    die_area_mm2, largest_die_mm2 : float
        All dies that the die's part counts, and the largest of them.
    """

    parts: dict[str, float]
    idle_w: float
    memory_j_per_byte: float
    die_area_mm2: float
    largest_die_mm2: float

    @property
    def tdp_w(self) -> float:
        """Thermal design power, watts."""
        return sum(self.parts.values())


def power(
    chip: Chip | str, energies: Energies | str = DEFAULT, *, base: Chip | None = None
) -> Power:
    """TDP by parts, and idle power.

    Parameters
    ----------
    base : Chip, optional
        The uncut chip of a cut one: its stated area is scaled by what the cut takes from
        the modelled one, and the die draws f V^2 of the base's clock.

    Raises
    ------
    ConfigError, UnknownNameError
        No die area, or an unknown memory technology.

    Examples
    --------
    SPAD's Table 3:

    >>> [round(power(name).tdp_w) for name in ("spad-prefill", "spad-decode", "spad-h100")]
    [596, 507, 700]
    """
    from chipsim.chip import Chip

    chip = Chip.load(chip) if isinstance(chip, str) else chip
    constants = energies_of(energies)
    area, memory_w = silicon(chip, base).area_mm2, memory_parts(chip, base).watts
    clock, supply = clock_and_supply(chip, base, constants)
    die_w = area * _density(chip, constants) * clock * supply**2
    overhead_w = (die_w + memory_w) * (1.0 / constants.tdp.efficiency - 1.0)
    parts = {"die": die_w, "memory": memory_w, "overhead": overhead_w}
    idle_w = constants.idle * sum(parts.values()) * _stated(chip, base, parts, constants)
    largest = area * _largest(chip)
    return Power(parts, idle_w, memory_w / chip.memory.bandwidth, area, largest)


def clock_and_supply(chip: Chip, base: Chip | None, energies: Energies) -> tuple[float, float]:
    """Clock of a cut chip over that of its base, and the supply that it needs."""
    clock = chip.clock.tensor / base.clock.tensor if base is not None else 1.0
    return clock, energies.voltage.supply(clock)


def _density(chip: Chip, energies: Energies) -> float:
    """W/mm2 of the dies, by the area of each."""
    dies = _dies(chip)
    if not dies:
        return energies.die_density(chip.process)
    total = sum(die.count * die.area for die in dies)
    return sum(
        die.count * die.area / total * energies.die_density(die.process or chip.process)
        for die in dies
    )


def _largest(chip: Chip) -> float:
    """Part of the area that the largest die has."""
    dies = _dies(chip)
    total = sum(die.count * die.area for die in dies)
    return max(die.area for die in dies) / total if dies else 1.0


def _dies(chip: Chip) -> list[Die]:
    """Kinds of die of a chip of several; none: one die."""
    return list(chip.floorplan.dies.values()) if chip.floorplan else []


def _stated(
    chip: Chip, base: Chip | None, parts: dict[str, float], energies: Energies
) -> float:
    """A stated TDP over the modelled one; of a cut chip, that of the uncut one."""
    if chip.tdp is not None:
        return chip.tdp / sum(parts.values())
    if base is None or base.tdp is None:
        return 1.0
    return base.tdp / power(base, energies).tdp_w
