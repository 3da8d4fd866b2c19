"""A request's way: arrives, is queued, prefilled, handed on, decoded, done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.engine.codes import (
    AT_ARRIVAL,
    BY_PREFILL,
    DECODE,
    FINISHED,
    MIXED_POOL,
    NO_INSTANCE,
    OUTSIDE,
    PARENT_LOST,
    PRIORITY,
    QUEUE_FULL,
    READY,
    REJECTED,
    SHORTEST_PROMPT,
    SPLITWISE,
    TOKEN_JSQ,
    TOO_LARGE,
    WAITING,
)
from chipsim.cluster.engine.kv import blocks_needed, held, release
from chipsim.cluster.engine.queues import queue_push
from chipsim.cluster.engine.routing import NOWHERE, to_decode, to_prefill
from chipsim.cluster.engine.running import dismiss, join_decodes, leave_decodes
from chipsim.cluster.engine.splitwise import arrive_prompt, mixed_pool, token_jsq
from chipsim.cluster.engine.touch import charge, touch
from chipsim.cluster.engine.transfer import hand_off
from chipsim.kernels.jit import hot_part, part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State


@part
def submit(S: State, r: int, ahead: bool) -> None:
    """Send a request to a rank that can prefill it, or count why not.

    ``ahead``: it was preempted elsewhere, and stands before new ones.
    """
    sim = S.sim[0]
    k = _route(S, r)
    if k < 0:
        _refuse(S, r, sim.able_prefill)
        return
    rank, request = S.ranks[k], S.requests[r]
    role, queue = S.instances[rank.instance].role, S.pools[rank.pool].max_queue
    alone = request.output == 1 and sim.first_token_from == BY_PREFILL
    if not (role & DECODE or alone) and sim.largest_decode == 0:
        _refuse(S, r, 0)
    elif not (role & DECODE or alone) and (
        request.prompt + request.output > sim.largest_decode
    ):
        reject(S, r, TOO_LARGE)
    elif 0 <= queue <= rank.waiting and not ahead:
        reject(S, r, QUEUE_FULL)
    elif sim.decode_at == AT_ARRIVAL and not _bind(S, k, r):
        _refuse(S, r, sim.able_decode)
    else:
        request.queue_start_s = sim.now_s
        charge(S, k, 1, request.length)
        enqueue(S, k, r, ahead)


@part
def _route(S: State, r: int) -> int:
    """Rank that is to prefill, or -1."""
    if S.sim[0].routing == MIXED_POOL:
        return mixed_pool(S, r)
    k = to_prefill(S, r)
    if S.sim[0].routing == TOKEN_JSQ and k >= 0:
        token_jsq(S, r, k)
    return k


@part
def moves_on(S: State, k: int, r: int) -> bool:
    """Whether a request prefilled on a rank goes elsewhere to be decoded."""
    if S.pools[S.ranks[k].pool].batching == SPLITWISE:
        return S.requests[r].to != k
    return not (S.instances[S.ranks[k].instance].role & DECODE and S.sim[0].keep_mixed)


@part
def _bind(S: State, k: int, r: int) -> bool:
    """Choose at arrival where a request that rank k prefills is to be decoded."""
    request, sim = S.requests[r], S.sim[0]
    alone = request.output == 1 and sim.first_token_from == BY_PREFILL
    if request.to >= 0 or alone or not moves_on(S, k, r):
        return True
    to = to_decode(S, r, False)
    if to >= 0:
        request.to = to
        request.promised = blocks_needed(S, to, r)
        S.instances[S.ranks[to].instance].promised += request.promised
        charge(S, to, 1, 1)
    return to >= 0


@part
def enqueue(S: State, k: int, r: int, ahead: bool) -> None:
    """Into a rank's queue, in the pool's order; preempted ones stand ahead of all new."""
    rank, request = S.ranks[k], S.requests[r]
    request.rank = k
    if request.phase == OUTSIDE:
        request.phase = WAITING
    if S.pools[rank.pool].batching == SPLITWISE:
        arrive_prompt(S, k, r)
        return
    k0, k1 = 0.0, request.queue_start_s
    order = S.pools[rank.pool].order
    if ahead:
        k0, k1 = -np.inf, request.arrival_s
    elif order == SHORTEST_PROMPT:
        k0 = float(request.length)
    elif order == PRIORITY:
        k0 = float(request.priority)
    rank.queue = queue_push(S.requests, rank.queue, r, k0, k1)
    rank.waiting += 1
    touch(S, rank.instance)


@part
def emit(S: State, r: int, time_s: float) -> None:
    """A token on its own: the first one, or one after a break."""
    request = S.requests[r]
    if np.isnan(request.first_token_s):
        request.first_token_s = time_s
    else:
        log_gap(S, time_s - request.last_s, 1)
    request.last_s = time_s


@hot_part
def log_gap(S: State, gap_s: float, count: int) -> None:
    """Note that so many tokens came so long after the ones before them."""
    sim = S.sim[0]
    if sim.log_gaps:
        S.gaps[sim.gaps], S.gap_counts[sim.gaps] = gap_s, count
        sim.gaps += 1


@part
def end_prefill(S: State, k: int, r: int) -> None:
    """The last prompt token is computed: emit, then decode here or elsewhere."""
    request, sim, rank = S.requests[r], S.sim[0], S.ranks[k]
    instance = S.instances[rank.instance]
    request.prefill_end_s = sim.now_s
    request.step_start_s = instance.start_s
    if sim.first_token_from == BY_PREFILL:
        emit(S, r, sim.now_s)
        request.emitted += 1
    if request.emitted == request.output:
        dismiss(S, k, r)
        leave(S, k, request.blocks, request.to == k)
        complete(S, r)
    elif not moves_on(S, k, r):
        if request.to < 0:
            charge(S, k, 0, 1)
        request.to = -1
        if S.pools[rank.pool].batching == SPLITWISE:
            request.phase = READY
        else:
            join_decodes(S, k, r)
    else:
        dismiss(S, k, r)
        charge(S, k, -1, 0)
        hand_off(S, k, r)


@part
def end_decode(S: State, k: int, r: int) -> None:
    """A request's last decode step is done."""
    blocks = held(S, k, r, 0)
    leave_decodes(S, k, r)
    dismiss(S, k, r)
    leave(S, k, blocks, 1)
    complete(S, r)


@part
def leave(S: State, k: int, blocks: int, pending: int) -> None:
    """Give back what a request had on a rank."""
    release(S, k, blocks)
    charge(S, k, -1, -pending)


@part
def complete(S: State, r: int) -> None:
    """Finished: its next turns begin to think."""
    request, sim = S.requests[r], S.sim[0]
    request.status, request.phase, request.finish_s = FINISHED, OUTSIDE, sim.now_s
    sim.finished += 1
    turn = request.first_turn
    while turn >= 0:
        at = sim.now_s + S.requests[turn].think_s
        sim.thinking = queue_push(S.requests, sim.thinking, turn, at, 0.0)
        turn = S.requests[turn].next_turn


@part
def reject(S: State, r: int, reason: int) -> None:
    """Turn a request away, and with it the turns that would have followed."""
    first, why = r, reason
    S.requests[r].chain = NOWHERE
    while first >= 0:
        request = S.requests[first]
        request.status, request.reason, request.phase = REJECTED, why, OUTSIDE
        S.sim[0].rejected += 1
        why, turn, first = PARENT_LOST, request.first_turn, request.chain
        while turn >= 0:
            S.requests[turn].chain = first
            first, turn = turn, S.requests[turn].next_turn


@part
def _refuse(S: State, r: int, able: int) -> None:
    """No instance can take a request: it waits for a change, or is rejected."""
    sim = S.sim[0]
    if able > 0:
        reject(S, r, TOO_LARGE)
    elif sim.timed < S.timers.shape[0]:
        sim.outside = queue_push(S.requests, sim.outside, r, S.requests[r].arrival_s, 0.0)
    else:
        reject(S, r, NO_INSTANCE)
