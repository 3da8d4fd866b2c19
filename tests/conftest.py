"""How every test runs."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import settings

# Workers that compile side by side would write over one another's kernels.
WORKER = os.environ.get("PYTEST_XDIST_WORKER")
if WORKER is not None:
    cache = Path(__file__).parents[1] / ".numba_cache" / WORKER
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache))

# No deadline: the first example of a kernel may compile it. The same seed each time, though
# hypothesis also tries numbers that it finds in whatever modules are loaded.
settings.register_profile("chipsim", deadline=None, derandomize=True)
settings.load_profile("chipsim")

# Which test is the first to compile is chance, and many read what is said on stderr.
from chipsim.kernels import jit  # noqa: E402 - the folder for kernels must be set before

jit.ANNOUNCER.said = True
