"""Roofline: operators of both phases under the roofs of one chip, or of two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dash import Dash, Input, Output, html

from chipsim.arch_configs import names
from chipsim.errors import ChipsimError
from chipsim.present.command import command
from chipsim.present.dashboard import asking, live
from chipsim.present.dashboard.parts import (
    card,
    card_outputs,
    choose,
    filled,
    labelled,
    listing,
    nothing,
    number,
    remarks,
)
from chipsim.present.dashboard.state import Choice, Fields, Number, query_of
from chipsim.present.provenance import IDEAL, phase_text
from chipsim.present.quantities import digits, format_si, percent, seconds
from chipsim.present.roofline import Side, drawn, roofline_figure

PATH, NAME = "/roofline", "Roofline"

WITHOUT = ("phase", "batch", "length", "prices")

FIELDS: Fields = {
    **{name: field for name, field in asking.FIELDS.items() if name not in WITHOUT},
    "prefill_batch": Number(2, 1, 100_000, whole=True),
    "prompt": Number(1024, 1, 10_000_000, whole=True),
    "decode_batch": Number(64, 1, 100_000, whole=True),
    "context": Number(1024, 1, 10_000_000, whole=True),
    "beside": Choice("", lambda: ("", *names("chips"))),
}

SIZES = ("prefill_batch", "prompt", "decode_batch", "context")

CARDS = {"prefill": "roofline-prefill", "decode": "roofline-decode"}


def layout(state: Mapping[str, Any]) -> list[Any]:
    """The page in a state."""
    chips = [{"label": name or "none", "value": name} for name in ("", *names("chips"))]
    sizes = [
        labelled(name.replace("_", ", "), number(f"roofline-{name}", state[name], 1, 10_000_000))
        for name in SIZES
    ]
    return [
        html.Aside(
            [
                asking.controls("roofline", state, WITHOUT),
                html.Div(sizes, className="controls"),
                labelled("chip beside it", choose("roofline-beside", state["beside"], chips)),  # type: ignore[arg-type]  # dash takes both
            ]
        ),
        html.Div(
            [
                html.Div(id="roofline-remarks"),
                html.Div([card(name) for name in CARDS.values()], className="cards"),
                html.Details(
                    [html.Summary("Operators as a table"), html.Div(id="roofline-table")]
                ),
            ]
        ),
    ]


def register(app: Dash) -> None:
    """The page's callbacks."""

    @app.callback(
        output={
            "cards": [card_outputs(name) for name in CARDS.values()],
            "table": Output("roofline-table", "children"),
            "remarks": Output("roofline-remarks", "children"),
        },
        inputs={
            "asked": asking.inputs("roofline", WITHOUT),
            "sizes": {name: Input(f"roofline-{name}", "value") for name in SIZES},
            "beside": Input("roofline-beside", "value"),
            "theme": Input("theme", "data"),
        },
    )
    def draw(
        asked: dict[str, Any], sizes: dict[str, Any], beside: str, theme: str | None
    ) -> dict[str, Any]:
        del theme
        return answer(asked, sizes, beside or "")


def answer(asked: Mapping[str, Any], sizes: Mapping[str, Any], beside: str) -> dict[str, Any]:
    """Everything that the page shows."""
    sizes = {name: sizes.get(name) or FIELDS[name].default for name in SIZES}
    link = PATH + query_of(FIELDS, {**asked, **sizes, "beside": beside})
    cards, rows, told = [], [], []
    for phase, name in CARDS.items():
        length = "prompt" if phase == "prefill" else "context"
        question = {**asked, "phase": phase, "batch": sizes[f"{phase}_batch"]}
        try:
            ask = asking.asked(question | {"length": sizes[length]})
            sides, lacking = _sides(ask, beside)
        except ChipsimError as error:
            cards.append(nothing(f"{phase.capitalize()}: {error}", link))
            continue
        told += lacking
        about = f"{ask.model}, {phase_text(ask.as_phase())}, {ask.plan or 'one chip'}"
        cards.append(filled(roofline_figure(sides, about), _command(ask), link))
        rows += [row for side in sides for row in _rows(phase, side)]
        if any(side.estimate.execution == "ideal" for side in sides):
            told.append(IDEAL)
    head = ("phase", "operator", "chip", "time", "share", "FLOP/B", "FLOP/s", "bound")
    return {
        "cards": cards,
        "table": listing([head, *rows]) if rows else [],
        "remarks": remarks(dict.fromkeys(told)),
    }


def _sides(ask: live.Asked, beside: str) -> tuple[list[Side], list[str]]:
    """The chip, the one beside it where it can run the phase, and why it cannot."""
    sides, lacking = [_side(ask)], []
    if beside:
        try:
            sides.append(_side(replace(ask, chip=beside, execution="")))
        except ChipsimError as error:
            lacking.append(f"{ask.phase.capitalize()}: {error}")
    return sides, lacking


def _side(ask: live.Asked) -> Side:
    found, setup = live.answer(ask), live.setup_of(ask)
    if found.estimate is None:
        raise ChipsimError(f"{ask.model} on {ask.chip}: {found.reason}")
    return Side(ask.chip, setup.chip, found.estimate, setup.precision.activations)


def _command(ask: live.Asked) -> str:
    length = {"prefill": "prompt", "decode": "context"}[ask.phase]
    options = {
        "chip": ask.chip,
        "model": ask.model,
        "batch": ask.batch,
        length: ask.length,
        "plan": ask.plan or None,
        "precision": ask.precision or None,
        "execution": ask.execution or None,
        "json": True,
    }
    return command(f"estimate {ask.phase}", **options)


def _rows(phase: str, side: Side) -> list[tuple[str, ...]]:
    total = side.estimate.latency_s
    return [
        (
            phase,
            f"{row.name} × {row.count}",
            side.name,
            seconds(row.latency_s),
            percent(row.latency_s / total),
            digits(row.estimate.flops / row.estimate.memory_bytes),
            format_si(row.estimate.flops / row.estimate.latency_s, "FLOP/s"),
            row.estimate.bound,
        )
        for row in sorted(drawn(side.estimate), key=lambda row: -row.latency_s)
    ]
