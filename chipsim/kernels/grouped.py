"""Grouped GEMM: the weights of many experts, each against rows of its own.

The mapping space and the cost are those of `chipsim.kernels.gemm`, one tile size for all
experts; tiles of all experts together fill the cores, so a single expert of few rows does
not leave them idle. Experts come in groups of like rows; both numbers are expectations and
need not be whole. With one group of whole numbers the result is that of a batched GEMM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from chipsim.kernels.gemm import (
    ACCUMULATOR_BYTES,
    Cost,
    Tile,
    alone,
    ceil_div,
    joined,
    k_slice,
    tile_of,
)
from chipsim.kernels.gemm_search import (
    SPLITS,
    Floors,
    allowed,
    blank_tile,
    dominated,
    evenly,
    least_of,
    most_split,
    no_floors,
    panel_tiles,
    pass_table,
    tile_sides,
    with_floor,
)
from chipsim.kernels.jit import inline, kernel
from chipsim.kernels.memory import warm_share

if TYPE_CHECKING:
    from chipsim.kernels.machine import Record

Floats = npt.NDArray[np.float64]
ROUNDING = 1e-9
"""Relative error of an expected number of rows that must not start another tile."""


class GroupedShape(NamedTuple):
    """Product of one expert's weights (k x n), as a kernel reads it."""

    n: int
    k: int
    a_bytes: float  # per element, scales included
    b_bytes: float
    c_bytes: float
    macs: float
    sum_bytes: float = ACCUMULATOR_BYTES  # of a partial sum
    blocks: bool = False  # as in `chipsim.kernels.gemm.Shape`, and the next two
    step_scale: float = 1.0
    sum_flops: float = 0.0


class GroupedMapping(NamedTuple):
    """Tile, split and raster of all experts."""

    tm: int
    tn: int
    tk: int
    split: int
    rm: int
    a_reads: int
    buffers: int


@inline
def row_tiles(rows: float, tm: int) -> int:
    """Tiles of an expert's rows."""
    return int(np.ceil(rows / tm * (1.0 - ROUNDING)))


class Grid(NamedTuple):
    """Tiles of all experts."""

    down: int  # of the expert with most rows
    across: int
    tiles: float


@inline
def grid_of(shape: GroupedShape, experts: Floats, rows: Floats, tm: int, tn: int) -> Grid:
    """All experts cut into tiles."""
    across = ceil_div(shape.n, tn)
    tiles, most = 0.0, 1
    for g in range(len(experts)):
        down = row_tiles(rows[g], tm)
        tiles += experts[g] * down * across
        most = max(most, down)
    return Grid(most, across, tiles)


@inline
def grouped_tile(
    machine: Record,
    shape: GroupedShape,
    grid: Grid,
    height: int,
    outputs: float,
    tm: int,
    tn: int,
    tk: int,
    split: int,
    buffers: int,
    passes: int,
) -> Tile:
    """Waves of a grid over the cores, and what the tiles pull from L2."""
    return tile_of(
        machine,
        shape,
        tm,
        tn,
        tk,
        split,
        buffers,
        passes,
        (grid.down, grid.across, grid.tiles),
        np.ceil(grid.tiles * split / machine.cores * (1.0 - ROUNDING)),
        height,
        outputs,
    )


@inline
def grouped_floors(
    machine: Record, shape: GroupedShape, experts: Floats, rows: Floats, outputs: float
) -> Floors:
    """Floors of all experts: one read of each expert's weights."""
    floors, all_rows = no_floors(), 2**62
    for index in range(len(SPLITS)):
        tile = blank_tile(machine, SPLITS[index], outputs)
        once = grouped_cost(machine, shape, experts, rows, tile, all_rows, 1)
        with_floor(floors, index, once)
    return floors


@inline
def grouped_cost(
    machine: Record,
    shape: GroupedShape,
    experts: Floats,
    rows: Floats,
    tile: Tile,
    rm: int,
    a_reads: int,
) -> Cost:
    """Cost where each expert's weights are read once per ``rm`` tiles of its rows."""
    total, blocks, number = 0.0, 0.0, 0.0
    for g in range(len(experts)):
        number += experts[g]
        total += experts[g] * rows[g]
        blocks += experts[g] * ceil_div(row_tiles(rows[g], tile.tm), rm)
    a_once, c_once = total * shape.k * shape.a_bytes, total * shape.n * shape.c_bytes
    matrix = shape.k * shape.n * shape.b_bytes
    warm = warm_share(machine, a_once + number * matrix + c_once)
    a_bytes, c_bytes = a_once * (a_reads - warm), c_once * (1.0 - warm)
    b_bytes, outputs = blocks * matrix, total * shape.n
    return joined(machine, tile, True, a_bytes, b_bytes, c_bytes, outputs, shape.sum_bytes)


@inline
def rasters(
    machine: Record, shape: GroupedShape, tile: Tile, most_rows: float, choice: int
) -> tuple[int, int]:
    """Row tiles that share one read of weights, and reads of the rows (0: not possible).

    Choices 1 to 4 keep something in L2: rows of an expert, a panel of its weights, all its
    rows, all its weights. Choice -b: nothing, in b blocks of rows.
    """
    cores, room = int(machine.cores), machine.l2_share * machine.l2_capacity
    a_row, b_column = shape.k * shape.a_bytes, shape.k * shape.b_bytes
    height, most = int(np.ceil(most_rows)), tile.tiles_m
    if choice == 1:
        return panel_tiles(room, tile.tm, height, a_row, min(cores, most)), 1
    if choice == 2:
        rn = panel_tiles(room, tile.tn, shape.n, b_column, min(cores, tile.tiles_n))
        return (most, ceil_div(tile.tiles_n, rn)) if rn >= 1 else (0, 0)
    if choice == 3:
        fits = panel_tiles(room - most_rows * a_row, tile.tn, shape.n, b_column, 1)
        return (most, 1) if fits >= 1 else (0, 0)
    if choice == 4:
        fits = panel_tiles(room - shape.n * b_column, tile.tm, height, a_row, 1)
        return (most, 1) if fits >= 1 else (0, 0)
    rm = ceil_div(most, -choice)
    return rm, ceil_div(tile.tiles_n, min(cores // rm, tile.tiles_n))


@inline
def best_raster(
    machine: Record,
    shape: GroupedShape,
    experts: Floats,
    rows: Floats,
    tile: Tile,
    most_rows: float,
) -> tuple[int, int, Cost]:
    """The best raster of a tile: row tiles per read of weights, reads of rows, cost."""
    best_rm, best_reads = 0, 0
    least = Cost(np.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    choice = -ceil_div(tile.tiles_m, min(int(machine.cores), tile.tiles_m))
    while choice <= 4:
        rm, a_reads = rasters(machine, shape, tile, most_rows, choice)
        if rm >= 1:
            cost = grouped_cost(machine, shape, experts, rows, tile, rm, a_reads)
            if cost.latency < least.latency:
                best_rm, best_reads, least = rm, a_reads, cost
        if choice > 0:
            choice += 1
        else:
            choice = 1 if rm == 1 else -ceil_div(tile.tiles_m, rm - 1)
    return best_rm, best_reads, least


@kernel
def grouped_search(
    machine: Record, shape: GroupedShape, experts: Floats, rows: Floats
) -> tuple[GroupedMapping, Cost]:
    """The best mapping of a grouped GEMM.

    Parameters
    ----------
    machine : record of `MACHINE`
    shape : GroupedShape
    experts, rows : array (groups) of float64
        Experts of each group, and rows of each expert of it; above 0.

    Returns
    -------
    tuple of (GroupedMapping, Cost)
        Infinite latency when not even the smallest tile fits the SRAM.
    """
    best = GroupedMapping(0, 0, 0, 0, 0, 0, 0)
    least = Cost(np.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    most_rows = rows.max()
    height, outputs = int(np.ceil(most_rows)), float((experts * rows).sum()) * shape.n
    sides = tile_sides(machine, shape.blocks)
    table = pass_table(machine, sides)
    floors = grouped_floors(machine, shape, experts, rows, outputs)
    splits = np.searchsorted(SPLITS, most_split(shape), side="right")
    for i in range(len(sides)):
        for j in range(len(sides)):
            if not allowed(machine, sides, i, j, height, shape.n):
                continue
            tm, tn, passes = sides[i], sides[j], table[i, j]
            grid = grid_of(shape, experts, rows, tm, tn)
            even = grid.tiles * (1.0 - ROUNDING)
            work = evenly(machine, shape, tm, tn, passes, even, height)
            twice = k_slice(machine, shape, tm, tn, 2)
            for buffers in (2, 1):
                fits = k_slice(machine, shape, tm, tn, buffers)
                if fits < 1:
                    continue
                for index in range(splits):
                    split = SPLITS[index]
                    if least_of(floors, index, buffers, work) >= least.latency:
                        continue
                    if dominated(shape, buffers, twice, split):
                        continue
                    sizes = (tm, tn, min(fits, ceil_div(shape.k, split)), split, buffers)
                    tile = grouped_tile(machine, shape, grid, height, outputs, *sizes, passes)
                    core = alone(machine, tile)
                    if least_of(floors, index, buffers, core) >= least.latency:
                        continue
                    once = grouped_cost(machine, shape, experts, rows, tile, grid.down, 1)
                    if once.latency >= least.latency:
                        continue
                    rm, a_reads, cost = best_raster(
                        machine, shape, experts, rows, tile, most_rows
                    )
                    if cost.latency < least.latency:
                        least = cost
                        best = GroupedMapping(*sizes[:4], rm, a_reads, buffers)
    return best, least
