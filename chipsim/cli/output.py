"""What commands write: JSON or tables on stdout, remarks on stderr."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from chipsim.errors import InternalError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WIDTH = 100
"""Columns of a table that goes into a pipe or a file."""


def emit(data: dict[str, Any]) -> None:
    """Write one JSON object on stdout.

    Raises
    ------
    InternalError
        It holds a NaN or an infinity.
    """
    try:
        text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InternalError("a result holds a NaN or an infinity") from None
    sys.stdout.write(text + "\n")


def console(*, error: bool = False) -> Console:
    """A terminal as wide as it is, or a pipe of `WIDTH` columns without colour."""
    from rich.console import Console

    stream = sys.stderr if error else sys.stdout
    wide = None if stream.isatty() else WIDTH
    return Console(file=stream, width=wide, highlight=False, markup=False, emoji=False)


def show(*parts: RenderableType) -> None:
    """Print tables and lines on stdout."""
    out = console()
    for part in parts:
        out.print(part)


def remark(text: str) -> None:
    """One line on stderr that is not part of the result."""
    sys.stderr.write(f"chipsim: {text}\n")
