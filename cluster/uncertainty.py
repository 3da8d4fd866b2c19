"""Is a saving real? Errors of steps and of prices, carried through the search for counts.

answers + errors -> draws -> tables and prices -> counts again, near the answer -> Interval
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from chipsim.cluster.draws import (
    BlockError,
    Draws,
    Factors,
    chip_key,
    factors,
    price_names,
    priced,
    shares,
    step_names,
)
from chipsim.cluster.provision import FIELDS, provision
from chipsim.cluster.replicas import scaled
from chipsim.cluster.search import Search
from chipsim.cluster.simulate import REFERENCE, Cluster
from chipsim.cluster.spending import pool_price
from chipsim.cost.prices import book_of
from chipsim.cost.system import host_of
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.cluster.provision import Provision
    from chipsim.cluster.scenario import ReplicaSpec

NEAR = 0.25
"""Counts are searched again within this share of the answer's, moved by the drawn factors,
and one more either way; wider where the answer lies at an edge."""

Progress = Callable[[int, int, str], None]


class Interval(NamedTuple):
    """Percentiles of draws; None where so many draws have no answer."""

    p5: float | None
    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw.

    Attributes
    ----------
    factors : dict of str to Factors
        By chip.
    instances : tuple of dict or None
        Counts of each system; None where none near the answer holds.
    goals : tuple of float
        What they come to; infinite without counts.
    priced : tuple of float
        What the counts of the answers would come to: prices alone.
    """

    factors: Mapping[str, Factors]
    instances: tuple[dict[str, int] | None, ...]
    goals: tuple[float, ...]
    priced: tuple[float, ...]


@dataclass(frozen=True)
class Uncertainty:
    """Draws of one or two answers.

    Attributes
    ----------
    answers : tuple of Provision
        The answer, and the one that it is set beside.
    errors : tuple of BlockError
    draws : tuple of Draw
    seed : int
    correlation : float
    """

    answers: tuple[Provision, ...]
    errors: tuple[BlockError, ...]
    draws: tuple[Draw, ...]
    seed: int
    correlation: float

    @property
    def saved(self) -> float | None:
        """Share that the first answer saves of the second, as it stands; None with one."""
        return _saving([_goal(answer) for answer in self.answers])

    @property
    def goal(self) -> Interval:
        """Of what the first answer comes to."""
        return interval([each.goals[0] for each in self.draws])

    @property
    def saving(self) -> Interval | None:
        """Of the share that the first saves of the second; None with one answer."""
        return self._savings([each.goals for each in self.draws])

    @property
    def saving_by_prices(self) -> Interval | None:
        """The same at the answers' counts: what prices alone do."""
        return self._savings([each.priced for each in self.draws])

    @property
    def real(self) -> str:
        """``yes`` or ``no`` where 95 % of the draws agree; ``open``; empty with one answer."""
        found = self.saving
        if found is None:
            return ""
        if found.p5 is not None and found.p5 > 0.0:
            return "yes"
        return "no" if found.p95 is not None and found.p95 <= 0.0 else "open"

    @property
    def held(self) -> tuple[int, ...]:
        """Draws in which each system has an answer."""
        return tuple(
            sum(draw.instances[place] is not None for draw in self.draws)
            for place in range(len(self.answers))
        )

    def _savings(self, goals: Sequence[Sequence[float]]) -> Interval | None:
        found = [_saving(each) for each in goals]
        known = [each for each in found if each is not None]
        return interval(known) if len(self.answers) > 1 else None

    def record(self) -> dict[str, Any]:
        """As plain values."""
        pair = len(self.answers) > 1
        return {
            "draws": len(self.draws),
            "seed": self.seed,
            "correlation": self.correlation,
            "errors": [
                {"chip": e.chip, "block": e.block, "classes": dict(e.classes), "said": e.said}
                for e in self.errors
            ],
            "versus": self.answers[1].search.scenario.name if pair else None,
            "versus_pools": _counts(self.answers[1]) if pair else None,
            "versus_goal": _finite(_goal(self.answers[1])) if pair else None,
            "saving": self.saved,
            "goal_interval": self.goal._asdict(),
            "saving_interval": None if self.saving is None else self.saving._asdict(),
            "saving_by_prices": None
            if self.saving_by_prices is None
            else self.saving_by_prices._asdict(),
            "real": self.real,
            "held": list(self.held),
            "rows": [
                {
                    "factors": {chip: each._asdict() for chip, each in draw.factors.items()},
                    "pools": list(draw.instances),
                    "goals": [_finite(goal) for goal in draw.goals],
                    "saving": _known(_saving(draw.goals)),
                }
                for draw in self.draws
            ],
        }


def interval(values: Sequence[float]) -> Interval:
    """Percentiles 5, 50 and 95 by nearest rank, so that draws without an answer count.

    >>> interval([1.0, 2.0, 3.0, float("inf")])
    Interval(p5=1.0, p50=2.0, p95=None)
    """
    order = sorted(values)
    ranks = [max(0, math.ceil(share * len(order)) - 1) for share in (0.05, 0.5, 0.95)]
    return Interval(*(_finite(order[rank]) for rank in ranks))


def uncertain(
    answers: Sequence[Provision],
    errors: Sequence[BlockError],
    *,
    draws: int = 32,
    seed: int = 0,
    correlation: float = 0.5,
    progress: Progress | None = None,
) -> Uncertainty:
    """Draw step times and prices, and search the counts again near each answer.

    Parameters
    ----------
    answers : sequence of Provision
        One, or two that are set beside each other. Draws are common to both: a chip, a block
        or a price that both have is off by the same in both.
    errors : sequence of BlockError
        Of every chip of their pools and references.
    draws : int
        A power of two.
    seed : int
        Of the draws; the answers' own seeds are those of their workloads.
    correlation : float
        Part of a block's variance that its chips have in common, 0 ... 1.
    progress : callable, optional
        Told how many draws are done, of how many, and the last saving.

    Raises
    ------
    ConfigError
        An answer without counts, different goals, or a chip without an error.
    """
    _check(answers, errors, correlation)
    systems = [_System(answer, {each.chip: each for each in errors}) for answer in answers]
    names = step_names(errors)
    for system in systems:
        names += system.price_names()
    points = Draws(names, draws, seed)
    found = []
    for number in range(draws):
        found.append(_draw(systems, points, number, correlation))
        if progress is not None:
            saving = _known(_saving(found[-1].goals))
            progress(number + 1, draws, "" if saving is None else f"saves {saving:.1%}")
    return Uncertainty(tuple(answers), tuple(errors), tuple(found), seed, correlation)


def _check(
    answers: Sequence[Provision], errors: Sequence[BlockError], correlation: float
) -> None:
    for answer in answers:
        if answer.best is None:
            name = answer.search.scenario.name
            raise ConfigError(name, "--uncertainty", answer.reason, "a cluster that holds it")
    if len({answer.goal for answer in answers}) > 1:
        goals = ", ".join(answer.goal for answer in answers)
        raise ConfigError("--uncertainty", "goal", goals, "one goal for both")
    if answers[0].goal not in FIELDS and answers[0].goal not in ("chips", "instances"):
        raise ConfigError("--uncertainty", "goal", answers[0].goal, "a goal by name")
    if not 0.0 <= correlation <= 1.0:
        raise ConfigError("--correlation", "", correlation, "0 to 1")
    known = {each.chip for each in errors}
    for answer in answers:
        for spec in specs(answer).values():
            if chip_key(spec) not in known:
                raise ConfigError("--uncertainty", "errors", chip_key(spec), "one per chip")


def specs(answer: Provision) -> dict[str, ReplicaSpec]:
    """Kinds of instances of an answer: its pools' and its reference's."""
    scenario = answer.search.scenario
    found: dict[str, ReplicaSpec] = dict(scenario.pools)
    if scenario.slo.slowdown is not None:
        found[REFERENCE] = scenario.slo.slowdown.reference
    return found


class _System:
    """One answer, ready to be searched again under other steps and prices."""

    def __init__(self, answer: Provision, errors: Mapping[str, BlockError]) -> None:
        self.answer, self.cluster = answer, answer.search.cluster
        self.specs = specs(answer)
        self.errors = {name: errors[chip_key(spec)] for name, spec in self.specs.items()}
        made = self.cluster.made
        self.shares = {
            name: shares(spec, made[name], self.cluster) for name, spec in self.specs.items()
        }
        scenario = answer.search.scenario
        self.book, self.host = book_of(scenario.prices), host_of(scenario.host)
        self.uses_prices = answer.goal in ("cost", "silicon")

    def price_names(self) -> list[str]:
        if not self.uses_prices:
            return []
        return [
            *price_names(self.book, self.book.name),
            *price_names(self.host, self.host.name),
        ]

    def factors(self, points: Draws, number: int, correlation: float) -> dict[str, Factors]:
        """By pool, and of the reference."""
        return {
            name: factors(self.errors[name], self.shares[name], points, number, correlation)
            for name in self.specs
        }

    def weights(self, points: Draws, number: int) -> dict[str, float]:
        """What an instance of each pool counts under drawn prices."""
        scenario, goal = self.answer.search.scenario, self.answer.goal
        found = {}
        for name, pool in scenario.pools.items():
            chips = self.cluster.capacity(name).chips
            if goal in ("chips", "instances"):
                found[name] = float(chips) if goal == "chips" else 1.0
                continue
            price = self.cluster.prices[name]
            if self.uses_prices:
                book = priced(self.book, self.book.name, points, number)
                host = priced(self.host, self.host.name, points, number)
                price = pool_price(scenario, pool, chips, book, host)
            found[name] = float(getattr(price, FIELDS[goal]))
        return found

    def again(
        self, moved: Mapping[str, Factors], weights: Mapping[str, float]
    ) -> tuple[dict[str, int] | None, float]:
        """The cheapest counts near the answer, and what they come to."""
        search = self._search(moved)
        span = {name: self._span(name, moved[name]) for name in search.pools}
        for _ in range(8):
            most = max(2, sum(high for _, high in span.values()))
            found = provision(search, weights=weights, most=most, ranges=span)
            if found.best is None:
                if search.alone_reason():
                    break
                wider = {name: (low, 2 * high + 2) for name, (low, high) in span.items()}
            else:
                best = found.best.instances
                low = [name for name, (least, _) in span.items() if 0 < least == best[name]]
                if not low:
                    return dict(best), found.best.goal
                wider = {
                    name: (least // 2 if name in low else least, high)
                    for name, (least, high) in span.items()
                }
            span = wider
        return (None, math.inf) if found.best is None else (dict(best), found.best.goal)

    def _search(self, moved: Mapping[str, Factors]) -> Search:
        search = self.answer.search
        made = {
            name: replace(replica, table=scaled(replica.table, *moved[name]))
            for name, replica in self.cluster.made.items()
        }
        cluster = Cluster(search.scenario, self.cluster.workload, made=made)
        return Search(
            search.scenario,
            search.seeds,
            workloads=search.workloads,
            journal=search.journal,
            workers=search.workers,
            cluster=cluster,
        )

    def _span(self, name: str, moved: Factors) -> tuple[int, int]:
        best = self.answer.best
        count = 0 if best is None else best.instances[name]
        role = self.answer.search.scenario.pools[name].role
        factor = {"prefill": moved.prefill, "decode": moved.decode}.get(
            role, (moved.prefill + moved.decode) / 2.0
        )
        middle = count * factor
        return max(0, math.floor(middle * (1 - NEAR)) - 1), math.ceil(middle * (1 + NEAR)) + 1


def _draw(systems: Sequence[_System], points: Draws, number: int, correlation: float) -> Draw:
    by_chip: dict[str, Factors] = {}
    instances, goals, alone = [], [], []
    for system in systems:
        moved = system.factors(points, number, correlation)
        by_chip |= {chip_key(system.specs[name]): each for name, each in moved.items()}
        weights = system.weights(points, number)
        counts, goal = system.again(moved, weights)
        instances.append(counts)
        goals.append(goal)
        best = system.answer.best
        own = {} if best is None else best.instances
        alone.append(sum(count * weights[name] for name, count in own.items()))
    return Draw(by_chip, tuple(instances), tuple(goals), tuple(alone))


def _saving(goals: Sequence[float]) -> float | None:
    """1 - first / second: minus infinity where only the second has an answer."""
    if len(goals) < 2:
        return None
    first, second = goals[:2]
    if math.isinf(first):
        return -math.inf
    return 1.0 if math.isinf(second) else 1.0 - first / second


def _goal(answer: Provision) -> float:
    return math.inf if answer.best is None else answer.best.goal


def _counts(answer: Provision) -> dict[str, int] | None:
    return None if answer.best is None else dict(answer.best.instances)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _known(value: float | None) -> float | None:
    return None if value is None else _finite(value)
