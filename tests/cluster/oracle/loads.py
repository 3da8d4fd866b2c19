"""Blocks of a prompt that come from another rank or from below, if that is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine import codes
from chipsim.cluster.engine.steps import prefill_seconds
from tests.cluster.oracle.parts import Job, Rank, Reading
from tests.cluster.oracle.prefix import Store

if TYPE_CHECKING:
    from tests.cluster.oracle.state import Cluster


def load(c: Cluster, job: Job) -> bool:
    """Load what comes next of a prompt, if that is faster than computing it."""
    cache = job.rank.cache
    wanted = job.chain[: job.to_prefill // cache.unit] if cache.on else []
    place = cache.shares[job]
    if job.in_cache >= job.to_prefill - 1 or place >= len(wanted):
        return False
    return load_from_rank(c, job, place) or load_from_level(c, job, place, wanted)


def load_from_rank(c: Cluster, job: Job, place: int) -> bool:
    """All of it that the pool's rank with most of it has, where these have one index."""
    rank, pool = job.rank, job.rank.machine.pool_index
    others = [
        other
        for machine in c.machines
        for other in machine.ranks
        if machine.pool_index == pool and other is not rank
    ]
    if rank.machine.pool["prefix_cache"] != codes.BY_POOL or not others:
        return False
    peer = max(others, key=lambda other: (other.cache.found(job), -other.number))
    stop = peer.cache.found(job)
    if stop <= place:
        return False
    link, sender, receiver = c.links[pool, pool], peer.machine, rank.machine
    tokens, nic = (stop - place) * rank.cache.unit, link["contention"] == codes.NIC
    start = max(c.now, sender.send_free, receiver.receive_free) if nic else c.now
    descriptors = link["descriptors"] + link["descriptors_per_token"] * tokens
    size = tokens * float(link["bytes_per_token"])
    sent = start + link["latency_s"] + descriptors * link["descriptor_s"]
    sent = float(sent + size / link["bytes_per_s"])
    end = sent + size / float(link["dequant_bytes_per_s"])
    if not pays(c, job, stop, end):
        return False
    if nic:
        c.seen["peer_waits"] += start > c.now
        sender.send_free = receiver.receive_free = sent
    assert job not in peer.blocks
    c.seen["peer_idle"] += any(not peer.cache.users[i] for i in job.chain[:stop])
    peer.cache.take_in(job, stop)
    peer.blocks[job] = stop * peer.cache.span
    c.seen["peer_loads"] += 1
    wait_for(c, job, place, stop, end, peer)
    return True


def load_from_level(c: Cluster, job: Job, place: int, wanted: list[int]) -> bool:
    """What the first level has that has any."""
    cache = job.rank.cache
    having = [level for level in cache.levels if level and level.store.has(wanted[place])]
    if not having:
        return False
    level, stop = having[0], place + 1
    while stop < len(wanted) and level.store.has(wanted[stop]):
        stop += 1
    end = max(c.now, level.free) + level.latency + (stop - place) * level.block_s
    if not pays(c, job, stop, end):
        return False
    c.seen[f"loads_{cache.levels.index(level)}"] += 1
    c.seen["load_waits"] += level.free > c.now
    level.store.read(wanted[place:stop])
    level.free = end
    wait_for(c, job, place, stop, end, level.store)
    return True


def tokens_of(job: Job, stop: int) -> int:
    """Tokens that so many leading blocks save."""
    return min(stop * job.rank.cache.unit, job.to_prefill - 1) - job.in_cache


def pays(c: Cluster, job: Job, stop: int, end: float) -> bool:
    left, tokens = job.to_prefill - job.in_cache, tokens_of(job, stop)
    saved = alone(c, job.rank, left, job.in_cache)
    saved -= alone(c, job.rank, left - tokens, job.in_cache + tokens)
    if end - c.now >= saved:
        c.seen["faster_computed"] += 1
        return False
    return True


def alone(c: Cluster, rank: Rank, tokens: int, earlier: int) -> float:
    kind = int(rank.machine.pool["table"])
    cross = float(tokens * earlier)
    return prefill_seconds(c.steps, kind, tokens, float(tokens**2), cross, 1)


def wait_for(
    c: Cluster, job: Job, place: int, stop: int, end: float, source: Store | Rank
) -> None:
    ids, tokens = job.chain[place:stop], tokens_of(job, stop)
    job.reading = Reading(source, ids, tokens, stop)
    c.seen["loads_again"] += job.phase == "loading"
    if job.phase != "loading":
        job.rank.loading.append(job)
    job.phase = "loading"
    c.serial += 1
    c.transfers.append((end, c.serial, job, "loaded"))


def end_load(c: Cluster, job: Job) -> None:
    rank, reading = job.rank, stop_reading(c, job)
    job.in_cache += reading.tokens
    job.loaded += reading.tokens
    rank.machine.totals["loaded_tokens"] += reading.tokens
    c.keep(rank, job, reading.stop * rank.cache.unit)
    go_on(c, job)


def go_on(c: Cluster, job: Job) -> None:
    """Load more, or let the rest be computed."""
    if not load(c, job):
        job.phase, job.loaded_at = "loaded", c.now
        c.touched.add(job.rank.machine.index)


def stop_reading(c: Cluster, job: Job) -> Reading:
    """Let go of what is read."""
    reading = job.reading
    assert reading is not None
    job.reading = None
    if isinstance(reading.source, Store):
        reading.source.done(reading.ids)
    else:
        c.free(reading.source, job)
        c.touched.add(reading.source.machine.index)
    return reading
