"""A saved result as a report: what it says, in pictures, with everything it follows from.

Stored -> kind -> sections -> one HTML file, or its first picture
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipsim.errors import ChipsimError, ConfigError
from chipsim.explore.opened import cuts_again
from chipsim.explore.setup import Setup
from chipsim.explore.store import write_whole
from chipsim.present.columns import column, first_axes, first_pair, named
from chipsim.present.html import FIGURES, picture
from chipsim.present.quantities import grouped, percent
from chipsim.present.rows import front_figure, parallel_figure, value_text
from chipsim.present.sketch import Sketch, graph, plain
from chipsim.present.standalone import MOST_BYTES, Section, standalone

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.explore.cuts import CutsResult
    from chipsim.explore.store import Stored

MOST_AGAIN = 400
"""Points of cuts that a report computes again, operators included."""

MOST_TABLE = 500
"""Rows that a report lists."""

MOST_TEXT = 200_000
"""Characters of a configuration."""

SAME = 1e-9
"""Relative difference up to which a figure that was computed again is the saved one."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a file says.

    Attributes
    ----------
    command : str
        The command line that gives the same numbers; empty where none is known.
    """

    title: str
    lead: str
    sections: tuple[Section, ...]
    command: str = ""

    def html(self) -> str:
        """The whole file."""
        return standalone(self.title, self.lead, self.sections, self.command)

    @property
    def figure(self) -> Sketch:
        """The first picture."""
        for section in self.sections:
            if section.figure is not None:
                return section.figure
        raise ChipsimError(f"{self.title}: nothing to draw; write .html")


def report(stored: Stored) -> Report:
    """Make a report of a saved result; of rows of an unknown kind a general one.

    Raises
    ------
    ConfigError
        A configuration that is not as it was saved.
    """
    kind = str(stored.configuration.get("kind", ""))
    made = KINDS.get(kind, _rows)(stored)
    return replace(made, sections=(*made.sections, *_source(stored)))


def write_report(found: Report, path: str | Path) -> Path:
    """Write a report (``.html``) or its first picture (``.png``, ``.svg``, ``.pdf``).

    Raises
    ------
    ConfigError
        An unknown ending.
    ChipsimError
        A place that cannot be written, a picture without kaleido or a browser, or a report
        that would be larger than `MOST_BYTES`.
    """
    path = Path(path)
    if path.suffix not in FIGURES:
        raise ConfigError("--out", "", path.name, f"a name ending in {', '.join(FIGURES)}")
    if path.suffix != ".html":
        write_whole(path, picture(graph(found.figure), path.suffix.removeprefix(".")))
        return path
    content = found.html().encode()
    if len(content) > MOST_BYTES:
        raise ChipsimError(f"{path}: would take {len(content) / 1e6:.1f} MB; the limit is 5")
    write_whole(path, content)
    return path


def _cuts(stored: Stored) -> Report:
    """Slowdown and operators, computed again; a large grid as its rows."""
    if len(stored.table) > MOST_AGAIN:
        return _rows(stored)
    from chipsim.present.command import cuts_command
    from chipsim.present.cost import money_line
    from chipsim.present.cuts import cuts_figure
    from chipsim.present.headline import headline, subtitle
    from chipsim.present.provenance import footer
    from chipsim.present.records import cuts_rows
    from chipsim.present.tables import cuts_cells
    from chipsim.validation.spad import reference_points

    run = cuts_again(stored)
    points = reference_points(run.model.name, run.chip.name, run.phase, run.resources[0])
    figure = plain(cuts_figure(run, list(points)))
    cells = cuts_cells(cuts_rows([run]), largest=run.setup.batch == "max")
    notes = [money_line(run), footer(run.chip.name, run.execution), _agreement(stored, run)]
    shown = Section("Slowdown, and where the time goes", "", figure, cells, notes)
    return Report(
        headline(run), subtitle(run), (shown, *_general(stored.table)), cuts_command(run)
    )


def _agreement(stored: Stored, run: CutsResult) -> str:
    """Whether the saved latencies are those of this version."""
    saved = stored.table["latency_s"].tolist()
    pairs = [
        (old, point.latency_s)
        for old, point in zip(saved, run.points, strict=True)
        if point.latency_s is not None
    ]
    most = max((abs(new / old - 1.0) for old, new in pairs if old > 0), default=0.0)
    if most <= SAME:
        return f"Computed again: the {len(run.points)} saved latencies to the last digit."
    return (
        f"Saved by chipsim {stored.version}; this version differs by up to {percent(most)}: "
        "the picture is this version's, the rows below are the saved ones."
    )


def _comparison(stored: Stored) -> Report:
    """The waterfall from one run to the other."""
    from chipsim.explore.compare import Comparison, ComparisonRow, compare
    from chipsim.explore.reasons import Side
    from chipsim.present.command import compare_command
    from chipsim.present.compare import compare_figure
    from chipsim.present.cost import compare_lines
    from chipsim.present.headline import compare_headline
    from chipsim.present.provenance import phase_text, plan_text
    from chipsim.present.tables import compare_cells

    told = stored.configuration
    where = stored.path.name
    setups = tuple(Setup.from_configuration(where, run) for run in told.get("runs", []))
    if setups:
        found = compare(*(setup.estimate() for setup in setups))
        paid = tuple(setup.money(setup.chip, setup.estimate()) for setup in setups)
        found = replace(found, setups=setups, money=paid)
        first = setups[0]
        about = f"{first.model.name} · {phase_text(first.phase)} · {plan_text(first.plan)}"
    else:
        rows = tuple(
            ComparisonRow(r["name"], r["group"], Side(r["latency_a_s"]), Side(r["latency_b_s"]))
            for r in stored.table.to_dict("records")
        )
        found, about = Comparison(str(told.get("a")), str(told.get("b")), rows, "operator"), ""
    figure = plain(compare_figure(found, about))
    shown = Section(
        "What each operator adds or saves", "", figure, compare_cells(found),
        compare_lines(found),
    )  # fmt: skip
    return Report(compare_headline(found), about, (shown,), compare_command(setups))


def _simulation(stored: Stored) -> Report:
    """What a run was like: how long requests waited, what it cost, request by request."""
    from chipsim.present.requests import each_request, run_command, run_title, waits

    table, told = stored.table, stored.configuration
    title, about = run_title(table, told)
    axes = _titled(
        parallel_figure(table, first_axes(table)), "All rows over several columns", cells(table)
    )
    sections = (*waits(table, told), each_request(table), axes)
    return Report(title, about, sections, run_command(told))


def _rows(stored: Stored) -> Report:
    """Rows of any kind."""
    table, name = stored.table, stored.path.name
    sections = _general(table)
    size = f"{grouped(len(table))} rows of {len(table.columns)} columns"
    if not sections:
        return Report(name, size, (Section("Rows", rows=cells(table)),))
    meta = next(s.figure["layout"]["meta"] for s in sections if s.figure is not None)
    return Report(meta["headline"], f"{name} · {size}", sections)


def _general(table: pd.DataFrame) -> tuple[Section, ...]:
    """Two columns against each other, many columns at once, and the rows."""
    x, y = first_pair(table)
    if not x:
        return ()
    colour = next(iter(named(table)), "")
    figure = front_figure(table, x, y, colour=colour)
    lines = parallel_figure(table, first_axes(table))
    return (
        _titled(figure, f"{column(y).name} against {column(x).name}"),
        _titled(lines, "All rows over several columns", cells(table)),
    )


def _titled(figure: Sketch, title: str, rows: list[list[str]] | None = None) -> Section:
    meta = figure["layout"]["meta"]
    lead = " · ".join(part for part in (meta["headline"], meta["subtitle"]) if part)
    notes = []
    if rows is not None and len(rows) - 1 == MOST_TABLE:
        notes = [f"The table lists the first {MOST_TABLE} rows."]
    return Section(title, lead, figure, rows or (), notes)


def cells(table: pd.DataFrame) -> list[list[str]]:
    """The first rows as text, their names with units first."""
    columns = [column(str(name)) for name in table.columns]
    shown = table.head(MOST_TABLE).to_dict("records")
    body = [[value_text(of, row[of.key]) for of in columns] for row in shown]
    return [[of.name for of in columns], *body]


def _source(stored: Stored) -> tuple[Section, ...]:
    """Where the rows come from."""
    made = f"chipsim {stored.version}" if stored.version else "an unknown version"
    seed = "" if stored.seed is None else f" · seed {stored.seed}"
    lead = f"{stored.path.name} · {made}{seed}"
    if not stored.configuration:
        return (Section("Source", f"{lead} · no configuration was saved beside it"),)
    text = json.dumps(stored.configuration, indent=1, ensure_ascii=False)
    if len(text) > MOST_TEXT:
        text = f"{text[:MOST_TEXT]}\n… {grouped(len(text) - MOST_TEXT)} characters more"
    return (Section("Full configuration", lead, text=text),)


KINDS: dict[str, Callable[[Stored], Report]] = {
    "cuts": _cuts,
    "comparison": _comparison,
    "simulation": _simulation,
}
"""What is known of a kind of result; of others, the rows alone."""


def report_record(stored: Stored, found: Report, path: Path) -> dict[str, Any]:
    """What was written, as one object; sections are ``rows``."""
    return {
        "result": stored.path.name,
        "kind": stored.configuration.get("kind"),
        "title": found.title,
        "command": found.command or None,
        "file": path.name,
        "file_bytes": path.stat().st_size,
        "rows": [
            {"title": section.title, "lead": section.lead, "drawn": section.figure is not None}
            for section in found.sections
        ],
    }
