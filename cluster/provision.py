"""The cheapest counts of instances that hold an objective, found by running them.

scenario -> counts in order of price -> bounds -> runs -> the first that holds under every seed

Nothing is assumed of the set of counts that hold: with pools that help each other out it is
ragged, so every division of a total is run unless a bound refuses it.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from chipsim.cluster.spending import Price, cluster_price
from chipsim.errors import ChipsimError, ConfigError

if TYPE_CHECKING:
    from chipsim.cluster.results import Simulation
    from chipsim.cluster.search import Candidate, Search

Goal = Literal["cost", "silicon", "power", "chips", "instances"]
"""What is least: US dollars per hour, or of the chips alone, watts of TDP, or counts."""

GOALS = ("cost", "silicon", "power", "chips", "instances")

FIELDS = {"cost": "usd_per_hour", "silicon": "chips_usd", "power": "tdp_w"}
"""Goals that are fields of `Price`."""

MOST_COUNTS = 10**6
"""Combinations of counts that a search takes."""

AT_ONCE, EACH_AT_ONCE = 8, 2
"""Counts that are judged together, for one answer and for one of each seed; what is wanted of
seeds is asked again behind them, so that few are run beyond an answer."""

IN_VAIN = 128
"""Runs in which the first seed found nothing, until it is asked whether anything can help."""

Floats = npt.NDArray[np.float64]
Progress = Callable[[int, int, str], None]
"""Told how many counts are decided, of how many at the most, and the best so far."""


@dataclass(frozen=True)
class Provision:
    """The answer of a search.

    Attributes
    ----------
    search : Search
        Scenario, tables, workloads and seeds.
    goal : str
        `Goal`, or ``weights``.
    best : Candidate or None
        Cheapest that holds under every seed; of several the one with the largest margin.
    by_seed : tuple of Candidate or None
        Cheapest under each seed alone.
    tried : tuple of Candidate
        All that was run, in order of the goal.
    refused : int
        Counts that a bound refused without a run.
    reason : str
        Why no cluster holds the objective; empty where one does.
    wall_s : float
    """

    search: Search
    goal: str
    best: Candidate | None
    by_seed: tuple[Candidate | None, ...]
    tried: tuple[Candidate, ...]
    refused: int
    reason: str
    wall_s: float

    @property
    def frontier(self) -> list[Candidate]:
        """Counts that hold under every seed, of which no others that hold are part."""
        good = [each for each in self.tried if each.holds]
        return [
            each
            for each in good
            if not any(
                other is not each
                and all(other.instances[p] <= n for p, n in each.instances.items())
                for other in good
            )
        ]

    def price(self, candidate: Candidate) -> Price | None:
        """What a candidate costs and draws; None where its chips have no price."""
        try:
            return cluster_price(self.search.cluster.prices, candidate.instances)
        except ChipsimError:
            return None

    @property
    def decided(self) -> str:
        """The answer in one line."""
        name, best = self.search.scenario.name, self.best
        if best is None:
            return f"{name}: no cluster holds it: {self.reason}"
        seeds = ", ".join(map(str, self.search.seeds))
        margin = best.worst.margin
        left = "" if margin is None else f" with {100.0 * margin:.3g} % to spare"
        return (
            f"{name}: {counted(best.instances)} hold it under seeds {seeds}; "
            f"{best.worst.binding} binds{left}"
        )

    @functools.cached_property
    def run(self) -> Simulation | None:
        """The best cluster serving the workload of the first seed."""
        if self.best is None:
            return None
        cluster, served = self.search.cluster, self.search.workloads[0]
        return cluster.run(instances=self.best.instances, workload=served)


def provision(
    search: Search,
    goal: Goal = "cost",
    *,
    most: int = 64,
    ranges: Mapping[str, tuple[int, int]] | None = None,
    weights: Mapping[str, float] | None = None,
    spare: float = 0.0,
    above: float = 0.0,
    common: bool = True,
    progress: Progress | None = None,
) -> Provision:
    """Counts of every pool that hold the scenario's objective at the least cost.

    Parameters
    ----------
    search : Search
        A scenario with its seeds; the answer holds under each of them.
    goal : str
        What is to be least (`Goal`).
    most : int
        Instances in all.
    ranges : mapping of str to (int, int), optional
        Fewest and most instances of a pool.
    weights : mapping of str to float, optional
        What one instance of each pool counts, instead of ``goal``.
    spare : float
        Counts up to this share above the best are run too, for the frontier.
    above : float
        Counts of a smaller goal are left out, where it is known that they do not hold.
    common : bool
        Whether one answer is sought for all seeds; else the search ends where each seed has
        one of its own, and ``best`` may be None.
    progress : callable, optional
        See `Progress`.

    Raises
    ------
    ConfigError
        An objective without limits, ranges that allow nothing, too many counts, or a goal
        that the chips do not tell.

    Examples
    --------
    >>> from chipsim.cluster.search import Search
    >>> answer = provision(Search("chat-8b"), "chips", most=8)
    >>> answer.best.instances, answer.best.holds
    ({'mixed': 2}, True)
    """
    began = time.perf_counter()
    _check_limits(search)
    each = _weights(search, goal, weights)
    counts, price = _in_order(search, each, most, dict(ranges or {}))
    counts, price = counts[price >= above], price[price >= above]
    walk = _Walk(search, counts, price, spare, common, progress)
    tried, reason = _tried(search, walk)
    if reason:  # no count helps: nothing was worth a run
        walk = _Walk(search, counts[:0], price, spare, common, progress)
    elif walk.best is None and not walk.each_seed:
        reason = _exhausted(tried, walk, most)
    return Provision(
        search,
        goal if weights is None else "weights",
        walk.best,
        tuple(walk.by_seed),
        tuple(tried),
        walk.refused,
        reason,
        time.perf_counter() - began,
    )


def _tried(search: Search, walk: _Walk) -> tuple[list[Candidate], str]:
    """Counts that were run, or why a request alone breaks the objective.

    That takes a run of all requests one after the other, longer than most that fail: it is
    made once so many runs were in vain, or at the end.
    """
    tried: list[Candidate] = []
    asked = False
    for found in walk:
        tried += [found] * (not found.refused)
        if len(tried) >= IN_VAIN and walk.by_seed[0] is None and not asked:
            asked = True
            if reason := search.alone_reason():
                return [], reason
    reason = search.alone_reason() if walk.by_seed[0] is None and not asked else ""
    return ([], reason) if reason else (tried, "")


class _Walk:
    """Judges counts in order of price until what is left is dearer than the best."""

    def __init__(
        self,
        search: Search,
        counts: npt.NDArray[np.int64],
        price: Floats,
        spare: float,
        common: bool,
        progress: Progress | None,
    ) -> None:
        self.search, self.counts, self.price = search, counts, price
        self.share, self.common, self.progress = 1.0 + max(spare, 1e-12), common, progress
        self.best: Candidate | None = None
        self.by_seed: list[Candidate | None] = [None] * len(search.seeds)
        self.refused = 0
        self.last: Candidate | None = None

    def __iter__(self) -> Iterator[Candidate]:
        size = AT_ONCE if self.common else EACH_AT_ONCE
        for start in range(0, len(self.counts), size):
            rows = [
                (tuple(self.counts[i].tolist()), float(self.price[i]))
                for i in range(start, min(len(self.counts), start + size))
                if self._near(float(self.price[i]))
            ]
            if not rows or (self.each_seed and not self.common):
                return
            open_seeds = [each is None for each in self.by_seed]
            for each in self.search.candidates(rows, open_seeds):
                self._take(each)
                yield each
            if self.progress is not None:
                words = "" if self.best is None else counted(self.best.instances)
                self.progress(start + len(rows), len(self.counts), words)

    @property
    def each_seed(self) -> bool:
        """Whether each seed has an answer."""
        return all(each is not None for each in self.by_seed)

    def _near(self, price: float) -> bool:
        return self.best is None or price <= self.best.goal * self.share

    def _take(self, found: Candidate) -> None:
        self.refused += found.refused
        self.last = found
        for place, verdict in enumerate(found.verdicts):
            if verdict is not None and verdict.holds and self.by_seed[place] is None:
                self.by_seed[place] = found
        if found.holds and (self.best is None or _better(found, self.best)):
            self.best = found


def _better(one: Candidate, other: Candidate) -> bool:
    """As cheap, and with more margin."""
    if one.goal > other.goal * (1.0 + 1e-12):
        return False
    return (one.worst.margin or 0.0) > (other.worst.margin or 0.0)


def counted(instances: Mapping[str, int]) -> str:
    """``18 prefill + 7 decode``."""
    return " + ".join(f"{count} {name}" for name, count in instances.items())


def _check_limits(search: Search) -> None:
    slo = search.scenario.slo
    parts = [slo.ttft, slo.itl, slo.tpot, slo.e2e]
    if slo.slowdown is not None:
        parts += [slo.slowdown.ttft, slo.slowdown.tbt, slo.slowdown.e2e]
    if not any(parts):
        raise ConfigError(search.scenario.name, "slo", "no limit", "a limit on a percentile")


def _weights(search: Search, goal: str, weights: Mapping[str, float] | None) -> Floats:
    """What one instance of each pool counts."""
    cluster = search.cluster
    if weights is not None:
        for name in search.pools:
            if not weights.get(name, 0.0) > 0.0:
                allowed = "a number above 0 for each of " + ", ".join(search.pools)
                raise ConfigError("provision", "weights", weights.get(name), allowed)
        return np.array([weights[name] for name in search.pools])
    if goal not in GOALS:
        raise ConfigError("provision", "goal", goal, ", ".join(GOALS))
    if goal == "instances":
        return np.ones(len(search.pools))
    if goal == "chips":
        return np.array([float(cluster.capacity(name).chips) for name in search.pools])
    return np.array(
        [float(getattr(cluster.prices[name], FIELDS[goal])) for name in search.pools]
    )


def _in_order(
    search: Search, each: Floats, most: int, ranges: dict[str, tuple[int, int]]
) -> tuple[npt.NDArray[np.int64], Floats]:
    """All counts in order of price, then of total, then of the pools; and their prices."""
    where, names = search.scenario.name, search.pools
    for name in ranges:
        if name not in names:
            raise ConfigError(where, "range", name, ", ".join(names))
    spans = [range(low, min(high, most) + 1) for low, high in
             (ranges.get(name, (0, most)) for name in names)]  # fmt: skip
    size = int(np.prod([float(len(span)) for span in spans]))
    if not 0 < size <= MOST_COUNTS:
        raise ConfigError(where, "range", f"{size} counts", f"1 to {MOST_COUNTS:,} in all")
    counts = np.array(list(itertools.product(*spans)), np.int64)
    roles = [search.scenario.pools[name].role for name in names]
    prefills = np.array([role != "decode" for role in roles])
    decodes = np.array([role != "prefill" for role in roles])
    serves = (counts @ prefills > 0) & (counts @ decodes > 0) & (counts.sum(axis=1) <= most)
    counts = counts[serves]
    if not len(counts):
        raise ConfigError(where, "range", f"at most {most} instances", "both phases served")
    price = counts @ each
    keys = (*counts.T[::-1], counts.sum(axis=1), np.round(price, 9))
    order = np.lexsort(keys)
    return counts[order], price[order]


def _exhausted(tried: Sequence[Candidate], walk: _Walk, most: int) -> str:
    """What was nearest, of all counts that do not hold."""
    said = f"none of {len(tried) + walk.refused} counts up to {most} instances holds it"
    known = [each for each in tried if each.worst.margin is not None]
    if walk.last is None:
        return said
    if not known:
        last, why = counted(walk.last.instances), walk.last.worst.binding
        if walk.last.refused:
            return f"{said}: {why} is too much even for {last}"
        return f"{said}: {why} is broken even by {last}"
    near = max(known, key=lambda each: each.worst.margin or 0.0)
    margin = -100.0 * (near.worst.margin or 0.0)
    off = f"{near.worst.binding} over by {margin:.3g} %"
    return f"{said}; nearest: {counted(near.instances)}, {off}"
