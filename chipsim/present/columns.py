"""Columns of a result: their names for people, their units, and which way is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

UNITS = {
    "tokens_per_s_per_usd": "tokens/s per USD",
    "usd_per_million_output_tokens": "USD per million output tokens",
    "usd_per_million_input_tokens": "USD per million input tokens",
    "energy_j_per_token": "J per token",
    "tokens_per_s": "tokens/s",
    "per_usd": "per USD",
    "usd_per_hour": "USD/h",
    "bytes": "B",
    "flops": "FLOP",
    "mm2": "mm²",
    "usd": "USD",
    "rps": "requests/s",
    "hz": "Hz",
    "s": "s",
    "w": "W",
    "j": "J",
}
"""Ends of column names, the longest first, and the unit that each means."""

PREFIXED = {"s", "B", "FLOP", "Hz", "J", "W"}
"""Units that take an SI prefix: 43.7 ms, 80 GB."""

NAMES = {
    "ttft": "TTFT",
    "itl": "ITL",
    "tpot": "TPOT",
    "tbt": "TBT",
    "e2e": "E2E",
    "tdp": "TDP",
    "kv": "KV",
    "l2": "L2",
    "usd": "USD",
}

MORE = (
    "tokens_per_s",
    "throughput",
    "goodput",
    "capacity_rps",
    "per_usd",
    "margin",
    "utilisation",
)
"""Parts of the names of columns of which more is better."""

PLACES = ("arrival_s", "prompt_tokens", "output_tokens", "batch", "context", "reference")
"""Columns that say of what a row is: neither more nor less is better."""

PAIRS = (
    ("cost_usd", "latency_s"),
    ("cost_usd", "tokens_per_s"),
    ("cost_usd_per_hour", "goodput_rps"),
    ("arrival_s", "ttft_s"),
    ("latency_a_s", "latency_b_s"),
    ("reference", "estimate"),
)
"""What is drawn first: x and y, where a result has both."""

FIRST = (
    "fraction",
    "fraction_2",
    "latency_s",
    "slowdown",
    "tokens_per_s",
    "cost_usd",
    "tdp_w",
    "energy_j_per_token",
    "prompt_tokens",
    "output_tokens",
    "queue_s",
    "ttft_s",
    "tpot_s",
    "e2e_s",
)
"""Columns that parallel coordinates begin with, in this order."""

MOST_NAMES = 12
"""Different texts of a column that can still be an axis."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column as a person reads it."""

    key: str
    name: str
    unit: str

    @property
    def title(self) -> str:
        """Name and unit of an axis."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def more_is_better(self) -> bool:
        """Which way a front goes unless one says otherwise."""
        return any(part in self.key for part in MORE)

    @property
    def is_place(self) -> bool:
        """Whether neither way is better."""
        return self.key in PLACES

    @property
    def inside(self) -> str:
        """The name inside a sentence: ``latency``, but ``TTFT``."""
        first = self.name.split(" ")[0]
        return self.name if first.isupper() or not first.isalpha() else _lower(self.name)

    @property
    def ticks(self) -> dict[str, str]:
        """How an axis writes its numbers."""
        suffix = {"ticksuffix": self.unit} if self.tickformat else {}
        return {"tickformat": self.tickformat} | suffix

    @property
    def tickformat(self) -> str:
        """As plotly writes its numbers: an SI prefix where the unit takes one."""
        return "~s" if self.unit in PREFIXED else ""


def column(key: str) -> Column:
    """A column by its key.

    >>> column("tokens_per_s_per_usd").title, column("ttft_s").title, column("tdp_w").title
    ('Throughput (tokens/s per USD)', 'TTFT (s)', 'TDP (W)')
    """
    for end, unit in UNITS.items():
        if key == end or key.endswith(f"_{end}"):
            stem = key.removesuffix(end).strip("_")
            return Column(key, _words(stem or _whole(end)), unit)
    return Column(key, _words(key), "")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _whole(end: str) -> str:
    if end.startswith("tokens"):
        return "throughput"
    return "energy" if end.startswith("energy") else "price" if end.startswith("usd") else end


def _words(key: str) -> str:
    words = [NAMES.get(word, word) for word in key.split("_")]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def numeric(table: pd.DataFrame) -> list[str]:
    """Columns of numbers that are not all the same."""
    return [name for name in table.columns if _varies(table[name])]


def _varies(column: pd.Series) -> bool:
    if column.dtype == bool or column.dtype.kind not in "fiu":
        return False
    known = column.to_numpy(dtype=float)
    known = known[np.isfinite(known)]
    return len(known) > 0 and bool(known.min() < known.max())


def named(table: pd.DataFrame) -> list[str]:
    """Columns of a few texts or truth values."""
    return [
        name
        for name in table.columns
        if (table[name].dtype == bool or table[name].dtype.kind not in "fiu")
        and 2 <= table[name].nunique() <= MOST_NAMES
    ]


def first_pair(table: pd.DataFrame) -> tuple[str, str]:
    """The two columns that are drawn against each other first; empty where there are none."""
    known = numeric(table)
    for x, y in PAIRS:
        if x in known and y in known:
            return x, y
    return (known[0], known[1]) if len(known) > 1 else ("", "")


def first_axes(table: pd.DataFrame, most: int = 7) -> list[str]:
    """The columns that parallel coordinates begin with."""
    known = [*numeric(table), *named(table)]
    order = [key for key in FIRST if key in known]
    return [*order, *(key for key in known if key not in order)][:most]
