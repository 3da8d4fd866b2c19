"""Speed of the event engine: requests per second of CPU, their number, the cluster's size."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.figures import Figure
from benchmarks.fresh import in_new_process
from chipsim.cluster.engine import Options, codes, flat_steps, instances, links, pools, run
from chipsim.cluster.simulate import as_requests
from chipsim.cluster.workload_spec import load_workload

if TYPE_CHECKING:
    from chipsim.cluster.engine import Outcome

RATE = 2.0
"""Requests/s of a machine: 80 of forty."""
BATCH, TOKENS = 256, 2048
PREFILL_S = 10e-3 + 0.1e-3 * np.arange(TOKENS + 1)
DECODE_S = 25e-3 + 0.1e-3 * np.arange(BATCH + 1)
"""About a 70B model on eight H100; nothing below depends on what they are."""
REPEATS = 3

COMPILE = """
import time
from chipsim.cluster.engine import Requests, flat_steps, instances, pools, run
began = time.process_time()
run(Requests.of([0.0], [1], [2]), flat_steps(0.1, 0.1, 8, 8), pools(), instances([0]))
print(time.process_time() - began)
"""
MILLION = """
from benchmarks.cluster import cpu_seconds
from benchmarks.fresh import PEAK
cpu_seconds(1000, 40)
print(cpu_seconds(1_000_000, 40))
exec(PEAK)
"""


def clusters() -> Iterator[Figure]:
    """CPU seconds: a machine that others use too does not slow them much."""
    yield from _compiling()
    for apart in (True, False):
        name = f"cluster, 40 machines, 100,000 requests, {'apart' if apart else 'colocated'}"
        rate = 100_000 / min(cpu_seconds(100_000, 40, apart) for _ in range(REPEATS))
        yield Figure(name, rate, "requests/s", 500e3 if apart else None, more_is_better=True)
    few = _each(10_000, 40)
    yield Figure("cost of a request, 10⁵ requests over 10⁴", _each(100_000, 40) / few, "")
    yield Figure("cost of a request, 10⁶ requests over 10⁴", _each(1_000_000, 40) / few, "")
    small = _each(100_000, 10)
    for count in (100, 1000):
        name = f"cost of a request, {count} machines over 10"
        allowed = np.log(count) / np.log(10)
        yield Figure(name, _each(100_000, count) / small, "", target=float(allowed))
    million, peak = map(float, in_new_process(MILLION).split())
    yield Figure("a million requests, token gaps kept", million, target=10)
    yield Figure("peak memory of that process", peak, "B", target=2 * 2**30)


def _compiling() -> Iterator[Figure]:
    import tempfile

    with tempfile.TemporaryDirectory() as cache:
        first, later = (float(in_new_process(COMPILE, cache)) for _ in range(2))
    yield Figure("first compile of the event engine", first - later)
    yield Figure("the event engine from a new process, compiled before", later)


def _each(requests: int, machines: int) -> float:
    """Least CPU seconds of a request."""
    return min(cpu_seconds(requests, machines) for _ in range(REPEATS)) / requests


def cpu_seconds(requests: int, machines: int, apart: bool = True) -> float:
    """CPU seconds of a run of azure-conversation, its log of gaps between tokens kept."""
    given = _given(requests, machines, apart)
    began = time.process_time()
    outcome: Outcome = run(**given)
    took = time.process_time() - began
    assert (outcome.requests["status"] == codes.FINISHED).all()
    return took


@functools.lru_cache(maxsize=2)
def _given(requests: int, machines: int, apart: bool) -> dict[str, Any]:
    """What the engine takes: half of the machines prefill, or all do both."""
    workload = load_workload(
        "azure-conversation", rate=RATE * machines, requests=requests, seed=1
    )
    prefills = machines // 2
    roles = [codes.PREFILL] * prefills + [codes.DECODE] * (machines - prefills)
    return {
        "requests": as_requests(workload),
        "steps": flat_steps(PREFILL_S, DECODE_S, TOKENS, BATCH, context_s=2e-8),
        "pools": pools(kv_blocks=80_000, max_batch=BATCH, max_tokens=TOKENS),
        "instances": instances(
            np.zeros(machines), role=roles if apart else [codes.MIXED] * machines
        ),
        "links": links(1, bytes_per_s=50e9, bytes_per_token=320e3, contention=codes.NIC),
        "options": Options(),
    }
