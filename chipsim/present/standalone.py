"""One HTML file with several figures that needs nothing but itself.

Sections -> JSON of the figures + plotly.js, compressed + a dozen lines that draw them
"""

from __future__ import annotations

import base64
import functools
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from chipsim.present.html import CONFIG, Rows, table_html, unbroken
from chipsim.present.theme import DARK, FONT, GRID, INK, MUTED, PAPER

if TYPE_CHECKING:
    from chipsim.present.sketch import Sketch

MOST_BYTES = 5_000_000
"""Of a whole file."""

WIDE = 640
"""Pixels that a figure of many columns needs: narrower screens scroll it."""


@dataclass(frozen=True, slots=True)
class Section:
    """A figure, or none, with what is told and listed below it.

    Attributes
    ----------
    title, lead : str
        The conclusion, and what it holds for.
    rows : sequence of sequence of str
        A table that folds out, its names first.
    unfolded : bool
        Whether the table stands open.
    notes : sequence of str
        Lines below.
    text : str
        Text as it stands, that folds out.
    """

    title: str
    lead: str = ""
    figure: Sketch | None = None
    rows: Rows = ()
    notes: Sequence[str] = ()
    text: str = ""
    unfolded: bool = False


STYLE = f"""
:root {{ color-scheme: light dark; --ink: {INK}; --muted: {MUTED}; --paper: {PAPER};
  --grid: {GRID}; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: {DARK[INK]}; --muted: {DARK[MUTED]};
  --paper: {DARK[PAPER]}; --grid: {DARK[GRID]}; }} }}
body {{ margin: 0 auto; max-width: 1100px; padding: 20px 16px 40px; color: var(--ink);
  background: var(--paper); font: 15px/1.5 {FONT}; }}
h1 {{ font-size: clamp(20px, 3.4vw, 28px); line-height: 1.25; margin: 0 0 6px; }}
h2 {{ font-size: clamp(17px, 2.6vw, 21px); line-height: 1.3; margin: 34px 0 2px; }}
p {{ margin: 0 0 10px; color: var(--muted); }}
code, pre {{ font: 13px/1.45 ui-monospace, 'DejaVu Sans Mono', monospace; }}
code.command {{ display: block; white-space: pre-wrap; padding: 8px 10px;
  border: 1px solid var(--grid); border-radius: 6px; color: var(--ink); }}
.figure, .rows {{ overflow-x: auto; }}
.wide > div {{ min-width: {WIDE}px; }}
details {{ margin-top: 12px; }} summary {{ cursor: pointer; }}
table {{ border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: right; padding: 3px 10px 3px 0; white-space: nowrap; }}
th:first-child, td:first-child {{ text-align: left; }}
th {{ border-bottom: 1px solid var(--muted); font-weight: 600; }}
"""

SCRIPT = """
const read = id => document.getElementById(id).textContent;
const dark = matchMedia('(prefers-color-scheme: dark)');
const swap = JSON.parse(read('dark'));
const inked = value => typeof value === 'string' ? (swap[value] ?? value)
  : Array.isArray(value) ? value.map(inked)
  : value && typeof value === 'object'
    ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, inked(v)])) : value;
function draw() {
  for (const place of document.querySelectorAll('[data-figure]')) {
    const given = JSON.parse(read(place.dataset.figure));
    const figure = dark.matches ? inked(given) : given;
    Plotly.react(place, figure.data, figure.layout, JSON.parse(read('config')));
  }
}
(async () => {
  const bytes = Uint8Array.from(atob(read('plotly')), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  const code = document.createElement('script');
  code.textContent = await new Response(stream).text();
  document.head.append(code);
  draw();
  dark.addEventListener('change', draw);
})().catch(error => {
  for (const place of document.querySelectorAll('[data-figure]'))
    place.textContent = `No picture in this browser (${error}); the table has the figures.`;
});
"""


def standalone(title: str, lead: str, sections: Sequence[Section], command: str = "") -> str:
    """The file's text.

    Parameters
    ----------
    command : str
        The command line that gives the same numbers.
    """
    figures = [section.figure for section in sections if section.figure is not None]
    names = iter(f"figure-{i}" for i in range(len(figures)))
    body = "".join(_section(section, names) for section in sections)
    data = "".join(
        _data(f"figure-{i}", figure | {"layout": figure["layout"] | {"title": None}})
        for i, figure in enumerate(figures)
    )
    told = f'<code class="command">{escape(command)}</code>\n' if command else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{unbroken(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{unbroken(title)}</h1>\n<p>{unbroken(lead)}</p>\n{told}{body}"
        f"{data}{_data('dark', DARK)}{_data('config', CONFIG)}"
        f'<script type="text/plain" id="plotly">{_plotly()}</script>\n'
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _section(section: Section, names: Any) -> str:
    parts = [f"<h2>{unbroken(section.title)}</h2>\n"]
    parts += [f"<p>{unbroken(section.lead)}</p>\n"] if section.lead else []
    if section.figure is not None:
        kinds = {trace.get("type") for trace in section.figure["data"]}
        wide = " wide" if "parcoords" in kinds else ""
        parts.append(
            f'<div class="figure{wide}"><div data-figure="{next(names)}"></div></div>\n'
        )
    parts += [table_html(section.rows, unfolded=section.unfolded)]
    parts += [f"<p>{escape(note)}</p>\n" for note in section.notes]
    if section.text:
        told = f"<pre>{escape(section.text)}</pre>"
        parts.append(f"<details><summary>Show</summary>{told}</details>\n")
    return "".join(parts)


def _data(name: str, value: Any) -> str:
    # `</script>` inside text would end the element; JSON may write `<` as an escape.
    text = json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)
    escaped = text.replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{escaped}</script>\n'


def _finite(value: Any) -> Any:
    """NaN as null, arrays as lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if hasattr(value, "to_plotly_json"):
        return _finite(value.to_plotly_json())
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


@functools.cache
def _plotly() -> str:
    """plotly.js, compressed: as it is, it would take all of the file's room."""
    from plotly.offline import get_plotlyjs

    packed = gzip.compress(get_plotlyjs().encode(), mtime=0)
    return base64.b64encode(packed).decode()
