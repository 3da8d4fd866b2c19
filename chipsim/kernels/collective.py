"""Collectives over the scale-up links of one node, and the scale-out links between nodes.

All-reduce is a reduce-scatter and an all-gather of ``bytes / chips`` shares. Each packet
carries ``payload`` bytes and a header. A group over several nodes has ``local`` chips in
each; two algorithms are costed and the faster is taken:

- direct: every pair exchanges its share, near ones over the links of the node while far ones
  go over scale-out, so ``max`` of the two;
- hierarchical: one step among the chips of a node and one among the chips of the same place
  in every node, one after the other, so a share crosses scale-out once per node.

Scale-out is a network that never blocks: a chip is held by its own port. Sources: ring bound
of Patarasuk & Yuan (2009); direct exchange over a full mesh and packet overhead as in
LLMCompass (ISCA 2024); the two levels as in Horovod's hierarchical all-reduce (2018).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.kernels.jit import inline, kernel

if TYPE_CHECKING:
    from chipsim.kernels.machine import Record

FULLY_CONNECTED, RING = 0, 1
ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, SEND_RECV = 0, 1, 2, 3, 4
"""Patterns; all-gather and reduce-scatter are mirror images and cost the same."""
DIRECT, AROUND, HIERARCHICAL = 0, 1, 2
ALGORITHMS = ("direct", "ring", "hierarchical")
"""Names of what `collective_seconds` chose, by number."""


@inline
def wire_bytes(machine: Record, share: float) -> float:
    """Bytes on the wire for a message: payload and a header for each packet."""
    return float(share + np.ceil(share / machine.link_payload) * machine.link_header)


@kernel
def all_reduce_seconds(machine: Record, message: float, chips: int, topology: int) -> float:
    """Time of an all-reduce inside a node, launch left out.

    Parameters
    ----------
    machine : record of `MACHINE`
    message : float
        Bytes of the buffer on each chip.
    chips : int
        Chips taking part; one needs no time.
    topology : int
        ``FULLY_CONNECTED``: every share travels to its owner over its own links, 2 steps.
        ``RING``: 2 (chips - 1) steps, half of the message each way round.

    Returns
    -------
    float
        Seconds, at least ``2 (chips - 1) / chips * bytes / bandwidth``.
    """
    if chips <= 1:
        return 0.0
    share = wire_bytes(machine, message / chips)
    rounds = 2.0 * (chips - 1)
    transfer = rounds * share / machine.link_bandwidth
    if topology == RING:
        return rounds * machine.link_latency + transfer
    return 2.0 * machine.link_latency + transfer


@inline
def near_seconds(
    machine: Record, share: float, chips: int, topology: int, to_all: bool
) -> float:
    """Every chip of a node sends one share to each other one, or passes it round a ring.

    ``to_all``: the shares differ by receiver, so around a ring each travels its own way of
    ``chips / 4`` links on average instead of being copied along.
    """
    if chips <= 1:
        return 0.0
    steps, shares = 1.0, chips - 1.0
    if topology == RING:
        steps = chips - 1.0
        if to_all:
            steps, shares = float(chips // 2), float(chips * chips // 4)
    sent = shares * wire_bytes(machine, share)
    return steps * machine.link_latency + sent / machine.link_bandwidth


@inline
def far_seconds(machine: Record, share: float, peers: int) -> float:
    """Every chip sends one share to each of ``peers`` chips of other nodes."""
    if peers <= 0:
        return 0.0
    sent = float(share + np.ceil(share / machine.out_payload) * machine.out_header) * peers
    return machine.out_latency + sent / machine.out_bandwidth


@inline
def inside_seconds(
    machine: Record, pattern: int, message: float, chips: int, topology: int
) -> tuple[float, int]:
    """A collective inside one node, and its algorithm."""
    algorithm = AROUND if topology == RING else DIRECT
    if pattern == ALL_REDUCE:
        return all_reduce_seconds(machine, message, chips, topology), algorithm
    to_all = pattern == ALL_TO_ALL
    return near_seconds(machine, message / chips, chips, topology, to_all), algorithm


@inline
def two_levels(
    machine: Record, pattern: int, message: float, local: int, nodes: int, topology: int
) -> float:
    """One step inside the nodes and one between them, one after the other."""
    to_all = pattern == ALL_TO_ALL
    inside = near_seconds(machine, message / local, local, topology, to_all)
    part = message if to_all else message / local
    return inside + far_seconds(machine, part / nodes, nodes - 1)


@kernel
def collective_seconds(
    machine: Record, pattern: int, message: float, local: int, nodes: int, topology: int
) -> tuple[float, int]:
    """Time of a collective by its fastest algorithm, launch left out.

    Parameters
    ----------
    machine : record of `MACHINE`
    pattern : int
        ``ALL_REDUCE`` ...; ``SEND_RECV`` crosses nodes if there are several.
    message : float
        Bytes: the whole tensor on each chip; of all-to-all what a chip sends, its own share
        included; of send/recv what is sent.
    local, nodes : int
        Chips of the group in each node, and nodes.
    topology : int
        ``FULLY_CONNECTED`` or ``RING``, of a node.

    Returns
    -------
    tuple of (float, int)
        Seconds, and the algorithm's place in `ALGORITHMS`.
    """
    chips = local * nodes
    if chips <= 1:
        return 0.0, DIRECT
    if pattern == SEND_RECV and nodes == 1:
        return near_seconds(machine, message, 2, FULLY_CONNECTED, True), DIRECT
    if pattern == SEND_RECV:
        return far_seconds(machine, message, 1), DIRECT
    if nodes == 1:
        return inside_seconds(machine, pattern, message, chips, topology)
    near = near_seconds(machine, message / chips, local, topology, pattern == ALL_TO_ALL)
    direct = max(near, far_seconds(machine, message / chips, chips - local))
    levels = two_levels(machine, pattern, message, local, nodes, topology)
    times = 2.0 if pattern == ALL_REDUCE else 1.0
    return times * min(direct, levels), HIERARCHICAL if levels < direct else DIRECT
