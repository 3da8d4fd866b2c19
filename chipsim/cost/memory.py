"""Memory by the package: bandwidth, capacity, die edge and power move together.

A stack of HBM, a GDDR or LPDDR device, or a DIMM is one package. A chip holds whole ones; a
cut that leaves a part of one is a counterfactual, and is told so.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from chipsim.arch_configs import load, names
from chipsim.errors import ConfigError, UnknownNameError
from chipsim.floorplan import MemoryPackage
from chipsim.ops.checks import whole
from chipsim.spec import Spec
from chipsim.units import (
    Bandwidth,
    Capacity,
    JoulesPerByte,
    Millimetres,
    SquareMillimetres,
    Transistors,
    Watts,
)

if TYPE_CHECKING:
    from chipsim.chip import Chip

_WHOLE = 1e-6
"""Relative deviation from a whole number of packages that is rounding."""

_OVER = 1.02
"""Bandwidth over a technology's fastest that a printed figure may be rounded to: what
vendors print of one HBM3e stack, 1.2 to 1.25 TB/s, is up to 1.017 of its 1228.8 GB/s."""

_SLOWEST = 0.5
"""Least bandwidth of a package over its fastest grade's, where the chip describes no package:
an assumption; TPU v3 runs HBM2 at 0.73, the others of the library at 0.78 or more."""

_OFFERED = 0.93
"""Least part of a package that a chip offers: 10^9 of 2^30 bytes is 0.931, a B200 0.9375."""


class MemoryTechnology(Spec):
    """One kind of memory, by the package."""

    name: str
    technology: str
    """As chips write it, e.g. ``HBM3e``."""
    package: str
    """What one is called: stack, device, DIMM, lane."""
    source: str
    pins: Annotated[int, Field(ge=1, le=10**5)]
    """Data pins of a package."""
    pin_rate: Annotated[Bandwidth, Field(gt=0)]
    """Of the fastest grade, bytes/s per pin."""
    capacity: Annotated[Capacity, Field(gt=0)]
    """Of the largest package."""
    smaller: tuple[Annotated[Capacity, Field(gt=0)], ...] = ()
    """Of the others that are made."""
    edge: Annotated[Millimetres, Field(ge=0, le=1000)]
    """Die edge that its interface takes, mm."""
    phy: Annotated[SquareMillimetres, Field(ge=0, le=1000)]
    """Area of one interface that does not shrink with the process, mm2."""
    controller: Annotated[Transistors, Field(ge=0)]
    """Of one interface."""
    power: Annotated[Watts, Field(ge=0)] | None = None
    """Of one package at its full bandwidth."""
    energy: Annotated[JoulesPerByte, Field(ge=0)] | None = None
    """Per byte moved."""
    clamshell: bool = False
    """Two devices can share a channel."""

    @model_validator(mode="after")
    def _one_power(self) -> Self:
        if (self.power is None) == (self.energy is None):
            raise ValueError("power of a package, or energy of a byte, and not both")
        return self

    @classmethod
    def load(cls, technology: str, where: str = "") -> MemoryTechnology:
        """The technology of a name as chips write it (`UnknownNameError`, of a place)."""
        known = _library()
        if technology not in known:
            raise UnknownNameError("memory", technology, known, where)
        return known[technology]

    @property
    def bandwidth(self) -> float:
        """Of one package of the fastest grade, bytes/s."""
        return self.pins * self.pin_rate


@functools.cache
def _library() -> dict[str, MemoryTechnology]:
    found = [MemoryTechnology.read(*load("memories", name)) for name in names("memories")]
    return {technology.technology: technology for technology in found}


def technologies() -> list[str]:
    """Memory technologies that are described, as chips write them."""
    return list(_library())


@dataclass(frozen=True, slots=True)
class MemoryParts:
    """The memory of a chip, in packages.

    Attributes
    ----------
    technology : MemoryTechnology
    package : MemoryPackage
        One as this chip runs it.
    channels : float
        Packages that the bandwidth is made of; whole but for a counterfactual.
    packages : float
        Packages that the capacity is made of: twice the channels in clamshell.
    interfaces : int
        On the die, spare ones included.
    watts : float
        All packages at full bandwidth.
    edge_mm : float
        Die edge of all interfaces.
    counterfactual : str
        Why no whole number of packages is this memory; else empty.
    """

    technology: MemoryTechnology
    package: MemoryPackage
    channels: float
    packages: float
    interfaces: int
    watts: float
    edge_mm: float
    counterfactual: str = ""


def memory_parts(chip: Chip, base: Chip | None = None) -> MemoryParts:
    """The packages of a chip's memory.

    Parameters
    ----------
    base : Chip, optional
        The uncut chip of a cut one: its package is the cut chip's, where that describes none.

    Raises
    ------
    UnknownNameError
        An unknown technology.
    ConfigError
        A package faster or larger than its technology makes; clamshell of a technology
        that has none; fewer interfaces on the die than packages to reach.

    Examples
    --------
    >>> from chipsim import Chip
    >>> memory = memory_parts(Chip.load("spad-decode"))
    >>> round(memory.channels, 3), round(memory.watts)
    (5.0, 150)
    >>> memory_parts(Chip.load("spad-decode").scaled(memory_bandwidth=0.7)).counterfactual
    'bandwidth of 3.5 stacks, capacity of 5: whole stacks have both (4: 2681.6 GB/s, 64 GiB)'
    """
    technology = MemoryTechnology.load(
        chip.memory.technology, f"{chip.where}: memory.technology"
    )
    sites = chip.floorplan.memory if chip.floorplan else None
    clamshell = sites is not None and sites.clamshell
    if clamshell and not technology.clamshell:
        allowed = (
            f"false with {technology.technology}: two devices of GDDR alone share a channel"
        )
        raise ConfigError(chip.where, "floorplan.memory.clamshell", True, allowed)
    package = sites.package if sites else None
    if package is None and base is not None and base != chip:
        package = _of_base(chip, base)
    package = package or _fewest(chip, technology, clamshell)
    _check(chip, technology, package)
    channels = _near(chip.memory.bandwidth / package.bandwidth)
    packages = _near(chip.memory.capacity / package.capacity)
    interfaces = _interfaces(chip, technology, channels)
    watts = (
        technology.power * channels
        if technology.power is not None
        else (technology.energy or 0.0) * chip.memory.bandwidth
    )
    return MemoryParts(
        technology,
        package,
        channels,
        packages,
        interfaces,
        watts,
        interfaces * technology.edge,
        _counterfactual(technology, package, channels, packages, clamshell),
    )


def with_packages(chip: Chip, count: int) -> Chip:
    """The chip with another number of whole packages: bandwidth and capacity follow.

    Raises
    ------
    ConfigError
        A count that is no whole number, or below 1.

    Examples
    --------
    >>> from chipsim import Chip
    >>> chip = with_packages(Chip.load("spad-h100"), 3)
    >>> round(chip.memory.bandwidth / 1e9), round(chip.memory.capacity / 2**30)
    (2011, 48)
    """
    fraction = whole(chip.where, "packages", count) / memory_parts(chip).channels
    return chip.scaled(memory_bandwidth=fraction, memory_capacity=fraction)


def _of_base(chip: Chip, base: Chip) -> MemoryPackage | None:
    same = base.memory.technology == chip.memory.technology
    return memory_parts(base).package if same else None


def _interfaces(chip: Chip, technology: MemoryTechnology, channels: float) -> int:
    """On the die: at least one for each package that is reached."""
    needed = math.ceil(channels - _WHOLE)
    described = chip.floorplan.memory.interfaces if chip.floorplan else None
    if described is None:
        return needed
    if described < needed:
        allowed = f"at least {needed}, one for each {technology.package} of its bandwidth"
        raise ConfigError(chip.where, "floorplan.memory.interfaces", described, allowed)
    return described


def _fewest(chip: Chip, technology: MemoryTechnology, clamshell: bool) -> MemoryPackage:
    """The package that the fewest whole ones make this memory of.

    Where no whole number of a package that is made does, the technology's fastest and
    largest, of which the memory then holds a part.
    """
    shared, memory = 2 if clamshell else 1, chip.memory
    fastest = memory.bandwidth / technology.bandwidth
    least = max(1, math.ceil(fastest / _OVER - _WHOLE))
    sizes = (technology.capacity, *technology.smaller)
    counts = {
        count
        for size in sizes
        for offered in [memory.capacity / shared / size]
        for count in range(
            max(least, math.ceil(offered - _WHOLE)), math.floor(offered / _OFFERED) + 1
        )
        if fastest / count >= _SLOWEST
    }
    if not counts:
        return MemoryPackage(bandwidth=technology.bandwidth, capacity=technology.capacity)
    count = min(counts)
    capacity = memory.capacity / count / shared
    bought = min(size for size in sizes if size >= capacity * (1 - _WHOLE))
    return MemoryPackage(
        bandwidth=memory.bandwidth / count, capacity=capacity, bought=max(bought, capacity)
    )


def _check(chip: Chip, technology: MemoryTechnology, package: MemoryPackage) -> None:
    where, kind = f"{chip.where}: floorplan.memory.package", technology.package
    if package.bandwidth > _OVER * technology.bandwidth:
        allowed = f"at most {technology.bandwidth / 1e9:g} GB/s per {kind}"
        got = f"{package.bandwidth / 1e9:g} GB/s"
        raise ConfigError(where, "bandwidth", got, f"{allowed} of {technology.technology}")
    if package.capacity > technology.capacity * (1 + _WHOLE):
        allowed = f"at most {technology.capacity / 2**30:g} GiB per {kind}"
        got = f"{package.capacity / 2**30:g} GiB"
        raise ConfigError(where, "capacity", got, f"{allowed} of {technology.technology}")


def _counterfactual(
    technology: MemoryTechnology,
    package: MemoryPackage,
    channels: float,
    packages: float,
    clamshell: bool,
) -> str:
    shared = 2 if clamshell else 1
    if channels == round(channels) and packages == shared * channels:
        return ""
    near = max(1, round(channels))
    speed = f"{near * package.bandwidth / 1e9:.6g} GB/s"
    holds = f"{near * shared * package.capacity / 2**30:.6g} GiB"
    kind = f"{technology.package}s"
    return (
        f"bandwidth of {channels:.4g} {kind}, capacity of {packages:.4g}: "
        f"whole {kind} have both ({near}: {speed}, {holds})"
    )


def _near(count: float) -> float:
    """A number of packages without rounding errors."""
    near = round(count)
    return float(near) if near and abs(count / near - 1) < _WHOLE else count
