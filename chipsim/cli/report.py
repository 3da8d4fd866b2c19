"""``report``: a saved result as one file to send."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipsim.cli.options import AsJson
from chipsim.cli.output import emit, remark
from chipsim.errors import ConfigError

ENDINGS = (".html", ".png", ".svg", ".pdf")


def report(
    result: Annotated[
        str,
        typer.Argument(
            metavar="RESULT", help="A .parquet, .csv or .json file that a command wrote."
        ),
    ],
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="Write; .html, .png, .svg or .pdf.")
    ] = "report.html",
    as_json: AsJson = False,
) -> None:
    """One file that shows a saved result and needs no network."""
    if Path(out).suffix not in ENDINGS:
        raise ConfigError("--out", "", Path(out).name, f"a name ending in {', '.join(ENDINGS)}")
    from chipsim.explore.opened import open_result
    from chipsim.present.report import report as make
    from chipsim.present.report import report_record, write_report

    stored = open_result(result)
    found = make(stored)
    path = write_report(found, out)
    remark(f"wrote {out}")
    if as_json:
        emit(report_record(stored, found, path))
    else:
        typer.echo(found.title)
