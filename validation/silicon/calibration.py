"""Fit an execution block to measured operators of one chip, stage by stage.

measurements -> stages of few factors -> block, and a report of what it is worth
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chipsim.arch_configs import names
from chipsim.chip import Chip
from chipsim.errors import ChipsimError, ConfigError
from chipsim.execution import Execution
from chipsim.validation.execution_yaml import to_yaml, written
from chipsim.validation.fitting import Factor, Fit, Residuals, fit, with_factors
from chipsim.validation.silicon import baselines
from chipsim.validation.silicon.chosen import chosen, is_main
from chipsim.validation.silicon.judged import Workload, check_units
from chipsim.validation.silicon.machines import block_name, chip_name
from chipsim.validation.silicon.measured import read_measurements
from chipsim.validation.silicon.points import judged_points
from chipsim.validation.silicon.stages import STAGES, UNFIT, Stage
from chipsim.validation.statistics import error_statistics

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.validation.silicon.baselines import Floats

SCALE, STEP, STARTS, TOLERANCE = 0.1, 0.03, 3, 1e-3
"""Log error beyond which a row counts less; step of finite differences (latency is a minimum
over discrete mappings, so a small one sees steps); places to start from; where least squares
on such a surface may end, and the polish take over."""
MOST_FOLDS = 20
"""Fits of a chip that judge it on shapes held out."""


@dataclass(frozen=True, slots=True)
class StageFit:
    """A stage, its fit, and the rows it saw."""

    stage: Stage
    fit: Fit[Execution]
    rows: int


@dataclass(frozen=True, slots=True)
class SiliconCalibration:
    """A chip's block fitted to measurements.

    Attributes
    ----------
    workload : Workload
        Every judged row of the chip, seen by the fit or not.
    start, block : Execution
        Before and after.
    fits : tuple of StageFit
    held : array of float, or None
        Estimates of each row by a fit to the other folds.
    """

    workload: Workload
    start: Execution
    block: Execution
    fits: tuple[StageFit, ...]
    held: Floats | None = None

    @property
    def yaml(self) -> str:
        """The block as a file."""
        return to_yaml(self.block)

    def points(self) -> pd.DataFrame:
        """Every row under the fitted block, as `silicon_points` has them."""
        return judged_points(self.workload, self.block)

    @property
    def text(self) -> str:
        """Factors and how well each is known; errors before, after and held out."""
        lines = [
            f"{self.block.name}: {len(self.workload.rows)} rows of {self.workload.chip.name}"
        ]
        for each in self.fits:
            found = each.fit
            change = f"cost {found.start_cost:.4g} -> {found.cost:.4g}"
            values = f"{found.singular[0]:.3g} ... {found.singular[-1]:.3g}"
            lines.append(f"-- {each.stage.name}: {each.rows} rows, {change}")
            lines += found.lines()
            lines.append(f"singular values {values}; least known: {found.loosest}")
        return "\n".join([*lines, *self._errors()])

    def _errors(self) -> list[str]:
        """MAPE by operator and format: start, fitted, held out."""
        measured = self.workload.measured
        columns = [self.workload.estimates(self.start), self.workload.estimates(self.block)]
        if self.held is not None:
            columns.append(self.held)
        head = "operator              format        n   before    after" + (
            "  held out" if self.held is not None else ""
        )
        lines = [f"-- MAPE / median, %\n{head}"]
        for (operator, dtype), members in self._groups().items():
            parts = []
            for column in columns:
                found = error_statistics((column[members] / measured[members] - 1.0).tolist())
                parts.append(f"{100 * found['mape']:5.1f}/{100 * found['median_ape']:4.1f}")
            lines.append(f"{operator:21s} {dtype:10s} {len(members):4d} {' '.join(parts)}")
        return lines

    def _groups(self) -> dict[tuple[str, str], list[int]]:
        groups: dict[tuple[str, str], list[int]] = {}
        for i, row in enumerate(self.workload.rows):
            if is_main(row):
                groups.setdefault((row.operator, row.dtype), []).append(i)
        return groups


def calibrate_chip(
    chip: str,
    data: str | Path,
    out: str | Path | None = None,
    *,
    folds: int = 0,
    stages: Sequence[Stage] = STAGES,
    progress: Callable[[str], None] = lambda _: None,
) -> SiliconCalibration:
    """Fit the block of a chip's graph kernels to a folder of measurements.

    Parameters
    ----------
    chip : str
        Library name or path; its library block gives the facts that are not fitted.
    data : path
        As `chipsim.validation.silicon.measured.read_measurements`.
    out : path, optional
        File to write the block to.
    folds : int
        Fit again without each of so many parts of the shapes, and judge it on that part.

    Raises
    ------
    ChipsimError, ConfigError, UnknownNameError
        No such chip or folder, or no row of the chip; latencies that are no seconds; folds
        that cannot be.
    """
    subject = Chip.load(chip)
    if folds:
        check_folds(folds)
    kept, _ = chosen(read_measurements(Path(data)))
    rows = [row for row in kept if chip_name(row.system) == subject.name]
    if not rows:
        raise ChipsimError(f"{data}: no judged row of {subject.name}")
    workload = Workload.of(subject, rows)
    start = start_of(subject, stages)
    check_units(start, workload.measured, workload.estimates(start), f"{data}: {subject.name}")
    fits = fit_stages(start, workload, stages, progress)
    held = held_out(start, workload, folds, stages, progress) if folds else None
    paths = [path for each in fits for path in each.fit.paths]
    block = written(fits[-1].fit.block, paths)
    result = SiliconCalibration(workload, start, block, tuple(fits), held)
    if out is not None:
        Path(out).write_text(result.yaml, encoding="utf-8")
    return result


def fit_stages(
    start: Execution,
    workload: Workload,
    stages: Sequence[Stage] = STAGES,
    progress: Callable[[str], None] = lambda _: None,
) -> list[StageFit]:
    """Fit every stage that has rows, each from the block of the one before."""
    found: list[StageFit] = []
    block, known = start, dict[str, Fit[Execution]]()
    for stage in stages:
        weights = np.array([_weight(stage, workload, i) for i in range(len(workload.rows))])
        if not (weights > 0).any():
            continue
        factors = [*stage.factors]
        for name in stage.again:
            if name in known:
                factors += _continued(known[name].factors, block)
        if not factors:
            continue
        part = workload.part(weights > 0)
        progress(f"{stage.name}: {len(part.rows)} rows")
        fitted = fit(
            block,
            factors,
            _residuals(part, weights[weights > 0]),
            scale=SCALE,
            step=STEP,
            starts=1 if stage.again else STARTS,
            tolerance=TOLERANCE,
        )
        block, known[stage.name] = fitted.block, fitted
        found.append(StageFit(stage, fitted, len(part.rows)))
    return found


def _weight(stage: Stage, workload: Workload, index: int) -> float:
    row = workload.rows[index]
    if not is_main(row) or (workload.chip.name, row.operator) in UNFIT:
        return 0.0
    return stage.weight(row)


def _continued(factors: Sequence[Factor], block: Execution) -> list[Factor]:
    """The factors, starting where they stand."""
    fields = block.model_dump()
    return [replace(factor, start=_value(fields, factor.name)) for factor in factors]


def _value(fields: dict[str, object], path: str) -> float:
    place: object = fields
    for name in path.split("."):
        place = place[name]  # type: ignore[index]
    return float(place)  # type: ignore[arg-type]


def _residuals(part: Workload, weights: Floats) -> Residuals[Execution]:
    measured, roots = part.measured, np.sqrt(weights)

    def residuals(block: Execution) -> Floats:
        errors: Floats = roots * np.log(part.estimates(block) / measured)
        return errors

    return residuals


def held_out(
    start: Execution,
    workload: Workload,
    folds: int,
    stages: Sequence[Stage] = STAGES,
    progress: Callable[[str], None] = lambda _: None,
) -> Floats:
    """Estimates of each fold by a fit to the others, made as the fit to all is.

    Raises
    ------
    ConfigError, ChipsimError
        `check_folds`; a fold without which nothing is left to fit to.
    """
    check_folds(folds)
    fold = baselines.folds([row.shape for row in workload.rows], folds)
    held = np.full(len(fold), np.nan)
    for number in range(folds):
        if not (fold == number).any():
            continue
        progress(f"fold {number + 1} of {folds}")
        fits = fit_stages(start, workload.part(fold != number), stages)
        if not fits:
            told = f"{len(fold)} rows leave nothing to fit to without one of {folds} folds"
            raise ChipsimError(f"{workload.chip.name}: {told}")
        held[fold == number] = workload.part(fold == number).estimates(fits[-1].fit.block)
    return held


def check_folds(folds: int) -> None:
    """Refuse numbers of folds from which nothing can be learnt (`ConfigError`)."""
    if not 2 <= folds <= MOST_FOLDS:
        raise ConfigError("--folds", "", folds, f"a number from 2 to {MOST_FOLDS}")


def start_of(chip: Chip, stages: Sequence[Stage] = STAGES) -> Execution:
    """Facts of the library's block, if there is one, and every factor at its start."""
    name = block_name(chip.name)
    if name in names("executions"):
        base = Execution.load(name)
    else:
        base = Execution.build(name, name=name, source=f"measured operators of {chip.name}")
    factors = [factor for stage in stages for factor in stage.factors]
    return with_factors(base, factors, [factor.start for factor in factors])
