"""The app: a header, one page at a time, and what every page shares."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dash import ALL, Dash, Input, Output, State, dcc, html

from chipsim.present.dashboard import (
    page_chip,
    page_cluster,
    page_cuts,
    page_explorer,
    page_roofline,
    page_validation,
)
from chipsim.present.dashboard.guard import guard
from chipsim.present.dashboard.parts import remarks
from chipsim.present.dashboard.shelf import Shelf
from chipsim.present.dashboard.state import read_state
from chipsim.present.theme import DARK, FONT, GRID, INK, MUTED, PAPER

if TYPE_CHECKING:
    from chipsim.explore.store import Stored

PAGES: tuple[ModuleType, ...] = (
    page_cuts,
    page_roofline,
    page_chip,
    page_cluster,
    page_explorer,
    page_validation,
)
"""Modules with ``PATH, NAME, FIELDS, layout(state), register(app)``, in the order of the header."""

INDEX = """<!doctype html>
<html lang="en">
<head>
{%metas%}
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{%title%}</title>
{%favicon%}
{%css%}
<style>COLOURS</style>
<script>
  // Before anything is drawn: the reader's choice, else that of the system.
  const kept = document.cookie.match(/(?:^|; )theme=(dark|light)/);
  const theme = kept ? kept[1]
    : matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  document.cookie = `theme=${theme}; path=/; SameSite=Strict`;
  document.documentElement.dataset.theme = theme;
</script>
</head>
<body>
{%app_entry%}
<footer>
{%config%}
{%scripts%}
{%renderer%}
</footer>
</body>
</html>
"""

COLOURS = f"""
:root {{ --ink: {INK}; --muted: {MUTED}; --grid: {GRID}; --paper: {PAPER}; --font: {FONT}; }}
[data-theme=dark] {{ --ink: {DARK[INK]}; --muted: {DARK[MUTED]}; --grid: {DARK[GRID]};
  --paper: {DARK[PAPER]}; color-scheme: dark; }}
"""


def make_app(given: Mapping[str, Stored] | None = None, *, loopback: bool = True) -> Dash:
    """The whole app, to be served.

    Parameters
    ----------
    given : mapping of str to Stored
        Results that every reader may open.
    loopback : bool
        Answer to requests of this machine only.
    """
    app = Dash(
        "chipsim",
        assets_folder=str(Path(__file__).with_name("assets")),
        title="chipsim",
        update_title="",
        suppress_callback_exceptions=True,
        serve_locally=True,
        add_log_handler=False,
    )
    app.index_string = INDEX.replace("COLOURS", COLOURS)
    app.layout = _frame
    guard(app.server, loopback=loopback)
    app.server.extensions["shelf"] = Shelf(given or {})
    _register(app)
    for page in PAGES:
        page.register(app)
    return app


def _frame() -> html.Div:
    links = [
        dcc.Link(page.NAME, href=page.PATH, id={"type": "nav", "path": page.PATH})
        for page in PAGES
    ]
    return html.Div(
        [
            dcc.Location(id="url", refresh="callback-nav"),
            dcc.Store(id="theme"),
            dcc.Store(id="kept-link"),
            html.Header(
                [
                    dcc.Link("chipsim", href="/", className="brand"),
                    html.Nav(links),
                    html.Button("◐", id="theme-button", title="Light or dark", n_clicks=0),
                ]
            ),
            html.Main(id="page"),
        ]
    )


def _register(app: Dash) -> None:
    @app.callback(
        Output("page", "children"),
        Output("page", "className"),
        Output({"type": "nav", "path": ALL}, "className"),
        Input("url", "pathname"),
        State("url", "search"),
    )
    def show(pathname: str | None, search: str | None) -> tuple[Any, str, list[str]]:
        page = next((page for page in PAGES if page.PATH == pathname), None)
        current = ["current" if page and each.PATH == page.PATH else "" for each in PAGES]
        if page is None:
            return remarks([f"{(pathname or '')[:80]}: no such page"]), "", current
        state, told = read_state(page.FIELDS, search)
        name = page.NAME.lower()
        return [*remarks(told), *page.layout(state)], f"page page-{name}", current

    app.clientside_callback(
        "(clicks) => window.chipsim.theme(clicks)",
        Output("theme", "data"),
        Input("theme-button", "n_clicks"),
        prevent_initial_call=True,
    )
