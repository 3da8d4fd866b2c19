"""What a free machine does next: who joins its batch, and a step's chunks and decodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine import codes
from tests.cluster.oracle.loads import load
from tests.cluster.oracle.parts import NEVER, Job, Machine, Part, Rank, blocks_to_decode
from tests.cluster.oracle.preemption import grow, swap_seconds
from tests.cluster.oracle.steps import start_step

if TYPE_CHECKING:
    from tests.cluster.oracle.state import Cluster


def form_batches(c: Cluster) -> None:
    c.touched |= {machine.index for machine in c.machines}
    while c.touched:
        machine = c.machines[min(c.touched)]
        c.touched.remove(machine.index)
        if machine.is_free():
            form(c, machine)
    c.touched.clear()


def form(c: Cluster, machine: Machine) -> None:
    again = True
    while again:
        for rank in machine.ranks:
            join(c, rank)
        before = sum(job.preemptions for job in c.jobs)
        parts = [part for part in batch(c, machine) if part.decodes or part.chunks]
        if parts:
            start_step(c, machine, parts)
            return
        again = sum(job.preemptions for job in c.jobs) > before
        c.seen["started_over"] += again


def join(c: Cluster, rank: Rank) -> None:
    """What was swapped out, then what is ready here, comes into the batch."""
    most = rank.machine.pool["max_batch"]
    while (job := rank.head()) and job.swapped:
        blocks = -(-c.context(job) // int(rank.machine.pool["block"]))
        if blocks > rank.free:
            break
        if len(rank.running) == most:
            c.seen["swapped_waits_for_batch"] += 1
            break
        rank.queue.remove(job)
        rank.blocks[job] = blocks
        c.trim(rank)
        rank.extra_s += swap_seconds(c, job)
        job.swapped = job.preempted = False
        job.phase, job.admitted = "decoding", c.now
        rank.running.append(job)
        c.seen["swap_in"] += 1
    rank.ready.sort(key=lambda job: (job.ready_at, job.index))
    while rank.ready and len(rank.running) < most:
        job = rank.ready.pop(0)
        job.phase, job.admitted, job.decode = "decoding", c.now, rank
        rank.running.append(job)


def batch(c: Cluster, machine: Machine) -> list[Part]:
    policy = machine.pool["batching"]
    if policy == codes.CHUNKED:
        return [mixed_part(c, rank) for rank in machine.ranks]
    if policy == codes.DECODE_FIRST:
        return decode_parts(c, machine) or prefill_parts(c, machine)
    return prefill_parts(c, machine) or decode_parts(c, machine)


def prefill_parts(c: Cluster, machine: Machine) -> list[Part]:
    parts = [Part(rank, [], admit(c, rank)) for rank in machine.ranks]
    return [part for part in parts if part.chunks]


def decode_parts(c: Cluster, machine: Machine) -> list[Part]:
    for rank in machine.ranks:
        grow(c, rank)
    parts = [Part(rank, rank.decodes(), []) for rank in machine.ranks]
    return [part for part in parts if part.decodes]


def mixed_part(c: Cluster, rank: Rank) -> Part:
    preempted = grow(c, rank)
    decodes = rank.decodes()
    budget = int(rank.machine.pool["max_tokens"]) - len(decodes)
    chunks = []
    for started in [job for job in rank.running if job.phase == "prefilling"]:
        size = min(budget, started.to_prefill - started.in_cache)
        if size:
            chunks.append((started, size))
            budget -= size
    for loaded in [] if preempted else loaded_ones(rank):
        if budget:
            begin(c, rank, loaded)
            size = min(budget, loaded.to_prefill - loaded.in_cache)
            chunks.append((loaded, size))
            budget -= size
    while not preempted and budget and (job := rank.head()):
        if not admissible(c, rank, job):
            break
        if not take(c, rank, job):
            continue
        size = min(budget, job.to_prefill - job.in_cache)
        chunks.append((job, size))
        budget -= size
    return Part(rank, decodes, chunks)


def admit(c: Cluster, rank: Rank) -> list[tuple[Job, int]]:
    """Whole prompts, in order, for one step."""
    chunks: list[tuple[Job, int]] = []
    most = rank.machine.pool["max_tokens"]
    for loaded in loaded_ones(rank):
        tokens = sum(size for _, size in chunks)
        if chunks and tokens + loaded.to_prefill - loaded.in_cache > most:
            return chunks
        begin(c, rank, loaded)
        chunks.append((loaded, loaded.to_prefill - loaded.in_cache))
    while job := rank.head():
        tokens = sum(size for _, size in chunks)
        if tokens >= most or not admissible(c, rank, job):
            break
        if chunks and tokens + job.to_prefill - job.in_cache > most:
            c.seen["budget"] += 1
            break
        if take(c, rank, job):
            chunks.append((job, job.to_prefill - job.in_cache))
    return chunks


def loaded_ones(rank: Rank) -> list[Job]:
    """Jobs whose load has ended, in order, as many as the batch has places for."""
    jobs = [job for job in rank.loading if job.phase == "loaded"]
    jobs.sort(key=lambda job: (job.loaded_at, job.index))
    return jobs[: int(rank.machine.pool["max_batch"]) - len(rank.running)]


def admissible(c: Cluster, rank: Rank, job: Job) -> bool:
    if job.swapped or len(rank.running) >= rank.machine.pool["max_batch"]:
        c.seen["batch_full"] += 1
        return False
    tokens = rank.cache.found_tokens(job)
    c.seen["found_later"] += tokens > job.in_cache
    c.seen["found_no_more"] += tokens < job.in_cache
    job.in_cache = tokens
    if blocks_to_prefill(c, rank, job) - rank.cache.in_use(job) > rank.free:
        c.seen["no_room"] += 1
        return False
    return True


def take(c: Cluster, rank: Rank, job: Job) -> bool:
    """Out of the queue, with its blocks, into the batch if nothing is to be loaded."""
    rank.queue.remove(job)
    job.stays = will_stay(c, rank, job)
    c.seen["shared"] += rank.cache.in_use(job) > 0
    rank.cache.enter(job)
    rank.blocks[job] = blocks_to_prefill(c, rank, job)
    c.trim(rank)
    job.cached, job.loaded, job.preempted = job.in_cache, 0, False
    rank.machine.totals["found_tokens"] += job.cached
    c.seen["found"] += job.cached > 0
    c.seen["all_found"] += job.cached == job.to_prefill - 1 > 0
    job.sent, job.base, job.last_piece = 0, 0, -NEVER
    if load(c, job):
        return False
    begin(c, rank, job)
    return True


def begin(c: Cluster, rank: Rank, job: Job) -> None:
    """Into the batch."""
    if job in rank.loading:
        rank.loading.remove(job)
        c.seen["began_loaded"] += 1
    rank.running.append(job)
    job.phase, job.admitted, job.prefill = "prefilling", c.now, rank
    job.prefill_start = c.now


def blocks_to_prefill(c: Cluster, rank: Rank, job: Job) -> int:
    """Blocks that a prompt takes on a rank when it starts there."""
    if will_stay(c, rank, job):
        return blocks_to_decode(rank.machine, job)
    return -(-(job.to_prefill + 1) // int(rank.machine.pool["block"]))


def will_stay(c: Cluster, rank: Rank, job: Job) -> bool:
    """Whether a prompt that starts on a rank now is decoded there."""
    if job.target is not None:
        return job.target is rank
    fits = blocks_to_decode(rank.machine, job) <= rank.machine.pool["kv_blocks"]
    return bool(c.keeps(rank.machine) and fits)
