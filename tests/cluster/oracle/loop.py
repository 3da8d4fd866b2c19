"""The rules of docs/cluster.md, step by step in plain Python: what the engine must equal.

Objects, lists, sorting, and no thought of speed: everything is looked up afresh each time.
Of the engine only its inputs are used, and the look-up of a step's seconds in a table.

    events at one instant -> hand-offs that wait -> batches of the free machines -> next instant
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.cluster.oracle.batches import form_batches
from tests.cluster.oracle.changes import befall, look_at_load
from tests.cluster.oracle.hand_off import (
    end_transfer,
    queue_hand_off,
    serve_hand_offs,
    sorted_hand_offs,
)
from tests.cluster.oracle.leaving import turn_away
from tests.cluster.oracle.parts import NEVER
from tests.cluster.oracle.routing import route
from tests.cluster.oracle.steps import end_step

if TYPE_CHECKING:
    from tests.cluster.oracle.state import Cluster


def play(c: Cluster) -> Cluster:
    """Until nothing is left to happen, or a bound is reached."""
    while not c.stopped:
        t = next_chance(c)
        if t == NEVER:
            c.stopped = "done"
        elif t > c.options.max_time_s:
            c.stopped = "max_time"
        elif c.events >= c.options.max_events:
            c.stopped = "max_events"
        else:
            pass_time(c, t)
            while t in {next_time(c), c.next_look}:
                events_now(c)
                serve_hand_offs(c)
            form_batches(c)
    for job in c.jobs:
        if job.status == "pending":
            job.status = "unfinished"
    return c


def pass_time(c: Cluster, t: float) -> None:
    for machine in c.machines:
        machine.totals["used_seconds"] += (t - c.now) * machine.used
    c.now = t


def next_time(c: Cluster, *, but_retries: bool = False) -> float:
    times = [machine.ends for machine in c.machines]
    for events in (c.transfers, c.arrivals, c.timers):
        times += [event[0] for event in events]
    if not but_retries:
        times += [event[0] for event in c.retries]
    first = min(times, default=NEVER)
    return min(first, c.next_look) if first < NEVER else NEVER


def next_chance(c: Cluster) -> float:
    """The next time; where only hand-offs are left that ask in vain, one must go."""
    vain = all(job.asked_in_vain for _, _, job in c.retries)
    if next_time(c, but_retries=True) < NEVER or not vain:
        return next_time(c)
    waiting = [job for _, _, job in sorted(c.retries, key=lambda event: event[:2])]
    waiting = waiting or sorted_hand_offs(c)
    if not waiting:
        return NEVER
    if not c.looked and c.next_look < NEVER:
        return min(c.next_look, next_time(c))
    turn_away(c, waiting[0])
    serve_hand_offs(c)
    return c.now


def events_now(c: Cluster) -> None:
    for machine in c.machines:
        if machine.ends == c.now:
            end_step(c, machine)
    drain(c, c.transfers, end_transfer)
    drain(c, c.timers, befall)
    if c.next_look == c.now:
        c.next_look += c.options.switch_every_s
        c.events += 1
        look_at_load(c)
    drain(c, c.retries, queue_hand_off)
    drain(c, c.arrivals, arrive)


def drain(c: Cluster, events: list[Any], act: Callable[..., None]) -> None:
    """Act on the events of this instant, in the order of their numbers."""
    if events is not c.timers:
        events.sort(key=lambda event: event[:2])
    while due := [event for event in events if event[0] == c.now]:
        events.remove(due[0])
        c.events += 1
        act(c, *due[0])


def arrive(c: Cluster, t: float, index: int) -> None:
    job = c.jobs[index]
    job.arrival, job.arrived = t, True
    job.to_prefill = job.prompt
    route(c, job)
