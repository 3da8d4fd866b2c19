"""The waterfall from one run to another: what each operator adds or saves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from chipsim.present.headline import compare_headline
from chipsim.present.quantities import format_si, seconds
from chipsim.present.theme import BLUE, GREEN, MUTED, VERMILION, template

if TYPE_CHECKING:
    from chipsim.explore.compare import Comparison

SMALL = 0.01
"""Differences below this part of the larger total are drawn as one bar."""


def compare_figure(comparison: Comparison, subtitle: str = "") -> go.Figure:
    """Draw a comparison as a waterfall, the largest difference first.

    Returns
    -------
    plotly.graph_objects.Figure
        Horizontal bars from the total of a to that of b.
    """
    bars = list(_bars(comparison))
    figure = go.Figure(
        go.Waterfall(
            orientation="h",
            y=[bar["label"] for bar in bars],
            x=[1e3 * bar["seconds"] for bar in bars],
            measure=[bar["measure"] for bar in bars],
            text=[bar["text"] for bar in bars],
            textposition="outside",
            cliponaxis=False,
            customdata=[bar["hover"] for bar in bars],
            hovertemplate="%{customdata}<extra></extra>",
            increasing={"marker": {"color": VERMILION}},
            decreasing={"marker": {"color": GREEN}},
            totals={"marker": {"color": BLUE}},
            connector={"line": {"color": MUTED, "width": 1, "dash": "dot"}},
        )
    )
    longest = 1e3 * max(comparison.total_a_s, comparison.total_b_s)
    figure.update_layout(
        template=template(),
        height=180 + 40 * len(bars),
        showlegend=False,
        title={"text": compare_headline(comparison), "subtitle": {"text": subtitle}},
        meta={"headline": compare_headline(comparison), "subtitle": subtitle},
    )
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_xaxes(title_text="Latency (ms)", showgrid=True, range=[0, 1.22 * longest])
    return figure


def _bars(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Totals, differences that matter, and the sum of the rest."""
    reasons = {row.name: row.why for row in comparison.rows}
    first, *steps, last = comparison.waterfall()
    least = SMALL * max(comparison.total_a_s, comparison.total_b_s)
    large = [step for step in steps if abs(step.seconds) >= least]
    small = [step for step in steps if abs(step.seconds) < least]
    yield _total(first.label, first.seconds)
    for step in large:
        yield _difference(step.label, step.seconds, reasons[step.label])
    if small:
        names = ", ".join(step.label for step in small)
        rest = sum(step.seconds for step in small)
        yield _difference(f"{len(small)} others", rest, names)
    yield _total(last.label, last.seconds) | {"measure": "total"}


def _total(label: str, value: float) -> dict[str, Any]:
    text = seconds(value)
    hover = f"<b>{label}</b><br>{text}"
    return {
        "label": label, "seconds": value, "measure": "absolute", "text": text, "hover": hover,
    }  # fmt: skip


def _difference(label: str, value: float, why: str) -> dict[str, Any]:
    text = f"{'+' if value > 0 else ''}{format_si(value, 's')}"
    hover = f"<b>{label}</b> {text}<br>{why}"
    return {
        "label": label, "seconds": value, "measure": "relative", "text": text, "hover": hover,
    }  # fmt: skip
