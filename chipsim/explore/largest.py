"""The largest batch within a latency."""

from __future__ import annotations

from collections.abc import Callable


def largest_within(latency_s: Callable[[int], float], limit_s: float, most: int) -> int:
    """Largest batch of 0 ... ``most`` whose latency stays within a limit.

    Latency grows with the batch, and nearly in proportion once the weights are read; so
    the next batch to try is interpolated, and halved where that closes in slowly.

    Parameters
    ----------
    latency_s : callable
        Seconds at a batch from 1.
    limit_s : float
        Seconds.
    most : int
        Largest batch allowed, from 0.

    Returns
    -------
    int
        The next larger batch, if allowed, is over the limit; 0: none is within it.
    """
    if most < 1 or (slowest := latency_s(most)) <= limit_s:
        return most
    if most == 1 or (fastest := latency_s(1)) > limit_s:
        return 0
    low, high = 1, most
    halve = False
    while high - low > 1:
        part = 0.5 if halve else (limit_s - fastest) / (slowest - fastest)
        middle = min(max(low + round(part * (high - low)), low + 1), high - 1)
        width, seconds = high - low, latency_s(middle)
        if seconds <= limit_s:
            low, fastest = middle, seconds
        else:
            high, slowest = middle, seconds
        halve = high - low > width // 2
    return low
