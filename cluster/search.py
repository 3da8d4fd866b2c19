"""Counts of instances judged under several seeds: what `provision` searches with.

scenario + seeds -> tables and workloads, once -> judge counts -> Candidate
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from chipsim.cluster.bounds import Bounds, judged_part
from chipsim.cluster.company import company_share
from chipsim.cluster.journal import Journal, fingerprint
from chipsim.cluster.scenario import Scenario
from chipsim.cluster.simulate import Cluster, scenario_workload
from chipsim.cluster.threads import side_by_side
from chipsim.cluster.verdicts import Verdict, judge, limits_of
from chipsim.cluster.workload import Workload
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

ALONE_TOLERANCE = 0.01
"""Of tables: among other prompts one may come out so much faster, by interpolation."""


@dataclass(frozen=True)
class Candidate:
    """Counts that were judged under seeds.

    Attributes
    ----------
    instances : dict of str to int
    goal : float
        What is to be least.
    verdicts : tuple of Verdict or None
        One for each seed; None where it was not asked for, as another one had failed.
    """

    instances: dict[str, int]
    goal: float
    verdicts: tuple[Verdict | None, ...]

    @property
    def holds(self) -> bool:
        """Under every seed."""
        return all(each is not None and each.holds for each in self.verdicts)

    @property
    def refused(self) -> bool:
        """Whether bounds alone decided it."""
        return all(each is None or each.bound for each in self.verdicts)

    @property
    def worst(self) -> Verdict:
        """The verdict with the least margin; one that fails before one that holds."""
        return min((each for each in self.verdicts if each is not None), key=_order)

    def record(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "instances": dict(self.instances),
            "goal": self.goal,
            "holds": self.holds,
            "binding": self.worst.binding,
            "margin": self.worst.margin,
        }


def _order(verdict: Verdict) -> tuple[bool, float]:
    return verdict.holds, -math.inf if verdict.margin is None else verdict.margin


class Search:
    """A scenario with workloads of several seeds, ready to judge counts.

    Parameters
    ----------
    scenario : Scenario, str or Path
    seeds : sequence of int
        Of the workload.
    workloads : sequence of Workload, optional
        One for each seed; drawn from the scenario unless given.
    journal : Journal, optional
        Verdicts kept from earlier, and for later.
    workers : int
        Runs at once, on threads (the engine releases the interpreter's lock).
    sizes : sequence of Workload
        Others that tables are made large enough for, so that searches can share them.
    cluster : Cluster, optional
        With tables that are made already, for these workloads.

    Raises
    ------
    ConfigError
        No seed; else as `Cluster`.
    """

    def __init__(
        self,
        scenario: Scenario | str | Path,
        seeds: Sequence[int] = (0,),
        *,
        workloads: Sequence[Workload] | None = None,
        journal: Journal | None = None,
        workers: int = 1,
        sizes: Sequence[Workload] = (),
        cluster: Cluster | None = None,
    ) -> None:
        self.scenario = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
        self.seeds, self.workers = tuple(seeds), workers
        if not self.seeds:
            raise ConfigError("provision", "seeds", "none", "at least one")
        self.workloads = tuple(workloads or map(self._draw, self.seeds))
        self.journal = Journal() if journal is None else journal
        self.cluster = cluster or Cluster(self.scenario, together([*self.workloads, *sizes]))
        self.pools = tuple(self.scenario.pools)

    def _draw(self, seed: int) -> Workload:
        chosen = self.scenario.workload.model_copy(update={"seed": seed})
        return scenario_workload(self.scenario.model_copy(update={"workload": chosen}))

    @functools.cached_property
    def bounds(self) -> tuple[Bounds, ...]:
        """Of each seed's workload."""
        return tuple(Bounds(self.cluster, each) for each in self.workloads)

    @functools.cached_property
    def _fingerprints(self) -> tuple[str, ...]:
        return tuple(fingerprint(self.cluster, each) for each in self.workloads)

    def verdict(self, counts: Sequence[int], place: int) -> Verdict:
        """Of counts in the order of pools, under one seed: by bound, journal or run."""
        instances = dict(zip(self.pools, counts, strict=True))
        refused = self.bounds[place].refuses(instances)
        if refused:
            return Verdict(False, refused, early=True, bound=True)
        key = f"{self._fingerprints[place]}:{','.join(map(str, counts))}"
        known = self.journal.get(key)
        if known is not None:
            return Verdict(**known)
        found = judge(self.cluster, self.workloads[place], instances)
        self.journal.put(key, found.record())
        return found

    def candidates(
        self, rows: Iterable[tuple[Sequence[int], float]], wanted: Sequence[bool]
    ) -> list[Candidate]:
        """Judge rows of counts and goal, at once where there are workers.

        Parameters
        ----------
        wanted : sequence of bool
            Seeds that are judged whatever the others said; the rest only while all hold.
        """

        def decide(row: tuple[Sequence[int], float]) -> Candidate:
            counts, goal = row
            verdicts: list[Verdict | None] = []
            for place, always in enumerate(wanted):
                fails = any(each is None or not each.holds for each in verdicts)
                verdicts.append(None if fails and not always else self.verdict(counts, place))
            return Candidate(dict(zip(self.pools, counts, strict=True)), goal, tuple(verdicts))

        return side_by_side(decide, rows, self.workers)

    def alone_reason(self) -> str:
        """Why even a request alone breaks the objective; empty where it does not, or may not.

        Where each phase has one pool, and steps grow with what is in them, nothing is faster
        than the same requests one after the other: a run of them, less what company may save
        a step (`company_share`). Where machines are lent, a request may find any machine for
        each phase, and need no hand-off: then the least that any table has.
        """
        scenario, served = self.scenario, self.workloads[0]
        may = [{"prefill", "mixed"}, {"decode", "mixed"}]
        pools = [[p.role for p in scenario.pools.values() if p.role in of] for of in may]
        steady = all(grows(each.table.seconds) for each in self.cluster.replicas.values())
        plain = not (
            scenario.faults or scenario.switches or scenario.switching or served.closed_loop
        )
        if not (plain and steady):
            return ""
        if scenario.routing == "mixed_pool":
            return self._least_breaks(served)
        if all(len(of) == 1 for of in pools):
            return self._run_breaks(judged_part(served, scenario))
        return ""

    @functools.cached_property
    def _shares(self) -> dict[str, float]:
        """What of a time alone a request takes among others for certain, by pool."""
        lends = self.scenario.routing == "mixed_pool"
        return {
            name: company_share(
                self.cluster.replicas[name].table, "mixed" if lends else pool.role
            )
            / (1.0 + ALONE_TOLERANCE)
            for name, pool in self.scenario.pools.items()
        }

    def _least_breaks(self, served: Workload) -> str:
        """The limit that requests break even on the quickest machine of each phase."""
        prompts = served.prompt_tokens
        least_s = [
            np.array(each.table.alone_s(prompts)) * self._shares[name]
            for name, each in self.cluster.replicas.items()
        ]
        prefill, step = np.min(least_s, axis=0)
        steps, output = served.output_tokens - 1, served.output_tokens
        least = {"ttft": prefill, "tpot": np.where(steps > 0, step, 0.0)}
        least |= {"tbt": steps * step / output, "e2e": prefill + steps * step}
        for limit in limits_of(self.cluster, served):
            over = least[limit.metric] > limit.each
            if np.count_nonzero(over) >= limit.breaking:
                return f"a request alone breaks {limit.name} on the quickest machines"
        return ""

    def _run_breaks(self, served: Workload) -> str:
        """The limit that requests break in a run of one after the other."""
        times = self._apart(served) * np.arange(len(served), dtype=np.float64)
        apart = replace(served, arrival_s=self.scenario.slo.warm_up + times)
        run = self.cluster.run(
            instances=dict.fromkeys(self.pools, 1),
            workload=apart,
            log_gaps=bool(self.scenario.slo.itl),
            until_s=math.inf,
        )
        # Sent behind longer prefills, less of a hand-off is left between the first two tokens.
        hidden = self.scenario.handoff.overlap != "serial" and len(self.pools) > 1
        sure = ("ttft", "e2e") if hidden else ("ttft", "tpot", "tbt", "itl", "e2e")
        share = min(self._shares.values())
        for each in run.objectives:
            if each.reached * share > each.limit and each.metric.startswith(sure):
                return (
                    f"a request alone breaks {each.name}: "
                    f"{each.reached:.4g} against a limit of {each.limit:.4g}"
                )
        return ""

    def _apart(self, served: Workload) -> float:
        """Seconds that surely lie between a request's arrival and its end, alone."""
        longest = 1.0
        for replica in self.cluster.replicas.values():
            s = replica.table.seconds
            for part in (s.prefill, s.mixed, s.decode, s.prompts, s.contexts):
                if np.isfinite(part).all():
                    longest += float(part.max()) * float(served.output_tokens.max() + 1)
        return 2.0 * longest + 1e3


def grows(seconds: Any) -> bool:
    """Whether steps of a table never get shorter with what is in them."""
    parts = (seconds.prefill[1:], seconds.mixed[1:], seconds.decode[1:])
    return all(bool((np.diff(part[np.isfinite(part)]) >= 0.0).all()) for part in parts)


def together(workloads: Sequence[Workload]) -> Workload:
    """Requests of several workloads at one time: what tables are made large enough for."""
    prompt = np.concatenate([each.prompt_tokens for each in workloads])
    output = np.concatenate([each.output_tokens for each in workloads])
    return Workload(np.zeros(len(prompt)), prompt, output, name=workloads[0].name)
