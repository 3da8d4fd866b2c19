"""Collectives over the scale-up links of one machine.

All-reduce is a reduce-scatter and an all-gather of ``bytes / chips`` shares. Each packet
carries ``payload`` bytes and a header. Sources: ring bound of Patarasuk & Yuan (2009);
direct exchange over a full mesh and packet overhead as in LLMCompass (ISCA 2024).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.kernels.jit import inline, kernel

if TYPE_CHECKING:
    from chipsim.kernels.machine import Record

FULLY_CONNECTED, RING = 0, 1


@inline
def wire_bytes(machine: Record, share: float) -> float:
    """Bytes on the wire for a message: payload and a header for each packet."""
    return float(share + np.ceil(share / machine.link_payload) * machine.link_header)


@kernel
def all_reduce_seconds(machine: Record, message: float, chips: int, topology: int) -> float:
    """Time of an all-reduce, launch left out.

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
