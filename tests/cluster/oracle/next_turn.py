"""What a finished job leaves for the next turn of its conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine import codes
from tests.cluster.oracle.leaving import leave_queues

if TYPE_CHECKING:
    from tests.cluster.oracle.parts import Job, Machine
    from tests.cluster.oracle.state import Cluster


def pass_on(c: Cluster, job: Job) -> bool:
    """Begin to write a finished job's KV to where its next turn looks for it."""
    rank, way = job.rank, c.options.next_turn
    turns = any(turn.parent == job.index for turn in c.jobs)
    caching = any(r.cache.on for machine in c.machines for r in machine.ranks)
    if way == codes.RECOMPUTE_OUTPUT or not turns or job.prefill is rank or not caching:
        return False
    unit = rank.cache.unit
    stop = min(len(job.chain), (c.context(job) - 1) // unit)
    end = store(c, job, stop) if way == codes.WRITE_TO_STORE else send_back(c, job, stop)
    if end is None:
        return False
    rank.blocks[job] = -(-stop * unit // int(rank.machine.pool["block"]))
    c.note_change()
    job.phase, job.writing = "writing", stop
    c.serial += 1
    c.transfers.append((end, c.serial, job, "written"))
    return True


def send_back(c: Cluster, job: Job, stop: int) -> float | None:
    rank, to = job.rank, job.prefill
    assert to is not None
    if not to.machine.up or not to.cache.on:
        return None
    there = to.cache.found_in(job.chain[:stop])
    shared = sum(bool(to.cache.users[i]) for i in job.chain[:there])
    if there == stop or (stop - shared) * to.cache.span > to.free:
        c.seen["no_room_to_return"] += there < stop
        return None
    to.cache.take_in(job, there)
    to.blocks[job] = stop * to.cache.span
    c.trim(to)
    link, tokens = c.link(job, to.machine), (stop - there) * rank.cache.unit
    descriptors = link["descriptors"] + link["descriptors_per_token"] * tokens
    start, nic = c.now, link["contention"] == codes.NIC
    if nic:
        start = max(start, rank.machine.send_free, to.machine.receive_free)
    size = tokens * float(link["bytes_per_token"])
    end = start + link["latency_s"] + descriptors * link["descriptor_s"]
    end = float(end + size / link["bytes_per_s"])
    if nic:
        rank.machine.send_free = to.machine.receive_free = end
    to.machine.totals["returned_tokens"] += tokens
    c.seen["returned"] += 1
    return end


def store(c: Cluster, job: Job, stop: int) -> float | None:
    level = job.rank.cache.levels[2]
    assert level is not None
    lacks = sum(not level.store.has(i) for i in job.chain[:stop])
    if not lacks:
        return None
    level.free = max(c.now, level.free) + level.latency + lacks * level.block_s
    job.rank.machine.totals["returned_tokens"] += lacks * job.rank.cache.unit
    c.seen["stored"] += 1
    return level.free


def end_writing(c: Cluster, job: Job) -> None:
    rank, to, unit = job.rank, job.prefill, job.rank.cache.unit
    job.phase = "gone"
    if c.options.next_turn == codes.WRITE_TO_STORE:
        level = rank.cache.levels[2]
        assert level is not None
        for i in reversed(job.chain[: job.writing]):
            level.store.put(i)
        to = None
    c.free(rank, job)
    c.touched.add(rank.machine.index)
    if to:
        c.keep(to, job, job.writing * unit)
        c.free(to, job)
        c.touched.add(to.machine.index)


def stop_writing(c: Cluster, job: Job, failed: Machine) -> None:
    """Neither end keeps what it has for it, if one of them failed."""
    ends = [job.rank]
    if c.options.next_turn == codes.WRITE_BACK and job.prefill:
        ends.append(job.prefill)
    if failed in [rank.machine for rank in ends]:
        leave_queues(c, job)
        for rank in ends:
            c.free(rank, job)
        job.phase = "gone"
        c.seen["stopped_writing"] += 1
