"""Measurements beside our estimates.

measurement -> operators -> performance model of its chip, caches warm -> estimate
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from chipsim.errors import ChipsimError, ConfigError
from chipsim.performance import PerformanceModel
from chipsim.validation.cases import SMALL
from chipsim.validation.silicon.work import Work, work

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.estimates import Bound, Estimate
    from chipsim.execution import Execution
    from chipsim.validation.silicon.measured import Measurement

Floats = npt.NDArray[np.float64]
FAR = 100.0
"""Times that the median of measurements may be off: milliseconds are off by 1000."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Measurements of one chip, with the operators of each: built once, estimated often."""

    chip: Chip
    rows: tuple[Measurement, ...]
    works: tuple[Work, ...]

    @classmethod
    def of(cls, chip: Chip, rows: Sequence[Measurement]) -> Workload:
        """Rows with their operators."""
        return cls(chip, tuple(rows), tuple(_placed_work(row) for row in rows))

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
        return np.array([sum(part.latency_s for part in parts) for parts in self._parts(block)])

    def bound(self, block: Execution) -> tuple[Floats, list[Bound]]:
        """Our seconds of every row, and what its longest operator waits for."""
        found = list(self._parts(block))
        longest = (max(parts, key=lambda part: part.latency_s) for parts in found)
        seconds = np.array([sum(part.latency_s for part in parts) for parts in found])
        return seconds, [part.bound for part in longest]

    def _parts(self, block: Execution) -> Iterator[list[Estimate]]:
        """Estimates of every row's operators; what cannot be names its row."""
        model = PerformanceModel(self.chip, block, warm=True)
        for row, operators in zip(self.rows, self.works, strict=True):
            try:
                yield [model.estimate(op) for op in operators]
            except ChipsimError as error:
                raise ChipsimError(f"{row.where}: {error}") from None


def _placed_work(row: Measurement) -> Work:
    try:
        return work(row)
    except ChipsimError as error:
        raise ChipsimError(f"{row.where}: {error}") from None


def check_units(block: Execution, measured: Floats, estimates: Floats, where: str) -> None:
    """Refuse measurements that are in another unit than seconds.

    Parameters
    ----------
    block : Execution
        Of the estimates; one without fixed times says nothing of small operators, and
        nothing is refused.
    where : str
        What holds the measurements, for the message.

    Raises
    ------
    ConfigError
        The median row takes over `FAR` times as long as estimated, or as little of it.
    """
    ratio = float(np.median(measured / estimates))
    if block.launch.gemm > 0.0 and not 1.0 / FAR < ratio < FAR:
        told = f"{ratio:.1e} times the estimate at the median"
        raise ConfigError(where, "latency_s", told, "seconds")


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
