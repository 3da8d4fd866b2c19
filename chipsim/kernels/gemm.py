"""GEMM: the cost of one mapping in closed form.

    memory -> L2 -> core SRAM -> lanes with systolic arrays

A mapping says how C[m,n] = A[m,k] B[k,n] is cut: a core computes a tile ``tm x tn``, its
SRAM holds ``tk`` of k at a time (twice when double buffered), k may be split over
``split`` cores, and ``rm x rn`` tiles that run together share their panels in L2, of
which one may stay resident. The latency of a mapping is

    T = M + C - H + R,    M = (weights + activations + stores) / bw

with C the time of the busiest core, H the traffic that runs behind it and R the reduction
of split k. ``bw`` joins the memory's bandwidth with what the active cores can
draw. T is the least over the whole space; nothing is sampled.

    C = max(arrays, L2, feed, steps) + stores

A core works through whole waves of tiles. Its arrays compute, what L2 and its own port
give it must arrive, and each step along k has a latency that no tile is too small for;
then it stores. Factors that a source does not name leave all but arrays and L2 at 0.

Sources: output-stationary array time from Samajdar et al., SCALE-Sim (ISPASS 2020);
the L1/L2 hierarchy from Zhang et al., LLMCompass (ISCA 2024); raster and residency are
standard tile scheduling (CUTLASS threadblock swizzle). Feed, steps and stores are what
measured GPUs need beside these (docs/validation.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from chipsim.kernels.jit import inline, kernel
from chipsim.kernels.memory import hidden_seconds, joined_bandwidth, warm_share

if TYPE_CHECKING:
    from chipsim.kernels.grouped import GroupedShape
    from chipsim.kernels.machine import Record

ACCUMULATOR_BYTES = 4.0
"""Partial sums are in fp32, unless a shape says otherwise."""
STEP_BYTES = 128.0
"""Bytes of a row of A in one step along k: a line of SRAM and of L2."""
SCALED_SUMS = 128
"""Length of k after which sums are scaled where elements come in scaled blocks."""
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
    macs: float  # multiply-accumulates of a cell per cycle; no arrays: part of the 16-bit rate
    weights: bool  # B is a weight: it can be fetched ahead
    sum_bytes: float = ACCUMULATOR_BYTES  # of a partial sum
    blocks: bool = False  # tiles of 64 and 128 only, k whole
    step_scale: float = 1.0  # latencies of a core per step along k
    sum_flops: float = 0.0  # vector FLOP per sum and `SCALED_SUMS` of k
    lines: bool = False  # tiles run along one row or column of C after the other


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


class Tile(NamedTuple):
    """A mapping without its raster, and what follows from it."""

    tm: int
    tn: int
    tk: int
    split: int
    buffers: int
    tiles_m: int
    tiles_n: int
    arithmetic: float  # busiest core, seconds, as the next three
    fed: float  # operands through its port
    steps: float  # latency of its steps along k
    stored: float  # results through its port
    l2: float  # operands from L2 without multicast, seconds
    active: float  # cores with work


class Cost(NamedTuple):
    """Seconds and bytes of one mapping; ``latency`` leaves launch out."""

    latency: float
    core: float  # busiest core: the largest of the next three, and stores
    arithmetic: float
    l2: float  # operands from L2: over all cores, or through the port of one
    steps: float
    memory: float  # all traffic at the joined bandwidth
    hidden: float  # part of ``memory`` that runs behind ``core``
    reduction: float
    traffic: float  # bytes over the memory interface
    active: float  # cores that draw from memory
    bandwidth: float  # joined, bytes/s


@inline
def ceil_div(a: int, b: int) -> int:
    """Quotient of whole numbers, rounded up."""
    return (a + b - 1) // b


@inline
def k_slice(
    machine: Record, shape: Shape | GroupedShape, tm: int, tn: int, buffers: int
) -> int:
    """Largest ``tk`` whose slices fit the SRAM beside the accumulators; 0: none does."""
    free = machine.sram - shape.sum_bytes * tm * tn
    return int(free // (buffers * (tm * shape.a_bytes + tn * shape.b_bytes)))


@inline
def lane_passes(extent: int, parts: int, side: int) -> int:
    """Array passes along one side of a tile whose ``extent`` is dealt to ``parts`` lanes."""
    return ceil_div(ceil_div(extent, parts), side)


@inline
def array_passes(machine: Record, tm: int, tn: int) -> int:
    """Array passes of one tile: best split over the lanes and best orientation."""
    if machine.rows == 0.0:
        return 0
    lanes, rows, columns = int(machine.lanes), int(machine.rows), int(machine.columns)
    best = 2**62
    for lm in range(1, lanes + 1):
        if lanes % lm == 0:
            ln = lanes // lm
            upright = lane_passes(tm, lm, rows) * lane_passes(tn, ln, columns)
            turned = lane_passes(tm, lm, columns) * lane_passes(tn, ln, rows)
            best = min(best, upright, turned)
    return best


@inline
def tile_seconds(
    machine: Record,
    shape: Shape | GroupedShape,
    tm: int,
    tn: int,
    passes: int,
    tk: int,
    k: int,
    tall: float,
    wide: float,
) -> float:
    """Arithmetic of one tile over ``k``: array passes, and fill and drain per slice.

    Vector units pad no rows or columns that the product does not have; a tile has ``tall``
    and ``wide`` of them. Sums that are scaled on the way stop the arrays while the vector
    units work, which multiply and add at their peak.
    """
    scaling = 0.0
    if shape.sum_flops > 0.0:
        scaling = shape.sum_flops * tm * tn * ceil_div(k, SCALED_SUMS)
        scaling *= machine.cores / machine.fma_flops
    if machine.rows == 0.0:
        flops = 2.0 * tall * wide * k
        rate = machine.half_flops * shape.macs * machine.tensor_share
        return flops * machine.cores / rate + scaling
    stream = passes * k / shape.macs
    ramp = ceil_div(k, tk) * (machine.rows + machine.columns - 2.0)
    return (stream + ramp) / (machine.tensor_clock * machine.tensor_share) + scaling


@inline
def busiest(
    machine: Record, arithmetic: float, fed: float, steps: float, stored: float
) -> float:
    """Seconds of the busiest core at the clock that so long a load leaves it."""
    core = max(arithmetic, fed, steps) + stored
    if machine.loaded_clock == 1.0:
        return core
    load = core / machine.loaded_after
    return core * (1.0 + load) / (1.0 + machine.loaded_clock * load)


@inline
def resident_fits(
    machine: Record, shape: Shape, tm: int, tn: int, rm: int, rn: int, resident: int
) -> bool:
    """Whether what a mapping keeps in L2 fits the share of it set aside."""
    room = machine.l2_share * machine.l2_capacity
    a_panel = float(min(rm * tm, shape.m)) * shape.k * shape.a_bytes
    b_panel = float(min(rn * tn, shape.n)) * shape.k * shape.b_bytes
    if resident == NONE:
        return True
    if resident == A_PANEL:
        return a_panel <= room
    if resident == B_PANEL:
        return b_panel <= room
    if resident == A_ALL:
        return float(shape.m) * shape.k * shape.a_bytes + b_panel <= room
    return float(shape.n) * shape.k * shape.b_bytes + a_panel <= room


@inline
def alone(machine: Record, tile: Tile) -> float:
    """The busiest core's seconds if nothing else took time: no mapping of a tile beats it."""
    return busiest(machine, tile.arithmetic, tile.fed, tile.steps, tile.stored)


@inline
def tile_of(
    machine: Record,
    shape: Shape | GroupedShape,
    tm: int,
    tn: int,
    tk: int,
    split: int,
    buffers: int,
    passes: int,
    grid: tuple[int, int, float],
    waves: float,
    rows: int,
    outputs: float,
) -> Tile:
    """What follows from a cut: ``grid`` tiles down, across and in all, in ``waves``.

    ``rows`` are those of A at most; ``outputs`` elements of C. Where tiles are fewer than
    cores, their columns are dealt to the idle ones, so every core with an output to compute
    draws from memory: one more row can only add work.
    """
    depth = ceil_div(shape.k, split)
    tall, wide = float(min(tm, rows)), float(min(tn, shape.n))
    element = shape.sum_bytes if split > 1 else shape.c_bytes
    panels = (tm * shape.a_bytes + tn * shape.b_bytes) * shape.k
    lines = math.ceil(depth * shape.a_bytes / STEP_BYTES)
    return Tile(
        tm,
        tn,
        tk,
        split,
        buffers,
        grid[0],
        grid[1],
        waves * tile_seconds(machine, shape, tm, tn, passes, tk, depth, tall, wide),
        waves * (tall * shape.a_bytes + wide * shape.b_bytes) * depth / machine.core_feed,
        waves * lines * (machine.step_latency * shape.step_scale),
        waves * tall * wide * element / machine.core_store,
        grid[2] * panels / machine.l2_bandwidth,
        min(max(1.0, outputs * split), machine.cores),
    )


@inline
def cut(
    machine: Record,
    shape: Shape,
    tm: int,
    tn: int,
    tk: int,
    split: int,
    buffers: int,
    passes: int,
) -> Tile:
    """Cut a product into tiles."""
    tiles_m, tiles_n = ceil_div(shape.m, tm), ceil_div(shape.n, tn)
    tiles = float(shape.batch) * tiles_m * tiles_n
    return tile_of(
        machine,
        shape,
        tm,
        tn,
        tk,
        split,
        buffers,
        passes,
        (tiles_m, tiles_n, tiles),
        np.ceil(tiles * split / machine.cores),  # math.ceil would overflow an int
        shape.m,
        float(shape.batch) * shape.m * shape.n,
    )


@inline
def joined(
    machine: Record,
    tile: Tile,
    ahead: bool,
    a_bytes: float,
    b_bytes: float,
    c_bytes: float,
    outputs: float,
    sum_bytes: float,
) -> Cost:
    """Latency from what crosses the memory interface; ``ahead``: B is a weight.

    ``outputs`` are elements of C: of each, a split k leaves as many partial sums, of
    ``sum_bytes`` each.
    """
    bandwidth = joined_bandwidth(machine, tile.active)
    weights, activations = b_bytes / bandwidth, a_bytes / bandwidth
    if not ahead:
        weights, activations = 0.0, weights + activations
    stores = c_bytes / bandwidth
    memory = weights + activations + stores
    l2 = tile.l2
    if machine.multicast == 1.0:  # a panel leaves L2 once for all cores that share it
        l2 = (a_bytes + b_bytes) / machine.l2_bandwidth
    l2 = max(l2, tile.fed)
    if tile.buffers == 1:  # one buffer: a core loads, then computes
        computed = max(tile.arithmetic, tile.steps)
        core, hidden = busiest(machine, computed + l2, 0.0, 0.0, tile.stored), 0.0
    else:
        core = busiest(machine, tile.arithmetic, l2, tile.steps, tile.stored)
        hidden = hidden_seconds(machine, core, weights, activations, stores)
    reduction = 0.0
    if tile.split > 1:
        reduction = machine.sync
    if tile.split > 1 and machine.merged_split == 0.0:
        partial = 2.0 * tile.split * outputs * sum_bytes
        rate = min(machine.l2_bandwidth, tile.active * machine.core_feed)
        reduction += partial / (bandwidth if math.isinf(rate) else rate)
    return Cost(
        memory + core - hidden + reduction,
        core,
        tile.arithmetic,
        l2,
        tile.steps,
        memory,
        hidden,
        reduction,
        a_bytes + b_bytes + c_bytes,
        tile.active,
        bandwidth,
    )


@inline
def assemble(machine: Record, shape: Shape, tile: Tile, a_reads: float, b_reads: float) -> Cost:
    """Latency from tile and raster (the formula at the head of this file).

    ``a_reads`` and ``b_reads`` say how often A and B cross the memory interface; a warm
    activation is found in L2 the first time.
    """
    batch = float(shape.batch)
    a_once = batch * shape.m * shape.k * shape.a_bytes
    b_once = batch * shape.k * shape.n * shape.b_bytes
    c_once = batch * shape.m * shape.n * shape.c_bytes
    warm = warm_share(machine, a_once + b_once + c_once)
    a_bytes, c_bytes = a_once * (a_reads - warm), c_once * (1.0 - warm)
    b_bytes = b_once * (b_reads - (0.0 if shape.weights else warm))
    outputs = batch * shape.m * shape.n
    ahead, sums = shape.weights, shape.sum_bytes
    return joined(machine, tile, ahead, a_bytes, b_bytes, c_bytes, outputs, sums)


@inline
def line_reads(machine: Record, size: float, lines: int) -> float:
    """Reads of an operand of ``size`` bytes that each line of tiles needs whole: again for
    each as far as L2 forgets it, which holds all up to its own size, and nothing of twice.
    """
    forgotten = min(1.0, max(0.0, size / machine.l2_capacity - 1.0))
    return 1.0 + (lines - 1.0) * forgotten


@inline
def by_lines(machine: Record, shape: Shape, tile: Tile, resident: int) -> Cost:
    """One line of tiles after the other: a column keeps its panel of B, a row its of A."""
    if resident == B_PANEL:
        size = float(shape.m) * shape.k * shape.a_bytes
        return assemble(machine, shape, tile, line_reads(machine, size, tile.tiles_n), 1.0)
    size = float(shape.n) * shape.k * shape.b_bytes
    return assemble(machine, shape, tile, 1.0, line_reads(machine, size, tile.tiles_m))


@kernel
def evaluate(machine: Record, shape: Shape, mapping: Mapping) -> Cost:
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
    tm, tn, rm, rn = mapping.tm, mapping.tn, mapping.rm, mapping.rn
    passes = array_passes(machine, tm, tn)
    tile = cut(machine, shape, tm, tn, mapping.tk, mapping.split, mapping.buffers, passes)
    a_reads, b_reads = ceil_div(tile.tiles_n, rn), ceil_div(tile.tiles_m, rm)
    if mapping.resident in (A_PANEL, A_ALL, B_ALL):
        a_reads = 1
    if mapping.resident in (B_PANEL, A_ALL, B_ALL):
        b_reads = 1
    if shape.lines:
        cost = by_lines(machine, shape, tile, mapping.resident)
    else:
        cost = assemble(machine, shape, tile, float(a_reads), float(b_reads))
    slice_fits = 1 <= mapping.tk <= k_slice(machine, shape, tm, tn, mapping.buffers)
    raster_fits = rm * rn <= machine.cores and (
        shape.lines or resident_fits(machine, shape, tm, tn, rm, rn, mapping.resident)
    )
    if slice_fits and raster_fits:
        return cost
    return Cost(np.inf, *cost[1:])
