"""The latency tables of SPAD's first author as measured steps of an H100 machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

AUTHOR_TABLES = "llmcompass_bloom_tp8.csv"


def author_table(folder: Path | None) -> Path | None:
    """Steps made of the author's tables, where a folder (or its ``spad``) holds them."""
    if folder is None:
        return None
    for place in (folder, folder / "spad"):
        if (place / AUTHOR_TABLES).is_file():
            out = Path(tempfile.mkdtemp(prefix="chipsim-"))
            return author_steps(place / AUTHOR_TABLES, out)
    return None


def author_steps(path: Path, folder: Path) -> Path:
    """The author's table of H100 steps as a measured table: batch 1 in prefill, smooth decode.

    Prefill takes the rows of one prompt. Decode rows are scattered over batch and context, so
    they are read as ``base(batch) + slope x batch x context``, least squares over all rows,
    with the base straight between powers of two.
    """
    import numpy as np
    import pandas as pd

    table = pd.read_csv(path, comment="#")
    table = table[table["hardware"] == "H100x8"]
    one = table[(table["phase"] == "prefill") & (table["batch"] == 1)]
    rows = [
        ("prefill", 1, int(c), s) for c, s in zip(one["context"], one["total_s"], strict=True)
    ]
    decode = table[table["phase"] == "decode"]
    batch, context = (decode[name].to_numpy(np.float64) for name in ("batch", "context"))
    knots = 2.0 ** np.arange(int(np.log2(batch.max())) + 1)
    hats = np.stack([np.interp(batch, knots, unit) for unit in np.eye(len(knots))], axis=1)
    terms = np.column_stack([hats, batch * context])
    found, *_ = np.linalg.lstsq(terms, decode["total_s"].to_numpy(np.float64), rcond=None)
    for knot, base in zip(knots, found[:-1], strict=True):
        rows += [("decode", int(knot), c, base + found[-1] * knot * c) for c in (1, 8192)]
    out = folder / "author_steps.csv"
    pd.DataFrame(rows, columns=["phase", "batch", "tokens", "latency_s"]).to_csv(
        out, index=False
    )
    return out
