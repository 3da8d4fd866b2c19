"""Work side by side on threads: kernels give up the interpreter, the rest takes turns."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

TURN_S = 5e-4
"""Longest turn of a thread while another one wants the interpreter; Python's own is 5 ms.

A run comes back from its kernel some twenty times to be looked at, and took longer to wait for
one that makes a table than to run."""


def side_by_side(work: Callable[[T], R], given: Iterable[T], workers: int) -> list[R]:
    """What ``work`` makes of each, in order, as many at once as there are workers.

    >>> side_by_side(abs, [-1, 2, -3], 2)
    [1, 2, 3]
    """
    if workers == 1:
        return [work(one) for one in given]
    with _SHORT_TURNS, ThreadPoolExecutor(workers) as threads:
        return list(threads.map(work, given))


class _ShortTurns:
    """Turns are short while any call is at work, in whatever thread."""

    def __init__(self) -> None:
        self.lock, self.calls, self.usual_s = threading.Lock(), 0, 0.0

    def __enter__(self) -> None:
        with self.lock:
            if self.calls == 0:
                self.usual_s = sys.getswitchinterval()
                sys.setswitchinterval(TURN_S)
            self.calls += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.calls -= 1
            if self.calls == 0:
                sys.setswitchinterval(self.usual_s)


_SHORT_TURNS = _ShortTurns()
