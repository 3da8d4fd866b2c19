"""The exhaustive search over mappings of a GEMM.

    every tile -> the best raster of each -> the least latency

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
    alone,
    array_passes,
    assemble,
    ceil_div,
    cut,
    k_slice,
)
from chipsim.kernels.jit import inline, kernel

if TYPE_CHECKING:
    from chipsim.kernels.gemm import Shape, Tile
    from chipsim.kernels.grouped import GroupedShape
    from chipsim.kernels.machine import Record

IntArray = npt.NDArray[np.int64]

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
        cost = assemble(machine, shape, tile, ceil_div(tile.tiles_n, rn), blocks)
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
            cost = assemble(machine, shape, tile, a_reads, b_reads)
            costed += 1
            if cost.latency < best.latency:
                best = Raster(cost.latency, rm, rn, resident, 0)
    return Raster(best.latency, best.rm, best.rn, best.resident, costed)


@kernel
def search(machine: Record, shape: Shape) -> tuple[Mapping, float, float, int]:
    """The best mapping of the whole space.

    The space is every tile side of `TILES`, split of `SPLITS`, one or two buffers, and
    every raster ``rm x rn`` up to the core count with every choice of what stays in L2.
    Given the rest, latency falls with ``tk``, and with ``rn`` at a given number of row
    blocks, so only the largest of each is visited; a tile whose busiest core alone, or whose
    latency with everything read once, exceeds the best so far is passed over. All exact.

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
    for i in range(len(sides)):
        for j in range(len(sides)):
            if not allowed(machine, sides, i, j, shape.m, shape.n):
                continue
            tm, tn = sides[i], sides[j]
            passes = array_passes(machine, tm, tn)
            for buffers in (2, 1):
                fits = k_slice(machine, shape, tm, tn, buffers)
                if fits < 1:
                    continue
                for split in SPLITS:
                    if split > most_split(shape):
                        break
                    tk = min(fits, ceil_div(shape.k, split))
                    tile = cut(machine, shape, tm, tn, tk, split, buffers, passes)
                    covered += 5.0 * min(cores, tile.tiles_m) * min(cores, tile.tiles_n)
                    if alone(machine, tile) >= latency:
                        continue
                    costed += 1
                    if assemble(machine, shape, tile, 1, 1).latency >= latency:
                        continue
                    wide = widest_raster(machine, shape, tile)
                    kept = resident_raster(machine, shape, tile)
                    costed += wide.costed + kept.costed
                    found = wide if wide.latency <= kept.latency else kept
                    if found.latency < latency:
                        latency = found.latency
                        best = Mapping(
                            tm, tn, tk, split, found.rm, found.rn, found.resident, buffers
                        )
    return best, latency, covered, costed
