"""What pages are made of: controls with labels, cards with a picture, tiles with a number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dash import Dash, Input, Output, dcc, html
from flask import has_request_context, request

from chipsim.present.html import CONFIG, together
from chipsim.present.sketch import Sketch, plain, sketch
from chipsim.present.theme import MUTED, darkened

THEME = "theme"
"""Name of the cookie, and of the store, that say whether the page is dark."""

CARD = ("title", "lead", "graph", "command", "link")
"""Parts of a card that a callback fills, in this order."""


def labelled(text: str, control: Any, hint: str = "") -> html.Label:
    """A control with its name."""
    told = [html.Span(text, className="label", title=hint or None)]
    return html.Label([*told, control], className="control")


def choose(
    name: str, value: str, names: Iterable[str] | Mapping[str, str], empty: str = ""
) -> dcc.Dropdown:
    """One of several names.

    Parameters
    ----------
    names : iterable of str, or mapping of str to str
        Names; or names and what is shown for them.
    empty : str
        Shown for the name that is empty.
    """
    shown = names if isinstance(names, Mapping) else {each: each or empty for each in names}
    options = [{"label": told, "value": each} for each, told in shown.items()]
    return dcc.Dropdown(id=name, value=value, options=options, clearable=False)


def clientside(app: Dash, code: str, output: Output, *inputs: Input) -> None:
    """A callback in the browser, of ``assets/chipsim.js``."""
    app.clientside_callback(code, output, *inputs)  # type: ignore[no-untyped-call]  # of dash


def number(name: str, value: float, low: float, high: float, step: Any = 1) -> dcc.Input:
    """A number that counts when it is left or entered."""
    return dcc.Input(
        id=name, value=value, type="number", min=low, max=high, step=step, debounce=True
    )


def text(name: str, value: str, placeholder: str = "") -> dcc.Input:
    """Text that counts when it is left or entered."""
    return dcc.Input(
        id=name, value=value, type="text", debounce=True, placeholder=placeholder,
        autoComplete="off", spellCheck=False,
    )  # fmt: skip


def card(name: str, *, wide: bool = False, scrolls: bool = False) -> html.Section:
    """A picture with its conclusion above, its command and its link below."""
    config: Any = CONFIG  # dash types it key by key
    graph = dcc.Graph(id=f"{name}-graph", config=config, figure=_empty(300))
    return html.Section(
        [
            html.H2(id=f"{name}-title"),
            html.P(id=f"{name}-lead"),
            html.Div(graph, className="scrolls" if scrolls else ""),
            html.Footer(
                [
                    html.Code(id=f"{name}-command", title="The same numbers, in a terminal"),
                    dcc.Clipboard(target_id=f"{name}-command", title="Copy the command"),
                    html.A("link", id=f"{name}-link", title="This page as it is now"),
                ]
            ),
        ],
        className="card wide" if wide else "card",
    )


def card_outputs(name: str) -> list[Output]:
    """What a callback fills of a card."""
    kinds = {"title": "children", "lead": "children", "graph": "figure", "command": "children"}
    return [Output(f"{name}-{part}", kinds.get(part, "href")) for part in CARD]


def filled(figure: Any, command: str, link: str) -> list[Any]:
    """A card's content, in the order of `card_outputs`."""
    drawn = plain(figure)
    meta = drawn["layout"].get("meta") or {}
    # plotly would draw `meta` nowhere, but would send it along.
    title, lead = (together(meta.get(name, "")) for name in ("headline", "subtitle"))
    return [title, lead, themed(drawn), command, link]


def nothing(why: str, link: str = "?") -> list[Any]:
    """A card that has nothing to show, and says why."""
    words = {
        "text": why, "showarrow": False, "x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper",
        "font": {"size": 14, "color": MUTED},
    }  # fmt: skip
    empty = _empty(160, why)
    empty["layout"]["annotations"] = [words] if len(why) < 60 else []
    return filled(empty, "", link)


def _empty(height: int, headline: str = "") -> Sketch:
    hidden = {"visible": False}
    return sketch([], headline, height=height, xaxis=hidden, yaxis=hidden)


def themed(figure: Sketch) -> Sketch:
    """A figure in the colours that the reader's page has."""
    dark = has_request_context() and request.cookies.get(THEME) == "dark"
    found: Sketch = darkened(figure) if dark else figure
    return found


def tiles(values: Sequence[tuple[str, str, str]]) -> list[html.Div]:
    """Name, number, remark: the few numbers that are read first."""
    return [
        html.Div([html.Span(name), html.Strong(value), html.Small(remark)], className="tile")
        for name, value, remark in values
    ]


def remarks(texts: Iterable[str]) -> list[html.P]:
    """Lines that something is not as asked."""
    return [html.P(each, className="remark", role="alert") for each in texts]


def listing(rows: Sequence[Sequence[Any]]) -> html.Div:
    """A table, its first row the names."""
    head, *body = rows
    return html.Div(
        html.Table(
            [
                html.Thead(html.Tr([html.Th(cell) for cell in head])),
                html.Tbody([html.Tr([html.Td(cell) for cell in row]) for row in body]),
            ]
        ),
        className="rows",
    )
