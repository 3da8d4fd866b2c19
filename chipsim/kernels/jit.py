"""The one place where compile choices are made, and where compiling is announced."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event

KERNELS = ("kernels", "cluster/engine")
"""Folders of the package that hold kernels."""

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile on first call, keep on disk, release the interpreter lock.

    ``error_model="numpy"``: a division by zero gives infinity instead of a Python
    exception, which costs a branch in every inner loop; callers validate before.
    No ``fastmath``: results must not depend on the vectorisation of a machine.
    """
    return cast(F, _fresh(numba.njit(cache=True, nogil=True, error_model="numpy")(function)))


def inline(function: F) -> F:
    """Compile a helper that only other kernels call."""
    compiled = numba.njit(cache=True, error_model="numpy", inline="never")(function)
    return cast(F, _fresh(compiled))


def part(function: F) -> F:
    """Compile a piece of a larger kernel, which only kernels call.

    It has no entry from Python and is not kept on disk by itself: the kernel is, whole.
    A large kernel of many pieces compiles several times faster so.
    """
    return _part(function, forceinline=False)


def hot_part(function: F) -> F:
    """As `part`, and copied into its callers: for what runs millions of times a second."""
    return _part(function, forceinline=True)


def _part(function: F, *, forceinline: bool) -> F:
    # numba's own types do not know the first two.
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    piece: Any = numba.njit(error_model="numpy", forceinline=forceinline, **options)(function)
    typed = piece.get_call_template

    def once_per_type(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        # Or it would be compiled again for every constant that it is called with.
        unliteral: Any = numba.types.unliteral
        return typed(tuple(map(unliteral, args)), {k: unliteral(v) for k, v in kws.items()})

    piece.get_call_template = once_per_type
    return cast(F, piece)


def _fresh(compiled: Any) -> Any:
    """Make what is kept on disk stale when any kernel's source changes.

    numba looks only at the file that a function is in, but compiles helpers from other
    files into it: a change there would leave an old result behind.
    """
    kept = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if kept is not None:
        kept._source_stamp = (kept._source_stamp, _SOURCES)  # noqa: SLF001 - numba has no hook
    return compiled


def _sources() -> str:
    """Checksum of every file that holds kernels."""
    package = Path(__file__).parents[1]
    files = [f for folder in KERNELS for f in sorted((package / folder).glob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


_SOURCES = _sources()


class _Announcer(event.Listener):
    """Say once, on stderr, that kernels are being compiled (cache hits stay silent)."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - the listener's interface
        if not self.said:
            self.said = True
            sys.stderr.write("chipsim: compiling kernels (once; kept on disk) ...\n")

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


ANNOUNCER = _Announcer()
event.register("numba:compile", ANNOUNCER)  # type: ignore[no-untyped-call]
