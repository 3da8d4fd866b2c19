"""The grid of two cuts: slowdown (or relative throughput) in each cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from chipsim.present.axes import AXES
from chipsim.present.headline import headline, subtitle
from chipsim.present.quantities import digits, percent, seconds
from chipsim.present.theme import template

if TYPE_CHECKING:
    from chipsim.explore.cuts import CutPoint, CutsResult

SCALE = ((0.0, "#f4f8fc"), (0.35, "#a8cfea"), (0.7, "#3b8cc4"), (1.0, "#0b3c6f"))
"""White to dark blue: one hue, so that a print in grey reads the same."""


def heatmap(run: CutsResult) -> go.Figure:
    """Draw the grid of two cuts; the value stands in each cell."""
    largest = run.setup.batch == "max"
    columns, rows = ({p.steps[i].value for p in run.points} for i in (0, 1))
    cells = {(p.steps[0].value, p.steps[1].value): p for p in run.points}
    xs, ys = sorted(columns), sorted(rows)
    first, second = (AXES[name] for name in run.resources)
    grid = [[cells[x, y] for x in xs] for y in ys]
    figure = go.Figure(
        go.Heatmap(
            x=[f"{first.text(x)}<br>{_part(run, 0, x)}" for x in xs],
            y=[f"{second.text(y)}, {_part(run, 1, y)}" for y in ys],
            z=[[_value(point, largest=largest) for point in line] for line in grid],
            text=[[_label(point, largest=largest) for point in line] for line in grid],
            texttemplate="%{text}",
            customdata=[[_hover(point) for point in line] for line in grid],
            hovertemplate="%{customdata}<extra></extra>",
            colorscale=SCALE,
            reversescale=largest,
            xgap=2,
            ygap=2,
            showscale=False,  # each cell holds its value
        )
    )
    cells_are = "tokens/s relative to the uncut chip" if largest else "slowdown"
    under = f"{subtitle(run)} · cells: {cells_are}"
    figure.update_layout(
        template=template(),
        height=max(360, 170 + 48 * len(ys)),
        title={"text": headline(run), "subtitle": {"text": under}},
        meta={"headline": headline(run), "subtitle": under},
    )
    figure.update_xaxes(title_text=first.name, type="category")
    figure.update_yaxes(title_text=second.name, type="category", showgrid=False)
    return figure


def _part(run: CutsResult, index: int, value: float) -> str:
    """A value of one axis as a part of the uncut chip."""
    steps = (point.steps[index] for point in run.points)
    return percent(next(step.fraction for step in steps if step.value == value), 2)


def _value(point: CutPoint, *, largest: bool) -> float | None:
    if point.estimate is None:
        return None
    return point.relative_throughput if largest else point.slowdown


def _label(point: CutPoint, *, largest: bool) -> str:
    value = _value(point, largest=largest)
    return "–" if value is None else digits(value)


def _hover(point: CutPoint) -> str:
    places = [
        f"{AXES[step.resource].name}: {AXES[step.resource].text(step.value)} "
        f"({percent(step.fraction)})"
        for step in point.steps
    ]
    answer = point.answer
    if answer.estimate is None:
        return "<br>".join([*places, answer.reason])
    slowdown = digits(point.slowdown or 1.0)
    told = f"{seconds(answer.estimate.latency_s)}, slowdown {slowdown}×"
    rate = f"{answer.tokens_per_s:,.0f} tokens/s, batch {answer.batch}"
    return "<br>".join([*places, told, rate, f"mostly {answer.estimate.bound}"])
