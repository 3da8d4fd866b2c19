"""Instances that fail, come back, or change their role, and what becomes of their requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.engine.codes import (
    DECODE,
    DECODING,
    DEQUANTISING,
    FAULT,
    HANDING_OFF,
    IDLE,
    LOADING,
    OUTSIDE,
    PENDING,
    PREFILL,
    RECOVERY,
    ROLE_SWITCH,
    TRANSFERRING,
    WAITING,
    WRITING,
)
from chipsim.cluster.engine.kv import forget, give_back, let_go, note_change, release
from chipsim.cluster.engine.loading import forget_below, go_on, reads_from, stop_load
from chipsim.cluster.engine.next_turn import stop_writing
from chipsim.cluster.engine.queues import queue_pop, queue_push, queue_remove
from chipsim.cluster.engine.requests import submit
from chipsim.cluster.engine.routing import list_able
from chipsim.cluster.engine.touch import charge, rescore, set_clock, touch
from chipsim.cluster.engine.transfer import leave_handoffs, unbind
from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State


@part
def befall(S: State, kind: int, i: int, value: int) -> None:
    """Let something happen to an instance; then whoever waits outside is routed again."""
    instance, sim = S.instances[i], S.sim[0]
    if kind == FAULT:
        instance.faults += 1
        if instance.up:
            _fail(S, i)
    elif kind == RECOVERY:
        instance.faults -= 1
        instance.up = instance.faults == 0
        _announce(S, i)
    elif kind == ROLE_SWITCH:
        switch_role(S, i, value)
    if sim.timed == S.timers.shape[0]:  # whoever waits for a change waits in vain
        _announce(S, i)
    _route_outside(S)


@part
def _announce(S: State, i: int) -> None:
    """The routers learn of a role or health that changed."""
    list_able(S)
    rescore(S, i)
    touch(S, i)
    note_change(S)
    S.sim[0].released = 1


@part
def _route_outside(S: State) -> None:
    """Route again those that no instance could take, in order of arrival."""
    sim = S.sim[0]
    queue = sim.outside
    sim.outside = -1
    while queue >= 0:
        r = queue
        queue = queue_pop(S.requests, r)
        submit(S, r, S.requests[r].k1 < 0.0)


# ------------------------------------------------------------------ roles


@part
def switch_role(S: State, i: int, role: int) -> None:
    """Change what requests an instance takes; what runs there goes on.

    If it may prefill no more, prompts that wait there are routed again.
    """
    instance = S.instances[i]
    instance.role = role
    _announce(S, i)
    if not role & PREFILL:
        for k in range(instance.first, instance.first + instance.ranks):
            _send_prompts_away(S, k)


@part
def _send_prompts_away(S: State, k: int) -> None:
    """Route a rank's waiting prompts again, in order; what was swapped out stays."""
    rank = S.ranks[k]
    queue, kept = rank.queue, -1
    rank.queue = -1
    while queue >= 0:
        r = queue
        request = S.requests[r]
        queue = queue_pop(S.requests, r)
        if request.phase == WAITING:
            rank.waiting -= 1
            charge(S, k, -1, request.done - request.length)
            unbind(S, r)
            request.phase = OUTSIDE
            submit(S, r, request.k0 == -np.inf)
        else:
            kept = queue_push(S.requests, kept, r, request.k0, request.k1)
    rank.queue = kept


@part
def check_load(S: State) -> None:
    """Turn an instance to the side that is short: the idlest of the other, never its last.

    Prefill is short where its instances have more than ``switch_tokens`` pending each;
    decode, where it holds more than the share ``switch_kv`` of its KV. Mixed instances stay.
    """
    sim = S.sim[0]
    sim.looked = 1
    prefills, tokens, decodes, used, capacity = 0, 0, 0, 0, 0
    idle_prefill, idle_decode = -1, -1
    for i in range(S.instances.shape[0]):
        instance = S.instances[i]
        if not instance.up:
            continue
        if instance.role == PREFILL:
            prefills += 1
            tokens += instance.pending
            if idle_prefill < 0 or instance.pending < S.instances[idle_prefill].pending:
                idle_prefill = i
        elif instance.role == DECODE:
            decodes += 1
            used += instance.used
            capacity += instance.ranks * S.ranks[instance.first].capacity
            if idle_decode < 0 or instance.used < S.instances[idle_decode].used:
                idle_decode = i
    short_prefill = tokens > sim.switch_tokens * prefills
    short_decode = used > sim.switch_kv * capacity
    if short_prefill and not short_decode and decodes > 1:
        switch_role(S, idle_decode, PREFILL)
    elif short_decode and not short_prefill and prefills > 1:
        switch_role(S, idle_prefill, DECODE)


# ------------------------------------------------------------------ faults


@part
def _fail(S: State, i: int) -> None:
    """An instance loses its step and all KV; its requests arrive anew."""
    instance = S.instances[i]
    instance.up, instance.step = 0, IDLE
    set_clock(S, i, np.inf)
    sim, lost, cut_off = S.sim[0], -1, -1
    while sim.oldest < sim.newest and _is_gone(S, sim.oldest):
        sim.oldest += 1
    # From the last to the first, so that the chain leads from the first to the last.
    for r in range(sim.newest, sim.oldest - 1, -1):
        request = S.requests[r]
        if reads_from(S, r, i) and S.ranks[request.rank].instance != i:
            _leave_queue(S, r)
            stop_load(S, r, i)
            request.chain = cut_off
            cut_off = r
        if request.phase == WRITING and _touches(S, r, i):
            stop_writing(S, r, i)
        elif request.phase != OUTSIDE and _touches(S, r, i):
            if S.ranks[request.rank].instance == i or request.phase == TRANSFERRING:
                _lose(S, r, i)
                request.chain = lost
                lost = r
            else:
                _bind_later(S, r)
    for k in range(instance.first, instance.first + instance.ranks):
        _clear_rank(S, k)
    instance.requests, instance.pending, instance.promised = 0, 0, 0
    instance.used, instance.handoffs = 0, -1
    instance.send_free_s, instance.receive_free_s = 0.0, 0.0
    _announce(S, i)
    while cut_off >= 0:
        r = cut_off
        cut_off = S.requests[r].chain
        go_on(S, r)
    while lost >= 0:
        r = lost
        lost = S.requests[r].chain
        S.requests[r].retries += 1
        submit(S, r, False)


@part
def _is_gone(S: State, r: int) -> bool:
    """Whether a request will never do anything again."""
    return S.requests[r].status != PENDING and S.requests[r].phase == OUTSIDE


@part
def _touches(S: State, r: int, i: int) -> bool:
    """Whether a request is on an instance, or bound for it."""
    request = S.requests[r]
    if S.ranks[request.rank].instance == i:
        return True
    return request.to >= 0 and S.ranks[request.to].instance == i


@part
def _lose(S: State, r: int, i: int) -> None:
    """Take a request off all queues and ranks but those of the instance that failed."""
    request, rank = S.requests[r], S.ranks[S.requests[r].rank]
    if request.phase == DECODING:
        request.emitted += rank.steps - request.joined
        if rank.steps > request.joined:
            request.last_s = rank.last_s
    _leave_queue(S, r)
    if request.phase == LOADING:
        stop_load(S, r, i)
    if rank.instance != i:
        give_back(S, request.rank, r, request.blocks, request.shared)
    elif request.shared > 0:
        let_go(S, request.rank, r, request.shared)
    unbind(S, r)
    request.phase, request.blocks, request.done, request.shared = OUTSIDE, 0, 0, 0
    request.length = request.prompt + request.emitted


@part
def _leave_queue(S: State, r: int) -> None:
    """Out of the queue of hand-offs or transfers that a request is in."""
    if S.requests[r].phase in (TRANSFERRING, DEQUANTISING, LOADING):
        S.sim[0].transfers = queue_remove(S.requests, S.sim[0].transfers, r)
    else:
        leave_handoffs(S, r)


@part
def _bind_later(S: State, r: int) -> None:
    """A request whose place to decode failed, and whose KV is elsewhere, finds another."""
    request, sim = S.requests[r], S.sim[0]
    waits = request.phase == HANDING_OFF
    if waits:
        _leave_queue(S, r)
    unbind(S, r)
    if waits:
        sim.handoffs = queue_push(S.requests, sim.handoffs, r, request.k0, 0.0)


@part
def _clear_rank(S: State, k: int) -> None:
    """A rank without memory."""
    rank = S.ranks[k]
    release(S, k, rank.used)
    forget(S, k)
    forget_below(S, k)
    rank.queue, rank.ready, rank.loaded = -1, -1, -1
    rank.bottom, rank.top, rank.first = -1, -1, -1
    rank.waiting, rank.running, rank.decoding, rank.tokens, rank.decodes = 0, 0, 0, 0, 0
    rank.context, rank.bounded, rank.growing, rank.saturations = 0, 0, 0, 0
    rank.fresh, rank.fresh_on_edge = -1, 0
    rank.requests, rank.pending, rank.added_s = 0, 0, 0.0
    for residue in range(S.edges.shape[1]):
        S.edges[k, residue] = 0
