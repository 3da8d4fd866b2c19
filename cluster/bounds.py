"""Bounds that every cluster obeys: what cannot hold an objective without running it.

- *Work*: of n requests at least ``floor((n - 1) p / 100) + 1`` meet a limit on percentile p.
  Their prompts, at the fewest machine-seconds per token that any step has, are done between
  the first arrival and the last moment that the limit allows; likewise their decodes.
- *Memory*: while a request decodes its KV is somewhere, for no less than its steps last.
- *Alone*: a step is not shorter for what else is in it (checked on the tables), so no request
  beats itself alone on the fastest instance.

A bound says "no" only where that is certain; it never says "yes".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from chipsim.cluster.engine.steps import octave_point
from chipsim.cluster.objectives import judged
from chipsim.cluster.verdicts import Limit, limits_of
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.cluster.latency_table import LatencyTable
    from chipsim.cluster.scenario import PoolSpec, Scenario
    from chipsim.cluster.simulate import Cluster
    from chipsim.cluster.workload import Workload

Floats = npt.NDArray[np.float64]

WINDOWS = (0.5, 0.75, 0.9, 0.96, 0.99, 1.0)
"""Shares of the requests, by when they are due, whose work is set against that time."""

SLACK = 1e-9
"""Rounding that a bound forgives, as a share."""


class Efficiency(NamedTuple):
    """The least that work costs one instance of a pool; infinite where it never does it.

    Two lower bounds of the time of all steps, from ``step >= prefill x Q + decode x n`` and,
    as a step's contexts are in its memory, so that there are at least C / kv_tokens steps
    with decodes, ``step >= step_s + spared x Q + context x C``.

    Attributes
    ----------
    prefill_s, decode_s : float
        Seconds per prompt token, and per decoded token.
    spared_s, context_s : float
        Seconds per prompt token beyond the shortest step that decodes, and per token of
        context that a decode reads, its share of that step included.
    step_s : float
        Seconds of the shortest step that decodes.
    kv_tokens : float
        Tokens of KV that an instance holds (0: never decodes).
    """

    prefill_s: float
    decode_s: float
    spared_s: float
    context_s: float
    step_s: float
    kv_tokens: float


def efficiency(
    table: LatencyTable, pool: PoolSpec, may: tuple[bool, bool], kv_tokens: float
) -> Efficiency:
    """Of the steps that a table has.

    Parameters
    ----------
    may : (bool, bool)
        Whether instances may prefill, and decode.
    kv_tokens : float
        Of all ranks of an instance.
    """
    prefills, decodes = may
    s, ranks = table.seconds, table.ranks
    prompts = [s.prefill] if prefills else []
    tokens = [s.decode[: pool.max_batch + 1]] if decodes else []
    if prefills and decodes:
        prompts, tokens = [s.prefill, s.mixed], [*tokens, s.mixed]
    shortest = min((float(each[1:].min()) for each in tokens), default=math.inf)
    base = shortest if decodes else 0.0
    of_context = (
        _least_context(s.contexts[0]) / ranks + base / kv_tokens if decodes else math.inf
    )
    return Efficiency(
        min((_least_per(each) for each in prompts), default=math.inf) / ranks,
        min((_least_per(each) for each in tokens), default=math.inf) / ranks,
        max(0.0, min((_least_per(each - base) for each in prompts), default=math.inf)) / ranks,
        of_context,
        shortest,
        kv_tokens if decodes else 0.0,
    )


def _least_per(seconds: Floats) -> float:
    """Least seconds of one of 1, 2 … that a step does at once."""
    count = np.arange(1, len(seconds))
    return float((seconds[1:] / count).min())


def _least_context(contexts: Floats) -> float:
    """Least seconds of attention per decode and token of context.

    Between two points the table is straight, so the ratio is least at one of them.
    """
    points = np.array([octave_point(index) for index in range(contexts.shape[1])])
    count = np.arange(1, len(contexts))[:, None]
    ratio = contexts[1:, 1:] / (count * points[None, 1:])
    return max(0.0, float(ratio.min()))


class Need(NamedTuple):
    """Work that must be done within a time, and why.

    Attributes
    ----------
    why : str
        The limits that it follows from.
    seconds : float
        From the first arrival to the last moment.
    prompt_tokens, decode_tokens, context_tokens : float
        At the least: prompt tokens, decoded tokens, and the contexts that those read.
    kv_token_seconds : float
        Tokens of KV times the decode steps that they stay for (times `Efficiency.step_s`).
    """

    why: str
    seconds: float
    prompt_tokens: float
    decode_tokens: float
    context_tokens: float
    kv_token_steps: float


def decisive(needs: Sequence[Need]) -> list[Need]:
    """Those that no other one implies: as much of every work, in no more time.

    >>> half = Need("p50 ttft", 10.0, 1000.0, 0.0, 0.0, 0.0)
    >>> [need.why for need in decisive([half, half._replace(why="p99 ttft", seconds=8.0)])]
    ['p99 ttft']
    """
    tiny = 1e-200  # a limit below the rounding of times leaves no second
    rates = np.array([np.array(need[2:]) / max(need.seconds, tiny) for need in needs])
    kept: list[int] = []
    for place, rate in enumerate(rates):
        others = np.delete(rates, place, axis=0)
        implied = (others >= rate).all(axis=1) & (others > rate).any(axis=1)
        again = any((rates[one] == rate).all() for one in kept)
        if not (implied.any() or again):
            kept.append(place)
    return [needs[place] for place in kept]


def judged_part(workload: Workload, scenario: Scenario) -> Workload:
    """The requests that an objective is about; the rest is work that nothing has a time for.

    A closed loop is left whole: when its turns arrive is not known before.

    Raises
    ------
    ConfigError
        As `judged`.
    """
    if workload.closed_loop or not scenario.slo.warm_up:
        return workload
    count = int(judged(scenario, workload.arrival_s).sum())
    return workload.slice(len(workload) - count, len(workload))


class Bounds:
    """What a workload needs of a cluster, whatever the counts.

    Parameters
    ----------
    cluster : Cluster
        Its scenario's objective, pools and tables; counts do not matter.
    workload : Workload

    Attributes
    ----------
    needs : list of Need
        `decisive` ones; empty where the objective bounds nothing (no limit on TTFT, or a closed
        loop).

    Raises
    ------
    ConfigError
        A pool keeps prefixes: prompts may cost next to nothing, and their KV be shared; or as
        `judged_part`.
    """

    def __init__(self, cluster: Cluster, workload: Workload) -> None:
        if cluster.caching:
            allowed = "none: bounds take KV as held once for each request, none as shared"
            kinds = {pool.prefix_cache for pool in cluster.scenario.pools.values()} - {"none"}
            found = ", ".join(sorted(kinds))
            raise ConfigError(cluster.scenario.name, "pools.prefix_cache", found, allowed)
        self.cluster, scenario = cluster, cluster.scenario
        self.workload = judged_part(workload, scenario)
        moves = scenario.routing == "mixed_pool" or bool(scenario.switches)
        moves = moves or scenario.switching is not None
        self.pools = {}
        for name, pool in scenario.pools.items():
            held = cluster.capacity(name)
            may = (moves or pool.role != "decode", moves or pool.role != "prefill")
            tokens = float(held.block * held.kv_blocks * held.ranks)
            self.pools[name] = efficiency(cluster.replicas[name].table, pool, may, tokens)
        self.final = all(
            pool.reserve == "final"
            for pool in scenario.pools.values()
            if pool.role != "prefill"
        )
        self.needs = [] if workload.closed_loop else decisive(list(self._needs()))

    def refuses(self, instances: Mapping[str, int]) -> str:
        """Why so many instances cannot hold the objective; empty where they may.

        >>> from chipsim import Cluster
        >>> cluster = Cluster("chat-8b")
        >>> bounds = Bounds(cluster, cluster.workload.at_rate(400))
        >>> bounds.refuses({"mixed": 1}), bounds.refuses({"mixed": 40})
        ('work of p99 ttft', '')
        """
        counts = [instances[name] for name in self.pools]
        for need in self.needs:
            if self._overworked(need, counts):
                return f"work of {need.why}"
            if self._full(need, counts):
                return f"memory of {need.why}"
        return ""

    def allows(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of many clusters no bound refuses, as `refuses` of each.

        Parameters
        ----------
        counts : array of int, shape (clusters, pools)
            Instances in the order of the scenario's pools.
        """
        fine = np.ones(len(counts), bool)
        pools = list(self.pools.values())
        for need in self.needs:
            room = counts[fine] * (need.seconds * (1.0 + SLACK))
            enough = ~self._full_of(need, counts[fine])
            for prefill_s, decode_s, amount in (
                ("prefill_s", "decode_s", need.decode_tokens),
                ("spared_s", "context_s", need.context_tokens),
            ):
                jobs = [
                    (_cost(getattr(of, prefill_s), need.prompt_tokens),
                     _cost(getattr(of, decode_s), amount))
                    for of in pools
                ]  # fmt: skip
                enough &= _shared_by(jobs, room)
            fine[fine] = enough
        return fine

    def _full_of(self, need: Need, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """`_full` of many clusters."""
        tokens = np.array([each.kv_tokens for each in self.pools.values()])
        steps = np.array([each.step_s for each in self.pools.values()])
        decodes = (counts > 0) & (tokens > 0.0)
        shortest = np.where(decodes, steps, np.inf).min(axis=1, initial=np.inf)
        asked = np.zeros(len(counts))
        if need.decode_tokens:
            known = np.isfinite(shortest)
            asked[known] = need.kv_token_steps * shortest[known]
        full: npt.NDArray[np.bool_] = asked > (counts @ tokens) * need.seconds * (1.0 + SLACK)
        return full

    def _overworked(self, need: Need, counts: Sequence[int]) -> bool:
        room = need.seconds * (1.0 + SLACK)
        of = [(n, each) for n, each in zip(counts, self.pools.values(), strict=True) if n]
        by_token = [
            (
                _cost(each.prefill_s, need.prompt_tokens),
                _cost(each.decode_s, need.decode_tokens),
                count * room,
            )
            for count, each in of
        ]
        by_step = [
            (
                _cost(each.spared_s, need.prompt_tokens),
                _cost(each.context_s, need.context_tokens),
                count * room,
            )
            for count, each in of
        ]
        return not (_shared(by_token) and _shared(by_step))

    def _full(self, need: Need, counts: Sequence[int]) -> bool:
        held = [
            (n * each.kv_tokens, each.step_s)
            for n, each in zip(counts, self.pools.values(), strict=True)
            if n and each.kv_tokens
        ]
        if not held or not need.decode_tokens:
            return False
        shortest = min(step for _, step in held)
        room = sum(tokens for tokens, _ in held) * need.seconds
        return need.kv_token_steps * shortest > room * (1.0 + SLACK)

    def _needs(self) -> Iterator[Need]:
        limits = limits_of(self.cluster, self.workload)
        first = [limit for limit in limits if limit.metric == "ttft"]
        later = [limit for limit in limits if limit.metric in ("tbt", "tpot")]
        for ttft in first:
            yield from self._prompts(ttft)
            for other in later:
                yield from self._decodes(ttft, other)
        for limit in limits:
            if limit.metric == "e2e":
                yield from self._both(limit.name, limit.each, [limit])

    def _prompts(self, ttft: Limit) -> Iterator[Need]:
        for chosen, seconds, meet in self._windows(ttft.each, [ttft]):
            tokens = self._least(self.workload.prompt_tokens[chosen], meet)
            yield Need(ttft.name, seconds, tokens, 0.0, 0.0, 0.0)

    def _decodes(self, ttft: Limit, later: Limit) -> Iterator[Need]:
        output = self.workload.output_tokens
        gaps = output if later.metric == "tbt" else output - 1
        why = f"{ttft.name} and {later.name}"
        return self._both(why, ttft.each + later.each * gaps, [ttft, later])

    def _both(self, why: str, each: Floats, limits: Sequence[Limit]) -> Iterator[Need]:
        prompt, output = self.workload.prompt_tokens, self.workload.output_tokens
        steps = output - 1
        # A decode reads what is cached and itself: P + 1 ... P + steps tokens.
        read = steps * prompt + steps * (steps + 1) / 2
        held = (prompt + (output if self.final else 0)) * steps
        for chosen, seconds, meet in self._windows(each, limits):
            amounts = (self.workload.prompt_tokens, steps, read, held)
            yield Need(why, seconds, *(self._least(amount[chosen], meet) for amount in amounts))

    def _windows(
        self, each: Floats, limits: Sequence[Limit]
    ) -> Iterator[tuple[npt.NDArray[np.bool_], float, int]]:
        """Requests due by a time, seconds until then, and how many of them surely meet it."""
        arrival = self.workload.arrival_s
        due = arrival + each
        late = sum(limit.breaking - 1 for limit in limits)
        for time in np.unique(np.quantile(due, WINDOWS)):
            chosen = due <= time
            meet = int(chosen.sum()) - late
            if meet > 0:
                yield chosen, float(time - arrival[0]), meet

    @staticmethod
    def _least(amounts: npt.NDArray[np.generic], count: int) -> float:
        """Sum of the smallest ``count``."""
        return float(np.sort(amounts)[:count].sum())


def _cost(each_s: float, amount: float) -> float:
    """Seconds of an amount of work; nothing takes no time even where nobody does it."""
    return each_s * amount if amount else 0.0


def _shared(jobs: Sequence[tuple[float, float, float]]) -> bool:
    """Whether two divisible jobs fit, given seconds of each alone and room, by worker.

    The best division gives the first job to those who are best at it compared with the
    other one (comparative advantage).
    """
    left, other = 1.0, 0.0
    for first, second, room in sorted(jobs, key=lambda job: _advantage(job[0], job[1])):
        if math.isinf(first):
            spent = 0.0
        else:
            spent = min(room, left * first)
            left -= spent / first if first > 0.0 else left
        if not math.isinf(second):
            other += (room - spent) / second if second > 0.0 else 1.0
    return left <= SLACK and other >= 1.0 - SLACK


def _advantage(first: float, second: float) -> float:
    """How a worker does the first job compared with the second; less is better."""
    if math.isinf(first):
        return math.inf
    return -1.0 if math.isinf(second) else first / max(second, 1e-300)


def _shared_by(
    jobs: Sequence[tuple[float, float]], rooms: npt.NDArray[np.floating]
) -> npt.NDArray[np.bool_]:
    """`_shared` of the same workers with many rooms, shape (cases, workers)."""
    left, other = np.ones(len(rooms)), np.zeros(len(rooms))
    for worker in sorted(range(len(jobs)), key=lambda w: _advantage(*jobs[w])):
        (first, second), room = jobs[worker], rooms[:, worker]
        there = room > 0.0
        if math.isinf(first):
            spent = np.zeros(len(rooms))
        else:
            spent = np.minimum(room, left * first)
            left = left - (spent / first if first > 0.0 else left * there)
        if not math.isinf(second):
            other = other + ((room - spent) / second if second > 0.0 else 1.0 * there)
    done: npt.NDArray[np.bool_] = (left <= SLACK) & (other >= 1.0 - SLACK)
    return done
