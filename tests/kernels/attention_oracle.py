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
FP32 = 4.0
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
    room = rows * (s.head_dim * s.q_bytes + s.value_dim * FP32)
    if room + 2 * keys * width * s.kv_bytes > m.sram:  # one block is used, one is fetched
        return math.inf
    group = s.q_heads // s.kv_heads
    packed = [row // group for row in range(s.query * group)]
    tiles = [set(packed[i : i + rows]) for i in range(0, len(packed), rows)]
    blocks = [math.ceil(_seen(s, tile) / keys) for tile in tiles]
    heads = s.batch * s.kv_heads
    units = heads * len(tiles) * split
    longest = math.ceil(max(blocks) / split)
    waves = math.ceil(units / m.cores) * max(1, min(blocks) // split)
    makespan = max(longest, heads * sum(blocks) / m.cores, waves)
    core = makespan * _block(m, s, rows, keys)
    per_byte = math.hypot(1 / m.memory_bandwidth, 1 / (min(units, m.cores) * m.core_draw))
    fetched = heads * _seen(s, set(range(s.query))) * width * s.kv_bytes
    tokens = s.batch * s.q_heads * s.query
    moved = [
        (fetched * per_byte, m.overlap_weights),
        (tokens * s.head_dim * s.q_bytes * per_byte, m.overlap_activations),
        (tokens * s.value_dim * s.q_bytes * per_byte, m.overlap_stores),
    ]
    total, left = core, core
    for seconds, share in moved:
        behind = min(left, seconds)
        left -= behind
        total += seconds - share * behind
    if split > 1:  # each result with its maximum and its sum, written and read in fp32
        partial = 2 * split * tokens * (s.value_dim + 2) * FP32
        rate = 1 / per_byte if math.isinf(m.l2_bandwidth) else m.l2_bandwidth
        total += partial / rate
    return float(total)


def _block(m: Any, s: AttentionShape, rows: int, keys: int) -> float:
    scores = rows * keys
    vector = scores * (SOFTMAX + m.exp_flops) / (m.vector_flops / m.cores)
    if m.rows == 0:
        flops = 2 * scores * (s.head_dim + s.value_dim)
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
