"""Any result as pictures: rows as points with their front, and as lines over many axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from chipsim.explore.front import pareto_front
from chipsim.present.columns import Column, column, numeric
from chipsim.present.quantities import digits, format_si, grouped
from chipsim.present.sketch import Sketch, axis, legend_above, packed, sketch
from chipsim.present.theme import BLUE, INK, LINES, MUTED, ORANGE, VERMILION

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

MOST_LINES = 4000
"""Lines of parallel coordinates; of more rows a regular sample is drawn, and said."""

MANY = 3000
"""Points from which on they are drawn as one picture instead of one by one."""

SCALE = [[0.0, ORANGE], [1.0, BLUE]]
"""Of lines: both ends stand out on a light and on a dark page."""


def value_text(of: Column, value: Any) -> str:
    """A cell with its unit."""
    if not isinstance(value, int | float | np.number) or isinstance(value, bool):
        return str(value)
    number = float(value)
    if not np.isfinite(number):
        return "–"
    if of.tickformat:
        return format_si(number, of.unit)
    return f"{digits(number) if number % 1 else grouped(int(number))} {of.unit}".strip()


def front_of(
    table: pd.DataFrame, x: str, y: str, more: Mapping[str, bool]
) -> npt.NDArray[np.intp]:
    """Places of the rows on the front of two columns."""
    a, b = (table[name].to_numpy(dtype=float) for name in (x, y))
    return pareto_front(a, b, most_x=more[x], most_y=more[y])


def front_figure(
    table: pd.DataFrame,
    x: str,
    y: str,
    *,
    more: Mapping[str, bool] | None = None,
    colour: str = "",
    marked: int | None = None,
) -> Sketch:
    """Draw rows as points of two columns, and the front of those that none beats in both.

    There is no front over a column that says of what a row is, such as its arrival.

    Parameters
    ----------
    table : DataFrame
        Its index is what a click on a point tells.
    more : mapping of str to bool, optional
        Of which of the two columns more is better; by their names unless given.
    colour : str
        A column of a few texts whose values get a colour each.
    marked : int, optional
        Index of a row to mark.
    """
    ax, ay = column(x), column(y)
    chosen = dict(more or {})
    better = {x: ax.more_is_better, y: ay.more_is_better} | chosen
    data, rows = _points(table, ax, ay, colour), f"{grouped(len(table))} rows"
    unranked = [of.inside for of in (ax, ay) if of.is_place and of.key not in chosen]
    if not unranked:
        places = front_of(table, x, y, better)
        data.append(_front(table, ax, ay, places))
        way = [f"{'most' if better[c.key] else 'least'} {c.inside}" for c in (ax, ay)]
        title, about = _front_headline(table, ax, ay, places), f"front: {' against '.join(way)}"
    else:
        title, about = f"{ay.name} over {ax.inside}", f"no front over {' and '.join(unranked)}"
    if marked is not None and marked in table.index:
        data.append(_mark(table, ax, ay, marked))
    return sketch(
        data,
        title,
        f"{rows} · {about}",
        height=480,
        xaxis=axis(ax.title, **ax.ticks),
        yaxis=axis(ay.title, **ay.ticks),
        legend=legend_above(),
    )


def _front_headline(
    table: pd.DataFrame, x: Column, y: Column, places: npt.NDArray[np.intp]
) -> str:
    if not len(places):
        return "No row has both of these columns"
    first, last = table.iloc[int(places[0])], table.iloc[int(places[-1])]
    if len(places) == 1:
        best = " and ".join(f"{c.inside} {value_text(c, first[c.key])}" for c in (x, y))
        return f"One row is best in both: {best}"
    a, b = (
        f"{y.inside} {value_text(y, row[y.key])} at {x.inside} {value_text(x, row[x.key])}"
        for row in (first, last)
    )
    return f"{grouped(len(places))} rows are on the front: from {a} to {b}"


def _points(table: pd.DataFrame, x: Column, y: Column, colour: str) -> list[dict[str, Any]]:
    if not colour or colour not in table.columns:
        return [_cloud(table, x, y, "rows", BLUE)]
    groups = table.groupby(colour, sort=True)
    return [
        _cloud(
            rows, x, y, f"{column(colour).name}: {str(name) or 'none'}", LINES[i % len(LINES)]
        )
        for i, (name, rows) in enumerate(groups)
    ]


def _cloud(table: pd.DataFrame, x: Column, y: Column, name: str, ink: str) -> dict[str, Any]:
    many = len(table) > MANY
    return {
        "type": "scattergl" if many else "scatter",
        "mode": "markers",
        "name": name,
        "x": packed(table[x.key]),
        "y": packed(table[y.key]),
        "customdata": table.index.tolist(),
        "marker": {"size": 4 if many else 7, "opacity": 0.35 if many else 0.7, "color": ink},
        "hovertemplate": f"row %{{customdata}}<br>{_hover(x, 'x')}<br>{_hover(y, 'y')}"
        "<extra></extra>",
    }


def _hover(of: Column, place: str) -> str:
    form = ":.3s" if of.tickformat else ":.4~g"
    return f"{of.name}: %{{{place}{form}}}{'' if of.tickformat else ' '}{of.unit}"


def _front(
    table: pd.DataFrame, x: Column, y: Column, places: npt.NDArray[np.intp]
) -> dict[str, Any]:
    rows = table.iloc[places]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "front",
        "x": rows[x.key].tolist(),
        "y": rows[y.key].tolist(),
        "customdata": rows.index.tolist(),
        "line": {"color": VERMILION, "width": 2, "shape": "linear"},
        "marker": {"size": 8, "color": VERMILION, "symbol": "diamond"},
        "hovertemplate": f"<b>on the front</b>, row %{{customdata}}<br>{_hover(x, 'x')}"
        f"<br>{_hover(y, 'y')}<extra></extra>",
    }


def _mark(table: pd.DataFrame, x: Column, y: Column, row: int) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"row {row}",
        "x": [table.loc[row, x.key]],
        "y": [table.loc[row, y.key]],
        "customdata": [row],
        "marker": {"size": 16, "symbol": "circle-open", "color": INK, "line": {"width": 3}},
        "hoverinfo": "skip",
    }


def parallel_figure(
    table: pd.DataFrame,
    axes: list[str],
    *,
    kept: Mapping[str, tuple[float, float]] | None = None,
    colour: str = "",
) -> Sketch:
    """Draw each row as a line over several columns.

    Parameters
    ----------
    kept : mapping of str to (float, float), optional
        Columns and the range that is kept of each: lines outside are grey.
    colour : str
        The column of numbers that colours the lines; the last axis of numbers unless given.
    """
    drawn = table.iloc[:: max(1, -(-len(table) // MOST_LINES))]
    numbers = [key for key in axes if key in numeric(table)]
    by = colour or (numbers[-1] if numbers else "")
    line: dict[str, Any] = {"color": BLUE}
    if by:
        line = {"color": packed(drawn[by].fillna(0.0)), "colorscale": SCALE}
    sample = "" if len(drawn) == len(table) else f", of which {grouped(len(drawn))} are drawn"
    told = f" · orange to blue: more {column(by).inside}" if by else ""
    return sketch(
        [
            {
                "type": "parcoords",
                "dimensions": [_dimension(drawn, key, kept or {}) for key in axes],
                "line": line,
                "unselected": {"line": {"color": MUTED, "opacity": 0.08}},
                "labelangle": -12,
                "labelfont": {"size": 12},
                "tickfont": {"size": 11},
                "rangefont": {"size": 1, "color": "rgba(0,0,0,0)"},
            }
        ],
        f"{grouped(len(table))} rows over {len(axes)} columns",
        f"a line is a row{sample}{told} · drag along an axis to keep a range",
        height=420,
        margin={"l": 70, "r": 50, "t": 80, "b": 24},
    )


def _dimension(
    table: pd.DataFrame, key: str, kept: Mapping[str, tuple[float, float]]
) -> dict[str, Any]:
    of, values = column(key), table[key]
    found: dict[str, Any] = {"label": of.title}
    if values.dtype == bool or values.dtype.kind not in "fiu":
        names = sorted(values.astype(str).unique())
        codes = values.astype(str).map({name: i for i, name in enumerate(names)})
        ticks = {"tickvals": list(range(len(names))), "ticktext": [n or "none" for n in names]}
        return found | {"values": packed(codes)} | ticks
    found |= {
        "values": packed(values.fillna(values.min())),
        "tickformat": of.tickformat or "~g",
    }
    if key in kept:
        found["constraintrange"] = list(kept[key])
    return found
