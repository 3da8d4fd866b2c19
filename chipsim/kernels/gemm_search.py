"""The exhaustive search over mappings of a GEMM.

    every tile -> the best raster of each -> the least latency

Before a tile is cut, what it cannot beat is known: all its work dealt evenly to the cores,
and everything read once for each split of k. Both are exact, and leave a few of a hundred.

`chipsim.kernels.gemm` says what a mapping costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from chipsim.kernels.gemm import (
    A_ALL,
    A_PANEL,
    B_ALL,
    B_PANEL,
    NONE,
    Mapping,
    Tile,
    alone,
    assemble,
    by_lines,
    ceil_div,
    cut,
    k_slice,
    lane_passes,
    tile_of,
)
from chipsim.kernels.jit import inline, kernel

if TYPE_CHECKING:
    from chipsim.kernels.gemm import Cost, Shape
    from chipsim.kernels.grouped import GroupedShape
    from chipsim.kernels.machine import Record

IntArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

TILES = np.array(
    [1024, 768, 512, 384, 320, 256, 224, 192, 160, 128, 96, 64, 48, 32, 16], dtype=np.int64
)
"""Sides of a core's tile that are tried, largest first."""
BLOCK_TILES = np.array([128, 64], dtype=np.int64)
"""Sides of the tiles of block-wise kernels."""
SQUARE_TILES = np.array([1024, 512, 256, 128, 64, 32, 16], dtype=np.int64)
"""Sides that a mapper restricted to square powers of two tries."""
SPLITS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32], dtype=np.int64)
"""Ways to split k over cores."""


@inline
def tile_sides(machine: Record, blocks: bool) -> IntArray:
    """Sides of a tile that the mapper tries."""
    if blocks:
        return BLOCK_TILES
    return TILES if machine.square_tiles == 0.0 else SQUARE_TILES


@inline
def most_split(shape: Shape | GroupedShape) -> int:
    """Most parts that k is split into."""
    return 1 if shape.blocks else shape.k


@inline
def covers(sides: IntArray, index: int, extent: int) -> bool:
    """Whether the next smaller tile side spans the extent too: then this one only wastes."""
    return index + 1 < len(sides) and sides[index + 1] >= extent


@inline
def allowed(machine: Record, sides: IntArray, i: int, j: int, m: int, n: int) -> bool:
    """Whether the mapper tries this pair: no waste, and square where it must be.

    Square tiles may be cut where the matrix ends.
    """
    if covers(sides, i, m) or covers(sides, j, n):
        return False
    if machine.square_tiles == 0.0 or i == j:
        return True
    return bool(sides[i] >= m if sides[i] < sides[j] else sides[j] >= n)


@inline
def panel_tiles(room: float, tile: int, extent: int, k_bytes: float, limit: int) -> int:
    """Most tiles of a panel that fit ``room`` bytes (0: none), at most ``limit``."""
    if extent * k_bytes <= room:
        return limit
    return min(limit, int(room // (tile * k_bytes)))


class Raster(NamedTuple):
    """The best raster of a tile, and how many were costed."""

    latency: float
    rm: int
    rn: int
    resident: int
    costed: int


@inline
def widest_raster(machine: Record, shape: Shape, tile: Tile) -> Raster:
    """Nothing resident: each number of row blocks with the widest raster that it leaves."""
    cores = int(machine.cores)
    best = Raster(np.inf, 0, 0, NONE, 0)
    costed = 0
    blocks = ceil_div(tile.tiles_m, min(cores, tile.tiles_m))
    while True:
        rm = ceil_div(tile.tiles_m, blocks)
        rn = min(cores // rm, tile.tiles_n)
        a_reads = float(ceil_div(tile.tiles_n, rn))
        cost = assemble(machine, shape, tile, a_reads, float(blocks))
        costed += 1
        if cost.latency < best.latency:
            best = Raster(cost.latency, rm, rn, NONE, 0)
        if rm == 1:
            return Raster(best.latency, best.rm, best.rn, NONE, costed)
        blocks = ceil_div(tile.tiles_m, rm - 1)


@inline
def resident_raster(machine: Record, shape: Shape, tile: Tile) -> Raster:
    """A panel, or a panel and the whole of the other operand, kept in L2."""
    room = machine.l2_share * machine.l2_capacity
    a_row, b_column = shape.k * shape.a_bytes, shape.k * shape.b_bytes
    most_m = min(int(machine.cores), tile.tiles_m)
    most_n = min(int(machine.cores), tile.tiles_n)
    best = Raster(np.inf, 0, 0, NONE, 0)
    costed = 0
    for resident in (A_PANEL, B_PANEL, A_ALL, B_ALL):
        rm, rn, a_reads, b_reads = 1, 1, 1, 1
        if resident == A_PANEL:
            rm = panel_tiles(room, tile.tm, shape.m, a_row, most_m)
            b_reads = ceil_div(tile.tiles_m, max(rm, 1))
        elif resident == B_PANEL:
            rn = panel_tiles(room, tile.tn, shape.n, b_column, most_n)
            a_reads = ceil_div(tile.tiles_n, max(rn, 1))
        elif resident == A_ALL:
            rn = panel_tiles(room - shape.m * a_row, tile.tn, shape.n, b_column, 1)
        else:
            rm = panel_tiles(room - shape.n * b_column, tile.tm, shape.m, a_row, 1)
        if rm >= 1 and rn >= 1:
            cost = assemble(machine, shape, tile, float(a_reads), float(b_reads))
            costed += 1
            if cost.latency < best.latency:
                best = Raster(cost.latency, rm, rn, resident, 0)
    return Raster(best.latency, best.rm, best.rn, best.resident, costed)


@inline
def best_raster(machine: Record, shape: Shape, tile: Tile) -> Raster:
    """The best raster of a tile, or the only one that the source's kernel has."""
    cores = int(machine.cores)
    if shape.lines:
        down = by_lines(machine, shape, tile, B_PANEL).latency
        across = by_lines(machine, shape, tile, A_PANEL).latency
        if down <= across:
            return Raster(down, min(cores, tile.tiles_m), 1, B_PANEL, 2)
        return Raster(across, 1, min(cores, tile.tiles_n), A_PANEL, 2)
    wide = widest_raster(machine, shape, tile)
    kept = resident_raster(machine, shape, tile)
    found = wide if wide.latency <= kept.latency else kept
    costed = wide.costed + kept.costed
    return Raster(found.latency, found.rm, found.rn, found.resident, costed)


@inline
def pass_table(machine: Record, sides: IntArray) -> IntArray:
    """`chipsim.kernels.gemm.array_passes` of every pair of sides: a sum over lanes once."""
    count = len(sides)
    table = np.full((count, count), 0 if machine.rows == 0.0 else 2**62)
    if machine.rows == 0.0:
        return table
    lanes, rows, columns = int(machine.lanes), int(machine.rows), int(machine.columns)
    down, across = np.empty((2, count), np.int64), np.empty((2, count), np.int64)
    for lm in range(1, lanes + 1):
        if lanes % lm != 0:
            continue
        for i in range(count):
            ln = lanes // lm
            down[0, i] = lane_passes(sides[i], lm, rows)
            down[1, i] = lane_passes(sides[i], lm, columns)
            across[0, i] = lane_passes(sides[i], ln, columns)
            across[1, i] = lane_passes(sides[i], ln, rows)
        for i in range(count):
            for j in range(count):
                upright, turned = down[0, i] * across[0, j], down[1, i] * across[1, j]
                table[i, j] = min(table[i, j], upright, turned)
    return table


@inline
def blank_tile(machine: Record, split: int, outputs: float) -> Tile:
    """A tile of no work: what is left is the traffic."""
    active = min(max(1.0, outputs * split), machine.cores)
    return Tile(16, 16, 1, split, 2, 1, 1, 0.0, 0.0, 0.0, 0.0, 0.0, active)


class Floors(NamedTuple):
    """What no tile beats, by split of k, seconds."""

    latency: Floats  # everything read once, no core at work
    memory: Floats
    reduction: Floats


@inline
def with_floor(floors: Floors, index: int, cost: Cost) -> None:
    """Note what a `blank_tile` costs."""
    floors.latency[index] = cost.latency
    floors.memory[index] = cost.memory
    floors.reduction[index] = cost.reduction


@inline
def no_floors() -> Floors:
    """Room for the floors of `SPLITS`."""
    count = len(SPLITS)
    return Floors(np.empty(count), np.empty(count), np.empty(count))


@inline
def least_of(floors: Floors, index: int, buffers: int, core: float) -> float:
    """The least that a tile takes whose busiest core takes ``core`` if nothing else did."""
    behind = floors.memory[index] if buffers == 1 else 0.0
    return float(max(floors.latency[index], behind + core + floors.reduction[index]))


@inline
def floors_of(machine: Record, shape: Shape) -> Floors:
    """Floors of a product."""
    floors = no_floors()
    outputs = float(shape.batch) * shape.m * shape.n
    for index in range(len(SPLITS)):
        tile = blank_tile(machine, SPLITS[index], outputs)
        with_floor(floors, index, assemble(machine, shape, tile, 1.0, 1.0))
    return floors


@inline
def evenly(
    machine: Record,
    shape: Shape | GroupedShape,
    tm: int,
    tn: int,
    passes: int,
    tiles: float,
    rows: int,
) -> float:
    """Seconds of every core if the work of the tiles were dealt evenly, whatever the split."""
    grid, waves = (1, 1, tiles), tiles / machine.cores
    tile = tile_of(machine, shape, tm, tn, shape.k, 1, 2, passes, grid, waves, rows, 1.0)
    return alone(machine, tile)


@inline
def dominated(shape: Shape | GroupedShape, buffers: int, twice: int, split: int) -> bool:
    """Whether one buffer gains nothing: two of all of k fit."""
    return buffers == 1 and twice >= ceil_div(shape.k, split)


@kernel
def search(machine: Record, shape: Shape) -> tuple[Mapping, float, float, int]:
    """The best mapping of the whole space.

    The space is every tile side of `TILES`, split of `SPLITS`, one or two buffers, and
    every raster ``rm x rn`` up to the core count with every choice of what stays in L2.
    Given the rest, latency falls with ``tk``, and with ``rn`` at a given number of row
    blocks, so only the largest of each is visited; a tile whose work dealt evenly, busiest
    core alone, or latency with everything read once exceeds the best so far is passed over.
    All exact.

    Parameters
    ----------
    machine : record of `MACHINE`
    shape : Shape

    Returns
    -------
    tuple of (Mapping, float, float, int)
        Best mapping, its latency (launch left out; infinite when not even the smallest
        tile fits the SRAM), mappings covered, mappings costed one by one.
    """
    best = Mapping(0, 0, 0, 0, 0, 0, 0, 0)
    latency, covered, costed = np.inf, 0.0, 0
    cores = int(machine.cores)
    sides = tile_sides(machine, shape.blocks)
    table, floors = pass_table(machine, sides), floors_of(machine, shape)
    splits = np.searchsorted(SPLITS, most_split(shape), side="right")
    for i in range(len(sides)):
        for j in range(len(sides)):
            if not allowed(machine, sides, i, j, shape.m, shape.n):
                continue
            tm, tn, passes = sides[i], sides[j], table[i, j]
            down, across = ceil_div(shape.m, tm), ceil_div(shape.n, tn)
            rasters = 5.0 * min(cores, down) * min(cores, across)
            tiles = float(shape.batch) * down * across
            work = evenly(machine, shape, tm, tn, passes, tiles, shape.m)
            twice = k_slice(machine, shape, tm, tn, 2)
            for buffers in (2, 1):
                fits = k_slice(machine, shape, tm, tn, buffers)
                if fits < 1:
                    continue
                covered += rasters * splits
                for index in range(splits):
                    split = SPLITS[index]
                    if least_of(floors, index, buffers, work) >= latency:
                        continue
                    if dominated(shape, buffers, twice, split):
                        continue
                    tk = min(fits, ceil_div(shape.k, split))
                    tile = cut(machine, shape, tm, tn, tk, split, buffers, passes)
                    if least_of(floors, index, buffers, alone(machine, tile)) >= latency:
                        continue
                    costed += 1
                    if assemble(machine, shape, tile, 1.0, 1.0).latency >= latency:
                        continue
                    found = best_raster(machine, shape, tile)
                    costed += found.costed
                    if found.latency < latency:
                        latency = found.latency
                        best = Mapping(
                            tm, tn, tk, split, found.rm, found.rn, found.resident, buffers
                        )
    return best, latency, covered, costed
