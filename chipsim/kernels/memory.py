"""How traffic to and from memory meets the cores' work: together, behind it, or not at all."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from chipsim.kernels.jit import inline

if TYPE_CHECKING:
    from chipsim.kernels.machine import Record


@inline
def joined_bandwidth(machine: Record, active: float) -> float:
    """Memory bandwidth and the draw of the active cores, bytes/s.

    Seconds per byte join by their root of squares, or with the exponent ``join``.
    """
    draw = active * machine.core_draw
    if math.isinf(draw):
        return machine.memory_bandwidth
    ratio = machine.memory_bandwidth / draw
    if math.isinf(machine.join):
        return machine.memory_bandwidth / math.sqrt(1.0 + ratio * ratio)
    return float(machine.memory_bandwidth / (1.0 + ratio**machine.join) ** (1.0 / machine.join))


@inline
def covered(machine: Record, core: float, traffic: float) -> float:
    """Seconds of ``traffic`` that run behind ``core``: what the two take apart less what they
    take together, (core^p + traffic^p)^(1/p); for the join p = inf their minimum.
    """
    longer, shorter = max(core, traffic), min(core, traffic)
    if math.isinf(machine.join) or shorter == 0.0:
        return shorter
    norm = float((1.0 + (shorter / longer) ** machine.join) ** (1.0 / machine.join))
    return max(0.0, shorter - longer * (norm - 1.0))


@inline
def hidden_seconds(
    machine: Record, core: float, weights: float, activations: float, stores: float
) -> float:
    """Traffic that runs behind compute: weights first, then activations, then stores.

    Each takes what is left of the core's time, and its overlap factor says which share of
    that is really hidden. With all factors 1 and no join the whole is
    ``min(core, traffic)``.
    """
    behind = covered(machine, core, weights)
    hidden = machine.overlap_weights * behind
    core -= behind
    behind = covered(machine, core, activations)
    hidden += machine.overlap_activations * behind
    core -= behind
    return hidden + machine.overlap_stores * covered(machine, core, stores)


@inline
def warm_share(machine: Record, footprint: float) -> float:
    """Part of the activations and results of a product that L2 holds: all of them where the
    product fills half of it, none where it fills it.
    """
    if machine.warm == 0.0:
        return 0.0
    return min(1.0, max(0.0, 2.0 * (1.0 - footprint / machine.l2_capacity)))
