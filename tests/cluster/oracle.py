"""The rules of docs/cluster.md, step by step in plain Python: what the engine must equal.

Objects, lists, sorting, and no thought of speed: everything is looked up afresh each time.
Of the engine only its inputs are used, and the look-up of a step's seconds in a table.

    events at one instant -> hand-offs that wait -> batches of the free machines -> next instant
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from chipsim.cluster.engine import codes
from chipsim.cluster.engine.steps import decode_seconds, mixed_seconds, prefill_seconds
from tests.cluster.oracle_parts import (
    NEVER,
    Job,
    Machine,
    Part,
    Rank,
    Reading,
    Router,
    blocks_to_decode,
)
from tests.cluster.oracle_prefix import Cache, Level, Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from chipsim.cluster.engine import Options, Requests, Steps


class Cluster:
    """All of it, at one instant after another."""

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
        self.lay_tiers(tiers)
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

    # ---------------------------------------------------------------- the loop

    def run(self) -> Cluster:
        while not self.stopped:
            t = self.next_chance()
            if t == NEVER:
                self.stopped = "done"
            elif t > self.options.max_time_s:
                self.stopped = "max_time"
            elif self.events >= self.options.max_events:
                self.stopped = "max_events"
            else:
                self.pass_time(t)
                while t in {self.next_time(), self.next_look}:
                    self.events_now()
                    self.serve_hand_offs()
                self.form_batches()
        for job in self.jobs:
            if job.status == "pending":
                job.status = "unfinished"
        return self

    def pass_time(self, t: float) -> None:
        for machine in self.machines:
            machine.totals["used_seconds"] += (t - self.now) * machine.used
        self.now = t

    def next_time(self, *, but_retries: bool = False) -> float:
        times = [machine.ends for machine in self.machines]
        for events in (self.transfers, self.arrivals, self.timers):
            times += [event[0] for event in events]
        if not but_retries:
            times += [event[0] for event in self.retries]
        first = min(times, default=NEVER)
        return min(first, self.next_look) if first < NEVER else NEVER

    def next_chance(self) -> float:
        """The next time; where only hand-offs are left that ask in vain, one must go."""
        vain = all(job.asked_in_vain for _, _, job in self.retries)
        if self.next_time(but_retries=True) < NEVER or not vain:
            return self.next_time()
        waiting = [job for _, _, job in sorted(self.retries, key=lambda event: event[:2])]
        waiting = waiting or self.sorted_hand_offs()
        if not waiting:
            return NEVER
        if not self.looked and self.next_look < NEVER:
            return min(self.next_look, self.next_time())
        self.turn_away(waiting[0])
        self.serve_hand_offs()
        return self.now

    def turn_away(self, job: Job) -> None:
        self.leave_queues(job)
        self.forget(job)
        self.reject(job, "no_place")

    def note_change(self) -> None:
        """Room was made, or roles changed: who asked in vain may ask again."""
        self.looked = False
        for _, _, job in self.retries:
            job.asked_in_vain = False

    def events_now(self) -> None:
        for machine in self.machines:
            if machine.ends == self.now:
                self.end_step(machine)
        self.drain(self.transfers, self.end_transfer)
        self.drain(self.timers, self.befall)
        if self.next_look == self.now:
            self.next_look += self.options.switch_every_s
            self.events += 1
            self.look_at_load()
        self.drain(self.retries, self.queue_hand_off)
        self.drain(self.arrivals, self.arrive)

    def drain(self, events: list[Any], act: Callable[..., None]) -> None:
        """Act on the events of this instant, in the order of their numbers."""
        if events is not self.timers:
            events.sort(key=lambda event: event[:2])
        while due := [event for event in events if event[0] == self.now]:
            events.remove(due[0])
            self.events += 1
            act(*due[0])

    # ---------------------------------------------------------------- arrivals

    def arrive(self, t: float, index: int) -> None:
        job = self.jobs[index]
        job.arrival, job.arrived = t, True
        job.to_prefill = job.prompt
        self.route(job)

    def blocks_to_prefill(self, rank: Rank, job: Job) -> int:
        """Blocks that a prompt takes on a rank when it starts there."""
        if self.will_stay(rank, job):
            return blocks_to_decode(rank.machine, job)
        return -(-(job.to_prefill + 1) // int(rank.machine.pool["block"]))

    def will_stay(self, rank: Rank, job: Job) -> bool:
        """Whether a prompt that starts on a rank now is decoded there."""
        if job.target is not None:
            return job.target is rank
        fits = blocks_to_decode(rank.machine, job) <= rank.machine.pool["kv_blocks"]
        return bool(self.keeps(rank.machine) and fits)

    def fits(self, machine: Machine, job: Job) -> bool:
        tokens = job.to_prefill + 1
        if machine.role != codes.PREFILL:
            tokens = job.prompt + job.output
        return bool(-(-tokens // int(machine.pool["block"])) <= machine.pool["kv_blocks"])

    def ends_with_prefill(self, job: Job) -> bool:
        return job.output - job.emitted == 1 and not self.by_decode

    def route(self, job: Job) -> None:
        """Send a job to where it is prefilled, or say why not."""
        able = [machine for machine in self.machines if machine.up and machine.may_prefill]
        if not able:
            self.no_instance(job)
            return
        fitting = [machine for machine in able if self.fits(machine, job)]
        if not fitting:
            self.reject(job, "too_large")
            return
        rank = self.to_prefill.pick(job, fitting, lambda _: True)
        decoders = [machine for machine in self.machines if self.may_yet_decode(machine)]
        decodes = not self.ends_with_prefill(job)
        if decodes and not rank.machine.may_decode:
            if not decoders:
                self.no_instance(job)
                return
            most = max(m.pool["kv_blocks"] * m.pool["block"] for m in decoders)
            if job.prompt + job.output > most:
                self.reject(job, "too_large")
                return
        limit = rank.machine.pool["max_queue"]
        if limit >= 0 and len(rank.queue) >= limit and not job.preempted:
            self.reject(job, "queue_full")
            return
        at_arrival = self.options.decode_at == codes.AT_ARRIVAL
        if decodes and at_arrival and not self.keeps(rank.machine):
            self.bind(job, rank)
        job.in_cache = rank.cache.found_tokens(job)
        job.queue_start = self.now
        self.put(job, rank)

    def may_yet_decode(self, machine: Machine) -> bool:
        """Whether a machine decodes, or will where roles or health are still to change."""
        switches = self.options.switch_every_s > 0 or (self.timers and self.has_switches)
        will_be_up = machine.up or bool(self.timers)
        return will_be_up and (machine.may_decode or bool(switches))

    def bind(self, job: Job, rank: Rank) -> None:
        """Choose at arrival where a job is to decode, if it can be known."""
        fitting = [
            machine
            for machine in self.machines
            if machine.up and machine.may_decode and self.fits(machine, job)
        ]
        if fitting:
            job.target = self.to_decode.pick(job, fitting, lambda _: True)
            self.seen["bound"] += 1
            if job.target is not rank:
                job.target.coming.append(job)

    def keeps(self, machine: Machine) -> bool:
        return machine.may_decode and self.options.keep_mixed

    def no_instance(self, job: Job) -> None:
        job.phase = "outside"
        if self.timers:
            self.outside.append(job)
            self.seen["outside"] += 1
        else:
            self.reject(job, "no_instance")

    def put(self, job: Job, rank: Rank) -> None:
        """Into a queue."""
        job.rank, job.phase = rank, "waiting"
        order = rank.machine.pool["order"]
        if job.preempted:
            job.key = (-NEVER, job.arrival, job.index)
        elif order == codes.SHORTEST_PROMPT:
            job.key = (job.to_prefill, self.now, job.index)
        elif order == codes.PRIORITY:
            job.key = (job.priority, self.now, job.index)
        else:
            job.key = (0.0, self.now, job.index)
        rank.queue.append(job)
        self.touched.add(rank.machine.index)

    def reject(self, job: Job, reason: str) -> None:
        job.status, job.reason, job.phase = "rejected", reason, "gone"
        self.seen[reason] += 1
        for turn in self.jobs:
            if turn.parent == job.index:
                self.reject(turn, "parent_lost")

    # ---------------------------------------------------------------- batches

    def form_batches(self) -> None:
        self.touched |= {machine.index for machine in self.machines}
        while self.touched:
            machine = self.machines[min(self.touched)]
            self.touched.remove(machine.index)
            if machine.is_free():
                self.form(machine)
        self.touched.clear()

    def form(self, machine: Machine) -> None:
        again = True
        while again:
            for rank in machine.ranks:
                self.join(rank)
            before = sum(job.preemptions for job in self.jobs)
            parts = [part for part in self.batch(machine) if part.decodes or part.chunks]
            if parts:
                self.start_step(machine, parts)
                return
            again = sum(job.preemptions for job in self.jobs) > before
            self.seen["started_over"] += again

    def join(self, rank: Rank) -> None:
        """What was swapped out, then what is ready here, comes into the batch."""
        most = rank.machine.pool["max_batch"]
        while (job := rank.head()) and job.swapped:
            blocks = -(-self.context(job) // int(rank.machine.pool["block"]))
            if blocks > rank.free:
                break
            if len(rank.running) == most:
                self.seen["swapped_waits_for_batch"] += 1
                break
            rank.queue.remove(job)
            rank.blocks[job] = blocks
            self.trim(rank)
            rank.extra_s += self.swap_seconds(job)
            job.swapped = job.preempted = False
            job.phase, job.admitted = "decoding", self.now
            rank.running.append(job)
            self.seen["swap_in"] += 1
        rank.ready.sort(key=lambda job: (job.ready_at, job.index))
        while rank.ready and len(rank.running) < most:
            job = rank.ready.pop(0)
            job.phase, job.admitted, job.decode = "decoding", self.now, rank
            rank.running.append(job)

    def batch(self, machine: Machine) -> list[Part]:
        policy = machine.pool["batching"]
        if policy == codes.CHUNKED:
            return [self.mixed_part(rank) for rank in machine.ranks]
        if policy == codes.DECODE_FIRST:
            return self.decode_parts(machine) or self.prefill_parts(machine)
        return self.prefill_parts(machine) or self.decode_parts(machine)

    def prefill_parts(self, machine: Machine) -> list[Part]:
        parts = [Part(rank, [], self.admit(rank)) for rank in machine.ranks]
        return [part for part in parts if part.chunks]

    def decode_parts(self, machine: Machine) -> list[Part]:
        for rank in machine.ranks:
            self.grow(rank)
        parts = [Part(rank, rank.decodes(), []) for rank in machine.ranks]
        return [part for part in parts if part.decodes]

    def admit(self, rank: Rank) -> list[tuple[Job, int]]:
        """Whole prompts, in order, for one step."""
        chunks: list[tuple[Job, int]] = []
        most = rank.machine.pool["max_tokens"]
        for loaded in self.loaded_ones(rank):
            tokens = sum(size for _, size in chunks)
            if chunks and tokens + loaded.to_prefill - loaded.in_cache > most:
                return chunks
            self.begin(rank, loaded)
            chunks.append((loaded, loaded.to_prefill - loaded.in_cache))
        while job := rank.head():
            tokens = sum(size for _, size in chunks)
            if tokens >= most or not self.admissible(rank, job):
                break
            if chunks and tokens + job.to_prefill - job.in_cache > most:
                self.seen["budget"] += 1
                break
            if self.take(rank, job):
                chunks.append((job, job.to_prefill - job.in_cache))
        return chunks

    def loaded_ones(self, rank: Rank) -> list[Job]:
        """Jobs whose load has ended, in order, as many as the batch has places for."""
        jobs = [job for job in rank.loading if job.phase == "loaded"]
        jobs.sort(key=lambda job: (job.loaded_at, job.index))
        return jobs[: int(rank.machine.pool["max_batch"]) - len(rank.running)]

    def admissible(self, rank: Rank, job: Job) -> bool:
        if job.swapped or len(rank.running) >= rank.machine.pool["max_batch"]:
            self.seen["batch_full"] += 1
            return False
        tokens = rank.cache.found_tokens(job)
        self.seen["found_later"] += tokens > job.in_cache
        self.seen["found_no_more"] += tokens < job.in_cache
        job.in_cache = tokens
        if self.blocks_to_prefill(rank, job) - rank.cache.in_use(job) > rank.free:
            self.seen["no_room"] += 1
            return False
        return True

    def begin(self, rank: Rank, job: Job) -> None:
        """Into the batch."""
        if job in rank.loading:
            rank.loading.remove(job)
            self.seen["began_loaded"] += 1
        rank.running.append(job)
        job.phase, job.admitted, job.prefill = "prefilling", self.now, rank
        job.prefill_start = self.now

    def take(self, rank: Rank, job: Job) -> bool:
        """Out of the queue, with its blocks, into the batch if nothing is to be loaded."""
        rank.queue.remove(job)
        job.stays = self.will_stay(rank, job)
        self.seen["shared"] += rank.cache.in_use(job) > 0
        rank.cache.enter(job)
        rank.blocks[job] = self.blocks_to_prefill(rank, job)
        self.trim(rank)
        job.cached, job.loaded, job.preempted = job.in_cache, 0, False
        rank.machine.totals["found_tokens"] += job.cached
        self.seen["found"] += job.cached > 0
        self.seen["all_found"] += job.cached == job.to_prefill - 1 > 0
        job.sent, job.base, job.last_piece = 0, 0, -NEVER
        if self.load(job):
            return False
        self.begin(rank, job)
        return True

    def mixed_part(self, rank: Rank) -> Part:
        preempted = self.grow(rank)
        decodes = rank.decodes()
        budget = int(rank.machine.pool["max_tokens"]) - len(decodes)
        chunks = []
        for started in [job for job in rank.running if job.phase == "prefilling"]:
            size = min(budget, started.to_prefill - started.in_cache)
            if size:
                chunks.append((started, size))
                budget -= size
        for loaded in [] if preempted else self.loaded_ones(rank):
            if budget:
                self.begin(rank, loaded)
                size = min(budget, loaded.to_prefill - loaded.in_cache)
                chunks.append((loaded, size))
                budget -= size
        while not preempted and budget and (job := rank.head()):
            if not self.admissible(rank, job):
                break
            if not self.take(rank, job):
                continue
            size = min(budget, job.to_prefill - job.in_cache)
            chunks.append((job, size))
            budget -= size
        return Part(rank, decodes, chunks)

    # ---------------------------------------------------------------- preemption

    def context(self, job: Job) -> int:
        """Tokens in the cache at a job's next decode, the one being written included."""
        return job.prompt + job.emitted + (1 if self.by_decode else 0)

    def grow(self, rank: Rank) -> bool:
        """Give every decode the block that it needs; say whether some had to go for it."""
        block = int(rank.machine.pool["block"])

        def wanted() -> list[Job]:
            return [
                job for job in rank.decodes() if self.context(job) > block * rank.blocks[job]
            ]

        preempted = False
        while len(wanted()) > rank.free:
            self.preempt(rank, max(rank.running, key=lambda job: (job.admitted, job.index)))
            preempted = True
        for job in wanted():
            rank.blocks[job] += 1
            self.seen["grown"] += 1
        self.trim(rank)
        return preempted

    def preempt(self, rank: Rank, job: Job) -> None:
        job.preemptions += 1
        job.preempted = True
        rank.running.remove(job)
        if job.phase == "decoding":
            rank.cache.keep(job, self.context(job) - 1)
        self.free(rank, job)
        self.seen["preempted_" + job.phase] += 1
        if job.phase == "decoding" and rank.machine.pool["preemption"] == codes.SWAP:
            rank.extra_s += self.swap_seconds(job)
            job.swapped = True
            self.seen["swap_out"] += 1
            self.put(job, rank)
            return
        job.to_prefill, job.in_cache = job.prompt + job.emitted, 0
        self.unbind(job)
        if rank.machine.may_prefill:
            job.in_cache = rank.cache.found_tokens(job)
            self.put(job, rank)
        else:
            self.seen["recompute_elsewhere"] += 1
            self.route(job)

    def swap_seconds(self, job: Job) -> float:
        pool = job.rank.machine.pool
        size = (self.context(job) - 1) * float(pool["kv_bytes_per_token"])
        return float(size / float(pool["host_bytes_per_s"]))

    # ---------------------------------------------------------------- steps

    def start_step(self, machine: Machine, parts: list[Part]) -> None:
        for part in parts:
            part.seconds = self.part_seconds(self.steps, part) + part.rank.extra_s
            part.rank.extra_s = 0.0
            if self.joules is not None and self.options.energy:
                part.joules = self.part_seconds(self.joules, part)
        seconds = max(part.seconds for part in parts)
        for part in parts:
            for job, _ in part.chunks:
                job.chunk_start, job.chunk_s = self.now, seconds
        machine.parts, machine.started = parts, self.now
        machine.ends = self.now + seconds
        machine.waiting = sum(len(rank.queue) for rank in machine.ranks)
        machine.used_then = machine.used
        machine.totals["joules"] += sum(part.joules for part in parts)

    def book(self, machine: Machine) -> None:
        """Account for a step that ends now."""
        parts, seconds = machine.parts, self.now - machine.started
        prompt_tokens = sum(size for part in parts for _, size in part.chunks)
        decodes = sum(len(part.decodes) for part in parts)
        kind = codes.PREFILL_STEP if not decodes else codes.MIXED_STEP
        kind = kind if prompt_tokens else codes.DECODE_STEP
        name = {codes.PREFILL_STEP: "prefill_s", codes.DECODE_STEP: "decode_s"}
        machine.totals[name.get(kind, "mixed_s")] += seconds
        machine.totals["steps"] += 1
        machine.totals["prompt_tokens"] += prompt_tokens
        machine.totals["decode_tokens"] += decodes
        self.seen[name.get(kind, "mixed_s")] += 1
        self.log.append(
            {
                "start_s": machine.started,
                "end_s": self.now,
                "instance": machine.index,
                "kind": kind,
                "prompt_tokens": prompt_tokens,
                "prompts": sum(len(part.chunks) for part in parts),
                "decodes": decodes,
                "waiting": machine.waiting,
                "kv_blocks": machine.used_then,
            }
        )

    def part_seconds(self, table: Steps, part: Part) -> float:
        kind = int(part.rank.machine.pool["table"])
        contexts = [self.context(job) for job in part.decodes]
        limit = int(table.limit[kind])
        whole, bounded = sum(contexts), sum(min(c, limit) for c in contexts)
        n = len(contexts)
        if not part.chunks:
            return decode_seconds(table, kind, n, float(whole), float(bounded))
        tokens = sum(size for _, size in part.chunks)
        squares = float(sum(size**2 for _, size in part.chunks))
        earlier = float(sum(size * job.in_cache for job, size in part.chunks))
        ends = sum(size + job.in_cache == job.to_prefill for job, size in part.chunks)
        if not n:
            return prefill_seconds(table, kind, tokens, squares, earlier, ends)
        return mixed_seconds(
            table, kind, tokens, squares, earlier, ends, n, float(whole), float(bounded)
        )

    def end_step(self, machine: Machine) -> None:
        self.events += 1
        self.book(machine)
        parts, machine.parts, machine.ends = machine.parts, [], NEVER
        self.touched.add(machine.index)
        for part in parts:
            for job in part.decodes:
                if math.isnan(job.decode_start):
                    job.decode_start = machine.started
                self.emit(job)
            for job in sorted(part.decodes, key=lambda job: job.index):
                if job.emitted == job.output:
                    self.end(job)
            for job, size in part.chunks:
                job.in_cache += size
                self.keep(part.rank, job, job.in_cache)
                if job.in_cache == job.to_prefill:
                    self.end_prefill(job)
                else:
                    self.seen["partial"] += 1
                    self.stream_chunk(job)

    def emit(self, job: Job) -> None:
        if job.tokens_at:
            self.gaps.append(self.now - job.tokens_at[-1])
        job.tokens_at.append(self.now)

    def end(self, job: Job) -> None:
        rank = job.rank
        rank.running.remove(job)
        rank.cache.keep(job, self.context(job) - 1)
        job.status, job.phase, job.finish = "finished", "gone", self.now
        if not self.pass_on(job):
            self.free(rank, job)
        for turn in self.jobs:
            if turn.parent == job.index:
                self.arrivals.append((self.now + turn.think, turn.index))
                self.seen["turns"] += 1

    def end_prefill(self, job: Job) -> None:
        job.prefill_end = self.now
        if not self.by_decode:
            self.emit(job)
            if job.emitted == job.output:
                self.end(job)
                return
        if job.stays:
            job.phase, job.decode, job.target = "decoding", job.rank, None
            return
        job.rank.running.remove(job)
        job.phase = "handing_off"
        if job.reserved is not None:
            self.send(job, job.reserved)
        else:
            self.queue_hand_off(self.now, 0, job)

    # ---------------------------------------------------------------- hand-off

    def stream_chunk(self, job: Job) -> None:
        """Send what a chunk computed, if chunks are streamed."""
        to = job.target
        if to in {None, job.rank} or self.link(job, to.machine)["overlap"] != codes.STREAM:
            return
        waited_for = any(
            other.target and other.target.machine is to.machine for other in self.hand_offs
        )
        if job.reserved is None and not waited_for and self.room(job, to):
            self.reserve(job, to)
        if job.reserved is not None and job.in_cache > job.sent:
            self.send(job, job.reserved)

    def link(self, job: Job, machine: Machine) -> Any:
        return self.links[job.rank.machine.pool_index, machine.pool_index]

    def serve_hand_offs(self) -> None:
        self.hand_offs = self.sorted_hand_offs()
        if self.options.retry_s > 0:
            for job in list(self.hand_offs):
                self.hand_offs.remove(job)
                if not self.place(job) and not self.hopeless(job):
                    job.asked_in_vain = True
                    self.serial += 1
                    self.retries.append((self.now + self.options.retry_s, self.serial, job))
                    self.seen["asked_again"] += 1
            return
        for target in [None, *self.machines]:
            while waiting := [
                job for job in self.hand_offs if (job.target and job.target.machine) is target
            ]:
                if self.place(waiting[0]):
                    self.hand_offs.remove(waiting[0])
                elif not self.hopeless(waiting[0]):
                    self.seen["hand_off_waits"] += 1
                    break

    def sorted_hand_offs(self) -> list[Job]:
        """Those bound for no machine, then those of each; in the order in which they came."""

        def key(job: Job) -> tuple[float, ...]:
            return (job.target.machine.index if job.target else -1, job.entered, job.index)

        return sorted(self.hand_offs, key=key)

    def hopeless(self, job: Job) -> bool:
        """Turn a job away that is bound for nowhere and will never fit."""
        size = job.prompt + job.output
        if job.target or any(
            size <= machine.pool["kv_blocks"] * machine.pool["block"]
            for machine in self.machines
            if self.may_yet_decode(machine)
        ):
            return False
        self.turn_away(job)
        return True

    def queue_hand_off(self, t: float, _: int, job: Job) -> None:
        job.entered = t
        self.hand_offs.append(job)

    def room(self, job: Job, rank: Rank) -> bool:
        there = rank.blocks[job] if job in rank.blocks else rank.cache.in_use(job)
        return blocks_to_decode(rank.machine, job) - there <= rank.free

    def place(self, job: Job) -> bool:
        """Reserve where it is to decode, and send it there."""
        rank = job.target
        if rank is None:
            having = [
                machine
                for machine in self.machines
                if machine.up and machine.may_decode and self.fits(machine, job)
                and any(self.room(job, rank) for rank in machine.ranks)
            ]  # fmt: skip
            if not having:
                return False
            rank = self.to_decode.pick(job, having, lambda rank: self.room(job, rank))
            if rank is job.rank:
                self.seen["stays_after_all"] += 1
                rank.blocks[job] = blocks_to_decode(rank.machine, job)
                self.trim(rank)
                job.phase, job.ready_at = "ready", self.now
                rank.ready.append(job)
                self.touched.add(rank.machine.index)
                return True
            rank.coming.append(job)
        elif not self.room(job, rank):
            return False
        self.reserve(job, rank)
        self.send(job, rank)
        return True

    def reserve(self, job: Job, rank: Rank) -> None:
        job.reserved = rank
        there = rank.cache.enter(job)
        rank.blocks[job] = blocks_to_decode(rank.machine, job)
        self.trim(rank)
        job.sent = job.base = min(there * rank.cache.unit, job.to_prefill)
        self.seen["base"] += there > 0
        self.seen["all_there"] += job.base == job.to_prefill

    def send(self, job: Job, rank: Rank) -> None:
        """Send what is in the cache and not yet sent."""
        source, target = job.rank.machine, rank.machine
        link = self.link(job, target)
        tokens = max(0, job.in_cache - job.sent)
        size = tokens * float(link["bytes_per_token"])
        descriptors = link["descriptors"] + link["descriptors_per_token"] * tokens
        total = float(
            link["latency_s"] + descriptors * link["descriptor_s"] + size / link["bytes_per_s"]
        )
        earliest, least = self.now, -NEVER
        if link["overlap"] == codes.LAYERWISE and job.prefill_end == self.now:
            layers = int(link["layers"])
            earliest = job.chunk_start + job.chunk_s / layers
            least = job.prefill_end + total / layers
            self.seen["layerwise"] += 1
        start = max(earliest, job.last_piece)
        if link["contention"] == codes.NIC:
            start = max(start, source.send_free, target.receive_free)
            self.seen["nic_waits"] += start > earliest
        done = max(start + total, least)
        if link["contention"] == codes.NIC:
            source.send_free = target.receive_free = done
        if job.sent == job.base:
            job.transfer_start = start
        self.seen["pieces"] += job.phase == "prefilling"
        job.sent, job.last_piece = max(job.sent, job.in_cache), done
        job.transfer_end = done
        if job.phase != "handing_off":
            return
        job.phase = "transferring"
        self.serial += 1
        self.transfers.append((done, self.serial, job, "end"))
        size = (job.in_cache - job.base) * float(link["bytes_per_token"])
        wait = size / float(link["dequant_bytes_per_s"])
        if wait:
            self.serial += 1
            self.transfers.append((done + wait, self.serial, job, "ready"))
            self.seen["dequantised"] += 1
        job.ready_at = done + wait

    def end_transfer(self, t: float, _: int, job: Job, what: str) -> None:
        if what in {"loaded", "written"}:
            self.end_load(job) if what == "loaded" else self.end_writing(job)
            return
        if what == "end":
            self.free(job.rank, job)
            self.touched.add(job.rank.machine.index)
            self.seen["transfers"] += 1
            assert job.reserved is not None
            job.rank, job.reserved, job.target, job.phase = job.reserved, None, None, "arrived"
        if job.ready_at == t:
            job.rank.coming.remove(job)
            job.rank.ready.append(job)
            job.phase = "ready"
            self.keep(job.rank, job, job.to_prefill)
            self.touched.add(job.rank.machine.index)

    # ---------------------------------------------------------------- tiers, next turns

    def lay_tiers(self, tiers: Any) -> None:
        """Each rank's levels from the host's memory down; the last is one for all."""
        if tiers is None:
            return
        last = Store(int(tiers[0, 2]["room"]), None)
        for machine in self.machines:
            for rank in machine.ranks:
                store: Store | None = last if last.room else None
                levels: list[Level | None] = []
                for row in reversed(tiers[machine.pool_index]):
                    if levels and row["room"]:
                        store = Store(int(row["room"]), store)
                    way = (
                        Level(store, float(row["latency_s"]), float(row["block_s"]))
                        if store
                        else None
                    )
                    there = row["room"] and (rank.cache.on or not levels)
                    levels.insert(0, way if there else None)
                rank.cache.levels = levels

    def load(self, job: Job) -> bool:
        """Load what comes next of a prompt, if that is faster than computing it."""
        cache = job.rank.cache
        wanted = job.chain[: job.to_prefill // cache.unit] if cache.on else []
        place = cache.shares[job]
        if job.in_cache >= job.to_prefill - 1 or place >= len(wanted):
            return False
        return self.load_from_rank(job, place) or self.load_from_level(job, place, wanted)

    def load_from_rank(self, job: Job, place: int) -> bool:
        """All of it that the pool's rank with most of it has, where these have one index."""
        rank, pool = job.rank, job.rank.machine.pool_index
        others = [
            other
            for machine in self.machines
            for other in machine.ranks
            if machine.pool_index == pool and other is not rank
        ]
        if rank.machine.pool["prefix_cache"] != codes.BY_POOL or not others:
            return False
        peer = max(others, key=lambda other: (other.cache.found(job), -other.number))
        stop = peer.cache.found(job)
        if stop <= place:
            return False
        link, sender, receiver = self.links[pool, pool], peer.machine, rank.machine
        tokens, nic = (stop - place) * rank.cache.unit, link["contention"] == codes.NIC
        start = max(self.now, sender.send_free, receiver.receive_free) if nic else self.now
        descriptors = link["descriptors"] + link["descriptors_per_token"] * tokens
        size = tokens * float(link["bytes_per_token"])
        sent = start + link["latency_s"] + descriptors * link["descriptor_s"]
        sent = float(sent + size / link["bytes_per_s"])
        end = sent + size / float(link["dequant_bytes_per_s"])
        if not self.pays(job, stop, end):
            return False
        if nic:
            self.seen["peer_waits"] += start > self.now
            sender.send_free = receiver.receive_free = sent
        assert job not in peer.blocks
        self.seen["peer_idle"] += any(not peer.cache.users[i] for i in job.chain[:stop])
        peer.cache.take_in(job, stop)
        peer.blocks[job] = stop * peer.cache.span
        self.seen["peer_loads"] += 1
        self.wait_for(job, place, stop, end, peer)
        return True

    def load_from_level(self, job: Job, place: int, wanted: list[int]) -> bool:
        """What the first level has that has any."""
        cache = job.rank.cache
        having = [level for level in cache.levels if level and level.store.has(wanted[place])]
        if not having:
            return False
        level, stop = having[0], place + 1
        while stop < len(wanted) and level.store.has(wanted[stop]):
            stop += 1
        end = max(self.now, level.free) + level.latency + (stop - place) * level.block_s
        if not self.pays(job, stop, end):
            return False
        self.seen[f"loads_{cache.levels.index(level)}"] += 1
        self.seen["load_waits"] += level.free > self.now
        level.store.read(wanted[place:stop])
        level.free = end
        self.wait_for(job, place, stop, end, level.store)
        return True

    def tokens_of(self, job: Job, stop: int) -> int:
        """Tokens that so many leading blocks save."""
        return min(stop * job.rank.cache.unit, job.to_prefill - 1) - job.in_cache

    def pays(self, job: Job, stop: int, end: float) -> bool:
        left, tokens = job.to_prefill - job.in_cache, self.tokens_of(job, stop)
        saved = self.alone(job.rank, left, job.in_cache)
        saved -= self.alone(job.rank, left - tokens, job.in_cache + tokens)
        if end - self.now >= saved:
            self.seen["faster_computed"] += 1
            return False
        return True

    def wait_for(
        self, job: Job, place: int, stop: int, end: float, source: Store | Rank
    ) -> None:
        ids, tokens = job.chain[place:stop], self.tokens_of(job, stop)
        job.reading = Reading(source, ids, tokens, stop)
        self.seen["loads_again"] += job.phase == "loading"
        if job.phase != "loading":
            job.rank.loading.append(job)
        job.phase = "loading"
        self.serial += 1
        self.transfers.append((end, self.serial, job, "loaded"))

    def stop_reading(self, job: Job) -> Reading:
        """Let go of what is read."""
        reading = job.reading
        assert reading is not None
        job.reading = None
        if isinstance(reading.source, Store):
            reading.source.done(reading.ids)
        else:
            self.free(reading.source, job)
            self.touched.add(reading.source.machine.index)
        return reading

    def alone(self, rank: Rank, tokens: int, earlier: int) -> float:
        kind = int(rank.machine.pool["table"])
        cross = float(tokens * earlier)
        return prefill_seconds(self.steps, kind, tokens, float(tokens**2), cross, 1)

    def end_load(self, job: Job) -> None:
        rank, reading = job.rank, self.stop_reading(job)
        job.in_cache += reading.tokens
        job.loaded += reading.tokens
        rank.machine.totals["loaded_tokens"] += reading.tokens
        self.keep(rank, job, reading.stop * rank.cache.unit)
        self.go_on(job)

    def go_on(self, job: Job) -> None:
        """Load more, or let the rest be computed."""
        if not self.load(job):
            job.phase, job.loaded_at = "loaded", self.now
            self.touched.add(job.rank.machine.index)

    def pass_on(self, job: Job) -> bool:
        """Begin to write a finished job's KV to where its next turn looks for it."""
        rank, way = job.rank, self.options.next_turn
        turns = any(turn.parent == job.index for turn in self.jobs)
        caching = any(r.cache.on for machine in self.machines for r in machine.ranks)
        if way == codes.RECOMPUTE_OUTPUT or not turns or job.prefill is rank or not caching:
            return False
        unit = rank.cache.unit
        stop = min(len(job.chain), (self.context(job) - 1) // unit)
        end = (
            self.store(job, stop) if way == codes.WRITE_TO_STORE else self.send_back(job, stop)
        )
        if end is None:
            return False
        rank.blocks[job] = -(-stop * unit // int(rank.machine.pool["block"]))
        self.note_change()
        job.phase, job.writing = "writing", stop
        self.serial += 1
        self.transfers.append((end, self.serial, job, "written"))
        return True

    def send_back(self, job: Job, stop: int) -> float | None:
        rank, to = job.rank, job.prefill
        assert to is not None
        if not to.machine.up or not to.cache.on:
            return None
        there = to.cache.found_in(job.chain[:stop])
        shared = sum(bool(to.cache.users[i]) for i in job.chain[:there])
        if there == stop or (stop - shared) * to.cache.span > to.free:
            self.seen["no_room_to_return"] += there < stop
            return None
        to.cache.take_in(job, there)
        to.blocks[job] = stop * to.cache.span
        self.trim(to)
        link, tokens = self.link(job, to.machine), (stop - there) * rank.cache.unit
        descriptors = link["descriptors"] + link["descriptors_per_token"] * tokens
        start, nic = self.now, link["contention"] == codes.NIC
        if nic:
            start = max(start, rank.machine.send_free, to.machine.receive_free)
        size = tokens * float(link["bytes_per_token"])
        end = start + link["latency_s"] + descriptors * link["descriptor_s"]
        end = float(end + size / link["bytes_per_s"])
        if nic:
            rank.machine.send_free = to.machine.receive_free = end
        to.machine.totals["returned_tokens"] += tokens
        self.seen["returned"] += 1
        return end

    def store(self, job: Job, stop: int) -> float | None:
        level = job.rank.cache.levels[2]
        assert level is not None
        lacks = sum(not level.store.has(i) for i in job.chain[:stop])
        if not lacks:
            return None
        level.free = max(self.now, level.free) + level.latency + lacks * level.block_s
        job.rank.machine.totals["returned_tokens"] += lacks * job.rank.cache.unit
        self.seen["stored"] += 1
        return level.free

    def end_writing(self, job: Job) -> None:
        rank, to, unit = job.rank, job.prefill, job.rank.cache.unit
        job.phase = "gone"
        if self.options.next_turn == codes.WRITE_TO_STORE:
            level = rank.cache.levels[2]
            assert level is not None
            for i in reversed(job.chain[: job.writing]):
                level.store.put(i)
            to = None
        self.free(rank, job)
        self.touched.add(rank.machine.index)
        if to:
            self.keep(to, job, job.writing * unit)
            self.free(to, job)
            self.touched.add(to.machine.index)

    def stop_writing(self, job: Job, failed: Machine) -> None:
        """Neither end keeps what it has for it, if one of them failed."""
        ends = [job.rank]
        if self.options.next_turn == codes.WRITE_BACK and job.prefill:
            ends.append(job.prefill)
        if failed in [rank.machine for rank in ends]:
            self.leave_queues(job)
            for rank in ends:
                self.free(rank, job)
            job.phase = "gone"
            self.seen["stopped_writing"] += 1

    # ---------------------------------------------------------------- memory

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

    # ---------------------------------------------------------------- faults and roles

    def befall(self, _: float, kind: int, index: int, value: int) -> None:
        machine = self.machines[index]
        if kind == codes.FAULT:
            machine.faults += 1
            if machine.up:
                self.fail(machine)
        elif kind == codes.RECOVERY:
            machine.faults -= 1
            machine.up = machine.faults == 0
            self.seen["recovered"] += machine.up
            self.note_change()
        else:
            self.switch(machine, value)
        if not self.timers:
            self.note_change()
        outside, self.outside = self.outside, []
        for job in sorted(outside, key=lambda job: (job.arrival, not job.preempted, job.index)):
            self.route(job)

    def fail(self, machine: Machine) -> None:
        """Step and memory are gone: what was on it, or on its way to it, starts anew."""
        machine.up, machine.parts, machine.ends = False, [], NEVER
        machine.send_free = machine.receive_free = -NEVER
        under_way = [
            job for job in self.jobs if job.phase not in {"outside", "gone", "writing"}
        ]
        lost = [
            job
            for job in under_way
            if job.rank.machine is machine
            or (job.phase == "transferring" and job.bound_for is not None
                and job.bound_for.machine is machine)
        ]  # fmt: skip
        cut_off = [
            job
            for job in under_way
            if job not in lost
            and job.reading
            and isinstance(job.reading.source, Rank)
            and job.reading.source.machine is machine
        ]
        for job in cut_off:
            self.leave_queues(job)
            self.stop_reading(job)
            self.seen["cut_off"] += 1
        for job in reversed(self.jobs):
            if job.phase == "writing":
                self.stop_writing(job, machine)
            elif job in lost:
                self.seen["lost_" + job.phase] += 1
                self.leave_queues(job)
                self.forget(job)
            elif (
                job in under_way
                and job.bound_for is not None
                and job.bound_for.machine is machine
            ):
                self.seen["unbound_" + job.phase] += 1
                self.unbind(job)
        for rank in machine.ranks:
            rank.extra_s = 0.0
            rank.cache.clear()
        self.note_change()
        for job in cut_off:
            self.go_on(job)
        for job in lost:
            job.retries += 1
            job.preempted = job.swapped = False
            job.to_prefill, job.in_cache = job.prompt + job.emitted, 0
            self.route(job)

    def leave_queues(self, job: Job) -> None:
        """Out of all that waits for a time or for room."""
        self.transfers = [event for event in self.transfers if event[2] is not job]
        self.retries = [event for event in self.retries if event[2] is not job]
        self.hand_offs = [other for other in self.hand_offs if other is not job]

    def forget(self, job: Job) -> None:
        """Out of every list and memory of its own rank, and of the one that it is bound for."""
        if job.reading:  # perhaps from where it is bound for
            self.stop_reading(job)
        self.unbind(job)
        rank = job.rank
        for jobs in (rank.queue, rank.running, rank.ready, rank.coming, rank.loading):
            if job in jobs:
                jobs.remove(job)
        rank.blocks.pop(job, None)
        rank.cache.leave(job)
        job.phase = "outside"
        self.note_change()

    def unbind(self, job: Job) -> None:
        """It goes where it was bound for no more."""
        rank = job.bound_for
        if rank is not None and rank is not job.rank:
            rank.coming.remove(job)
            rank.cache.leave(job)
            if rank.blocks.pop(job, 0):
                self.note_change()
        job.target = job.reserved = None
        job.sent, job.base, job.last_piece = 0, 0, -NEVER

    def switch(self, machine: Machine, role: int) -> None:
        """What runs on it goes on; prompts that wait go elsewhere if it takes no more."""
        machine.role = role
        self.seen["switched"] += 1
        self.note_change()
        if machine.may_prefill:
            return
        for rank in machine.ranks:
            rank.head()
            for job in [job for job in rank.queue if not job.swapped]:
                rank.queue.remove(job)
                self.unbind(job)
                self.seen["sent_away"] += 1
                self.route(job)

    def look_at_load(self) -> None:
        """Turn the idlest machine of one side to the other, if only the other is short."""
        self.looked = True
        sides: dict[int, list[Machine]] = {codes.PREFILL: [], codes.DECODE: []}
        for machine in self.machines:
            if machine.up and machine.role in sides:
                sides[machine.role].append(machine)
        prefills, decodes = sides[codes.PREFILL], sides[codes.DECODE]
        tokens = sum(machine.pending_tokens() for machine in prefills)
        used = sum(machine.used for machine in decodes)
        memory = sum(len(m.ranks) * int(m.pool["kv_blocks"]) for m in decodes)
        short_of_prefill = tokens > self.options.switch_tokens * len(prefills)
        short_of_decode = used > self.options.switch_kv * memory
        if short_of_prefill and not short_of_decode and len(decodes) > 1:
            idlest = min(decodes, key=lambda machine: (machine.used, machine.index))
            self.switch(idlest, codes.PREFILL)
            self.seen["switched_to_prefill"] += 1
        elif short_of_decode and not short_of_prefill and len(prefills) > 1:
            idlest = min(
                prefills, key=lambda machine: (machine.pending_tokens(), machine.index)
            )
            self.switch(idlest, codes.DECODE)
            self.seen["switched_to_decode"] += 1


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
