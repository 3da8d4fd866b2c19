"""Fused attention written out plainly in Python: every tile height and every split.

Independent of the kernel: masks are sets of keys, one query at a time. Only the lists of what
is tried come from `chipsim.kernels.attention`; the counts are numbers here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from chipsim.kernels.attention import KEY_BLOCK, KEY_SPLITS, ROWS

if TYPE_CHECKING:
    from chipsim.kernels.attention_tiles import AttentionShape

SOFTMAX = 6.0
"""Vector FLOP of a score beside the exponential."""
WIDE = 256
"""Elements of a key and a value above which smaller blocks of keys are tried too."""


def latency(m: Any, s: AttentionShape) -> float:
    """Least seconds of dense attention; infinite when no tile fits."""
    blocks = [KEY_BLOCK] if s.head_dim + s.value_dim <= WIDE else [64, 32, 16]
    packings = {s.q_heads // s.kv_heads}
    if not m.packed_prompts:
        packings = packings | {1} if s.query == 1 else {1}
    return min(
        (
            _mapped(m, s, group, int(rows), int(split), keys)
            for group in packings
            for rows in ROWS
            for split in KEY_SPLITS
            for keys in ([max(16, m.tile_scores // rows)] if m.tile_scores else blocks)
            if m.least_rows <= rows <= m.most_rows
        ),
        default=math.inf,
    )


def _pieces(m: Any, rows: int, keys: int) -> list[tuple[int, int]]:
    """What a tile and a block are computed in where they do not fit, the largest first."""
    found = [(rows, keys)]
    if not m.tile_scores:
        found += [(rows, each) for each in (32, 16) if each < keys]
    if rows // 2 < max(16, m.least_rows):  # no smaller tile
        found += [(each, found[-1][1]) for each in (128, 64, 32, 16, 8, 4, 2, 1) if each < rows]
        if not m.tile_scores:
            found += [(1, each) for each in (8, 4, 2, 1)]
    return found


def _fits(m: Any, s: AttentionShape, rows: int, keys: int) -> bool:
    row, query = (s.head_dim + s.value_dim) * s.kv_bytes, s.head_dim * s.q_bytes
    if m.tile_scores:
        return bool(rows * query + 16 * row <= m.sram)
    # Sums beside the queries; one block is used, one is fetched.
    return bool(rows * (query + s.value_dim * s.sum_bytes) + 2 * keys * row <= m.sram)


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


def _mapped(m: Any, s: AttentionShape, group: int, rows: int, split: int, keys: int) -> float:
    row = (s.head_dim + s.value_dim) * s.kv_bytes
    query, result = s.head_dim * s.q_bytes, s.value_dim * s.q_bytes
    piece = next((each for each in _pieces(m, rows, keys) if _fits(m, s, *each)), None)
    if piece is None:
        return math.inf
    packed = [row // group for row in range(s.query * group)]
    backwards = packed[::-1]  # tiles are cut from the last row on: the first row's is ragged
    tiles = [set(backwards[i : i + rows]) for i in range(0, len(packed), rows)]
    if split > 1 and not m.prompt_split and s.query > 1 and len(tiles) > 1:
        return math.inf
    blocks = [math.ceil(_seen(s, tile) / keys) for tile in tiles]
    heads, held = s.batch * s.q_heads // group, min(rows, len(packed))
    places = m.cores
    if s.query == 1:
        places *= max(1, min(m.resident_tiles, m.sram // (rows * query + keys * row)))
    # Each part of a tile's rows walks all of its keys again.
    walks, bits = rows / piece[0], keys / piece[1]
    arithmetic = walks * bits * _block(m, s, piece[0], held / walks, piece[1])
    fetch = walks * m.chunk_keys * row / m.tile_draw
    start = m.tile_latency + held * query / m.core_feed + held * result / m.core_store
    start += 0 if m.prefetch else fetch
    pieces = heads * split
    # Of tiles that read the same keys one draws them, the others find them in L2.
    seen = _seen(s, set(range(s.query)))
    drawing = s.batch * s.kv_heads * math.ceil(seen / m.chunk_keys) * fetch
    own = min(seen, s.window + math.ceil(rows / group) - 1) if s.window else s.context
    chunks = math.ceil(own / m.chunk_keys)
    first = 0.0
    if heads == s.batch * s.kv_heads:
        first = max(1, math.ceil(_seen(s, tiles[0]) / m.chunk_keys) // split) * fetch
    # Some core has so many pieces of the first tiles, each at least as long as the shortest.
    waves = max(
        math.ceil(pieces * count / places)
        * (start + max(
            max(1, min(blocks[:count]) // split) * arithmetic, first if count == 1 else 0
        ))
        for count in range(1, len(blocks) + 1)
        if count == 1 or pieces / places * (count - 1) < 64
    )  # fmt: skip
    core = _slowed(m, max(
        start + math.ceil(max(blocks) / split) * arithmetic,
        start + math.ceil(chunks / split) * fetch,
        (pieces * len(tiles) * start + heads * sum(blocks) * arithmetic) / places,
        (pieces * len(tiles) * start + drawing) / places,
        heads * sum(blocks) * arithmetic / m.cores,
        waves,
    ))  # fmt: skip
    fetched = s.batch * s.kv_heads * seen * row
    if m.warm:
        fetched *= 1 - min(1, max(0, 2 - 2 * fetched / m.l2_capacity))
    # A core draws what its tile needs: the keys of its part, its own queries and results.
    drawn = own / split * row
    tokens = s.batch * s.q_heads * s.query
    moved = [
        (_moved(m, fetched, drawn), m.overlap_weights),
        (_moved(m, tokens * query, held * query), m.overlap_activations),
        (_moved(m, tokens * result, held * result), m.overlap_stores),
    ]
    total, left = core, core
    for seconds, share in moved:
        behind = left + seconds - _norm(left, seconds, m.join)
        left -= behind
        total += seconds - share * behind
    if split > 1:  # each result with its maximum and its sum, written and read
        partial = 2 * (s.value_dim + 2) * s.sum_bytes
        rate = min(m.l2_bandwidth, min(tokens, m.cores) * m.core_feed)
        total += m.sync + m.merge_launch
        if math.isinf(rate):
            total += _moved(m, split * tokens * partial, held * partial)
        else:
            total += split * tokens * partial / rate
    return float(total)


def _moved(m: Any, size: float, of_a_core: float) -> float:
    """Bytes over the memory's bandwidth and over what the busiest core can draw, joined."""
    busiest = max(of_a_core, size / m.cores)
    return math.hypot(size / (m.memory_bandwidth * m.stream_ratio), busiest / m.core_draw)


def _norm(a: float, b: float, p: float) -> float:
    """(a^p + b^p)^(1/p), which is the larger of the two in the limit."""
    larger = max(a, b)
    if math.isinf(p) or larger == 0:
        return larger
    return float(larger * ((a / larger) ** p + (b / larger) ** p) ** (1 / p))


def _slowed(m: Any, core: float) -> float:
    """Half of the way to the loaded clock at ``loaded_after``, where clock is 1 / (1 + x)."""
    return float(core * (m.loaded_after + core) / (m.loaded_after + m.loaded_clock * core))


def _block(m: Any, s: AttentionShape, rows: int, held: float, keys: int) -> float:
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
