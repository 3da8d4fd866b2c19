"""Results that readers have opened: each under a name that nobody can guess.

A reader's browser holds the name. Nothing lists the names, and the oldest results go when the
shelf is full.
"""

from __future__ import annotations

import base64
import binascii
import secrets
import threading
from collections import OrderedDict
from pathlib import PurePath
from typing import TYPE_CHECKING

from chipsim.errors import ChipsimError
from chipsim.explore.opened import MOST_BYTES, opened
from chipsim.explore.store import sidecar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chipsim.explore.store import Stored

MOST_HELD = 512 * 2**20
"""Bytes of all tables on the shelf."""

SIDE = sidecar(PurePath("x")).name.removeprefix("x")  # type: ignore[arg-type]  # a name only


class Shelf:
    """Results by name.

    Parameters
    ----------
    given : mapping of str to Stored
        Those that every reader may see: of the command line, and the example.
    """

    def __init__(self, given: Mapping[str, Stored]) -> None:
        self.given = dict(given)
        self._held: OrderedDict[str, tuple[Stored, int]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, stored: Stored) -> str:
        """Keep a result; the name under which `get` gives it back."""
        size = int(stored.table.memory_usage(deep=True).sum())
        name = secrets.token_urlsafe(18)
        with self._lock:
            self._held[name] = (stored, size)
            while sum(each for _, each in self._held.values()) > MOST_HELD:
                if len(self._held) == 1:
                    break
                self._held.popitem(last=False)
        return name

    def get(self, name: str) -> Stored:
        """A result by its name.

        Raises
        ------
        ChipsimError
            No longer there, or never was.
        """
        if name in self.given:
            return self.given[name]
        with self._lock:
            if name in self._held:
                self._held.move_to_end(name)
                return self._held[name][0]
        raise ChipsimError("this result is no longer held here; upload its file again")


def uploaded(names: Sequence[str], contents: Sequence[str]) -> Stored:
    """A result from what a browser sent: one file of rows, and perhaps its sidecar.

    Parameters
    ----------
    names, contents : sequence of str
        File names, and data URLs in base64.

    Raises
    ------
    ChipsimError
        No file of rows or several, a file that is too large or damaged.
    """
    files = {PurePath(n).name: _bytes(n, c) for n, c in zip(names, contents, strict=True)}
    sides = {name for name in files if name.endswith(SIDE)}
    rows = sorted(files.keys() - sides)
    if len(rows) != 1:
        told = ", ".join(rows)[:120] or "none"
        raise ChipsimError(
            f"upload one file of rows, and with it its {SIDE}: {len(rows)} given ({told})"
        )
    from pathlib import Path

    path = Path(rows[0])
    return opened(path, files[rows[0]], files.get(sidecar(path).name))


def _bytes(name: str, content: str) -> bytes:
    _, _, text = content.partition(",")
    if len(text) * 3 // 4 > MOST_BYTES + 3:
        raise ChipsimError(f"{PurePath(name).name}: more than {MOST_BYTES >> 20} MiB")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ChipsimError(f"{PurePath(name).name}: did not arrive whole") from None
