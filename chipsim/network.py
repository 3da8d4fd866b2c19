"""Collectives on a machine: which chips of a group share a node, and what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.errors import ConfigError, InfeasibleError
from chipsim.estimates import Bound, Estimate
from chipsim.kernels import collective as kernels

if TYPE_CHECKING:
    from chipsim.chip import Chip, Topology
    from chipsim.execution import Execution
    from chipsim.kernels.machine import Record
    from chipsim.ops.collectives import Collective, Pattern

PATTERNS: dict[Pattern, int] = {
    "all_reduce": kernels.ALL_REDUCE,
    "all_gather": kernels.ALL_GATHER,
    "reduce_scatter": kernels.REDUCE_SCATTER,
    "all_to_all": kernels.ALL_TO_ALL,
    "send_recv": kernels.SEND_RECV,
}


TOPOLOGIES: dict[Topology, int] = {
    "fully-connected": kernels.FULLY_CONNECTED,
    "switch": kernels.FULLY_CONNECTED,
    "ring": kernels.RING,
    "torus": kernels.TORUS,
}


def group_sides(chip: Chip, local: int, stride: int) -> kernels.Sides:
    """The chips of a group in one machine, along the dimensions of its torus.

    Ranks run along the first side first. A part of a side is taken to close to a ring of its
    own; what fits no side so is taken as one ring.
    """
    sides = chip.machine.sides
    if sides is None:
        return kernels.Sides(local, 1, 1, 1)
    found, left, apart = [1, 1, 1], local, stride
    for dimension, side in enumerate(sides):
        if apart >= side:
            apart = -(-apart // side)
            continue
        room = side // apart
        found[dimension] = max(n for n in range(1, min(left, room) + 1) if left % n == 0)
        left, apart = left // found[dimension], 1
    found[0] *= left
    return kernels.Sides(found[0], found[1], found[2], len(sides))


def placed(chip: Chip, chips: int, stride: int) -> tuple[int, int]:
    """Chips of a group in each machine, and machines.

    Ranks fill machines in their order, so members that stand ``stride`` apart share a machine
    while it has room; where a machine would hold an odd part, it holds the next smaller
    equal one.

    Raises
    ------
    ConfigError
        Several chips without links.
    InfeasibleError
        Several machines without a network between them.
    """
    room = max(1, chip.machine.chips // stride)
    local = max(part for part in range(1, min(chips, room) + 1) if chips % part == 0)
    if local > 1 and chip.link is None:
        raise ConfigError(chip.where, "link", None, "links, to run on several chips")
    if local < chips and chip.machine.scale_out is None:
        raise InfeasibleError(
            f"{chip.where}: an exchange over {chips} chips"
            + (f" that stand {stride} apart" if stride > 1 else "")
            + f"; its machine has {chip.machine.chips}, and no scale_out to others"
        )
    return local, chips // local


def collective_estimate(
    op: Collective, chip: Chip, execution: Execution, record: Record
) -> Estimate:
    """Latency of a collective by its fastest algorithm.

    Raises
    ------
    ConfigError, InfeasibleError
        The machine lacks the links or the chips.
    """
    local, nodes = placed(chip, op.chips, op.stride)
    topology = TOPOLOGIES[chip.machine.topology]
    if chip.machine.in_network_reduction:
        topology = kernels.REDUCING_SWITCH
    sides = group_sides(chip, local, op.stride)
    link, algorithm = kernels.collective_seconds(
        record, PATTERNS[op.pattern], float(op.bytes), local, nodes, topology, sides
    )
    launch = execution.launch.collective if op.chips > 1 else 0.0
    bound: Bound = "overhead" if launch > link else "link"
    mapping = {} if op.chips == 1 else {"algorithm": kernels.ALGORITHMS[algorithm]}
    return Estimate(
        op,
        launch + link,
        bound,
        0.0,
        op.sent,
        least_seconds(op, chip, local, nodes),
        {"launch": launch, "link": link},
        mapping | ({"chips_per_machine": local, "machines": nodes} if nodes > 1 else {}),
    )


def least_seconds(op: Collective, chip: Chip, local: int, nodes: int) -> float:
    """What no algorithm can beat, seconds: bytes that must pass a port over its bandwidth.

    A chip sends `Collective.sent` through all its ports together (a switch that adds takes
    the message once and gives the sum back meanwhile); and a machine's chips
    send ``(nodes - 1) / nodes`` of what their group holds out through theirs.
    """
    if op.chips == 1:
        return 0.0
    out = chip.machine.scale_out
    if nodes == 1 or out is None:
        adds = chip.machine.in_network_reduction and op.pattern == "all_reduce"
        return (min(op.sent, op.bytes) if adds else op.sent) / chip.link_bandwidth
    if op.pattern == "send_recv":
        return op.bytes / out.bandwidth
    leaving = (nodes - 1) / nodes * op.bytes
    if op.pattern != "all_to_all":
        leaving *= (2.0 if op.pattern == "all_reduce" else 1.0) / local
    ports = (chip.link_bandwidth if local > 1 else 0.0) + out.bandwidth
    return max(op.sent / ports, leaving / out.bandwidth)
