"""Measure everything and print one table."""

from __future__ import annotations

import itertools
import os
import platform
import resource
import sys

from benchmarks.cluster import clusters
from benchmarks.drags import drags
from benchmarks.figures import Figure, table
from benchmarks.fresh import fresh
from benchmarks.phases import phases, sweeps
from benchmarks.searches import batches, searches


def main() -> None:
    """Print the table."""
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}")
    parts = (searches(), phases(), sweeps(), batches(), drags(), clusters(), fresh())
    figures = list(itertools.chain(*parts))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures.append(
        Figure("peak memory of this run", peak * (1 if sys.platform == "darwin" else 1024), "B")
    )
    print(table(figures))


if __name__ == "__main__":
    main()
