"""Blocks of KV: how many, taken, given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine.codes import DECODE, RESERVE_FINAL
from chipsim.cluster.engine.heaps import heap_push
from chipsim.cluster.engine.prefix import (
    adopt,
    caches,
    drop_oldest,
    erase_oldest,
    found,
    length_of,
    pin,
    pinned,
    unpin,
)
from chipsim.cluster.engine.touch import rescore, touch
from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State


@part
def blocks_of(tokens: int, block: int) -> int:
    """Blocks that hold so many tokens."""
    return (tokens + block - 1) // block


@part
def blocks_to_prefill(S: State, k: int, r: int) -> int:
    """Blocks that a request takes on a rank where it will be decoded elsewhere."""
    return blocks_of(S.requests[r].length + 1, S.pools[S.ranks[k].pool].block)


@part
def blocks_to_decode(S: State, k: int, r: int) -> int:
    """Blocks that a request takes on the rank where it will be decoded."""
    request, pool = S.requests[r], S.pools[S.ranks[k].pool]
    if pool.reserve == RESERVE_FINAL:
        return blocks_of(request.prompt + request.output, pool.block)
    return blocks_to_prefill(S, k, r)


@part
def fits(S: State, i: int, r: int) -> bool:
    """Whether an empty rank of the instance could serve the request to its end."""
    instance, request = S.instances[i], S.requests[r]
    tokens = request.prompt + request.output if instance.role & DECODE else request.length + 1
    block = S.pools[instance.pool].block
    return blocks_of(tokens, block) <= S.ranks[instance.first].capacity


@part
def held(S: State, k: int, r: int, running: int) -> int:
    """Blocks that a request holds; ``running``: 1 if it decodes in a step under way."""
    request = S.requests[r]
    steps = S.ranks[k].steps - request.joined + running
    return max(
        request.blocks,
        blocks_of(request.context + steps - 1, S.pools[S.ranks[k].pool].block),
    )


@part
def take(S: State, k: int, blocks: int) -> None:
    """Take blocks of a rank; the caller knows that they are free."""
    _account(S, k)
    S.ranks[k].used += blocks
    S.instances[S.ranks[k].instance].used += blocks
    rescore(S, S.ranks[k].instance)
    if S.ranks[k].idle > 0:
        make_room(S, k)


@part
def release(S: State, k: int, blocks: int) -> None:
    """Give blocks back, and wake whoever may wait for them."""
    _account(S, k)
    rank = S.ranks[k]
    instance = S.instances[rank.instance]
    rank.used -= blocks
    instance.used -= blocks
    rescore(S, rank.instance)
    touch(S, rank.instance)
    note_change(S)
    if S.sim[0].handoffs >= 0:
        S.sim[0].released = 1
    if instance.handoffs >= 0:
        call(S, rank.instance)


# ------------------------------------------------------------------ with a prefix cache


@part
def span(S: State, k: int) -> int:
    """Blocks of a rank's memory that one block of a chain takes."""
    return S.sim[0].unit // S.pools[S.ranks[k].pool].block


@part
def in_use(S: State, k: int, r: int) -> int:
    """Blocks that a request needs and that are held for others already."""
    if not caches(S, k):
        return 0
    return pinned(S, k, r, found(S, k, r)) * span(S, k)


@part
def claim(S: State, k: int, r: int, blocks: int, shared: int) -> None:
    """Take a request's blocks, of which the cache has the first ones of its chain."""
    idle = 0
    if shared > 0:
        idle = pin(S, k, r, 0, shared)
        S.ranks[k].idle -= idle * span(S, k)
        blocks -= (shared - idle) * span(S, k)
    take(S, k, blocks)


@part
def give_back(S: State, k: int, r: int, blocks: int, shared: int) -> None:
    """Release a request's blocks; those that it shares with the cache stay there, idle."""
    if shared > 0:
        blocks -= (shared - let_go(S, k, r, shared)) * span(S, k)
    release(S, k, blocks)


@part
def let_go(S: State, k: int, r: int, shared: int) -> int:
    """Unpin a request's blocks in the cache; how many of them are now idle."""
    idle = unpin(S, k, r, 0, shared)
    S.ranks[k].idle += idle * span(S, k)
    return idle


@part
def keep(S: State, k: int, r: int, tokens: int) -> None:
    """Let the cache of a request's rank have what is whole of its first tokens."""
    request = S.requests[r]
    if not caches(S, k):
        return
    stop = min(length_of(S, r), tokens // S.sim[0].unit)
    if stop <= request.shared:
        return
    idle, used = adopt(S, k, r, request.shared, stop)
    request.shared = stop
    S.ranks[k].idle -= idle * span(S, k)
    # Even where nothing is freed: what is shared now, others need not find room for.
    release(S, k, used * span(S, k))


@part
def make_room(S: State, k: int) -> None:
    """Have idle blocks forgotten until all fits."""
    rank = S.ranks[k]
    while rank.used + rank.idle > rank.capacity:
        drop_oldest(S, k)
        rank.idle -= span(S, k)


@part
def forget(S: State, k: int) -> None:
    """Have all idle blocks lost."""
    rank = S.ranks[k]
    while rank.idle > 0:
        erase_oldest(S, k)
        rank.idle -= span(S, k)


@part
def note_change(S: State) -> None:
    """Hand-offs that found no room may find some now."""
    S.sim[0].in_vain, S.sim[0].looked = 0, 0


@part
def call(S: State, i: int) -> None:
    """Have the queue of hand-offs to an instance looked at."""
    if not S.instances[i].called:
        S.instances[i].called = 1
        heap_push(S.called, S.sim[0].called, i)
        S.sim[0].called += 1


@part
def _account(S: State, k: int) -> None:
    rank, now = S.ranks[k], S.sim[0].now_s
    rank.used_seconds += rank.used * (now - rank.used_since_s)
    rank.used_since_s = now
