"""Blocks for decodes that grow, and who has to go for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine import codes
from tests.cluster.oracle.leaving import unbind
from tests.cluster.oracle.routing import put, route

if TYPE_CHECKING:
    from tests.cluster.oracle.parts import Job, Rank
    from tests.cluster.oracle.state import Cluster


def grow(c: Cluster, rank: Rank) -> bool:
    """Give every decode the block that it needs; say whether some had to go for it."""
    block = int(rank.machine.pool["block"])

    def wanted() -> list[Job]:
        return [job for job in rank.decodes() if c.context(job) > block * rank.blocks[job]]

    preempted = False
    while len(wanted()) > rank.free:
        preempt(c, rank, max(rank.running, key=lambda job: (job.admitted, job.index)))
        preempted = True
    for job in wanted():
        rank.blocks[job] += 1
        c.seen["grown"] += 1
    c.trim(rank)
    return preempted


def preempt(c: Cluster, rank: Rank, job: Job) -> None:
    job.preemptions += 1
    job.preempted = True
    rank.running.remove(job)
    if job.phase == "decoding":
        rank.cache.keep(job, c.context(job) - 1)
    c.free(rank, job)
    c.seen["preempted_" + job.phase] += 1
    if job.phase == "decoding" and rank.machine.pool["preemption"] == codes.SWAP:
        rank.extra_s += swap_seconds(c, job)
        job.swapped = True
        c.seen["swap_out"] += 1
        put(c, job, rank)
        return
    job.to_prefill, job.in_cache = job.prompt + job.emitted, 0
    unbind(c, job)
    if rank.machine.may_prefill:
        job.in_cache = rank.cache.found_tokens(job)
        put(c, job, rank)
    else:
        c.seen["recompute_elsewhere"] += 1
        route(c, job)


def swap_seconds(c: Cluster, job: Job) -> float:
    pool = job.rank.machine.pool
    size = (c.context(job) - 1) * float(pool["kv_bytes_per_token"])
    return float(size / float(pool["host_bytes_per_s"]))
