"""Folders of reference files for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2].parent / "shared" / "reference"
"""The larger reference tables, beside a checkout where they are kept."""

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the larger reference tables are not beside this checkout"
)

MATMUL = "device,batch,M,K,N,dtype_bytes,sim_latency_s\n"
A_MATMUL = "A100_80GB_fp16,1,8192,1024,1024,2,9.5e-5\n"
TABLE = "hardware,phase,batch,context,total_s,matmul_s\n"


def write(folder: Path, **files: str) -> Path:
    """Files by stem, all CSV."""
    for stem, text in files.items():
        (folder / f"{stem}.csv").write_text(text, encoding="utf-8")
    return folder
