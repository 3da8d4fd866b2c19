"""Recurrence of linear attention and state-space layers: token by token, or in chunks.

Token by token the vector units update each head's state, one core to a head; in chunks the
arrays form the products inside a chunk and the update of its state, all chunks at once, and
the states between chunks pass through memory. Sources: Dao and Gu, Transformers are SSMs
(ICML 2024) for chunks; Yang et al., Gated Delta Networks (ICLR 2025) for the delta rule,
whose chunks need as much again to undo overlapping keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from chipsim.kernels.gemm import array_passes, ceil_div
from chipsim.kernels.jit import inline, kernel
from chipsim.kernels.memory import hidden_seconds, joined_bandwidth

if TYPE_CHECKING:
    from chipsim.kernels.machine import Record


class RecurrenceShape(NamedTuple):
    """A recurrence as a kernel reads it (all sizes of one chip)."""

    batch: int
    heads: int
    key_dim: int
    value_dim: int
    query: int
    chunk: int  # 1: token by token alone
    delta: bool  # the rule reads the old value of a key first
    step_flops: float  # per element of a state and token
    load_bytes: float  # rows and states in
    store_bytes: float  # results and states out
    state_bytes: float  # per element of a state
    macs: float  # multiply-accumulates of an array cell per cycle


class RecurrenceCost(NamedTuple):
    """Seconds and bytes; ``latency`` leaves launch out."""

    latency: float
    core: float
    memory: float
    hidden: float
    traffic: float
    active: float
    chunked: bool


@inline
def chunk_seconds(machine: Record, shape: RecurrenceShape) -> float:
    """One chunk of one head on one core."""
    c, dk, dv = min(shape.chunk, shape.query), shape.key_dim, shape.value_dim
    if machine.rows == 0.0:
        flops = 2.0 * c * c * (dk + dv) + 4.0 * c * dk * dv
        if shape.delta:
            flops += 2.0 * c * c * (2.0 * dk + dv)
        return flops * machine.cores / (machine.half_flops * shape.macs * machine.tensor_share)
    inside = array_passes(machine, c, c) * dk + array_passes(machine, c, dv) * c
    cycles = inside + array_passes(machine, dk, dv) * c + array_passes(machine, c, dv) * dk
    if shape.delta:
        cycles += inside + array_passes(machine, c, dk) * c
    return cycles / shape.macs / (machine.tensor_clock * machine.tensor_share)


@kernel
def recurrence_search(machine: Record, shape: RecurrenceShape) -> RecurrenceCost:
    """The faster of both forms.

    Parameters
    ----------
    machine : record of `MACHINE`
    shape : RecurrenceShape

    Returns
    -------
    RecurrenceCost
    """
    state = float(shape.batch) * shape.heads * shape.key_dim * shape.value_dim
    heads = float(shape.batch) * shape.heads
    per_head = shape.step_flops * shape.key_dim * shape.value_dim * shape.query
    best = RecurrenceCost(np.inf, 0.0, 0.0, 0.0, 0.0, 0.0, False)
    for chunked in (False, True):
        if chunked and (shape.query == 1 or shape.chunk == 1):
            continue
        units, between = heads, 0.0
        seconds = per_head * machine.cores / machine.vector_flops
        if chunked:
            chunks = ceil_div(shape.query, shape.chunk)
            units, seconds = heads * chunks, chunk_seconds(machine, shape)
            between = (chunks - 1) * state * shape.state_bytes
        active = min(units, machine.cores)
        core = np.ceil(units / machine.cores) * seconds
        bandwidth = joined_bandwidth(machine, active)
        loads = (shape.load_bytes + between) / bandwidth
        stores = (shape.store_bytes + between) / bandwidth
        hidden = hidden_seconds(machine, core, 0.0, loads, stores)
        latency = loads + stores + core - hidden
        if latency < best.latency:
            traffic = shape.load_bytes + shape.store_bytes + 2.0 * between
            best = RecurrenceCost(
                latency, core, loads + stores, hidden, traffic, active, chunked
            )
    return best
