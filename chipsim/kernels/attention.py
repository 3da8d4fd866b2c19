"""Fused attention: one kernel for scores, softmax and values (FlashAttention style).

A tile is ``rows`` query rows of one KV head (GQA packs the group's heads into rows) and
walks the key blocks that the mask leaves; keys can be split over cores (split-KV) and the
partial results merged. Scores never leave the core. Sources: Dao, FlashAttention-2 (2023)
for tiling and causal block skipping; Dao et al., Flash-Decoding (2023) for split-KV.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from chipsim.kernels.gemm import (
    ACCUMULATOR_BYTES,
    array_passes,
    ceil_div,
    hidden_seconds,
    joined_bandwidth,
)
from chipsim.kernels.jit import inline, kernel

if TYPE_CHECKING:
    from chipsim.kernels.machine import Record

ROWS = np.array([256, 128, 64, 32, 16], dtype=np.int64)
"""Query rows of a tile that are tried."""
KEY_BLOCK = 64
"""Keys that a tile takes at a time."""
SOFTMAX_FLOPS = 6.0
"""Vector FLOP per score beside the exponential: scale, mask, max, subtract, sum, rescale."""


class AttentionShape(NamedTuple):
    """Fused attention as a kernel reads it (all sizes of one chip)."""

    batch: int
    q_heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    query: int
    context: int
    causal: bool
    window: int  # 0: none
    q_bytes: float  # per element
    kv_bytes: float
    macs: float


class AttentionCost(NamedTuple):
    """Seconds, bytes and the mapping; ``latency`` leaves launch out."""

    latency: float
    core: float
    memory: float
    hidden: float
    reduction: float
    traffic: float
    active: float
    bandwidth: float
    rows: int
    split: int


@inline
def block_seconds(machine: Record, shape: AttentionShape, rows: int) -> float:
    """One tile against one key block: both products, and the softmax beside them."""
    vector = rows * KEY_BLOCK * (SOFTMAX_FLOPS + machine.exp_flops)
    vector *= machine.cores / machine.vector_flops
    if machine.rows == 0.0:
        flops = 2.0 * rows * KEY_BLOCK * (shape.head_dim + shape.value_dim)
        return vector + flops * machine.cores / (machine.half_flops * machine.tensor_share)
    cycles = (
        array_passes(machine, rows, KEY_BLOCK) * shape.head_dim
        + array_passes(machine, rows, shape.value_dim) * KEY_BLOCK
    ) / shape.macs
    tensor = cycles / (machine.tensor_clock * machine.tensor_share)
    return tensor + vector - machine.overlap_vector * min(tensor, vector)


@inline
def visible_blocks(shape: AttentionShape, first: int, last: int) -> int:
    """Key blocks that query positions first..last (counted in the context) may see."""
    end = last + 1 if shape.causal else shape.context
    begin = 0
    if shape.window > 0:
        begin = max(0, first + 1 - shape.window)
    return ceil_div(end, KEY_BLOCK) - begin // KEY_BLOCK


@inline
def tile_blocks(shape: AttentionShape, rows: int) -> tuple[int, int, int, int]:
    """Tiles of one KV head, their key blocks in all, and the most and fewest of one tile."""
    group = shape.q_heads // shape.kv_heads
    total_rows = shape.query * group
    tiles = ceil_div(total_rows, rows)
    start = shape.context - shape.query
    total, longest, shortest = 0, 0, 2**62
    for t in range(tiles):
        first = start + (t * rows) // group
        last = start + (min((t + 1) * rows, total_rows) - 1) // group
        blocks = visible_blocks(shape, first, last)
        total += blocks
        longest, shortest = max(longest, blocks), min(shortest, blocks)
    return tiles, total, longest, shortest


@inline
def keys_read(shape: AttentionShape) -> int:
    """Tokens of one sequence whose keys and values some query sees."""
    if shape.window > 0:
        return min(shape.context, shape.window + shape.query - 1)
    return shape.context


@kernel
def attention_search(machine: Record, shape: AttentionShape) -> AttentionCost:
    """Best tile height and key split of fused attention.

    Parameters
    ----------
    machine : record of `MACHINE`
    shape : AttentionShape

    Returns
    -------
    AttentionCost
        Infinite latency when no tile fits the SRAM.
    """
    per_token = float(shape.head_dim + shape.value_dim)
    q_and_o = float(shape.batch) * shape.q_heads * shape.query * per_token * shape.q_bytes
    keys = float(shape.batch) * shape.kv_heads * keys_read(shape) * per_token * shape.kv_bytes
    outputs = float(shape.batch) * shape.q_heads * shape.query * (shape.value_dim + 2.0)
    best = AttentionCost(np.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0, 0)
    for i in range(len(ROWS)):
        rows = ROWS[i]
        if i + 1 < len(ROWS) and ROWS[i + 1] >= shape.query * (shape.q_heads // shape.kv_heads):
            continue
        room = rows * (shape.head_dim * shape.q_bytes + shape.value_dim * ACCUMULATOR_BYTES)
        room += 2.0 * KEY_BLOCK * per_token * shape.kv_bytes
        if room > machine.sram:
            continue
        block = block_seconds(machine, shape, rows)
        tiles, total, longest, shortest = tile_blocks(shape, rows)
        heads = float(shape.batch) * shape.kv_heads
        split = 1
        while split == 1 or (split <= 128 and split <= longest):
            units = heads * tiles * split
            active = min(units, machine.cores)
            makespan = max(
                math.ceil(longest / split),
                heads * total / machine.cores,
                np.ceil(units / machine.cores) * max(1.0, shortest // split),
            )
            core = makespan * block
            bandwidth = joined_bandwidth(machine, active)
            reduction = 0.0
            if split > 1:
                partial = 2.0 * split * outputs * ACCUMULATOR_BYTES
                rate = machine.l2_bandwidth
                reduction = partial / (bandwidth if math.isinf(rate) else rate)
            written = outputs / (shape.value_dim + 2.0) * shape.value_dim * shape.q_bytes
            stores = written / bandwidth
            loads = (q_and_o - written) / bandwidth
            memory = keys / bandwidth + loads + stores
            hidden = hidden_seconds(machine, core, keys / bandwidth, loads, stores)
            latency = memory + core - hidden + reduction
            if latency < best.latency:
                best = AttentionCost(
                    latency,
                    core,
                    memory,
                    hidden,
                    reduction,
                    q_and_o + keys,
                    active,
                    bandwidth,
                    rows,
                    split,
                )
            split *= 2
    return best
