"""Resources of a chip as axes: their names, their units, and values to print."""

from __future__ import annotations

from dataclasses import dataclass

from chipsim.present.quantities import digits, plain


@dataclass(frozen=True, slots=True)
class Axis:
    """How a resource is drawn.

    Attributes
    ----------
    title : str
        Name and unit.
    unit : str
        Behind a value.
    scale : float
        SI per unit.
    """

    name: str
    unit: str
    scale: float = 1.0

    @property
    def title(self) -> str:
        """Name and unit of the axis."""
        return f"{self.name} ({self.unit})" if self.scale != 1.0 else self.name

    @property
    def inside(self) -> str:
        """The name inside a sentence."""
        name = self.name.split(",")[0]
        return name if name[:2].isupper() or name[1].isdigit() else name[0].lower() + name[1:]

    def shown(self, value: float) -> float:
        """An SI value in the axis's unit."""
        return value / self.scale

    def text(self, value: float) -> str:
        """An SI value with its unit."""
        number = value / self.scale
        whole = abs(number - round(number)) < 1e-6 * max(1.0, abs(number))
        return f"{plain(round(number)) if whole else digits(number)} {self.unit}"


AXES = {
    "memory_bandwidth": Axis("Memory bandwidth", "GB/s", 1e9),
    "memory_capacity": Axis("Memory capacity", "GiB", 2.0**30),
    "cores": Axis("Cores", "cores"),
    "systolic_array": Axis("Cells of one systolic array", "cells"),
    "vector_width": Axis("Vector width of a lane, fp32 elements", "wide"),
    "clock": Axis("Tensor clock", "GHz", 1e9),
    "l2": Axis("L2 capacity", "MiB", 2.0**20),
    "sram": Axis("SRAM of a core", "KiB", 2.0**10),
    "link_bandwidth": Axis("Link bandwidth, one direction", "GB/s", 1e9),
}
"""How each resource that can be cut is drawn."""
