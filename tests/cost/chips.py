"""Chips that the tests of cost change a field of."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from chipsim.chip import Chip

H100 = Chip.load("spad-h100")


def changed(spec: Any, **fields: Any) -> Any:
    """A description with fields replaced and checked again."""
    kept = {name: getattr(spec, name) for name in type(spec).model_fields}
    return type(spec).build("test", **(kept | fields))


def with_plan(chip: Chip, **fields: Any) -> Chip:
    """A chip with fields of its floor plan replaced."""
    made: Chip = changed(chip, floorplan=changed(chip.floorplan, **fields))
    return made


def with_memory(chip: Chip, technology: str, bandwidth: float, capacity: float) -> Chip:
    """A chip with other memory, whose packages are as few as can be."""
    memory = changed(chip.memory, technology=technology, bandwidth=bandwidth, capacity=capacity)
    sites = type(chip.floorplan.memory)() if chip.floorplan else None
    made: Chip = changed(chip, memory=memory, floorplan=changed(chip.floorplan, memory=sites))
    return made


resources = st.sampled_from(
    ["cores", "systolic_array", "vector_width", "l2", "sram", "link_bandwidth"]
)
"""What takes area of the die besides memory."""
