"""Percentiles, exact: of numbers, and of numbers that stand for several each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

SHOWN = (50.0, 90.0, 99.0)
"""Percentiles of every summary."""


def percentiles(
    values: Floats, shares: Sequence[float], counts: npt.NDArray[np.integer] | None = None
) -> Floats:
    """Percentiles as `numpy.percentile` has them, linear between neighbours.

    Parameters
    ----------
    values : array (n) of float64
    shares : sequence of float
        0 ... 100.
    counts : array (n) of int, optional
        How often each value stands; once unless given.

    Returns
    -------
    array (len(shares)) of float64
        NaN of nothing.

    Examples
    --------
    >>> percentiles(np.array([1.0, 5.0]), [50.0], np.array([3, 2])).tolist()
    [1.0]
    """
    if counts is None:
        return np.percentile(values, shares) if len(values) else np.full(len(shares), np.nan)
    order = np.argsort(values)
    ends = np.cumsum(counts[order], dtype=np.int64)
    if not len(ends) or ends[-1] == 0:
        return np.full(len(shares), np.nan)
    place = np.asarray(shares, np.float64) / 100.0 * (ends[-1] - 1)
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, ends[-1] - 1)
    at = values[order]
    below = at[np.searchsorted(ends, low, side="right")]
    above = at[np.searchsorted(ends, high, side="right")]
    found: Floats = below + (place - low) * (above - below)
    return found


def spread(
    values: Floats, counts: npt.NDArray[np.integer] | None = None
) -> dict[str, float | None]:
    """``mean, p50, p90, p99, max``; None of nothing."""
    if not len(values) or (counts is not None and counts.sum() == 0):
        return dict.fromkeys(("mean", *(f"p{share:g}" for share in SHOWN), "max"))
    found = percentiles(values, SHOWN, counts)
    mean = float(np.average(values, weights=counts))
    shown = {f"p{share:g}": float(value) for share, value in zip(SHOWN, found, strict=True)}
    return {"mean": mean, **shown, "max": float(values.max())}
