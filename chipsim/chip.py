"""Chips: what is described in ``arch_configs/chips``, checked, and cut or scaled.

A chip is cores (lanes of a systolic array and a vector unit around an SRAM), an L2, a
memory and links. All numbers are SI; peak rates are derived, never stored twice.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, PrivateAttr, ValidationInfo, field_validator

from chipsim.arch_configs import load
from chipsim.errors import ConfigError
from chipsim.floorplan import Floorplan
from chipsim.ops.formats import get_format
from chipsim.ops.precision import SumFormat
from chipsim.spec import Spec
from chipsim.units import (
    Bandwidth,
    BytesPerCycle,
    Capacity,
    Frequency,
    Seconds,
    SquareMillimetres,
    Watts,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Count = Annotated[int, Field(ge=1, le=10**9, strict=True)]
Topology = Literal["fully-connected", "switch", "ring", "torus"]


def _positive(value: float) -> float:
    # The range keeps every product and quotient of a few quantities finite.
    if not 1e-12 <= value <= 1e24:
        raise ValueError("a number above 0 (from 1e-12 to 1e24 in SI units)")
    return value


POSITIVE = AfterValidator(_positive)


class SystolicArray(Spec):
    """One matrix unit: ``rows`` x ``columns`` multiply-accumulators, output stationary."""

    rows: Count
    columns: Count
    macs_per_cycle: dict[str, Annotated[float, POSITIVE]]
    """Multiply-accumulates of one cell per cycle, by operand format."""
    macs_by_accumulate: dict[SumFormat, dict[str, Annotated[float, POSITIVE]]] = Field(
        default_factory=dict
    )
    """As ``macs_per_cycle``, by the format of the sums: where that is another rate."""

    @field_validator("macs_by_accumulate")
    @classmethod
    def _known_operands(
        cls, value: dict[str, dict[str, float]], info: ValidationInfo
    ) -> dict[str, dict[str, float]]:
        known = info.data.get("macs_per_cycle", {})
        if any(name not in known for rates in value.values() for name in rates):
            raise ValueError(f"rates of formats of macs_per_cycle: {', '.join(known)}")
        return value


class VectorUnit(Spec):
    """One vector unit; an operation on ``width`` elements each cycle."""

    width: Count
    """fp32 elements per cycle."""
    flops_per_element: Annotated[float, POSITIVE] = 2.0
    """FLOP per element and cycle (2 = fused multiply-add)."""
    half_rate: Annotated[float, POSITIVE] = 2.0
    """Rate of 16-bit elements over that of fp32."""


class Core(Spec):
    """A core: lanes that share one SRAM."""

    lanes: Count
    systolic_array: SystolicArray | None
    """One per lane; null: matrix products run on the vector units."""
    vector_unit: VectorUnit
    """One per lane."""
    sram: Annotated[Capacity, POSITIVE]


class Clock(Spec):
    """Sustained clocks of the two kinds of unit."""

    tensor: Annotated[Frequency, POSITIVE]
    vector: Annotated[Frequency, POSITIVE]


class L2(Spec):
    """The cache or buffer shared by all cores."""

    capacity: Annotated[Capacity, POSITIVE]
    bandwidth: Annotated[BytesPerCycle, POSITIVE] | None = None
    """Bytes per tensor-clock cycle over all cores; null where unpublished: not limiting."""


class Memory(Spec):
    """Off-chip memory."""

    technology: str
    bandwidth: Annotated[Bandwidth, POSITIVE]
    capacity: Annotated[Capacity, POSITIVE]


class Link(Spec):
    """Scale-up links of one chip to its neighbours."""

    count: Count
    bandwidth: Annotated[Bandwidth, POSITIVE]
    """One link, one direction."""
    latency: Annotated[Seconds, Field(ge=0, le=1e6)] = 0.0
    header: Annotated[Capacity, Field(ge=0, le=1e6)] = 0.0
    """Header bytes of a packet."""
    payload: Annotated[Capacity, POSITIVE] = 256.0
    """Largest payload of a packet."""


class ScaleOut(Spec):
    """The network between machines, as one chip of them sees it."""

    bandwidth: Annotated[Bandwidth, POSITIVE]
    """One chip, one direction."""
    latency: Annotated[Seconds, Field(ge=0, le=1e6)] = 0.0
    header: Annotated[Capacity, Field(ge=0, le=1e6)] = 0.0
    """Header bytes of a packet."""
    payload: Annotated[Capacity, POSITIVE] = 4096.0
    """Largest payload of a packet."""


class Machine(Spec):
    """The usual machine of a chip: how many, and how they are connected."""

    chips: Count = 8
    topology: Topology = "fully-connected"
    sides: Annotated[tuple[Count, ...], Field(min_length=2, max_length=3)] | None = Field(
        default=None, validate_default=True
    )
    """Chips along each dimension of a torus, the first innermost in the order of ranks."""
    in_network_reduction: bool = False
    """The switch adds what chips send it (NVLink SHARP)."""
    scale_out: ScaleOut | None = None
    """Null: the machine stands alone."""

    @field_validator("sides")
    @classmethod
    def _whole_torus(
        cls, value: tuple[int, ...] | None, info: ValidationInfo
    ) -> tuple[int, ...] | None:
        chips, topology = info.data.get("chips"), info.data.get("topology")
        if value is not None and topology != "torus":
            raise ValueError("null: only a torus has sides")
        if topology == "torus" and (value is None or math.prod(value) != chips):
            raise ValueError(f"two or three sides whose product is {chips} chips")
        return value

    @field_validator("in_network_reduction")
    @classmethod
    def _by_a_switch(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("topology") != "switch":
            raise ValueError("false, unless topology is switch")
        return value


class Chip(Spec):  # noqa: PLW1641 - rates are a mapping: no chip has a hash
    """A compute / memory / interconnect chip.

    Read one with `Chip.load`, cut it with `scaled`.
    """

    name: str
    description: str = ""
    source: str
    process: str | None = None
    cores: Count
    core: Core
    clock: Clock
    l2: L2
    memory: Memory
    link: Link | None = None
    machine: Machine = Machine()
    execution: str
    """The execution block that it uses unless told otherwise."""
    die_area: Annotated[SquareMillimetres, POSITIVE] | None = None
    """All dies together; null where unpublished, and for a cut chip."""
    tdp: Annotated[Watts, POSITIVE] | None = None
    """Null where unpublished, and for a cut chip."""
    floorplan: Floorplan | None = None
    """Null: no area can be modelled."""

    _file: str = PrivateAttr(default="")

    def __eq__(self, other: object) -> bool:
        """Whether both describe the same chip, whatever files they are read from."""
        if not isinstance(other, Chip):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in Chip.model_fields)

    @property
    def where(self) -> str:
        """What messages call it: the user's file, or its name in the library."""
        return self._file or self.name

    @field_validator("floorplan")
    @classmethod
    def _cores_on_the_die(
        cls, value: Floorplan | None, info: ValidationInfo
    ) -> Floorplan | None:
        works = info.data.get("cores", 0)
        # A cut rounds the cores that work, and not those on the die.
        if value is not None and value.cores is not None and value.cores <= works - 1:
            raise ValueError(f"cores on the die: at least the {works} that work")
        return value

    @classmethod
    def load(cls, name: str) -> Chip:
        """Read a chip by library name or path (`ConfigError`, `UnknownNameError`)."""
        data, path = load("chips", name)
        chip = cls.read(data, path)
        if name != path.stem:  # a path
            chip._file = path.name  # noqa: SLF001
        return chip

    @cached_property
    def vector_flops(self) -> float:
        """fp32 vector peak, FLOP/s."""
        unit = self.core.vector_unit
        per_lane = unit.width * unit.flops_per_element
        return self.cores * self.core.lanes * per_lane * self.clock.vector

    def macs_per_cycle(self, format_name: str, accumulate: str = "") -> float:
        """Multiply-accumulates per array cell and cycle for operands of a format.

        Parameters
        ----------
        accumulate : str
            Format of the sums; as ``macs_per_cycle`` has it unless given, or where the
            chip states no other rate.

        Raises
        ------
        ConfigError
            The arrays have no rate for the format, or the chip has no arrays.
        """
        array = self.core.systolic_array
        rates = array.macs_per_cycle if array else {}
        if format_name not in rates:
            raise ConfigError(
                self.where,
                "core.systolic_array.macs_per_cycle",
                format_name,
                ", ".join(sorted(rates)) or "no format: the chip has no systolic array",
            )
        others = array.macs_by_accumulate.get(accumulate, {}) if array else {}
        return others.get(format_name, rates[format_name])

    def tensor_flops(self, format_name: str = "fp16", accumulate: str = "") -> float:
        """Matrix peak for a format, FLOP/s (a multiply-accumulate is 2 FLOP)."""
        array = self.core.systolic_array
        if array is None:
            return self.vector_peak(16) * self.vector_share(format_name)
        cells = self.cores * self.core.lanes * array.rows * array.columns
        return 2.0 * cells * self.macs_per_cycle(format_name, accumulate) * self.clock.tensor

    def vector_peak(self, bits: float) -> float:
        """Vector peak for elements of a width, FLOP/s: 16 bit and less run at one rate."""
        half_rate = self.core.vector_unit.half_rate
        return self.vector_flops * (half_rate if bits <= 16 else 1.0)

    def vector_share(self, format_name: str) -> float:
        """Rate of the vector units for a format over that for 16 bit."""
        return self.vector_peak(get_format(format_name).bits) / self.vector_peak(16)

    @property
    def link_bandwidth(self) -> float:
        """All links of the chip, one direction, bytes/s (0 without links)."""
        return self.link.count * self.link.bandwidth if self.link else 0.0

    def scaled(self, **fractions: float) -> Chip:
        """The chip with resources cut or grown; whole numbers stay whole.

        Parameters
        ----------
        **fractions : float
            Of the keys of `RESOURCES`: 0.6 keeps 60 %. ``cores`` and ``vector_width``
            round to the nearest whole number (at least 1); ``systolic_array`` is the
            share of cells: the longer side shrinks first and the shorter grows first.

        Raises
        ------
        ConfigError
            An unknown resource, or a fraction that is not positive and finite.
        """
        chip = self
        for resource, fraction in fractions.items():
            if resource not in RESOURCES:
                raise ConfigError("scaled", resource, fraction, ", ".join(RESOURCES))
            share = _fraction(resource, fraction)
            chip = _replaced(
                chip, RESOURCES[resource](chip, share) | _die(chip, resource, share)
            )
            chip._file = self._file  # noqa: SLF001
        return chip


def _fraction(resource: str, value: object) -> float:
    if isinstance(value, int | float) and math.isfinite(value) and value > 0:
        return float(value)
    raise ConfigError("scaled", resource, value, "a finite number above 0")


def _die(chip: Chip, resource: str, fraction: float) -> dict[str, Any]:
    """What a cut makes of the die: what was stated of the uncut one no longer holds."""
    if fraction == 1.0:
        return {}
    stated: dict[str, Any] = {"tdp": None}
    if resource not in ("clock", "memory_capacity"):
        stated["die_area"] = None
    if chip.floorplan is None:
        return stated
    links = chip.link.count if chip.link else 0
    return stated | {"floorplan": chip.floorplan.cut(resource, fraction, links)}


def _replaced(spec: Any, update: dict[str, Any]) -> Any:
    """Copy a spec with nested fields replaced (``{"memory": {"bandwidth": …}}``)."""
    changed = {
        key: _replaced(getattr(spec, key), value) if isinstance(value, dict) else value
        for key, value in update.items()
    }
    kept = {name: getattr(spec, name) for name in type(spec).model_fields}
    # Built anew: a copy would keep derived values that are cached, and skip the checks.
    return type(spec).build("scaled", **(kept | changed))


def _whole(value: float) -> int:
    return max(1, round(value))


def _array(chip: Chip, fraction: float) -> dict[str, Any]:
    array = chip.core.systolic_array
    if array is None:
        raise ConfigError(chip.where, "core.systolic_array", None, "a chip that has one")
    sides = [float(array.rows), float(array.columns)]
    while fraction < 1:
        longer, step = int(sides[1] > sides[0]), max(fraction, 0.5)
        sides[longer] *= step
        fraction /= step
    while fraction > 1:
        shorter, step = int(sides[1] <= sides[0]), min(fraction, 2.0)
        sides[shorter] *= step
        fraction /= step
    rows, columns = (_whole(side) for side in sides)
    return {"core": {"systolic_array": {"rows": rows, "columns": columns}}}


def _clock(chip: Chip, f: float) -> dict[str, Any]:
    return {"clock": {"tensor": chip.clock.tensor * f, "vector": chip.clock.vector * f}}


def _links(chip: Chip, f: float) -> dict[str, Any]:
    if chip.link is None:
        raise ConfigError(chip.where, "link", None, "a chip that has links")
    return {"link": {"bandwidth": chip.link.bandwidth * f}}


RESOURCES: dict[str, Callable[[Chip, float], dict[str, Any]]] = {
    "memory_bandwidth": lambda c, f: {"memory": {"bandwidth": c.memory.bandwidth * f}},
    "memory_capacity": lambda c, f: {"memory": {"capacity": c.memory.capacity * f}},
    "cores": lambda c, f: {"cores": _whole(c.cores * f)},
    "systolic_array": _array,
    "vector_width": lambda c, f: {
        "core": {"vector_unit": {"width": _whole(c.core.vector_unit.width * f)}}
    },
    "clock": _clock,
    "l2": lambda c, f: {"l2": {"capacity": c.l2.capacity * f}},
    "sram": lambda c, f: {"core": {"sram": c.core.sram * f}},
    "link_bandwidth": _links,
}
"""Resources that can be cut, and the fields that a fraction of each changes."""
