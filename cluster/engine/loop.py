"""The event loop.

the earliest time -> all that happens at it -> batches of the instances it touched
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.engine.ahead import catch_up, cut_all
from chipsim.cluster.engine.batching import form_step
from chipsim.cluster.engine.changes import befall, check_load
from chipsim.cluster.engine.codes import (
    CLOCK,
    DONE,
    EVENT_BOUND,
    IDLE,
    LOADING,
    NO_ROOM,
    TIME_BOUND,
    WRITING,
)
from chipsim.cluster.engine.heaps import heap_pop
from chipsim.cluster.engine.loading import end_load
from chipsim.cluster.engine.next_turn import end_writing
from chipsim.cluster.engine.queues import queue_pop
from chipsim.cluster.engine.requests import submit
from chipsim.cluster.engine.state import in_kernel
from chipsim.cluster.engine.stepping import end_step, interrupt, start_step
from chipsim.cluster.engine.transfer import (
    ask_again,
    end_transfer,
    serve_handoffs,
    skip_retries,
    turn_away,
    waiting_handoff,
)
from chipsim.kernels.jit import hot_part, kernel, part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import Ints, State


@kernel
def advance(table: Ints, gap_room: int, step_room: int, list_room: int) -> int:
    """Run until nothing is left, a bound is met, or a list has less than this room left.

    All that happens at one time happens before any batch forms, and again if it makes
    more happen at that time. Deterministic: ties go by index, or by order of cause.
    """
    S = in_kernel(table)
    sim = S.sim[0]
    while True:
        if _full(S, gap_room, step_room, list_room):
            return NO_ROOM
        now = next_time(S)
        if now == np.inf or 0 < sim.retriers <= sim.in_vain:
            now = next_chance(S)
        if now == np.inf:
            return DONE
        if now > sim.max_time_s:
            catch_up(S, sim.max_time_s)
            return TIME_BOUND
        if sim.events + sim.unseen >= sim.max_events:
            if sim.unseen == 0:
                return EVENT_BOUND
            sim.ahead, sim.unseen = 0, 0
            cut_all(S)
            continue
        sim.again, sim.now_s = now == sim.now_s, now
        while True:
            end_steps(S, now)
            if min(next_given(S), sim.next_check_s) == now:
                end_transfers(S, now)
                fire_timers(S, now)
                arrive(S, now)
            if sim.released or sim.called > 0:
                serve_handoffs(S)
            if next_time(S) > now:
                break
        start_steps(S)


@hot_part
def _full(S: State, gap_room: int, step_room: int, list_room: int) -> bool:
    """Whether a log or a list has less room left than one instant may take."""
    sim = S.sim[0]
    return (
        sim.gaps + gap_room > S.gaps.shape[0]
        or sim.steps + step_room > S.log.shape[0]
        or sim.most_listed + list_room > S.pending.shape[1]
    )


@hot_part
def next_time(S: State) -> float:
    """When the next thing happens; infinite if nothing does."""
    return next_check(S, min(S.values[CLOCK, S.tree[CLOCK, 1]], next_given(S)))


@hot_part
def next_check(S: State, first: float) -> float:
    """The next look at the load, if it comes before what happens next."""
    return min(first, S.sim[0].next_check_s) if first < np.inf else first


@part
def next_chance(S: State) -> float:
    """When the next thing happens, where hand-offs ask for room in vain until something does.

    If nothing will, a look at the load may still change a role. If that does not help, the
    first of them is turned away, now.
    """
    sim = S.sim[0]
    first = next_check(S, min(S.values[CLOCK, S.tree[CLOCK, 1]], next_change(S)))
    if first == np.inf:
        r = waiting_handoff(S)
        if r >= 0 and not sim.looked:
            first = sim.next_check_s
        if r >= 0 and first == np.inf:
            turn_away(S, r)
            return sim.now_s
    skip_retries(S, first)
    return min(first, next_time(S))


@hot_part
def next_given(S: State) -> float:
    """When the next thing happens that is not the end of a step."""
    return min(next_change(S), first_of(S, S.sim[0].retrying))


@hot_part
def next_change(S: State) -> float:
    """The same but for hand-offs that ask for room again."""
    sim = S.sim[0]
    first = min(next_arrival(S), first_of(S, sim.transfers))
    if sim.timed < S.timers.shape[0]:
        first = min(first, S.timers[sim.timed].time_s)
    return first


@hot_part
def first_of(S: State, queue: int) -> float:
    """Time of the first in a queue by time."""
    return S.requests[queue].k0 if queue >= 0 else np.inf


@hot_part
def next_arrival(S: State) -> float:
    """Time of the next arrival, of a conversation's first turn or a later one."""
    sim = S.sim[0]
    first = first_of(S, sim.thinking)
    if sim.arrived < S.order.shape[0]:
        first = min(first, S.requests[S.order[sim.arrived]].arrival_s)
    return first


@hot_part
def end_steps(S: State, now: float) -> None:
    """Steps that end now, in order of the instances."""
    while S.values[CLOCK, S.tree[CLOCK, 1]] == now:
        S.sim[0].events += 1
        end_step(S, S.tree[CLOCK, 1])


@part
def end_transfers(S: State, now: float) -> None:
    """Transfers, loads and writes that end now, in the order in which they began."""
    sim = S.sim[0]
    while first_of(S, sim.transfers) == now:
        r, sim.transfers = sim.transfers, queue_pop(S.requests, sim.transfers)
        sim.events += 1
        if S.requests[r].phase == LOADING:
            end_load(S, r)
        elif S.requests[r].phase == WRITING:
            end_writing(S, r)
        else:
            end_transfer(S, r)


@part
def fire_timers(S: State, now: float) -> None:
    """What was to happen now, in the order in which it was asked for."""
    sim = S.sim[0]
    while sim.timed < S.timers.shape[0] and S.timers[sim.timed].time_s == now:
        timer = S.timers[sim.timed]
        sim.timed += 1
        sim.events += 1
        if S.instances[timer.instance].planned > 0:
            interrupt(S, timer.instance, sim.again > 0)
        befall(S, timer.kind, timer.instance, timer.value)
    if sim.next_check_s == now:
        sim.next_check_s += sim.switch_every_s
        sim.events += 1
        check_load(S)
    while first_of(S, sim.retrying) == now:
        sim.events += 1
        ask_again(S)


@part
def arrive(S: State, now: float) -> None:
    """Requests that arrive now, in order of their numbers."""
    sim = S.sim[0]
    while next_arrival(S) == now:
        r = sim.thinking if first_of(S, sim.thinking) == now else S.requests.shape[0]
        if sim.arrived < S.order.shape[0]:
            root = S.order[sim.arrived]
            if root < r and S.requests[root].arrival_s == now:
                r = root
        if r == sim.thinking:
            sim.thinking = queue_pop(S.requests, r)
            S.requests[r].arrival_s = now
        else:
            sim.arrived += 1
        sim.events += 1
        submit(S, r, False)


@hot_part
def start_steps(S: State) -> None:
    """Let free instances that something happened to form their batches, in order.

    Where steps are planned, the one that runs goes on alone, or has ended now. Whoever is
    touched by one behind it has had its turn.
    """
    sim, last = S.sim[0], -1
    while sim.touched > 0:
        i = heap_pop(S.touched, sim.touched)
        sim.touched -= 1
        if S.instances[i].planned > 0:
            interrupt(S, i, sim.again > 0 or i < last)
        last = max(last, i)
        if S.instances[i].up and S.instances[i].step == IDLE:
            kind = form_step(S, i)
            if kind != IDLE:
                start_step(S, i, kind)
        S.instances[i].touched = 0
    if sim.released or sim.called > 0:  # served when the next thing happens, whatever it is
        cut_all(S)
