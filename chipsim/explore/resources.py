"""Resources that a cut takes from a chip: values and fractions, read and checked.

text -> values in SI -> fractions of the uncut chip -> steps that the chip really reaches
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from chipsim.chip import RESOURCES, Chip
from chipsim.errors import ConfigError, UnknownNameError
from chipsim.units import parse, with_unit

MOST_POINTS = 10_000
"""Points of one curve or grid."""

KINDS = {
    "memory_bandwidth": "bandwidth",
    "memory_capacity": "capacity",
    "clock": "frequency",
    "l2": "capacity",
    "sram": "capacity",
    "link_bandwidth": "bandwidth",
}
"""Resources with a unit, and its kind; the others are counts."""

_VALUES: dict[str, Callable[[Chip], float]] = {
    "memory_bandwidth": lambda chip: chip.memory.bandwidth,
    "memory_capacity": lambda chip: chip.memory.capacity,
    "cores": lambda chip: float(chip.cores),
    "systolic_array": lambda chip: float(math.prod(array_sides(chip))),
    "vector_width": lambda chip: float(chip.core.vector_unit.width),
    "clock": lambda chip: chip.clock.tensor,
    "l2": lambda chip: chip.l2.capacity,
    "sram": lambda chip: chip.core.sram,
    "link_bandwidth": lambda chip: chip.link_bandwidth,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One cut of one resource.

    Attributes
    ----------
    asked : float
        Fraction of the uncut chip, as `Chip.scaled` takes it.
    value, fraction : float
        What the cut chip really has, in SI, and as a part of the uncut chip.
    """

    resource: str
    asked: float
    value: float
    fraction: float


@dataclass(frozen=True, slots=True)
class Cut:
    """A resource and how much of it is left: give ``fractions`` or ``values``.

    Attributes
    ----------
    resource : str
        A key of `chipsim.chip.RESOURCES`.
    fractions : sequence of float or str, optional
        Parts of the uncut chip; text as `parse_fractions` reads it.
    values : sequence of float or str, or str, optional
        Numbers in SI, or text with units as `parse_values` reads it.
    """

    resource: str
    fractions: Sequence[float] | str | None = None
    values: Sequence[float | str] | str | None = None

    def steps(self, chip: Chip) -> list[Step]:
        """What is left of the resource at each point.

        Raises
        ------
        ConfigError, UnknownNameError
            No such resource, or a value or fraction that cannot be.
        """
        base = resource_value(chip, self.resource)
        if (self.fractions is None) == (self.values is None):
            given = None if self.values is None else "both"
            raise ConfigError("cuts", self.resource, given, "fractions or values, one of them")
        if self.values is not None:
            values = _values(chip, self.resource, self.values)
            return [_step(chip, self.resource, value / base, value) for value in values]
        if isinstance(self.fractions, str):
            asked = parse_fractions(self.fractions)
        else:
            asked = _checked("--fractions", "", self.fractions or [], "a number above 0")
        return [_step(chip, self.resource, part, part * base) for part in asked]


def resource_value(chip: Chip, resource: str) -> float:
    """How much of a resource a chip has.

    Returns
    -------
    float
        SI; cores and vector width (fp32 elements of one lane) are counts,
        ``systolic_array`` is the cells of one array, ``clock`` is the tensor clock and
        ``link_bandwidth`` all links of the chip in one direction.

    Raises
    ------
    UnknownNameError
        No such resource.
    ConfigError
        The chip has no such part.
    """
    if resource not in RESOURCES:
        raise UnknownNameError("resource", str(resource), RESOURCES)
    if resource == "link_bandwidth" and chip.link is None:
        raise ConfigError(chip.where, "link", None, "a chip that has links")
    return _VALUES[resource](chip)


def array_sides(chip: Chip) -> tuple[int, int]:
    """Rows and columns of the chip's systolic arrays.

    Raises
    ------
    ConfigError
        It has none.
    """
    array = chip.core.systolic_array
    if array is None:
        raise ConfigError(chip.where, "core.systolic_array", None, "a chip that has one")
    return array.rows, array.columns


def parse_fractions(text: str) -> list[float]:
    """Read ``"1, 0.9, 0.8"``.

    Raises
    ------
    ConfigError
        Names ``--fractions``: empty, not a number, zero, negative, NaN, infinite, or
        more than `MOST_POINTS`.
    """
    allowed = "numbers above 0 with commas between them, e.g. 1, 0.8, 0.6"
    read = [_number(piece) for piece in _pieces("--fractions", "", text, allowed)]
    return _checked("--fractions", "", read, allowed, text.split(","))


def parse_values(chip: Chip, resource: str, text: str) -> list[float]:
    """Read what is left of a resource, e.g. ``"1000 GB/s, 1500 GB/s"``.

    Parameters
    ----------
    text : str
        Quantities with units; whole numbers for ``cores`` and ``vector_width``; for
        ``systolic_array`` cells, or a shape such as ``16x16`` that a cut reaches.

    Returns
    -------
    list of float
        SI, as `resource_value` counts.

    Raises
    ------
    ConfigError, UnknownNameError
        Names ``--values`` and the resource: empty, wrong unit, zero, negative, NaN,
        infinite, a shape that no cut reaches, or more than `MOST_POINTS`.
    """
    resource_value(chip, resource)
    allowed = _allowed(resource)
    pieces = _pieces("--values", resource, text, allowed)
    read = [_value(chip, resource, piece) for piece in pieces]
    return _checked("--values", resource, read, allowed, pieces)


def _values(chip: Chip, resource: str, values: Sequence[float | str] | str) -> list[float]:
    if isinstance(values, str):
        return parse_values(chip, resource, values)
    read = [
        _value(chip, resource, value) if isinstance(value, str) else value for value in values
    ]
    return _checked("--values", resource, read, _allowed(resource), values)


def _allowed(resource: str) -> str:
    if resource in KINDS:
        kind = KINDS[resource]
        return with_unit(kind, " above 0")
    if resource == "systolic_array":
        return "cells or a shape, e.g. 256 or 16x16"
    return "a whole number from 1"


def _value(chip: Chip, resource: str, piece: str) -> float:
    """One value in SI; NaN where it cannot be read."""
    if resource in KINDS:
        try:
            return parse(piece, KINDS[resource])
        except ValueError:
            return math.nan
    if resource == "systolic_array" and "x" in piece:
        return _shape_cells(chip, piece)
    return float(piece) if piece.isascii() and piece.isdecimal() else math.nan


def _shape_cells(chip: Chip, piece: str) -> float:
    """Cells of a shape ``rows x columns``, if a cut of the chip has that shape."""
    sides = [_value(chip, "cores", side.strip()) for side in piece.split("x")]
    if len(sides) != 2 or not all(side >= 1 for side in sides):
        return math.nan
    cells = math.prod(sides)
    reached = array_sides(chip.scaled(systolic_array=cells / math.prod(array_sides(chip))))
    if sorted(reached) != sorted(sides):
        shown = "x".join(str(side) for side in reached)
        raise ConfigError("--values", "systolic_array", piece, f"{shown} for as many cells")
    return cells


def _step(chip: Chip, resource: str, fraction: float, value: float) -> Step:
    """What a fraction really leaves: whole units stay whole."""
    cut = chip.scaled(**{resource: fraction})
    if resource in KINDS:
        return Step(resource, fraction, value, fraction)
    reached = resource_value(cut, resource)
    return Step(resource, fraction, reached, reached / resource_value(chip, resource))


def _pieces(where: str, field: str, text: str, allowed: str) -> list[str]:
    pieces = [piece.strip() for piece in text.split(",")]
    if not all(pieces):
        raise ConfigError(where, field, text, allowed)
    return pieces


def _number(text: str) -> float:
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _checked(
    where: str,
    field: str,
    numbers: Sequence[object],
    allowed: str,
    shown: Sequence[object] = (),
) -> list[float]:
    """Numbers above 0, finite, at least one and not too many."""
    if not 1 <= len(numbers) <= MOST_POINTS:
        raise ConfigError(where, field, f"{len(numbers)} points", f"1 to {MOST_POINTS}")
    checked = []
    for index, number in enumerate(numbers):
        real = isinstance(number, int | float) and not isinstance(number, bool)
        value = float(cast(float, number)) if real else math.nan
        if not 0 < value < math.inf:
            raise ConfigError(where, field, shown[index] if shown else number, allowed)
        checked.append(value)
    return checked
