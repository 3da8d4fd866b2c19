"""GEMM: the cost of one mapping in closed form, and the exhaustive search over mappings.

    memory -> L2 -> core SRAM -> lanes with systolic arrays

A mapping says how C[m,n] = A[m,k] B[k,n] is cut: a core computes a tile ``tm x tn``, its
SRAM holds ``tk`` of k at a time (twice when double buffered), k may be split over
``split`` cores, and ``rm x rn`` tiles that run together share their panels in L2, of
which one may stay resident. The latency of a mapping is

    T = M + C - H + R,    M = (weights + activations + stores) / bw

with C the time of the busiest core, H the traffic that runs behind it and R the reduction
of split k. ``bw`` joins the memory's bandwidth with what the active cores can
draw. T is the least over the whole space; nothing is sampled.

Sources: output-stationary array time from Samajdar et al., SCALE-Sim (ISPASS 2020);
the L1/L2 hierarchy from Zhang et al., LLMCompass (ISCA 2024); raster and residency are
standard tile scheduling (CUTLASS threadblock swizzle).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from chipsim.kernels.jit import inline, kernel

TILES = np.array(
    [1024, 768, 512, 384, 320, 256, 224, 192, 160, 128, 96, 64, 48, 32, 16], dtype=np.int64
)
"""Sides of a core's tile that are tried, largest first."""
SQUARE_TILES = np.array([1024, 512, 256, 128, 64, 32, 16], dtype=np.int64)
"""Sides that a mapper restricted to square powers of two tries."""
SPLITS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32], dtype=np.int64)
"""Ways to split k over cores."""
ACCUMULATOR_BYTES = 4.0
"""Partial sums are kept in fp32."""
NONE, A_PANEL, B_PANEL, A_ALL, B_ALL = 0, 1, 2, 3, 4
RESIDENT = ("none", "A panel", "B panel", "A and B panel", "B and A panel")
"""Names of what stays in L2, by its number in a mapping."""


class Shape(NamedTuple):
    """A (batched) GEMM as a kernel reads it."""

    m: int
    n: int
    k: int
    batch: int
    a_bytes: float  # per element, scales included
    b_bytes: float
    c_bytes: float
    macs: float  # multiply-accumulates of an array cell per cycle
    weights: bool  # B is a weight: it can be fetched ahead


class Mapping(NamedTuple):
    """One point of the mapping space."""

    tm: int
    tn: int
    tk: int
    split: int
    rm: int
    rn: int
    resident: int
    buffers: int


class Cost(NamedTuple):
    """Seconds and bytes of one mapping; ``latency`` leaves launch out."""

    latency: float
    core: float  # busiest core: the larger of arithmetic and L2 feed
    arithmetic: float
    l2: float
    memory: float  # all traffic at the joined bandwidth
    hidden: float  # part of ``memory`` that runs behind ``core``
    reduction: float
    traffic: float  # bytes over the memory interface
    active: float  # cores with work
    bandwidth: float  # joined, bytes/s


@inline
def ceil_div(a: int, b: int) -> int:
    return (a + b - 1) // b


@inline
def joined_bandwidth(machine, active):  # type: ignore[no-untyped-def]
    """Root-sum-square of memory bandwidth and the draw of the active cores, bytes/s."""
    draw = active * machine.core_draw
    if math.isinf(draw):
        return machine.memory_bandwidth
    ratio = machine.memory_bandwidth / draw
    return machine.memory_bandwidth / math.sqrt(1.0 + ratio * ratio)


@inline
def hidden_seconds(machine, core, weights, activations, stores):  # type: ignore[no-untyped-def]
    """Traffic that runs behind compute: weights first, then activations, then stores.

    Each takes what is left of the core's time, and its overlap factor says which share of
    that is really hidden. With all factors 1 the whole is ``min(core, traffic)``.
    """
    behind = min(core, weights)
    hidden = machine.overlap_weights * behind
    core -= behind
    behind = min(core, activations)
    hidden += machine.overlap_activations * behind
    core -= behind
    return hidden + machine.overlap_stores * min(core, stores)


@inline
def k_slice(machine, shape, tm, tn, buffers):  # type: ignore[no-untyped-def]
    """Largest ``tk`` whose slices fit the SRAM beside the accumulators; 0: none does."""
    free = machine.sram - ACCUMULATOR_BYTES * tm * tn
    return int(free // (buffers * (tm * shape.a_bytes + tn * shape.b_bytes)))


@inline
def array_passes(machine, tm, tn):  # type: ignore[no-untyped-def]
    """Array passes of one tile: best split over the lanes and best orientation."""
    if machine.rows == 0.0:
        return np.int64(0)
    lanes, rows, columns = int(machine.lanes), int(machine.rows), int(machine.columns)
    best = np.int64(2**62)
    for lm in range(1, lanes + 1):
        if lanes % lm == 0:
            pm, pn = ceil_div(tm, lm), ceil_div(tn, lanes // lm)
            upright = ceil_div(pm, rows) * ceil_div(pn, columns)
            turned = ceil_div(pm, columns) * ceil_div(pn, rows)
            best = min(best, min(upright, turned))
    return best


@inline
def tile_seconds(machine, shape, tm, tn, passes, tk, k):  # type: ignore[no-untyped-def]
    """Arithmetic of one tile over ``k``: array passes, and fill and drain per slice."""
    if machine.rows == 0.0:
        return 2.0 * tm * tn * k * machine.cores / (machine.half_flops * machine.tensor_share)
    stream = passes * k / shape.macs
    ramp = ceil_div(k, tk) * (machine.rows + machine.columns - 2.0)
    return (stream + ramp) / (machine.tensor_clock * machine.tensor_share)


@inline
def resident_fits(machine, shape, tm, tn, rm, rn, resident):  # type: ignore[no-untyped-def]
    """Whether what a mapping keeps in L2 fits the share of it set aside."""
    room = machine.l2_share * machine.l2_capacity
    a_panel = min(rm * tm, shape.m) * shape.k * shape.a_bytes
    b_panel = min(rn * tn, shape.n) * shape.k * shape.b_bytes
    if resident == NONE:
        return True
    if resident == A_PANEL:
        return a_panel <= room
    if resident == B_PANEL:
        return b_panel <= room
    if resident == A_ALL:
        return shape.m * shape.k * shape.a_bytes + b_panel <= room
    return shape.n * shape.k * shape.b_bytes + a_panel <= room


@inline
def assemble(machine, shape, waves, tile, l2, active, split, buffers, a_reads, b_reads):  # type: ignore[no-untyped-def]
    """Latency of a mapping from its parts (the formula at the head of this file)."""
    batch = float(shape.batch)
    a_bytes = batch * shape.m * shape.k * shape.a_bytes * a_reads
    b_bytes = batch * shape.k * shape.n * shape.b_bytes * b_reads
    c_bytes = batch * shape.m * shape.n * shape.c_bytes
    bandwidth = joined_bandwidth(machine, active)
    weights, activations = b_bytes / bandwidth, a_bytes / bandwidth
    if not shape.weights:
        weights, activations = 0.0, weights + activations
    stores = c_bytes / bandwidth
    memory = weights + activations + stores
    arithmetic = waves * tile
    core = max(arithmetic, l2)
    hidden = hidden_seconds(machine, core, weights, activations, stores)
    if buffers == 1:  # one buffer: a core loads, then computes
        core, hidden = arithmetic + l2, 0.0
    reduction = 0.0
    if split > 1:
        partial = 2.0 * split * batch * shape.m * shape.n * ACCUMULATOR_BYTES
        rate = machine.l2_bandwidth
        reduction = partial / (bandwidth if math.isinf(rate) else rate)
    return Cost(
        memory + core - hidden + reduction,
        core,
        arithmetic,
        l2,
        memory,
        hidden,
        reduction,
        a_bytes + b_bytes + c_bytes,
        active,
        bandwidth,
    )


@inline
def l2_seconds(machine, shape, tm, tn, tiles):  # type: ignore[no-untyped-def]
    """Operands that the cores pull from L2: each tile its own panels."""
    panel = (tm * shape.a_bytes + tn * shape.b_bytes) * shape.k
    return tiles * panel / machine.l2_bandwidth


@kernel
def evaluate(machine, shape, mapping):  # type: ignore[no-untyped-def]
    """Cost of one mapping; infinite latency when it does not fit.

    Parameters
    ----------
    machine : record of `MACHINE`
    shape : Shape
    mapping : Mapping

    Returns
    -------
    Cost
    """
    tm, tn, split = mapping.tm, mapping.tn, mapping.split
    tiles_m, tiles_n = ceil_div(shape.m, tm), ceil_div(shape.n, tn)
    tiles = float(shape.batch) * tiles_m * tiles_n
    active = min(tiles * split, machine.cores)
    waves = math.ceil(tiles * split / machine.cores)
    passes = array_passes(machine, tm, tn)
    tile = tile_seconds(machine, shape, tm, tn, passes, mapping.tk, ceil_div(shape.k, split))
    a_reads, b_reads = ceil_div(tiles_n, mapping.rn), ceil_div(tiles_m, mapping.rm)
    if mapping.resident in (A_PANEL, A_ALL, B_ALL):
        a_reads = 1
    if mapping.resident in (B_PANEL, A_ALL, B_ALL):
        b_reads = 1
    cost = assemble(
        machine,
        shape,
        waves,
        tile,
        l2_seconds(machine, shape, tm, tn, tiles),
        active,
        split,
        mapping.buffers,
        a_reads,
        b_reads,
    )
    slice_fits = 1 <= mapping.tk <= k_slice(machine, shape, tm, tn, mapping.buffers)
    if (
        slice_fits
        and mapping.rm * mapping.rn <= machine.cores
        and resident_fits(machine, shape, tm, tn, mapping.rm, mapping.rn, mapping.resident)
    ):
        return cost
    return Cost(np.inf, *cost[1:])


@inline
def covers(sides, index, extent):  # type: ignore[no-untyped-def]
    """Whether the next smaller tile side spans the extent too: then this one only wastes."""
    return index + 1 < len(sides) and sides[index + 1] >= extent


@inline
def allowed(machine, sides, i, j, m, n):  # type: ignore[no-untyped-def]
    """Whether a mapper tries this pair; square tiles may be cut where the matrix ends."""
    if machine.square_tiles == 0.0 or i == j:
        return True
    return sides[i] >= m if sides[i] < sides[j] else sides[j] >= n


@inline
def panel_tiles(room, tile, extent, k_bytes, limit):  # type: ignore[no-untyped-def]
    """Most tiles of a panel that fit ``room`` bytes (0: none), at most ``limit``."""
    if extent * k_bytes <= room:
        return limit
    return min(limit, int(room // (tile * k_bytes)))


@kernel
def search(machine, shape):  # type: ignore[no-untyped-def]
    """The best mapping of the whole space.

    The space is every tile side of `TILES`, split of `SPLITS`, one or two buffers, and
    every raster ``rm x rn`` up to the core count with every choice of what stays in L2.
    Given the rest, latency falls with ``tk``, and with ``rn`` at a given number of row
    blocks, so only the largest of each is visited; tiles whose core time or compulsory
    traffic alone exceed the best so far are passed over. Both cuts are exact.

    Parameters
    ----------
    machine : record of `MACHINE`
    shape : Shape

    Returns
    -------
    tuple of (Mapping, float, int, int)
        Best mapping, its latency (launch left out; infinite when not even the smallest
        tile fits the SRAM), mappings covered, mappings costed one by one.
    """
    best = Mapping(0, 0, 0, 0, 0, 0, 0, 0)
    latency = np.inf
    covered, costed = 0.0, 0
    cores = int(machine.cores)
    room = machine.l2_share * machine.l2_capacity
    a_row, b_column = shape.k * shape.a_bytes, shape.k * shape.b_bytes
    sides = TILES if machine.square_tiles == 0.0 else SQUARE_TILES
    for i in range(len(sides)):
        if covers(sides, i, shape.m):
            continue
        for j in range(len(sides)):
            if covers(sides, j, shape.n) or not allowed(machine, sides, i, j, shape.m, shape.n):
                continue
            tm, tn = sides[i], sides[j]
            tiles_m, tiles_n = ceil_div(shape.m, tm), ceil_div(shape.n, tn)
            tiles = float(shape.batch) * tiles_m * tiles_n
            l2 = l2_seconds(machine, shape, tm, tn, tiles)
            passes = array_passes(machine, tm, tn)
            for buffers in (2, 1):
                fits = k_slice(machine, shape, tm, tn, buffers)
                if fits < 1:
                    continue
                for split in SPLITS:
                    if split > shape.k:
                        break
                    k = ceil_div(shape.k, split)
                    tk = min(fits, k)
                    tile = tile_seconds(machine, shape, tm, tn, passes, tk, k)
                    active = min(tiles * split, machine.cores)
                    waves = math.ceil(tiles * split / machine.cores)
                    covered += 5.0 * min(cores, tiles_m) * min(cores, tiles_n)
                    bound = assemble(
                        machine, shape, waves, tile, l2, active, split, buffers, 1, 1
                    )
                    if bound.latency >= latency:
                        continue
                    blocks = ceil_div(tiles_m, min(cores, tiles_m))
                    while blocks <= tiles_m:  # nothing resident: row blocks, widest raster
                        rm = ceil_div(tiles_m, blocks)
                        rn = min(cores // rm, tiles_n)
                        cost = assemble(
                            machine,
                            shape,
                            waves,
                            tile,
                            l2,
                            active,
                            split,
                            buffers,
                            ceil_div(tiles_n, rn),
                            blocks,
                        )
                        costed += 1
                        if cost.latency < latency:
                            latency = cost.latency
                            best = Mapping(tm, tn, tk, split, rm, rn, NONE, buffers)
                        if rm == 1:
                            break
                        blocks = ceil_div(tiles_m, rm - 1)
                    rm = panel_tiles(room, tm, shape.m, a_row, min(cores, tiles_m))
                    rn = panel_tiles(room, tn, shape.n, b_column, min(cores, tiles_n))
                    a_rest = room - shape.n * b_column
                    b_rest = room - shape.m * a_row
                    for resident in (A_PANEL, B_PANEL, A_ALL, B_ALL):
                        r, q, a_reads, b_reads = 1, 1, 1, 1
                        if resident == A_PANEL:
                            r, b_reads = rm, ceil_div(tiles_m, max(rm, 1))
                        elif resident == B_PANEL:
                            q, a_reads = rn, ceil_div(tiles_n, max(rn, 1))
                        elif resident == A_ALL:
                            q = panel_tiles(b_rest, tn, shape.n, b_column, 1)
                        else:
                            r = panel_tiles(a_rest, tm, shape.m, a_row, 1)
                        if r < 1 or q < 1:
                            continue
                        cost = assemble(
                            machine,
                            shape,
                            waves,
                            tile,
                            l2,
                            active,
                            split,
                            buffers,
                            a_reads,
                            b_reads,
                        )
                        costed += 1
                        if cost.latency < latency:
                            latency = cost.latency
                            best = Mapping(tm, tn, tk, split, r, q, resident, buffers)
    return best, latency, covered, costed
