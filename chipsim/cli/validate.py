"""``validate`` and ``calibrate``: estimates beside references, and blocks fitted again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipsim.cli.options import AsJson, ExecutionName, Out
from chipsim.cli.output import emit, remark, show
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.validation import ValidationResult

Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="FOLDER",
        help="Files with LLMCompass's, or Splitwise's, column names.",
    ),
]
ENDINGS = (".html", ".png", ".svg", ".pdf", ".csv", ".json")


def validate(
    suite: Annotated[
        str,
        typer.Argument(
            metavar="SUITE", help="llmcompass for all of chips, one suite, or splitwise."
        ),
    ] = "llmcompass",
    data: Data = None,
    execution: ExecutionName = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Errors of estimates against reference figures."""
    from chipsim.validation import validate as judge

    if out is not None and Path(out).suffix not in ENDINGS:
        raise ConfigError("--out", "", Path(out).name, f"a name ending in {', '.join(ENDINGS)}")
    result = judge(suite, data, execution)
    if out is not None:
        _write(result, out)
    if as_json:
        from chipsim.present.records import validation_record

        emit(validation_record(result, suite))
        return
    from chipsim.present.tables import differences_table, footer_line, validation_table

    show(validation_table(result.frame()))
    if suite == "splitwise":
        show(differences_table(result.differences()))
    show(*(footer_line(f"skipped {each.name}: {each.why}") for each in result.skipped))


def _write(result: ValidationResult, out: str) -> None:
    if Path(out).suffix in (".csv", ".json"):
        from chipsim.explore.store import write_whole

        frame, path = result.frame(), Path(out)
        text = frame.to_csv(index=False)
        if path.suffix == ".json":
            text = frame.to_json(orient="records", double_precision=15)
        write_whole(path, text.encode())
    else:
        from chipsim.present.html import write_figure
        from chipsim.present.tables import validation_cells
        from chipsim.present.validation import validation_figure

        write_figure(validation_figure(result), out, validation_cells(result.frame()))
    remark(f"wrote {out}")


def calibrate(
    block: Annotated[str, typer.Argument(metavar="BLOCK", help="An execution block.")],
    data: Data = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Write the block as YAML.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit an execution block again from its tables."""
    from chipsim.validation.calibrate import calibrate as fit_again

    result = fit_again(block, data, out)
    if as_json:
        from chipsim.present.describe import execution_record

        emit(execution_record(result.block) | {"report": result.text})
    else:
        typer.echo(result.text)
    if out is not None:
        remark(f"wrote {out}")
