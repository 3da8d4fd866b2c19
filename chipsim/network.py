"""Collectives on a machine: which chips of a group share a node, and what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.errors import ConfigError, InfeasibleError
from chipsim.estimates import Bound, Estimate
from chipsim.kernels import collective as kernels

if TYPE_CHECKING:
    from chipsim.chip import Chip
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
        raise ConfigError(chip.name, "link", None, "links, to run on several chips")
    if local < chips and chip.machine.scale_out is None:
        raise InfeasibleError(
            f"{chip.name}: an exchange over {chips} chips"
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
    topology = kernels.RING if chip.machine.topology == "ring" else kernels.FULLY_CONNECTED
    link, algorithm = kernels.collective_seconds(
        record, PATTERNS[op.pattern], float(op.bytes), local, nodes, topology
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

    A chip sends `Collective.sent` through all its ports together; and a machine's chips
    send ``(nodes - 1) / nodes`` of what their group holds out through theirs.
    """
    if op.chips == 1:
        return 0.0
    out = chip.machine.scale_out
    if nodes == 1 or out is None:
        return op.sent / chip.link_bandwidth
    if op.pattern == "send_recv":
        return op.bytes / out.bandwidth
    leaving = (nodes - 1) / nodes * op.bytes
    if op.pattern != "all_to_all":
        leaving *= (2.0 if op.pattern == "all_reduce" else 1.0) / local
    ports = (chip.link_bandwidth if local > 1 else 0.0) + out.bandwidth
    return max(op.sent / ports, leaving / out.bandwidth)
