"""Die edge: memory, links and the host's interface share the perimeter of the package's dies.

A chip that asks for more edge than it has is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipsim.cost.area import Constants
from chipsim.cost.memory import memory_parts
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.chip import Chip

PHY_DEPTH_MM = 2.0
"""How far the PHY of a link or a lane reaches into the die: its area over this is its edge.
An assumption; what it takes is small beside memory."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Millimetres of die edge.

    Attributes
    ----------
    perimeter_mm : float
        Of the dies that have an edge of the package, as squares side by side.
    parts_mm : dict
        What ``memory``, ``links`` and ``host`` take.
    """

    perimeter_mm: float
    parts_mm: dict[str, float]

    @property
    def used_mm(self) -> float:
        """All parts."""
        return sum(self.parts_mm.values())


def edge(chip: Chip, area_mm2: float, count: int = 1, base: Chip | None = None) -> Edge:
    """The edge of a chip and what takes it.

    Parameters
    ----------
    area_mm2 : float
        Of one of the dies at the edge.
    count : int
        Such dies, in a grid as square as it goes.
    base : Chip, optional
        The uncut chip of a cut one, for its memory package (`memory_parts`).

    Examples
    --------
    >>> from chipsim import Chip
    >>> prefill = edge(Chip.load("spad-prefill"), 784.0)
    >>> round(prefill.used_mm), round(prefill.perimeter_mm)
    (107, 112)
    """
    rows = math.isqrt(count)
    columns = math.ceil(count / rows)
    parts = {"memory": memory_parts(chip, base).edge_mm, "links": 0.0, "host": 0.0}
    plan = chip.floorplan
    if plan is not None:
        constants = Constants.load(plan.constants)
        links = plan.link_count if plan.link_count is not None else _links(chip)
        if plan.links is not None:
            parts["links"] = links * constants.links[plan.links].phy / PHY_DEPTH_MM
        if plan.host is not None:
            phy = constants.hosts[plan.host.kind].phy
            parts["host"] = plan.host.lanes * phy / PHY_DEPTH_MM
    return Edge(2 * (rows + columns) * math.sqrt(area_mm2), parts)


def check_edge(chip: Chip, area_mm2: float, count: int = 1, base: Chip | None = None) -> Edge:
    """`edge`, refused where it is not enough (`ConfigError`)."""
    found = edge(chip, area_mm2, count, base)
    if found.used_mm > found.perimeter_mm:
        parts = ", ".join(f"{name} {mm:.1f}" for name, mm in found.parts_mm.items() if mm)
        dies = f"{count} dies of " if count > 1 else ""
        raise ConfigError(
            chip.where,
            "die edge",
            f"{found.used_mm:.1f} mm ({parts})",
            f"at most {found.perimeter_mm:.1f} mm, the perimeter of {dies}{area_mm2:.0f} mm2",
        )
    return found


def _links(chip: Chip) -> float:
    return float(chip.link.count) if chip.link else 0.0
