"""The figure of a cut: slowdown against the resource, and where the time goes.

Several runs in one figure are the same cut under several execution blocks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from chipsim.present.axes import AXES, Axis
from chipsim.present.breakdown import add_breakdown
from chipsim.present.cost import money_text
from chipsim.present.headline import headline, subtitle
from chipsim.present.heatmap import heatmap
from chipsim.present.quantities import digits, percent, seconds
from chipsim.present.theme import INK, LINES, MARKERS, MUTED, PAPER, template

if TYPE_CHECKING:
    from chipsim.explore.cuts import CutPoint, CutsResult

HEIGHT = 820
"""Pixels: enough for two panels and legends that wrap on a phone."""


class Reference(Protocol):
    """A published figure to draw beside a curve (`chipsim.validation.spad`)."""

    @property
    def label(self) -> str:
        """Whose it is, and under which phase."""

    @property
    def value(self) -> float:
        """What is left of the resource, SI."""

    @property
    def slowdown(self) -> float:
        """Latency over that of the uncut chip."""

    @property
    def source(self) -> str:
        """Where it stands."""


def cuts_figure(
    runs: CutsResult | Sequence[CutsResult], references: Iterable[Reference] = ()
) -> go.Figure:
    """Draw a cut of one resource, or the grid of two.

    Parameters
    ----------
    runs : CutsResult or sequence of CutsResult
        The same cut, under one execution block or under several; operators are those of
        the first.
    references : iterable of Reference
        Drawn as markers where one resource is cut under a fixed batch.

    Returns
    -------
    plotly.graph_objects.Figure
        Slowdown (tokens/s with the largest batch) above, operators below; a heat map for
        two resources.
    """
    listed = [runs] if not isinstance(runs, Sequence) else list(runs)
    if len(listed[0].resources) > 1:
        return heatmap(listed[0])
    return _curve(listed, list(references))


def _curve(runs: list[CutsResult], references: list[Reference]) -> go.Figure:
    main = runs[0]
    axis = AXES[main.resources[0]]
    largest = main.setup.batch == "max"
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.09)
    for run, colour in zip(runs, _colours(len(runs)), strict=True):
        figure.add_trace(_line(run, axis, colour, largest=largest), 1, 1)
    if not largest:
        for trace in reference_traces(references, main, axis):
            figure.add_trace(trace, 1, 1)
        figure.add_hline(1.0, line={"color": MUTED, "width": 1, "dash": "dot"}, row=1, col=1)
    figure.add_trace(_uncut(main, axis, largest=largest), 1, 1)
    lost = _impossible(main, axis, largest=largest)
    if lost is not None:
        figure.add_trace(lost, 1, 1)
    add_breakdown(figure, main, axis)
    _lay_out(figure, runs, axis, largest=largest)
    return figure


def _colours(count: int) -> list[str]:
    return [LINES[index % len(LINES)] for index in range(count)]


def _line(run: CutsResult, axis: Axis, colour: str, *, largest: bool) -> go.Scatter:
    points = sorted(run.points, key=lambda point: point.steps[0].value)
    heights = [point.answer.tokens_per_s if largest else point.slowdown for point in points]
    if largest:
        heights = [height or None for height in heights]
    return go.Scatter(
        x=[axis.shown(point.steps[0].value) for point in points],
        y=heights,
        mode="lines+markers+text" if largest else "lines+markers",
        text=[f"{point.answer.batch}<br> " for point in points] if largest else None,
        textposition="top center",
        line={"color": colour, "width": 2.5},
        marker={
            "size": 8,
            "symbol": ["square" if p.answer.limit == "itl" else "circle" for p in points],
        },
        name=f"chipsim, {run.execution.name}",
        customdata=[_hover(point, axis) for point in points],
        hovertemplate="%{customdata}<extra></extra>",
        connectgaps=False,
    )


def _hover(point: CutPoint, axis: Axis) -> str:
    step, answer = point.steps[0], point.answer
    lines = [f"<b>{axis.text(step.value)}</b> ({percent(step.fraction)})"]
    if answer.estimate is None:
        return f"{lines[0]}<br>{answer.reason}"
    slowdown = digits(point.slowdown or math.nan)
    lines.append(f"{seconds(answer.estimate.latency_s)}, slowdown {slowdown}×")
    lines.append(f"{answer.tokens_per_s:,.0f} tokens/s, batch {answer.batch}")
    lines.append(f"mostly {answer.estimate.bound}")
    lines += [text] if (text := money_text(point.money)) else []
    if answer.limit:
        lines.append(f"batch limited by {LIMITS[answer.limit]}")
    return "<br>".join(lines)


LIMITS = {"memory": "memory capacity", "itl": "the ITL objective"}
"""What ends a largest batch, in words."""


def _uncut(run: CutsResult, axis: Axis, *, largest: bool) -> go.Scatter:
    """The uncut chip as a marker with its latency in the legend."""
    full = _full(run)
    height = run.uncut.tokens_per_s if largest else 1.0
    latency = seconds(run.baseline.latency_s)
    return go.Scatter(
        x=[axis.shown(full)],
        y=[height],
        mode="markers",
        marker={
            "symbol": "diamond",
            "size": 13,
            "color": PAPER,
            "line": {"width": 2.5, "color": INK},
        },
        name=f"uncut {run.chip.name}: {axis.text(full)}, {latency}",
        hovertemplate=f"<b>uncut {run.chip.name}</b><br>{axis.text(full)}<br>{latency}"
        "<extra></extra>",
    )


def _full(run: CutsResult) -> float:
    """What the uncut chip has of the first resource."""
    step = run.points[0].steps[0]
    return step.value / step.fraction


def _impossible(run: CutsResult, axis: Axis, *, largest: bool) -> go.Scatter | None:
    """Points at which the chip cannot run the phase, on the base line."""
    lost = [point for point in run.points if point.estimate is None]
    if not lost:
        return None
    return go.Scatter(
        x=[axis.shown(point.steps[0].value) for point in lost],
        y=[0.0 if largest else 1.0] * len(lost),
        mode="markers",
        marker={"symbol": "x-thin", "size": 10, "line": {"width": 2.5, "color": MUTED}},
        name="cannot run it",
        customdata=[_hover(point, axis) for point in lost],
        hovertemplate="%{customdata}<extra></extra>",
    )


def reference_traces(
    references: list[Reference], run: CutsResult, axis: Axis
) -> list[go.Scatter]:
    """One trace per label; of a source's phases the nearest is shown, others on demand."""
    by_label: dict[str, list[Reference]] = {}
    for reference in references:
        by_label.setdefault(reference.label, []).append(reference)
    sources: dict[str, list[str]] = {}
    for label in by_label:
        sources.setdefault(label.split(" (")[0], []).append(label)
    shown = {min(labels, key=lambda x: _distance(x, run)) for labels in sources.values()}
    return [
        _reference_trace(by_label[label], style, run, axis, visible=label in shown)
        for labels, style in zip(sources.values(), _styles(len(sources)), strict=True)
        for label in sorted(labels, key=lambda x: _distance(x, run))
    ]


def _styles(count: int) -> list[tuple[str, str]]:
    return [MARKERS[index % len(MARKERS)] for index in range(count)]


def _short(label: str, run: CutsResult) -> str:
    """A label without the phase where that is the one of the run."""
    return label if _distance(label, run) > 0 else label.split(" (", maxsplit=1)[0]


def _reference_trace(
    points: list[Reference],
    style: tuple[str, str],
    run: CutsResult,
    axis: Axis,
    *,
    visible: bool,
) -> go.Scatter:
    ordered = sorted(points, key=lambda point: point.value)
    colour, symbol = style
    return go.Scatter(
        x=[axis.shown(point.value) for point in ordered],
        y=[point.slowdown for point in ordered],
        mode="markers",
        marker={"symbol": symbol, "size": 9, "color": colour, "line": {"width": 1}},
        name=_short(ordered[0].label, run),
        visible=True if visible else "legendonly",
        customdata=[
            f"<b>{point.label}</b><br>{axis.text(point.value)}, slowdown "
            f"{digits(point.slowdown)}×<br>{_wrapped(point.source)}"
            for point in ordered
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _distance(label: str, run: CutsResult) -> float:
    """How far the phase in a label is from the phase of the run (0: the same)."""
    numbers = [int(text) for text in re.findall(r"(?:batch|prompt|context) (\d+)", label)]
    asked = (run.phase.batch, run.phase.context)
    return sum(abs(math.log(n / a)) for n, a in zip(numbers, asked, strict=False))


def _wrapped(text: str, width: int = 48) -> str:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "<br>".join(lines)


def _lay_out(figure: go.Figure, runs: list[CutsResult], axis: Axis, *, largest: bool) -> None:
    title, under = headline(runs[0]), subtitle(*runs)
    above: dict[str, Any] = {"x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
    below: dict[str, Any] = {"x": 0, "xanchor": "left", "y": -0.14, "yanchor": "top"}
    figure.update_layout(
        template=template(),
        height=HEIGHT,
        barmode="stack",
        hovermode="closest",
        title={"text": title, "subtitle": {"text": under}},
        legend=above | {"orientation": "h"},
        legend2=below | {"orientation": "h", "traceorder": "normal", "font": {"size": 13}},
        meta={"headline": title, "subtitle": under},
    )
    upper = "Tokens/s (numbers: batch)" if largest else "Slowdown (1 = uncut)"
    figure.update_yaxes(title_text=upper, row=1, col=1, rangemode="tozero" if largest else None)
    of = f", {runs[0].execution.name}" if len(runs) > 1 else ""
    figure.update_yaxes(title_text=f"Latency (ms){of}", row=2, col=1, rangemode="tozero")
    step = _tick_step(figure)
    figure.update_xaxes(showticklabels=True, tick0=0, dtick=step, row=1, col=1)
    figure.update_xaxes(tick0=0, dtick=step, row=2, col=1)
    figure.update_xaxes(title_text=axis.title, row=2, col=1)


def _tick_step(figure: go.Figure) -> float | None:
    """A round step of some six ticks; plotly's own would follow the bars' distances."""
    places = [x for trace in figure.data if trace.type == "scatter" for x in trace.x]
    span = max(places) - min(places)
    if span <= 0:
        return None
    rough = span / 6
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * step for step in (1, 2, 2.5, 5, 10) if power * step >= rough)
