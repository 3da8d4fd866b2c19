"""What a chip is built of beyond what its speed depends on: spare cores, dies, packages.

Counts are of the uncut die; `chipsim.chip.Chip.scaled` cuts them with the resource.
"""

from __future__ import annotations

import math
from typing import Annotated, Self

from pydantic import Field, model_validator

from chipsim.spec import Spec
from chipsim.units import Bandwidth, Capacity, SquareMillimetres

Share = Annotated[float, Field(ge=0, lt=1)]
Number = Annotated[float, Field(ge=0, le=1e6)]
Positive = Annotated[float, Field(gt=0, le=1e6)]


class Units(Spec):
    """Arithmetic units of a lane per element of its vector width."""

    int32: Number = 0.5
    fp16: Number = 0.0
    fp32: Number = 1.0
    fp64: Number = 0.5


class Registers(Spec):
    """Register files of a lane."""

    files: Positive = 1.0
    per_element: Positive = 512.0
    """Registers of one file per element of the vector width."""
    bits: Positive = 32.0
    ports: Positive = 4.0


class Host(Spec):
    """The interface to the host."""

    kind: str = "pcie5"
    lanes: Number = 16.0


class MemoryPackage(Spec):
    """One stack or device as this chip runs it."""

    bandwidth: Annotated[Bandwidth, Field(gt=0)]
    capacity: Annotated[Capacity, Field(gt=0)]
    """Offered to software."""
    bought: Annotated[Capacity, Field(gt=0)] | None = None
    """Paid for; null: what is offered."""

    @property
    def paid(self) -> float:
        """Bytes that are paid for."""
        return self.bought or self.capacity


class MemorySites(Spec):
    """Memory packages and the die's interfaces to them."""

    package: MemoryPackage | None = None
    """Null: the one that the fewest whole packages of its technology make the memory of."""
    clamshell: bool = False
    """Two devices share a channel: twice the capacity, no more bandwidth (GDDR)."""
    interfaces: Annotated[int, Field(ge=1, le=10**6, strict=True)] | None = None
    """On the die; null: one for each package of the memory's bandwidth."""


class Die(Spec):
    """One kind of die of a chip of several."""

    count: Annotated[int, Field(ge=1, le=1000)] = 1
    area: Annotated[SquareMillimetres, Field(gt=0, le=1e6)]
    """Of one."""
    process: str | None = None
    """Null: the chip's."""
    stacked: bool = False
    """On top of another die: it has no edge of the package."""


class Floorplan(Spec):
    """Blocks of the die, for area, yield and cost."""

    constants: str
    """File of ``arch_configs/areas`` with the transistors of each block."""
    cores: Positive | None = None
    """On the die, spare ones included; null: as many as work."""
    l2: Annotated[Capacity, Field(gt=0)] | None = None
    """On the die; null: what works."""
    l2_slice: Annotated[Capacity, Field(gt=0)] | None = None
    """Largest SRAM that L2 is made of; null: the constants' own."""
    units: Units = Units()
    registers: Registers = Registers()
    array_format: str = "fp16"
    """What a cell of the systolic array is sized for."""
    memory: MemorySites = MemorySites()
    links: str | None = None
    """Kind of link, e.g. ``nvlink4``."""
    link_count: Number | None = None
    """On the die; null: as many as the chip has."""
    host: Host | None = None
    other: Annotated[SquareMillimetres, Field(ge=0, le=1e6)] = 0.0
    """What no block describes."""
    white_space: Share = 0.0
    """Part of the die that no block covers."""
    dies: dict[str, Die] = Field(default_factory=dict)
    """Of a chip of several dies; none: one."""

    @model_validator(mode="after")
    def _edge(self) -> Self:
        if self.dies and all(die.stacked for die in self.dies.values()):
            raise ValueError("dies of which at least one is not stacked")
        return self

    def cut(self, resource: str, fraction: float, links: float) -> Floorplan:
        """What is left of the die's own counts when a resource is cut or grown.

        Parameters
        ----------
        links : float
            Of the chip, where the floor plan counts none of its own.
        """
        if resource == "cores" and self.cores is not None:
            return self._with(cores=self.cores * fraction)
        if resource == "l2" and self.l2 is not None:
            return self._with(l2=self.l2 * fraction)
        if resource == "link_bandwidth":
            count = links if self.link_count is None else self.link_count
            return self._with(link_count=count * fraction)
        if resource == "memory_bandwidth" and self.memory.interfaces is not None:
            # Rounded up: a die has whole ones, and at least as many as it has packages.
            count = max(1, math.ceil(self.memory.interfaces * fraction - 1e-9))
            sites = {**dict(self.memory), "interfaces": count}
            return self._with(memory=MemorySites.build("scaled", **sites))
        return self

    def _with(self, **changes: object) -> Floorplan:
        return Floorplan.build("scaled", **{**dict(self), **changes})
