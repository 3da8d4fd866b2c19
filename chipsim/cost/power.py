"""What a chip draws at most and when it idles.

TDP = (die area x W/mm2 + memory at full bandwidth) / efficiency of the supply
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipsim.cost.energies import DEFAULT, Energies, energies_of

if TYPE_CHECKING:
    from chipsim.chip import Chip


@dataclass(frozen=True, slots=True)
class Power:
    """Power of one chip, watts.

    Attributes
    ----------
    parts : dict of str to float
        TDP by ``die``, ``memory`` (at full bandwidth) and ``overhead`` of the supply.
    idle_w : float
        Drawn by an idle chip.
    memory_j_per_byte : float
        Memory's part over its bandwidth: what a byte costs.
    die_area_mm2 : float
        All dies that the die's part counts.
    """

    parts: dict[str, float]
    idle_w: float
    memory_j_per_byte: float
    die_area_mm2: float

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
        the modelled one.

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
    area = chip.die_area or 0.0
    die = area * constants.die_density(chip.process)
    memory = memory_watts(chip)
    drawn = die + memory
    parts = {
        "die": die,
        "memory": memory,
        "overhead": drawn / constants.tdp.efficiency - drawn,
    }
    total = sum(parts.values())
    return Power(
        parts, constants.idle * (chip.tdp or total), memory / chip.memory.bandwidth, area
    )


def memory_watts(chip: Chip) -> float:
    if chip.memory.technology.startswith("HBM"):
        return 30.0 * round(chip.memory.capacity / 2**34)
    return chip.memory.bandwidth * 8 * 4.5e-12
