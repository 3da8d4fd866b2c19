"""What a reader does to parallel coordinates: ranges as conditions, axes in another order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chipsim.explore.filters import Clause, narrowed, parse_filter
from chipsim.present.columns import column, numeric

if TYPE_CHECKING:
    import pandas as pd

RANGE = re.compile(r"dimensions\[(\d+)\]\.constraintrange")


def kept_ranges(
    table: pd.DataFrame, axes: Sequence[str], text: str
) -> dict[str, tuple[float, float]]:
    """Ranges of the axes that conditions keep, for the picture."""
    found: dict[str, tuple[float, float]] = {}
    for clause in parse_filter(text):
        key, sign = clause.column, clause.sign[0]
        if key not in numeric(table) or key not in axes or sign not in "<>":
            continue
        low, high = found.get(key, (float(table[key].min()), float(table[key].max())))
        value = float(clause.values[0])
        found[key] = (low, value) if sign == "<" else (value, high)
    return found


def brushed(
    table: pd.DataFrame, axes: Sequence[str], text: str, event: Mapping[str, Any]
) -> tuple[str, list[str]]:
    """Conditions and axes after an event of the picture.

    Parameters
    ----------
    text : str
        Conditions so far.
    event : mapping
        As plotly tells it: ``dimensions[2].constraintrange`` with a range, several or none,
        or ``dimensions`` in a new order.
    """
    order = list(axes)
    for key, value in event.items():
        match = RANGE.fullmatch(key)
        if match is not None and int(match[1]) < len(axes):
            name = axes[int(match[1])]
            text = narrowed(parse_filter(text), name, _clauses(table, name, value))
        elif key == "dimensions":
            titles = {column(name).title: name for name in axes}
            labels = [each.get("label") for each in _first(value)]
            order = [titles[label] for label in labels if label in titles]
    return text, order if sorted(order) == sorted(axes) else list(axes)


def _clauses(table: pd.DataFrame, name: str, value: Any) -> list[Clause]:
    ranges = _first(value)
    if not ranges:
        return []
    if isinstance(ranges[0], list | tuple):
        ranges = ranges[0]  # several ranges of an axis: the last drawn comes first
    low, high = sorted(float(end) for end in ranges[:2])
    cells = table[name]
    if cells.dtype != bool and cells.dtype.kind in "fiu":
        return [Clause(name, ">=", (f"{low:.6g}",)), Clause(name, "<=", (f"{high:.6g}",))]
    names = sorted(cells.astype(str).unique())
    within = tuple(each for code, each in enumerate(names) if low <= code <= high)
    return [Clause(name, "=", within)] if within else []


def _first(value: Any) -> list[Any]:
    """plotly wraps what it tells into a list, one for each trace."""
    if isinstance(value, list) and value and isinstance(value[0], list):
        return list(value[0])
    return list(value or [])
