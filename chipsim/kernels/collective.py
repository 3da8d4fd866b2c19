"""Collectives over the scale-up links of one node, and the scale-out links between nodes.

All-reduce is a reduce-scatter and an all-gather of ``bytes / chips`` shares. Each packet
carries ``payload`` bytes and a header. A group over several nodes has ``local`` chips in
each; two algorithms are costed and the faster is taken:

- direct: every pair exchanges its share, near ones over the links of the node while far ones
  go over scale-out, so ``max`` of the two;
- hierarchical: one step among the chips of a node and one among the chips of the same place
  in every node, one after the other, so a share crosses scale-out once per node.

Inside a machine chips are fully connected or on a switch (all links of a chip serve any
pattern), or in a torus of two or three dimensions, of which a ring has one. Each dimension of
a torus has an equal part of a chip's links. A message goes through them whole, or cut into a
part for each: part r takes them in the order r, r + 1, ..., so all links are busy in a step. A
switch may add what chips send it; then an all-reduce is one way up and one down.

Where chips reach each other directly a block may name the library that runs there. NCCL goes
around a ring of the chips and picks the fastest of three protocols (`PROTOCOLS`), each a start,
a time per step and a share of the links' rate; an all-to-all goes from pair to pair
(`PAIRWISE`), with the protocol for few bytes only while a share is small. Out of place, a
chip's own share is copied too.

Scale-out is a network that never blocks: a chip is held by its own port. Sources: ring bound
of Patarasuk & Yuan (2009); rings per dimension of Jain & Sabharwal, Optimal bucket algorithms
for large MPI collectives on torus interconnects (ICS 2010); direct exchange over a full mesh
and packet overhead as in LLMCompass (ISCA 2024); the two levels as in Horovod's hierarchical
all-reduce (2018); the protocols of NCCL as its authors and Hu et al., "Demystifying NCCL"
(2025), describe them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from chipsim.kernels.jit import inline, kernel

if TYPE_CHECKING:
    from chipsim.kernels.machine import Record

FULLY_CONNECTED, RING, TORUS, REDUCING_SWITCH = 0, 1, 2, 3
ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, SEND_RECV = 0, 1, 2, 3, 4
"""Patterns; all-gather and reduce-scatter are mirror images and cost the same."""
DIRECT, AROUND, HIERARCHICAL, PER_DIMENSION, IN_NETWORK = 0, 1, 2, 3, 4
ALGORITHMS = ("direct", "ring", "hierarchical", "ring per dimension", "in the switch")
"""Names of what `collective_seconds` chose, by number."""


PROTOCOLS = np.array(
    [
        [0.0, 1.0, 0.034],  # LL: 8 bytes with a flag each, few channels
        [0.09, 1.0, 0.48],  # LL128: 120 of 128 bytes are payload
        [1.0, 1.5, 1.0],  # Simple: memory fences around large chunks
    ]
)
"""NCCL's protocols around a ring: start over that of Simple (``link_start``), time of a step
over ``link_hop``, share of the links' rate. Fitted once to A100, H100, H200 and B200 together
(nccl-tests, NCCL 2.27): facts of the library, the same on every chip."""
PAIRWISE = np.array([[0.0, 3.0, 0.07], [0.35, 4.5, 1.0]])
"""As `PROTOCOLS`, of an exchange from pair to pair: LL and Simple, all pairs in one step."""
PAIRWISE_LL = 16384.0
"""Bytes of a share up to which pairs use LL (NCCL_P2P_LL_THRESHOLD)."""
OWN_SHARE = 0.5
"""Time of copying a chip's own share, over that of sending it: out of place."""


@inline
def around_seconds(machine: Record, steps: float, sent: float) -> float:
    """A ring of NCCL by its fastest protocol; ``sent`` bytes on the wire."""
    best = np.inf
    for i in range(len(PROTOCOLS)):
        start, hop, rate = PROTOCOLS[i, 0], PROTOCOLS[i, 1], PROTOCOLS[i, 2]
        moved = sent / (rate * machine.link_bandwidth)
        step = hop * machine.link_hop + machine.link_latency
        best = min(best, start * machine.link_start + steps * step + moved)
    return best


@inline
def pairwise_seconds(machine: Record, share: float, sent: float) -> float:
    """An all-to-all of NCCL: LL while a share is small, or Simple."""
    best = np.inf
    for i in range(len(PAIRWISE)):
        start, hop, rate = PAIRWISE[i, 0], PAIRWISE[i, 1], PAIRWISE[i, 2]
        moved = sent / (rate * machine.link_bandwidth)
        step = hop * machine.link_hop + machine.link_latency
        if i == 1 or share <= PAIRWISE_LL:
            best = min(best, start * machine.link_start + step + moved)
    return best


@inline
def wire_bytes(machine: Record, share: float) -> float:
    """Bytes on the wire for a message: payload and a header for each packet."""
    return float(share + np.ceil(share / machine.link_payload) * machine.link_header)


class Sides(NamedTuple):
    """A group's chips along the dimensions of a torus, and how many the machine has of them."""

    x: int
    y: int
    z: int
    dimensions: int


@inline
def side_of(sides: Sides, dimension: int) -> int:
    """Chips along a dimension, counted round and round."""
    dimension %= sides.dimensions
    if dimension == 0:
        return sides.x
    return sides.y if dimension == 1 else sides.z


@kernel
def all_reduce_seconds(
    machine: Record, message: float, chips: int, topology: int, sides: Sides
) -> float:
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
        ``RING``: 2 (chips - 1) steps, half of the message each way round. ``TORUS``: such
        a ring along each of ``sides``. ``REDUCING_SWITCH``: the message up, the sum down.

    Returns
    -------
    float
        Seconds, at least ``2 (chips - 1) / chips * bytes / bandwidth`` where chips add.
    """
    if chips <= 1:
        return 0.0
    if topology == TORUS:
        return 2.0 * torus_seconds(machine, message / chips, sides)
    share = wire_bytes(machine, message / chips)
    rounds = 2.0 * (chips - 1)
    transfer = rounds * share / machine.link_bandwidth
    if topology == RING:
        return rounds * machine.link_latency + transfer
    up = np.inf
    if topology == REDUCING_SWITCH:  # both ways at once; two chips just exchange
        up = wire_bytes(machine, message) / machine.link_bandwidth
    if machine.nccl == 1.0:
        around = around_seconds(machine, rounds, (rounds + OWN_SHARE) * share)
        return min(around, machine.link_start + 2.0 * machine.link_latency + up)
    return 2.0 * machine.link_latency + min(transfer, up)


@inline
def torus_seconds(machine: Record, share: float, sides: Sides) -> float:
    """All-gather (or reduce-scatter) over a torus: a ring along each dimension in turn.

    The message goes whole, or in a part for each dimension. In step i part r is reduced
    along ``d = side(r + i)``: a chip passes on ``d - 1`` of the d pieces that it has; the
    slowest part of a step decides. An all-gather is the mirror image.
    """
    dimensions, best = sides.dimensions, np.inf
    bandwidth = machine.link_bandwidth / dimensions
    for parts in (1, dimensions):
        total = 0.0
        for step in range(dimensions):
            slowest = 0.0
            for part in range(parts):
                left = 1.0  # shares in a piece: those of the dimensions still to go
                for later in range(step + 1, dimensions):
                    left *= side_of(sides, part + later)
                turns = side_of(sides, part + step) - 1.0
                sent = turns * wire_bytes(machine, share * left / parts)
                slowest = max(slowest, turns * machine.link_latency + sent / bandwidth)
            total += slowest
        best = min(best, total)
    return best


@inline
def torus_exchange_seconds(machine: Record, share: float, chips: int, sides: Sides) -> float:
    """All-to-all over a torus: shares go dimension by dimension, the fullest one decides.

    Along a ring of d chips a share travels ``floor(d^2 / 4) / d`` links on average, and each
    chip sends ``chips`` shares, its own included.
    """
    slowest, hops = 0.0, 0
    for dimension in range(sides.dimensions):
        side = side_of(sides, dimension)
        links = float(side * side // 4) / side * chips
        sent = links * wire_bytes(machine, share) * sides.dimensions
        slowest = max(slowest, sent / machine.link_bandwidth)
        hops += side // 2
    return hops * machine.link_latency + slowest


@inline
def near_seconds(
    machine: Record, share: float, chips: int, topology: int, to_all: bool, sides: Sides
) -> float:
    """Every chip of a node sends one share to each other one, or passes it round a ring.

    ``to_all``: the shares differ by receiver, so around a ring each travels its own way of
    ``chips / 4`` links on average instead of being copied along.
    """
    if chips <= 1:
        return 0.0
    if topology == TORUS and to_all:
        return torus_exchange_seconds(machine, share, chips, sides)
    if topology == TORUS:
        return torus_seconds(machine, share, sides)
    steps, shares = 1.0, chips - 1.0
    if machine.nccl == 1.0 and topology != RING:
        sent = (shares + OWN_SHARE) * wire_bytes(machine, share)
        if to_all:
            return pairwise_seconds(machine, share, sent)
        return around_seconds(machine, shares, sent)
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
    machine: Record, pattern: int, message: float, chips: int, topology: int, sides: Sides
) -> tuple[float, int]:
    """A collective inside one node, and its algorithm."""
    algorithm = DIRECT
    if topology == RING:
        algorithm = AROUND
    elif topology == TORUS:
        algorithm = PER_DIMENSION
    elif topology == REDUCING_SWITCH and pattern == ALL_REDUCE and chips > 2:
        algorithm = IN_NETWORK
    if pattern == ALL_REDUCE:
        return all_reduce_seconds(machine, message, chips, topology, sides), algorithm
    to_all = pattern == ALL_TO_ALL
    return near_seconds(machine, message / chips, chips, topology, to_all, sides), algorithm


@inline
def two_levels(
    machine: Record,
    pattern: int,
    message: float,
    local: int,
    nodes: int,
    topology: int,
    sides: Sides,
) -> float:
    """One step inside the nodes and one between them, one after the other."""
    to_all = pattern == ALL_TO_ALL
    inside = near_seconds(machine, message / local, local, topology, to_all, sides)
    part = message if to_all else message / local
    return inside + far_seconds(machine, part / nodes, nodes - 1)


@kernel
def collective_seconds(
    machine: Record,
    pattern: int,
    message: float,
    local: int,
    nodes: int,
    topology: int,
    sides: Sides,
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
        ``FULLY_CONNECTED``, ``RING``, ``TORUS`` or ``REDUCING_SWITCH``, of a node.
    sides : Sides
        The chips of the group in a node, along the dimensions of a torus.

    Returns
    -------
    tuple of (float, int)
        Seconds, and the algorithm's place in `ALGORITHMS`.
    """
    chips = local * nodes
    if chips <= 1:
        return 0.0, DIRECT
    if pattern == SEND_RECV and nodes == 1 and machine.nccl == 1.0:
        return pairwise_seconds(machine, message, wire_bytes(machine, message)), DIRECT
    if pattern == SEND_RECV and nodes == 1:
        return near_seconds(machine, message, 2, FULLY_CONNECTED, True, sides), DIRECT
    if pattern == SEND_RECV:
        return far_seconds(machine, message, 1), DIRECT
    if nodes == 1:
        return inside_seconds(machine, pattern, message, chips, topology, sides)
    to_all = pattern == ALL_TO_ALL
    near = near_seconds(machine, message / chips, local, topology, to_all, sides)
    direct = max(near, far_seconds(machine, message / chips, chips - local))
    levels = two_levels(machine, pattern, message, local, nodes, topology, sides)
    times = 2.0 if pattern == ALL_REDUCE else 1.0
    return times * min(direct, levels), HIERARCHICAL if levels < direct else DIRECT
