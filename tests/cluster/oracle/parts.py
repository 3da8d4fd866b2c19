"""Requests, ranks, machines and routers of the plain engine in `oracle`."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chipsim.cluster.engine import codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.cluster.oracle.prefix import Cache, Store

NEVER = math.inf
NAN = math.nan
MASK = 2**64 - 1


@dataclass(eq=False)
class Reading:
    """What a job loads, and how many tokens, up to which block, that makes."""

    source: Store | Rank
    ids: list[int]
    tokens: int
    stop: int


@dataclass(eq=False)
class Job:
    """A request."""

    index: int
    prompt: int
    output: int
    priority: int
    parent: int
    think: float
    chain: list[int]  # ids of its blocks
    arrival: float = NAN
    arrived: bool = False
    status: str = "pending"
    reason: str = ""
    phase: str = "outside"
    tokens_at: list[float] = field(default_factory=list)
    to_prefill: int = 0  # tokens that a prefill has to bring into a cache
    in_cache: int = 0  # of these, computed or found
    cached: int = 0
    loaded: int = 0
    reading: Reading | None = None
    writing: int = 0  # leading blocks of its chain
    loaded_at: float = NAN
    preemptions: int = 0
    retries: int = 0
    draws: int = 0
    key: tuple[float, ...] = ()
    admitted: float = NAN
    preempted: bool = False
    swapped: bool = False
    stays: bool = False  # it is decoded where it is prefilled
    asked_in_vain: bool = False  # for room, and nothing changed since
    rank: Rank = field(init=False)  # where it waits or runs, and is prefilled
    target: Rank | None = None  # where it is to decode, if chosen at its arrival
    reserved: Rank | None = None  # where it will decode: blocks are taken there
    entered: float = NAN  # into the queue for hand-offs
    ready_at: float = NAN
    sent: int = 0
    base: int = 0  # of these, there before
    last_piece: float = -NEVER  # end of the last piece sent
    chunk_start: float = NAN
    chunk_s: float = NAN
    prefill: Rank | None = None
    decode: Rank | None = None
    queue_start: float = NAN
    prefill_start: float = NAN
    prefill_end: float = NAN
    transfer_start: float = NAN
    transfer_end: float = NAN
    decode_start: float = NAN
    finish: float = NAN

    @property
    def bound_for(self) -> Rank | None:
        """Where it is to decode, if that is known and it is not there yet."""
        return self.reserved or self.target

    @property
    def emitted(self) -> int:
        return len(self.tokens_at)


@dataclass(eq=False)
class Rank:
    """One data-parallel rank: a queue, a batch, a memory."""

    number: int  # over all machines
    machine: Machine
    queue: list[Job] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)
    ready: list[Job] = field(default_factory=list)
    coming: list[Job] = field(default_factory=list)
    loading: list[Job] = field(default_factory=list)  # or loaded, and not yet in the batch
    blocks: dict[Job, int] = field(default_factory=dict)
    extra_s: float = 0.0
    cache: Cache = field(init=False)

    @property
    def used(self) -> int:
        return sum(self.blocks.values()) - self.cache.saved

    @property
    def free(self) -> int:
        return int(self.machine.pool["kv_blocks"]) - self.used

    def head(self) -> Job | None:
        self.queue.sort(key=lambda job: job.key)
        return self.queue[0] if self.queue else None

    def decodes(self) -> list[Job]:
        return [job for job in self.running if job.phase == "decoding"]

    def requests(self) -> int:
        return (
            len(self.queue)
            + len(self.running)
            + len(self.ready)
            + len(self.coming + self.loading)
        )

    def pending_tokens(self) -> int:
        waiting = self.queue + self.loading
        prompts = [job for job in waiting + self.running if job.phase != "decoding"]
        left = sum(job.to_prefill - job.in_cache for job in prompts if not job.swapped)
        swapped = sum(job.swapped for job in self.queue)
        return left + swapped + len(self.decodes()) + len(self.ready) + len(self.coming)


@dataclass(eq=False)
class Part:
    """What one rank does in a step."""

    rank: Rank
    decodes: list[Job]
    chunks: list[tuple[Job, int]]
    seconds: float = 0.0
    joules: float = 0.0


@dataclass
class Place:
    """Whose turn it was last."""

    number: int = -1


@dataclass(eq=False)
class Machine:
    """An instance: ranks that step together."""

    index: int
    pool_index: int
    pool: Any
    role: int
    up: bool = True
    faults: int = 0
    ranks: list[Rank] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    started: float = NAN
    ends: float = NEVER
    waiting: int = 0  # requests, when the step started
    used_then: int = 0  # blocks, likewise
    send_free: float = -NEVER
    receive_free: float = -NEVER
    last: Place = field(default_factory=Place)  # of its ranks
    totals: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def may_prefill(self) -> bool:
        return bool(self.role & codes.PREFILL)

    @property
    def may_decode(self) -> bool:
        return bool(self.role & codes.DECODE)

    @property
    def used(self) -> int:
        return sum(rank.used for rank in self.ranks)

    def pending_tokens(self) -> int:
        return sum(rank.pending_tokens() for rank in self.ranks)

    def is_free(self) -> bool:
        return self.up and not self.parts


def blocks_to_decode(machine: Machine, job: Job) -> int:
    """Blocks that a job takes at admission where it decodes."""
    if machine.pool["reserve"] == codes.RESERVE_PROMPT:
        return -(-(job.to_prefill + 1) // int(machine.pool["block"]))
    return -(-(job.prompt + job.output) // int(machine.pool["block"]))


def mix(value: int) -> int:
    """The finaliser of splitmix64, one step on."""
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


class Router:
    """A policy and what it remembers."""

    def __init__(self, policy: int, seed: int, cost: Callable[[Job, Rank], int]) -> None:
        self.policy, self.seed, self.cost = policy, seed, cost
        self.last = Place()

    def pick(
        self, job: Job, machines: Iterable[Machine], ranks: Callable[[Rank], bool]
    ) -> Rank:
        """A machine of those given, by the sum over its ranks; in it, one of ``ranks``."""
        place = {machine.index: machine.ranks for machine in machines}
        if self.policy == codes.LONGEST_PREFIX:
            all_ranks = [rank for own in place.values() for rank in own if ranks(rank)]
            return min(all_ranks, key=lambda rank: (self.cost(job, rank), rank.number))
        machine = self._one(job, place, self.last)
        own = place[machine]
        if len(own) == 1:
            return own[0]
        inside = {number: [rank] for number, rank in enumerate(own) if ranks(rank)}
        return own[self._one(job, inside, own[0].machine.last)]

    def _one(self, job: Job, places: dict[int, list[Rank]], last: Place) -> int:
        numbers = sorted(places)
        if self.policy == codes.ROUND_ROBIN:
            behind = [number for number in numbers if number > last.number]
            last.number = (behind or numbers)[0]
            return last.number
        if self.policy == codes.RANDOM:
            draw = mix(mix(mix(self.seed) + job.index) + job.draws)
            job.draws += 1
            return numbers[draw % len(numbers)]
        load = {
            codes.LEAST_REQUESTS: Rank.requests,
            codes.LEAST_TOKENS: Rank.pending_tokens,
            codes.LEAST_KV: lambda rank: rank.used,
        }[self.policy]
        return min(numbers, key=lambda number: (sum(map(load, places[number])), number))
