"""A request's way: arrives, is queued, prefilled, handed on, decoded, done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.engine.codes import (
    AT_ARRIVAL,
    BY_PREFILL,
    DECODE,
    MIXED_POOL,
    NO_INSTANCE,
    OUTSIDE,
    PRIORITY,
    QUEUE_FULL,
    READY,
    SHORTEST_PROMPT,
    SPLITWISE,
    TOKEN_JSQ,
    TOO_LARGE,
    WAITING,
)
from chipsim.cluster.engine.endings import complete, reject
from chipsim.cluster.engine.kv import blocks_to_decode, give_back, held, keep
from chipsim.cluster.engine.next_turn import pass_on
from chipsim.cluster.engine.prefix import found_tokens
from chipsim.cluster.engine.queues import queue_push
from chipsim.cluster.engine.routing import to_decode, to_prefill
from chipsim.cluster.engine.running import dismiss, join_decodes, leave_decodes
from chipsim.cluster.engine.splitwise import arrive_prompt
from chipsim.cluster.engine.splitwise_routing import mixed_pool, token_jsq
from chipsim.cluster.engine.tokens import emit
from chipsim.cluster.engine.touch import charge, touch
from chipsim.cluster.engine.transfer import hand_off
from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State


@part
def submit(S: State, r: int, ahead: bool) -> None:
    """Send a request to a rank that can prefill it, or count why not.

    ``ahead``: it was preempted elsewhere, and stands before new ones.
    """
    sim = S.sim[0]
    sim.newest = max(sim.newest, r)
    k = _route(S, r)
    if k < 0:
        _refuse(S, r, sim.able_prefill, ahead)
        return
    rank, request = S.ranks[k], S.requests[r]
    role, queue = S.instances[rank.instance].role, S.pools[rank.pool].max_queue
    alone = ends_with_prefill(S, r)
    if not (role & DECODE or alone) and sim.largest_decode == 0:
        _refuse(S, r, 0, ahead)
    elif not (role & DECODE or alone) and (
        request.prompt + request.output > sim.largest_decode
    ):
        reject(S, r, TOO_LARGE)
    elif 0 <= queue <= rank.waiting and not ahead:
        reject(S, r, QUEUE_FULL)
    else:
        if sim.decode_at == AT_ARRIVAL:
            _bind(S, k, r)
        request.queue_start_s = sim.now_s
        request.done = found_tokens(S, k, r) if sim.caching else 0
        charge(S, k, 1, request.length - request.done)
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
def ends_with_prefill(S: State, r: int) -> bool:
    """Whether the token that its prefill emits is a request's last."""
    request = S.requests[r]
    return request.output - request.emitted == 1 and S.sim[0].first_token_from == BY_PREFILL


@part
def keeps(S: State, k: int) -> bool:
    """Whether a rank goes on with what it prefilled and is bound for nowhere else."""
    return bool(S.instances[S.ranks[k].instance].role & DECODE and S.sim[0].keep_mixed)


@part
def moves_on(S: State, k: int, r: int) -> bool:
    """Whether a request prefilled on a rank goes elsewhere to be decoded."""
    if S.pools[S.ranks[k].pool].batching == SPLITWISE:
        return S.requests[r].to != k
    return not S.requests[r].stays


@part
def _bind(S: State, k: int, r: int) -> None:
    """Choose at arrival where a request that rank k prefills is to be decoded.

    Where no instance that is up fits, a place is looked for when it is prefilled.
    """
    request = S.requests[r]
    if request.to >= 0 or ends_with_prefill(S, r) or keeps(S, k):
        return
    to = to_decode(S, r, False)
    request.to = to
    if to >= 0 and to != k:
        request.promised = blocks_to_decode(S, to, r)
        S.instances[S.ranks[to].instance].promised += request.promised
        charge(S, to, 1, 1)


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
def end_prefill(S: State, k: int, r: int) -> None:
    """The last prompt token is computed: emit, then decode here or elsewhere."""
    request, sim, rank = S.requests[r], S.sim[0], S.ranks[k]
    instance, theirs = S.instances[rank.instance], S.pools[rank.pool].batching == SPLITWISE
    request.prefill_end_s = sim.now_s
    request.step_start_s = instance.start_s
    if sim.first_token_from == BY_PREFILL:
        emit(S, r, sim.now_s)
        request.emitted += 1
    if request.emitted == request.output:
        dismiss(S, k, r)
        leave(S, k, r, request.blocks, theirs and request.to == k)
        complete(S, r)
    elif not moves_on(S, k, r):
        request.to = -1
        if theirs:
            request.phase = READY
        else:
            charge(S, k, 0, 1)
            join_decodes(S, k, r)
    else:
        dismiss(S, k, r)
        charge(S, k, -1, 0)
        hand_off(S, k, r)


@part
def end_decode(S: State, k: int, r: int) -> None:
    """A request's last decode step is done."""
    request, blocks = S.requests[r], held(S, k, r, 0)
    tokens = request.context + S.ranks[k].steps - request.joined - 1
    keep(S, k, r, tokens)
    leave_decodes(S, k, r)
    dismiss(S, k, r)
    complete(S, r)
    if S.sim[0].caching and pass_on(S, k, r, blocks, tokens):
        charge(S, k, -1, -1)
    else:
        leave(S, k, r, blocks, 1)


@part
def leave(S: State, k: int, r: int, blocks: int, pending: int) -> None:
    """Give back what a request had on a rank."""
    give_back(S, k, r, blocks, S.requests[r].shared)
    S.requests[r].shared = 0
    charge(S, k, -1, -pending)


@part
def _refuse(S: State, r: int, able: int, ahead: bool) -> None:
    """No instance can take a request: it waits for a change, or is rejected."""
    sim = S.sim[0]
    if able > 0:
        reject(S, r, TOO_LARGE)
    elif sim.timed < S.timers.shape[0]:
        arrival = S.requests[r].arrival_s
        sim.outside = queue_push(S.requests, sim.outside, r, arrival, -1.0 if ahead else 0.0)
    else:
        reject(S, r, NO_INSTANCE)
