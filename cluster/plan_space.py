"""What a search over owned chips looks at: layouts on shared tables, judged on a grid of rates.

inventory + scenario -> kinds -> layouts + tables, once -> a layout and a tuning -> Verdict
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.bounds import Bounds
from chipsim.cluster.inventory import Owned, Typical, kinds
from chipsim.cluster.journal import Journal, fingerprint
from chipsim.cluster.layouts import Column, Layouts, layouts
from chipsim.cluster.ranking import Tuning
from chipsim.cluster.search import together
from chipsim.cluster.simulate import Cluster, scenario_workload
from chipsim.cluster.verdicts import Verdict, judge
from chipsim.cluster.workload_spec import is_drawn
from chipsim.errors import ConfigError
from chipsim.ops.model import ModelSpec

if TYPE_CHECKING:
    from chipsim.cluster.scenario import Scenario
    from chipsim.cluster.workload import Workload

STEP = 1.02
"""One rate of the grid over the one below."""
WIDEST = 200
"""Steps of the grid below the largest rate of all that are looked at (a factor of 52)."""
FEWEST, MOST = 1000, 20_000
"""Requests of a run."""


class PlanSpace:
    """Kinds with their tables, layouts, workloads; judges a layout at a rate."""

    def __init__(
        self,
        inventory: tuple[Owned, ...],
        scenario: Scenario,
        seeds: tuple[int, ...],
        plans: tuple[str, ...],
        tunings: tuple[tuple[int, ...], tuple[int, ...]],
        duration_s: float,
        journal: Journal,
    ) -> None:
        self.journal, self.runs = journal, 0
        self.tunings = [Tuning(*each) for each in itertools.product(*tunings)]
        drawn = [_drawn(scenario, seed) for seed in seeds]
        if any(each.closed_loop for each in drawn):
            raise ConfigError(scenario.name, "workload", "sessions", "requests on their own")
        self.sizes = together(drawn)
        model = ModelSpec.load(scenario.model)
        typical = Typical(round(float(self.sizes.prompt_tokens.mean())),
                          round(float(self.sizes.output_tokens.mean())))  # fmt: skip
        of = {each.chip: kinds(each, model, scenario, typical, plans) for each in inventory}
        self.layouts: Layouts = layouts(inventory, of)
        self.scenario = scenario
        largest = Tuning(max(tunings[0]), max(tunings[1]))
        every = [(column, 1) for column in self.layouts.columns]
        self.menu = Cluster(self._scenario(every, largest), self.sizes)
        self.rate = scenario.workload.rate or drawn[0].rate_rps
        self.top = self._refused_from(drawn[0].head(min(FEWEST, len(drawn[0]))))
        wanted = int(np.clip(math.ceil(self.rate_of(self.top) * duration_s), FEWEST, MOST))
        self.workloads = [each.head(min(wanted, len(each))) for each in drawn]

    def rate_of(self, step: int) -> float:
        """Requests/s of a step of the grid; step 0 is the scenario's rate."""
        return float(self.rate * STEP**step)

    def cluster(self, row: int, tuning: Tuning) -> Cluster:
        """A layout as a cluster, on the tables that are there."""
        pools = self.layouts.pools(row)
        return Cluster(self._scenario(pools, tuning), self.sizes, made=self.menu.made)

    def judged(self, cluster: Cluster, step: int) -> Verdict:
        """A layout at a rate under every seed: the first that fails, or the least margin."""
        found = []
        for served in self.workloads:
            verdict = self._judged(cluster, served.at_rate(self.rate_of(step)))
            found.append(verdict)
            if not verdict.holds:
                return verdict
        return min(found, key=lambda each: each.margin or 0.0)

    def _judged(self, cluster: Cluster, served: Workload) -> Verdict:
        counts = {name: pool.instances for name, pool in cluster.scenario.pools.items()}
        key = ""
        if self.journal.path is not None:
            named = ",".join(f"{name}={count}" for name, count in counts.items())
            key = f"{fingerprint(cluster, served)}:{named}"
            known = self.journal.get(key)
            if known is not None:
                return Verdict(**known)
        self.runs += 1
        found = judge(cluster, served, counts)
        if key:
            self.journal.put(key, found.record())
        return found

    def _scenario(self, pools: Sequence[tuple[Column, int]], tuning: Tuning) -> Scenario:
        data = self.scenario.model_dump(exclude_unset=True)
        data["slo"] = self.scenario.slo
        for name in ("faults", "switches", "switching"):
            data.pop(name, None)
        plain = data.get("routing") not in ("mixed_pool", "token_jsq")
        chosen = {} if plain else {"routing": "least_tokens", "decode_routing": "least_kv"}
        most = max(each.max_batch for each in self.tunings)
        made = {
            column.name: {
                "role": column.role,
                "chip": column.kind.chip,
                "plan": column.kind.plan,
                "instances": count,
                "batching": "chunked",
                "max_tokens": tuning.max_tokens,
                # Prefill holds prompts that wait for their hand-off too.
                "max_batch": most if column.role == "prefill" else tuning.max_batch,
            }
            for column, count in pools
        }
        return type(self.scenario).build(
            self.scenario.name, **(data | chosen | {"pools": made})
        )

    def bounds(self, served: Workload, step: int) -> Bounds:
        """Of all layouts at a rate."""
        return Bounds(self.menu, served.at_rate(self.rate_of(step)))

    def _refused_from(self, served: Workload) -> int:
        """A step of the grid at which bounds refuse every layout."""
        step = 0
        while self.bounds(served, step).allows(self.layouts.counts).any():
            step += 32
            if step > 2000:
                allowed = "a limit on TTFT, or on E2E"
                raise ConfigError(self.scenario.name, "slo", "no rate is ruled out", allowed)
        low = step - 32 if step else step - WIDEST
        while step - low > 1:
            middle = (low + step) // 2
            if self.bounds(served, middle).allows(self.layouts.counts).any():
                low = middle
            else:
                step = middle
        return step


def _drawn(scenario: Scenario, seed: int) -> Workload:
    """Requests of a seed, as many as a run may need; a trace as it is."""
    chosen = scenario.workload
    most = MOST if is_drawn(chosen.base, format=chosen.format) else None
    return scenario_workload(scenario.changed(workload_seed=seed, requests=most))


def with_whole_requests(scenario: Scenario) -> Scenario:
    """A scenario whose objective sees what whole requests take; see `plan_inventory`."""
    slo = scenario.slo
    ratios = slo.slowdown
    whole = slo.tpot or slo.e2e or (ratios is not None and (ratios.tbt or ratios.e2e))
    if whole or not slo.itl:
        return scenario
    changed = slo.model_copy(update={"tpot": dict(slo.itl)})
    return scenario.model_copy(update={"slo": changed})


def limited(scenario: Scenario) -> bool:
    """Whether an objective has a limit."""
    slo = scenario.slo
    of = [slo.ttft, slo.itl, slo.tpot, slo.e2e]
    return any(of) or slo.slowdown is not None
