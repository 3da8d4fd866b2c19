"""What chipsim raises: user errors in one line, and bugs of its own."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable


class ChipsimError(Exception):
    """A request that cannot be answered; the message is one line for the user.

    The command line prints it on stderr and exits with code 2.
    """


class ConfigError(ChipsimError):
    """A file or argument holds something that is not allowed.

    Parameters
    ----------
    where : str
        File or argument source, e.g. ``a100-sxm.yaml`` or ``--fractions``.
    field : str
        Dotted path of the field inside it (may be empty).
    value : object
        The offending value.
    allowed : str
        What would have been allowed.
    """

    def __init__(self, where: str, field: str, value: object, allowed: str) -> None:
        place = f"{where}: {field}" if field else where
        super().__init__(f"{place}: {_shown(value)} is not allowed; allowed: {allowed}")
        self.where, self.field, self.value, self.allowed = where, field, value, allowed


class UnknownNameError(ChipsimError):
    """A name that no known thing carries; near misses are suggested.

    ``where`` is the file and field that holds it, where one does.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], where: str = "") -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = (
            f"did you mean {', '.join(near)}?"
            if near
            else f"known: {', '.join(names) or 'none'}"
        )
        place = f"{where}: " if where else ""
        super().__init__(f"{place}unknown {kind} {name!r}; {hint}")
        self.kind, self.name, self.suggestions = kind, name, near


class InfeasibleError(ChipsimError):
    """A well-formed request that the chip cannot hold or the plan cannot split."""


class InternalError(Exception):
    """An invariant of chipsim does not hold: a bug to report, never the user's fault."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message} (a bug in chipsim: please report it)")


_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxlist, _SHORT.maxdict = 2, 4, 4
_SHORT.maxstring = _SHORT.maxother = 80


def _shown(value: object) -> str:
    # reprlib stops early: a file's aliases can make a value as large as one likes.
    text = _SHORT.repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
