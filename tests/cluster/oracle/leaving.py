"""Jobs that go: out of queues, memories and promises, or turned away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cluster.oracle.loads import stop_reading
from tests.cluster.oracle.parts import NEVER, Job

if TYPE_CHECKING:
    from tests.cluster.oracle.state import Cluster


def reject(c: Cluster, job: Job, reason: str) -> None:
    job.status, job.reason, job.phase = "rejected", reason, "gone"
    c.seen[reason] += 1
    for turn in c.jobs:
        if turn.parent == job.index:
            reject(c, turn, "parent_lost")


def turn_away(c: Cluster, job: Job) -> None:
    leave_queues(c, job)
    forget(c, job)
    reject(c, job, "no_place")


def forget(c: Cluster, job: Job) -> None:
    """Out of every list and memory of its own rank, and of the one that it is bound for."""
    if job.reading:  # perhaps from where it is bound for
        stop_reading(c, job)
    unbind(c, job)
    rank = job.rank
    for jobs in (rank.queue, rank.running, rank.ready, rank.coming, rank.loading):
        if job in jobs:
            jobs.remove(job)
    rank.blocks.pop(job, None)
    rank.cache.leave(job)
    job.phase = "outside"
    c.note_change()


def unbind(c: Cluster, job: Job) -> None:
    """It goes where it was bound for no more."""
    rank = job.bound_for
    if rank is not None and rank is not job.rank:
        rank.coming.remove(job)
        rank.cache.leave(job)
        if rank.blocks.pop(job, 0):
            c.note_change()
    job.target = job.reserved = None
    job.sent, job.base, job.last_piece = 0, 0, -NEVER


def leave_queues(c: Cluster, job: Job) -> None:
    """Out of all that waits for a time or for room."""
    c.transfers = [event for event in c.transfers if event[2] is not job]
    c.retries = [event for event in c.retries if event[2] is not job]
    c.hand_offs = [other for other in c.hand_offs if other is not job]
