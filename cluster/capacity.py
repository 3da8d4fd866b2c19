"""The largest rate at which a cluster holds its objective, on a grid of rates.

Rates are tried downwards from one that work alone rules out, so nothing is assumed of the
rates between: a smaller one need not hold because a larger one does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from chipsim.cluster.bounds import Bounds
from chipsim.cluster.verdicts import Verdict, judge
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.cluster.simulate import Cluster
    from chipsim.cluster.workload import Workload

GRID = 0.01
"""Share of the ruled-out rate from one rate to the next."""

DOUBLINGS = 24
"""Of the rate at the most, until work alone rules it out."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The largest rate of a cluster.

    Attributes
    ----------
    rate_rps : float or None
        Requests/s; None where no rate of the grid holds.
    ruled_out_rps : float
        A rate that work alone rules out.
    verdict : Verdict
        At ``rate_rps``, or at the smallest rate tried.
    """

    rate_rps: float | None
    ruled_out_rps: float
    verdict: Verdict

    def record(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "capacity_rps": self.rate_rps,
            "ruled_out_rps": self.ruled_out_rps,
            "binding": self.verdict.binding,
            "margin": self.verdict.margin,
        }


def capacity(cluster: Cluster, workload: Workload, instances: Mapping[str, int]) -> Capacity:
    """The largest rate of a grid at which the same requests are served within the objective.

    Raises
    ------
    ConfigError
        Requests that all arrive at once, or an objective that no rate breaks for certain.
    """
    high = _ruled_out(cluster, workload, instances)
    found = Verdict(False, "no rate")
    for share in np.arange(1.0 - GRID, 0.0, -GRID):
        rate = float(share * high)
        found = judge(cluster, workload.at_rate(rate), instances)
        if found.holds:
            return Capacity(rate, high, found)
    return Capacity(None, high, found)


def _ruled_out(cluster: Cluster, workload: Workload, instances: Mapping[str, int]) -> float:
    """A rate that work alone rules out, within 1 % of the least."""

    def refused(rate: float) -> bool:
        return bool(Bounds(cluster, workload.at_rate(rate)).refuses(instances))

    high = workload.rate_rps
    for _ in range(DOUBLINGS):
        if refused(high):
            break
        high *= 2.0
    else:
        name = cluster.scenario.name
        raise ConfigError(name, "slo", "no rate is ruled out", "a limit on TTFT, or on E2E")
    low = 0.0
    while high - low > 0.01 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if refused(middle) else (middle, high)
    return high
