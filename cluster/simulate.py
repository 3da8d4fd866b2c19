"""A scenario, run: objects -> arrays -> the engine -> what users would feel.

Scenario -> Cluster (tables and memory, made once) -> run -> Simulation
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chipsim.cluster.engine import Options, Requests, codes
from chipsim.cluster.engine import instances as instance_rows
from chipsim.cluster.engine import links as link_rows
from chipsim.cluster.engine import pools as pool_rows
from chipsim.cluster.engine import run as run_engine
from chipsim.cluster.engine import tiers as tier_rows
from chipsim.cluster.engine import timers as timer_rows
from chipsim.cluster.latency_build import Sizes, Steps
from chipsim.cluster.latency_table import stack_joules, stack_tables
from chipsim.cluster.objectives import judged
from chipsim.cluster.prefixes import Chains, chains
from chipsim.cluster.replicas import Need, Replica, replicas, wire_bytes
from chipsim.cluster.results import Simulation
from chipsim.cluster.scenario import PoolSpec, ReplicaSpec, Scenario
from chipsim.cluster.spending import Price, pool_price
from chipsim.cluster.timers import timer_list
from chipsim.cluster.workload_spec import load_workload
from chipsim.cost.power import power
from chipsim.cost.prices import PriceBook
from chipsim.cost.system import Host
from chipsim.errors import ConfigError
from chipsim.ops.cache import sequence_bytes
from chipsim.ops.loads import ExpertLoad
from chipsim.ops.model import ModelSpec
from chipsim.ops.precision import Precision

if TYPE_CHECKING:
    from chipsim.cluster.engine import Steps as EngineSteps
    from chipsim.cluster.workload import Workload

Floats = npt.NDArray[np.float64]
Records = npt.NDArray[np.void]

REFERENCE = "slo.slowdown.reference"
"""Beside the pools: what slowdown is measured against."""

MOST_TOKENS, MOST_SEQUENCES = 2**20, 2**13
"""Of a step, up to which tables are sampled; beyond, they go on as their last piece does."""
MOST_BLOCKS = 2**40
"""Of chains in a tier: no bound."""


class Capacity(NamedTuple):
    """Of one instance.

    Attributes
    ----------
    chips, ranks : int
    block, kv_blocks : int
        Tokens of a block of KV, and blocks of one rank.
    """

    chips: int
    ranks: int
    block: int
    kv_blocks: int


class Cluster:
    """A scenario whose latency tables are made: run it for any counts, rates and seeds.

    Parameters
    ----------
    scenario : Scenario, str or Path
        A scenario, or its library name or path.
    workload : Workload, optional
        Requests; those of the scenario unless given.
    with_energy : bool
        Joules of every step too.
    made : mapping of str to Replica, optional
        Kinds of instances that are made already, by pool (and `REFERENCE`): a search tries
        many clusters of few kinds. They must be for requests as long as these.

    Raises
    ------
    ChipsimError
        What is wrong with the scenario, its chips, model or workload, in one line.
    """

    def __init__(
        self,
        scenario: Scenario | str | Path,
        workload: Workload | None = None,
        *,
        with_energy: bool = False,
        made: Mapping[str, Replica] | None = None,
    ) -> None:
        self.scenario = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
        self.model = ModelSpec.load(self.scenario.model)
        self.workload = workload or scenario_workload(self.scenario)
        self.with_energy = with_energy
        wanted: dict[str, tuple[ReplicaSpec, Need]] = {
            name: (pool, self._need(pool)) for name, pool in self.scenario.pools.items()
        }
        slowdown = self.scenario.slo.slowdown
        if slowdown is not None:
            longest = int(self.workload.prompt_tokens.max())
            sizes = Sizes(min(longest, MOST_TOKENS), 1, longest)
            alone = Need("both", sizes, whole_prompts=True)
            wanted[REFERENCE] = (slowdown.reference, alone)
        known = {name: made[name] for name in wanted if name in made} if made else {}
        missing = {name: want for name, want in wanted.items() if name not in known}
        built = replicas(missing, self.scenario, self.model, with_energy)
        self.replicas = {name: known.get(name) or built[name] for name in wanted}
        self._reference = self.replicas.pop(REFERENCE, None)
        self._alone = functools.lru_cache(maxsize=8)(self._alone_seconds)
        self._check()
        self._as_requests = functools.lru_cache(maxsize=8)(
            functools.partial(as_requests, cached=self.caching)
        )

    def run(
        self,
        *,
        instances: Mapping[str, int] | None = None,
        workload: Workload | None = None,
        seed: int | None = None,
        log_steps: bool = False,
        log_gaps: bool = True,
        until_s: float | None = None,
        looks: Sequence[float] = (),
        enough: Callable[[Records, float], bool] | None = None,
    ) -> Simulation:
        """Serve the workload.

        Parameters
        ----------
        instances : mapping of str to int, optional
            Instances of pools, where they are not the scenario's.
        workload : Workload, optional
            Other requests, none larger than the largest of those that the tables are for.
        seed : int, optional
            Of random routing and faults; the scenario's unless given.
        log_steps : bool
            Keep a row for every step, for timelines.
        log_gaps : bool
            Keep the gaps between tokens: ITL percentiles need them.
        until_s : float, optional
            When the run ends; the scenario's limit unless given.
        looks : sequence of float
            Growing times at which ``enough`` is asked.
        enough : callable, optional
            Told the requests' rows and the time; whether the run ends there.

        Raises
        ------
        ConfigError
            A request that the tables were not made for, or none to judge; see `Cluster`.
        """
        began = time.perf_counter()
        served = workload or self.workload
        self._check_lengths(served)
        if not served.closed_loop:  # else it is known when the turns have arrived
            judged(self.scenario, served.arrival_s)
        counts = {name: pool.instances for name, pool in self.scenario.pools.items()}
        counts |= dict(instances or {})
        of = [number for number, name in enumerate(counts) for _ in range(counts[name])]
        roles = [codes.ROLE[self.scenario.pools[name].role] for name in counts]
        ranks = [self.replicas[name].table.ranks for name in counts]
        requests = self._as_requests(served)
        outcome = run_engine(
            requests,
            self._steps,
            self._pools,
            instance_rows(of, role=np.take(roles, of), ranks=np.take(ranks, of)),
            links=self._links,
            tiers=self._tiers(requests.prefix_block),
            timers=timer_rows(self._timers(counts, served, seed)),
            options=self._options(seed, log_steps, log_gaps, until_s),
            joules=self.joules,
            looks=looks,
            enough=enough,
        )
        return Simulation(self, served, counts, outcome, time.perf_counter() - began)

    @property
    def made(self) -> dict[str, Replica]:
        """Kinds of instances, the reference's too: what another cluster may take over."""
        of = {} if self._reference is None else {REFERENCE: self._reference}
        return self.replicas | of

    def capacity(self, pool: str) -> Capacity:
        """Chips, ranks and KV blocks of one instance of a pool."""
        number = list(self.replicas).index(pool)
        table, row = self.replicas[pool].table, self._pools[number]
        chips = self.replicas[pool].plan.chips
        return Capacity(chips, table.ranks, int(row["block"]), int(row["kv_blocks"]))

    def alone(self, workload: Workload) -> tuple[Floats, Floats] | None:
        """Seconds of prefill, and of a decode step, of each request alone on the reference."""
        return self._alone(workload)

    def _alone_seconds(self, workload: Workload) -> tuple[Floats, Floats] | None:
        if self._reference is None:
            return None
        prompts, place = np.unique(workload.prompt_tokens, return_inverse=True)
        prefill, decode = self._reference.table.alone_s(prompts)
        return prefill[place], decode[place]

    @functools.cached_property
    def prices(self) -> dict[str, Price]:
        """Price of one instance of each pool (`ChipsimError`)."""
        return {
            name: pool_price(self.scenario, pool, self.replicas[name].plan.chips)
            for name, pool in self.scenario.pools.items()
        }

    @property
    def caching(self) -> bool:
        """Whether some pool keeps prefixes."""
        return bool(self._pools["prefix_cache"].any())

    def idle_watts(self, pool: str) -> float:
        """What the chips of an instance draw without work."""
        chip, plan = self.replicas[pool].chip, self.replicas[pool].plan
        return 0.0 if chip is None else power(chip).idle_w * plan.chips

    def _need(self, pool: PoolSpec) -> Need:
        """The steps that a pool may meet."""
        turns = any(switch.role != pool.role for switch in self.scenario.switches)
        turns = turns or self.scenario.switching is not None
        both = pool.role == "mixed" or turns or self.scenario.routing == "mixed_pool"
        prompt = int(self.workload.prompt_tokens.max())
        longest = int((self.workload.prompt_tokens + self.workload.output_tokens).max())
        again = longest if pool.reserve == "prompt" or self.scenario.faults else prompt
        steps: Steps = "both"
        if not both:
            steps = "decode" if pool.role == "decode" else "prefill"
        # Chunks, and prompts whose beginning is cached, are computed behind an earlier part.
        whole = pool.batching != "chunked" and pool.prefix_cache == "none"
        if pool.batching == "chunked":
            again = 0  # no step has more than its budget
        batch = min(pool.max_batch, MOST_SEQUENCES)
        tokens = batch if steps == "decode" else max(pool.max_tokens, again)
        return Need(steps, Sizes(min(tokens, MOST_TOKENS), batch, longest), whole)

    def _check_lengths(self, served: Workload) -> None:
        """Refuse requests that the tables were not made for."""
        for name in ("prompt_tokens", "output_tokens"):
            longest, known = (int(getattr(w, name).max()) for w in (served, self.workload))
            if longest > known:
                allowed = f"at most {known}, as of the workload that the tables are for"
                raise ConfigError(served.name, name, longest, allowed)

    def _check(self) -> None:
        # Names that a run of measured steps does not come to look up.
        PriceBook.load(self.scenario.prices)
        Host.load(self.scenario.host)
        if self.scenario.expert_load is not None:
            ExpertLoad.parse(self.scenario.expert_load)
        for name, pool in self.scenario.pools.items():
            if self._need(pool).steps != "prefill" and not self.replicas[name].table.can_decode:
                allowed = "a plan without cp, which splits prompts"
                raise ConfigError(self.scenario.name, f"pools.{name}.plan", pool.plan, allowed)
            if pool.batching == "splitwise" and self.replicas[name].table.ranks > 1:
                allowed = "a plan with dp=1, with batching: splitwise"
                raise ConfigError(self.scenario.name, f"pools.{name}.plan", pool.plan, allowed)
        states = sequence_bytes(self.model, Precision(), 0)
        for name, pool in self.scenario.pools.items():
            if pool.prefix_cache != "none" and states:
                where = f"pools.{name}.prefix_cache"
                allowed = f"none: recurrent layers of {self.model.name} keep no rows of tokens"
                raise ConfigError(self.scenario.name, where, pool.prefix_cache, allowed)

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """What the engine is given whatever the counts: tables, pools and links."""
        return (*self._steps, self._pools, self._links)

    @functools.cached_property
    def _steps(self) -> EngineSteps:
        return stack_tables([each.table for each in self.replicas.values()])

    @functools.cached_property
    def joules(self) -> EngineSteps | None:
        """Joules of steps; None where a chip of a pool is not described enough."""
        return stack_joules([each.table for each in self.replicas.values()])

    @functools.cached_property
    def _pools(self) -> Records:
        columns: dict[str, list[Any]] = {}
        for number, (name, pool) in enumerate(self.scenario.pools.items()):
            for field, value in self._pool(number, name, pool).items():
                columns.setdefault(field, []).append(value)
        return pool_rows(len(self.replicas), **columns)

    def _pool(self, number: int, name: str, pool: PoolSpec) -> dict[str, Any]:
        of = self.replicas[name]
        served = self.workload
        mean = round(float((served.prompt_tokens + served.output_tokens).mean()))
        where = f"{self.scenario.name}: pools.{name}"
        tokens = of.kv_tokens(self.model, pool, where, mean)
        ranks = of.table.ranks
        return {
            "table": number,
            "batching": codes.BATCHING[pool.batching],
            "order": codes.ORDER[pool.order],
            "reserve": codes.RESERVE[pool.reserve],
            "preemption": codes.PREEMPTION[pool.preemption],
            "block": pool.block,
            "kv_blocks": tokens // pool.block,
            "max_batch": pool.max_batch,
            "max_tokens": pool.max_tokens,
            "max_queue": -1 if pool.max_queue is None else pool.max_queue,
            "host_bytes_per_s": pool.host_bandwidth * of.plan.chips / ranks,
            "kv_bytes_per_token": of.rank_bytes(self.model),
            "max_preemptions": pool.max_preemptions,
            "prefix_cache": codes.PREFIX_CACHE[pool.prefix_cache],
        }

    @functools.cached_property
    def _links(self) -> Records:
        """From every pool to every other."""
        names = list(self.replicas)
        grid = [[self._link(self.replicas[a], self.replicas[b]) for b in names] for a in names]
        columns = {field: [cell[field] for row in grid for cell in row] for field in grid[0][0]}
        return link_rows(len(names), **columns)

    def _link(self, source: Replica, target: Replica) -> dict[str, Any]:
        handoff, model = self.scenario.handoff, self.model
        bandwidth = handoff.bandwidth or min(
            source.link_bytes_per_s or np.inf, target.link_bytes_per_s or np.inf
        )
        # Where tp differs, every piece of the smaller degree is cut for the larger one.
        cut = max(source.plan.tp, target.plan.tp) / min(source.plan.tp, target.plan.tp)
        pieces = handoff.descriptors_per_block
        pieces = float(model.layers) * cut if pieces is None else pieces
        block = min(pool.block for pool in self.scenario.pools.values())
        return {
            "latency_s": handoff.latency,
            "bytes_per_s": bandwidth,
            "bytes_per_token": wire_bytes(model, source.precision, handoff.format),
            "descriptors_per_token": pieces / block,
            "descriptor_s": handoff.per_descriptor,
            "dequant_bytes_per_s": handoff.dequantise or np.inf,
            "layers": model.layers,
            "overlap": codes.OVERLAP[handoff.overlap],
            "contention": codes.CONTENTION[handoff.contention],
        }

    def _tiers(self, unit: int) -> Records:
        """Of every pool its tiers and the store, in blocks of ``unit`` tokens of one rank."""
        columns: dict[str, list[float]] = {"room": [], "latency_s": [], "block_s": []}
        for name, pool in self.scenario.pools.items():
            of = self.replicas[name]
            ranks, block = of.table.ranks, unit * wire_bytes(self.model, of.precision, None)
            host = pool.host_bandwidth * of.plan.chips
            store = self.scenario.store
            for tier, shared in ((pool.tiers.dram, 1), (pool.tiers.ssd, 1), (store, ranks)):
                size = 0.0 if tier is None else tier.capacity * shared / ranks
                rate = host if tier is None else tier.bandwidth or host
                columns["room"].append(min(size // block, MOST_BLOCKS) if block else 0)
                columns["latency_s"].append(0.0 if tier is None else tier.latency)
                columns["block_s"].append(block * ranks / rate)
        store_rooms = columns["room"][2::3]
        columns["room"][2::3] = [min(store_rooms)] * len(store_rooms)
        return tier_rows(len(self.replicas), **columns)

    def _options(
        self, seed: int | None, log_steps: bool, log_gaps: bool, until_s: float | None
    ) -> Options:
        scenario, switching = self.scenario, self.scenario.switching
        return Options(
            routing=codes.ROUTING[scenario.routing],
            decode_routing=codes.ROUTING[scenario.decode_routing],
            decode_at=codes.CHOSEN_AT[scenario.handoff.at],
            keep_mixed=scenario.handoff.keep_mixed,
            next_turn=codes.NEXT_TURN[scenario.handoff.next_turn],
            retry_s=scenario.handoff.retry,
            first_token_from=codes.FIRST_TOKEN_FROM[scenario.first_token_from],
            seed=scenario.seed if seed is None else seed,
            max_time_s=scenario.limits.time if until_s is None else until_s,
            max_events=scenario.limits.events,
            log_gaps=log_gaps,
            log_steps=log_steps,
            energy=self.joules is not None,
            prompt_limit=scenario.prompt_limit,
            switch_every_s=switching.every if switching else 0.0,
            switch_tokens=switching.prefill_tokens if switching else np.inf,
            switch_kv=switching.decode_kv if switching else np.inf,
        )

    def _timers(
        self, counts: Mapping[str, int], served: Workload, seed: int | None
    ) -> list[tuple[float, int, int, int]]:
        seed = self.scenario.seed if seed is None else seed
        return timer_list(self.scenario, counts, float(served.arrival_s[-1]), seed)


def simulate(
    scenario: Scenario | str | Path,
    workload: Workload | None = None,
    *,
    instances: Mapping[str, int] | None = None,
    log_steps: bool = False,
    with_energy: bool = False,
) -> Simulation:
    """Run a scenario once.

    Parameters
    ----------
    scenario : Scenario, str or Path
        A scenario, or its library name or path.
    workload : Workload, optional
        Requests; those of the scenario unless given.
    instances : mapping of str to int, optional
        Instances of pools, where they are not the scenario's.

    Raises
    ------
    ChipsimError
        What is wrong with the scenario, its chips, model or workload, in one line.
    """
    cluster = Cluster(scenario, workload, with_energy=with_energy)
    return cluster.run(instances=instances, log_steps=log_steps)


def scenario_workload(scenario: Scenario) -> Workload:
    """The requests of a scenario."""
    chosen = scenario.workload
    return load_workload(
        chosen.base,
        rate=chosen.rate,
        requests=chosen.requests,
        duration_s=chosen.duration,
        seed=chosen.seed,
        arrivals=chosen.arrivals,
        format=chosen.format,
    )


def as_requests(workload: Workload, *, cached: bool = False) -> Requests:
    """A workload as the engine reads it; ``cached``: with what prompts have in common."""
    alike = chains(workload) if cached else Chains.none(len(workload))
    return Requests.of(
        workload.arrival_s,
        workload.prompt_tokens,
        workload.output_tokens,
        priority=workload.priority,
        parent=workload.parent,
        think_s=workload.think_s,
        block_start=alike.start,
        blocks=alike.ids,
        prefix_block=alike.block,
    )
