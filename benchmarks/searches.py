"""Speed of the mapping search: one at a time, and in batches over threads."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.brute_force import brute_force
from benchmarks.figures import Figure, median_seconds, seconds
from benchmarks.shapes import shape, shapes
from chipsim.batch import gemm_latencies
from chipsim.chip import Chip
from chipsim.execution import Execution
from chipsim.kernels.gemm_search import search
from chipsim.machine import machine_record

if TYPE_CHECKING:
    from chipsim.kernels.machine import Record

CHIPS = ("spad-h100", "a100-sxm", "mi210")
REPEATS = 5


def searches() -> Iterator[Figure]:
    """One search, called from Python with everything compiled.

    *Covered* mappings are all points of the space: each tile, split, buffering, raster
    and choice of what stays in L2. Most are excluded exactly, in closed form or by a
    bound; some are *left* to cost. `brute_force` costs every one.
    """
    ideal = Execution.load("ideal")
    records = [machine_record(Chip.load(chip), ideal)[0] for chip in CHIPS]
    pairs = [(record, one) for record in records for one in shapes()]
    found = [search(record, one) for record, one in pairs]  # compiles, too
    times = [
        min(seconds(partial(search, record, one)) for _ in range(REPEATS))
        for record, one in pairs
    ]
    name = f"GEMM search, median of {len(pairs)}"
    yield Figure(name, statistics.median(times), target=150e-6, llmcompass_s=(4, 74))
    yield Figure("GEMM search, 90th percentile", float(np.quantile(times, 0.9)))
    yield Figure("GEMM search, slowest", max(times))
    covered = statistics.median(f[2] / took for f, took in zip(found, times, strict=True))
    yield Figure("mappings covered, median", covered, "/s", 20e6, True)
    costed = sum(f[3] for f in found) / sum(times)
    yield Figure("mappings left to cost by the search", costed, "/s")
    rate = _plain_rate(records[1])
    yield Figure("mappings costed anew, nothing skipped", rate, "/s")
    large = shape(2048, 12288, 12288)
    once = median_seconds([partial(search, records[1], large)] * 50)
    yield Figure("GEMM search, 2048 x 12288 x 12288", once, llmcompass_s=(38,))


def _plain_rate(record: Record) -> float:
    """Mappings per second of plain enumeration; its best must be the search's."""
    small = [shape(256, 512, 1024), shape(512, 1536, 4096), shape(100, 3001, 777)]
    brute_force(record, shape(16, 16, 16))  # compiles
    costed, took = 0, 0.0
    for one in small:
        took += seconds(partial(brute_force, record, one))
        least, count = brute_force(record, one)
        _, found, covered, _ = search(record, one)
        assert count == covered
        assert math.isclose(least, found, rel_tol=1e-12)
        costed += count
    return costed / took


def batches() -> Iterator[Figure]:
    """Searches per second of the batch API."""
    sizes = [one[:4] for one in shapes()]
    chips = [
        Chip.load("spad-h100").scaled(memory_bandwidth=1 - part / 40) for part in range(20)
    ]
    gemm_latencies(chips[:1], sizes[:1], execution="ideal")  # compiles
    for threads in (1, 2):
        once = partial(gemm_latencies, chips, sizes, execution="ideal", threads=threads)
        rate = len(chips) * len(sizes) / min(seconds(once) for _ in range(REPEATS))
        name = f"batch of {len(chips)} chips x {len(sizes)} shapes, threads: {threads}"
        yield Figure(name, rate, "searches/s")
