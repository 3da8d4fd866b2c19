"""The sequences that run on a rank, and its decodes as counts, sums and heaps.

A decode step costs the same for any batch: contexts are known by their sum, the next to
finish by a heap of last steps, new blocks by counting residues of the step's number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine.codes import DECODING, RESERVE_PROMPT
from chipsim.cluster.engine.heaps import heap_pop, heap_push, heap_remove
from chipsim.kernels.jit import hot_part, part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State

LOW = (1 << 32) - 1
"""The bits of a heap's entry that hold the request."""


@part
def admit(S: State, k: int, r: int) -> None:
    """Into the running list: last, but before later requests admitted at the same time."""
    rank, request = S.ranks[k], S.requests[r]
    request.admitted_s = S.sim[0].now_s
    below = rank.top
    while (
        below > r and S.requests[below].admitted_s == request.admitted_s
    ):  # fmt: skip
        below = S.requests[below].below
    above = rank.bottom if below < 0 else S.requests[below].above
    request.below, request.above = below, above
    if below < 0:
        rank.bottom = r
    else:
        S.requests[below].above = r
    if above < 0:
        rank.top = r
    else:
        S.requests[above].below = r
    rank.running += 1


@part
def dismiss(S: State, k: int, r: int) -> None:
    """Out of the running list."""
    rank, request = S.ranks[k], S.requests[r]
    if request.below < 0:
        rank.bottom = request.above
    else:
        S.requests[request.below].above = request.above
    if request.above < 0:
        rank.top = request.below
    else:
        S.requests[request.above].below = request.below
    rank.running -= 1


@part
def plan_chunk(S: State, k: int, r: int, tokens: int) -> None:
    """Let the step compute so many tokens of a prompt."""
    rank, request = S.ranks[k], S.requests[r]
    request.chunk, request.chain = tokens, -1
    rank.tokens += tokens
    rank.squares += float(tokens) * tokens
    rank.earlier += float(tokens) * request.done
    rank.ending += request.done + tokens == request.length
    if rank.first < 0:
        rank.first = r
    else:
        S.requests[rank.last].chain = r
    rank.last = r


@part
def last_step(S: State, r: int) -> int:
    """Decode step of the rank that ends a request."""
    request = S.requests[r]
    return request.joined + request.output - request.emitted


@part
def join_decodes(S: State, k: int, r: int) -> None:
    """Let a running request whose KV is whole decode from the next step on."""
    rank, request, pool = S.ranks[k], S.requests[r], S.pools[S.ranks[k].pool]
    request.phase = DECODING
    request.decode_rank, request.decode_instance = k, rank.instance
    request.joined, request.context = rank.steps, request.length + 1
    heap_push(S.finish[k], rank.decoding, (last_step(S, r) << 32) | r)
    rank.decoding += 1
    rank.context += request.context
    limit = rank.limit
    if limit > 0:
        _join_bounded(S, k, r, limit)
    if pool.reserve == RESERVE_PROMPT:
        S.edges[k, _edge(S, r, pool.block)] += 1
        if (request.context - 1) % pool.block == 0:
            rank.fresh_on_edge += 1
    request.chain = rank.fresh
    rank.fresh = r


@part
def leave_decodes(S: State, k: int, r: int) -> None:
    """Undo `join_decodes` but for the heap of last steps; count what was emitted."""
    rank, request, pool = S.ranks[k], S.requests[r], S.pools[S.ranks[k].pool]
    steps = rank.steps - request.joined
    rank.decoding -= 1
    rank.context -= request.context + steps
    limit = rank.limit
    if limit > 0:
        _leave_bounded(S, k, r, limit)
    if pool.reserve == RESERVE_PROMPT:
        S.edges[k, _edge(S, r, pool.block)] -= 1
    request.emitted += steps
    if steps > 0:
        request.last_s = rank.last_s
    else:
        _forget_fresh(S, k, r, pool.block)


@part
def interrupt_decode(S: State, k: int, r: int) -> None:
    """Take a request out of the decodes before its last step."""
    heap_remove(S.finish[k], S.ranks[k].decoding, (last_step(S, r) << 32) | r)
    leave_decodes(S, k, r)


@hot_part
def next_finished(S: State, k: int) -> int:
    """Take out of the heap a request whose last step was the last one done, or -1."""
    rank = S.ranks[k]
    if rank.decoding == 0 or S.finish[k, 0] >> 32 != rank.steps:
        return -1
    return heap_pop(S.finish[k], rank.decoding) & LOW


@part
def new_blocks(S: State, k: int) -> int:
    """Blocks that the next decode step of a rank opens."""
    rank, block = S.ranks[k], S.pools[S.ranks[k].pool].block
    return S.edges[k, rank.steps % block] - rank.fresh_on_edge


@hot_part
def step_contexts(S: State, k: int) -> None:
    """Contexts after a decode step: each one longer, but for what the limit cuts."""
    rank = S.ranks[k]
    rank.steps += 1
    rank.context += rank.decoding
    rank.bounded += rank.growing
    while rank.saturations > 0 and S.saturate[k, 0] >> 32 == rank.steps:
        heap_pop(S.saturate[k], rank.saturations)
        rank.saturations -= 1
        rank.growing -= 1


@part
def _edge(S: State, r: int, block: int) -> int:
    """Residue of the steps before which the request has filled its blocks."""
    request = S.requests[r]
    return (request.joined - request.context + 1) % block


@part
def _join_bounded(S: State, k: int, r: int, limit: int) -> None:
    rank, request = S.ranks[k], S.requests[r]
    rank.bounded += min(request.context, limit)
    if request.context < limit:
        rank.growing += 1
        full = request.joined + limit - request.context
        if full < last_step(S, r):
            heap_push(S.saturate[k], rank.saturations, (full << 32) | r)
            rank.saturations += 1


@part
def _leave_bounded(S: State, k: int, r: int, limit: int) -> None:
    rank, request = S.ranks[k], S.requests[r]
    rank.bounded -= min(request.context + rank.steps - request.joined, limit)
    full = request.joined + limit - request.context
    if full > request.joined and (full >= last_step(S, r) or full > rank.steps):
        rank.growing -= 1
        if full < last_step(S, r):
            heap_remove(S.saturate[k], rank.saturations, (full << 32) | r)
            rank.saturations -= 1


@part
def _forget_fresh(S: State, k: int, r: int, block: int) -> None:
    """Take a request that never stepped out of the list of those that just joined."""
    rank, request = S.ranks[k], S.requests[r]
    if S.pools[rank.pool].reserve == RESERVE_PROMPT and (request.context - 1) % block == 0:
        rank.fresh_on_edge -= 1
    if rank.fresh == r:
        rank.fresh = request.chain
        return
    before = rank.fresh
    while S.requests[before].chain != r:
        before = S.requests[before].chain
    S.requests[before].chain = request.chain
