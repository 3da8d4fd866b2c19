"""Chip: its floor plan, what it costs and draws; any field changed; another chip beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import yaml
from dash import ALL, Dash, Input, Output, State, ctx, dcc, html

from chipsim.arch_configs import load, names
from chipsim.arch_configs.notes import notes
from chipsim.chip import Chip
from chipsim.errors import ChipsimError
from chipsim.explore.setup import resolve
from chipsim.ops.phase import Phase
from chipsim.present.command import command
from chipsim.present.dashboard import live
from chipsim.present.dashboard.edits import (
    TOLD,
    edited,
    edits_text,
    leaves,
    parse_edits,
)
from chipsim.present.dashboard.parts import (
    card,
    card_outputs,
    choose,
    filled,
    labelled,
    listing,
    nothing,
    remarks,
    text,
)
from chipsim.present.dashboard.pictures import DOLLARS, WATTS, stacks_sketch
from chipsim.present.dashboard.state import Choice, Fields, Text, query_of
from chipsim.present.describe import half_precision_flops
from chipsim.present.floor import floor_figure
from chipsim.present.quantities import binary, digits, format_si, percent, seconds

PATH, NAME = "/chip", "Chip"

FIELDS: Fields = {
    "chip": Choice("spad-h100", lambda: names("chips")),
    "beside": Choice("spad-decode", lambda: ("", *names("chips"))),
    "prices": Choice("spad-2025", lambda: names("prices")),
    "model": Choice("bloom-176b", lambda: names("models")),
    "plan": Text("tp=8"),
    "set": Text("", most=4000),
}

CARDS = ("chip-floor", "chip-floor-beside", "chip-cost", "chip-power")

PHASES = (Phase.prefill(2, 1024), Phase.decode(64, 1024))
"""What chips are compared at."""


def layout(state: Mapping[str, Any]) -> list[Any]:
    """The page in a state."""
    chips = names("chips")
    return [
        html.Aside(
            [
                html.Div(
                    [
                        labelled("chip", choose("chip-chip", state["chip"], chips)),
                        labelled(
                            "beside it",
                            choose("chip-beside", state["beside"], ("", *chips), "none"),
                        ),
                        labelled(
                            "prices", choose("chip-prices", state["prices"], names("prices"))
                        ),
                        labelled(
                            "model", choose("chip-model", state["model"], names("models"))
                        ),
                        labelled("plan", text("chip-plan", state["plan"], "tp=1")),
                    ],
                    className="controls",
                ),
                html.Details(
                    [
                        html.Summary("Edit any field"),
                        html.P(
                            "Values as in a file: 2 TB/s, 66, 128 KiB, null.", className="label"
                        ),
                        html.Div(
                            fields(state["chip"], parse_edits(state["set"])), id="chip-fields"
                        ),
                    ],
                    open=True,
                ),
                html.Div(
                    [
                        html.Button("As it was", id="chip-reset", n_clicks=0),
                        html.Button("Download YAML", id="chip-save", n_clicks=0),
                    ],
                    className="buttons",
                ),
                dcc.Download(id="chip-file"),
                dcc.Store(id="chip-shown", data=state["chip"]),
            ]
        ),
        html.Div(
            [
                html.Div(id="chip-remarks"),
                html.Div([card(name) for name in CARDS], className="cards"),
                html.Section(
                    [html.H2("Side by side"), html.Div(id="chip-table")], className="card"
                ),
            ]
        ),
    ]


def fields(name: str, edits: Mapping[str, str]) -> list[html.Details]:
    """An input for every field of a chip's file, its note as a hint."""
    data, path = load("chips", name)
    told = notes(path)
    groups: dict[str, list[tuple[str, str]]] = {}
    for where, value in leaves(data):
        if where not in (*TOLD, "name"):
            groups.setdefault(where.split(".")[0] if "." in where else "chip", []).append(
                (where, value)
            )
    return [
        html.Details(
            [
                html.Summary(group),
                *(
                    html.Label(
                        [
                            html.Span(
                                where.removeprefix(f"{group}."),
                                title=told.get(where), className="label",
                            ),
                            dcc.Input(
                                id={"type": "chip-field", "path": where},
                                value=edits.get(where, value), type="text", debounce=True,
                                autoComplete="off", spellCheck=False,
                            ),
                        ],
                        className="field",
                    )
                    for where, value in items
                ),
            ],
            open=group == "chip" or any(where in edits for where, _ in items),
        )
        for group, items in groups.items()
    ]  # fmt: skip


def register(app: Dash) -> None:
    """The page's callbacks."""

    @app.callback(
        Output("chip-fields", "children"),
        Output("chip-shown", "data"),
        Input("chip-chip", "value"),
        Input("chip-reset", "n_clicks"),
        State("chip-shown", "data"),
        prevent_initial_call=True,
    )
    def other(name: str, clicks: int, shown: str) -> tuple[Any, str]:
        del clicks, shown
        return fields(name, {}), name

    @app.callback(
        output={
            "cards": [card_outputs(name) for name in CARDS],
            "table": Output("chip-table", "children"),
            "remarks": Output("chip-remarks", "children"),
        },
        inputs={
            "chosen": {
                name: Input(f"chip-{name}", "value")
                for name in ("beside", "prices", "model", "plan")
            },
            "name": Input("chip-shown", "data"),
            "values": Input({"type": "chip-field", "path": ALL}, "value"),
            "theme": Input("theme", "data"),
            "paths": State({"type": "chip-field", "path": ALL}, "id"),
        },
    )
    def draw(
        chosen: dict[str, str], name: str, values: list[str], theme: str | None,
        paths: list[dict[str, str]],
    ) -> dict[str, Any]:  # fmt: skip
        del theme
        return answer(name, _changed(name, paths, values), chosen)

    @app.callback(
        Output("chip-file", "data"),
        Input("chip-save", "n_clicks"),
        State("chip-shown", "data"),
        State({"type": "chip-field", "path": ALL}, "value"),
        State({"type": "chip-field", "path": ALL}, "id"),
        prevent_initial_call=True,
    )
    def save(
        clicks: int, name: str, values: list[str], paths: list[dict[str, str]]
    ) -> dict[str, Any] | None:
        if not clicks or ctx.triggered_id != "chip-save":
            return None
        chip, _, data = edited(name, _changed(name, paths, values))
        content = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
        return {"content": content, "filename": f"{chip.name}.yaml", "type": "text/yaml"}


def _changed(name: str, paths: list[dict[str, str]], values: list[Any]) -> dict[str, str]:
    """Fields that differ from the file."""
    original = dict(leaves(load("chips", name)[0]))
    typed = {
        place["path"]: str(value or "").strip()
        for place, value in zip(paths, values, strict=True)
    }
    return {
        where: value
        for where, value in typed.items()
        if value != original.get(where) and where in original and value
    }


def answer(name: str, edits: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, Any]:
    """Everything that the page shows."""
    state = {**chosen, "chip": name, "set": edits_text(edits)}
    link = PATH + query_of(FIELDS, state)
    try:
        chip, base, _ = edited(name, edits)
        other = Chip.load(chosen["beside"]) if chosen.get("beside") else None
    except ChipsimError as error:
        return {
            "cards": [nothing(str(error) if i == 0 else "", link) for i in range(len(CARDS))],
            "table": [],
            "remarks": remarks([str(error)]),
        }
    chips = [(chip, base), *([(other, None)] if other else [])]
    told = _edit_remarks(base, edits)
    return {
        "cards": _cards(chips, chosen["prices"], link, edits),
        "table": _table(chips, chosen),
        "remarks": remarks(told),
    }


def _edit_remarks(base: Chip | None, edits: Mapping[str, str]) -> list[str]:
    if base is None:
        return []
    stated = {"die_area": base.die_area, "tdp": base.tdp}
    gone = [where for where, value in stated.items() if value and where not in edits]
    if not gone:
        return []
    told = " and ".join(gone)
    return [f"{told} of {base.name} no longer hold: both scale with what the edit changes"]


def _cards(
    chips: list[tuple[Chip, Chip | None]],
    prices: str,
    link: str,
    edits: Mapping[str, str],
) -> list[Any]:
    commands = [_command(chip, base, prices, edits) for chip, base in chips]
    floors = [
        _floor(chip, base, told, link)
        for (chip, base), told in zip(chips, commands, strict=True)
    ]
    if len(floors) == 1:
        floors.append(nothing("No chip beside it", link))
    shown = [chip.name for chip, _ in chips]
    usd = [live.cost_parts(chip, prices, base) for chip, base in chips]
    w = [live.power_parts(chip, base) for chip, base in chips]
    both = "; ".join(commands)
    return [
        *floors,
        _stacks(shown, usd, DOLLARS, "Cost of one chip (USD)", f"prices {prices}", both, link),
        _stacks(
            shown, w, WATTS, "TDP of one chip (W)", "at full load, supply included", both, link
        ),
    ]


def _command(chip: Chip, base: Chip | None, prices: str, edits: Mapping[str, str]) -> str:
    file = f"{chip.name}.yaml" if edits and chip.name not in names("chips") else chip.name
    return command(f"cost {file}", prices=prices, base=base.name if base else None, json=True)


def _floor(chip: Chip, base: Chip | None, told: str, link: str) -> list[Any]:
    try:
        return filled(floor_figure(chip, base), told, link)
    except ChipsimError as error:
        return nothing(str(error), link)


def _stacks(
    shown: list[str],
    parts: list[tuple[dict[str, float], str]],
    colours: dict[str, str],
    title: str,
    under: str,
    told: str,
    link: str,
) -> list[Any]:
    totals = [sum(of.values()) for of, _ in parts]
    why = " · ".join(f"{n}: {text}" for n, (_, text) in zip(shown, parts, strict=True) if text)
    subtitle = f"{under} · {why}" if why else under
    dollars = "USD" in title
    amounts = [f"${t:,.0f}" if dollars else f"{t:,.0f} W" for t in totals]
    verb = "costs" if dollars else "draws"
    if not totals[0]:
        headline = f"What {shown[0]} {verb} is not known"
    elif len(totals) > 1 and totals[1]:
        ratio = totals[0] / totals[1]
        way = "less" if ratio < 1 else "more"
        headline = (
            f"{shown[0]} {verb} {amounts[0]}, {percent(abs(1 - ratio))} {way} than {shown[1]}"
        )
    else:
        headline = f"{shown[0]} {verb} {amounts[0]}"
    figure = stacks_sketch(shown, [of for of, _ in parts], colours, title, headline, subtitle)
    return filled(figure, told, link)


def _table(chips: list[tuple[Chip, Chip | None]], chosen: Mapping[str, str]) -> html.Div:
    head = ["", *(chip.name for chip, _ in chips)]
    return listing([head, *_facts([chip for chip, _ in chips]), *_speeds(chips, chosen)])


def _facts(chips: list[Chip]) -> list[list[str]]:
    facts: dict[str, Callable[[Chip], str]] = {
        "process": lambda c: c.process or "–",
        "cores": lambda c: str(c.cores),
        "matrix peak": _matrix_peak,
        "vector peak, fp32": lambda c: format_si(c.vector_flops, "FLOP/s"),
        "memory": lambda c: f"{c.memory.technology}, {binary(c.memory.capacity)}",
        "memory bandwidth": lambda c: format_si(c.memory.bandwidth, "B/s"),
        "ridge": lambda c: f"{digits(half_precision_flops(c)[1] / c.memory.bandwidth)} FLOP/B",
        "L2": lambda c: binary(c.l2.capacity),
        "SRAM of all cores": lambda c: binary(c.cores * c.core.sram),
        "links, one direction": lambda c: format_si(c.link_bandwidth, "B/s"),
        "execution block": lambda c: c.execution,
    }
    return [[name, *(say(chip) for chip in chips)] for name, say in facts.items()]


def _matrix_peak(chip: Chip) -> str:
    format_name, rate = half_precision_flops(chip)
    return f"{format_name} {format_si(rate, 'FLOP/s')}"


def _speeds(
    chips: list[tuple[Chip, Chip | None]], chosen: Mapping[str, str]
) -> list[list[str]]:
    """Latency of both phases of the chosen model."""
    rows = []
    for phase in PHASES:
        name = f"{phase.kind}, batch {phase.batch}, {phase.context} tokens"
        cells = [_speed(chip, phase, chosen["model"], chosen["plan"]) for chip, _ in chips]
        rows.append([f"{chosen['model']}, {name}", *cells])
    return rows


def _speed(chip: Chip, phase: Phase, model: str, plan: str) -> str:
    try:
        found = resolve(chip, model, phase, plan=plan or None)
        answer_ = found.answer(chip)
    except ChipsimError as error:
        return str(error)[:60]
    return seconds(answer_.estimate.latency_s) if answer_.estimate else answer_.reason
