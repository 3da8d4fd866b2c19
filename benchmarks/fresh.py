"""What a new process costs: imports, help, the first compile, memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.figures import Figure, seconds

USE_ALL_KERNELS = """
from chipsim import Phase, estimate
from chipsim.batch import gemm_latencies
for phase in (Phase.prefill(1, 64), Phase.decode(1, 64)):
    estimate("spad-h100", "bloom-176b", phase, "tp=8", execution="ideal")
gemm_latencies(["spad-h100"], [[64, 64, 64]], execution="ideal")
"""
PEAK = """
import pathlib, re, resource, sys
status = pathlib.Path("/proc/self/status")
if status.exists():  # Linux lets ru_maxrss pass from a parent to its child
    print(1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", status.read_text())[1]))
else:
    unit = 1 if sys.platform == "darwin" else 1024
    print(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
REPEATS = 5


def fresh() -> Iterator[Figure]:
    """Each in its own interpreter."""
    empty = _median("pass")
    yield Figure("empty interpreter", empty)
    yield Figure("import chipsim, interpreter included", _median("import chipsim"), target=0.4)
    help_code = (
        "import sys; sys.argv = ['chipsim', '--help']\nfrom chipsim.cli import main; main()"
    )
    yield Figure("chipsim --help, interpreter included", _median(help_code), target=0.4)
    with tempfile.TemporaryDirectory() as cache:
        first = seconds(lambda: in_new_process(USE_ALL_KERNELS, cache))
        later = [seconds(lambda: in_new_process(USE_ALL_KERNELS, cache)) for _ in range(3)]
        peak = float(in_new_process(USE_ALL_KERNELS + PEAK, cache))
    usual = statistics.median(later)
    yield Figure("first compile of all kernels", first - usual, target=40)
    yield Figure("all kernels from a new process, compiled before", usual)
    yield Figure("peak memory of that process", peak, "B")


def _median(code: str) -> float:
    return statistics.median(seconds(lambda: in_new_process(code)) for _ in range(REPEATS))


def in_new_process(code: str, cache: str | None = None) -> str:
    """Run code in a new interpreter; what it prints."""
    changed = {} if cache is None else {"NUMBA_CACHE_DIR": cache}
    ran = subprocess.run(
        [sys.executable, "-c", code],
        check=True, capture_output=True, text=True, env=os.environ | changed,
    )  # fmt: skip
    return ran.stdout
