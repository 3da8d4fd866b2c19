"""``reproduce``: a paper's figures beside ours."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from chipsim.cli.options import AsJson
from chipsim.cli.output import emit, remark, show
from chipsim.cli.provision import JournalOption, WorkersOption
from chipsim.errors import ConfigError

ENDINGS = (".html", ".csv", ".json")


def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="spad, splitwise or toy-queue.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Short traces, one seed, fewer rows.")
    ] = False,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="FOLDER", help="Reference files of its authors."),
    ] = None,
    workers: WorkersOption = 2,
    journal: JournalOption = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="A report: .html, .csv, .json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """A paper's figures beside ours, with what was assumed."""
    from chipsim.cluster.journal import Journal
    from chipsim.validation.reproduce import reproduce as make

    if out is not None and Path(out).suffix not in ENDINGS:
        raise ConfigError("--out", "", Path(out).name, f"a name ending in {', '.join(ENDINGS)}")
    made = make(
        name, quick=quick, data=data, workers=workers, journal=Journal(journal), told=_told()
    )
    if out is not None:
        from chipsim.present.reproduction import write_report

        write_report(made, Path(out))
        remark(f"wrote {out}")
    if as_json:
        emit(made.record())
    else:
        from chipsim.present.reproduction import reproduction_tables

        show(*reproduction_tables(made))


def _told() -> Callable[[str], None] | None:
    """Remarks on a terminal, nothing in a pipe."""
    return remark if sys.stderr.isatty() else None
