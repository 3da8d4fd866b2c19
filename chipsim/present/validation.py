"""Estimates beside references: ratio of the two against the reference, with bands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from chipsim.present.quantities import format_si, percent, seconds
from chipsim.present.theme import LINES, MUTED, template

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.validation import ValidationResult

BANDS = ((0.25, "rgba(0,114,178,0.06)"), (0.10, "rgba(0,114,178,0.10)"))
"""Errors that are shaded, and their shades."""

LIMITS = (0.4, 2.5)
"""Ratios beyond are drawn at the edge; the hover text has the number."""


THEIRS = "-llmcompass"
"""End of the suites that judge LLMCompass itself: drawn on demand."""

DECADES = range(-9, 3)


def validation_figure(result: ValidationResult) -> go.Figure:
    """Draw every reference figure in seconds: estimate over reference.

    A plot of one against the other spans six decades, in which 10 % is no wider than a
    line; the ratio shows it.
    """
    timed = result.points[result.points["unit"] == "s"]
    figure = go.Figure()
    for width, shade in BANDS:
        figure.add_hrect(1 - width, 1 + width, fillcolor=shade, line_width=0, layer="below")
    figure.add_hline(1.0, line={"color": MUTED, "width": 1})
    suites = sorted(timed["suite"].unique(), key=lambda name: name.endswith(THEIRS))
    for index, suite in enumerate(suites):
        rows = timed[timed["suite"] == suite]
        figure.add_trace(_suite(suite, rows, LINES[index % len(LINES)], index))
    title = validation_headline(result)
    subtitle = f"{len(timed)} figures in seconds · shaded: 10 % and 25 %"
    figure.update_layout(
        template=template(),
        height=620,
        hovermode="closest",
        title={"text": title, "subtitle": {"text": subtitle}},
        meta={"headline": title, "subtitle": subtitle},
        legend={"x": 0, "y": 1.02, "yanchor": "bottom"},
    )
    figure.update_xaxes(
        title_text="Reference",
        type="log",
        tickvals=[10.0**decade for decade in DECADES],
        ticktext=[format_si(10.0**decade, "s", 1) for decade in DECADES],
    )
    figure.update_yaxes(
        title_text="Estimate / reference",
        type="log",
        tickvals=[0.4, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 2, 2.5],
    )
    return figure


def validation_headline(result: ValidationResult) -> str:
    """Worst and best suite in one sentence."""
    pooled = pooled_suites(result.frame())
    if len(pooled) == 1:
        row = pooled[0]
        return f"{row['suite']}: mean error {percent(row['mape'])} over {row['n']} figures"
    ours = [row for row in pooled if not row["suite"].endswith(THEIRS)]
    ordered = sorted(ours, key=lambda row: row["mape"])
    best, worst = ordered[0], ordered[-1]
    return (
        f"Mean error from {percent(best['mape'])} ({best['suite']}) "
        f"to {percent(worst['mape'])} ({worst['suite']})"
    )


def pooled_suites(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows that pool a whole suite."""
    keys = ["chip", "operator", "dtype", "regime"]
    pooled = frame[(frame[keys] == "all").all(axis=1)]
    return [{str(k): v for k, v in row.items()} for row in pooled.to_dict("records")]


def _suite(name: str, rows: pd.DataFrame, colour: str, index: int) -> go.Scatter:
    ratio = rows["estimate"] / rows["reference"]
    symbols = ("circle", "square", "diamond", "triangle-up", "cross", "x")
    return go.Scatter(
        x=rows["reference"].tolist(),
        y=ratio.clip(*LIMITS).tolist(),
        mode="markers",
        marker={
            "size": 6,
            "opacity": 0.6,
            "color": colour,
            "symbol": symbols[index % len(symbols)],
        },
        name=f"{name} ({len(rows)})",
        visible="legendonly" if name.endswith(THEIRS) else True,
        customdata=[_hover(row) for row in rows.to_dict("records")],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _hover(row: dict[Any, Any]) -> str:
    return (
        f"<b>{row['chip']} {row['operator']}</b> {row['shape']}<br>"
        f"reference {seconds(row['reference'])}, estimate {seconds(row['estimate'])} "
        f"({100 * row['error']:+.1f} %)<br>{row['source']}"
    )
