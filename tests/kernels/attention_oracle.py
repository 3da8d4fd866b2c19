"""Fused attention written out plainly in Python: every tile height and every split.

Independent of the kernel: masks are sets of keys, one query at a time. Only the lists of what
is tried come from `chipsim.kernels.attention`; the counts are numbers here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from chipsim.kernels.attention import KEY_BLOCK, KEY_SPLITS, ROWS

if TYPE_CHECKING:
    from chipsim.kernels.attention import AttentionShape

SOFTMAX = 6.0
"""Vector FLOP of a score beside the exponential."""
WIDE = 256
"""Elements of a key and a value above which smaller blocks of keys are tried too."""


def latency(m: Any, s: AttentionShape) -> float:
    """Least seconds of dense attention; infinite when no tile fits."""
    blocks = [KEY_BLOCK] if s.head_dim + s.value_dim <= WIDE else [64, 32, 16]
    return min(
        _mapped(m, s, int(rows), int(split), keys)
        for keys in blocks
        for rows in ROWS
        for split in KEY_SPLITS
    )


def _visible(s: AttentionShape, query: int) -> set[int]:
    """Keys that a query sees; the queries are the last tokens of the context."""
    if not s.causal:
        return set(range(s.context))
    own = s.context - s.query + query
    oldest = own - s.window + 1 if s.window else 0
    return {key for key in range(oldest, own + 1) if key >= 0}


def _seen(s: AttentionShape, queries: set[int]) -> int:
    seen: set[int] = set()
    for query in queries:
        seen |= _visible(s, query)
    return len(seen)


def _mapped(m: Any, s: AttentionShape, rows: int, split: int, keys: int) -> float:
    width = s.head_dim + s.value_dim
    room = rows * (s.head_dim * s.q_bytes + s.value_dim * s.sum_bytes)
    if room + 2 * keys * width * s.kv_bytes > m.sram:  # one block is used, one is fetched
        return math.inf
    group = s.q_heads // s.kv_heads
    packed = [row // group for row in range(s.query * group)]
    backwards = packed[::-1]  # tiles are cut from the last row on: the first row's is ragged
    tiles = [set(backwards[i : i + rows]) for i in range(0, len(packed), rows)]
    blocks = [math.ceil(_seen(s, tile) / keys) for tile in tiles]
    heads = s.batch * s.kv_heads
    pieces = heads * split
    longest = math.ceil(max(blocks) / split)
    # Some core has so many pieces of the first tiles, each at least as long as the shortest.
    waves = max(
        math.ceil(pieces * count / m.cores) * max(1, min(blocks[:count]) // split)
        for count in range(1, len(blocks) + 1)
        if count == 1 or pieces / m.cores * (count - 1) < 64
    )
    makespan = max(longest, heads * sum(blocks) / m.cores, waves)
    core = makespan * _block(m, s, rows, min(rows, len(packed)), keys)
    row = width * s.kv_bytes
    fetched = heads * _seen(s, set(range(s.query))) * row
    # A core draws what its tile needs: the keys of its part, its own queries and results.
    own = min(_seen(s, set(range(s.query))), s.window + math.ceil(rows / group) - 1)
    drawn = (own if s.window else s.context) / split * row
    tokens, held = s.batch * s.q_heads * s.query, min(rows, len(packed))
    query, result = s.head_dim * s.q_bytes, s.value_dim * s.q_bytes
    moved = [
        (_moved(m, fetched, drawn), m.overlap_weights),
        (_moved(m, tokens * query, held * query), m.overlap_activations),
        (_moved(m, tokens * result, held * result), m.overlap_stores),
    ]
    total, left = core, core
    for seconds, share in moved:
        behind = min(left, seconds)
        left -= behind
        total += seconds - share * behind
    if split > 1:  # each result with its maximum and its sum, written and read
        partial = 2 * (s.value_dim + 2) * s.sum_bytes
        if math.isinf(m.l2_bandwidth):
            total += _moved(m, split * tokens * partial, held * partial)
        else:
            total += split * tokens * partial / m.l2_bandwidth
    return float(total)


def _moved(m: Any, size: float, of_a_core: float) -> float:
    """Bytes over the memory's bandwidth and over what the busiest core can draw, joined."""
    busiest = max(of_a_core, size / m.cores)
    return math.hypot(size / m.memory_bandwidth, busiest / m.core_draw)


def _block(m: Any, s: AttentionShape, rows: int, held: int, keys: int) -> float:
    scores = rows * keys
    vector = scores * (SOFTMAX + m.exp_flops) / (m.vector_flops / m.cores)
    if m.rows == 0:
        flops = 2 * held * keys * (s.head_dim + s.value_dim)
        return float(vector + flops / (m.half_flops * s.macs * m.tensor_share / m.cores))
    passes = _passes(m, rows, keys) * s.head_dim + _passes(m, rows, s.value_dim) * keys
    tensor = passes / s.macs / (m.tensor_clock * m.tensor_share)
    return float(tensor + vector - m.overlap_vector * min(tensor, vector))


def _passes(m: Any, down: int, across: int) -> int:
    lanes, sides = int(m.lanes), (int(m.rows), int(m.columns))
    return min(
        math.ceil(math.ceil(down / cut) / h) * math.ceil(math.ceil(across * cut / lanes) / w)
        for cut in range(1, lanes + 1)
        if lanes % cut == 0
        for h, w in (sides, sides[::-1])
    )
