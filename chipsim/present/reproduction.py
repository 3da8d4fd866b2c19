"""A paper beside ours: tables for a terminal, and a report of one file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from plotly.subplots import make_subplots

from chipsim.explore.store import write_whole
from chipsim.present.html import page
from chipsim.present.quantities import digits
from chipsim.present.tables import footer_line, table
from chipsim.present.theme import BLUE, GREEN, MUTED, VERMILION, template

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go
    from rich.table import Table
    from rich.text import Text

    from chipsim.validation.reproduce import Figure, Reproduction

COLUMNS = ("figure", "kind", "published", "simulated", "unit", "tolerance", "within", "note")
WORDS = {True: "yes", False: "no", None: ""}


def cells(row: Figure) -> list[str]:
    """One figure in words."""
    return [
        row.figure,
        row.kind,
        digits(row.published),
        "none" if row.simulated is None else digits(row.simulated),
        "" if row.unit == "1" else row.unit,
        "" if row.tolerance is None else digits(row.tolerance),
        WORDS[row.within],
        row.note,
    ]


def headline(made: Reproduction) -> str:
    """How many of the judged figures agree."""
    judged = sum(row.within is not None for row in made.rows)
    return (
        f"{made.title}: {judged - len(made.missed)} of {judged} judged figures within tolerance"
    )


def reproduction_tables(made: Reproduction) -> Iterator[Table | Text]:
    """What a terminal shows."""
    yield footer_line(headline(made))
    yield table(COLUMNS, map(cells, made.rows), text_columns=2)
    for each in made.assumptions:
        yield footer_line(f"{each.origin}: {each.name} = {each.value}")
    for remark in made.remarks:
        yield footer_line(remark)
    yield footer_line(f"{made.wall_s:.1f} s")


def write_report(made: Reproduction, path: Path) -> None:
    """Write a report; the ending says as what."""
    if path.suffix == ".html":
        text = report(made)
    elif path.suffix == ".csv":
        text = made.frame().to_csv(index=False)
    else:
        text = json.dumps(made.record(), indent=1, allow_nan=False)
    write_whole(path, text.encode())


def report(made: Reproduction) -> str:
    """A page with the plots, the rows, what was assumed, and how it moves."""
    rows = [list(COLUMNS), *map(cells, made.rows)]
    notes = [f"{made.source}. {'Quick run. ' if made.quick else ''}{made.wall_s:.0f} s."]
    notes += [
        f"{each.origin}: {each.name} = {each.value}. {each.why}" for each in made.assumptions
    ]
    notes += [
        f"{each.assumption} = {each.value}: {each.figure} {each.base} to {each.changed}. "
        f"{each.note}"
        for each in made.sensitivity
    ]
    notes += made.remarks
    return page(figure(made), rows, notes)


def figure(made: Reproduction) -> go.Figure:
    """Difference of each judged row over its tolerance; and what the paper draws."""
    frames = [name for name in ("curves", "clusters") if name in made.curves]
    drawn = make_subplots(rows=1 + len(frames), cols=1, vertical_spacing=0.12)
    judged = [row for row in made.rows if row.within is not None and row.difference is not None]
    drawn.add_bar(
        x=[row.figure for row in judged],
        y=[(row.difference or 0.0) / (row.tolerance or 1.0) for row in judged],
        marker_color=[BLUE if row.within else VERMILION for row in judged],
        text=[row.note for row in judged],
        name="difference over tolerance",
        row=1,
        col=1,
    )
    for place, name in enumerate(frames, 2):
        _CURVES[name](drawn, made.curves[name], place)
    drawn.update_layout(
        template=template(),
        height=420 * (1 + len(frames)),
        meta={"headline": headline(made), "subtitle": made.source},
    )
    return drawn


def _curves(drawn: go.Figure, frame: pd.DataFrame, row: int) -> None:
    series = [name for name in frame.columns if name not in ("phase", "value")]
    for phase, group in frame.groupby("phase"):
        full = group.loc[group["published"] == 1.0, "value"].iloc[0]
        for name, colour in zip(series, (MUTED, BLUE, GREEN), strict=False):
            drawn.add_scatter(
                x=group["value"] / full, y=group[name], name=f"{phase}, {name}",
                line_color=colour, mode="markers" if name == "published" else "lines",
                row=row, col=1,
            )  # fmt: skip
    drawn.update_xaxes(title="bandwidth (prefill) or cores (decode) over the H100's", row=row)
    drawn.update_yaxes(title="slowdown", row=row)


def _clusters(drawn: go.Figure, frame: pd.DataFrame, row: int) -> None:
    held = frame[frame["holds"]]
    for (trace, system), group in held.groupby(["trace", "system"]):
        drawn.add_scatter(
            x=group["prefill"], y=group["decode"], mode="markers",
            name=f"{trace}, {system}", row=row, col=1,
        )  # fmt: skip
    drawn.update_xaxes(title="prefill machines of counts that hold, first seed", row=row)
    drawn.update_yaxes(title="decode machines", row=row)


_CURVES = {"curves": _curves, "clusters": _clusters}
