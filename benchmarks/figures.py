"""A measured figure, its target, and the other tool's time for the same answer."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table.

    Attributes
    ----------
    value : float
        Seconds, or what ``unit`` says.
    target : float or None
        What it should reach: at most, or at least where ``more_is_better``.
    llmcompass_s : tuple of float
        Seconds that the public LLMCompass takes for the same answer: one, or the least
        and the most. Measured with its own configurations (commit 2e015fd).
    """

    name: str
    value: float
    unit: str = "s"
    target: float | None = None
    more_is_better: bool = False
    llmcompass_s: tuple[float, ...] = ()

    def row(self) -> list[str]:
        """Cells of the table."""
        return [self.name, shown(self.value, self.unit), self._target(), self._ratio()]

    def _target(self) -> str:
        if self.target is None:
            return ""
        met = (self.value >= self.target) if self.more_is_better else self.value <= self.target
        sign = "≥" if self.more_is_better else "≤"
        return f"{sign} {shown(self.target, self.unit)} {'met' if met else 'MISSED'}"

    def _ratio(self) -> str:
        return " to ".join(f"{seconds / self.value:,.0f} x" for seconds in self.llmcompass_s)


def shown(value: float, unit: str) -> str:
    """A number with a prefix that suits it."""
    for scale, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m")):
        if value >= scale and not (unit == "s" and scale > 1):
            return f"{value / scale:.3g} {prefix}{unit}"
    return f"{value / 1e-6:.3g} µ{unit}"


def table(figures: Iterable[Figure]) -> str:
    """The figures as text, one line each."""
    rows = [["figure", "measured", "target", "LLMCompass / chipsim"]]
    rows += [figure.row() for figure in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def seconds(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def median_seconds(calls: Iterable[Callable[[], object]]) -> float:
    """Median seconds of calls, each made once."""
    return statistics.median(seconds(call) for call in calls)
