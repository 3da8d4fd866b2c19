"""GEMM latency written out plainly in Python, and a search that tries everything.

Independent of the kernels: no call of theirs is used, and no cut of the space is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipsim.kernels.gemm import Shape

Point = tuple[int, int, int, int, int, int, str, int]


def latency(m: Any, s: Shape, point: Point) -> float:
    """Seconds of one mapping; infinite when it does not fit."""
    tm, tn, tk, split, rm, rn, resident, buffers = point
    slices = buffers * tk * (tm * s.a_bytes + tn * s.b_bytes)
    if tm * tn * s.sum_bytes + slices > m.sram or rm * rn > m.cores or not _kept(m, s, point):
        return math.inf
    across, down = math.ceil(s.n / tn), math.ceil(s.m / tm)
    tiles = s.batch * across * down
    waves = math.ceil(tiles * split / m.cores)
    depth = math.ceil(s.k / split)
    arithmetic = waves * _tile(m, s, tm, tn, tk, depth)
    a_times = 1 if resident in ("A", "A+b", "B+a") else math.ceil(across / rn)
    b_times = 1 if resident in ("B", "A+b", "B+a") else math.ceil(down / rm)
    a, b = s.batch * s.m * s.k * s.a_bytes, s.batch * s.k * s.n * s.b_bytes
    c = s.batch * s.m * s.n * s.c_bytes
    found = 0.0
    if m.warm:
        found = min(1, max(0, 2 - 2 * (a + b + c) / m.l2_capacity))
    a, b = a * a_times - found * a, b * b_times - (0 if s.weights else found * b)
    c -= found * c
    draw = min(s.batch * s.m * s.n * split, m.cores) * m.core_draw
    per_byte = _norm(1 / m.memory_bandwidth, 1 / draw, 2 if math.isinf(m.join) else m.join)
    pulled = tiles * s.k * (tm * s.a_bytes + tn * s.b_bytes)
    l2 = (a + b if m.multicast else pulled) / m.l2_bandwidth
    height, width = min(tm, s.m), min(tn, s.n)
    port = waves * depth * (height * s.a_bytes + width * s.b_bytes) / m.core_feed
    l2 = max(l2, port)
    lines = math.ceil(depth * s.a_bytes / 128)
    steps = waves * lines * m.step_latency * s.step_scale
    leaving = s.sum_bytes if split > 1 else s.c_bytes
    stores = waves * height * width * leaving / m.core_store
    reduction = 0.0
    if split > 1:
        reduction = m.sync
        if not m.merged_split:
            cores = min(s.batch * s.m * s.n * split, m.cores)
            rate = min(m.l2_bandwidth, cores * m.core_feed)
            rate = 1 / per_byte if math.isinf(rate) else rate
            reduction += 2 * split * s.batch * s.m * s.n * s.sum_bytes / rate
    memory = (a + b + c) * per_byte
    if buffers == 1:
        return float(memory + _slowed(m, max(arithmetic, steps) + l2 + stores) + reduction)
    core = left = _slowed(m, max(arithmetic, l2, steps) + stores)
    hidden = 0.0
    classes = [(b, m.overlap_weights), (a, m.overlap_activations)]
    if not s.weights:
        classes = [(a + b, m.overlap_activations)]
    for moved, share in [*classes, (c, m.overlap_stores)]:
        behind = left + moved * per_byte - _norm(left, moved * per_byte, m.join)
        hidden += share * behind
        left -= behind
    return float(memory + core - hidden + reduction)


def _norm(a: float, b: float, p: float) -> float:
    """(a^p + b^p)^(1/p), which is the larger of the two in the limit."""
    larger = max(a, b)
    if math.isinf(p) or larger == 0:
        return larger
    return float(larger * ((a / larger) ** p + (b / larger) ** p) ** (1 / p))


def _slowed(m: Any, core: float) -> float:
    """Half of the way to the loaded clock at ``loaded_after``, where clock is 1 / (1 + x)."""
    return float(core * (m.loaded_after + core) / (m.loaded_after + m.loaded_clock * core))


def _kept(m: Any, s: Shape, point: Point) -> bool:
    tm, tn, _, _, rm, rn, resident, _ = point
    a_all, b_all = s.m * s.k * s.a_bytes, s.k * s.n * s.b_bytes
    a_panel = min(rm * tm, s.m) * s.k * s.a_bytes
    b_panel = min(rn * tn, s.n) * s.k * s.b_bytes
    need = {"": 0, "A": a_panel, "B": b_panel, "A+b": a_all + b_panel, "B+a": b_all + a_panel}
    return resident == "" or need[resident] <= m.l2_share * m.l2_capacity


def _tile(m: Any, s: Shape, tm: int, tn: int, tk: int, k: int) -> float:
    scaling = s.sum_flops * tm * tn * math.ceil(k / 128) * m.cores / m.fma_flops
    if m.rows == 0:
        flops = 2 * min(tm, s.m) * min(tn, s.n) * k
        return float(scaling + flops * m.cores / (m.half_flops * s.macs * m.tensor_share))
    passes = min(
        math.ceil(math.ceil(tm / lm) / h) * math.ceil(math.ceil(tn / (m.lanes / lm)) / w)
        for lm in range(1, int(m.lanes) + 1)
        if m.lanes % lm == 0
        for h, w in ((m.rows, m.columns), (m.columns, m.rows))
    )
    cycles = passes * k / s.macs + math.ceil(k / tk) * (m.rows + m.columns - 2)
    return float(scaling + cycles / (m.tensor_clock * m.tensor_share))


def everything(m: Any, s: Shape, sides: list[int], splits: list[int]) -> Iterator[Point]:
    """Every mapping over tile sides and splits: all slices, all rasters."""
    cores = int(m.cores)
    for tm in sides:
        for tn in sides:
            for split in splits:
                if split > s.k:
                    continue
                for tk in {1, 2, 3, *range(4, math.ceil(s.k / split) + 1)}:
                    if tk > math.ceil(s.k / split):
                        continue
                    for buffers in (1, 2):
                        for rm in range(1, cores + 1):
                            for rn in range(1, cores // rm + 1):
                                for resident in ("", "A", "B", "A+b", "B+a"):
                                    yield tm, tn, tk, split, rm, rn, resident, buffers
