"""A paper beside ours: tables for a terminal, and files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from chipsim.explore.store import write_whole
from chipsim.present.quantities import digits
from chipsim.present.tables import footer_line, table

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from chipsim.validation.reproduce import Figure, Reproduction

COLUMNS = ("figure", "kind", "published", "simulated", "difference", "unit", "tolerance",
           "within", "note")  # fmt: skip
WORDS = {True: "yes", False: "no", None: ""}


def cells(row: Figure) -> list[str]:
    """One figure in words."""
    return [
        row.figure,
        row.kind,
        digits(row.published),
        "none" if row.simulated is None else digits(row.simulated),
        "" if row.difference is None else signed(row.difference),
        "" if row.unit == "1" else row.unit,
        "" if row.tolerance is None else digits(row.tolerance),
        WORDS[row.within],
        row.note,
    ]


def signed(value: float) -> str:
    """A difference; what rounding leaves of nothing is 0."""
    return "0" if abs(value) < 1e-9 else f"{value:+.3g}"


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
        from chipsim.present.reproduction_report import report

        text = report(made)
    elif path.suffix == ".csv":
        text = made.frame().to_csv(index=False)
    else:
        text = json.dumps(made.record(), indent=1, allow_nan=False)
    write_whole(path, text.encode())
