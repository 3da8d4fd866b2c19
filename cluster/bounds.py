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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from chipsim.cluster.engine.steps import octave_point
from chipsim.cluster.verdicts import Limit, breaking, limits_of

if TYPE_CHECKING:
    from chipsim.cluster.latency_table import LatencyTable
    from chipsim.cluster.scenario import PoolSpec
    from chipsim.cluster.simulate import Cluster
    from chipsim.cluster.workload import Workload

Floats = npt.NDArray[np.float64]

SLACK = 1e-9
"""Rounding that a bound forgives, as a share."""


class Efficiency(NamedTuple):
    """The least that work costs one instance of a pool; infinite where it never does it.

    Attributes
    ----------
    prefill_s, decode_s : float
        Seconds per prompt token, and per decoded token.
    context_s : float
        Seconds per decoded token and token of its context.
    step_s : float
        Seconds of the shortest step that decodes.
    kv_tokens : float
        Tokens of KV that an instance holds (0: never decodes).
    """

    prefill_s: float
    decode_s: float
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
    per_token = _least_per(s.prefill) if prefills else math.inf
    per_decode = _least_per(s.decode[: pool.max_batch + 1]) if decodes else math.inf
    shortest = float(s.decode[1:].min()) if decodes else math.inf
    if prefills and decodes:
        mixed = _least_per(s.mixed)
        per_token, per_decode = min(per_token, mixed), min(per_decode, mixed)
        shortest = min(shortest, float(s.mixed[1:].min()))
    of_context = _least_context(s.contexts[0]) if decodes else 0.0
    return Efficiency(
        per_token / ranks,
        per_decode / ranks,
        of_context / ranks,
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


@dataclass(frozen=True, slots=True)
class Need:
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
        Empty where the objective bounds nothing (no limit on TTFT, or a closed loop).
    """

    def __init__(self, cluster: Cluster, workload: Workload) -> None:
        self.cluster, self.workload = cluster, workload
        scenario = cluster.scenario
        moves = scenario.routing == "mixed_pool" or bool(scenario.switches)
        self.pools = {}
        for name, pool in scenario.pools.items():
            held = cluster.capacity(name)
            may = (moves or pool.role != "decode", moves or pool.role != "prefill")
            tokens = float(held.block * held.kv_blocks * held.ranks)
            self.pools[name] = efficiency(cluster.replicas[name].table, pool, may, tokens)
        self.cached = any(pool.prefix_cache != "none" for pool in scenario.pools.values())
        self.final = all(
            pool.reserve == "final"
            for pool in scenario.pools.values()
            if pool.role != "prefill"
        )
        self.needs = [] if workload.closed_loop else list(self._needs())

    def refuses(self, instances: Mapping[str, int]) -> str:
        """Why so many instances cannot hold the objective; empty where they may.

        >>> from chipsim import Cluster
        >>> cluster = Cluster("chat-8b")
        >>> bounds = Bounds(cluster, cluster.workload)
        >>> bounds.refuses({"mixed": 1}), bounds.refuses({"mixed": 4})
        ('work of p99 ttft', '')
        """
        counts = [instances[name] for name in self.pools]
        for need in self.needs:
            if self._overworked(need, counts):
                return f"work of {need.why}"
            if self._full(need, counts):
                return f"memory of {need.why}"
        return ""

    def _overworked(self, need: Need, counts: Sequence[int]) -> bool:
        room = need.seconds * (1.0 + SLACK)
        of = list(self.pools.values())
        decoding = [n for n, each in zip(counts, of, strict=True) if each.decode_s < math.inf]
        jobs = [
            (
                each.prefill_s * need.prompt_tokens if need.prompt_tokens else 0.0,
                # Which pool reads which contexts is open where several decode.
                _decode_seconds(each, need, with_context=len(decoding) == 1),
                count * room,
            )
            for count, each in zip(counts, of, strict=True)
            if count
        ]
        return not _shared(jobs)

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

    def _needs(self) -> list[Need]:
        limits = limits_of(self.cluster, self.workload)
        first = [limit for limit in limits if limit.metric == "ttft"]
        later = [limit for limit in limits if limit.metric in ("tbt", "tpot")]
        found = [self._prompts(limit) for limit in first]
        found += [self._decodes(a, b) for a in first for b in later]
        found += [self._whole(limit) for limit in limits if limit.metric == "e2e"]
        return found

    def _prompts(self, ttft: Limit) -> Need:
        meet = self._meeting(ttft)
        return Need(
            ttft.name, self._until(ttft.each), self._least(self._prompt, meet), 0.0, 0.0, 0.0
        )

    def _decodes(self, ttft: Limit, later: Limit) -> Need:
        output = self.workload.output_tokens
        gaps = output if later.metric == "tbt" else output - 1
        each = ttft.each + later.each * gaps
        why = f"{ttft.name} and {later.name}"
        return self._both(why, each, self._meeting(ttft, later))

    def _whole(self, e2e: Limit) -> Need:
        return self._both(e2e.name, e2e.each, self._meeting(e2e))

    def _both(self, why: str, each: Floats, meet: int) -> Need:
        prompt, steps = self.workload.prompt_tokens, self.workload.output_tokens - 1
        # A decode reads what is cached and itself: P + 1 ... P + steps tokens.
        read = steps * prompt + steps * (steps + 1) / 2
        held = prompt + (self.workload.output_tokens if self.final else 0)
        return Need(
            why,
            self._until(each),
            self._least(self._prompt, meet),
            self._least(steps, meet),
            self._least(read, meet),
            self._least(held * steps, meet),
        )

    @property
    def _prompt(self) -> npt.NDArray[np.int64]:
        """Prompt tokens that are surely computed."""
        prompt = self.workload.prompt_tokens
        return np.zeros_like(prompt) if self.cached else prompt

    def _meeting(self, *limits: Limit) -> int:
        """Requests that surely meet all of these limits, where each percentile does."""
        n = len(self.workload)
        return max(0, n - sum(breaking(n, limit.percentile) - 1 for limit in limits))

    def _until(self, each: Floats) -> float:
        arrival = self.workload.arrival_s
        return float((arrival + each).max() - arrival[0])

    @staticmethod
    def _least(amounts: npt.NDArray[np.generic], count: int) -> float:
        """Sum of the smallest ``count``."""
        return float(np.sort(amounts)[:count].sum())


def _decode_seconds(of: Efficiency, need: Need, *, with_context: bool) -> float:
    if not need.decode_tokens:
        return 0.0
    seconds = of.decode_s * need.decode_tokens
    return seconds + of.context_s * need.context_tokens if with_context else seconds


def _shared(jobs: Sequence[tuple[float, float, float]]) -> bool:
    """Whether two divisible jobs fit, given seconds of each alone and room, by worker.

    The best division gives the first job to those who are best at it compared with the
    other one (comparative advantage).
    """

    def advantage(job: tuple[float, float, float]) -> float:
        first, second, _ = job
        if math.isinf(first):
            return math.inf
        return -1.0 if math.isinf(second) else first / max(second, 1e-300)

    left, other = 1.0, 0.0
    for first, second, room in sorted(jobs, key=advantage):
        if math.isinf(first):
            spent = 0.0
        else:
            spent = min(room, left * first)
            left -= spent / first if first > 0.0 else left
        if not math.isinf(second):
            other += (room - spent) / second if second > 0.0 else 1.0
    return left <= SLACK and other >= 1.0 - SLACK
