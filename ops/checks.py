"""Small checks of arguments, each with an error of one line."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection

LARGEST = 10**15
"""Far above any tensor, far below where int64 ends."""


def whole(where: str, field: str, value: object, least: int = 1) -> int:
    """``value`` as an int from ``least`` to `LARGEST`.

    Raises
    ------
    ConfigError
        Not a whole number (a bool is none), or outside the range.
    """
    if type(value) is int and least <= value <= LARGEST:
        return value
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if not least <= number <= LARGEST:
        raise ConfigError(where, field, value, f"a whole number from {least} to {LARGEST:.0e}")
    return number


def positive(where: str, field: str, value: object) -> float:
    """``value`` as a float above 0 and at most `LARGEST`.

    Raises
    ------
    ConfigError
        Not a number, or outside the range.
    """
    try:
        number = float("nan") if isinstance(value, (bool, str)) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not 0.0 < number <= LARGEST:
        raise ConfigError(where, field, value, f"a number above 0, at most {LARGEST:.0e}")
    return number


def read_pairs(where: str, text: str, keys: Collection[str]) -> dict[str, str]:
    """Read ``"key=value,key=value"``.

    Raises
    ------
    ConfigError
        A part is not ``key=value``, its key is not among ``keys``, or comes twice.
    """
    pairs: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in keys or key in pairs:
            allowed = f"key=value, once each of {', '.join(keys)}"
            raise ConfigError(where, key if key in keys else "", part.strip(), allowed)
        pairs[key] = value
    return pairs
