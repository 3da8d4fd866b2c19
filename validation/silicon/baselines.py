"""Plain models beside ours: a roofline, the same with a start-up time, and four factors.

    roofline   max(F / P, D / B)
    scaled     t0 + max(F / P, D / (0.8 B))
    4-factor   t0 + max(((1 - w) F + w F') / (e P), D / (b B))

F is arithmetic, F' the same rounded up to whole tiles of 128 x 128 and whole waves of them,
D the least bytes. t0, e, b and w are fitted per chip, operator and format, on four fifths
of the shapes, and judged on the rest.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from chipsim.conversion import product_conversion
from chipsim.ops.operators import (
    Attention,
    Collective,
    Gemm,
    GroupedGemm,
    LatentAttention,
    Operator,
)

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.validation.silicon.work import Work

Floats = npt.NDArray[np.float64]

PRODUCTS = (Gemm, GroupedGemm, Attention, LatentAttention)
"""Operators with arithmetic of their own; the others count by their bytes."""
TILE = 128
"""Rows and columns of the tile that work is rounded up to."""
SUSTAINED = 0.8
"""Part of the memory's bandwidth in ``scaled``."""
FOLDS = 5
FEWEST = 10
"""Rows of a group below which nothing is fitted to it."""
SCALE = 0.1
"""Log error beyond which a row counts less in a fit."""


class Ideal(NamedTuple):
    """Seconds of a row on an ideal chip."""

    arithmetic: float
    padded: float  # arithmetic in whole tiles and waves
    memory: float  # or links, of a collective

    @property
    def roofline(self) -> float:
        """The larger of arithmetic and memory."""
        return max(self.arithmetic, self.memory)


def ideal(chip: Chip, work: Work) -> Ideal:
    """What a row takes at peak rates: vector operators count by their bytes."""
    arithmetic = padded = memory = 0.0
    for op in work:
        if isinstance(op, Collective):
            memory += op.sent / chip.link_bandwidth if op.chips > 1 else 0.0
            continue
        memory += op.bytes / chip.memory.bandwidth
        if isinstance(op, PRODUCTS):
            peak = product_conversion(chip, op).peak(chip)
            arithmetic += op.flops / peak
            padded += _padded(op, chip.cores) / peak
    return Ideal(arithmetic, padded, memory)


def folds(shapes: Sequence[str], count: int = FOLDS) -> npt.NDArray[np.int64]:
    """Fold of every shape: by its checksum, so the same shape is always in the same one."""
    return np.array([zlib.crc32(shape.encode()) % count for shape in shapes])


def scaled(rows: Sequence[Ideal], measured: Floats, fold: npt.NDArray[np.int64]) -> Floats:
    """``scaled`` of a group, each row by the start-up time of the other folds."""
    arithmetic, memory = _columns(rows, "arithmetic", "memory")
    plain = np.maximum(arithmetic, memory / SUSTAINED)

    def estimate(x: Floats) -> Floats:
        found: Floats = np.exp(x[0]) + plain
        return found

    return _crossed(estimate, measured, fold, [(1e-9, 1e-2, 5e-6)])


def four_factor(rows: Sequence[Ideal], measured: Floats, fold: npt.NDArray[np.int64]) -> Floats:
    """``4-factor`` of a group, each row by the factors of the other folds."""
    arithmetic, padded, memory = _columns(rows, "arithmetic", "padded", "memory")

    def estimate(x: Floats) -> Floats:
        start, compute, bandwidth, tiles = np.exp(x)
        work = arithmetic + tiles * (padded - arithmetic)
        found: Floats = start + np.maximum(work / compute, memory / bandwidth)
        return found

    ranges = [(1e-9, 1e-2, 5e-6), (0.02, 1.5, 0.7), (0.02, 1.5, 0.7), (1e-3, 1.0, 0.3)]
    return _crossed(estimate, measured, fold, ranges)


def _crossed(
    estimate: object,
    measured: Floats,
    fold: npt.NDArray[np.int64],
    ranges: list[tuple[float, float, float]],
) -> Floats:
    """Estimates of each fold by a fit to the others (NaN: too few rows to fit to)."""
    from scipy.optimize import least_squares

    out = np.full(len(measured), np.nan)
    if len(measured) < FEWEST:
        return out
    low, high, start = (np.log([each[i] for each in ranges]) for i in range(3))
    for held in np.unique(fold):
        train = fold != held
        if train.sum() < len(ranges) + 1:
            continue
        found = least_squares(
            lambda x, train=train: np.log(estimate(x)[train] / measured[train]),  # type: ignore[operator]
            start,
            bounds=(low, high),
            loss="soft_l1",
            f_scale=SCALE,
        )
        out[~train] = estimate(found.x)[~train]  # type: ignore[operator]
    return out


def _columns(rows: Sequence[Ideal], *names: str) -> list[Floats]:
    return [np.array([getattr(row, name) for row in rows]) for name in names]


def _padded(op: Operator, cores: int) -> float:
    """FLOP in whole tiles, and whole waves of them."""
    if isinstance(op, Gemm):
        tiles = op.batch * math.ceil(op.m / TILE) * math.ceil(op.n / TILE)
        each = 2.0 * TILE * TILE * op.k
    elif isinstance(op, GroupedGemm):
        down = math.ceil(op.rows / op.experts / TILE)
        tiles = math.ceil(op.experts) * down * math.ceil(op.n / TILE)
        each = 2.0 * TILE * TILE * op.k
    elif isinstance(op, Attention):
        blocks = op.batch * op.q_heads * math.ceil(op.query / TILE)
        tiles, each = blocks, op.flops / blocks
    else:
        return op.flops
    return math.ceil(tiles / cores) * cores * each
