"""What an array of a workload may hold: one line says which entry is wrong and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_TOKENS = 2**31
"""Of one request: above any context window, and sums of 2**32 requests stay below int64."""
MOST_SECONDS = 1e12
"""Of an arrival: a time in milliseconds or nanoseconds since 1970 is mistaken for one of
seconds above it (1970 + 30 000 years)."""
MOST_REQUESTS = 10**8
"""Of one workload: some gigabytes, and a generator that ends."""


def seconds(where: str, field: str, values: Any) -> NDArray[np.float64]:
    """Times as finite floats from 0 (rank 1; `ConfigError`)."""
    array = _numbers(where, field, values)
    _each(where, field, array, np.isfinite(array), "a finite number")
    inside = (array >= 0.0) & (array <= MOST_SECONDS)
    _each(where, field, array, inside, f"0 to {MOST_SECONDS:.0e} seconds")
    return array.astype(np.float64)


def whole(
    where: str, field: str, values: Any, least: int, most: int = MOST_TOKENS
) -> NDArray[np.int64]:
    """Whole numbers from ``least`` to ``most`` (rank 1; `ConfigError`)."""
    array = _numbers(where, field, values)
    if not np.issubdtype(array.dtype, np.integer):
        _each(where, field, array, np.isfinite(array), "a finite number")
        _each(where, field, array, array == np.rint(array), "a whole number")
    inside = (array >= least) & (array <= most)
    _each(where, field, array, inside, f"a whole number from {least} to {most}")
    return array.astype(np.int64)


def _numbers(where: str, field: str, values: Any) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        kind = "no list" if array.ndim != 1 else f"a list of {array.dtype}"
        raise ConfigError(where, field, kind, "a list of numbers, one per request")
    return array


def _each(
    where: str, field: str, array: NDArray[Any], good: NDArray[np.bool_], allowed: str
) -> None:
    if not good.all():
        first = int(np.argmin(good))
        raise ConfigError(where, f"{field}[{first}]", array[first].item(), allowed)


def in_order(where: str, arrival_s: NDArray[np.float64]) -> None:
    """Arrivals that never go back (`ConfigError`)."""
    back = np.diff(arrival_s) < 0.0
    if back.any():
        at = int(np.argmax(back)) + 1
        allowed = f"{arrival_s[at - 1].item()!r} or later: requests in order of arrival"
        raise ConfigError(where, f"arrival_s[{at}]", arrival_s[at].item(), allowed)


def earlier_parents(where: str, parent: NDArray[np.int64]) -> None:
    """Parents that stand before their turn, and lead one turn at most (`ConfigError`)."""
    late = parent >= np.arange(len(parent))
    if late.any():
        at = int(np.argmax(late))
        raise ConfigError(where, f"parent[{at}]", int(parent[at]), "an earlier request, or -1")
    named, counts = np.unique(parent[parent >= 0], return_counts=True)
    if (counts > 1).any():
        twice = int(named[np.argmax(counts > 1)])
        at = int(np.flatnonzero(parent == twice)[1])
        raise ConfigError(where, f"parent[{at}]", twice, "a request that no other turn follows")


def offsets_of(where: str, offsets: Any, requests: int, blocks: int) -> NDArray[np.int64]:
    """Where each request's blocks begin and end (length n + 1; `ConfigError`)."""
    array = whole(where, "block_offsets", offsets, 0, 2**62)
    good = len(array) == requests + 1 and array[0] == 0 and array[-1] == blocks
    if not good or (np.diff(array) < 0).any():
        allowed = f"{requests + 1} numbers that rise from 0 to the {blocks} blocks"
        raise ConfigError(where, "block_offsets", f"{len(array)} numbers", allowed)
    return array
