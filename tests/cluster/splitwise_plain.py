"""Splitwise's rules a second time, with plain lists: what the engine's policy is held to.

Machines keep the lists that the public simulator keeps (waiting tasks by bisection, waiting
prompts, preempted decodes, requests by arrival), events stand in one heap, and every batch
is chosen by walking the lists.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass(eq=False)
class Job:
    number: int
    arrival: float
    prompt: int
    output: int
    memory: int = 0
    there: Machine | None = None  # decodes
    ttft: float = 0.0
    e2e: float = 0.0


@dataclass(eq=False)
class Task:
    job: Job
    kind: str  # prompt or decode
    left: int
    cost: int
    memory: int
    passed: int = 0
    blocked: bool = False
    started: bool = False

    def key(self) -> tuple[int, float]:
        return self.passed, self.job.arrival


class Room:
    """A batch as it fills."""

    def __init__(self, memory: int) -> None:
        self.memory, self.tokens = memory, 0
        self.chosen: list[Task] = []
        self.jobs: set[Job] = set()

    def take(
        self, tasks: Iterable[Task], *, skip_large: bool = False, others: bool = False
    ) -> None:
        """Take tasks in order until one does not fit; there already: counts unless others."""
        for task in tasks:
            if len(self.chosen) == 512:
                break
            if others and task.job in self.jobs:
                continue
            if self.chosen and self.tokens + task.cost > 2048:
                break
            if task.job in self.jobs:
                continue
            if not task.started and task.memory > self.memory:
                if skip_large:
                    continue
                break
            self.chosen.append(task)
            self.jobs.add(task.job)
            self.tokens += task.cost
            self.memory -= 0 if task.started else task.memory


@dataclass(eq=False)
class Machine:
    number: int
    tag: str
    capacity: int
    prompt_s: Callable[[int], float]
    token_s: Callable[[int], float]
    sim: Sim
    memory: int = 0
    promised: int = 0
    pending_tokens: int = 0
    pool: str = ""
    waiting: list[Task] = field(default_factory=list)
    prompts: list[Task] = field(default_factory=list)
    preempted: list[Task] = field(default_factory=list)
    batch: list[Task] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    tasks: dict[Job, list[Task]] = field(default_factory=dict)
    batch_tokens: int = 0
    each_s: float = 0.0
    count: int = 0
    start: float = 0.0
    cut: bool = False
    ticket: int = -1

    def add(self, task: Task) -> None:
        if task.job not in self.jobs:
            bisect.insort(self.jobs, task.job, key=lambda job: job.arrival)
            self.tasks[task.job] = []
        self.tasks[task.job].append(task)
        bisect.insort(self.waiting, task, key=Task.key)
        if task.kind == "prompt":
            self.prompts.append(task)
        if not self.batch:
            if self.memory + task.memory <= self.capacity:
                self.form()
        elif len(self.batch) < 512 and self.batch_tokens + task.cost <= 2048:
            self.shorten()
        elif task.kind == "prompt":
            decodes = sum(other.kind == "decode" for other in self.batch)
            if decodes and self.batch_tokens - decodes + task.cost <= 2048:
                self.shorten()

    def choose(self) -> list[Task]:
        room = Room(self.capacity - self.memory)
        starved = itertools.takewhile(lambda task: task.passed >= 4, self.waiting)
        room.take(starved, skip_large=True)
        room.take(self.prompts)
        room.take(itertools.chain(self.preempted, self.batch))
        room.take((self.tasks[job][0] for job in self.jobs), others=True)
        self.batch_tokens = room.tokens
        return room.chosen

    def preempt(self, task: Task) -> None:
        task.blocked = True
        self.batch.remove(task)
        bisect.insort(self.waiting, task, key=Task.key)
        self.preempted.append(task)

    def begin(self, task: Task) -> None:
        self.waiting.remove(task)
        if task.blocked:
            self.preempted.remove(task)
            task.blocked = False
        if task.kind == "prompt":
            self.prompts.remove(task)
        if not task.started:
            task.started = True
            self.memory += task.memory
            task.job.memory += task.memory
        self.batch.append(task)

    def form(self) -> None:
        old, chosen = list(self.batch), self.choose()
        for task in old:
            if task not in chosen:
                self.preempt(task)
        for task in chosen:
            if task not in old:
                self.begin(task)
        for job in self.jobs:
            if self.tasks[job][0] not in self.batch:
                self.tasks[job][0].passed += 1
        if self.batch:
            self.start_batch()
        elif not self.jobs and self.pool == "mixed":
            self.sim.move(self, self.tag)

    def start_batch(self) -> None:
        prompt = sum(task.cost for task in self.batch if task.kind == "prompt")
        decodes = sum(task.kind == "decode" for task in self.batch)
        if not prompt:
            self.each_s, self.count = self.token_s(decodes), min(t.left for t in self.batch)
        else:
            mixed = 1.1 if decodes else 1.0
            self.each_s, self.count = self.prompt_s(prompt + decodes) * mixed, 1
        self.start, self.cut = self.sim.now, False
        self.schedule()

    def schedule(self) -> None:
        self.ticket = self.sim.at(self.start + self.each_s * self.count, self.end)

    def shorten(self) -> None:
        if not self.cut and all(task.kind == "decode" for task in self.batch):
            self.cut = True
            self.count = int((self.sim.now - self.start) // self.each_s) + 1
            self.schedule()

    def end(self) -> None:
        for task in self.batch:
            task.left -= self.count if task.kind == "decode" else 1
        for task in [task for task in self.batch if task.left == 0]:
            self.batch.remove(task)
            self.tasks[task.job].remove(task)
            if not self.tasks[task.job]:
                del self.tasks[task.job]
                self.jobs.remove(task.job)
            self.sim.done(self, task)
        self.cut = False
        self.form()


def tokens_before(machine: Machine) -> int:
    return machine.pending_tokens


def memory_promised(machine: Machine) -> int:
    return machine.promised


class Sim:
    """Machines, their pools, and the events."""

    def __init__(self, split: bool, kv_bytes: float, limit: int = 8192) -> None:
        self.now, self.split, self.kv_bytes, self.limit = 0.0, split, kv_bytes, limit
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.tickets = itertools.count()
        self.machines: list[Machine] = []
        self.pools: dict[str, list[Machine]] = {"prompt": [], "token": [], "mixed": []}

    def at(self, time: float, action: Callable[[], None]) -> int:
        ticket = next(self.tickets)
        heapq.heappush(self.events, (time, ticket, action))
        return ticket

    def add(self, machine: Machine) -> None:
        self.machines.append(machine)
        machine.pool = machine.tag
        self.pools.setdefault(machine.tag, []).append(machine)

    def move(self, machine: Machine, pool: str) -> None:
        self.pools[machine.pool].remove(machine)
        self.pools[pool].append(machine)
        machine.pool = pool

    def run(self, jobs: list[Job]) -> None:
        for job in jobs:
            self.at(job.arrival, lambda job=job: self.arrive(job))  # type: ignore[misc]
        while self.events:
            time, ticket, action = heapq.heappop(self.events)
            owner = getattr(action, "__self__", None)
            if isinstance(owner, Machine) and owner.ticket != ticket:
                continue
            self.now = time
            action()

    def arrive(self, job: Job) -> None:
        prompt, token = self.route(job)
        job.there = token
        prompt.add(Task(job, "prompt", 1, job.prompt, job.prompt + 1))
        if prompt is token:
            token.add(Task(job, "decode", job.output - 1, 1, job.output - 1))

    def route(self, job: Job) -> tuple[Machine, Machine]:
        if not self.split:
            machine = min(self.machines, key=tokens_before)
            machine.pending_tokens += job.prompt + 1
            return machine, machine
        prompt = self.prompt_machine(job) or self.prompt_machine(job, "mixed")
        token = self.token_machine(job) or self.token_machine(job, "mixed")
        if prompt is None and self.pools["token"]:
            prompt = min(self.pools["token"], key=tokens_before)
            self.move(prompt, "mixed")
        if token is None and self.pools["prompt"]:
            token = min(self.pools["prompt"], key=memory_promised)
            self.move(token, "mixed")
        if prompt is None or token is None:
            every = [m for name in ("prompt", "mixed", "token") for m in self.pools[name]]
            prompt = token = min(every, key=tokens_before)
        if prompt is not token:
            prompt.promised += job.prompt + 1
        token.promised += job.prompt + job.output
        prompt.pending_tokens += job.prompt
        token.pending_tokens += 1
        return prompt, token

    def prompt_machine(self, job: Job, pool: str = "prompt") -> Machine | None:
        best = min(self.pools[pool], key=tokens_before, default=None)
        if best and best.waiting and best.pending_tokens + job.prompt > self.limit:
            return None
        return best

    def token_machine(self, job: Job, pool: str = "token") -> Machine | None:
        best = min(self.pools[pool], key=memory_promised, default=None)
        if best and best.promised + job.prompt + job.output > best.capacity:
            return None
        return best

    def done(self, machine: Machine, task: Task) -> None:
        job = task.job
        if task.kind == "decode":
            machine.pending_tokens -= 1
            machine.memory -= job.memory
            machine.promised -= job.memory
            job.e2e = self.now - job.arrival
            return
        machine.pending_tokens -= job.prompt
        job.ttft = self.now - job.arrival
        if job.there is not machine:
            self.send(job, machine)

    def send(self, job: Job, source: Machine) -> None:
        there = job.there
        assert there is not None
        if there.memory + job.memory > there.capacity:
            self.at(self.now + 1.0, lambda: self.send(job, source))
            return
        there.memory += job.memory
        seconds = job.prompt * self.kv_bytes / (200 * 2**30)
        self.at(self.now + seconds, lambda: self.sent(job, source))

    def sent(self, job: Job, source: Machine) -> None:
        there = job.there
        assert there is not None
        source.memory -= job.memory
        source.promised -= job.memory
        there.add(Task(job, "decode", job.output - 1, 1, job.output - 1))
        if source.waiting:
            first = source.waiting[0]
            if not source.batch:
                if source.memory + first.memory <= source.capacity:
                    source.form()
            elif len(source.batch) < 512 and source.batch_tokens < 2048:
                source.shorten()
