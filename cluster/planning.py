"""The best use of chips that are owned: plans, roles, split, chunk and batch, all at once.

inventory + scenario -> layouts -> bounds -> runs, the best bound first -> Ranking

A layout is left out for good where a bound says that it cannot come before those that are
ranked already; nothing else is left out but plans (`chipsim.cluster.inventory.kinds`).
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from chipsim.cluster.company import company_share
from chipsim.cluster.journal import Journal
from chipsim.cluster.plan_space import WIDEST, PlanSpace, limited, with_whole_requests
from chipsim.cluster.ranking import PlanGoal, Planned, Ranking, Tuning
from chipsim.cluster.search import ALONE_TOLERANCE, grows
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.cluster.inventory import Owned
    from chipsim.cluster.scenario import Scenario
    from chipsim.cluster.simulate import Cluster

GOALS = ("rate", "latency")
CHUNKS = (512, 2048, 8192)
BATCHES = (64, 256, 512)
LONGEST_S = 1e6
"""Of arrivals in a run: eleven days."""
COARSE = 4
"""Steps of the grid between rates at which bounds are asked."""

Floats = npt.NDArray[np.float64]
Progress = Callable[[int, int, str], None]


def plan_inventory(
    inventory: Sequence[Owned],
    scenario: Scenario,
    *,
    goal: PlanGoal = "rate",
    seeds: Sequence[int] = (0,),
    chunks: Sequence[int] = CHUNKS,
    batches: Sequence[int] = BATCHES,
    plans: Sequence[str] = (),
    top: int = 10,
    duration_s: float = 60.0,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> Ranking:
    """Rank the ways to serve a workload with chips that are owned.

    Parameters
    ----------
    inventory : sequence of Owned
    scenario : Scenario
        Model, workload, objective and hand-off; its pools do not matter.
    goal : str
        `PlanGoal`.
        Where it limits gaps between tokens (``itl``) but nothing that a whole request
        takes, the same limit is set on the mean gap of each request (``tpot``): gaps alone
        do not see requests that wait for a place in a decode batch, and an overloaded
        decode side would pass.
    seeds : sequence of int
        Of the workload; a rate holds where it does under each.
    chunks, batches : sequence of int
        Tokens of a step and sequences of a rank that are tried.
    plans : sequence of str
        Plans of an instance; those of `kinds` unless given.
    top : int
        Layouts that are ranked.
    duration_s : float
        Arrivals of the largest rate that work allows: how long runs are.
    journal : Journal, optional
        Verdicts kept from earlier, and for later.
    progress : callable, optional
        Told how many layouts are decided, of how many, and the best so far.

    Raises
    ------
    ConfigError, InfeasibleError
        No limit in the objective, chips that cannot hold the model, a workload whose rate
        cannot be changed, and as `Cluster`.
    """
    began = time.perf_counter()
    if goal not in GOALS:
        raise ConfigError("plan", "goal", goal, ", ".join(GOALS))
    if not 1.0 <= duration_s <= LONGEST_S:
        raise ConfigError("plan", "duration_s", duration_s, f"1 to {LONGEST_S:.0e} seconds")
    if not limited(scenario):
        raise ConfigError(scenario.name, "slo", "no limit", "a limit on a percentile")
    scenario = with_whole_requests(scenario)
    search = PlanSpace(
        tuple(inventory), scenario, tuple(seeds), tuple(plans), (tuple(chunks), tuple(batches)),
        duration_s, Journal() if journal is None else journal,
    )  # fmt: skip
    walk = _ByRate if goal == "rate" else _ByLatency
    found = walk(search, top, progress)
    rows = tuple(found.ranked())
    return Ranking(
        scenario,
        tuple(inventory),
        goal,
        tuple(seeds),
        rows,
        len(search.workloads[0]),
        len(search.layouts),
        found.tried,
        search.runs,
        "" if rows else found.reason,
        time.perf_counter() - began,
    )


class _Walk(ABC):
    """Layouts in the order of their bounds, until none can come before those ranked."""

    reason = ""

    def __init__(self, search: PlanSpace, top: int, progress: Progress | None) -> None:
        self.search, self.top, self.progress = search, top, progress
        self.tried = 0
        self.best: list[tuple[float, int, Tuning, str]] = []
        self.bounds = self.keys()
        order = np.argsort(self.bounds, kind="stable")
        for done, row in enumerate(order.tolist()):
            if not self._may(float(self.bounds[row])):
                break
            if self.progress is not None:
                words = self.search.layouts.text(self.best[0][1]) if self.best else ""
                self.progress(done, len(order), words)
            self.tried += 1
            found = self.take(row, float(self.bounds[row]))
            if found is not None:
                self.best = sorted([*self.best, found], key=lambda each: each[0])[:top]

    @property
    def worst(self) -> float:
        """Key that a layout must come before to be ranked."""
        return self.best[-1][0] if len(self.best) == self.top else math.inf

    def _may(self, key: float) -> bool:
        return math.isfinite(key) and key < self.worst

    @abstractmethod
    def keys(self) -> Floats:
        """The least key that each layout may reach; infinite where it is ruled out."""

    @abstractmethod
    def take(self, row: int, bound: float) -> tuple[float, int, Tuning, str] | None:
        """The key that a layout reaches with its best tuning; None where it is no use."""

    def ranked(self) -> Iterator[Planned]:
        """Those ranked, run once more for their figures."""
        for key, row, tuning, breaks in self.best:
            cluster = self.search.cluster(row, tuning)
            value, rate = self.figures(key)
            run = cluster.run(workload=self.search.workloads[0].at_rate(rate))
            yield Planned(
                self.search.layouts.text(row),
                tuple(self.search.layouts.pools(row)),
                tuning,
                value,
                self.figures(float(self.bounds[row]))[0],
                breaks,
                run,
            )

    @abstractmethod
    def figures(self, key: float) -> tuple[float, float]:
        """What a key stands for, and the rate of its run."""


class _ByRate(_Walk):
    """Keys are steps of the grid of rates, the largest first: so their negative."""

    reason = "no rate of the grid is held by any layout"

    def keys(self) -> Floats:
        search = self.search
        served, counts = search.workloads[0], search.layouts.counts
        found = np.full(len(counts), math.inf)
        for step in range(search.top - 1, search.top - WIDEST, -COARSE):
            open_rows = np.flatnonzero(np.isinf(found))
            if not len(open_rows):
                break
            allowed = search.bounds(served, step).allows(counts[open_rows])
            found[open_rows[allowed]] = -float(step + COARSE - 1)
        return found

    def take(self, row: int, bound: float) -> tuple[float, int, Tuning, str] | None:
        search, best = self.search, None
        high = int(-bound)
        for tuning in search.tunings:
            key = self.worst if best is None else min(self.worst, best[0])
            least = search.top - WIDEST if math.isinf(key) else int(-key) + 1
            if least > high:
                break
            held = self._held(search.cluster(row, tuning), least, high)
            if held is not None:
                best = (-float(held[0]), row, tuning, held[1])
        return best

    def _held(self, cluster: Cluster, least: int, high: int) -> tuple[int, str] | None:
        """The largest step that holds, from one that must, and what breaks the next."""
        if not self.search.judged(cluster, least).holds:
            return None
        low, above, stride, breaks = least, high + 1, 1, "work"
        while low + 1 < above:
            step = min(low + stride, above - 1) if breaks == "work" else (low + above) // 2
            verdict = self.search.judged(cluster, step)
            if verdict.holds:
                low, stride = step, 2 * stride
            else:
                above, breaks = step, verdict.binding
        return low, breaks

    def figures(self, key: float) -> tuple[float, float]:
        rate = self.search.rate_of(int(-key))
        return rate, rate


class _ByLatency(_Walk):
    """Keys are mean E2E at the scenario's rate."""

    reason = "no layout holds the objective at the scenario's rate"

    def keys(self) -> Floats:
        search = self.search
        allowed = search.bounds(search.workloads[0], 0).allows(search.layouts.counts)
        return np.where(allowed, self._alone(), math.inf)

    def _alone(self) -> Floats:
        """Mean E2E of requests that are each alone on the quickest instance of each phase."""
        search, served = self.search, self.search.workloads[0]
        columns, steps = search.layouts.columns, served.output_tokens - 1
        there, share = search.layouts.counts > 0, 1.0
        times = np.full((2, len(columns), len(served)), math.inf)
        for number, column in enumerate(columns):
            table = search.menu.replicas[column.name].table
            if not grows(table.seconds):
                return np.zeros(len(there))
            share = min(share, company_share(table, column.role))
            prefill, decode = table.alone_s(served.prompt_tokens)
            if column.role != "decode":
                times[0, number] = prefill
            if column.role != "prefill":
                times[1, number] = steps * decode
        alike, place = np.unique(np.packbits(there, axis=1), axis=0, return_inverse=True)
        kinds = np.unpackbits(alike, axis=1, count=len(columns)).astype(bool)
        means = [times[:, held].min(axis=1).sum(axis=0).mean() for held in kinds]
        total: Floats = np.array(means)[place.ravel()] * share * (1.0 - ALONE_TOLERANCE)
        return total

    def take(self, row: int, bound: float) -> tuple[float, int, Tuning, str] | None:
        search, best = self.search, None
        for tuning in search.tunings:
            if best is not None and best[0] <= bound:
                break
            cluster = search.cluster(row, tuning)
            if not search.judged(cluster, 0).holds:
                continue
            means = [
                float(cluster.run(workload=each.at_rate(search.rate), log_gaps=False)
                      .times["e2e_s"].mean())
                for each in search.workloads
            ]  # fmt: skip
            mean = float(np.mean(means))
            if mean < min(self.worst, best[0] if best else math.inf):
                best = (mean, row, tuning, "")
        return best

    def figures(self, key: float) -> tuple[float, float]:
        return key, self.search.rate
