"""Prefix caches and tiers in the plain engine of `oracle`: sets, and lists to search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.cluster.oracle.parts import Job, Machine, Rank


@dataclass(eq=False)
class Store:
    """Memory below a rank's own."""

    room: int
    below: Store | None
    idle: list[int] = field(default_factory=list)  # ids that nobody reads, oldest first
    readers: dict[int, int] = field(default_factory=dict)

    def has(self, i: int) -> bool:
        return i in self.idle or i in self.readers

    def put(self, i: int) -> None:
        """As the newest; the oldest goes one down for it."""
        pushed = None
        if i in self.readers:
            return
        if i in self.idle:
            self.idle.remove(i)
        elif len(self.idle) + len(self.readers) >= self.room:
            if not self.idle:
                return
            pushed = self.idle.pop(0)
        self.idle.append(i)
        if pushed is not None and self.below:
            self.below.put(pushed)

    def read(self, ids: list[int]) -> None:
        for i in ids:
            if i in self.idle:
                self.idle.remove(i)
            self.readers[i] = self.readers.get(i, 0) + 1

    def done(self, ids: list[int]) -> None:
        for i in reversed(ids):
            self.readers[i] -= 1
            if not self.readers[i]:
                del self.readers[i]
                self.idle.append(i)


@dataclass(eq=False)
class Level:
    """A rank's way to a store."""

    store: Store
    latency: float
    block_s: float
    free: float = 0.0


@dataclass(eq=False)
class Cache:
    """What a rank still holds of prompts."""

    rank: Rank
    unit: int  # tokens of a block of a chain
    on: bool
    users: dict[int, set[Job]] = field(default_factory=dict)  # of each id that is here
    let_go: list[int] = field(default_factory=list)  # ids that nobody uses, oldest first
    shares: dict[Job, int] = field(default_factory=dict)  # leading ids that a job uses here
    levels: list[Level | None] = field(default_factory=list)

    @property
    def span(self) -> int:
        return self.unit // int(self.rank.machine.pool["block"]) if self.on else 0

    @property
    def saved(self) -> int:
        """Blocks that are counted for several jobs, but are there once."""
        in_use = sum(1 for users in self.users.values() if users)
        return self.span * (sum(self.shares.values()) - in_use)

    def found(self, job: Job) -> int:
        """Leading blocks of a job's chain that are here."""
        return self.found_in(job.chain[: job.to_prefill // self.unit])

    def found_in(self, wanted: list[int]) -> int:
        wanted = wanted if self.on else []
        count = 0
        while count < len(wanted) and wanted[count] in self.users:
            count += 1
        return count

    def found_tokens(self, job: Job) -> int:
        return min(self.found(job) * self.unit, job.to_prefill - 1)

    def in_use(self, job: Job) -> int:
        """Blocks that a job would share with others."""
        return self.span * sum(bool(self.users[i]) for i in job.chain[: self.found(job)])

    def enter(self, job: Job) -> int:
        """A job comes and uses what is found of it."""
        count = self.found(job)
        self.take_in(job, count)
        return count

    def take_in(self, job: Job, count: int) -> None:
        """A job uses the leading blocks of its chain, which are here."""
        self.shares[job] = 0
        self._extend(job, count)

    def keep(self, job: Job, tokens: int) -> None:
        """What a job has computed comes in, as far as blocks are whole."""
        if self.on:
            self._extend(job, min(len(job.chain), tokens // self.unit))

    def _extend(self, job: Job, count: int) -> None:
        for i in job.chain[self.shares.get(job, 0) : count]:
            self.users.setdefault(i, set()).add(job)
            if i in self.let_go:
                self.let_go.remove(i)
        self.shares[job] = max(count, self.shares.get(job, 0))

    def leave(self, job: Job) -> None:
        """A job lets go, of the end of its chain first."""
        for i in reversed(job.chain[: self.shares.pop(job, 0)]):
            self.users[i].remove(job)
            if not self.users[i]:
                self.let_go.append(i)

    def trim(self) -> int:
        """Forget what was let go longest ago until all fits; how many blocks of chains."""
        count = 0
        first = next((level.store for level in self.levels if level), None)
        while self.span * len(self.let_go) > self.rank.free:
            i = self.let_go.pop(0)
            del self.users[i]
            count += 1
            if first:
                first.put(i)
        return count

    def clear(self) -> None:
        self.users.clear()
        self.let_go.clear()
        self.shares.clear()
        for level in self.levels[:2]:
            if level:
                level.free = 0.0
                level.store.idle.clear()


def lay_tiers(machines: list[Machine], tiers: Any) -> None:
    """Each rank's levels from the host's memory down; the last is one for all."""
    if tiers is None:
        return
    last = Store(int(tiers[0, 2]["room"]), None)
    for machine in machines:
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
