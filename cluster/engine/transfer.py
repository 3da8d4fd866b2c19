"""KV on its way from the rank that prefilled to the rank that decodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.engine.codes import (
    DEQUANTISING,
    HANDING_OFF,
    LAYERWISE,
    NO_PLACE,
    READY,
    RETRYING,
    SPLITWISE,
    STREAM,
    TRANSFERRING,
)
from chipsim.cluster.engine.endings import reject
from chipsim.cluster.engine.heaps import heap_pop
from chipsim.cluster.engine.kv import (
    blocks_to_decode,
    call,
    claim,
    give_back,
    keep,
    let_go,
    take,
)
from chipsim.cluster.engine.network import (
    free_from,
    occupy,
    seconds_to_convert,
    seconds_to_send,
)
from chipsim.cluster.engine.prefix import found
from chipsim.cluster.engine.queues import queue_pop, queue_push, queue_remove
from chipsim.cluster.engine.routing import has_room, to_decode
from chipsim.cluster.engine.splitwise import arrive_decode, free_source
from chipsim.cluster.engine.touch import charge, touch
from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State


@part
def hand_off(S: State, k: int, r: int) -> None:  # noqa: ARG001
    """Queue a prefilled request for a place to decode; its blocks stay taken meanwhile."""
    request, sim = S.requests[r], S.sim[0]
    request.phase = HANDING_OFF
    if request.to_blocks > 0:
        _send(S, r)
        _depart(S, r)
    elif request.to >= 0:
        there = S.instances[S.ranks[request.to].instance]
        there.handoffs = queue_push(S.requests, there.handoffs, r, sim.now_s, 0.0)
        call(S, S.ranks[request.to].instance)
    else:
        sim.handoffs = queue_push(S.requests, sim.handoffs, r, sim.now_s, 0.0)
        sim.released = 1


@part
def send_chunk(S: State, k: int, r: int) -> None:
    """Send what a step computed while the prefill goes on, if the link streams."""
    request, to = S.requests[r], S.requests[r].to
    if to < 0 or to == k or S.links[S.ranks[k].pool, S.ranks[to].pool].overlap != STREAM:
        return
    waited_for = S.instances[S.ranks[to].instance].handoffs >= 0
    if request.to_blocks == 0 and not waited_for and has_room(S, to, r):
        _reserve(S, r)
    if request.to_blocks > 0 and request.done > request.sent:
        _send(S, r)


@part
def serve_handoffs(S: State) -> None:
    """Give places to waiting hand-offs, first come first served; none passes another.

    Those that are bound for no instance (theirs failed) come before those that are.
    """
    sim = S.sim[0]
    while sim.released and sim.handoffs >= 0:
        r = sim.handoffs
        k = to_decode(S, r, True)
        if k >= 0:
            sim.handoffs = queue_pop(S.requests, r)
            S.requests[r].to = k
            charge(S, k, 1, 1)
            _begin(S, r)
        elif S.requests[r].prompt + S.requests[r].output > sim.largest_decode:
            turn_away(S, r)
        elif sim.retry_s > 0.0:
            sim.handoffs = queue_pop(S.requests, r)
            _ask_again(S, r)
        else:
            break
    sim.released = 0
    while sim.called > 0:
        i = heap_pop(S.called, sim.called)
        sim.called -= 1
        S.instances[i].called = 0
        _serve_instance(S, i)


@part
def _serve_instance(S: State, i: int) -> None:
    instance = S.instances[i]
    while instance.handoffs >= 0:
        r = instance.handoffs
        if has_room(S, S.requests[r].to, r):
            instance.handoffs = queue_pop(S.requests, r)
            _begin(S, r)
        elif S.sim[0].retry_s > 0.0:
            instance.handoffs = queue_pop(S.requests, r)
            _ask_again(S, r)
        else:
            break


@part
def _ask_again(S: State, r: int) -> None:
    sim = S.sim[0]
    S.requests[r].phase = RETRYING
    at = max(sim.now_s + sim.retry_s, np.nextafter(sim.now_s, np.inf))
    sim.retrying = queue_push(S.requests, sim.retrying, r, at, float(sim.sequence))
    sim.sequence += 1
    sim.retriers += 1
    sim.in_vain += 1


@part
def _reserve(S: State, r: int) -> None:
    request = S.requests[r]
    request.to_blocks = blocks_to_decode(S, request.to, r)
    request.to_shared = found(S, request.to, r)
    request.base = min(request.to_shared * S.sim[0].unit, request.length)
    request.sent = request.base
    S.instances[S.ranks[request.to].instance].promised -= request.promised
    request.promised = 0
    claim(S, request.to, r, request.to_blocks, request.to_shared)


@part
def _begin(S: State, r: int) -> None:
    if S.requests[r].to == S.requests[r].rank:
        _stay(S, r)
        return
    _reserve(S, r)
    _send(S, r)
    _depart(S, r)


@part
def _stay(S: State, r: int) -> None:
    """It will be decoded where it is after all: nothing is sent."""
    request = S.requests[r]
    blocks = blocks_to_decode(S, request.rank, r)
    take(S, request.rank, blocks - request.blocks)
    request.blocks, request.to = blocks, -1
    _be_ready(S, r)


@part
def _be_ready(S: State, r: int) -> None:
    request = S.requests[r]
    request.phase, rank = READY, S.ranks[request.rank]
    keep(S, request.rank, r, request.length)
    rank.ready = queue_push(S.requests, rank.ready, r, S.sim[0].now_s, 0.0)
    touch(S, rank.instance)


@part
def _depart(S: State, r: int) -> None:
    """The last piece is on its way: wait for its end."""
    request, sim = S.requests[r], S.sim[0]
    request.phase = TRANSFERRING
    at = request.transfer_end_s
    sim.transfers = queue_push(S.requests, sim.transfers, r, at, float(sim.sequence))
    sim.sequence += 1


@part
def _send(S: State, r: int) -> None:
    """Send the tokens that are computed and neither sent nor there; note when they will be."""
    request, now = S.requests[r], S.sim[0].now_s
    k, to = request.rank, request.to
    link = S.links[S.ranks[k].pool, S.ranks[to].pool]
    total = seconds_to_send(S, k, to, max(0, request.done - request.sent))
    # Layer by layer only where the place was there when the prefill ended.
    layered = link.overlap == LAYERWISE and request.prefill_end_s == now
    start = now
    if layered:
        start = request.step_start_s + (now - request.step_start_s) / link.layers
    if request.sent > request.base:
        start = max(start, request.transfer_end_s)
    start = free_from(S, k, to, start)
    end = start + total
    if layered:
        end = max(end, now + total / link.layers)
    occupy(S, k, to, end)
    if request.sent == request.base:
        request.transfer_start_s = start
    request.sent, request.transfer_end_s = max(request.done, request.sent), end


@part
def end_transfer(S: State, r: int) -> None:
    """The KV is there: free its source, convert it if it must be, then it is ready."""
    request, sim, left = S.requests[r], S.sim[0], S.requests[r].rank
    if request.phase == TRANSFERRING:
        give_back(S, left, r, request.blocks, request.shared)
        request.rank, request.blocks, request.phase = request.to, request.to_blocks, READY
        request.shared, sent = request.to_shared, request.length - request.base
        request.to, request.to_blocks, request.to_shared = -1, 0, 0
        request.sent, request.base = 0, 0
        wait = seconds_to_convert(S, left, request.rank, sent)
        if wait > 0.0:
            request.phase = DEQUANTISING
            at = sim.now_s + wait
            sim.transfers = queue_push(S.requests, sim.transfers, r, at, float(sim.sequence))
            sim.sequence += 1
            return
    if S.pools[S.ranks[request.rank].pool].batching == SPLITWISE:
        arrive_decode(S, request.rank, r)
        free_source(S, left)
        return
    _be_ready(S, r)


@part
def ask_again(S: State) -> None:
    """The first hand-off that found no room stands in its queue again."""
    r = S.sim[0].retrying
    leave_handoffs(S, r)
    hand_off(S, S.requests[r].rank, r)


@part
def leave_handoffs(S: State, r: int) -> None:
    """Out of the queue of hand-offs that a request is in, if it is in one."""
    request, sim = S.requests[r], S.sim[0]
    if request.phase == RETRYING:
        sim.retrying = queue_remove(S.requests, sim.retrying, r)
        sim.retriers -= 1
    elif request.phase == HANDING_OFF and request.to < 0:
        sim.handoffs = queue_remove(S.requests, sim.handoffs, r)
        sim.released = 1  # those behind it may find room where it did not
    elif request.phase == HANDING_OFF:
        there = S.instances[S.ranks[request.to].instance]
        there.handoffs = queue_remove(S.requests, there.handoffs, r)
        call(S, S.ranks[request.to].instance)


@part
def unbind(S: State, r: int) -> None:
    """Take back a request's claim on the rank that it is bound for."""
    request = S.requests[r]
    if request.to < 0:
        return
    there = S.instances[S.ranks[request.to].instance]
    if request.to != request.rank and there.up:
        if request.to_blocks > 0:
            give_back(S, request.to, r, request.to_blocks, request.to_shared)
        there.promised -= request.promised
        charge(S, request.to, -1, -1)
    elif request.to_shared > 0:
        let_go(S, request.to, r, request.to_shared)
    request.to, request.to_blocks, request.to_shared, request.promised = -1, 0, 0, 0
    request.sent, request.base = 0, 0


@part
def turn_away(S: State, r: int) -> None:
    """Reject a hand-off that will never find room."""
    request = S.requests[r]
    leave_handoffs(S, r)
    unbind(S, r)
    give_back(S, request.rank, r, request.blocks, request.shared)
    request.shared = 0
    reject(S, r, NO_PLACE)


@part
def skip_retries(S: State, until_s: float) -> None:
    """Let retries before a time, all in vain, be done with: each asks at its next turn."""
    sim = S.sim[0]
    while sim.retrying >= 0 and S.requests[sim.retrying].k0 < until_s:
        r = sim.retrying
        at = S.requests[r].k0
        times = np.ceil((until_s - at) / sim.retry_s)
        sim.events += int(times)
        at = max(at + times * sim.retry_s, until_s)
        sim.retrying = queue_pop(S.requests, r)
        sim.retrying = queue_push(S.requests, sim.retrying, r, at, float(sim.sequence))
        sim.sequence += 1


@part
def waiting_handoff(S: State) -> int:
    """The first hand-off that waits for room, or -1."""
    sim = S.sim[0]
    if sim.retrying >= 0:
        return sim.retrying
    if sim.handoffs >= 0:
        return sim.handoffs
    for i in range(S.instances.shape[0]):
        if S.instances[i].handoffs >= 0:
            return S.instances[i].handoffs
    return -1
