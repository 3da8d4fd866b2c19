"""Figures as files: one page that needs no network, or a picture."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipsim.errors import ChipsimError, ConfigError
from chipsim.explore.store import write_whole
from chipsim.present.theme import FONT, INK, MUTED, PAPER

if TYPE_CHECKING:
    import plotly.graph_objects as go

PICTURES = (".png", ".svg", ".pdf")
FIGURES = (".html", *PICTURES)
"""Endings that `write_figure` knows."""

STYLE = f"""
:root {{ color-scheme: light; }}
body {{ margin: 0 auto; max-width: 1100px; padding: 20px 16px 32px; color: {INK};
  background: {PAPER}; font: 15px/1.5 {FONT}; }}
h1 {{ font-size: clamp(19px, 3.2vw, 26px); line-height: 1.25; margin: 0 0 6px; }}
p {{ margin: 0 0 10px; color: {MUTED}; }}
details {{ margin-top: 14px; }} summary {{ cursor: pointer; }}
.rows {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: right; padding: 3px 10px 3px 0; white-space: nowrap; }}
th:first-child, td:first-child {{ text-align: left; }}
th {{ border-bottom: 1px solid {MUTED}; font-weight: 600; }}
"""

CONFIG = {"displaylogo": False, "responsive": True, "displayModeBar": False}

WIDTH = 1100
"""Pixels of a picture, before it is doubled for sharp print."""

Rows = Sequence[Sequence[str]]
"""A table of text, its first line the names of the columns."""


def page(figure: go.Figure, rows: Rows = (), notes: Sequence[str] = ()) -> str:
    """A figure as a whole HTML page, plotly.js inside.

    Parameters
    ----------
    figure : Figure
        Its ``layout.meta`` holds ``headline`` and ``subtitle``, which the page writes
        as text, so that they wrap on a narrow screen.
    rows : sequence of sequence of str
        The figures as a table that folds out.
    notes : sequence of str
        Lines below.
    """
    import plotly.graph_objects as go

    inner = go.Figure(figure)
    meta = inner.layout.meta or {}
    inner.update_layout(title=None)
    body = inner.to_html(
        full_html=False,
        include_plotlyjs=True,
        config=CONFIG,
        default_width="100%",
        div_id="figure",  # a random one would make every file differ
    )
    title, lead = (unbroken(meta.get(key, "")) for key in ("headline", "subtitle"))
    below = "".join(f"<p>{escape(note)}</p>\n" for note in notes)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n<p>{lead}</p>\n{body}\n{table_html(rows)}{below}</body>\n</html>\n"
    )


UNIT = re.compile(r"(?<=\d) (?=%|(?:[nµm]?s|k?W|m?J|mm²|[TG]B(?:/s)?)\b)")
"""The space between a number and its unit."""


def together(text: str) -> str:
    """A number keeps its unit when the line wraps."""
    return UNIT.sub("\N{NO-BREAK SPACE}", text)


def unbroken(text: str) -> str:
    """`together`, escaped."""
    return escape(together(text))


def table_html(rows: Rows, *, unfolded: bool = False) -> str:
    """A table that folds out, or stands open; nothing for no rows."""
    if not rows:
        return ""
    head, *body = (
        "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
        for row, tag in zip(rows, ["th", *["td"] * (len(rows) - 1)], strict=True)
    )
    lines = "".join(f"<tr>{line}</tr>\n" for line in body)
    is_open = " open" if unfolded else ""
    return (
        f"<details{is_open}><summary>The figures as a table</summary>\n"
        '<div class="rows"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{lines}</tbody></table></div></details>\n"
    )


def check_ending(path: str | Path) -> None:
    """Refuse a name whose ending is not one of `FIGURES` (`ConfigError`)."""
    name = Path(path)
    if name.suffix not in FIGURES:
        raise ConfigError("--out", "", name.name, f"a name ending in {', '.join(FIGURES)}")


def write_figure(
    figure: go.Figure, path: str | Path, rows: Rows = (), notes: Sequence[str] = ()
) -> Path:
    """Write a figure; the ending says as what (`FIGURES`).

    Raises
    ------
    ConfigError
        An unknown ending.
    ChipsimError
        A place that cannot be written, or a picture without kaleido or a browser.
    """
    path = Path(path)
    check_ending(path)
    if path.suffix == ".html":
        write_whole(path, page(figure, rows, notes).encode())
    else:
        write_whole(path, picture(figure, path.suffix.removeprefix(".")))
    return path


def picture(figure: go.Figure, kind: str) -> bytes:
    """A figure as PNG, SVG or PDF, rendered by kaleido in an installed browser.

    Raises
    ------
    ChipsimError
        Says what is missing.
    """
    try:
        import kaleido  # noqa: F401 - only whether it is there
    except ImportError:
        raise ChipsimError(
            f"{kind} pictures need kaleido: pip install 'chipsim[png]', or write .html"
        ) from None
    import plotly.graph_objects as go

    fixed, height = go.Figure(figure), _height(figure)
    fixed.update_layout(_picture_layout(figure, height))
    try:
        image: bytes = fixed.to_image(format=kind, width=WIDTH, height=height, scale=2)
    except Exception as error:
        if "chrome" not in str(error).lower():
            raise
        raise ChipsimError(
            f"{kind} pictures need Chromium or Chrome, which kaleido does not find: "
            "install one, or write .html"
        ) from None
    return image


def _room_above(figure: go.Figure) -> int:
    """Pixels for the title and a legend below it."""
    named = [trace for trace in figure.data if trace.showlegend is not False]
    entries = len([trace for trace in named if trace.type == "scatter"])
    return 70 + 22 * math.ceil(entries / 2)


def _height(figure: go.Figure) -> int:
    below: int = figure.layout.height or 600
    return below + _room_above(figure)


def _picture_layout(figure: go.Figure, height: int) -> dict[str, Any]:
    """On a page title and legend are apart; in a picture one is above the other."""
    title = {"x": 16 / WIDTH, "xref": "container", "y": 1 - 18 / height, "yanchor": "top"}
    size = 19 if len(figure.layout.title.text or "") < 80 else 16
    return {
        "margin": {"t": _room_above(figure) + 24, "l": 64, "r": 32},
        "title": title | {"yref": "container", "font": {"size": size}},
    }
