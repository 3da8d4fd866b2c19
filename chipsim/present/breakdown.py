"""Where the time goes: groups of operators stacked, one bar per point of a cut."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from chipsim.present.quantities import digits, percent, seconds
from chipsim.present.theme import PAPER, group_colour, group_name, in_order

if TYPE_CHECKING:
    from chipsim.explore.cuts import CutPoint, CutsResult
    from chipsim.present.axes import Axis


def add_breakdown(figure: go.Figure, run: CutsResult, axis: Axis) -> None:
    """Add the stacked bars to the second row of a figure."""
    points = sorted(
        (point for point in run.points if point.estimate is not None),
        key=lambda point: point.steps[0].value,
    )
    grouped = [groups_of(point) for point in points]
    places = [axis.shown(point.steps[0].value) for point in points]
    for group in in_order({name for groups in grouped for name in groups}):
        bars = go.Bar(
            x=places,
            y=[1e3 * groups[group]["latency_s"] for groups in grouped],
            width=bar_width(places),
            marker={"color": group_colour(group), "line": {"width": 0.5, "color": PAPER}},
            name=group_name(group),
            legend="legend2",
            customdata=[
                _hover(group, groups[group], axis.text(point.steps[0].value))
                for groups, point in zip(grouped, points, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
        figure.add_trace(bars, 2, 1)


def groups_of(point: CutPoint) -> dict[str, dict[str, Any]]:
    """Latency, share, slowdown and bounds of each group of operators of a point."""
    found: dict[str, dict[str, Any]] = {}
    for row in point.operators():
        group = found.setdefault(
            row["group"], {"latency_s": 0.0, "uncut_s": 0.0, "share": 0.0, "operators": []}
        )
        group["latency_s"] += row["latency_s"]
        group["uncut_s"] += row["latency_s"] / row["slowdown"] if row["slowdown"] else 0.0
        group["share"] += row["share"] or 0.0
        group["operators"].append(row)
    return found


def _hover(group: str, content: dict[str, Any], place: str) -> str:
    slowdown = content["latency_s"] / content["uncut_s"] if content["uncut_s"] else 1.0
    lines = [
        f"<b>{group_name(group)}</b> at {place}",
        f"{seconds(content['latency_s'])}, {percent(content['share'])} of the phase",
        f"slowdown {digits(slowdown)}×",
    ]
    lines += [
        f"{row['name']} × {row['count']}: {seconds(row['latency_s'])}, {row['bound']}"
        for row in content["operators"]
    ]
    return "<br>".join(lines)


def bar_width(places: list[float]) -> float:
    """Width that lets no two bars touch; a lone bar is a tenth of its place wide."""
    gaps = [b - a for a, b in itertools.pairwise(places) if b > a]
    return 0.7 * min(gaps) if gaps else 0.1 * (places[0] if places else 1.0)
