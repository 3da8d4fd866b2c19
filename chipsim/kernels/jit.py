"""The one place where compile choices are made, and where compiling is announced."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile on first call, keep on disk, release the interpreter lock.

    ``error_model="numpy"``: a division by zero gives infinity instead of a Python
    exception, which costs a branch in every inner loop; callers validate before.
    No ``fastmath``: results must not depend on the vectorisation of a machine.
    """
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inline(function: F) -> F:
    """Compile a helper that only other kernels call."""
    return cast(F, numba.njit(cache=True, error_model="numpy", inline="never")(function))


class _Announcer(event.Listener):
    """Say once, on stderr, that kernels are being compiled (cache hits stay silent)."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        if not self.said:
            self.said = True
            sys.stderr.write("chipsim: compiling kernels (once; kept on disk) ...\n")

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


event.register("numba:compile", _Announcer())
