"""Cuts: drag what a chip has, and see what a phase loses, costs and draws."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from dash import Dash, Input, Output, dcc, html

from chipsim.errors import ChipsimError
from chipsim.present.axes import AXES
from chipsim.present.command import cuts_command
from chipsim.present.cuts import reference_traces
from chipsim.present.dashboard import asking, live
from chipsim.present.dashboard.parts import (
    card,
    choose,
    clientside,
    filled,
    labelled,
    nothing,
    remarks,
    tiles,
)
from chipsim.present.dashboard.pictures import (
    DOLLARS,
    WATTS,
    breakdown_sketch,
    curve_sketch,
    stacks_sketch,
    where,
)
from chipsim.present.dashboard.state import Choice, Fields, Number, query_of
from chipsim.present.quantities import digits, percent, seconds
from chipsim.present.roofline import Side, roofline_figure
from chipsim.validation.spad import reference_points

PATH, NAME = "/", "Cuts"

SLIDERS = (
    "memory_bandwidth",
    "cores",
    "systolic_array",
    "l2",
    "memory_capacity",
    "vector_width",
    "sram",
    "clock",
    "link_bandwidth",
)
"""Resources that can be dragged; the first four are shown at once."""

SHOWN = 4

LABELS = {
    "systolic_array": "Systolic array",
    "vector_width": "Vector width",
    "link_bandwidth": "Link bandwidth",
}
"""Shorter names beside a slider."""

LOWEST, HIGHEST = 10, 150
"""Per cent of the uncut chip."""

CURVE = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5)
"""Points of a curve, parts of the uncut chip."""

FIELDS: Fields = {
    **asking.FIELDS,
    "axis": Choice("memory_bandwidth", lambda: SLIDERS),
    **{name: Number(100, LOWEST, HIGHEST) for name in SLIDERS},
}

CARDS = ("cuts-curve", "cuts-breakdown", "cuts-roofline", "cuts-cost", "cuts-power")


def layout(state: Mapping[str, Any]) -> list[Any]:
    """The page in a state."""
    sliders = [_slider(name, state[name]) for name in SLIDERS]
    axis = {name: AXES[name].name for name in SLIDERS}
    return [
        html.Aside(
            [
                html.Details(
                    [
                        html.Summary("Chip, model, phase"),
                        asking.controls("cuts", state),
                    ],
                    open=True,
                ),
                html.Div(sliders[:SHOWN], className="sliders"),
                html.Details([html.Summary("More to cut"), *sliders[SHOWN:]]),
                labelled("curve against", choose("cuts-axis", state["axis"], axis)),
                html.Button("Uncut", id="cuts-reset", n_clicks=0),
            ]
        ),
        html.Div(
            [
                *(dcc.Store(id=f"cuts-{name}") for name in ("ask", "live", "drawn")),
                html.Div(id="cuts-remarks"),
                html.Div(id="cuts-tiles", className="tiles"),
                html.Div(
                    [
                        *[card(name) for name in CARDS[:3]],
                        html.Div([card(name) for name in CARDS[3:]], className="column"),
                    ],
                    className="cards",
                ),
            ]
        ),
    ]


def _slider(name: str, value: float) -> html.Div:
    return html.Div(
        [
            html.Div(id=f"cuts-{name}-label", className="label"),
            dcc.Slider(
                id=f"cuts-{name}", min=LOWEST, max=HIGHEST, step=1, value=value,
                marks={50: "50 %", 100: "100 %", 150: "150 %"}, updatemode="drag",
                allow_direct_input=False,
            ),
        ],
        className="slider",
    )  # fmt: skip


def register(app: Dash) -> None:
    """The page's callbacks.

    controls -> one question at a time -> model -> the cards, the first one first
    (``assets/chipsim.js``)
    """
    names = [*asking.FIELDS, *SLIDERS, "axis", "theme"]
    values = [Input(f"cuts-{name}", "value") for name in names[:-1]]
    clientside(
        app,
        f"(...values) => window.chipsim.ask('cuts', {json.dumps(names)}, values)",
        Output("cuts-ask", "data"),
        *values,
        Input("theme", "data"),
    )
    clientside(
        app,
        "answer => window.chipsim.draw('cuts', answer)",
        Output("cuts-drawn", "data"),
        Input("cuts-live", "data"),
    )

    @app.callback(
        output={
            "live": Output("cuts-live", "data"),
            "tiles": Output("cuts-tiles", "children"),
            "remarks": Output("cuts-remarks", "children"),
            "axis": Output("cuts-axis", "value"),
            "labels": {name: Output(f"cuts-{name}-label", "children") for name in SLIDERS},
        },
        inputs={"question": Input("cuts-ask", "data")},
        prevent_initial_call=True,
    )
    def draw(question: dict[str, Any]) -> dict[str, Any]:
        told, moved = question["values"], question["moved"]
        found = answer(told, told, moved if moved in SLIDERS else told["axis"])
        cards = dict(zip(CARDS, found.pop("cards"), strict=True))
        return {"live": {"cards": cards, "echo": {"axis": found["axis"]}}, **found}

    @app.callback(
        [Output(f"cuts-{name}", "value") for name in SLIDERS],
        Input("cuts-reset", "n_clicks"),
        prevent_initial_call=True,
    )
    def reset(clicks: int) -> list[float]:
        del clicks
        return [100.0] * len(SLIDERS)


def answer(values: Mapping[str, Any], parts: Mapping[str, float], axis: str) -> dict[str, Any]:
    """Everything that the page shows."""
    link = PATH + query_of(FIELDS, {**values, **parts, "axis": axis})
    asked = asking.asked(values)
    cut = {name: (parts.get(name) or 100.0) / 100.0 for name in SLIDERS}
    try:
        found = _drawn(asked, cut, axis, link)
    except ChipsimError as error:
        found = {
            "cards": [nothing(str(error) if i == 0 else "", link) for i in range(len(CARDS))],
            "tiles": [],
            "remarks": remarks([str(error)]),
        }
    return found | {"axis": axis, "labels": _labels(asked, cut)}


def _drawn(asked: live.Asked, cut: dict[str, float], axis: str, link: str) -> dict[str, Any]:
    if axis not in _able(asked):
        raise ChipsimError(f"{asked.chip} has no {AXES[axis].inside}")
    kept = {name: part for name, part in cut.items() if part != 1.0 and name in _able(asked)}
    held = tuple(sorted((name, part) for name, part in kept.items() if name != axis))
    run = live.curve(asked, held, axis, CURVE)
    here = live.curve(asked, held, axis, (cut[axis],)).points[0]
    uncut = live.curve(asked, (), axis, (1.0,)).points[0]
    all_parts = tuple(sorted({**dict(held), axis: cut[axis]}.items()))
    known = _references(asked, axis) if not held else ()
    one = f"{cuts_command(live.curve(asked, held, axis, (cut[axis],)))} --json"
    pictures = [
        filled(curve_sketch(run, here, known), cuts_command(run), link),
        filled(breakdown_sketch(uncut, here), one, link),
        filled(_roofline(asked, all_parts, here), one, link),
        filled(_dollars(asked, all_parts), one, link),
        filled(_watts(asked, all_parts), one, link),
    ]
    unbuilt = (
        here.money.counterfactual and f"No such memory is sold: {here.money.counterfactual}"
    )
    told = [here.money.unpriced, unbuilt]
    return {
        "cards": pictures,
        "tiles": _tiles(here),
        "remarks": remarks([each for each in told if each]),
    }


def _roofline(asked: live.Asked, parts: live.Parts, here: Any) -> Any:
    setup = live.setup_of(asked)
    known = setup.precision.activations
    sides = (
        [Side("this chip", live.chip_of(asked, parts), here.estimate, known)]
        if here.estimate
        else []
    )
    uncut = live.answer(asked).estimate
    if uncut is not None and any(part != 1.0 for _, part in parts):
        sides.append(Side("the uncut chip", setup.chip, uncut, known))
    return (
        roofline_figure(sides)
        if sides
        else {"data": [], "layout": {"meta": {"headline": "This chip cannot run the phase"}}}
    )


def _dollars(asked: live.Asked, parts: live.Parts) -> Any:
    (before, _), (after, why) = live.dollars(asked), live.dollars(asked, parts)
    return _stacks(before, after, why, DOLLARS, "Cost of one chip (USD)", "costs", "$", asked)


def _watts(asked: live.Asked, parts: live.Parts) -> Any:
    (before, _), (after, why) = live.watts(asked), live.watts(asked, parts)
    return _stacks(before, after, why, WATTS, "TDP of one chip (W)", "draws", "W", asked)


def _stacks(
    before: dict[str, float],
    after: dict[str, float],
    why: str,
    colours: dict[str, str],
    title: str,
    verb: str,
    unit: str,
    asked: live.Asked,
) -> Any:
    """Two stacked bars, and in the headline what changes."""
    a, b = sum(before.values()), sum(after.values())
    amount = f"${b:,.0f}" if unit == "$" else f"{b:,.0f} {unit}"
    if not after:
        headline = f"What this chip {verb} is not known: {why}"
    elif not a or abs(b / a - 1.0) < 0.0005:
        headline = f"The chip {verb} {amount}"
    else:
        less = "less" if b < a else "more"
        headline = f"This chip {verb} {amount}, {percent(abs(1.0 - b / a))} {less}"
    under = f"prices {asked.prices}" if unit == "$" else "at full load, the supply included"
    return stacks_sketch(
        ("uncut", "this chip"), (before, after), colours, title, headline, under
    )


def _tiles(here: Any) -> Any:
    paid, answer_ = here.money, here.answer
    slower = digits(here.slowdown) if here.slowdown else "–"
    estimate = answer_.estimate
    joules = "–" if paid.energy_j_per_token is None else f"{digits(paid.energy_j_per_token)} J"
    return tiles(
        [
            ("latency", seconds(estimate.latency_s) if estimate else "–", "one step"),
            ("slowdown", f"{slower}×", where(here)),
            ("throughput", f"{answer_.tokens_per_s:,.0f}", "tokens/s, all chips of the plan"),
            ("mostly", estimate.bound if estimate else "–", "what it waits for"),
            ("cost", "–" if paid.cost_usd is None else f"${paid.cost_usd:,.0f}", "one chip"),
            ("TDP", "–" if paid.tdp_w is None else f"{paid.tdp_w:,.0f} W", "one chip"),
            ("energy", joules, "a token, all chips"),
        ]
    )


@functools.lru_cache(maxsize=64)
def _able(asked: live.Asked) -> tuple[str, ...]:
    """Resources that the chip has."""
    chip, found = live.setup_of(asked).chip, []
    for name in SLIDERS:
        try:
            chip.scaled(**{name: 0.5})
        except ChipsimError:
            continue
        found.append(name)
    return tuple(found)


def _labels(asked: live.Asked, cut: dict[str, float]) -> dict[str, str]:
    """What each slider leaves."""
    try:
        able = _able(asked)
    except ChipsimError:
        return {name: f"{AXES[name].name}: {percent(cut[name])}" for name in SLIDERS}
    return {
        name: _label(asked, name, cut[name]) if name in able else f"{AXES[name].name}: none"
        for name in SLIDERS
    }


@functools.lru_cache(maxsize=4096)
def _label(asked: live.Asked, name: str, part: float) -> str:
    from chipsim.explore.resources import resource_value

    value = resource_value(live.chip_of(asked, ((name, part),)), name)
    return f"{LABELS.get(name, AXES[name].name)}: {AXES[name].text(value)}, {100 * part:.0f} %"


@functools.lru_cache(maxsize=256)
def _references(asked: live.Asked, axis: str) -> tuple[dict[str, Any], ...]:
    """Published figures of this cut as traces, those of the nearest phase shown."""
    points = list(reference_points(asked.model, asked.chip, asked.as_phase(), axis))
    run = live.curve(asked, (), axis, (1.0,))
    traces = reference_traces(points, run, AXES[axis])  # type: ignore[arg-type]  # as `cuts` draws
    return tuple(trace.to_plotly_json() for trace in traces)
