"""Blocks of prompts that a rank's own memory lacks, from elsewhere: loaded, or computed again.

First from other ranks of the pool, if it has one index of what they all keep: sent over the
link between instances, and held there meanwhile. Else from the levels below: the host's memory,
its disks, and a store that all ranks of all pools share. A block that a cache forgets falls to
the next level, which costs no time; a block that is loaded stays where it was, too. A rank
loads from one level at a time, over a link of its own to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine.codes import BY_POOL, LOADED, LOADING
from chipsim.cluster.engine.kv import claim, give_back, keep, let_go, span
from chipsim.cluster.engine.network import (
    free_from,
    occupy,
    seconds_to_convert,
    seconds_to_send,
)
from chipsim.cluster.engine.prefix import (
    NONE,
    caches,
    erase_oldest,
    find,
    found,
    length_of,
    pin,
    unpin,
)
from chipsim.cluster.engine.queues import queue_push
from chipsim.cluster.engine.steps import prefill_seconds
from chipsim.cluster.engine.touch import charge, touch
from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State

SHARED_LEVEL = 2
"""Of `State.tiers`: one store for all."""


@part
def begin_load(S: State, k: int, r: int) -> bool:
    """Load the next blocks of a prompt, if that takes less time than computing them.

    They are the next ones that the first place has that has any. Whether it is so.
    """
    request = S.requests[r]
    if not S.sim[0].loads or not caches(S, k) or request.done >= request.length - 1:
        return False
    return _from_rank(S, k, r) or _from_level(S, k, r)


@part
def _from_rank(S: State, k: int, r: int) -> bool:
    """Have blocks sent by the rank of the pool that has most of the prompt."""
    request, sim = S.requests[r], S.sim[0]
    q = _fullest_of(S, k, r) if S.pools[S.ranks[k].pool].prefix_cache == BY_POOL else -1
    if q < 0:
        return False
    stop = found(S, q, r)
    tokens = (stop - request.shared) * sim.unit
    sent = free_from(S, q, k, sim.now_s) + seconds_to_send(S, q, k, tokens)
    end = sent + seconds_to_convert(S, q, k, tokens)
    if not _pays(S, k, r, stop, end):
        return False
    occupy(S, q, k, sent)
    claim(S, q, r, stop * span(S, q), stop)
    _wait(S, r, q, stop, end)
    return True


@part
def _fullest_of(S: State, k: int, r: int) -> int:
    """The other rank of a rank's pool that has most of a prompt and more than it, or -1."""
    best, most = -1, S.requests[r].shared
    for q in range(S.ranks.shape[0]):
        if q != k and S.ranks[q].pool == S.ranks[k].pool:
            there = found(S, q, r)
            if there > most:
                best, most = q, there
    return best


@part
def _from_level(S: State, k: int, r: int) -> bool:
    """Read blocks from the first level below that has any."""
    request, sim = S.requests[r], S.sim[0]
    level = _level_of(S, k, r, request.shared)
    if level < 0:
        return False
    tier, most = S.tiers[k, level], min(length_of(S, r), request.length // sim.unit)
    stop = request.shared + 1
    while stop < most and find(S, tier.cache, r, stop) != NONE:
        stop += 1
    end = max(sim.now_s, tier.free_s) + tier.latency_s
    end += (stop - request.shared) * tier.block_s
    if not _pays(S, k, r, stop, end):
        return False
    pin(S, tier.cache, r, request.shared, stop)
    tier.free_s = end
    _wait(S, r, tier.cache, stop, end)
    return True


@part
def _wait(S: State, r: int, source: int, stop: int, end_s: float) -> None:
    """Let a prompt wait for its blocks up to ``stop`` from a cache."""
    request, sim = S.requests[r], S.sim[0]
    request.phase, request.loads, request.source = LOADING, stop - request.shared, source
    sim.transfers = queue_push(S.requests, sim.transfers, r, end_s, float(sim.sequence))
    sim.sequence += 1


@part
def _level_of(S: State, k: int, r: int, place: int) -> int:
    """The first level that has a block of a chain, or -1."""
    if place >= length_of(S, r) or (place + 1) * S.sim[0].unit > S.requests[r].length:
        return -1
    for level in range(S.tiers.shape[1]):
        c = S.tiers[k, level].cache
        if c >= 0 and find(S, c, r, place) != NONE:
            return level
    return -1


@part
def _pays(S: State, k: int, r: int, stop: int, end_s: float) -> bool:
    """Whether a prompt's blocks up to ``stop`` are there sooner than a prefill takes longer.

    Of the rest of the prompt alone, without them.
    """
    request, table = S.requests[r], S.pools[S.ranks[k].pool].table
    done, left = float(request.done), request.length - request.done
    tokens = _new_tokens(S, r, stop)
    fewer = left - tokens
    saved = prefill_seconds(S.steps, table, left, float(left) * left, left * done, 1)
    saved -= prefill_seconds(
        S.steps, table, fewer, float(fewer) * fewer, fewer * (done + tokens), 1
    )
    return end_s - S.sim[0].now_s < saved


@part
def _new_tokens(S: State, r: int, stop: int) -> int:
    """Tokens that need not be computed once the blocks up to ``stop`` are there."""
    request = S.requests[r]
    return min(stop * S.sim[0].unit, request.length - 1) - request.done


@part
def end_load(S: State, r: int) -> None:
    """Blocks have come."""
    request, k = S.requests[r], S.requests[r].rank
    stop = request.shared + request.loads
    tokens = _new_tokens(S, r, stop)
    stop_load(S, r, -1)
    request.done += tokens
    request.loaded += tokens
    S.instances[S.ranks[k].instance].loaded_tokens += tokens
    S.caches[request.source].loaded += tokens
    charge(S, k, 0, -tokens)
    keep(S, k, r, stop * S.sim[0].unit)
    go_on(S, r)


@part
def go_on(S: State, r: int) -> None:
    """Load more of a prompt, or let the rest be computed."""
    request, k = S.requests[r], S.requests[r].rank
    if begin_load(S, k, r):
        return
    request.phase, rank = LOADED, S.ranks[k]
    rank.loaded = queue_push(S.requests, rank.loaded, r, S.sim[0].now_s, 0.0)
    touch(S, rank.instance)


@part
def stop_load(S: State, r: int, failed: int) -> None:
    """Let go of the blocks that were read; ``failed``: an instance that loses all anyway."""
    request, q = S.requests[r], S.requests[r].source
    stop = request.shared + request.loads
    request.loads = 0
    if q >= S.ranks.shape[0]:
        unpin(S, q, r, request.shared, stop)
    elif S.ranks[q].instance == failed:
        let_go(S, q, r, stop)
    else:
        give_back(S, q, r, stop * span(S, q), stop)


@part
def reads_from(S: State, r: int, i: int) -> bool:
    """Whether a prompt is being sent blocks by a rank of an instance."""
    request = S.requests[r]
    if request.phase != LOADING or request.source >= S.ranks.shape[0]:
        return False
    return S.ranks[request.source].instance == i


@part
def forget_below(S: State, k: int) -> None:
    """What a rank's own levels hold is lost."""
    for level in range(SHARED_LEVEL):
        if level < S.tiers.shape[1]:
            S.tiers[k, level].free_s = 0.0
            c = S.tiers[k, level].cache
            while c >= 0 and S.caches[c].oldest != NONE:
                erase_oldest(S, c)
