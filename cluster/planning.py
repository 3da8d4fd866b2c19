"""The best use of chips that are owned: plans, roles, split, chunk and batch, all at once.

inventory + scenario -> kinds -> layouts -> bounds -> runs, the best bound first -> Ranking

A layout is left out for good where a bound says that it cannot come before those that are
ranked already; nothing else is left out but plans (`chipsim.cluster.inventory.kinds`).
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from chipsim.cluster.bounds import Bounds
from chipsim.cluster.inventory import Owned, Typical, kinds
from chipsim.cluster.journal import Journal, fingerprint
from chipsim.cluster.layouts import Column, Layouts, layouts
from chipsim.cluster.search import grows, together
from chipsim.cluster.simulate import Cluster, scenario_workload
from chipsim.cluster.verdicts import Verdict, judge
from chipsim.cluster.workload_spec import is_drawn
from chipsim.errors import ConfigError
from chipsim.ops.model import ModelSpec

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.cluster.results import Simulation
    from chipsim.cluster.scenario import Scenario
    from chipsim.cluster.workload import Workload

PlanGoal = Literal["rate", "latency"]
"""Most requests/s within the objective, or the least mean E2E at the scenario's rate."""

GOALS = ("rate", "latency")
CHUNKS = (512, 2048, 8192)
BATCHES = (64, 256, 512)
STEP = 1.02
"""One rate of the grid over the one below."""
COARSE = 4
"""Steps of the grid between rates at which bounds are asked."""
WIDEST = 200
"""Steps of the grid below the largest rate of all that are looked at (a factor of 52)."""
FEWEST, MOST = 1000, 20_000
"""Requests of a run."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Progress = Callable[[int, int, str], None]


class Tuning(NamedTuple):
    """How pools batch.

    Attributes
    ----------
    max_tokens : int
        Tokens of a step where prompts are: the chunk.
    max_batch : int
        Sequences of a rank that decodes.
    """

    max_tokens: int
    max_batch: int


@dataclass(frozen=True)
class Planned:
    """A layout with the tuning that is best for it.

    Attributes
    ----------
    text : str
        The layout in words.
    pools : tuple of (Column, int)
        Its pools and their instances.
    tuning : Tuning
    value : float
        Requests/s that it holds, or mean E2E in seconds.
    bound : float
        What no tuning of it can pass.
    breaks : str
        The limit that the next rate of the grid breaks; ``work`` where the bound does.
    run : Simulation
        At the largest rate (the scenario's, for the least latency), first seed.
    """

    text: str
    pools: tuple[tuple[Column, int], ...]
    tuning: Tuning
    value: float
    bound: float
    breaks: str
    run: Simulation

    @property
    def cluster(self) -> Cluster:
        """The layout as a cluster."""
        return self.run.cluster

    @property
    def binding(self) -> tuple[str, float | None]:
        """The limit with the least margin in `run`, and that margin."""
        worst = min(self.run.objectives, key=lambda each: each.margin)
        return worst.name, worst.margin if math.isfinite(worst.margin) else None

    def record(self) -> dict[str, Any]:
        """As plain values."""
        binding, margin = self.binding
        figures = self.run.summary()
        return {
            "layout": self.text,
            "pools": [
                {"pool": column.name, "role": column.role, "chip": column.kind.chip,
                 "plan": column.kind.plan, "instances": count,
                 "chips": count * column.kind.chips}
                for column, count in self.pools
            ],
            "max_tokens": self.tuning.max_tokens,
            "max_batch": self.tuning.max_batch,
            "bound": self.bound,
            "breaks": self.breaks,
            "binding": binding,
            "margin": margin,
            "goodput_rps": figures["goodput_rps"],
            **{f"{name}_{share}_s": figures[f"{name}_s"][share]
               for name in ("ttft", "itl", "e2e") for share in ("p50", "p99")},
        }  # fmt: skip


@dataclass(frozen=True)
class Ranking:
    """Layouts of an inventory, the best first.

    Attributes
    ----------
    scenario : Scenario
        Model, workload and objective.
    inventory : tuple of Owned
    goal : str
    seeds : tuple of int
    rows : tuple of Planned
        Empty where nothing holds the objective.
    requests : int
        Of a run.
    layouts, tried, runs : int
        Layouts that there are; that were run, the others being ruled out; and runs.
    reason : str
        Why nothing holds; empty where something does.
    wall_s : float
    """

    scenario: Scenario
    inventory: tuple[Owned, ...]
    goal: str
    seeds: tuple[int, ...]
    rows: tuple[Planned, ...]
    requests: int
    layouts: int
    tried: int
    runs: int
    reason: str
    wall_s: float

    @property
    def decided(self) -> list[str]:
        """The first layout in lines: what was decided, and why."""
        if not self.rows:
            return []
        best = self.rows[0]
        binding, margin = best.binding
        left = "" if margin is None else f" with {100.0 * margin:.3g} % to spare"
        if self.goal == "rate":
            what = f"holds {best.value:.4g} requests/s, of {best.bound:.4g} that work allows"
            after = f"the next rate breaks {best.breaks}"
        else:
            what, after = (
                f"mean E2E {best.value:.4g} s",
                f"of {best.bound:.4g} s alone at least",
            )
        tuning = f"chunk {best.tuning.max_tokens}, batch {best.tuning.max_batch}"
        return [f"{best.text}, {tuning}", f"{what}; {after}; {binding} binds{left}"]

    def records(self) -> list[dict[str, Any]]:
        """One dict per layout."""
        name = {"rate": "capacity_rps", "latency": "mean_e2e_s"}[self.goal]
        return [
            {"rank": rank, name: row.value} | row.record()
            for rank, row in enumerate(self.rows, start=1)
        ]

    def frame(self) -> pd.DataFrame:
        """Layouts as a table: the keys of `Planned.record`, pools as text."""
        import pandas as pd

        rows = [{k: v for k, v in row.items() if k != "pools"} for row in self.records()]
        return pd.DataFrame(rows)

    def configuration(self) -> dict[str, Any]:
        """What the rows follow from, as plain JSON values."""
        return {
            "kind": "plan",
            "scenario": self.scenario.model_dump(mode="json", exclude_unset=True),
            "inventory": [each.text for each in self.inventory],
            "goal": self.goal,
            "seeds": list(self.seeds),
        }


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
    if not _limited(scenario):
        raise ConfigError(scenario.name, "slo", "no limit", "a limit on a percentile")
    scenario = with_whole_requests(scenario)
    search = _Search(
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


def with_whole_requests(scenario: Scenario) -> Scenario:
    """A scenario whose objective sees what whole requests take; see `plan_inventory`."""
    slo = scenario.slo
    ratios = slo.slowdown
    whole = slo.tpot or slo.e2e or (ratios is not None and (ratios.tbt or ratios.e2e))
    if whole or not slo.itl:
        return scenario
    changed = slo.model_copy(update={"tpot": dict(slo.itl)})
    return scenario.model_copy(update={"slo": changed})


def _limited(scenario: Scenario) -> bool:
    slo = scenario.slo
    of = [slo.ttft, slo.itl, slo.tpot, slo.e2e]
    return any(of) or slo.slowdown is not None


class _Search:
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


class _Walk:
    """Layouts in the order of their bounds, until none can come before those ranked."""

    reason = ""

    def __init__(self, search: _Search, top: int, progress: Progress | None) -> None:
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

    def keys(self) -> Floats:
        """The least key that each layout may reach; infinite where it is ruled out."""
        raise NotImplementedError

    def take(self, row: int, bound: float) -> tuple[float, int, Tuning, str] | None:
        """The key that a layout reaches with its best tuning; None where it is no use."""
        raise NotImplementedError

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

    def figures(self, key: float) -> tuple[float, float]:
        """What a key stands for, and the rate of its run."""
        raise NotImplementedError


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
        """Mean E2E of requests that are alone on the quickest instance of each phase."""
        search, served = self.search, self.search.workloads[0]
        steps = served.output_tokens - 1
        counts = search.layouts.counts > 0
        fastest = [np.full(len(counts), math.inf) for _ in range(2)]
        for number, column in enumerate(search.layouts.columns):
            table = search.menu.replicas[column.name].table
            if not grows(table.seconds):
                return np.zeros(len(counts))
            prefill, decode = table.alone_s(served.prompt_tokens)
            each = (prefill.mean(), float((steps * decode).mean()))
            for phase, other in ((0, "decode"), (1, "prefill")):
                if column.role != other:
                    fastest[phase][counts[:, number]] = np.minimum(
                        fastest[phase][counts[:, number]], each[phase]
                    )
        total: Floats = (fastest[0] + fastest[1]) * (1.0 - ALONE_TOLERANCE)
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


ALONE_TOLERANCE = 0.01
"""Of tables: among others a request may come out so much faster, by interpolation."""
