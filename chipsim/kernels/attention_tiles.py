"""What tiles of fused attention see and hold: keys that the mask leaves, blocks, SRAM.

A tile is ``rows`` query rows of one KV head (``group`` query heads are packed into rows) and
walks the blocks of keys that its queries see; with ``top_k`` each query reads rows of its own.
Times are in `chipsim.kernels.attention`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from chipsim.kernels.gemm import ACCUMULATOR_BYTES, ceil_div
from chipsim.kernels.jit import inline

if TYPE_CHECKING:
    from chipsim.kernels.machine import Record

LEAST_KEYS = 16
"""Keys of the smallest block."""


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
def visible_keys(shape: AttentionShape, first: int, last: int) -> int:
    """Keys that query positions first..last (counted in the context) may see."""
    seen = last + 1 if shape.causal else shape.context
    if shape.window > 0:
        seen = min(seen, shape.window + last - first)
    return seen


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
def keys_of(shape: AttentionShape, group: int, rows: int, tile: int) -> int:
    """Keys of one tile of a KV head, counted from the last: the first one is ragged.

    Cut from the end, one more query adds rows to the tile that sees least, or adds a tile.
    """
    end = shape.query * group - tile * rows
    start = shape.context - shape.query
    first, last = start + max(0, end - rows) // group, start + (end - 1) // group
    return visible_keys(shape, first, last)


@inline
def tile_blocks(
    shape: AttentionShape, group: int, rows: int, keys: int
) -> tuple[int, int, int]:
    """Tiles of one KV head, their key blocks in all, and the most of one tile."""
    if shape.top_k > 0:
        return picked_blocks(shape, ceil_div(group, rows), keys)
    tiles = ceil_div(shape.query * group, rows)
    total, longest = 0, 0
    for tile in range(tiles):
        blocks = ceil_div(keys_of(shape, group, rows, tile), keys)
        total += blocks
        longest = max(longest, blocks)
    return tiles, total, longest


@inline
def keys_read(shape: AttentionShape) -> int:
    """Tokens of one sequence whose keys and values some query sees."""
    if shape.window > 0:
        return min(shape.context, shape.window + shape.query - 1)
    if shape.top_k > 0:
        return min(shape.context, shape.top_k * shape.query)
    return shape.context


@inline
def tile_keys(shape: AttentionShape, group: int, rows: int) -> int:
    """Tokens whose keys and values one tile draws, at most."""
    if shape.window > 0:
        return min(keys_read(shape), shape.window + ceil_div(rows, group) - 1)
    if shape.top_k > 0:
        return min(shape.context, shape.top_k)
    return shape.context


@inline
def row_size(shape: AttentionShape) -> float:
    """Bytes of a token's key and value in one KV head."""
    if shape.row_bytes > 0.0:
        return shape.row_bytes
    return float(shape.head_dim + shape.value_dim) * shape.kv_bytes


@inline
def tile_fits(machine: Record, shape: AttentionShape, rows: int, keys: int) -> bool:
    """Whether SRAM holds a tile's queries, the sums of its results and two blocks of keys.

    A tile whose size the source names keeps its results in registers, and takes the keys of
    a block bit by bit.
    """
    queries = rows * shape.head_dim * shape.q_bytes
    if machine.tile_scores > 0.0:
        return queries + LEAST_KEYS * row_size(shape) <= machine.sram
    sums = rows * shape.value_dim * shape.sum_bytes
    return queries + sums + 2.0 * keys * row_size(shape) <= machine.sram


@inline
def piece_of(
    machine: Record, shape: AttentionShape, rows: int, keys: int, smallest: bool
) -> tuple[int, int]:
    """Rows and keys of the largest piece of a tile and a block that SRAM holds; 0, 0: none.

    Keys are halved first, down to `LEAST_KEYS`. Only the ``smallest`` tile is also parted
    in rows, each part of which walks all keys again, and then in keys down to one. Pieces
    together never take less than the whole: more SRAM is never slower.
    """
    halves = machine.tile_scores == 0.0  # else keys come bit by bit anyway
    while halves and keys > LEAST_KEYS and not tile_fits(machine, shape, rows, keys):
        keys //= 2
    while smallest and rows > 1 and not tile_fits(machine, shape, rows, keys):
        rows //= 2
    while halves and smallest and keys > 1 and not tile_fits(machine, shape, rows, keys):
        keys //= 2
    return (rows, keys) if tile_fits(machine, shape, rows, keys) else (0, 0)
