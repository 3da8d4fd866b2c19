"""Objectives: limits on percentiles, and what each request must meet to count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from chipsim.cluster.percentiles import percentiles
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chipsim.cluster.results import Simulation
    from chipsim.cluster.scenario import GoodputSpec, Scenario

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Objective:
    """One limit on a percentile.

    Attributes
    ----------
    metric : str
        ``ttft_s``, ``itl_s``, ``tpot_s``, ``e2e_s``, or ``ttft_slowdown`` …
    percentile : float
        0 ... 100.
    limit, reached : float
        Seconds, or a ratio; ``reached`` is infinite where no request got so far.
    """

    metric: str
    percentile: float
    limit: float
    reached: float

    @property
    def name(self) -> str:
        """As ``p99 ttft_s``."""
        return f"p{self.percentile:g} {self.metric}"

    @property
    def holds(self) -> bool:
        """Whether the limit is kept."""
        return self.reached <= self.limit

    @property
    def margin(self) -> float:
        """Share of the limit that is left, below 0 where it is broken."""
        return 1.0 - self.reached / self.limit

    def record(self) -> dict[str, Any]:
        """As plain values; None for what is infinite."""
        known = math.isfinite(self.reached)
        return {
            "metric": self.metric,
            "percentile": self.percentile,
            "limit": self.limit,
            "reached": self.reached if known else None,
            "margin": self.margin if known else None,
            "holds": self.holds,
        }


def objectives(run: Simulation) -> list[Objective]:
    """Every limit of the scenario, in its order, with what the run reached.

    Percentiles are over finished requests that are `judged` (``itl``: over all gaps between
    tokens).
    """
    scenario = run.cluster.scenario
    slo = scenario.slo
    done = run.finished & judged(scenario, run.outcome.requests["arrival_s"])
    found = []
    for metric in ("ttft", "tpot", "e2e"):
        values = run.times[f"{metric}_s"][done]
        found += _of(f"{metric}_s", getattr(slo, metric), values[~np.isnan(values)])
    found += _of("itl_s", slo.itl, run.outcome.gaps, run.outcome.gap_counts)
    if slo.slowdown is not None:
        for metric in ("ttft", "tbt", "e2e"):
            name = f"{metric}_slowdown"
            found += _of(name, getattr(slo.slowdown, metric), run.slowdowns[name][done])
    return found


def judged(scenario: Scenario, arrival_s: Floats) -> npt.NDArray[np.bool_]:
    """Which requests the objective is about: those that arrive from ``slo.warm_up`` on.

    Raises
    ------
    ConfigError
        None of them.
    """
    start = scenario.slo.warm_up
    late: npt.NDArray[np.bool_] = arrival_s >= start
    if not late.any():
        allowed = f"at most the last arrival, {np.nanmax(arrival_s):g} s"
        raise ConfigError(scenario.name, "slo.warm_up", start, allowed)
    return late


def _of(
    metric: str,
    limits: Mapping[str, float],
    values: Floats,
    counts: npt.NDArray[np.integer] | None = None,
) -> list[Objective]:
    shares = [float(name.removeprefix("p")) for name in limits]
    reached = percentiles(values, shares, counts)
    return [
        Objective(metric, share, limit, math.inf if math.isnan(value) else float(value))
        for share, limit, value in zip(shares, limits.values(), reached, strict=True)
    ]


def meets(run: Simulation, wanted: GoodputSpec) -> npt.NDArray[np.bool_]:
    """Which requests were served within the goodput objective."""
    tpot = np.nan_to_num(run.times["tpot_s"], nan=0.0)
    fast: npt.NDArray[np.bool_] = run.finished & (run.times["ttft_s"] <= wanted.ttft)
    return fast & (tpot <= wanted.tpot)
