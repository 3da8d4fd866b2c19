"""The pictures of a cut chip beside the uncut one, as sketches: drawn anew at every drag."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chipsim.present.axes import AXES
from chipsim.present.breakdown import groups_of
from chipsim.present.headline import held_text
from chipsim.present.quantities import digits, percent, seconds
from chipsim.present.sketch import Sketch, axis, legend_above, legend_below, sketch
from chipsim.present.theme import (
    BLUE,
    GREEN,
    INK,
    LINES,
    MUTED,
    ORANGE,
    PAPER,
    PURPLE,
    VERMILION,
    group_colour,
    group_name,
    in_order,
)

if TYPE_CHECKING:
    from chipsim.explore.cuts import CutPoint, CutsResult

DOLLARS = {
    "die": BLUE,
    "memory": ORANGE,
    "packaging": GREEN,
    "design": PURPLE,
    "whole chip": MUTED,
}
"""Parts of a chip's cost and their colours, in the order they are stacked."""

WATTS = {"die": BLUE, "memory": ORANGE, "overhead": GREEN, "stated": MUTED}
"""Parts of a chip's TDP and their colours."""


SMALL = 0.01
"""Groups of operators below this part of the time are drawn as one."""


def where(point: CutPoint) -> str:
    """What a point leaves of its chip, in words."""
    step = point.steps[0]
    kept = [] if step.fraction == 1.0 else held_text({step.resource: step.fraction})
    return " and ".join([*kept, *held_text(point.setup.held)]) or "the whole chip"


def verdict(point: CutPoint) -> str:
    """How much slower the phase is at a point."""
    kind = point.setup.phase.kind.capitalize()
    if point.slowdown is None:
        return f"{kind} cannot run with {where(point)}: {point.answer.reason}"
    if where(point) == "the whole chip":
        return f"{kind} takes {seconds(point.latency_s or 0.0)} on the whole chip"
    if abs(point.slowdown - 1.0) < 0.005:
        return f"{kind} is as fast with {where(point)}"
    if point.slowdown < 1.0:
        return f"{kind} is {digits(1.0 / point.slowdown)}× faster with {where(point)}"
    return f"{kind} is {digits(point.slowdown)}× slower with {where(point)}"


def curve_sketch(
    run: CutsResult, here: CutPoint, references: Sequence[dict[str, Any]] = ()
) -> Sketch:
    """Slowdown against one resource, the point where the slider is, and published figures.

    Parameters
    ----------
    references : sequence of dict
        Traces of published figures, which hold for the chip with nothing else cut.
    """
    of = AXES[run.resources[0]]
    runs = [point for point in run.points if point.estimate is not None]
    data: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "lines+markers", "name": "chipsim",
            "x": [of.shown(p.steps[0].value) for p in runs],
            "y": [p.slowdown for p in runs],
            "line": {"color": LINES[0], "width": 2.5}, "marker": {"size": 6},
            "customdata": [_point_hover(p) for p in runs],
            "hovertemplate": "%{customdata}<extra></extra>",
        }
    ]  # fmt: skip
    data += references
    data.append(_marker(run, of))
    if here.slowdown is not None:
        data.append(_here(here, of))
    lost = [of.shown(p.steps[0].value) for p in run.points if p.estimate is None]
    if lost:
        data.append(
            {
                "type": "scatter", "mode": "markers", "name": "cannot run it", "x": lost,
                "y": [1.0] * len(lost), "hovertemplate": "cannot run it<extra></extra>",
                "marker": {"symbol": "x-thin", "size": 10, "line": {"width": 2}},
            }
        )  # fmt: skip
    return sketch(
        data,
        verdict(here),
        f"slowdown over the uncut {run.chip.name}, {seconds(run.baseline.latency_s)}",
        height=400,
        xaxis=axis(of.title, rangemode="tozero"),
        yaxis=axis("Slowdown (1 = uncut)"),
        shapes=[_level(1.0)],
        legend=legend_above(),
        uirevision=f"{run.resources[0]}",
    )


def _level(y: float) -> dict[str, Any]:
    line = {"color": MUTED, "width": 1, "dash": "dot"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line}


def _point_hover(point: CutPoint) -> str:
    step, answer = point.steps[0], point.answer
    told = [f"<b>{AXES[step.resource].text(step.value)}</b> ({percent(step.fraction)})"]
    if answer.estimate is not None:
        told += [
            f"{seconds(answer.estimate.latency_s)}, slowdown {digits(point.slowdown or 1.0)}×",
            f"{answer.tokens_per_s:,.0f} tokens/s, mostly {answer.estimate.bound}",
        ]
    return "<br>".join(told)


def _marker(run: CutsResult, of: Any) -> dict[str, Any]:
    step = run.points[0].steps[0]
    full = step.value / step.fraction
    return {
        "type": "scatter", "mode": "markers", "x": [of.shown(full)], "y": [1.0],
        "name": f"uncut: {of.text(full)}",
        "marker": {
            "symbol": "diamond", "size": 12, "color": PAPER, "line": {"width": 2, "color": INK},
        },
        "hovertemplate": f"<b>uncut {run.chip.name}</b><br>{of.text(full)}<extra></extra>",
    }  # fmt: skip


def _here(point: CutPoint, of: Any) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers+text", "name": "this chip",
        "x": [of.shown(point.steps[0].value)], "y": [point.slowdown],
        "text": [f"{digits(point.slowdown or 1.0)}×"], "textposition": "top center",
        "textfont": {"size": 15, "color": VERMILION},
        "marker": {"size": 14, "color": VERMILION, "line": {"width": 2, "color": PAPER}},
        "customdata": [_point_hover(point)], "hovertemplate": "%{customdata}<extra></extra>",
        "cliponaxis": False,
    }  # fmt: skip


def breakdown_sketch(uncut: CutPoint, here: CutPoint) -> Sketch:
    """Where the time goes, uncut and cut: groups of operators stacked, small ones as one."""
    points = [("uncut", uncut), ("this chip", here)]
    grouped = [(name, _seconds(p)) for name, p in points if p.estimate is not None]
    total = max(sum(times.values()) for _, times in grouped)
    known = in_order({group for _, times in grouped for group in times})
    small = [g for g in known if all(t.get(g, 0.0) < SMALL * total for _, t in grouped)]
    small = small if len(small) > 1 else []
    data = [
        _group_bars([g], grouped, group_name(g), group_colour(g))
        for g in known
        if g not in small
    ]
    if small:
        data.append(_group_bars(small, grouped, f"{len(small)} others", MUTED))
    return sketch(
        data,
        _most_changed(uncut, here),
        "time of the phase by group of operators",
        height=400,
        barmode="stack",
        xaxis=axis("Latency (ms)", rangemode="tozero", showgrid=True),
        yaxis={"autorange": "reversed", "showgrid": False},
        legend=legend_below(),
    )


def _seconds(point: CutPoint) -> dict[str, float]:
    return {group: content["latency_s"] for group, content in groups_of(point).items()}


def _group_bars(
    groups: Sequence[str],
    grouped: Sequence[tuple[str, dict[str, float]]],
    name: str,
    colour: str,
) -> dict[str, Any]:
    """One trace: some groups of both chips together."""
    times = [sum(of.get(group, 0.0) for group in groups) for _, of in grouped]
    listed = "" if len(groups) == 1 else f"<br>{', '.join(map(group_name, groups))}"
    hover = [
        f"<b>{name}</b>, {chip}<br>{seconds(time)}, {percent(time / sum(of.values()))}{listed}"
        for (chip, of), time in zip(grouped, times, strict=True)
    ]
    return _bar(name, colour, [chip for chip, _ in grouped], [1e3 * t for t in times], hover)


def _bar(
    name: str, colour: str, places: list[str], values: list[float], hover: list[str]
) -> dict[str, Any]:
    return {
        "type": "bar", "orientation": "h", "name": name, "y": places, "x": values,
        "marker": {"color": colour, "line": {"width": 0.5, "color": PAPER}},
        "customdata": hover, "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip


def _most_changed(uncut: CutPoint, here: CutPoint) -> str:
    a, b = groups_of(uncut), groups_of(here)
    if not b:
        return "Where the time goes on the uncut chip"
    added = {group: b[group]["latency_s"] - a[group]["latency_s"] for group in b}
    most = max(added, key=lambda group: abs(added[group]))
    if abs(added[most]) < 1e-3 * (here.latency_s or 1.0):
        most = max(b, key=lambda group: b[group]["latency_s"])
        share = b[most]["latency_s"] / (here.latency_s or 1.0)
        return f"{_upper(group_name(most))} takes most: {percent(share)} of the time"
    way = "loses" if added[most] > 0 else "gains"
    return f"{_upper(group_name(most))} {way} most: {seconds(abs(added[most]))}"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def stacks_sketch(
    names: Sequence[str],
    parts: Sequence[dict[str, float]],
    colours: dict[str, str],
    title: str,
    headline: str,
    subtitle: str,
) -> Sketch:
    """Stacked bars of several chips: dollars or watts by part."""
    known = [part for part in colours if any(part in of for of in parts)]
    known += sorted({part for of in parts for part in of} - set(known))
    unit = title[title.find("(") + 1 : -1]
    data = [
        _bar(
            part.replace("_", " "),
            colours.get(part, LINES[i % len(LINES)]),
            list(names),
            [of.get(part, 0.0) for of in parts],
            [
                f"<b>{part.replace('_', ' ')}</b>, {name}<br>{digits(of.get(part, 0.0))} {unit}"
                f" of {digits(sum(of.values()))}"
                for name, of in zip(names, parts, strict=True)
            ],
        )
        for i, part in enumerate(known)
    ]
    return sketch(
        data,
        headline,
        subtitle,
        height=150 + 44 * len(names),
        barmode="stack",
        xaxis=axis(title, rangemode="tozero", showgrid=True),
        yaxis={"autorange": "reversed", "showgrid": False},
        legend=legend_below(),
    )
