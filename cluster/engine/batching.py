"""What an instance's next step holds: one function for each policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine.codes import (
    CHUNKED,
    DECODE,
    DECODE_FIRST,
    DECODE_STEP,
    DECODING,
    IDLE,
    MIXED_STEP,
    OUTSIDE,
    PREFILL_FIRST,
    PREFILL_STEP,
    PREFILLING,
    RESERVE_PROMPT,
    SWAP,
    SWAPPED,
    WAITING,
)
from chipsim.cluster.engine.kv import (
    blocks_to_decode,
    blocks_to_prefill,
    claim,
    give_back,
    held,
    in_use,
    keep,
    take,
)
from chipsim.cluster.engine.loading import begin_load
from chipsim.cluster.engine.prefix import found, found_tokens
from chipsim.cluster.engine.queues import queue_pop
from chipsim.cluster.engine.requests import enqueue, keeps, submit
from chipsim.cluster.engine.running import (
    admit,
    dismiss,
    interrupt_decode,
    join_decodes,
    new_blocks,
    plan_chunk,
)
from chipsim.cluster.engine.splitwise import splitwise
from chipsim.cluster.engine.touch import charge
from chipsim.cluster.engine.transfer import unbind
from chipsim.kernels.jit import hot_part, part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State


@hot_part
def form_step(S: State, i: int) -> int:
    """Plan the next step of all ranks of an instance; what kind it is."""
    kind = _plan(S, i)
    while kind == IDLE and _preempted(S, i):
        kind = _plan(S, i)
    return kind


@part
def _preempted(S: State, i: int) -> bool:
    """Whether a plan preempted: if it left nothing to run, what waits may fit now."""
    instance, preempted = S.instances[i], 0
    for k in range(instance.first, instance.first + instance.ranks):
        preempted += S.ranks[k].preempted
    return preempted > 0


@hot_part
def _plan(S: State, i: int) -> int:
    instance = S.instances[i]
    batching = S.pools[instance.pool].batching
    for k in range(instance.first, instance.first + instance.ranks):
        _clear(S, k)
        if S.ranks[k].queue >= 0:
            _return_swapped(S, k)
        if S.ranks[k].ready >= 0:
            _join_ready(S, k)
    if batching == PREFILL_FIRST:
        return prefill_first(S, i)
    if batching == DECODE_FIRST:
        return decode_first(S, i)
    if batching == CHUNKED:
        return chunked(S, i)
    return splitwise(S, i)


@hot_part
def prefill_first(S: State, i: int) -> int:
    """Prompts if any can be admitted, else decodes."""
    if _prompts(S, i) > 0:
        return PREFILL_STEP
    return DECODE_STEP if _decodes(S, i) > 0 else IDLE


@part
def decode_first(S: State, i: int) -> int:
    """Decodes while there are any, else prompts."""
    if _decodes(S, i) > 0:
        return DECODE_STEP
    return PREFILL_STEP if _prompts(S, i) > 0 else IDLE


@part
def chunked(S: State, i: int) -> int:
    """All decodes, and as many prompt tokens beside them as the budget leaves."""
    instance = S.instances[i]
    decodes, tokens = _decodes(S, i), 0
    for k in range(instance.first, instance.first + instance.ranks):
        rank = S.ranks[k]
        left = S.pools[rank.pool].max_tokens - rank.decodes
        started = rank.first
        if started >= 0:
            request = S.requests[started]
            rank.first = -1
            plan_chunk(S, k, started, min(left, request.length - request.done))
        if rank.preempted == 0:
            _admit_prompts(S, k, left, True)
        tokens += rank.tokens
    if tokens > 0:
        return MIXED_STEP if decodes > 0 else PREFILL_STEP
    return DECODE_STEP if decodes > 0 else IDLE


@hot_part
def _prompts(S: State, i: int) -> int:
    """Prompts on all ranks; the tokens of them."""
    instance, tokens = S.instances[i], 0
    for k in range(instance.first, instance.first + instance.ranks):
        if S.ranks[k].queue >= 0 or S.ranks[k].loaded >= 0:
            _admit_prompts(S, k, S.pools[instance.pool].max_tokens, False)
        tokens += S.ranks[k].tokens
    return tokens


@hot_part
def _decodes(S: State, i: int) -> int:
    """Decodes on all ranks, each with room for the token it writes; how many."""
    instance, decodes = S.instances[i], 0
    for k in range(instance.first, instance.first + instance.ranks):
        rank = S.ranks[k]
        if S.pools[instance.pool].reserve == RESERVE_PROMPT and rank.decoding > 0:
            _grow(S, k)
        rank.decodes = rank.decoding
        decodes += rank.decodes
    return decodes


@hot_part
def _clear(S: State, k: int) -> None:
    rank = S.ranks[k]
    rank.tokens, rank.squares, rank.earlier = 0, 0.0, 0.0
    rank.ending, rank.decodes, rank.preempted = 0, 0, 0
    rank.iterations, rank.cut = 1, 0


@part
def _admit_prompts(S: State, k: int, budget: int, chunks: bool) -> None:
    """Admit waiting prompts in order until one does not fit.

    ``budget`` bounds the step's prompt tokens; whole prompts unless ``chunks``, of which
    the first may exceed it and then stands alone.
    """
    rank, pool = S.ranks[k], S.pools[S.ranks[k].pool]
    while rank.loaded >= 0 and rank.running < pool.max_batch:
        r = rank.loaded
        tokens = S.requests[r].length - S.requests[r].done
        left = budget - rank.tokens
        if rank.tokens > 0 and (left <= 0 or (not chunks and tokens > left)):
            return
        if left <= 0 and chunks:
            return
        rank.loaded = queue_pop(S.requests, r)
        _start_prompt(S, k, r, min(left, tokens) if chunks else tokens)
    while rank.queue >= 0 and rank.running < pool.max_batch:
        r = rank.queue
        request = S.requests[r]
        left = budget - rank.tokens
        if request.phase == SWAPPED or (left <= 0 and (chunks or rank.tokens > 0)):
            break
        if S.sim[0].caching:
            _look_up(S, k, r)
        if not chunks and rank.tokens > 0 and request.length - request.done > left:
            break
        blocks = _blocks_of_prompt(S, k, r)
        if rank.used + blocks - in_use(S, k, r) > rank.capacity:
            break
        _enter(S, k, r, blocks, found(S, k, r))
        request.cached, request.loaded = request.done, 0
        S.instances[rank.instance].found_tokens += request.done
        if not begin_load(S, k, r):
            tokens = request.length - request.done
            _start_prompt(S, k, r, min(left, tokens) if chunks else tokens)


@part
def _start_prompt(S: State, k: int, r: int, tokens: int) -> None:
    """Let a prompt whose blocks are taken run, and the step compute so many tokens of it."""
    request = S.requests[r]
    request.phase, request.prefill_start_s = PREFILLING, S.sim[0].now_s
    request.prefill_rank, request.prefill_instance = k, S.ranks[k].instance
    admit(S, k, r)
    plan_chunk(S, k, r, tokens)


@part
def _look_up(S: State, k: int, r: int) -> None:
    """What the cache has now of a waiting prompt need not be computed."""
    tokens = found_tokens(S, k, r)
    charge(S, k, 0, S.requests[r].done - tokens)
    S.requests[r].done = tokens


@part
def _blocks_of_prompt(S: State, k: int, r: int) -> int:
    """Blocks that a waiting prompt takes now; whether it stays is decided with them."""
    request = S.requests[r]
    here = blocks_to_decode(S, k, r)
    bound_elsewhere = request.to >= 0 and request.to != k
    request.stays = request.to == k or (
        not bound_elsewhere and keeps(S, k) and here <= S.ranks[k].capacity
    )
    return here if request.stays else blocks_to_prefill(S, k, r)


@part
def _enter(S: State, k: int, r: int, blocks: int, shared: int) -> None:
    """From the head of the queue into the memory; ``shared``: found in the cache."""
    rank = S.ranks[k]
    rank.queue = queue_pop(S.requests, r)
    rank.waiting -= 1
    claim(S, k, r, blocks, shared)
    S.requests[r].blocks, S.requests[r].shared = blocks, shared


@part
def _join_ready(S: State, k: int) -> None:
    """Let requests whose KV has come run, first come first served."""
    rank = S.ranks[k]
    while rank.ready >= 0 and rank.running < S.pools[rank.pool].max_batch:
        r = rank.ready
        rank.ready = queue_pop(S.requests, r)
        admit(S, k, r)
        join_decodes(S, k, r)


@part
def _return_swapped(S: State, k: int) -> None:
    """Bring sequences back from the host while they stand first and fit."""
    rank, pool = S.ranks[k], S.pools[S.ranks[k].pool]
    while rank.queue >= 0 and rank.running < pool.max_batch:
        r = rank.queue
        blocks = (S.requests[r].length + pool.block) // pool.block
        if S.requests[r].phase != SWAPPED or rank.used + blocks > rank.capacity:
            break
        _enter(S, k, r, blocks, 0)
        admit(S, k, r)
        rank.added_s += S.requests[r].length * pool.kv_bytes_per_token / pool.host_bytes_per_s
        join_decodes(S, k, r)


@part
def _grow(S: State, k: int) -> None:
    """Open the blocks that the next decodes write into; preempt until they are free."""
    rank = S.ranks[k]
    while new_blocks(S, k) > rank.capacity - rank.used:
        _preempt(S, k, rank.top)
    if new_blocks(S, k) > 0:
        take(S, k, new_blocks(S, k))


@part
def _preempt(S: State, k: int, r: int) -> None:
    """Take the blocks of a running sequence; it comes back ahead of new ones."""
    rank, request, pool = S.ranks[k], S.requests[r], S.pools[S.ranks[k].pool]
    rank.preempted += 1
    request.preemptions += 1
    decoding = request.phase == DECODING
    blocks = held(S, k, r, 0) if decoding else request.blocks
    if decoding:
        context = request.context + rank.steps - request.joined
        keep(S, k, r, context - 1)
        interrupt_decode(S, k, r)
    else:
        rank.first = -1
    dismiss(S, k, r)
    give_back(S, k, r, blocks, request.shared)
    request.shared = 0
    if decoding and pool.preemption == SWAP:
        request.phase, request.length, request.done = SWAPPED, context - 1, context - 1
        rank.added_s += request.length * pool.kv_bytes_per_token / pool.host_bytes_per_s
        enqueue(S, k, r, True)
        return
    left = 1 if decoding else request.length - request.done
    unbind(S, r)
    request.phase, request.length, request.done = WAITING, request.prompt + request.emitted, 0
    if S.instances[rank.instance].role == DECODE:
        charge(S, k, -1, -left)
        request.phase = OUTSIDE
        submit(S, r, True)
    else:
        request.done = found_tokens(S, k, r)
        charge(S, k, 0, request.length - request.done - left)
        enqueue(S, k, r, True)
