"""``validate all``: the errors of every suite side by side.

    tables of the package -> judged now
    measured operators, too many to come with the package -> judged now, or as recorded

A record is written by the same command and says which files it was made of. It also holds
the error of every chip on the packaged sample, so a block or a formula that has changed
since shows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chipsim.errors import ChipsimError
from chipsim.execution import Execution
from chipsim.validation.cases import Judge, OperatorCase, Point
from chipsim.validation.references import DATA, reference_cases
from chipsim.validation.silicon.baselines import Ideal, ideal
from chipsim.validation.silicon.chosen import chosen
from chipsim.validation.silicon.machines import DONORS, own_block
from chipsim.validation.silicon.measured import FILES, read_measurements
from chipsim.validation.silicon.points import BESIDE, plain_models
from chipsim.validation.silicon.suite import PACKAGED, workloads
from chipsim.validation.statistics import COLUMNS, KEYS, summarise
from chipsim.validation.suites import ValidationResult, validate

if TYPE_CHECKING:
    import pandas as pd

RECORD = DATA / "recorded" / "silicon_errors.csv"
"""Errors on the public tables of measured operators, of which the package has a sample."""
OWN, TRANSFERRED = "silicon", "silicon-transfer"
"""Suites of a record: blocks of the chips themselves, and of those that came before."""
TWIN = "-llmcompass"
"""End of the suites that hold LLMCompass's own errors on the rows of another."""
LEFT_OUT, SAMPLE, FILE, MADE = "left out", "sample", "file", "made"
"""What the lines at the head of a record begin with."""
ABOUT = (
    ("source", "errors of our estimates on the files named here; no figure of theirs is in it"),
    ("licence", "that of the package"),
)
"""What stands at the head of every record."""
DIGITS = 6
"""Decimals of a fraction in a record."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Errors of all suites.

    Attributes
    ----------
    errors : pandas.DataFrame
        Columns of `chipsim.validation.statistics.COLUMNS`, and of other models beside ours
        ``…_mape`` (NaN where there is none).
    notes : tuple of (str, str)
        How the part of the measured operators was made: one of ``made``, ``file``,
        ``sample``, ``left out``, and what belongs to it.
    points : pandas.DataFrame
        Of the suites of the package, as `ValidationResult` has them; of a record none.
    """

    errors: pd.DataFrame
    notes: tuple[tuple[str, str], ...]
    points: pd.DataFrame

    def note(self, kind: str) -> list[str]:
        """What the notes say of one kind."""
        return [what for name, what in self.notes if name == kind]

    @property
    def record(self) -> str:
        """The part of the measured operators as a file, its notes at the head."""
        part = self.errors[self.errors["suite"].isin([OWN, TRANSFERRED])]
        head = "".join(f"# {name}: {what}\n" for name, what in self.notes)
        table = part.dropna(axis="columns", how="all").round(DIGITS)
        return head + str(table.to_csv(index=False, lineterminator="\n"))


def overview(
    data: str | Path | None = None,
    folds: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Overview:
    """Judge every suite.

    Parameters
    ----------
    data : path, optional
        Folder of measured operators, as of the suite ``silicon``; the record of those that
        are public unless given.
    folds : int
        With ``data``: fit again without each of so many parts of the shapes.

    Raises
    ------
    ChipsimError, ConfigError
        As `chipsim.validation.validate`.
    """
    import pandas as pd

    known = recorded() if data is None else measured(data, folds, progress)
    tables = validate()
    frames = [reference_errors(tables), known.errors, validate("machines").frame()]
    return Overview(pd.concat(frames, ignore_index=True), known.notes, tables.points)


def measured(
    data: str | Path, folds: int = 0, progress: Callable[[str], None] = lambda _: None
) -> Overview:
    """Measured operators judged now: held out too, if folds are asked for, and transferred."""
    own = validate(OWN, data, folds=folds, progress=progress)
    followers = set(own.points["chip"]) & set(DONORS)
    moved = validate(OWN, data, transfer=True) if followers else None
    return put_together(own, moved, data, folds)


def put_together(
    own: ValidationResult, moved: ValidationResult | None, data: str | Path, folds: int
) -> Overview:
    """Both judgements of measured operators, with notes of what they were made of."""
    import pandas as pd

    fitted = f" --folds {folds}" if folds else ""
    made = f"chipsim validate all --data FOLDER{fitted} --out FILE.csv"
    notes = [*ABOUT, (MADE, made), *((FILE, text) for text in _digests(Path(data)))]
    notes += [(SAMPLE, f"{chip} {error:.{DIGITS}f}") for chip, error in sample().items()]
    notes += [(LEFT_OUT, f"{each.name}: {each.why}") for each in own.skipped]
    frames = [own.frame()]
    if moved is not None:
        frames.append(moved.frame().assign(suite=TRANSFERRED))
    return Overview(pd.concat(frames, ignore_index=True), tuple(notes), pd.DataFrame())


def recorded(path: Path = RECORD) -> Overview:
    """The record of the public tables.

    Raises
    ------
    ChipsimError
        The record lacks.
    """
    import pandas as pd

    if not path.is_file():
        raise ChipsimError(f"{path.name}: no record; chipsim validate all --data FOLDER")
    lines = path.read_text(encoding="utf-8").splitlines()
    head = [line.removeprefix("# ") for line in lines if line.startswith("# ")]
    pairs = [line.partition(": ") for line in head]
    errors = pd.read_csv(path, comment="#")
    return Overview(errors, tuple((a, b) for a, _, b in pairs), pd.DataFrame())


def sample() -> dict[str, float]:
    """Mean absolute error of every chip on the packaged sample of measured operators."""
    rows, _ = chosen(read_measurements(PACKAGED))
    found = {}
    for workload in workloads(rows, None, []):
        estimates = workload.estimates(Execution.load(own_block(workload.chip)))
        found[workload.chip.name] = float(np.abs(estimates / workload.measured - 1.0).mean())
    return found


def reference_errors(tables: ValidationResult) -> pd.DataFrame:
    """Errors on the tables of the package; LLMCompass's own, where known, beside ours."""
    import pandas as pd

    frame = tables.frame()
    twin = frame["suite"].str.endswith(TWIN)
    theirs = frame[twin].assign(suite=frame[twin]["suite"].str.removesuffix(TWIN))
    theirs = theirs[[*KEYS, "mape"]].rename(columns={"mape": "llmcompass_mape"})
    points = operator_points()
    plain = summarise(points, BESIDE).drop(columns=list(COLUMNS[len(KEYS) :]))
    ours = frame[~twin].merge(theirs, how="left", on=list(KEYS))
    return pd.DataFrame(ours.merge(plain, how="left", on=list(KEYS)))


def operator_points(cases: Iterable[object] | None = None) -> pd.DataFrame:
    """Single operators of the package's tables, plain models beside our estimates."""
    import pandas as pd

    judge, points, ideals = Judge(), list[Point](), list[Ideal]()
    for case in reference_cases() if cases is None else cases:
        if isinstance(case, OperatorCase):
            points.append(next(case.points(judge)))
            ideals.append(ideal(case.subject.build(), (case.operator,)))
    frame = pd.DataFrame(points)
    return frame.assign(**plain_models(frame, ideals))


def _digests(folder: Path) -> list[str]:
    """Names and checksums of the files of measured operators."""
    paths = [folder] if folder.is_file() else [folder / f"{stem}.csv" for stem in FILES]
    return [
        f"{path.name} sha256 {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"
        for path in paths
        if path.is_file()
    ]
