"""The rows that no other row beats in two columns at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def pareto_front(
    x: Floats, y: Floats, *, most_x: bool = False, most_y: bool = False
) -> npt.NDArray[np.intp]:
    """Which points are not dominated.

    Parameters
    ----------
    x, y : array of float, 1-D
        Two objectives of each point, in any unit; a point that lacks one (NaN) is on no
        front.
    most_x, most_y : bool
        More is better; else less is.

    Returns
    -------
    array of int
        Places of the points on the front, the best in x first; of points that are equal in
        both objectives all.

    Examples
    --------
    >>> pareto_front(np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 2.0])).tolist()
    [0, 1]
    """
    a, b = (-x if most_x else x), (-y if most_y else y)
    known = np.flatnonzero(np.isfinite(a) & np.isfinite(b))
    order = known[np.lexsort((b[known], a[known]))]
    a, b = a[order], b[order]
    level = np.searchsorted(a, a, side="left")  # the best of those that are as good in x
    before = np.concatenate([[np.inf], np.minimum.accumulate(b)])[level]
    front: npt.NDArray[np.intp] = order[(b == b[level]) & (b < before)]
    return front
