"""Fused attention: one kernel for scores, softmax and values (FlashAttention style).

A tile is ``rows`` query rows of one KV head (GQA packs the group's heads into rows) and
walks the key blocks that the mask leaves; keys can be split over cores (split-KV) and the
partial results merged. Scores never leave the core. Sources: Dao, FlashAttention-2 (2023)
for tiling and causal block skipping; Dao et al., Flash-Decoding (2023) for split-KV.

Latent attention is the same with one row per token that serves as key and value, the heads
as rows; sparse, a tile is some heads of one query, which gathers its own rows through L2.
The indexer is the scores alone: no softmax, no values, every score written.
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
)
from chipsim.kernels.jit import inline, kernel

if TYPE_CHECKING:
    from chipsim.kernels.machine import Record

ROWS = np.array([256, 128, 64, 32, 16], dtype=np.int64)
"""Query rows of a tile that are tried."""
KEY_SPLITS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128], dtype=np.int64)
"""Ways to split the keys over cores; all are tried at every length, or a longer context could
be faster than a shorter one."""
KEY_BLOCK = 64
"""Keys that a tile takes at a time."""
USUAL_WIDTH = 256
"""Elements of a key and a value up to which blocks of `KEY_BLOCK` alone are tried."""
WIDE_BLOCKS = np.array([64, 32, 16], dtype=np.int64)
"""Keys that a tile takes at a time where they are wider, or latent rows."""
MOST_WAVES = 64.0
"""Pieces of a core up to which a last, partly filled wave is counted tile by tile."""
SOFTMAX_FLOPS = 6.0
"""Vector FLOP per score beside the exponential: scale, mask, max, subtract, sum, rescale."""
INDEX_FLOPS = 3.0
"""Vector FLOP per score of an indexer: ReLU, weight, sum over heads."""


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
    row_bytes: float = 0.0  # of a row that is key and value at once; 0: keys and values apart
    top_k: int = 0  # rows that a query reads; 0: all that it sees
    softmax: bool = True  # False: scores alone, each written
    score_bytes: float = 0.0  # written beside the results, in all
    sum_bytes: float = ACCUMULATOR_BYTES  # of a partial sum


class AttentionCost(NamedTuple):
    """Seconds, bytes and the mapping; ``latency`` leaves launch out."""

    latency: float
    core: float
    memory: float
    hidden: float
    reduction: float
    traffic: float
    active: float
    rows: int
    split: int


def folded(shape: AttentionShape, stride: int) -> AttentionShape:
    """The shape of a product with rows that stand for ``stride`` tokens each.

    As many queries in a row see the same rows: they count as heads of one query, or, where
    each picks rows of its own, as one more sequence each.
    """
    if stride == 1:
        return shape
    fold = min(stride, shape.query)
    query = ceil_div(shape.query, fold)
    shape = shape._replace(query=query, context=max(query, shape.context // stride))
    if shape.top_k > 0:
        return shape._replace(batch=shape.batch * fold)
    return shape._replace(q_heads=shape.q_heads * fold)


@inline
def block_seconds(machine: Record, shape: AttentionShape, rows: int, keys: int) -> float:
    """One tile against one block of keys: both products, and the softmax beside them."""
    per_score = INDEX_FLOPS
    if shape.softmax:
        per_score = SOFTMAX_FLOPS + machine.exp_flops
    vector = rows * keys * per_score
    vector *= machine.cores / machine.vector_flops
    if machine.rows == 0.0:
        flops = 2.0 * rows * keys * (shape.head_dim + shape.value_dim)
        return vector + flops * machine.cores / (
            machine.half_flops * shape.macs * machine.tensor_share
        )
    cycles = (
        array_passes(machine, rows, keys) * shape.head_dim
        + array_passes(machine, rows, shape.value_dim) * keys
    ) / shape.macs
    tensor = cycles / (machine.tensor_clock * machine.tensor_share)
    return tensor + vector - machine.overlap_vector * min(tensor, vector)


@inline
def visible_blocks(shape: AttentionShape, first: int, last: int, keys: int) -> int:
    """Blocks of keys that query positions first..last (counted in the context) may see."""
    seen = last + 1 if shape.causal else shape.context
    if shape.window > 0:
        seen = min(seen, shape.window + last - first)
    return ceil_div(seen, keys)


@inline
def rows_read(shape: AttentionShape) -> int:
    """Rows that the queries of one sequence read, each its own ``top_k`` at most."""
    before = shape.context - shape.query
    growing = min(shape.query, max(0, shape.top_k - before))
    rows = growing * before + growing * (growing + 1) // 2
    return rows + (shape.query - growing) * shape.top_k


@inline
def whole_blocks(tokens: int, keys: int) -> int:
    """Blocks of 1, 2, ... ``tokens`` rows, summed."""
    full, rest = tokens // keys, tokens % keys
    return keys * full * (full + 1) // 2 + rest * (full + 1)


@inline
def picked_blocks(shape: AttentionShape, tiles: int, keys: int) -> tuple[int, int, int]:
    """As `tile_blocks`, where each query reads its own rows: ``tiles`` for each query."""
    before = shape.context - shape.query
    growing = min(shape.query, max(0, shape.top_k - before))
    most = ceil_div(min(shape.context, shape.top_k), keys)
    total = whole_blocks(before + growing, keys) - whole_blocks(before, keys)
    total += (shape.query - growing) * most
    return tiles * shape.query, tiles * total, most


@inline
def blocks_of(shape: AttentionShape, rows: int, keys: int, tile: int) -> int:
    """Key blocks of one tile of a KV head, counted from the last: the first one is ragged.

    Cut from the end, one more query adds rows to the tile that sees least, or adds a tile.
    """
    group = shape.q_heads // shape.kv_heads
    end = shape.query * group - tile * rows
    start = shape.context - shape.query
    first, last = start + max(0, end - rows) // group, start + (end - 1) // group
    return visible_blocks(shape, first, last, keys)


@inline
def tile_blocks(shape: AttentionShape, rows: int, keys: int) -> tuple[int, int, int]:
    """Tiles of one KV head, their key blocks in all, and the most of one tile."""
    group = shape.q_heads // shape.kv_heads
    if shape.top_k > 0:
        return picked_blocks(shape, ceil_div(group, rows), keys)
    tiles = ceil_div(shape.query * group, rows)
    total, longest = 0, 0
    for tile in range(tiles):
        blocks = blocks_of(shape, rows, keys, tile)
        total += blocks
        longest = max(longest, blocks)
    return tiles, total, longest


@inline
def wave_blocks(
    shape: AttentionShape, rows: int, keys: int, tiles: int, split: int, share: float
) -> float:
    """Key blocks of the core that is left with most whole pieces.

    Of the pieces of the first ``t`` tiles some core has ``ceil(t * share)``, whatever else it
    has (``share``: pieces of a tile per core); the most over all ``t``, so a further tile
    never makes it less. From `MOST_WAVES` pieces of a core on a whole one more is no matter.
    """
    most, fewest = 0.0, 2**62
    each = tiles // shape.query if shape.top_k > 0 else 1
    full = min(shape.query, max(1, shape.context - shape.top_k + 1))
    first = full if shape.top_k > 0 else 1  # queries that read top_k rows are all alike
    for tile in range(first, tiles // each + 1):
        if tile > first and share * each * (tile - 1) >= MOST_WAVES:
            break
        if shape.top_k > 0:
            blocks = ceil_div(min(shape.top_k, shape.context - tile + 1), keys)
        else:
            blocks = blocks_of(shape, rows, keys, tile - 1)
        fewest = min(fewest, max(1, blocks // split))
        most = max(most, np.ceil(share * each * tile) * fewest)
    return most


@inline
def keys_read(shape: AttentionShape) -> int:
    """Tokens of one sequence whose keys and values some query sees."""
    if shape.window > 0:
        return min(shape.context, shape.window + shape.query - 1)
    if shape.top_k > 0:
        return min(shape.context, shape.top_k * shape.query)
    return shape.context


@inline
def tile_keys(shape: AttentionShape, rows: int) -> int:
    """Tokens whose keys and values one tile draws, at most."""
    if shape.window > 0:
        group = shape.q_heads // shape.kv_heads
        return min(keys_read(shape), shape.window + ceil_div(rows, group) - 1)
    if shape.top_k > 0:
        return min(shape.context, shape.top_k)
    return shape.context


@inline
def drawn_seconds(machine: Record, total: float, each: float) -> float:
    """Root-sum-square of ``total`` bytes from memory and what the busiest core draws of them.

    That is a tile's ``each``, or an equal part where tiles are many. Tiles of the same keys
    all draw them: more queries never make their keys come faster.
    """
    seconds = total / machine.memory_bandwidth
    drawn = max(each, total / machine.cores) / machine.core_draw
    return seconds if drawn == 0.0 else math.sqrt(seconds * seconds + drawn * drawn)


@inline
def tile_room(shape: AttentionShape, rows: int) -> float:
    """Bytes of a tile's queries and of the sums of its results."""
    return rows * (shape.head_dim * shape.q_bytes + shape.value_dim * shape.sum_bytes)


@inline
def best_tile(
    machine: Record, shape: AttentionShape, key_block: int, best: AttentionCost
) -> AttentionCost:
    """The best of ``best`` and every tile height and split with one size of key block."""
    per_token = float(shape.head_dim + shape.value_dim)
    row = shape.row_bytes if shape.row_bytes > 0.0 else per_token * shape.kv_bytes
    keys = float(shape.batch) * shape.kv_heads * keys_read(shape) * row
    results = float(shape.batch) * shape.q_heads * shape.query
    q_and_o = results * per_token * shape.q_bytes
    written = results * shape.value_dim * shape.q_bytes
    group = shape.q_heads // shape.kv_heads
    height = group if shape.top_k > 0 else shape.query * group
    for i in range(len(ROWS)):
        rows = ROWS[i]
        if i + 1 < len(ROWS) and ROWS[i + 1] >= height:
            continue
        if tile_room(shape, rows) + 2.0 * key_block * row > machine.sram:
            continue
        block = block_seconds(machine, shape, rows, key_block)
        tiles, total, longest = tile_blocks(shape, rows, key_block)
        heads, held = float(shape.batch) * shape.kv_heads, min(rows, height)
        gathered = 0.0
        if shape.top_k > 0:
            gathered = heads * ceil_div(group, rows) * rows_read(shape) * row
        reads = held * shape.head_dim * shape.q_bytes
        writes = held * shape.value_dim * shape.q_bytes
        loads = drawn_seconds(machine, q_and_o - written, reads)
        for split in KEY_SPLITS:
            ahead = drawn_seconds(machine, keys, tile_keys(shape, rows) * row / split)
            each = writes + shape.score_bytes / (heads * split)
            stores = drawn_seconds(machine, written + shape.score_bytes, each)
            reduction = 0.0
            if split > 1 and shape.softmax:
                partial = 2.0 * (shape.value_dim + 2.0) * shape.sum_bytes
                reduction = split * partial * results / machine.l2_bandwidth
                if math.isinf(machine.l2_bandwidth):
                    every = split * partial * results
                    reduction = drawn_seconds(machine, every, partial * held)
            memory = ahead + loads + stores
            makespan = max(math.ceil(longest / split), heads * total / machine.cores)
            core = max(makespan * block, gathered / machine.l2_bandwidth)
            hidden = hidden_seconds(machine, core, ahead, loads, stores)
            if memory + core - hidden + reduction >= best.latency:
                continue
            share = heads * split / machine.cores
            waves = wave_blocks(shape, rows, key_block, tiles, split, share)
            core = max(core, waves * block)
            hidden = hidden_seconds(machine, core, ahead, loads, stores)
            latency = memory + core - hidden + reduction
            if latency < best.latency:
                best = AttentionCost(
                    latency,
                    core,
                    memory,
                    hidden,
                    reduction,
                    q_and_o + keys + shape.score_bytes,
                    min(heads * tiles * split, machine.cores),
                    rows,
                    split,
                )
    return best


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
    best = AttentionCost(np.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0)
    if shape.row_bytes == 0.0 and shape.head_dim + shape.value_dim <= USUAL_WIDTH:
        return best_tile(machine, shape, KEY_BLOCK, best)
    for keys in WIDE_BLOCKS:
        best = best_tile(machine, shape, keys, best)
    return best
