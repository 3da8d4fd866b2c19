"""The page of what our estimates stand beside: prose of a template, figures of an overview.

    pages/validation.md, with directives in double braces -> figures put in their places

A directive names what stands in its place:

    error SUITE CHIP OPERATOR [COLUMN]   one error in %, ``mape`` unless told otherwise
    table SUITE                          errors of a suite by operator, format and chip
    points SUITE                         a paper's figures one by one
    notes KIND                           what a record says of itself, a line each
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING

from chipsim.errors import ChipsimError
from chipsim.present.markdown import error_cell, rows_table
from chipsim.present.tables import BESIDE, REGIMES
from chipsim.validation.overview import TRANSFERRED
from chipsim.validation.suites import APART, SUITES

if TYPE_CHECKING:
    from chipsim.validation.overview import Overview

TEMPLATE = "pages/validation.md"
DIRECTIVE = re.compile(r"\{\{ *(.*?) *\}\}")
NUMBERS = {"mape": "MAPE", "median_ape": "median", "p90_ape": "p90", "bias": "bias"}
"""Statistics in the order of a table."""


def validation_overview(found: Overview) -> str:
    """The page, as Markdown.

    Raises
    ------
    ChipsimError
        The template asks for a figure that the overview does not hold.
    """
    template = files("chipsim.present").joinpath(TEMPLATE).read_text(encoding="utf-8")
    return filled(template, found)


def filled(template: str, found: Overview) -> str:
    """A template with its directives carried out."""

    def put(match: re.Match[str]) -> str:
        verb, *words = match[1].split()
        if verb not in VERBS:
            raise ChipsimError(f"{match[0]}: no such directive; one of {', '.join(VERBS)}")
        return VERBS[verb](found, *words)

    return DIRECTIVE.sub(put, template)


def _error(found: Overview, suite: str, chip: str, operator: str, column: str = "mape") -> str:
    errors = found.errors
    rows = errors[
        (errors["suite"] == suite)
        & (errors["chip"] == chip)
        & (errors["operator"] == operator)
        & (errors["dtype"] == "all")
        & (errors["regime"] == "all")
    ]
    if len(rows) != 1 or column not in rows or rows[column].isna().any():
        raise ChipsimError(f"error {suite} {chip} {operator} {column}: no such figure")
    return error_cell(rows[column].iloc[0])


def _table(found: Overview, suite: str) -> str:
    """One line per operator, format and chip; regimes and other models have columns."""
    if suite not in (*SUITES, *APART, TRANSFERRED):
        raise ChipsimError(f"table {suite}: no such suite")
    errors = found.errors[found.errors["suite"] == suite]
    if errors.empty:
        return "No rows."
    single = errors[(errors["chip"] != "all") & (errors["dtype"] != "all")]
    single = single.dropna(axis="columns", how="all")
    keys = ["operator", "dtype", "chip"]
    split = single[single["regime"] != "all"].set_index([*keys, "regime"])["mape"].to_dict()
    regimes = [name for name in REGIMES if (single["regime"] == name).any()]
    beside = [name for name in BESIDE if name in single.columns]
    body = []
    for row in single[single["regime"] == "all"].sort_values(keys).to_dict("records"):
        name = tuple(str(row[key]) for key in keys)
        cells = [row[number] for number in NUMBERS]
        cells += [split.get((*name, regime)) for regime in regimes]
        cells += [row[model] for model in beside]
        body.append([*name, str(row["n"]), *map(error_cell, cells)])
    head = ["operator", "format", "chip", "n", *NUMBERS.values(), *regimes]
    return rows_table([*head, *(BESIDE[name] for name in beside)], body, words=3)


def _points(found: Overview, suite: str) -> str:
    """Figures of a paper one by one, beside ours under each block."""
    every = found.points
    points = every[(every["suite"] == suite) & (every["unit"] == "1")]
    if points.empty:
        raise ChipsimError(f"points {suite}: no such figures")
    keys = ["chip", "operator", "shape"]
    blocks = [str(block) for block in points["regime"].unique()]
    ours = points.set_index([*keys, "regime"])["estimate"].to_dict()
    body = []
    for row in points.drop_duplicates(keys).to_dict("records"):
        name = tuple(str(row[key]) for key in keys)
        estimates = [f"{ours[*name, block]:.2f}" for block in blocks]
        body.append([f"{name[0]}, {name[1]}", name[2], f"{row['reference']:g}", *estimates])
    return rows_table(["figure", "at", "paper", *blocks], body, words=2)


def _notes(found: Overview, *kind: str) -> str:
    return "\n".join(f"- {line}" for line in found.note(" ".join(kind)))


VERBS: dict[str, Callable[..., str]] = {
    "error": _error, "table": _table, "points": _points, "notes": _notes,
}  # fmt: skip
