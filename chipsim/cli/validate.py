"""``validate`` and ``calibrate``: estimates beside references, and blocks fitted to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipsim.cli.options import AsJson, ExecutionName, Out
from chipsim.cli.output import emit, remark, show
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.validation import ValidationResult
    from chipsim.validation.calibrate import CalibrationResult
    from chipsim.validation.engine_fit import EngineCalibration
    from chipsim.validation.silicon.calibration import SiliconCalibration

Data = Annotated[
    str | None,
    typer.Option("--data", metavar="FOLDER", help="Files of the same kind, judged instead."),
]
OneChip = Annotated[
    str | None, typer.Option("--chip", metavar="CHIP", help="One chip of measured operators.")
]
ENDINGS = (".html", ".png", ".svg", ".pdf", ".csv", ".json", ".md")


def validate(
    suite: Annotated[
        str,
        typer.Argument(
            metavar="SUITE",
            help="llmcompass, one of its parts, silicon, machines, splitwise, tables; or all.",
        ),
    ] = "llmcompass",
    data: Data = None,
    chip: OneChip = None,
    transfer: Annotated[
        bool,
        typer.Option("--transfer", help="silicon: factors of the chip before, no refit."),
    ] = False,
    folds: Annotated[
        int,
        typer.Option("--folds", metavar="N", help="silicon: fit again, judge held-out parts."),
    ] = 0,
    execution: ExecutionName = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Errors of estimates against reference figures."""
    from chipsim.validation import validate as judge

    if suite == "all":
        _validate_all(data, folds, out, as_json, narrowed=bool(chip or transfer or execution))
        return
    if out is not None and Path(out).suffix not in ENDINGS:
        raise ConfigError("--out", "", Path(out).name, f"a name ending in {', '.join(ENDINGS)}")
    result = judge(
        suite, data, execution, chip=chip, transfer=transfer, folds=folds, progress=remark
    )
    if out is not None:
        _write(result, out)
    if as_json:
        from chipsim.present.records import validation_record

        emit(validation_record(result, suite))
        return
    from chipsim.present.tables import (
        differences_table,
        footer_line,
        silicon_tables,
        validation_table,
    )

    frame = result.frame()
    names = result.points.drop_duplicates("chip")
    blocks = dict(zip(names["chip"], names["execution"], strict=True))
    show(*(silicon_tables(frame, blocks) if result.beside else [validation_table(frame)]))
    if suite == "splitwise":
        show(differences_table(result.differences()))
    show(*(footer_line(f"skipped {each.name}: {each.why}") for each in result.skipped))


def _validate_all(
    data: str | None, folds: int, out: str | None, as_json: bool, *, narrowed: bool
) -> None:
    """Every suite: its errors as a table, the page of them all, or the record behind it."""
    from chipsim.explore.store import write_whole
    from chipsim.present.tables import validation_table
    from chipsim.present.validation_page import validation_overview
    from chipsim.validation.overview import overview

    if narrowed:
        raise ConfigError("validate", "", "all", "no --chip, --transfer or --execution with it")
    if folds and data is None:
        raise ConfigError("--folds", "", folds, "with --data: the record has folds of its own")
    if out is not None and Path(out).suffix not in (".md", ".csv"):
        raise ConfigError("--out", "", Path(out).name, "a name ending in .md or .csv")
    found = overview(data, folds, remark)
    if out is not None:
        text = validation_overview(found) if Path(out).suffix == ".md" else found.record
        write_whole(Path(out), text.encode())
        remark(f"wrote {out}")
    if as_json:
        from chipsim.present.records import errors_record

        emit(errors_record(found.errors, "all"))
    else:
        show(validation_table(found.errors))


def _write(result: ValidationResult, out: str) -> None:
    if Path(out).suffix in (".csv", ".json"):
        from chipsim.explore.store import write_whole

        frame, path = result.frame(), Path(out)
        text = frame.to_csv(index=False)
        if path.suffix == ".json":
            text = frame.to_json(orient="records", double_precision=15)
        write_whole(path, text.encode())
    elif Path(out).suffix == ".md":
        from chipsim.explore.store import write_whole
        from chipsim.present.markdown import validation_page

        write_whole(Path(out), validation_page(result).encode())
    else:
        from chipsim.present.html import write_figure
        from chipsim.present.silicon import silicon_figure
        from chipsim.present.tables import validation_cells
        from chipsim.present.validation import validation_figure

        draw = silicon_figure if result.beside else validation_figure
        write_figure(draw(result), out, validation_cells(result.frame()))
    remark(f"wrote {out}")


def calibrate(
    block: Annotated[
        str | None, typer.Argument(metavar="[BLOCK]", help="A fitted block of the library.")
    ] = None,
    chip: Annotated[
        str | None,
        typer.Option("--chip", metavar="CHIP", help="Fit its graph kernels to --data."),
    ] = None,
    data: Data = None,
    folds: Annotated[
        int, typer.Option("--folds", metavar="N", help="With --chip: judge on held-out parts.")
    ] = 0,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Write the block as YAML.")
    ] = None,
    report: Annotated[
        str | None,
        typer.Option("--report", metavar="FILE", help="With --chip: a page of the residuals."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit an execution block again from its tables, or to measured operators of a chip."""
    result = _fitted(block, chip, data, folds, out)
    if report is not None:
        _report(result, report)
    if as_json:
        from chipsim.execution import Execution
        from chipsim.present.describe import engine_record, execution_record

        fitted = result.block
        record = (
            execution_record(fitted) if isinstance(fitted, Execution) else engine_record(fitted)
        )
        emit(record | {"report": result.text})
    else:
        typer.echo(result.text)
    if out is not None:
        remark(f"wrote {out}")


def _report(
    result: CalibrationResult | EngineCalibration | SiliconCalibration, path: str
) -> None:
    """Residuals of a chip's fit as a picture, with its text below."""
    from chipsim.present.html import write_figure
    from chipsim.present.silicon import silicon_figure
    from chipsim.present.tables import validation_cells
    from chipsim.validation.silicon.calibration import SiliconCalibration
    from chipsim.validation.silicon.points import BESIDE
    from chipsim.validation.suites import ValidationResult

    if not isinstance(result, SiliconCalibration):
        raise ConfigError("calibrate", "--report", path, "--chip CHIP with it")
    judged = ValidationResult(result.points(), [], BESIDE)
    cells = validation_cells(judged.frame())
    write_figure(silicon_figure(judged), path, cells, result.text.splitlines())
    remark(f"wrote {path}")


def _fitted(
    block: str | None, chip: str | None, data: str | None, folds: int, out: str | None
) -> CalibrationResult | EngineCalibration | SiliconCalibration:
    """The fit that was asked for: of a named block or engine, or of a chip."""
    from chipsim.arch_configs import names

    if (block is None) == (chip is None):
        given = "neither" if block is None else f"{block} and --chip {chip}"
        raise ConfigError("calibrate", "", given, "a BLOCK, or --chip CHIP --data FOLDER")
    if block is not None and block in names("engines"):
        from chipsim.validation.engine_fit import calibrate_engine

        return calibrate_engine(block, data, out)
    if block is not None:
        from chipsim.validation.calibrate import calibrate as fit_again

        return fit_again(block, data, out)
    from chipsim.validation.silicon.calibration import calibrate_chip

    if data is None:
        raise ConfigError("calibrate", "--data", None, "a folder of measured operators")
    return calibrate_chip(str(chip), data, out, folds=folds, progress=remark)
