"""Statistics of signed relative errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

COLUMNS = (
    "suite",
    "chip",
    "operator",
    "dtype",
    "regime",
    "n",
    "mape",
    "median_ape",
    "p90_ape",
    "bias",
)
"""Columns of a table of errors; the last four are fractions."""

KEYS = COLUMNS[:5]
GROUPS = (
    KEYS,
    ("suite", "chip", "operator"),
    ("suite", "chip", "operator", "dtype"),
    ("suite", "operator"),
    ("suite", "chip"),
    ("suite",),
)
"""What is pooled, from the finest to a whole suite; keys left out read ``all``."""


def error_statistics(errors: Sequence[float]) -> dict[str, float]:
    """Mean, median and 90th percentile of the size of errors, and the mean error.

    Parameters
    ----------
    errors : sequence of float
        estimate / reference - 1, at least one.
    """
    import numpy as np

    signed = np.asarray(errors, dtype=np.float64)
    size = np.abs(signed)
    return {
        "n": len(signed),
        "mape": float(size.mean()),
        "median_ape": float(np.median(size)),
        "p90_ape": float(np.quantile(size, 0.9)),
        "bias": float(signed.mean()),
    }


def summarise(points: pd.DataFrame, beside: Sequence[str] = ()) -> pd.DataFrame:
    """A table of errors, one row per group of `GROUPS`.

    Where operators are pooled (``all``), parts of another point are left out: a suite of
    layers counts each layer once, by its total.

    Parameters
    ----------
    points : pandas.DataFrame
        Columns `KEYS`, ``error`` and ``whole``, and those of ``beside`` with ``reference``.
    beside : sequence of str
        Columns with other estimates, in seconds: each adds a column ``…_mape`` (NaN where
        an estimate is missing).
    """
    import pandas as pd

    rows = []
    for group in GROUPS:
        members = points if "operator" in group else points[points["whole"]]
        for values, rest in members.groupby(list(group), sort=False):
            row = dict.fromkeys(KEYS, "all") | dict(zip(group, values, strict=True))
            others = {
                f"{name}_mape": float((rest[name] / rest["reference"] - 1.0).abs().mean())
                for name in beside
            }
            rows.append(row | error_statistics(rest["error"].tolist()) | others)
    return pd.DataFrame(rows, columns=[*COLUMNS, *(f"{name}_mape" for name in beside)])
