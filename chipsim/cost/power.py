"""What a chip draws at most and when it idles.

TDP = (die area x W/mm2 + memory at full bandwidth) / efficiency of the supply

Where a chip states its TDP, its dies have what memory and supply leave of it, and the modelled
TDP stands beside: W/mm2 by process is a rule from one chip, the stated TDP what this one is
held to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipsim.cost.dies import silicon
from chipsim.cost.energies import DEFAULT, Energies, energies_of
from chipsim.cost.memory import memory_parts
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.floorplan import Die


@dataclass(frozen=True, slots=True)
class Power:
    """Power of one chip, watts.

    Attributes
    ----------
    parts : dict of str to float
        TDP by ``die``, ``memory`` (at full bandwidth) and ``overhead`` of the supply: of the
        stated TDP where there is one.
    modelled : dict of str to float
        The same by the area of the dies alone.
    stated_w : float or None
        TDP that the chip states.
    idle_w : float
        Drawn by an idle chip: a part of its TDP.
    memory_j_per_byte : float
        Memory's part over its bandwidth: what a byte costs.
    die_area_mm2, largest_die_mm2 : float
        All dies that the die's part counts, and the largest of them.
    """

    parts: dict[str, float]
    modelled: dict[str, float]
    stated_w: float | None
    idle_w: float
    memory_j_per_byte: float
    die_area_mm2: float
    largest_die_mm2: float

    @property
    def tdp_w(self) -> float:
        """Thermal design power, watts: the stated one where there is one."""
        return sum(self.parts.values())

    @property
    def modelled_tdp_w(self) -> float:
        """Thermal design power by the area of the dies, watts."""
        return sum(self.modelled.values())

    @property
    def die_w_per_mm2(self) -> float:
        """Watts of the dies over their area."""
        return self.parts["die"] / self.die_area_mm2


def power(
    chip: Chip | str, energies: Energies | str = DEFAULT, *, base: Chip | None = None
) -> Power:
    """TDP by parts, and idle power.

    Parameters
    ----------
    base : Chip, optional
        The uncut chip of a cut one: its stated area is scaled by what the cut takes from
        the modelled one, the die draws f V^2 of the base's clock, and W/mm2 are those that
        the base's stated TDP leaves.

    Raises
    ------
    ConfigError, UnknownNameError
        No die area, an unknown memory technology, or a stated TDP that the memory alone
        draws.

    Examples
    --------
    SPAD's Table 3, by the area of its dies; and what a B200 is held to beside the same rule:

    >>> chips = ("spad-prefill", "spad-decode", "spad-h100")
    >>> [round(power(name).modelled_tdp_w) for name in chips]
    [596, 507, 700]
    >>> b200 = power("b200-sxm")
    >>> round(b200.tdp_w), round(b200.modelled_tdp_w), round(b200.die_w_per_mm2, 2)
    (1000, 1315, 0.41)
    """
    from chipsim.chip import Chip

    chip = Chip.load(chip) if isinstance(chip, str) else chip
    constants = energies_of(energies)
    area, memory_w = silicon(chip, base).area_mm2, memory_parts(chip, base).watts
    clock, supply = clock_and_supply(chip, base, constants)
    die_w = area * _density(chip, constants) * clock * supply**2
    modelled = _parts(die_w, memory_w, constants)
    parts = _parts(die_w * _stated_share(chip, base, modelled, constants), memory_w, constants)
    return Power(
        parts,
        modelled,
        chip.tdp,
        constants.idle * sum(parts.values()),
        memory_w / chip.memory.bandwidth,
        area,
        area * _largest(chip),
    )


def _parts(die_w: float, memory_w: float, energies: Energies) -> dict[str, float]:
    overhead_w = (die_w + memory_w) * (1.0 / energies.tdp.efficiency - 1.0)
    return {"die": die_w, "memory": memory_w, "overhead": overhead_w}


def _stated_share(
    chip: Chip, base: Chip | None, modelled: dict[str, float], energies: Energies
) -> float:
    """What a stated TDP leaves the dies, over what they are modelled at.

    Of a cut chip, what that of the uncut one does.
    """
    if chip.tdp is not None:
        left = chip.tdp * energies.tdp.efficiency - modelled["memory"]
        if left <= 0.0:
            draws = modelled["memory"] / energies.tdp.efficiency
            allowed = f"more than {draws:.4g} W, which its memory draws at full bandwidth"
            raise ConfigError(chip.where, "tdp", f"{chip.tdp:g} W", allowed)
        return left / modelled["die"]
    if base is None or base.tdp is None:
        return 1.0
    whole = power(base, energies)
    return whole.parts["die"] / whole.modelled["die"]


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
