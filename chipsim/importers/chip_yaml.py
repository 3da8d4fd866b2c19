"""Write a chip as YAML with units, such that reading it back gives the same chip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from chipsim.units import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chipsim.chip import Chip

KINDS = {
    "core.sram": "capacity",
    "clock.tensor": "frequency",
    "clock.vector": "frequency",
    "l2.capacity": "capacity",
    "l2.bandwidth": "bytes_per_cycle",
    "memory.bandwidth": "bandwidth",
    "memory.capacity": "capacity",
    "link.bandwidth": "bandwidth",
    "link.latency": "time",
    "link.header": "capacity",
    "link.payload": "capacity",
    "machine.scale_out.bandwidth": "bandwidth",
    "machine.scale_out.latency": "time",
    "machine.scale_out.header": "capacity",
    "machine.scale_out.payload": "capacity",
    "die_area": "area",
    "tdp": "power",
    "floorplan.l2": "capacity",
    "floorplan.l2_slice": "capacity",
    "floorplan.other": "area",
    "floorplan.memory.package.bandwidth": "bandwidth",
    "floorplan.memory.package.capacity": "capacity",
    "floorplan.memory.package.bought": "capacity",
}
"""Fields of a chip that carry a unit; `kinds` has those of its dies too."""

SCALES: dict[str, list[tuple[str, float]]] = {
    # kind: units to choose from, the SI one last
    "bandwidth": [("GB/s", 1e9), ("TB/s", 1e12), ("GiB/s", 2.0**30), ("B/s", 1.0)],
    "capacity": [("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10), ("GB", 1e9), ("B", 1.0)],
    "frequency": [("GHz", 1e9), ("MHz", 1e6), ("Hz", 1.0)],
    "time": [("us", 1e-6), ("ns", 1e-9), ("s", 1.0)],
    "power": [("W", 1.0)],
    "bytes_per_cycle": [("B/cycle", 1.0)],
    "area": [("mm^2", 1.0)],
}


def kinds(chip: Chip) -> dict[str, str]:
    """Fields of this chip that carry a unit."""
    dies = chip.floorplan.dies if chip.floorplan else {}
    return KINDS | {f"floorplan.dies.{name}.area": "area" for name in dies}


def to_yaml(chip: Chip) -> str:
    """A chip as a YAML file; `Chip.load` of it gives an equal chip.

    Quantities are written in the unit that makes them shortest and that reads back to the
    same number.
    """
    content = _written(chip.model_dump(), "", kinds(chip))
    text: str = yaml.safe_dump(content, sort_keys=False, width=92)
    title = "".join(c for c in chip.description or chip.name if c.isprintable())
    return f"# {title}, written by chipsim; source: see below.\n{text}"


def quantity_text(value: float, kind: str) -> str:
    """The shortest text with a unit that `chipsim.units.parse` reads back exactly."""
    exact = [text for text in _candidates(value, kind) if parse(text, kind) == value]
    return min(exact, key=len)


def _candidates(value: float, kind: str) -> Iterator[str]:
    for unit, scale in SCALES[kind]:
        for digits in (12, 17):
            yield f"{value / scale:.{digits}g} {unit}"


def _written(fields: dict[str, Any], prefix: str, units: dict[str, str]) -> dict[str, Any]:
    """Fields as they stand in a file: units on, absent options left out."""
    out: dict[str, Any] = {}
    for key, value in fields.items():
        path = f"{prefix}{key}"
        if value == {}:
            continue
        if isinstance(value, dict) and path != "core.systolic_array.macs_per_cycle":
            out[key] = _written(value, f"{path}.", units)
        elif value is not None and path in units:
            out[key] = quantity_text(value, units[path])
        elif value is not None or path == "core.systolic_array":
            out[key] = list(value) if isinstance(value, tuple) else value
    return out
