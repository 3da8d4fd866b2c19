"""Validation: reference figures judged suite by suite.

cases (from the package's tables, or from a folder) -> points -> table of errors
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chipsim.errors import ChipsimError, ConfigError, InfeasibleError, UnknownNameError
from chipsim.execution import Execution
from chipsim.validation.cases import Judge, LayerCase, Point
from chipsim.validation.llmcompass import Case, Skipped, needed_by, reader_of
from chipsim.validation.machines import machine_points
from chipsim.validation.references import reference_cases
from chipsim.validation.silicon.calibration import check_folds
from chipsim.validation.silicon.suite import beside, silicon_points
from chipsim.validation.spad import curve_points, performance_points
from chipsim.validation.statistics import summarise
from chipsim.validation.table import read_header, read_table

if TYPE_CHECKING:
    import pandas as pd

SUITES = {
    "author-tables": "SPAD's author's LLMCompass tables of BLOOM-176B, per layer and in total",
    "public": "operators of the public LLMCompass, without launch on either side",
    "public-layer": "layers of the public LLMCompass, its launch overheads included",
    "silicon-eager": "operators measured on A100 and MI210; also LLMCompass's own error",
    "silicon-layer": "the measured GPT-3 layer; also LLMCompass's own error",
    "paper-curves": "SPAD's Figures 2 and 3",
    "table-curves": "the same curves as the author's tables imply them",
    "paper-chips": "mean performance of SPAD's chips",
}
"""What each suite is; ``llmcompass`` is all of them."""

APART = {
    "silicon": "operators of A100, H100, H200 and B200 measured in CUDA graphs",
    "machines": "prompts and steps of DGX-A100 and DGX-H100 under vLLM",
}
"""Suites of measurements that are judged on their own; plain models stand beside."""

CLUSTER = {
    "splitwise": "TTFT and E2E of every request of runs of Splitwise's simulator",
    "tables": "steps as latency tables tell them, of equal and unequal sequences",
}
"""Suites of the cluster, each by itself."""

FIGURES: dict[str, Callable[[str | None], Iterator[Point]]] = {
    "curves": curve_points,
    "chips": performance_points,
}
"""Figures of the paper, which need no table to be read, by the end of a suite's name."""


NOT_CSV = "not a CSV file"

SHOWN = 8
"""Things passed over that an error names one by one."""


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """Estimates beside references.

    Attributes
    ----------
    points : pandas.DataFrame
        One row per reference figure: ``suite, chip, operator, dtype, regime, shape, unit``
        (``s``, or ``1`` for a ratio), ``reference, estimate, error`` (estimate / reference
        - 1), ``bound, execution, source, whole``.
    skipped : list of Skipped
        Files, columns, devices and rows that were not judged, with the reason.
    """

    points: pd.DataFrame
    skipped: list[Skipped]
    beside: tuple[str, ...] = ()
    """Columns of ``points`` that hold the seconds of plain models."""

    def differences(self) -> pd.DataFrame:
        """Of the suite ``splitwise``: ``run, operator, n, max_difference_s``."""
        from chipsim.validation.splitwise import differences

        return differences(self.points)

    def frame(self) -> pd.DataFrame:
        """Errors by group: ``suite, chip, operator, dtype, regime, n, mape, median_ape,
        p90_ape, bias``; fractions, ``all`` where something is pooled. Plain models have
        columns of their own, ``roofline_mape`` …
        """
        return summarise(self.points, self.beside)


def _check(
    suite: str, data: str | Path | None, execution: str | None, transfer: bool, folds: int
) -> None:
    """Refuse what a suite cannot be asked for."""
    if transfer and suite != "silicon":
        raise ConfigError("--transfer", "", suite, "the suite silicon")
    if folds and (suite != "silicon" or transfer or execution):
        raise ConfigError("--folds", "", folds, "with the suite silicon, and blocks of its own")
    if suite == "tables" and data is not None:
        raise ConfigError("--data", "", data, "nothing with tables: the model is the reference")
    if folds:
        check_folds(folds)


def validate(
    suite: str = "llmcompass",
    data: str | Path | None = None,
    execution: str | None = None,
    *,
    chip: str | None = None,
    transfer: bool = False,
    folds: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> ValidationResult:
    """Set our estimates beside reference figures.

    Parameters
    ----------
    suite : str
        ``llmcompass`` for all of `SUITES`, one of them, or one of `APART` or `CLUSTER`.
    data : path, optional
        A folder of CSV files (or one file) with the column names of LLMCompass's outputs,
        judged instead of the tables in the package. The stem of a file names its
        operator: ``matmul, softmax, layernorm, gelu, allreduce``; ``silicon_…`` holds
        measurements, ``transformer`` and ``sweep_…`` layers; a file with the columns
        ``hardware, phase, batch, context, total_s`` is an author's table. A file that
        is none of these, or lacks a column that it needs, is named and skipped. For
        ``silicon`` files of `chipsim.validation.silicon.measured.FILES`, for ``machines``
        of `chipsim.validation.machines.COLUMNS`, read strictly; for ``splitwise`` see
        `replay_splitwise`.
    execution : str, optional
        Execution block for all chips; each chip's own unless given.
    chip : str, optional
        Of the suites `APART`: one chip, by name or path.
    transfer : bool
        Of ``silicon``: each chip under the factors of the one that came before it.
    folds : int
        Of ``silicon``: fitted again without each of so many parts of the shapes.
    progress : callable
        Told what is under way, where that takes minutes.

    Raises
    ------
    UnknownNameError
        No such suite or execution block.
    ChipsimError
        Nothing to judge: no such folder, an empty one, or only files that are skipped.
    ConfigError
        A cell that is not what its column holds, or a file that is no CSV.

    Examples
    --------
    >>> from chipsim import validate
    >>> result = validate("paper-curves", execution="ideal")
    >>> sorted(result.points["unit"].unique())
    ['1', 's']
    """
    if suite not in SUITES and suite not in ("llmcompass", *APART, *CLUSTER):
        raise UnknownNameError("suite", suite, ["llmcompass", *APART, *SUITES, *CLUSTER])
    if execution is not None:
        Execution.load(execution)
    _check(suite, data, execution, transfer, folds)
    if suite == "silicon":
        points, left_out = silicon_points(
            data, chip, execution, transfer=transfer, folds=folds, progress=progress
        )
        return ValidationResult(points, left_out, beside(transfer=transfer, folds=folds))
    if suite == "machines":
        points, left_out = machine_points(data, chip, execution)
        return ValidationResult(points, left_out, ("chip_alone",))
    if chip is not None:
        raise ConfigError("--chip", "", suite, f"one of {', '.join(APART)}")
    wanted = tuple(SUITES) if suite == "llmcompass" else (suite,)
    skipped: list[Skipped] = []
    if suite == "splitwise":
        # The engine takes a second to load, and the other suites do not use it.
        from chipsim.validation.splitwise import splitwise_points

        return ValidationResult(_frame(list(splitwise_points(data, skipped))), skipped)
    if suite == "tables":
        from chipsim.validation.step_tables import table_points

        return ValidationResult(
            _frame(list(table_points(execution, progress=progress))), skipped
        )
    cases = list(reference_cases() if data is None else read_folder(Path(data), skipped))
    found = list(judged((c for c in cases if c.suite in wanted), execution, skipped))
    if data is None:
        for end, figures in FIGURES.items():
            if any(name.endswith(f"-{end}") for name in wanted):
                found += [p for p in figures(execution) if p.suite in wanted]
    if not found:
        raise ChipsimError(f"{data or suite}: nothing to judge{_reasons(skipped)}")
    return ValidationResult(_frame(found), skipped)


def read_folder(folder: Path, skipped: list[Skipped]) -> Iterator[Case]:
    """Cases of the files of a folder, or of one file.

    Raises
    ------
    ChipsimError
        No such folder, or nothing in it.
    ConfigError
        As `validate`.
    """
    if not folder.exists():
        raise ChipsimError(f"{folder}: no such folder")
    paths = sorted(folder.iterdir()) if folder.is_dir() else [folder]
    if not paths:
        raise ChipsimError(f"{folder}: the folder is empty")
    for path in paths:
        if not path.is_file() or path.suffix.lower() != ".csv":
            skipped.append(Skipped(path.name, NOT_CSV))
        else:
            yield from _read_file(path, skipped)


def _read_file(path: Path, skipped: list[Skipped]) -> Iterator[Case]:
    """Cases of a file, whose rows are read only if its header is one of those known."""
    header = read_header(path)
    reader = reader_of(header)
    why = header.lacks(needed_by(reader, header) if reader else ())
    if not why and reader is None:
        why = "neither stem nor columns are known"
    table = header if why else read_table(path)
    if not table.rows:
        skipped.append(Skipped(path.name, why or "no rows"))
    elif reader is not None:
        yield from reader(table, skipped)


def judged(
    cases: Iterable[Case], execution: str | None, skipped: list[Skipped]
) -> Iterator[Point]:
    """Points of cases; a case that the chip cannot run at all is passed over and named."""
    judge = Judge(execution)
    for case in cases:
        judge.model(case.subject, case.launch if isinstance(case, LayerCase) else None)
        try:
            yield from list(case.points(judge))
        except (ConfigError, InfeasibleError) as error:
            skipped.append(Skipped(case.source, str(error)))


def _frame(points: list[Point]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(points, columns=list(Point._fields))


def _reasons(skipped: list[Skipped]) -> str:
    if not skipped:
        return ""
    telling = sorted(skipped, key=lambda one: one.why == NOT_CSV)
    shown = "; ".join(f"{name}: {why}" for name, why in telling[:SHOWN])
    more = f"; and {len(skipped) - SHOWN} more" if len(skipped) > SHOWN else ""
    return f" ({shown}{more})"
