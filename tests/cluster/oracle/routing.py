"""Where a job is prefilled, and the queue that it waits in there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine import codes
from tests.cluster.oracle.leaving import reject
from tests.cluster.oracle.parts import NEVER, Job, Rank

if TYPE_CHECKING:
    from tests.cluster.oracle.state import Cluster


def route(c: Cluster, job: Job) -> None:
    """Send a job to where it is prefilled, or say why not."""
    able = [machine for machine in c.machines if machine.up and machine.may_prefill]
    if not able:
        no_instance(c, job)
        return
    fitting = [machine for machine in able if c.fits(machine, job)]
    if not fitting:
        reject(c, job, "too_large")
        return
    rank = c.to_prefill.pick(job, fitting, lambda _: True)
    decoders = [machine for machine in c.machines if c.may_yet_decode(machine)]
    decodes = not c.ends_with_prefill(job)
    if decodes and not rank.machine.may_decode:
        if not decoders:
            no_instance(c, job)
            return
        most = max(m.pool["kv_blocks"] * m.pool["block"] for m in decoders)
        if job.prompt + job.output > most:
            reject(c, job, "too_large")
            return
    limit = rank.machine.pool["max_queue"]
    if limit >= 0 and len(rank.queue) >= limit and not job.preempted:
        reject(c, job, "queue_full")
        return
    at_arrival = c.options.decode_at == codes.AT_ARRIVAL
    if decodes and at_arrival and not c.keeps(rank.machine):
        bind(c, job, rank)
    job.in_cache = rank.cache.found_tokens(job)
    job.queue_start = c.now
    put(c, job, rank)


def bind(c: Cluster, job: Job, rank: Rank) -> None:
    """Choose at arrival where a job is to decode, if it can be known."""
    fitting = [
        machine
        for machine in c.machines
        if machine.up and machine.may_decode and c.fits(machine, job)
    ]
    if fitting:
        job.target = c.to_decode.pick(job, fitting, lambda _: True)
        c.seen["bound"] += 1
        if job.target is not rank:
            job.target.coming.append(job)


def no_instance(c: Cluster, job: Job) -> None:
    job.phase = "outside"
    if c.timers:
        c.outside.append(job)
        c.seen["outside"] += 1
    else:
        reject(c, job, "no_instance")


def put(c: Cluster, job: Job, rank: Rank) -> None:
    """Into a queue."""
    job.rank, job.phase = rank, "waiting"
    order = rank.machine.pool["order"]
    if job.preempted:
        job.key = (-NEVER, job.arrival, job.index)
    elif order == codes.SHORTEST_PROMPT:
        job.key = (job.to_prefill, c.now, job.index)
    elif order == codes.PRIORITY:
        job.key = (job.priority, c.now, job.index)
    else:
        job.key = (0.0, c.now, job.index)
    rank.queue.append(job)
    c.touched.add(rank.machine.index)
