"""Prefix caches: which blocks of prompts a rank still holds, and which of them go first.

A request's prompt is a chain of blocks, each named by an id that stands for it and all before
it. A cache holds some of them, a block never without those before it: how much of a chain it
holds is found by bisection. A held block is pinned by the requests that use it, or idle; idle
ones wait in order of when they were let go, the last block of a chain first, and go in this
order when their memory is needed (LRU; Kwon et al., PagedAttention, SOSP 2023, and the block
manager of vLLM). Blocks are counted here in those of the chains; `kv` counts memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State

NONE = 0
"""Blocks in a cache are numbered from 1."""


@part
def length_of(S: State, r: int) -> int:
    """Blocks that a request's chain names."""
    return S.chain_start[r + 1] - S.chain_start[r]


@part
def caches(S: State, k: int) -> bool:
    """Whether a rank keeps prefixes."""
    return S.pools[S.ranks[k].pool].prefix_cache != 0


@part
def find(S: State, c: int, r: int, place: int) -> int:
    """Where a cache holds a block of a request's chain, or `NONE`."""
    return _find(S, c * S.sim[0].ids + name_of(S, r, place))


@part
def name_of(S: State, r: int, place: int) -> int:
    """Id of a block of a request's chain."""
    return S.chains[S.chain_start[r] + place]


@part
def found(S: State, k: int, r: int) -> int:
    """Leading blocks of what a request is to have in memory that a rank's cache holds."""
    return found_of(S, k, r, S.requests[r].length)


@part
def found_of(S: State, k: int, r: int, tokens: int) -> int:
    """Leading blocks of a request's first so many tokens that a rank's cache holds."""
    if not caches(S, k):
        return 0
    low, high = 0, min(length_of(S, r), tokens // S.sim[0].unit)
    while low < high:
        middle = (low + high + 1) >> 1
        if find(S, k, r, middle - 1) != NONE:
            low = middle
        else:
            high = middle - 1
    return low


@part
def found_tokens(S: State, k: int, r: int) -> int:
    """Tokens of a prompt that need not be computed: all but one at most."""
    return min(found(S, k, r) * S.sim[0].unit, S.requests[r].length - 1)


@part
def held_of(S: State, c: int, r: int, blocks: int) -> int:
    """How many of a request's first blocks a cache holds, wherever they are."""
    count = 0
    for place in range(blocks):
        count += find(S, c, r, place) != NONE
    return count


@part
def pinned(S: State, k: int, r: int, blocks: int) -> int:
    """How many of the found blocks others use: they take no more memory."""
    low, high = 0, blocks
    while low < high:
        middle = (low + high + 1) >> 1
        if S.nodes[find(S, k, r, middle - 1)].pins > 0:
            low = middle
        else:
            high = middle - 1
    return low


@part
def pin(S: State, c: int, r: int, start: int, stop: int) -> int:
    """Hold blocks of a chain fast that a cache has; how many were idle."""
    idle = 0
    for place in range(start, stop):
        node = find(S, c, r, place)
        if S.nodes[node].pins == 0:
            _leave_row(S, c, node)
            idle += 1
        S.nodes[node].pins += 1
    return idle


@part
def unpin(S: State, c: int, r: int, start: int, stop: int) -> int:
    """Let blocks of a chain go, the last one first; how many are now idle."""
    idle = 0
    for place in range(stop - 1, start - 1, -1):
        node = find(S, c, r, place)
        S.nodes[node].pins -= 1
        if S.nodes[node].pins == 0:
            _join_row(S, c, node)
            idle += 1
    return idle


@part
def adopt(S: State, k: int, r: int, start: int, stop: int) -> tuple[int, int]:
    """Put blocks that a request computed into its rank's cache, pinned by it.

    Where the cache has one already, the request goes on with that one. How many were there
    and idle, and how many were there and in use.
    """
    idle, used = 0, 0
    for place in range(start, stop):
        node = find(S, k, r, place)
        if node == NONE:
            node = _add(S, k * S.sim[0].ids + name_of(S, r, place))
        elif S.nodes[node].pins == 0:
            _leave_row(S, k, node)
            idle += 1
        else:
            used += 1
        S.nodes[node].pins += 1
    return idle, used


@part
def drop_oldest(S: State, c: int) -> None:
    """Let the block that was let go longest ago fall to the cache below, if there is one."""
    fall(S, S.caches[c].below, erase_oldest(S, c))


@part
def erase_oldest(S: State, c: int) -> int:
    """Forget the block that was let go longest ago; its id."""
    node = S.caches[c].oldest
    name = S.nodes[node].key % S.sim[0].ids
    _leave_row(S, c, node)
    _erase(S, node)
    S.caches[c].dropped += S.sim[0].unit
    return name


@part
def fall(S: State, c: int, name: int) -> None:
    """Put a block into a cache below, as its newest; what it pushes out falls further."""
    while c >= 0:
        cache, node = S.caches[c], _find(S, c * S.sim[0].ids + name)
        if node != NONE:
            if S.nodes[node].pins == 0:
                _leave_row(S, c, node)
                _join_row(S, c, node)
            return
        full, pushed = cache.size >= cache.room, name
        if full and cache.oldest == NONE:  # all of it is being read
            return
        if full:
            pushed = erase_oldest(S, c)
        _join_row(S, c, _add(S, c * S.sim[0].ids + name))
        if not full:
            return
        c, name = cache.below, pushed


# ------------------------------------------------------------------ the table


@part
def _find(S: State, key: int) -> int:
    node = S.buckets[_bucket(S, key)]
    while node != NONE and S.nodes[node].key != key:
        node = S.nodes[node].next
    return node


@part
def _add(S: State, key: int) -> int:
    """Hold one more block; it is in no row yet."""
    sim, bucket = S.sim[0], _bucket(S, key)
    node = sim.spare
    if node != NONE:
        sim.spare = S.nodes[node].next
    else:
        sim.nodes += 1
        node = sim.nodes
    S.nodes[node].key, S.nodes[node].pins = key, 0
    S.nodes[node].next = S.buckets[bucket]
    S.buckets[bucket] = node
    S.caches[key // sim.ids].size += 1
    return node


@part
def _erase(S: State, node: int) -> None:
    key, sim = S.nodes[node].key, S.sim[0]
    bucket = _bucket(S, key)
    if S.buckets[bucket] == node:
        S.buckets[bucket] = S.nodes[node].next
    else:
        before = S.buckets[bucket]
        while S.nodes[before].next != node:
            before = S.nodes[before].next
        S.nodes[before].next = S.nodes[node].next
    S.nodes[node].next = sim.spare
    sim.spare = node
    S.caches[key // sim.ids].size -= 1


@part
def _bucket(S: State, key: int) -> int:
    """Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4)."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    # numba's int() would keep it unsigned.
    at = (mixed >> np.uint64(24)) & np.uint64(S.buckets.shape[0] - 1)
    return np.int64(at)  # type: ignore[return-value]


@part
def _join_row(S: State, c: int, node: int) -> None:
    """Behind all idle blocks."""
    cache, own = S.caches[c], S.nodes[node]
    own.older, own.newer = cache.newest, NONE
    if cache.newest == NONE:
        cache.oldest = node
    else:
        S.nodes[cache.newest].newer = node
    cache.newest = node


@part
def _leave_row(S: State, c: int, node: int) -> None:
    cache, own = S.caches[c], S.nodes[node]
    if own.older == NONE:
        cache.oldest = own.newer
    else:
        S.nodes[own.older].newer = own.newer
    if own.newer == NONE:
        cache.newest = own.older
    else:
        S.nodes[own.newer].older = own.older
