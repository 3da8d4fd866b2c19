"""A cluster at one instant, and what all its rules ask of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from chipsim.cluster.engine import codes
from tests.cluster.oracle.parts import NEVER, Job, Machine, Rank, Router
from tests.cluster.oracle.prefix import Cache, lay_tiers

if TYPE_CHECKING:
    from chipsim.cluster.engine import Options, Requests, Steps


class Cluster:
    """All of it; the rules are functions that take it as ``c``, a module for each subject."""

    def __init__(
        self,
        requests: Requests,
        steps: Steps,
        pools: Any,
        instances: Any,
        links: Any,
        timers: Any,
        options: Options,
        joules: Steps | None = None,
        tiers: Any = None,
    ) -> None:
        self.steps, self.joules, self.links, self.options = steps, joules, links, options
        self.jobs = [
            Job(i, int(p), int(n), int(c), int(parent), float(think), chain_of(requests, i))
            for i, (p, n, c, parent, think) in enumerate(
                zip(
                    requests.prompt, requests.output, requests.priority,
                    requests.parent, requests.think_s, strict=True,
                )
            )
        ]  # fmt: skip
        self.arrivals = [
            (float(requests.arrival_s[job.index]), job.index)
            for job in self.jobs
            if job.parent < 0
        ]
        self.machines = [
            Machine(i, int(row["pool"]), pools[row["pool"]], int(row["role"]))
            for i, row in enumerate(instances)
        ]
        number = 0
        for machine, row in zip(self.machines, instances, strict=True):
            for _ in range(row["ranks"]):
                rank = Rank(number, machine)
                rank.cache = Cache(
                    rank, requests.prefix_block, bool(machine.pool["prefix_cache"])
                )
                machine.ranks.append(rank)
                number += 1
        lay_tiers(self.machines, tiers)
        self.timers = [tuple(row) for row in timers.tolist()]
        self.has_switches = any(kind == codes.ROLE_SWITCH for _, kind, _, _ in self.timers)
        self.retries: list[tuple[float, int, Job]] = []
        self.transfers: list[tuple[float, int, Job, str]] = []
        self.hand_offs: list[Job] = []
        self.outside: list[Job] = []
        self.to_prefill = Router(options.routing, options.seed, cost_to_prefill)
        self.to_decode = Router(options.decode_routing, options.seed, cost_to_decode)
        self.by_decode = options.first_token_from == codes.BY_DECODE
        self.now, self.events, self.serial = 0.0, 0, 0
        self.touched: set[int] = set()
        self.gaps: list[float] = []
        self.log: list[dict[str, Any]] = []
        self.seen: Counter[str] = Counter()
        self.next_look = options.switch_every_s or NEVER
        self.looked = False  # at the load, since room or roles changed
        self.stopped = ""

    def context(self, job: Job) -> int:
        """Tokens in the cache at a job's next decode, the one being written included."""
        return job.prompt + job.emitted + (1 if self.by_decode else 0)

    def link(self, job: Job, machine: Machine) -> Any:
        return self.links[job.rank.machine.pool_index, machine.pool_index]

    def keeps(self, machine: Machine) -> bool:
        return machine.may_decode and self.options.keep_mixed

    def may_yet_decode(self, machine: Machine) -> bool:
        """Whether a machine decodes, or will where roles or health are still to change."""
        switches = self.options.switch_every_s > 0 or (self.timers and self.has_switches)
        will_be_up = machine.up or bool(self.timers)
        return will_be_up and (machine.may_decode or bool(switches))

    def fits(self, machine: Machine, job: Job) -> bool:
        tokens = job.to_prefill + 1
        if machine.role != codes.PREFILL:
            tokens = job.prompt + job.output
        return bool(-(-tokens // int(machine.pool["block"])) <= machine.pool["kv_blocks"])

    def ends_with_prefill(self, job: Job) -> bool:
        return job.output - job.emitted == 1 and not self.by_decode

    def trim(self, rank: Rank) -> None:
        """Forget what was let go if its memory is needed."""
        self.seen["forgotten"] += rank.cache.trim()

    def keep(self, rank: Rank, job: Job, tokens: int) -> None:
        """Into the cache; where it has some of it already, memory is freed."""
        used, shared = rank.used, rank.cache.shares.get(job, 0)
        rank.cache.keep(job, tokens)
        self.seen["twice"] += rank.used < used
        if rank.cache.shares.get(job, 0) > shared:
            self.note_change()

    def free(self, rank: Rank, job: Job) -> None:
        """A job's memory, but for what stays in the cache."""
        del rank.blocks[job]
        rank.cache.leave(job)
        self.note_change()

    def note_change(self) -> None:
        """Room was made, or roles changed: who asked in vain may ask again."""
        self.looked = False
        for _, _, job in self.retries:
            job.asked_in_vain = False


def chain_of(requests: Requests, index: int) -> list[int]:
    """Ids of the blocks of a request."""
    start, stop = requests.block_start[index : index + 2]
    return [int(i) for i in requests.blocks[start:stop]]


def cost_to_prefill(job: Job, rank: Rank) -> int:
    """Tokens to compute there until the job's prompt is done, but for a constant."""
    return rank.pending_tokens() - rank.cache.found_tokens(job)


def cost_to_decode(job: Job, rank: Rank) -> int:
    """Tokens of KV there once the job's prompt has come, those found counted twice off."""
    return rank.used * int(rank.machine.pool["block"]) - rank.cache.found(job) * rank.cache.unit
