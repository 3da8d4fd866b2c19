"""Fused attention: one kernel for scores, softmax and values (FlashAttention style).

A tile is ``rows`` query rows of one KV head (GQA packs the group's heads into rows) and
walks the key blocks that the mask leaves; keys can be split over cores (split-KV) and the
partial results merged. Scores never leave the core. Sources: Dao, FlashAttention-2 (2023)
for tiling and causal block skipping; Dao et al., Flash-Decoding (2023) for split-KV.

Latent attention is the same with one row per token that serves as key and value, the heads
as rows; sparse, a tile is some heads of one query, which gathers its own rows through L2.
The indexer is the scores alone: no softmax, no values, every score written.

    tile = latency + max(blocks x arithmetic, chunks of keys / draw),
    latency = start + queries / feed + results / store (+ the first chunk, not prefetched)

A core walks its tiles one after the other, or some at once, which then share its arrays: it
is busy with whole tiles and never less than with their arithmetic. Of the tiles that read
the same keys one draws them and the others find them in L2. Factors that a source does not
name leave the arithmetic alone. That a tile has a latency and draws its keys at a rate of
its own, and that measured kernels have one size of tile, is what measured GPUs need
(docs/validation.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from chipsim.kernels.attention_tiles import (
    LEAST_KEYS,
    AttentionShape,
    keys_of,
    keys_read,
    piece_of,
    row_size,
    rows_read,
    tile_blocks,
    tile_keys,
)
from chipsim.kernels.gemm import array_passes, busiest, ceil_div
from chipsim.kernels.jit import inline, kernel
from chipsim.kernels.memory import hidden_seconds, warm_share

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


class Cut(NamedTuple):
    """How KV heads are cut into tiles, and the times of a tile."""

    rows: int
    keys: int  # of a block
    group: int  # query heads whose rows a tile packs
    heads: float  # KV heads of all sequences; where heads are not packed, query heads
    tiles: int  # of one of them
    block: float  # arithmetic of one block, seconds
    fetch: float  # until a chunk of keys has come from memory
    latency: float  # seconds of a tile beside its blocks
    resident: float  # tiles that a core has at once


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


@inline
def block_seconds(
    machine: Record, shape: AttentionShape, rows: int, held: float, keys: int
) -> float:
    """One tile against one block of keys: both products, and the softmax beside them.

    Arrays pad a tile to all its ``rows``, vector units compute those that it has (``held``).
    """
    per_score = INDEX_FLOPS
    if shape.softmax:
        per_score = SOFTMAX_FLOPS + machine.exp_flops
    vector = rows * keys * per_score
    vector *= machine.cores / machine.vector_flops
    if machine.rows == 0.0:
        flops = 2.0 * held * keys * (shape.head_dim + shape.value_dim)
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
def wave_seconds(
    machine: Record, shape: AttentionShape, cut: Cut, split: int, share: float
) -> float:
    """Seconds of the core that is left with most whole pieces.

    Of the pieces of the first ``t`` tiles some core has ``ceil(t * share)``, whatever else it
    has (``share``: pieces of a tile per place on a core); the most over all ``t``, so a
    further tile never makes it less. From `MOST_WAVES` pieces of a core on a whole one more
    is no matter. The first tile draws the keys.
    """
    most, fewest = 0.0, 2**62
    each = cut.tiles // shape.query if shape.top_k > 0 else 1
    full = min(shape.query, max(1, shape.context - shape.top_k + 1))
    first = full if shape.top_k > 0 else 1  # queries that read top_k rows are all alike
    chunk, draws = int(machine.chunk_keys), cut.heads == float(shape.batch) * shape.kv_heads
    for tile in range(first, cut.tiles // each + 1):
        if tile > first and share * each * (tile - 1) >= MOST_WAVES:
            break
        if shape.top_k > 0:
            keys = min(shape.top_k, shape.context - tile + 1)
        else:
            keys = keys_of(shape, cut.group, cut.rows, tile - 1)
        fewest = min(fewest, max(1, ceil_div(keys, cut.keys) // split))
        seconds = fewest * cut.block
        if draws:
            seconds = max(seconds, max(1, ceil_div(keys, chunk) // split) * cut.fetch)
        pieces = np.ceil(share * each * tile)
        most = max(most, pieces * cut.latency + pieces * seconds)
        draws = draws and shape.top_k > 0
    return most


@inline
def drawn_seconds(machine: Record, total: float, each: float) -> float:
    """Root-sum-square of ``total`` bytes from memory and what the busiest core draws of them.

    That is a tile's ``each``, or an equal part where tiles are many. Tiles of the same keys
    all draw them: more queries never make their keys come faster.
    """
    seconds = total / (machine.memory_bandwidth * machine.stream_ratio)
    drawn = max(each, total / machine.cores) / machine.core_draw
    return seconds if drawn == 0.0 else math.sqrt(seconds * seconds + drawn * drawn)


@inline
def cut_of(
    machine: Record,
    shape: AttentionShape,
    group: int,
    rows: int,
    keys: int,
    piece: tuple[int, int],
    tiles: int,
) -> Cut:
    """A cut into ``tiles`` of ``rows`` and blocks of ``keys``, with the times of a tile.

    What SRAM does not hold at once is computed ``piece`` (rows, keys) by piece.
    """
    row = row_size(shape)
    walks = rows / piece[0]
    height = group if shape.top_k > 0 else shape.query * group
    held = float(min(rows, height))
    queries, results = held * shape.head_dim, held * shape.value_dim
    latency = machine.tile_latency + queries * shape.q_bytes / machine.core_feed
    latency += results * shape.q_bytes / machine.core_store
    block = walks * (keys / piece[1])
    block *= block_seconds(machine, shape, piece[0], held / walks, piece[1])
    resident = 1.0
    if shape.query == 1:
        place = rows * shape.head_dim * shape.q_bytes + keys * row
        resident = max(1.0, min(machine.resident_tiles, np.floor(machine.sram / place)))
    fetch = walks * machine.chunk_keys * row / machine.tile_draw
    if machine.prefetch == 0.0:
        latency += fetch
    return Cut(
        rows,
        keys,
        group,
        float(shape.batch) * (shape.q_heads // group),
        tiles,
        block,
        fetch,
        latency,
        resident,
    )


@inline
def splits(machine: Record, shape: AttentionShape, tiles: int) -> bool:
    """Whether the source's kernels split the keys of ``tiles`` per KV head."""
    if machine.latent_split == 0.0 and shape.row_bytes > 0.0 and shape.softmax:
        return False
    return machine.prompt_split == 1.0 or shape.query == 1 or tiles == 1


@inline
def merge_seconds(
    machine: Record, shape: AttentionShape, split: int, results: float, held: int
) -> float:
    """Partial results of split keys, written and read again; a core merges whole rows."""
    partial = 2.0 * (shape.value_dim + 2.0) * shape.sum_bytes
    rate = min(machine.l2_bandwidth, min(results, machine.cores) * machine.core_feed)
    fixed = machine.sync + machine.merge_launch
    if math.isinf(rate):
        return fixed + drawn_seconds(machine, split * partial * results, partial * held)
    return fixed + split * partial * results / rate


@inline
def best_split(
    machine: Record,
    shape: AttentionShape,
    cut: Cut,
    total: int,
    longest: int,
    best: AttentionCost,
) -> AttentionCost:
    """The best of ``best`` and every split of a cut with so many key blocks of one KV head in
    all, and at most of one tile.
    """
    row = row_size(shape)
    keys = float(shape.batch) * shape.kv_heads * keys_read(shape) * row
    keys *= 1.0 - warm_share(machine, keys)
    results = float(shape.batch) * shape.q_heads * shape.query
    q_and_o = results * float(shape.head_dim + shape.value_dim) * shape.q_bytes
    written = results * shape.value_dim * shape.q_bytes
    held = min(cut.rows, cut.group if shape.top_k > 0 else shape.query * cut.group)
    gathered = 0.0
    if shape.top_k > 0:
        gathered = cut.heads * ceil_div(cut.group, cut.rows) * rows_read(shape) * row
    loads = drawn_seconds(machine, q_and_o - written, held * shape.head_dim * shape.q_bytes)
    writes = held * shape.value_dim * shape.q_bytes
    places = machine.cores * cut.resident
    chunk, each = int(machine.chunk_keys), tile_keys(shape, cut.group, cut.rows)
    drawn, chunks = each * row, ceil_div(each, chunk)
    fetched = float(shape.batch) * shape.kv_heads * ceil_div(keys_read(shape), chunk)
    if shape.top_k > 0:
        fetched = cut.heads * cut.tiles * chunks
    for split in KEY_SPLITS:
        if split > 1 and not splits(machine, shape, cut.tiles):
            break
        ahead = drawn_seconds(machine, keys, drawn / split)
        stored = writes + shape.score_bytes / (cut.heads * split)
        stores = drawn_seconds(machine, written + shape.score_bytes, stored)
        memory, reduction = ahead + loads + stores, 0.0
        if split > 1 and shape.softmax:
            reduction = merge_seconds(machine, shape, split, results, held)
        started = cut.heads * cut.tiles * split / places * cut.latency
        core = max(
            cut.latency + math.ceil(longest / split) * cut.block,
            cut.latency + math.ceil(chunks / split) * cut.fetch,
            started + cut.heads * total / places * cut.block,
            started + fetched / places * cut.fetch,
            cut.heads * total / machine.cores * cut.block,
            gathered / machine.l2_bandwidth,
        )
        under = busiest(machine, core, 0.0, 0.0, 0.0)
        hidden = hidden_seconds(machine, under, ahead, loads, stores)
        if memory + under - hidden + reduction >= best.latency:
            continue
        waves = wave_seconds(machine, shape, cut, split, cut.heads * split / places)
        core = busiest(machine, max(core, waves), 0.0, 0.0, 0.0)
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
                min(cut.heads * cut.tiles * split, machine.cores),
                cut.rows,
                split,
            )
    return best


@inline
def best_tile(
    machine: Record, shape: AttentionShape, group: int, key_block: int, best: AttentionCost
) -> AttentionCost:
    """The best of ``best`` and every tile height and split with one size of key block."""
    height = group if shape.top_k > 0 else shape.query * group
    for i in range(len(ROWS)):
        rows, keys = ROWS[i], key_block
        if rows < machine.least_rows or rows > machine.most_rows:
            continue
        if machine.tile_scores > 0.0:
            keys = max(LEAST_KEYS, int(machine.tile_scores) // rows)
        elif i + 1 < len(ROWS) and ROWS[i + 1] >= max(height, machine.least_rows):
            continue
        smallest = i + 1 == len(ROWS) or ROWS[i + 1] < machine.least_rows
        piece = piece_of(machine, shape, rows, keys, smallest)
        if piece[0] == 0:
            continue
        tiles, total, longest = tile_blocks(shape, group, rows, keys)
        cut = cut_of(machine, shape, group, rows, keys, piece, tiles)
        best = best_split(machine, shape, cut, total, longest, best)
    return best


@inline
def best_block(
    machine: Record, shape: AttentionShape, group: int, best: AttentionCost
) -> AttentionCost:
    """The best of ``best`` and every size of key block."""
    wide = shape.row_bytes > 0.0 or shape.head_dim + shape.value_dim > USUAL_WIDTH
    if machine.tile_scores > 0.0 or not wide:
        return best_tile(machine, shape, group, KEY_BLOCK, best)
    for keys in WIDE_BLOCKS:
        best = best_tile(machine, shape, group, keys, best)
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
    group = shape.q_heads // shape.kv_heads
    apart = machine.packed_prompts == 0.0 and shape.row_bytes == 0.0
    if apart:  # a single query may be packed all the same
        best = best_block(machine, shape, 1, best)
    if not apart or (shape.query == 1 and group > 1):
        best = best_block(machine, shape, group, best)
    return best
