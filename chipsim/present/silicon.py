"""Measured operators against our estimates, both in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from chipsim.present.quantities import format_si, percent, seconds
from chipsim.present.theme import LINES, MUTED, template
from chipsim.present.validation import BANDS, DECADES

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.validation import ValidationResult

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")

WORDS = {
    "gemm": "GEMM",
    "attention_context": "attention, prefill",
    "attention_generation": "attention, decode",
    "mla_context": "MLA, prefill",
    "mla_generation": "MLA, decode",
    "moe": "MoE",
}
"""Operators of measured files as the legend has them."""


def silicon_figure(result: ValidationResult) -> go.Figure:
    """Estimate against measurement on two logarithmic axes, with bands of 10 and 25 %.

    A colour is a chip and a symbol an operator; the hover text has shape and kernel.
    """
    points = result.points
    low, high = 0.8 * points["reference"].min(), 1.25 * points["reference"].max()
    figure = go.Figure()
    for width, shade in BANDS:
        edges = [low * (1 + width), high * (1 + width), high * (1 - width), low * (1 - width)]
        figure.add_scatter(
            x=[low, high, high, low], y=edges, fill="toself", fillcolor=shade, mode="lines",
            line_width=0, hoverinfo="skip", showlegend=False,
        )  # fmt: skip
    figure.add_scatter(
        x=[low, high], y=[low, high], mode="lines", line={"color": MUTED, "width": 1},
        hoverinfo="skip", showlegend=False,
    )  # fmt: skip
    for trace in _traces(points):
        figure.add_trace(trace)
    _axes(figure)
    title = _headline(result)
    subtitle = "shaded: 10 % and 25 %"
    if apart := int((~_counted(points)).sum()):
        subtitle += f" · {apart} more, of fallback kernels, are drawn and not counted"
    figure.update_layout(
        template=template(),
        height=760,
        hovermode="closest",
        title={"text": title, "subtitle": {"text": subtitle}},
        meta={"headline": title, "subtitle": subtitle},
        legend={"x": 0, "y": 1.02, "yanchor": "bottom"},
    )
    return figure


def _counted(points: pd.DataFrame) -> pd.Series[bool]:
    """Rows that errors are about: not those of fallback kernels, named behind a slash."""
    return ~points["operator"].str.contains("/")


def _traces(points: pd.DataFrame) -> Iterator[go.Scatter]:
    """Points by chip and operator; the legend names chips by colour, operators by symbol."""
    kind = points["operator"].str.partition("/")[0]
    colours = dict(zip(points["chip"].unique(), cycle(LINES), strict=False))
    symbols = dict(zip(kind.unique(), cycle(SYMBOLS), strict=False))
    for chip, rows in points.groupby("chip", sort=False):
        for operator, some in rows.groupby(kind, sort=False):
            yield _trace(str(chip), some, colours[chip], symbols[operator])
        error = 100 * rows[_counted(rows)]["error"].abs().mean()
        yield _key(f"{chip} ({error:.0f} %)", str(chip), colours[chip], SYMBOLS[0])
    for operator, symbol in symbols.items():
        yield _key(WORDS.get(str(operator), str(operator)), "", MUTED, symbol)


def _axes(figure: go.Figure) -> None:
    ticks = {
        "type": "log",
        "tickvals": [10.0**decade for decade in DECADES],
        "ticktext": [format_si(10.0**decade, "s", 1) for decade in DECADES],
    }
    figure.update_xaxes(title_text="Measured", **ticks)
    figure.update_yaxes(title_text="Estimated", **ticks)


def _trace(name: str, rows: pd.DataFrame, colour: str, symbol: str) -> go.Scatter:
    return go.Scatter(
        x=rows["reference"].tolist(),
        y=rows["estimate"].tolist(),
        mode="markers",
        marker={"size": 5, "opacity": 0.6, "color": colour, "symbol": symbol},
        name=name,
        legendgroup=name,
        showlegend=False,
        customdata=[_hover(row) for row in rows.to_dict("records")],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _key(name: str, group: str, colour: str, symbol: str) -> go.Scatter:
    """A line of the legend; it switches the points of its group."""
    return go.Scatter(
        x=[None],
        y=[None],
        mode="markers",
        marker={"size": 8, "color": colour, "symbol": symbol},
        name=name,
        legendgroup=group or name,
        hoverinfo="skip",
    )


def _hover(row: dict[Any, Any]) -> str:
    return (
        f"<b>{row['chip']} {row['operator']} {row['dtype']}</b><br>{row['shape']}<br>"
        f"measured {seconds(row['reference'])}, estimate {seconds(row['estimate'])} "
        f"({100 * row['error']:+.1f} %), {row['bound']}<br>{row['source']}"
    )


def _headline(result: ValidationResult) -> str:
    """Pooled error, and that of the best plain model."""
    frame = result.frame()
    keys = ["chip", "operator", "dtype", "regime"]
    whole = frame[(frame[keys] == "all").all(axis=1)].iloc[0]
    head = f"Mean error {percent(whole['mape'])} over {whole['n']} measurements"
    if "roofline_mape" in whole:
        return f"{head}; a roofline is off by {percent(whole['roofline_mape'])}"
    return f"{head}; the chip alone would be off by {percent(whole['chip_alone_mape'])}"
