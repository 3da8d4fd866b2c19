"""Area of a chip by block, mm2: transistors over the density of the process, and SRAM.

cores (control, vector units, arrays, registers, SRAM) + L2 + crossbar + memory + links +
host + other, over the part of the die that is not white space
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from chipsim.arch_configs import load
from chipsim.cost.memory import memory_parts
from chipsim.cost.process import Process
from chipsim.errors import ConfigError, UnknownNameError
from chipsim.spec import Spec
from chipsim.units import Capacity, SquareMillimetres, TransistorDensity, Transistors

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.floorplan import Floorplan, Registers

Count = Annotated[Transistors, Field(ge=0, le=1e12)]

CORE = ("control", "vector", "array", "registers", "sram")
"""Parts of a core."""

BLOCKS = (
    "cores",
    "l2",
    "crossbar",
    "memory_phy",
    "memory_controller",
    "link_phy",
    "link_controller",
    "host",
    "other",
    "white_space",
)
"""Blocks of a chip."""


class Interface(Spec):
    """One link, or one lane of the host interface."""

    phy: Annotated[SquareMillimetres, Field(ge=0, le=1000)]
    """Does not shrink with the process."""
    controller: Count


class Control(Spec):
    """Instruction issue, load and store, and what else is no arithmetic, transistors."""

    lane: Count
    element: Count
    """Per lane and element of the vector width."""


class Cache(Spec):
    """How well an SRAM of a size packs its cells."""

    efficiency: Annotated[tuple[Annotated[float, Field(gt=0, le=1)], ...], Field(min_length=1)]
    """Share that is cells, by size: 4 KiB, doubling."""
    slice: Annotated[Capacity, Field(gt=0)]
    """Larger ones are built of these."""


class Constants(Spec):
    """Transistors of every block."""

    name: str
    source: str
    units: dict[str, Count]
    """One arithmetic unit, by format."""
    cells: dict[str, Count]
    """One multiply-accumulator of a systolic array, by format."""
    control: Control
    crossbar: Count
    """Per core."""
    registers: Annotated[TransistorDensity, Field(gt=0)]
    """Density of the process that the formula of register files is of."""
    cache: Cache
    links: dict[str, Interface]
    hosts: dict[str, Interface]
    """Per lane."""
    host_factor: Annotated[float, Field(ge=1, le=100)] = 1.0
    """All of the host's block over its lanes."""

    @classmethod
    def load(cls, name: str) -> Constants:
        """Read by library name or path (`ConfigError`, `UnknownNameError`)."""
        return _load(name)


@functools.lru_cache(maxsize=32)
def _load(name: str) -> Constants:
    data, path = load("areas", name)
    return Constants.read(data, path)


def area_blocks(chip: Chip, base: Chip | None = None) -> dict[str, float]:
    """Area of all dies of a chip by block, mm2; their sum is the chip's.

    Parameters
    ----------
    base : Chip, optional
        The uncut chip of a cut one, for its memory package (`memory_parts`).

    Returns
    -------
    dict
        Keys `BLOCKS`, each at least 0. Without a floor plan, empty.

    Raises
    ------
    ConfigError, UnknownNameError
        The floor plan names a process, format, memory or link that nothing is known of.

    Examples
    --------
    >>> from chipsim import Chip
    >>> round(sum(area_blocks(Chip.load("llmcompass-ga100")).values()), 2)
    826.76
    """
    plan = chip.floorplan
    if plan is None:
        return {}
    constants, process = _of(chip, plan)
    crossbar = _physical_cores(chip, plan) * process.mm2(constants.crossbar)
    memory = memory_parts(chip, base)
    links = _links(chip, plan, constants)
    host = _host(plan, constants)
    blocks = {
        "cores": _physical_cores(chip, plan) * sum(core_blocks(chip).values()),
        "l2": cache_mm2(plan.l2 or chip.l2.capacity, constants.cache, process, plan.l2_slice),
        "crossbar": crossbar,
        "memory_phy": memory.interfaces * memory.technology.phy,
        "memory_controller": memory.interfaces * process.mm2(memory.technology.controller),
        "link_phy": links.phy,
        "link_controller": process.mm2(links.controller),
        "host": host.phy + process.mm2(host.controller),
        "other": plan.other,
    }
    used = sum(blocks.values())
    return blocks | {"white_space": used / (1 - plan.white_space) - used}


def core_blocks(chip: Chip) -> dict[str, float]:
    """Area of one core by part, mm2 (keys `CORE`; without a floor plan, empty)."""
    plan, core = chip.floorplan, chip.core
    if plan is None:
        return {}
    constants, process = _of(chip, plan)
    width = core.vector_unit.width
    control = constants.control.lane + width * constants.control.element
    units = dict(plan.units)
    vector = width * sum(units[name] * constants.units[name] for name in units)
    return {
        "control": core.lanes * process.mm2(control),
        "vector": core.lanes * process.mm2(vector),
        "array": core.lanes * process.mm2(_cells(chip, plan, constants)),
        "registers": core.lanes
        * registers_mm2(plan.registers, width)
        * (constants.registers / process.logic),
        "sram": cache_mm2(core.sram, constants.cache, process),
    }


def _of(chip: Chip, plan: Floorplan) -> tuple[Constants, Process]:
    if chip.process is None:
        raise ConfigError(chip.where, "process", None, "a process, with a floor plan")
    return Constants.load(plan.constants), Process.load(chip.process, f"{chip.where}: process")


def _physical_cores(chip: Chip, plan: Floorplan) -> float:
    return max(plan.cores or 0.0, chip.cores)


def _cells(chip: Chip, plan: Floorplan, constants: Constants) -> float:
    """Transistors of one array."""
    array = chip.core.systolic_array
    if array is None:
        return 0.0
    if plan.array_format not in constants.cells:
        raise UnknownNameError(
            f"format of cells in areas {constants.name}", plan.array_format, constants.cells
        )
    if plan.array_format not in array.macs_per_cycle:
        field = f"core.systolic_array.macs_per_cycle.{plan.array_format}"
        raise ConfigError(chip.where, field, None, "a rate: floorplan.array_format")
    cells = array.rows * array.columns * chip.macs_per_cycle(plan.array_format)
    return cells * constants.cells[plan.array_format]


def _links(chip: Chip, plan: Floorplan, constants: Constants) -> Interface:
    """PHY, mm2, and controllers, transistors, of all links."""
    count = plan.link_count
    if count is None:
        count = float(chip.link.count) if chip.link else 0.0
    if plan.links is None or count == 0.0:
        return Interface(phy=0.0, controller=0.0)
    one = _interface(constants.links, plan.links, f"link in areas {constants.name}")
    return Interface(phy=count * one.phy, controller=count * one.controller)


def _host(plan: Floorplan, constants: Constants) -> Interface:
    if plan.host is None:
        return Interface(phy=0.0, controller=0.0)
    one = _interface(constants.hosts, plan.host.kind, f"host in areas {constants.name}")
    lanes = plan.host.lanes * constants.host_factor
    return Interface(phy=lanes * one.phy, controller=lanes * one.controller)


def _interface(known: dict[str, Interface], name: str, kind: str) -> Interface:
    if name not in known:
        raise UnknownNameError(kind, name, known)
    return known[name]


def cache_mm2(
    size: float, cache: Cache, process: Process, slice_bytes: float | None = None
) -> float:
    """Area of an SRAM, mm2.

    Parameters
    ----------
    size : float
        Bytes.
    slice_bytes : float, optional
        Largest SRAM that it is built of; None: the constants' own.

    Notes
    -----
    The efficiencies are not monotone; an SRAM takes at least as much as any smaller one of
    a power of two.
    """
    largest = min(slice_bytes or cache.slice, float(2048 << len(cache.efficiency)))
    count = math.ceil(size / largest - 1e-9)
    if count > 1:
        return count * cache_mm2(largest, cache, process, largest)
    cells = max(size, 4096.0)
    place = max(0, math.ceil(math.log2(cells / 4096.0) - 1e-9))
    smaller = [float(4096 << i) / cache.efficiency[i] for i in range(place)]
    return 8.0 * process.sram * max([cells / cache.efficiency[place], *smaller])


def registers_mm2(registers: Registers, width: int) -> float:
    """Area of a lane's register files at 90 nm, mm2.

    EMPIRE's fit of a file of D registers of W bits with P ports, um2, as LLMCompass cites
    it.
    """
    d, w, p = registers.per_element * width, registers.bits, registers.ports
    um2 = (
        32900 - 1090 * d - 883 * w - 5550 * p + 53.5 * d * w + 0.015 * d * d
        + 0.0108 * w * w + 0.586 * p * p + 142 * d * p + 368 * w * p
    )  # fmt: skip
    return registers.files * max(0.0, um2) * 1e-6
