"""Whether a cluster of given counts holds its objective: a run, stopped early if it can be.

counts + workload -> run, looked at now and then: surely broken? -> Verdict
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chipsim.cluster.engine import codes

if TYPE_CHECKING:
    from chipsim.cluster.results import Simulation
    from chipsim.cluster.simulate import Cluster
    from chipsim.cluster.workload import Workload

Floats = npt.NDArray[np.float64]

FEW_REQUESTS = 2000
"""A run of fewer is not worth stopping early."""

PARTS = tuple(part / 40 for part in (*range(1, 10), *range(10, 40, 2)))
"""Shares of the arrivals at which it is asked whether the rest matters."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one cluster under one seed.

    Attributes
    ----------
    holds : bool
        Every request was served, and every limit of the objective holds.
    binding : str
        The limit with the least margin, as ``p99 ttft_slowdown``; or what was not served.
    margin : float or None
        Share of that limit that is left, below 0 where it is broken; None where the run
        did not get far enough to say (``early``, or requests that were not served).
    early : bool
        The run was stopped: its first part proves that the objective is broken.
    reached : dict of str to float
        What every limit's percentile reached; empty if ``early``.
    bound : bool
        A bound refused it: nothing was run.
    """

    holds: bool
    binding: str
    margin: float | None = None
    early: bool = False
    reached: Mapping[str, float | None] | None = None
    bound: bool = False

    def record(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "holds": self.holds,
            "binding": self.binding,
            "margin": self.margin,
            "early": self.early,
            "reached": dict(self.reached or {}),
        }


def judge(cluster: Cluster, workload: Workload, instances: Mapping[str, int]) -> Verdict:
    """Run a cluster and say whether it holds its objective.

    Raises
    ------
    ChipsimError
        As `Cluster.run`.
    """
    broken, limits = "", limits_of(cluster, workload)

    def enough(rows: npt.NDArray[np.void], now_s: float) -> bool:
        nonlocal broken
        arrived = int(np.searchsorted(workload.arrival_s, now_s, side="right"))
        broken = surely_broken(limits, rows[:arrived], now_s)
        return bool(broken)

    count = len(workload)
    early = count >= FEW_REQUESTS and not workload.closed_loop
    run = cluster.run(
        instances=instances,
        workload=workload,
        log_gaps=bool(cluster.scenario.slo.itl),
        looks=[float(workload.arrival_s[int(part * count)]) for part in PARTS] if early else (),
        enough=enough if early else None,
    )
    return Verdict(False, broken, early=True) if broken else verdict(run)


def verdict(run: Simulation) -> Verdict:
    """Of a run that went to its end."""
    counts, limits = run.counts, run.objectives
    reached = {
        each.name: each.reached if math.isfinite(each.reached) else None for each in limits
    }
    lost = {kind: counts[kind] for kind in ("rejected", "unfinished") if counts[kind]}
    if lost:
        why = ", ".join(f"{count} {kind}" for kind, count in lost.items())
        return Verdict(False, f"{why} of {counts['requests']} requests", reached=reached)
    if not limits:
        return Verdict(True, "no limit", reached=reached)
    worst = min(limits, key=lambda each: each.margin)
    margin = worst.margin if math.isfinite(worst.margin) else None
    return Verdict(run.holds, worst.name, margin, reached=reached)


class Limit(NamedTuple):
    """One limit on a percentile over requests."""

    metric: str  # ttft, tbt, tpot, e2e
    percentile: float
    each: Floats  # seconds that each request may take, infinite where it is not judged
    breaking: int  # how many requests over it break it for certain

    @property
    def name(self) -> str:
        """As ``p99 ttft``."""
        return f"p{self.percentile:g} {self.metric}"


def limits_of(cluster: Cluster, workload: Workload) -> list[Limit]:
    """Limits over requests, slowdowns turned into seconds (``itl`` is left out)."""
    slo = cluster.scenario.slo
    early = workload.arrival_s < slo.warm_up
    late = int(len(workload) - early.sum())

    def limit(metric: str, name: str, seconds: float | Floats) -> Limit:
        share = float(name.removeprefix("p"))
        return Limit(metric, share, np.where(early, np.inf, seconds), breaking(late, share))

    found = [
        limit(metric, name, seconds)
        for metric in ("ttft", "tpot", "e2e")
        for name, seconds in getattr(slo, metric).items()
    ]
    alone = cluster.alone(workload)
    if slo.slowdown is not None and alone is not None:
        prefill, decode = alone
        base = {
            "ttft": prefill,
            "tbt": decode,
            "e2e": prefill + (workload.output_tokens - 1) * decode,
        }
        found += [
            limit(metric, name, ratio * base[metric])
            for metric in base
            for name, ratio in getattr(slo.slowdown, metric).items()
        ]
    return found


def breaking(count: int, percentile: float) -> int:
    """How many of ``count`` values over a limit put a percentile over it, at the least.

    With values in order, `numpy.percentile` lies on or above entry
    ``floor((count - 1) p / 100)``.

    >>> breaking(1000, 99.0)
    11
    """
    return count - math.floor((count - 1) * percentile / 100.0)


def surely_broken(limits: Sequence[Limit], rows: npt.NDArray[np.void], now_s: float) -> str:
    """The limit that a run can no longer hold; empty where there is none.

    Parameters
    ----------
    limits : sequence of Limit
    rows : structured array
        The requests as they are at the time; those that come later may be left out.

    Notes
    -----
    A request that waits has waited at least so long; a percentile is over its limit as soon
    as enough requests are, whatever happens to the others.
    """
    if (rows["status"] == codes.REJECTED).any():
        return "requests rejected"
    least = _least(rows, now_s, {limit.metric for limit in limits})
    for limit in limits:
        over = np.count_nonzero(least[limit.metric] > limit.each[: len(rows)])
        if over >= limit.breaking:
            return limit.name
    return ""


def _least(rows: npt.NDArray[np.void], now_s: float, wanted: set[str]) -> dict[str, Floats]:
    """Seconds that the wanted metrics of each request reach at the least, known at a time.

    What has not happened yet happens now at the earliest. Rows are wide, and this is asked
    often: each column is read once, and only if it is needed.
    """
    arrival = np.fmin(rows["arrival_s"], now_s)
    first = np.fmin(rows["first_token_s"], now_s)
    found = {"ttft": first - arrival}
    if not wanted - {"ttft"}:
        return found
    until = np.fmin(rows["finish_s"], now_s)
    decoding, output = until - first, rows["output"]
    if "tbt" in wanted:
        found["tbt"] = decoding / output
    if "tpot" in wanted:
        found["tpot"] = decoding / np.maximum(1, output - 1)
    if "e2e" in wanted:
        found["e2e"] = until - arrival
    return found
