"""Measurements beside our estimates.

measurement -> operators -> performance model of its chip, caches warm -> estimate
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from chipsim.performance import PerformanceModel
from chipsim.validation.cases import SMALL
from chipsim.validation.silicon.work import Work, work

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.estimates import Bound
    from chipsim.execution import Execution
    from chipsim.validation.silicon.measured import Measurement

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Workload:
    """Measurements of one chip, with the operators of each: built once, estimated often."""

    chip: Chip
    rows: tuple[Measurement, ...]
    works: tuple[Work, ...]

    @classmethod
    def of(cls, chip: Chip, rows: Sequence[Measurement]) -> Workload:
        """Rows with their operators."""
        return cls(chip, tuple(rows), tuple(work(row) for row in rows))

    def part(self, keep: Sequence[bool] | npt.NDArray[np.bool_]) -> Workload:
        """The rows that are marked."""
        chosen = [i for i, wanted in enumerate(keep) if wanted]
        return Workload(
            self.chip,
            tuple(self.rows[i] for i in chosen),
            tuple(self.works[i] for i in chosen),
        )

    @property
    def measured(self) -> Floats:
        """Seconds of every row."""
        return np.array([row.seconds for row in self.rows])

    def estimates(self, block: Execution) -> Floats:
        """Our seconds of every row under a block."""
        model = PerformanceModel(self.chip, block, warm=True)
        return np.array(
            [sum(model.estimate(op).latency_s for op in work) for work in self.works]
        )

    def bound(self, block: Execution) -> tuple[Floats, list[Bound]]:
        """Our seconds of every row, and what its longest operator waits for."""
        model = PerformanceModel(self.chip, block, warm=True)
        found = [[model.estimate(op) for op in work] for work in self.works]
        longest = (max(parts, key=lambda part: part.latency_s) for parts in found)
        seconds = np.array([sum(part.latency_s for part in parts) for parts in found])
        return seconds, [part.bound for part in longest]


def regime(ideal: float, arithmetic: float, linked: bool) -> str:
    """``small`` where no time is left to be bound by anything; else what the roofline says.

    Parameters
    ----------
    ideal, arithmetic : float
        Roofline of a row, and its arithmetic at peak rate, seconds.
    linked : bool
        A collective.
    """
    if ideal < SMALL:
        return "small"
    if linked:
        return "link"
    return "compute" if arithmetic >= ideal else "memory"
