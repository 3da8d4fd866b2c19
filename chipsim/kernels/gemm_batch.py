"""The GEMM search over a product of chips and shapes; slices of it can run in threads."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from chipsim.kernels.gemm import ACCUMULATOR_BYTES, Shape, evaluate
from chipsim.kernels.gemm_search import search
from chipsim.kernels.jit import kernel

Floats = npt.NDArray[np.float64]


@kernel
def gemm_product(
    machines: npt.NDArray[np.void],
    launch: Floats,
    macs: Floats,
    sizes: npt.NDArray[np.int64],
    widths: tuple[float, float, float],
    weights: bool,
    start: int,
    stop: int,
    out: Floats,
) -> None:
    """Latencies of pairs ``start`` ... ``stop - 1``; pair = chip * shapes + shape.

    Parameters
    ----------
    machines : array (chips) of `MACHINE`
    launch : array (chips) of float64
        Launch time, seconds.
    macs : array (chips) of float64
        Multiply-accumulates of an array cell per cycle.
    sizes : array (shapes, 4) of int64
        m, n, k and batch.
    widths : tuple of three float
        Bytes per element of A, B and C.
    weights : bool
        B can be fetched ahead.
    out : array (chips, shapes) of float64
        Written: seconds with launch; infinite where no tile fits.
    """
    shapes = len(sizes)
    for pair in range(start, stop):
        i, j = pair // shapes, pair % shapes
        shape = Shape(
            sizes[j, 0],
            sizes[j, 1],
            sizes[j, 2],
            sizes[j, 3],
            widths[0],
            widths[1],
            widths[2],
            macs[i],
            weights,
            ACCUMULATOR_BYTES,
            False,
            1.0,
            0.0,
            False,
        )
        mapping, latency, _, _ = search(machines[i], shape)
        if math.isinf(latency):
            out[i, j] = np.inf
            continue
        cost = evaluate(machines[i], shape, mapping)
        # Summed as the performance model does: equal to it in every bit.
        out[i, j] = launch[i] + cost.core + cost.memory - cost.hidden + cost.reduction
