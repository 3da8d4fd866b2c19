"""Energy constants of silicon: one file of sourced numbers, scaled to a process.

A file gives each energy at one node and what a node takes of it; voltage and clock follow
the alpha-power law.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Self, TypeVar

from pydantic import Field, model_validator

from chipsim.arch_configs import load
from chipsim.errors import UnknownNameError
from chipsim.spec import Spec
from chipsim.units import Capacity, Joules, JoulesPerByte, PowerDensity, WireEnergy

if TYPE_CHECKING:
    from collections.abc import Mapping

Small = Annotated[Joules, Field(ge=0, le=1e-6)]
Share = Annotated[float, Field(gt=0, le=1)]

Entry = TypeVar("Entry")

DEFAULT = "published"
"""The file that is read unless another is named."""

_ACCESS_BYTES = 8.0
"""An SRAM access of the tables is of 64 bits."""


class Mac(Spec):
    """One multiply-accumulate."""

    multiply: Small
    add: Small


class SramPoint(Spec):
    """Energy of a 64-bit access to an SRAM of a size."""

    size: Annotated[Capacity, Field(gt=0)]
    access: Small


class Tdp(Spec):
    """How thermal design power follows from a design."""

    die: dict[str, Annotated[PowerDensity, Field(ge=0, le=100)]]
    """W per mm2 of die, by process."""
    efficiency: Share
    """Die and memory over all that the chip's supply draws."""


class Voltage(Spec):
    """How far the supply may fall with the clock: f ~ (V - Vt)^alpha / V."""

    alpha: Annotated[float, Field(ge=1, le=2)]
    threshold: Annotated[float, Field(gt=0, lt=1)]
    """Vt over the supply at the full clock."""
    floor: Share
    """Least supply over that at the full clock."""

    @model_validator(mode="after")
    def _switches(self) -> Self:
        if self.threshold >= self.floor:
            raise ValueError("a threshold below the floor: no transistor switches at it")
        return self

    def clock(self, supply: float) -> float:
        """Clock over the full one at a supply over the full one (0 at the threshold)."""
        over = max(0.0, supply - self.threshold) / (1.0 - self.threshold)
        return float(over**self.alpha) / supply

    def supply(self, clock: float) -> float:
        """Least supply, over that at the full clock, that reaches a clock.

        Parameters
        ----------
        clock : float
            Over the full one, above 0. Beyond it the supply rises as the clock does, which
            continues the law.

        Examples
        --------
        >>> law = Voltage(alpha=1.3, threshold=0.35, floor=0.7)
        >>> round(law.supply(1.0), 3), round(law.supply(0.8), 3), law.supply(0.1)
        (1.0, 0.82, 0.7)
        """
        if clock >= 1.0:
            return clock
        low, high = self.floor, 1.0
        if self.clock(low) >= clock:
            return low
        while high - low > 1e-12:
            middle = (low + high) / 2
            low, high = (middle, high) if self.clock(middle) < clock else (low, middle)
        return high


class Energies(Spec):
    """Energies at a reference process, and what other processes take of them."""

    name: str
    source: str
    process: str
    """Of the energies; ``scale`` says what others take."""
    scale: dict[str, Annotated[float, Field(gt=0, le=100)]]
    """Energy of a process over that of the reference."""
    mac: dict[str, Mac]
    """By operand format."""
    sram: Annotated[tuple[SramPoint, ...], Field(min_length=1)]
    """In ascending size."""
    register_accesses: Annotated[float, Field(ge=0, le=100)]
    """32-bit accesses of the smallest SRAM per vector operation."""
    wire: Annotated[WireEnergy, Field(ge=0, le=1e-6)]
    link: Annotated[JoulesPerByte, Field(ge=0, le=1e-6)]
    """Both ends of a link."""
    tdp: Tdp
    idle: Annotated[float, Field(ge=0, lt=1)]
    """Idle power over TDP."""
    voltage: Voltage

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        sizes = [point.size for point in self.sram]
        if sizes != sorted(set(sizes)):
            raise ValueError("sram in ascending size")
        return self

    @classmethod
    def load(cls, name: str = DEFAULT) -> Energies:
        """Read a file by library name or path (`ConfigError`, `UnknownNameError`)."""
        data, path = load("energies", name)
        return cls.read(data, path)

    def of_process(self, process: str | None) -> float:
        """Energy of a process over that of the reference.

        Raises
        ------
        UnknownNameError
            The file has no such process.
        """
        return _entry(self.scale, str(process), f"process in energies {self.name}")

    def die_density(self, process: str | None) -> float:
        """TDP of a die by its area, W/mm2 (`UnknownNameError`)."""
        return _entry(self.tdp.die, str(process), f"process in energies {self.name}, tdp.die")

    def mac_joules(self, format_name: str, process: str | None) -> float:
        """One multiply-accumulate of a format, joules (`UnknownNameError`)."""
        mac = _entry(self.mac, format_name, f"format in energies {self.name}")
        return (mac.multiply + mac.add) * self.of_process(process)

    def sram_joules(self, size: float, process: str | None) -> float:
        """One byte read from or written to an SRAM, joules.

        Energies between two sizes of the file are interpolated over the logarithm of the
        size; beyond the largest an SRAM is made of banks of that size.
        """
        smaller = [point for point in self.sram if point.size <= size]
        larger = [point for point in self.sram if point.size > size]
        if not smaller or not larger:
            access = (smaller[-1] if smaller else larger[0]).access
        else:
            low, high = smaller[-1], larger[0]
            part = math.log(size / low.size) / math.log(high.size / low.size)
            access = low.access + part * (high.access - low.access)
        return access / _ACCESS_BYTES * self.of_process(process)

    def vector_joules(self, process: str | None) -> float:
        """One vector FLOP of fp32 with its registers, joules."""
        registers = self.register_accesses * 4.0 * self.sram_joules(0.0, process)
        return (self.mac_joules("fp32", process) + registers) / 2.0

    def l2_joules(self, die_area_mm2: float, process: str | None) -> float:
        """One byte from an L2 bank to a core, joules.

        The way is the mean of |dx| + |dy| between two points of a square die, 2/3 of its
        side.
        """
        way = 2.0 / 3.0 * math.sqrt(die_area_mm2)
        return self.sram_joules(self.sram[-1].size, process) + way * self.wire


def _entry(entries: Mapping[str, Entry], name: str, kind: str) -> Entry:
    if name not in entries:
        raise UnknownNameError(kind, name, entries)
    return entries[name]


def energies_of(energies: Energies | str) -> Energies:
    """Energies, or those of a name (`ChipsimError`)."""
    return Energies.load(energies) if isinstance(energies, str) else energies
