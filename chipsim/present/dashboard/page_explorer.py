"""Explorer: any saved result as points and lines; a front, a filter, a row in full."""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dash import Dash, Input, Output, State, ctx, dcc, html, no_update

from chipsim.errors import ChipsimError
from chipsim.explore.filters import filtered
from chipsim.explore.opened import MOST_BYTES, cuts_again
from chipsim.explore.store import Stored
from chipsim.present.columns import column, first_axes, first_pair, named, numeric
from chipsim.present.command import command, cuts_command
from chipsim.present.dashboard.brush import brushed, kept_ranges
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
from chipsim.present.dashboard.shelf import Shelf, uploaded
from chipsim.present.dashboard.state import Fields, Text, query_of
from chipsim.present.quantities import grouped
from chipsim.present.rows import front_figure, parallel_figure, value_text

if TYPE_CHECKING:
    import pandas as pd

PATH, NAME = "/explorer", "Explorer"

EXAMPLE = "example: decode on 42 cuts of an H100"

FIELDS: Fields = {
    "result": Text(EXAMPLE),
    "x": Text(),
    "y": Text(),
    "more_x": Text(),
    "more_y": Text(),
    "colour": Text(),
    "axes": Text("", most=2000),
    "filter": Text("", most=2000),
    "row": Text(),
}

CHOSEN = ("x", "y", "more_x", "more_y", "colour")

CARDS = ("explorer-front", "explorer-lines")

WAYS = {"": "by its name", "least": "less is better", "most": "more is better"}



@functools.cache
def example() -> Stored:
    """What the page opens on: a grid of cuts."""
    from chipsim import Phase, __version__, cuts

    parts = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    run = cuts(
        "spad-h100", "bloom-176b", Phase.decode(64, 1024),
        {"cores": parts, "memory_bandwidth": parts[:6]}, plan="tp=8",
    )  # fmt: skip
    return Stored(Path("example"), run.frame(), run.configuration(), __version__, None)


@functools.cache
def example_command() -> str:
    """The command that writes the example."""
    return f"{cuts_command(cuts_again(example()))} --out example.parquet"


def layout(state: Mapping[str, Any]) -> list[Any]:
    """The page in a state."""
    given = [EXAMPLE, *_shelf().given]
    result = state["result"] if state["result"] in given else EXAMPLE
    ways = [{"label": told, "value": way} for way, told in WAYS.items()]
    return [
        html.Aside(
            [
                labelled("result", choose("explorer-result", result, given)),
                dcc.Upload(
                    html.Div(["Drop a result here, with its ", html.Code(".config.json")]),
                    id="explorer-upload", multiple=True, max_size=MOST_BYTES, className="drop",
                    accept=".parquet,.csv,.json",
                ),
                html.Div(
                    [
                        labelled("x", choose("explorer-x", state["x"], [])),
                        labelled("of x", choose("explorer-more_x", state["more_x"], ways)),  # type: ignore[arg-type]  # dash takes both
                        labelled("y", choose("explorer-y", state["y"], [])),
                        labelled("of y", choose("explorer-more_y", state["more_y"], ways)),  # type: ignore[arg-type]  # dash takes both
                        labelled("colour", choose("explorer-colour", state["colour"], [])),
                        labelled(
                            "filter",
                            text("explorer-filter", state["filter"], "cost_usd <= 900 and bound = memory"),
                            "Conditions on columns; = takes alternatives: memory|compute",
                        ),
                        labelled(
                            "axes",
                            dcc.Dropdown(id="explorer-axes", multi=True, value=_split(state["axes"])),
                        ),
                    ],
                    className="controls",
                ),
                html.Div(
                    [
                        html.Button("All rows", id="explorer-reset", n_clicks=0),
                        html.Button("Download CSV", id="explorer-save", n_clicks=0),
                    ],
                    className="buttons",
                ),
                dcc.Download(id="explorer-file"),
                dcc.Store(id="explorer-held", data={"name": result, "title": result}),
                dcc.Store(id="explorer-row", data=_whole(state["row"])),
                dcc.Store(id="explorer-asked", data=dict(state)),
            ]
        ),
        html.Div(
            [
                html.Div(id="explorer-remarks"),
                html.P(id="explorer-told", className="told"),
                html.Div(
                    [card(CARDS[0], wide=True), card(CARDS[1], wide=True, scrolls=True)],
                    className="cards",
                ),
                html.Section(id="explorer-detail", className="card"),
            ]
        ),
    ]  # fmt: skip


def register(app: Dash) -> None:
    """The page's callbacks."""
    _register_opening(app)
    _register_drawing(app)
    _register_row(app)


def _register_opening(app: Dash) -> None:
    @app.callback(
        Output("explorer-held", "data"),
        Output("explorer-remarks", "children"),
        Output("explorer-row", "data", allow_duplicate=True),
        Output("explorer-filter", "value", allow_duplicate=True),
        Input("explorer-result", "value"),
        Input("explorer-upload", "contents"),
        State("explorer-upload", "filename"),
        prevent_initial_call=True,
    )
    def take(result: str, contents: list[str] | None, files: list[str] | None) -> Any:
        if ctx.triggered_id == "explorer-result":
            return {"name": result, "title": result}, [], None, ""
        try:
            stored = uploaded(files or [], contents or [])
        except ChipsimError as error:
            return no_update, remarks([str(error)]), no_update, no_update
        held = {"name": _shelf().put(stored), "title": stored.path.name}
        return held, [], None, ""

    @app.callback(
        *[Output(f"explorer-{name}", "options") for name in ("x", "y", "colour", "axes")],
        *[Output(f"explorer-{name}", "value") for name in ("x", "y", "colour")],
        Output("explorer-axes", "value"),
        Input("explorer-held", "data"),
        State("explorer-asked", "data"),
    )
    def offer(held: dict[str, str], asked: dict[str, str]) -> Any:
        try:
            table = _result(held).table
        except ChipsimError:
            return (*[[]] * 4, "", "", "", [])
        numbers, texts = numeric(table), named(table)
        x, y = first_pair(table)
        wanted = {"x": asked.get("x"), "y": asked.get("y"), "colour": asked.get("colour")}
        axes = [key for key in _split(asked.get("axes")) if key in table.columns]
        colours = [{"label": "one", "value": ""}, *_options(texts)]
        return (
            _options(numbers),
            _options(numbers),
            colours,
            _options([*numbers, *texts]),
            wanted["x"] if wanted["x"] in numbers else x,
            wanted["y"] if wanted["y"] in numbers else y,
            wanted["colour"] if wanted["colour"] in texts else next(iter(texts), ""),
            axes or first_axes(table),
        )

    @app.callback(
        Output("explorer-filter", "value"),
        Output("explorer-axes", "value", allow_duplicate=True),
        Input("explorer-lines-graph", "restyleData"),
        Input("explorer-reset", "n_clicks"),
        State("explorer-held", "data"),
        State("explorer-axes", "value"),
        State("explorer-filter", "value"),
        prevent_initial_call=True,
    )
    def brush(
        event: list[Any] | None, clicks: int, held: dict[str, str], axes: list[str], told: str
    ) -> Any:
        del clicks
        if ctx.triggered_id == "explorer-reset":
            return "", axes
        if not event or not axes:
            return no_update, no_update
        try:
            return brushed(_result(held).table, axes, told or "", event[0])
        except (ChipsimError, ValueError, TypeError):
            return no_update, no_update


def _register_drawing(app: Dash) -> None:
    @app.callback(
        output={
            "cards": [card_outputs(name) for name in CARDS],
            "told": Output("explorer-told", "children"),
        },
        inputs={
            "held": Input("explorer-held", "data"),
            "chosen": {name: Input(f"explorer-{name}", "value") for name in CHOSEN},
            "axes": Input("explorer-axes", "value"),
            "kept": Input("explorer-filter", "value"),
            "row": Input("explorer-row", "data"),
            "theme": Input("theme", "data"),
        },
    )
    def draw(
        held: dict[str, str], chosen: dict[str, str], axes: list[str] | None,
        kept: str | None, row: int | None, theme: str | None,
    ) -> dict[str, Any]:  # fmt: skip
        del theme
        return answer(held, chosen, axes or [], kept or "", row)

    @app.callback(
        Output("explorer-file", "data"),
        Input("explorer-save", "n_clicks"),
        State("explorer-held", "data"),
        State("explorer-filter", "value"),
        prevent_initial_call=True,
    )
    def save(clicks: int, held: dict[str, str], kept: str | None) -> Any:
        if not clicks:
            return None
        try:
            rows = filtered(_result(held).table, kept or "")
        except ChipsimError:
            return no_update
        name = f"{Path(held['title']).stem[:60].replace(':', '')}-rows.csv"
        return {"content": rows.to_csv(index=False), "filename": name, "type": "text/csv"}


def _register_row(app: Dash) -> None:
    @app.callback(
        Output("explorer-row", "data"),
        Input("explorer-front-graph", "clickData"),
        prevent_initial_call=True,
    )
    def click(event: dict[str, Any] | None) -> Any:
        points = (event or {}).get("points") or []
        row = points[0].get("customdata") if points else None
        return int(row) if isinstance(row, int | float) else no_update

    @app.callback(
        Output("explorer-detail", "children"),
        Input("explorer-row", "data"),
        Input("explorer-held", "data"),
    )
    def detail(row: int | None, held: dict[str, str]) -> Any:
        try:
            return _detail(_result(held), row)
        except ChipsimError as error:
            return remarks([str(error)])


def answer(
    held: Mapping[str, str],
    chosen: Mapping[str, str],
    axes: list[str],
    kept: str,
    row: int | None,
) -> dict[str, Any]:
    """Everything that the page shows of a result."""
    state = {**chosen, "axes": ",".join(axes), "filter": kept, "row": "" if row is None else row}
    link = PATH + query_of(FIELDS, {**state, "result": held["name"]})
    if held["name"] != EXAMPLE and held["name"] not in _shelf().given:
        link = PATH  # an upload is its reader's alone: no link leads to it
    try:
        table = _result(held).table
        rows = filtered(table, kept)
    except ChipsimError as error:
        return {"cards": [nothing(str(error), link), nothing("", link)], "told": str(error)}
    told = f"{grouped(len(rows))} of {grouped(len(table))} rows of {held['title']}"
    if not chosen.get("x") or not chosen.get("y") or not len(rows):
        why = "No row holds the filter" if len(table) else "No rows"
        return {"cards": [nothing(why, link), nothing("", link)], "told": told}
    written = command(f"report {shlex.quote(held['title'])}", out="report.html")
    written = example_command() if held["name"] == EXAMPLE else written
    return {"cards": _cards(table, rows, chosen, axes, kept, row, written, link), "told": told}


def _cards(
    table: pd.DataFrame, rows: pd.DataFrame, chosen: Mapping[str, str], axes: list[str],
    kept: str, row: int | None, written: str, link: str,
) -> list[Any]:  # fmt: skip
    x, y = chosen["x"], chosen["y"]
    more = {
        key: chosen[way] == "most"
        for key, way in ((x, "more_x"), (y, "more_y"))
        if chosen.get(way)
    }
    front = front_figure(rows, x, y, more=more, colour=chosen.get("colour") or "", marked=row)
    if not axes:
        return [filled(front, written, link), nothing("Choose axes", link)]
    lines = parallel_figure(table, axes, kept=kept_ranges(table, axes, kept))
    lines["layout"]["uirevision"] = f"{','.join(axes)} {kept}"
    return [filled(front, written, link), filled(lines, written, link)]


def _detail(stored: Stored, row: int | None) -> list[Any]:
    """A row in full: its columns, and the configuration that it follows from."""
    if row is None or not 0 <= row < len(stored.table):
        return [html.H2("Click a point to see its row in full")]
    values = stored.table.iloc[row]
    lines = [
        (of.title, value_text(of, values[of.key]))
        for of in (column(str(key)) for key in stored.table.columns)
    ]
    told = dict(stored.configuration)
    points = told.pop("points", None)
    if isinstance(points, list) and row < len(points):
        told = {"point": points[row], **told}
    parts = [html.H2(f"Row {row}"), listing([("column", "value"), *lines])]
    parts += [_again(stored, row)] if told.get("kind") == "cuts" else []
    if told:
        written = json.dumps(told, indent=1, ensure_ascii=False, default=str)
        parts.append(html.Details([html.Summary("Full configuration"), html.Pre(written)]))
    else:
        parts.append(html.P("No configuration was saved beside these rows."))
    return parts


def _again(stored: Stored, row: int) -> html.P:
    """The row computed again by this version, beside the saved one."""
    point, saved = stored.rerun(row), stored.table.iloc[row]
    now, then = point.latency_s, float(saved["latency_s"])
    if now is None or not then > 0:
        return html.P(f"Computed again: {point.answer.reason}")
    same = "the same" if abs(now / then - 1.0) < 1e-9 else f"{now / then - 1.0:+.2%}"
    return html.P(f"Computed again: {value_text(column('latency_s'), now)}, {same}.")


def _result(held: Mapping[str, str]) -> Stored:
    return example() if held["name"] == EXAMPLE else _shelf().get(held["name"])


def _shelf() -> Shelf:
    from flask import current_app

    found: Shelf = current_app.extensions["shelf"]
    return found


def _options(names: list[str]) -> list[dict[str, str]]:
    return [{"label": column(name).title, "value": name} for name in names]


def _split(told: str | None) -> list[str]:
    return [key for key in (told or "").split(",") if key]


def _whole(told: str) -> int | None:
    return int(told) if told.isdecimal() else None
