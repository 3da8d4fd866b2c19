"""Results as Markdown pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from chipsim.present.tables import BESIDE, REGIMES

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.validation import ValidationResult


def validation_page(result: ValidationResult) -> str:
    """Errors of a suite: a table for each operator and format, and what was left out.

    Cells are MAPE / median, %; regimes and plain models MAPE.
    """
    frame = result.frame()
    whole = frame[(frame["regime"] == "all") & (frame["chip"] != "all")]
    parts = []
    for (operator, dtype), rows in whole[whole["dtype"] != "all"].groupby(
        ["operator", "dtype"], sort=True
    ):
        parts += [f"### {operator}, {dtype}", "", _table(frame, rows), ""]
    if result.skipped:
        parts += ["### Left out", ""]
        parts += [f"- {each.name}: {each.why}" for each in result.skipped]
    return "\n".join(parts).rstrip() + "\n"


def _table(frame: pd.DataFrame, rows: pd.DataFrame) -> str:
    keys = ["chip", "operator", "dtype"]
    split = frame[frame["regime"] != "all"].set_index([*keys, "regime"])["mape"].to_dict()
    first = rows.iloc[0]
    regimes = [
        name
        for name in REGIMES
        if any(
            (chip, first["operator"], first["dtype"], name) in split for chip in rows["chip"]
        )
    ]
    beside = [str(name) for name in frame.columns if str(name) in BESIDE]
    head = ["chip", "n", "MAPE", "median", "p90", "bias", *regimes]
    head += [BESIDE[name] for name in beside]
    body = []
    for row in rows.to_dict("records"):
        name = tuple(row[key] for key in keys)
        errors = [row[number] for number in ("mape", "median_ape", "p90_ape", "bias")]
        errors += [split.get((*name, regime)) for regime in regimes]
        errors += [row[model] for model in beside]
        body.append([str(row["chip"]), str(row["n"]), *map(error_cell, errors)])
    return rows_table(head, body)


def rows_table(head: Sequence[str], body: Iterable[Sequence[str]], words: int = 1) -> str:
    """A table; the first ``words`` columns are text, the others numbers."""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *body))


def error_cell(error: Any) -> str:
    """A fraction in %, nothing where there is none."""
    return "" if error is None or math.isnan(error) else f"{100 * error:.1f}"
