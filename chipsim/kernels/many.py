"""Many operators on one chip in one call: latencies alone, for tables of thousands.

Rows of shapes, fields in their order -> searches of `gemm_search`, `attention` -> seconds

Each is summed as the performance model sums one: equal to it in every bit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from chipsim.kernels.attention import attention_search
from chipsim.kernels.attention_tiles import AttentionShape
from chipsim.kernels.gemm import Shape, evaluate
from chipsim.kernels.gemm_search import search
from chipsim.kernels.jit import kernel
from chipsim.kernels.vector import vector_cost

if TYPE_CHECKING:
    from chipsim.kernels.machine import Record

Floats = npt.NDArray[np.float64]


@kernel
def gemm_seconds(machine: Record, shapes: Floats, launch: Floats, out: Floats) -> None:
    """Seconds of products.

    Parameters
    ----------
    machine : record of `MACHINE`
    shapes : array (products, fields of `Shape`)
    launch : array (products)
        Launch of each, seconds.
    out : array (products)
        Written: seconds, launch included; infinite where no tile fits.
    """
    for i in range(len(shapes)):
        row = shapes[i]
        shape = Shape(
            int(row[0]),
            int(row[1]),
            int(row[2]),
            int(row[3]),
            row[4],
            row[5],
            row[6],
            row[7],
            row[8] != 0.0,
            row[9],
            row[10] != 0.0,
            row[11],
            row[12],
            row[13] != 0.0,
        )
        mapping, latency, _, _ = search(machine, shape)
        if math.isinf(latency):
            out[i] = np.inf
            continue
        cost = evaluate(machine, shape, mapping)
        out[i] = launch[i] + cost.core + cost.memory - cost.hidden + cost.reduction


@kernel
def attention_seconds(machine: Record, shapes: Floats, launch: Floats, out: Floats) -> None:
    """Seconds of fused attention; the parameters are those of `gemm_seconds`.

    ``shapes`` has the fields of `AttentionShape`.
    """
    for i in range(len(shapes)):
        row = shapes[i]
        shape = AttentionShape(
            int(row[0]),
            int(row[1]),
            int(row[2]),
            int(row[3]),
            int(row[4]),
            int(row[5]),
            int(row[6]),
            row[7] != 0.0,
            int(row[8]),
            row[9],
            row[10],
            row[11],
            row[12],
            int(row[13]),
            row[14] != 0.0,
            row[15],
            row[16],
        )
        cost = attention_search(machine, shape)
        if math.isinf(cost.latency):
            out[i] = np.inf
            continue
        out[i] = launch[i] + cost.core + cost.memory - cost.hidden + cost.reduction


@kernel
def vector_seconds(machine: Record, work: Floats, launch: Floats, out: Floats) -> None:
    """Seconds of vector operators; the parameters are those of `gemm_seconds`.

    ``work`` has bytes, FLOP, and 1 where elements are of 16 bit or less, and where it is a
    plain stream (else 0): the arguments of `vector_cost`.
    """
    for i in range(len(work)):
        cost = vector_cost(
            machine, work[i, 0], work[i, 1], work[i, 2] != 0.0, work[i, 3] != 0.0
        )
        out[i] = launch[i] + cost.core + cost.memory - cost.hidden
