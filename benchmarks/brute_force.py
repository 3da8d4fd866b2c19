"""Every mapping of the space costed one by one: the search's rival, and its check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.kernels.gemm import Mapping, Shape, ceil_div, evaluate, k_slice
from chipsim.kernels.gemm_search import SPLITS, TILES, covers
from chipsim.kernels.jit import kernel

if TYPE_CHECKING:
    from chipsim.kernels.machine import Record


@kernel
def brute_force(machine: Record, shape: Shape) -> tuple[float, int]:
    """Least latency over all mappings, and how many there are.

    Parameters
    ----------
    machine : record of `MACHINE`
    shape : Shape

    Returns
    -------
    tuple of (float, int)
        Seconds, launch left out; mappings costed.
    """
    best, count = np.inf, 0
    cores = int(machine.cores)
    for i in range(len(TILES)):
        for j in range(len(TILES)):
            if covers(TILES, i, shape.m) or covers(TILES, j, shape.n):
                continue
            tm, tn = TILES[i], TILES[j]
            tiles_m, tiles_n = ceil_div(shape.m, tm), ceil_div(shape.n, tn)
            for buffers in (2, 1):
                fits = k_slice(machine, shape, tm, tn, buffers)
                if fits < 1:
                    continue
                for split in SPLITS:
                    if split > shape.k:
                        break
                    tk = min(fits, ceil_div(shape.k, split))
                    for rm in range(1, min(cores, tiles_m) + 1):
                        for rn in range(1, min(cores, tiles_n) + 1):
                            for resident in range(5):
                                mapping = Mapping(tm, tn, tk, split, rm, rn, resident, buffers)
                                best = min(best, evaluate(machine, shape, mapping).latency)
                                count += 1
    return best, count
