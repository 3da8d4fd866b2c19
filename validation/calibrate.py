"""Calibration: fit an execution block again, from the reference tables.

    reference cases of the block -> residuals -> fit -> execution block as YAML

Every factor that is fitted is listed here with its start and its bounds; everything else
in a block is a fact of its source and stands in its file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from chipsim.errors import UnknownNameError
from chipsim.execution import Execution, Launch
from chipsim.performance import PerformanceModel
from chipsim.validation.cases import Judge, LayerCase, OperatorCase
from chipsim.validation.execution_yaml import to_yaml, written
from chipsim.validation.fitting import Factor, Fit, Residuals, fit
from chipsim.validation.references import reference_cases
from chipsim.validation.spad import paper_curves, slowdown

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.validation.subjects import Subject

Case = LayerCase | OperatorCase

PREFILL_WEIGHT, DECODE_WEIGHT, CORE_DRAW_WEIGHT = 2.0, 1.0, 0.3
"""Rows of prefill, of decode, and of the machine that is there for the core draw only."""
STEP_WEIGHT = 2.0
"""A step counts as two of its operator columns."""
FIGURE_TARGETS = {("memory_bandwidth", 2e12): 10.0, ("cores", 66.0): 3.0}
"""Points of the paper that ``spad-figures`` is fitted to, and their weights: chosen so that
both are met within 0.02 and the layer times of the H100 decide the rest."""


def launch(*kinds: str, start: float) -> Factor:
    """A fixed time shared by some operator classes, seconds."""
    return Factor(tuple(f"launch.{kind}" for kind in kinds), start, 1e-6, 2e-4)


GEMM_LAUNCH = launch("gemm", "batched_gemm", start=20e-6)
TENSOR = Factor(("sustained.tensor",), 0.85, 0.3, 1.0)
MEMORY = Factor(("sustained.memory",), 0.8, 0.2, 1.0)
LINK = Factor(("sustained.link",), 0.8, 0.2, 1.0)
WEIGHTS = Factor(("overlap.weights",), 0.7, 0.0, 1.0)
LOADS = Factor(("overlap.weights", "overlap.activations", "overlap.stores"), 0.9, 0.0, 1.0)
CORE_DRAW = Factor(("core_draw",), 30.0, 2.0, 500.0)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a block is fitted to.

    Attributes
    ----------
    factors : tuple of Factor
        What is fitted, and nothing else.
    residuals : callable
        Cases -> residuals of a block.
    scale : float
        Log error beyond which a row counts less.
    """

    factors: tuple[Factor, ...]
    residuals: Callable[[list[Case]], Residuals[Execution]]
    scale: float


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """A block fitted again."""

    fit: Fit[Execution]
    block: Execution
    yaml: str

    @property
    def text(self) -> str:
        """Factors, how well each is known, and the cost before and after."""
        head = (
            f"{self.block.name}: fitted to {self.block.fitted.to}" if self.block.fitted else ""
        )
        cost = f"cost {self.fit.start_cost:.4g} -> {self.fit.cost:.4g}"
        return "\n".join([head, *self.fit.lines(), cost])


def calibrate(
    block: str, data: str | Path | None = None, out: str | Path | None = None
) -> CalibrationResult:
    """Fit an execution block again.

    Parameters
    ----------
    block : str
        One of `CALIBRATIONS`.
    data : path, optional
        A folder as `chipsim.validation.validate` reads it, instead of the tables in the
        package, which the committed blocks were fitted to.
    out : path, optional
        File to write the block to, as YAML.

    Raises
    ------
    UnknownNameError
        No such block, or one that is not fitted.
    ChipsimError
        The folder cannot be read.
    """
    if block not in CALIBRATIONS:
        raise UnknownNameError("fitted block", block, CALIBRATIONS)
    plan, base = CALIBRATIONS[block], Execution.load(block)
    cases = list(reference_cases()) if data is None else _folder(Path(data))
    found = fit(base, plan.factors, plan.residuals(cases), scale=plan.scale)
    fitted = written(found.block)
    text = to_yaml(fitted)
    if out is not None:
        Path(out).write_text(text, encoding="utf-8")
    return CalibrationResult(found, fitted, text)


def _folder(folder: Path) -> list[Case]:
    from chipsim.validation.suites import read_folder

    return list(read_folder(folder, []))


@dataclass(slots=True)
class _BlockJudge(Judge):
    """Judges with one block object instead of one that is named."""

    block: Execution = field(kw_only=True)
    chips: dict[Subject, Chip] = field(kw_only=True)

    def model(
        self,
        subject: Subject,
        launch: Launch | None = None,  # noqa: ARG002 - the block's own are fitted
    ) -> PerformanceModel:
        """The performance model of a subject under the block; ``launch`` is the block's."""
        known = self._models.get((subject, None))
        if known is None:
            chip = self.chips.setdefault(subject, subject.build())
            known = self._models[subject, None] = PerformanceModel(chip, self.block)
        return known


def _judged(
    cases: list[Case], weight: Callable[[Case, str], float]
) -> Callable[[Execution], npt.NDArray[np.float64]]:
    """Weighted log errors of cases; ``weight`` sees the case and the column's label."""
    chips: dict[Subject, Chip] = {}

    def residuals(block: Execution) -> npt.NDArray[np.float64]:
        judge = _BlockJudge(block=block, chips=chips)
        return np.array(
            [
                math.sqrt(weight(case, point.operator))
                * math.log(point.estimate / point.reference)
                for case in cases
                for point in case.points(judge)
                if point.suite == case.suite
            ]
        )

    return residuals


def _tables(cases: list[Case]) -> Residuals[Execution]:
    """Operator columns and steps of the H100; the 66-core machine for the core draw."""
    used = [
        case
        for case in cases
        if case.suite == "author-tables"
        and case.subject.chip in ("spad-h100", "spad-early-decode")
        and case.subject.arrays
    ]

    def weight(case: Case, column: str) -> float:
        if column in ("layer", "others"):
            return 0.0  # the step says the same; nothing that is fitted moves the others
        phase = case.phase.kind if isinstance(case, LayerCase) else ""
        rows = PREFILL_WEIGHT if phase == "prefill" else DECODE_WEIGHT
        if case.subject.chip != "spad-h100":
            rows = CORE_DRAW_WEIGHT
        return rows * (STEP_WEIGHT**2 if column == "total" else 1.0)

    return _judged(used, weight)


def _figures(cases: list[Case]) -> Residuals[Execution]:
    """Steps of the H100, and the two points of the paper that are named."""
    used = [
        case
        for case in cases
        if case.suite == "author-tables" and case.subject.chip == "spad-h100"
    ]

    def weight(case: Case, column: str) -> float:
        prefill = isinstance(case, LayerCase) and case.phase.kind == "prefill"
        return (PREFILL_WEIGHT if prefill else DECODE_WEIGHT) if column == "total" else 0.0

    layers = _judged(used, weight)

    def residuals(block: Execution) -> npt.NDArray[np.float64]:
        return np.concatenate([layers(block), _curve_errors(block)])

    return residuals


def _curve_errors(block: Execution) -> npt.NDArray[np.float64]:
    targets = [
        (FIGURE_TARGETS[ref.resource, ref.value], ref)
        for ref in paper_curves()
        if ref.series == "paper" and (ref.resource, ref.value) in FIGURE_TARGETS
    ]
    return np.array(
        [weight * math.log(slowdown(ref, block) / ref.slowdown) for weight, ref in targets]
    )


def _equally(_case: Case, _column: str) -> float:
    return 1.0


def _silicon(chip: str) -> Callable[[list[Case]], Residuals[Execution]]:
    """Every measured operator of a chip, each alone; layers are left to be predicted."""

    def make(cases: list[Case]) -> Residuals[Execution]:
        used = [c for c in cases if c.suite == "silicon-eager" and c.subject.chip == chip]
        return _judged(used, _equally)

    return make


EAGER = (
    GEMM_LAUNCH,
    launch("softmax", start=14e-6),
    launch("norm", start=45e-6),
    launch("activation", start=40e-6),
    TENSOR,
    MEMORY,
)

CALIBRATIONS = {
    "llmcompass-tables": Calibration(
        (
            GEMM_LAUNCH,
            launch("softmax", start=6e-6),
            launch("norm", start=7e-6),
            launch("activation", start=6e-6),
            launch("collective", start=15e-6),
            TENSOR,
            CORE_DRAW,
        ),
        _tables,
        0.03,
    ),
    "spad-figures": Calibration((GEMM_LAUNCH, TENSOR, WEIGHTS, CORE_DRAW), _figures, 1.0),
    "a100-eager": Calibration(
        (*EAGER, launch("collective", start=15e-6), LINK), _silicon("a100-sxm"), 0.05
    ),
    "mi210-eager": Calibration((*EAGER, LOADS), _silicon("mi210"), 0.05),
}
"""Fitted blocks, by name."""
