"""What a page shows, as a URL query: a link reproduces it, and nothing else holds it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

MOST_QUERY = 8000
"""Characters of a query that are read."""

MOST_TEXT = 400
"""Characters of one text, unless a field has room for more."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few names."""

    default: str
    names: Callable[[], Sequence[str]]

    def read(self, text: str) -> str:
        """The name, or a `ValueError` that says what is allowed."""
        if text not in self.names():
            raise ValueError(f"one of {len(self.names())} names")
        return text


@dataclass(frozen=True, slots=True)
class Number:
    """A number within bounds."""

    default: float
    low: float
    high: float
    whole: bool = False

    def read(self, text: str) -> float:
        """The number, or a `ValueError` that says what is allowed."""
        value = float(text)
        if not (math.isfinite(value) and self.low <= value <= self.high):
            raise ValueError(f"a number from {self.low:g} to {self.high:g}")
        return int(value) if self.whole else value


@dataclass(frozen=True, slots=True)
class Text:
    """Text of some characters; what it means is checked where it is used."""

    default: str = ""
    most: int = MOST_TEXT

    def read(self, text: str) -> str:
        """The text, or a `ValueError` that says what is allowed."""
        if len(text) > self.most or not text.isprintable():
            raise ValueError(f"up to {self.most} printable characters")
        return text


Fields = Mapping[str, Choice | Number | Text]


def defaults(fields: Fields) -> dict[str, Any]:
    """What a page shows without a query."""
    return {name: field.default for name, field in fields.items()}


def read_state(fields: Fields, search: str | None) -> tuple[dict[str, Any], list[str]]:
    """The state in a query, and a remark for each part of it that cannot be.

    >>> fields = {"batch": Number(64, 1, 1024, whole=True)}
    >>> read_state(fields, "?batch=8"), read_state(fields, "?batch=-1")[1]
    (({'batch': 8}, []), ["batch: '-1' is not allowed; allowed: a number from 1 to 1024"])
    """
    state, remarks = defaults(fields), []
    query = (search or "").removeprefix("?")
    if len(query) > MOST_QUERY:
        return state, ["the link is too long and was not read"]
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name not in fields:
            remarks.append(f"{name[:40]}: nothing of that name on this page")
            continue
        try:
            state[name] = fields[name].read(text)
        except ValueError as error:
            told = str(error) if "allowed" not in str(error) else ""
            remarks.append(f"{name}: {text[:40]!r} is not allowed; allowed: {told}")
    return state, remarks


def query_of(fields: Fields, state: Mapping[str, Any]) -> str:
    """The query that reproduces a state; what is as without one is left out.

    >>> query_of({"batch": Number(64, 1, 1024), "axis": Text()}, {"batch": 8.0, "axis": ""})
    '?batch=8'
    """
    changed = {
        name: _plain(state[name])
        for name, field in fields.items()
        if state.get(name) is not None and state[name] != field.default
    }
    return f"?{urlencode(changed)}" if changed else "?"


def _plain(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, int | float) else str(value)
