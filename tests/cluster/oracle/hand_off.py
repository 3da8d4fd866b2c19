"""From where a job was prefilled to where it is decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine import codes
from tests.cluster.oracle.leaving import turn_away
from tests.cluster.oracle.loads import end_load
from tests.cluster.oracle.next_turn import end_writing
from tests.cluster.oracle.parts import NEVER, Job, Rank, blocks_to_decode

if TYPE_CHECKING:
    from tests.cluster.oracle.state import Cluster


def queue_hand_off(c: Cluster, t: float, _: int, job: Job) -> None:
    job.entered = t
    c.hand_offs.append(job)


def serve_hand_offs(c: Cluster) -> None:
    c.hand_offs = sorted_hand_offs(c)
    if c.options.retry_s > 0:
        for job in list(c.hand_offs):
            c.hand_offs.remove(job)
            if not place(c, job) and not hopeless(c, job):
                job.asked_in_vain = True
                c.serial += 1
                c.retries.append((c.now + c.options.retry_s, c.serial, job))
                c.seen["asked_again"] += 1
        return
    for target in [None, *c.machines]:
        while waiting := [
            job for job in c.hand_offs if (job.target and job.target.machine) is target
        ]:
            if place(c, waiting[0]):
                c.hand_offs.remove(waiting[0])
            elif not hopeless(c, waiting[0]):
                c.seen["hand_off_waits"] += 1
                break


def sorted_hand_offs(c: Cluster) -> list[Job]:
    """Those bound for no machine, then those of each; in the order in which they came."""

    def key(job: Job) -> tuple[float, ...]:
        return (job.target.machine.index if job.target else -1, job.entered, job.index)

    return sorted(c.hand_offs, key=key)


def hopeless(c: Cluster, job: Job) -> bool:
    """Turn a job away that is bound for nowhere and will never fit."""
    size = job.prompt + job.output
    if job.target or any(
        size <= machine.pool["kv_blocks"] * machine.pool["block"]
        for machine in c.machines
        if c.may_yet_decode(machine)
    ):
        return False
    turn_away(c, job)
    return True


def place(c: Cluster, job: Job) -> bool:
    """Reserve where it is to decode, and send it there."""
    rank = job.target
    if rank is None:
        having = [
            machine
            for machine in c.machines
            if machine.up and machine.may_decode and c.fits(machine, job)
            and any(room(job, rank) for rank in machine.ranks)
        ]  # fmt: skip
        if not having:
            return False
        rank = c.to_decode.pick(job, having, lambda rank: room(job, rank))
        if rank is job.rank:
            c.seen["stays_after_all"] += 1
            rank.blocks[job] = blocks_to_decode(rank.machine, job)
            c.trim(rank)
            job.phase, job.ready_at = "ready", c.now
            rank.ready.append(job)
            c.touched.add(rank.machine.index)
            return True
        rank.coming.append(job)
    elif not room(job, rank):
        return False
    reserve(c, job, rank)
    send(c, job, rank)
    return True


def room(job: Job, rank: Rank) -> bool:
    there = rank.blocks[job] if job in rank.blocks else rank.cache.in_use(job)
    return blocks_to_decode(rank.machine, job) - there <= rank.free


def reserve(c: Cluster, job: Job, rank: Rank) -> None:
    job.reserved = rank
    there = rank.cache.enter(job)
    rank.blocks[job] = blocks_to_decode(rank.machine, job)
    c.trim(rank)
    job.sent = job.base = min(there * rank.cache.unit, job.to_prefill)
    c.seen["base"] += there > 0
    c.seen["all_there"] += job.base == job.to_prefill


def stream_chunk(c: Cluster, job: Job) -> None:
    """Send what a chunk computed, if chunks are streamed."""
    to = job.target
    if to in {None, job.rank} or c.link(job, to.machine)["overlap"] != codes.STREAM:
        return
    waited_for = any(
        other.target and other.target.machine is to.machine for other in c.hand_offs
    )
    if job.reserved is None and not waited_for and room(job, to):
        reserve(c, job, to)
    if job.reserved is not None and job.in_cache > job.sent:
        send(c, job, job.reserved)


def send(c: Cluster, job: Job, rank: Rank) -> None:
    """Send what is in the cache and not yet sent."""
    source, target = job.rank.machine, rank.machine
    link = c.link(job, target)
    tokens = max(0, job.in_cache - job.sent)
    size = tokens * float(link["bytes_per_token"])
    descriptors = link["descriptors"] + link["descriptors_per_token"] * tokens
    total = float(
        link["latency_s"] + descriptors * link["descriptor_s"] + size / link["bytes_per_s"]
    )
    earliest, least = c.now, -NEVER
    if link["overlap"] == codes.LAYERWISE and job.prefill_end == c.now:
        layers = int(link["layers"])
        earliest = job.chunk_start + job.chunk_s / layers
        least = job.prefill_end + total / layers
        c.seen["layerwise"] += 1
    start = max(earliest, job.last_piece)
    if link["contention"] == codes.NIC:
        start = max(start, source.send_free, target.receive_free)
        c.seen["nic_waits"] += start > earliest
    done = max(start + total, least)
    if link["contention"] == codes.NIC:
        source.send_free = target.receive_free = done
    if job.sent == job.base:
        job.transfer_start = start
    c.seen["pieces"] += job.phase == "prefilling"
    job.sent, job.last_piece = max(job.sent, job.in_cache), done
    job.transfer_end = done
    if job.phase != "handing_off":
        return
    job.phase = "transferring"
    c.serial += 1
    c.transfers.append((done, c.serial, job, "end"))
    size = (job.in_cache - job.base) * float(link["bytes_per_token"])
    wait = size / float(link["dequant_bytes_per_s"])
    if wait:
        c.serial += 1
        c.transfers.append((done + wait, c.serial, job, "ready"))
        c.seen["dequantised"] += 1
    job.ready_at = done + wait


def end_transfer(c: Cluster, t: float, _: int, job: Job, what: str) -> None:
    if what in {"loaded", "written"}:
        end_load(c, job) if what == "loaded" else end_writing(c, job)
        return
    if what == "end":
        c.free(job.rank, job)
        c.touched.add(job.rank.machine.index)
        c.seen["transfers"] += 1
        assert job.reserved is not None
        job.rank, job.reserved, job.target, job.phase = job.reserved, None, None, "arrived"
    if job.ready_at == t:
        job.rank.coming.remove(job)
        job.rank.ready.append(job)
        job.phase = "ready"
        c.keep(job.rank, job, job.to_prefill)
        c.touched.add(job.rank.machine.index)
