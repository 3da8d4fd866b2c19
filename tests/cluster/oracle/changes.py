"""Faults, recoveries and roles that change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine import codes
from tests.cluster.oracle.leaving import forget, leave_queues, unbind
from tests.cluster.oracle.loads import go_on, stop_reading
from tests.cluster.oracle.next_turn import stop_writing
from tests.cluster.oracle.parts import NEVER, Machine, Rank
from tests.cluster.oracle.routing import route

if TYPE_CHECKING:
    from tests.cluster.oracle.state import Cluster


def befall(c: Cluster, _: float, kind: int, index: int, value: int) -> None:
    machine = c.machines[index]
    if kind == codes.FAULT:
        machine.faults += 1
        if machine.up:
            fail(c, machine)
    elif kind == codes.RECOVERY:
        machine.faults -= 1
        machine.up = machine.faults == 0
        c.seen["recovered"] += machine.up
        c.note_change()
    else:
        switch(c, machine, value)
    if not c.timers:
        c.note_change()
    outside, c.outside = c.outside, []
    for job in sorted(outside, key=lambda job: (job.arrival, not job.preempted, job.index)):
        route(c, job)


def fail(c: Cluster, machine: Machine) -> None:
    """Step and memory are gone: what was on it, or on its way to it, starts anew."""
    machine.up, machine.parts, machine.ends = False, [], NEVER
    machine.send_free = machine.receive_free = -NEVER
    under_way = [job for job in c.jobs if job.phase not in {"outside", "gone", "writing"}]
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
        leave_queues(c, job)
        stop_reading(c, job)
        c.seen["cut_off"] += 1
    for job in reversed(c.jobs):
        if job.phase == "writing":
            stop_writing(c, job, machine)
        elif job in lost:
            c.seen["lost_" + job.phase] += 1
            leave_queues(c, job)
            forget(c, job)
        elif (
            job in under_way and job.bound_for is not None and job.bound_for.machine is machine
        ):
            c.seen["unbound_" + job.phase] += 1
            unbind(c, job)
    for rank in machine.ranks:
        rank.extra_s = 0.0
        rank.cache.clear()
    c.note_change()
    for job in cut_off:
        go_on(c, job)
    for job in lost:
        job.retries += 1
        job.preempted = job.swapped = False
        job.to_prefill, job.in_cache = job.prompt + job.emitted, 0
        route(c, job)


def switch(c: Cluster, machine: Machine, role: int) -> None:
    """What runs on it goes on; prompts that wait go elsewhere if it takes no more."""
    machine.role = role
    c.seen["switched"] += 1
    c.note_change()
    if machine.may_prefill:
        return
    for rank in machine.ranks:
        rank.head()
        for job in [job for job in rank.queue if not job.swapped]:
            rank.queue.remove(job)
            unbind(c, job)
            c.seen["sent_away"] += 1
            route(c, job)


def look_at_load(c: Cluster) -> None:
    """Turn the idlest machine of one side to the other, if only the other is short."""
    c.looked = True
    sides: dict[int, list[Machine]] = {codes.PREFILL: [], codes.DECODE: []}
    for machine in c.machines:
        if machine.up and machine.role in sides:
            sides[machine.role].append(machine)
    prefills, decodes = sides[codes.PREFILL], sides[codes.DECODE]
    tokens = sum(machine.pending_tokens() for machine in prefills)
    used = sum(machine.used for machine in decodes)
    memory = sum(len(m.ranks) * int(m.pool["kv_blocks"]) for m in decodes)
    short_of_prefill = tokens > c.options.switch_tokens * len(prefills)
    short_of_decode = used > c.options.switch_kv * memory
    if short_of_prefill and not short_of_decode and len(decodes) > 1:
        idlest = min(decodes, key=lambda machine: (machine.used, machine.index))
        switch(c, idlest, codes.PREFILL)
        c.seen["switched_to_prefill"] += 1
    elif short_of_decode and not short_of_prefill and len(prefills) > 1:
        idlest = min(prefills, key=lambda machine: (machine.pending_tokens(), machine.index))
        switch(c, idlest, codes.DECODE)
        c.seen["switched_to_decode"] += 1
