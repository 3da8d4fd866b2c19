"""Memory below a rank's own: blocks that fell out of it are loaded again, or computed again.

Levels: the host's memory, its disks, and a store that all ranks of all pools share. A block
that a cache forgets falls to the next level, which costs no time; a block that is loaded stays
where it was, too. A rank loads from one level at a time, over a link of its own to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine.codes import LOADED, LOADING
from chipsim.cluster.engine.kv import keep
from chipsim.cluster.engine.prefix import (
    NONE,
    caches,
    erase_oldest,
    find,
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

    They are the next ones that the first level has that has any. Whether it is so.
    """
    request, sim = S.requests[r], S.sim[0]
    if not sim.tiered or not caches(S, k) or request.done >= request.length - 1:
        return False
    level = _level_of(S, k, r, request.shared)
    if level < 0:
        return False
    tier, most = S.tiers[k, level], min(length_of(S, r), request.length // sim.unit)
    stop = request.shared + 1
    while stop < most and find(S, tier.cache, r, stop) != NONE:
        stop += 1
    tokens = min(stop * sim.unit, request.length - 1) - request.done
    end = max(sim.now_s, tier.free_s) + tier.latency_s
    end += (stop - request.shared) * tier.block_s
    if end - sim.now_s >= _seconds_saved(S, k, r, tokens):
        return False
    pin(S, tier.cache, r, request.shared, stop)
    tier.free_s = end
    request.phase, request.loads, request.source = LOADING, stop - request.shared, tier.cache
    sim.transfers = queue_push(S.requests, sim.transfers, r, end, float(sim.sequence))
    sim.sequence += 1
    return True


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
def _seconds_saved(S: State, k: int, r: int, tokens: int) -> float:
    """What a prefill of the rest of a prompt alone takes less with so many tokens of it."""
    request, table = S.requests[r], S.pools[S.ranks[k].pool].table
    done, left = float(request.done), request.length - request.done
    fewer = left - tokens
    return prefill_seconds(
        S.steps, table, left, float(left) * left, left * done, 1
    ) - prefill_seconds(S.steps, table, fewer, float(fewer) * fewer, fewer * (done + tokens), 1)


@part
def end_load(S: State, r: int) -> None:
    """Blocks have come: load more, or let the rest be computed."""
    request, k = S.requests[r], S.requests[r].rank
    stop = request.shared + request.loads
    tokens = min(stop * S.sim[0].unit, request.length - 1) - request.done
    stop_load(S, r)
    request.done += tokens
    request.loaded += tokens
    S.instances[S.ranks[k].instance].loaded_tokens += tokens
    S.caches[request.source].loaded += tokens
    charge(S, k, 0, -tokens)
    keep(S, k, r, stop * S.sim[0].unit)
    if begin_load(S, k, r):
        return
    request.phase, rank = LOADED, S.ranks[k]
    rank.loaded = queue_push(S.requests, rank.loaded, r, S.sim[0].now_s, 0.0)
    touch(S, rank.instance)


@part
def stop_load(S: State, r: int) -> None:
    """Let go of the blocks that were read."""
    request = S.requests[r]
    unpin(S, request.source, r, request.shared, request.shared + request.loads)
    request.loads = 0


@part
def forget_below(S: State, k: int) -> None:
    """What a rank's own levels hold is lost."""
    for level in range(SHARED_LEVEL):
        if level < S.tiers.shape[1]:
            S.tiers[k, level].free_s = 0.0
            c = S.tiers[k, level].cache
            while c >= 0 and S.caches[c].oldest != NONE:
                erase_oldest(S, c)
