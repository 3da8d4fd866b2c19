"""What an installation consists of: versions, compiled kernels, threads, a browser."""

from __future__ import annotations

import os
import platform
import shutil
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGES = (
    "numpy", "numba", "networkx", "pandas", "plotly", "pydantic", "pint", "pyarrow", "scipy",
    "typer", "rich", "kaleido",
)  # fmt: skip
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def installation() -> dict[str, Any]:
    """Facts about this installation, none of which needs the network."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    return {
        "chipsim": metadata.version("chipsim"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "compiled_kernels": _cached_kernels(),
        "cache": os.environ.get("NUMBA_CACHE_DIR", "beside the kernels, or the user's cache"),
        "threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else
        os.cpu_count() or 1,
        "browser": browser or "none found",
        "pictures": browser is not None and find_spec("kaleido") is not None,
    }  # fmt: skip


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cached_kernels() -> int:
    """Files of compiled kernels that are on disk."""
    folder = os.environ.get("NUMBA_CACHE_DIR")
    spec = find_spec("chipsim.kernels")
    if folder is not None:
        return sum(1 for _ in Path(folder).rglob("*.nbc"))
    places = spec.submodule_search_locations if spec else None
    return sum(1 for place in places or [] for _ in Path(place).glob("__pycache__/*.nbc"))
