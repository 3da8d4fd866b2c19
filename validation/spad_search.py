"""The search for SPAD's cheapest clusters: counts of machines, seed by seed.

trace + system + assumptions -> counts near what a short trace needs -> Cell
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chipsim.cluster.provision import Provision, provision
from chipsim.cluster.search import Candidate, Search
from chipsim.cluster.simulate import scenario_workload
from chipsim.validation.spad_clusters import TRACES, Assumptions, System, scenario

if TYPE_CHECKING:
    from chipsim.cluster.journal import Journal
    from chipsim.cluster.workload import Workload


@dataclass(frozen=True)
class Cell:
    """One cell of the cluster table.

    Attributes
    ----------
    trace : str
    system : System
    given : Assumptions
    answer : Provision
    """

    trace: str
    system: System
    given: Assumptions
    answer: Provision

    @property
    def found(self) -> list[Candidate]:
        """Cheapest counts of each seed that has any."""
        return [each for each in self.answer.by_seed if each is not None]

    def figure(self, of: str) -> list[float]:
        """``machines``, ``cost`` or ``tdp`` of each seed's answer."""
        each = self.system.weights(of) if of in ("cost", "tdp") else None
        return [
            sum(n * (1.0 if each is None else each[p]) for p, n in one.instances.items())
            / self.given.served.instances
            for one in self.found
        ]

    @property
    def instances(self) -> int | None:
        """Of the smallest answer, in all; None without one."""
        return min((sum(each.instances.values()) for each in self.found), default=None)

    @property
    def splits(self) -> list[str]:
        """``18+7`` of each seed."""
        return ["+".join(str(n) for n in one.instances.values()) for one in self.found]

    @property
    def holds(self) -> bool:
        """Whether every seed has an answer."""
        return len(self.found) == len(self.given.seeds)


def middle(values: Sequence[float]) -> float:
    """The median, one of the values: the lower one of two."""
    return sorted(values)[(len(values) - 1) // 2]


MOST, FAR = 64, 2
"""Machines in all that a search goes up to; and times what something alike needed."""

NEAR = 0.95
"""Share of the machines that a shorter or alike search needed, below which counts are run
only if the answer lies at that edge: one whole total below an answer was run, at the least."""

TIE = 1e-3
"""What cost or TDP counts for beside a machine, where the fewest are sought."""

SHORT_S = 120.0
"""Seconds of a short trace."""


def provisioned(
    trace: str,
    system: System,
    given: Assumptions,
    *,
    workers: int = 1,
    journal: Journal | None = None,
    near: int | None = None,
    told: Callable[[str], None] | None = None,
) -> Cell:
    """The cheapest counts of a system for a trace under assumptions, seed by seed.

    Parameters
    ----------
    near : int, optional
        Instances that something alike needed: the search goes from `NEAR` to `FAR` of it, and
        lower again while the answer is the least that was run. Of a long trace, what a short
        one needs unless given.
    """
    if near is None and given.trace_s > SHORT_S:
        short = replace(given, trace_s=SHORT_S, seeds=given.seeds[:1])
        near = provisioned(trace, system, short, workers=workers, journal=journal).instances
    if told is not None:
        told(f"{trace}, {system.name}, {given.rule_of(system)}")
    search = Search(
        scenario(trace, system, given),
        given.seeds,
        journal=journal,
        workers=workers,
        sizes=largest(system, given),
    )
    weights = goal_weights(system, given)
    least, most = min(weights.values()), max(weights.values())
    start = NEAR * least * (near or 0)
    room = MOST * given.served.instances
    room = room if near is None else min(room, FAR * near)
    while True:
        answer = provision(search, weights=weights, most=room, above=start, common=False)
        found = [each.goal for each in answer.by_seed if each is not None]
        if not start or min(found, default=start) >= start + most:
            return Cell(trace, system, given, answer)
        start = NEAR * start if found and start > 2 * most else 0.0


def goal_weights(system: System, given: Assumptions) -> dict[str, float]:
    """What an instance of each pool counts where counts are compared."""
    weights = system.weights(system.least)
    if given.least == "machines":
        return {name: 1.0 + TIE * each for name, each in weights.items()}
    return weights


def largest(system: System, given: Assumptions) -> list[Workload]:
    """Requests of either trace: tables that are made for both are made once."""
    return [
        scenario_workload(scenario(trace, system, replace(given, trace_s=SHORT_S)))
        for trace in TRACES
    ]
