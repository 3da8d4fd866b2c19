"""Which instance, and which of its ranks, a request is sent to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.engine.codes import (
    DECODE,
    LEAST_KV,
    LEAST_REQUESTS,
    LONGEST_PREFIX,
    PREFILL,
    RANDOM,
    ROOM,
    ROUND_ROBIN,
    TO_DECODE,
    TO_PREFILL,
)
from chipsim.cluster.engine.kv import blocks_to_decode, fits, in_use
from chipsim.cluster.engine.prefix import found, found_tokens
from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State

NOWHERE = -1


@part
def to_prefill(S: State, r: int) -> int:
    """Rank that is to prefill a request, or -1 if no instance can now."""
    policy = S.sim[0].routing
    if policy == LONGEST_PREFIX:
        return _cheapest_rank(S, r, TO_PREFILL, False)
    i = _instance(S, r, policy, TO_PREFILL, False)
    return NOWHERE if i < 0 else _rank(S, r, i, policy, False)


@part
def to_decode(S: State, r: int, need_room: bool) -> int:
    """Rank that is to decode a request; with ``need_room`` only if its KV fits now."""
    sim, request = S.sim[0], S.requests[r]
    if need_room and not sim.caching:
        least = request.length + 1
        if sim.decode_final:
            least = request.prompt + request.output
        # On the rank where it is it needs the rest only.
        here = S.ranks[request.rank]
        if S.instances[here.instance].role & DECODE:
            least -= request.blocks * S.pools[here.pool].block
        if -S.values[ROOM, S.tree[ROOM, 1]] < least:
            return NOWHERE
    if sim.decode_routing == LONGEST_PREFIX:
        return _cheapest_rank(S, r, TO_DECODE, need_room)
    i = _instance(S, r, sim.decode_routing, TO_DECODE, need_room)
    return NOWHERE if i < 0 else _rank(S, r, i, sim.decode_routing, need_room)


@part
def has_room(S: State, k: int, r: int) -> bool:
    """Whether a rank has the blocks that a prefilled request takes there, with its own."""
    own = S.requests[r].blocks if S.requests[r].rank == k else in_use(S, k, r)
    return S.ranks[k].used + blocks_to_decode(S, k, r) - own <= S.ranks[k].capacity


@part
def possible(S: State, row: int, i: int, r: int, need_room: bool) -> bool:
    """Whether a router may choose an instance."""
    if not (np.isfinite(S.values[row, i]) and fits(S, i, r)):
        return False
    if not need_room:
        return True
    instance = S.instances[i]
    for k in range(instance.first, instance.first + instance.ranks):
        if has_room(S, k, r):
            return True
    return False


@part
def _instance(S: State, r: int, policy: int, row: int, need_room: bool) -> int:
    if policy == ROUND_ROBIN:
        return _next_in_turn(S, r, row, need_room)
    if policy == RANDOM:
        return _any_instance(S, r, row, need_room)
    best = S.tree[row, 1]
    if possible(S, row, best, r, need_room):
        return best
    if not np.isfinite(S.values[row, best]):
        return NOWHERE
    return _least_possible(S, r, row, need_room)


@part
def _cheapest_rank(S: State, r: int, row: int, need_room: bool) -> int:
    """Rank with the least to do: what it has before it, and what its cache lacks of this one.

    To prefill, in tokens to compute; to decode, in tokens that it holds or would be sent.
    """
    best, least = NOWHERE, 0
    for i in range(S.instances.shape[0]):
        if not possible(S, row, i, r, need_room):
            continue
        instance = S.instances[i]
        for k in range(instance.first, instance.first + instance.ranks):
            if need_room and not has_room(S, k, r):
                continue
            if row == TO_PREFILL:
                cost = S.ranks[k].pending - found_tokens(S, k, r)
            else:
                cost = S.ranks[k].used * S.pools[instance.pool].block
                cost -= found(S, k, r) * S.sim[0].unit
            if best < 0 or cost < least:
                best, least = k, cost
    return best


@part
def _least_possible(S: State, r: int, row: int, need_room: bool) -> int:
    """As the winner tree, among those that are possible; only where the winner is not."""
    best = NOWHERE
    for i in range(S.instances.shape[0]):
        better = best < 0 or S.values[row, i] < S.values[row, best]
        if better and possible(S, row, i, r, need_room):
            best = i
    return best


@part
def _next_in_turn(S: State, r: int, row: int, need_room: bool) -> int:
    sim = S.sim[0]
    able = sim.able_prefill if row == TO_PREFILL else sim.able_decode
    side = 0 if row == TO_PREFILL else 1
    place = sim.turn_prefill if row == TO_PREFILL else sim.turn_decode
    for step in range(able):
        at = (place + step) % able
        i = S.able[side, at]
        if possible(S, row, i, r, need_room):
            if row == TO_PREFILL:
                sim.turn_prefill, sim.last_prefill = at + 1, i
            else:
                sim.turn_decode, sim.last_decode = at + 1, i
            return i
    return NOWHERE


@part
def _any_instance(S: State, r: int, row: int, need_room: bool) -> int:
    sim = S.sim[0]
    able = sim.able_prefill if row == TO_PREFILL else sim.able_decode
    side = 0 if row == TO_PREFILL else 1
    count = able
    if need_room or sim.smallest < S.requests[r].prompt + S.requests[r].output:
        count = 0
        for at in range(able):
            count += possible(S, row, S.able[side, at], r, need_room)
        if count == 0:
            return NOWHERE
        wanted = draw(S, r, count)
        for at in range(able):
            if possible(S, row, S.able[side, at], r, need_room):
                if wanted == 0:
                    return S.able[side, at]
                wanted -= 1
    return NOWHERE if count == 0 else S.able[side, draw(S, r, count)]


@part
def _rank(S: State, r: int, i: int, policy: int, need_room: bool) -> int:
    """Rank of an instance by the same policy; the lowest of equals."""
    instance = S.instances[i]
    first, ranks = instance.first, instance.ranks
    if ranks == 1:
        return first
    if policy == RANDOM:
        return _any_rank(S, r, i, need_room)
    turn = instance.next_rank if policy == ROUND_ROBIN else 0
    best = NOWHERE
    for step in range(ranks):
        k = first + (turn + step) % ranks
        if need_room and not has_room(S, k, r):
            continue
        if best < 0 or _load(S, k, policy) < _load(S, best, policy):
            best = k
    if policy == ROUND_ROBIN:
        instance.next_rank = (best - first + 1) % ranks
    return best


@part
def _any_rank(S: State, r: int, i: int, need_room: bool) -> int:
    instance, count = S.instances[i], 0
    for k in range(instance.first, instance.first + instance.ranks):
        count += not need_room or has_room(S, k, r)
    wanted = draw(S, r, count)
    for k in range(instance.first, instance.first + instance.ranks):
        if not need_room or has_room(S, k, r):
            if wanted == 0:
                return k
            wanted -= 1
    return NOWHERE


@part
def _load(S: State, k: int, policy: int) -> int:
    if policy == LEAST_REQUESTS:
        return S.ranks[k].requests
    if policy == LEAST_KV:
        return S.ranks[k].used
    return 0 if policy == ROUND_ROBIN else S.ranks[k].pending


@part
def draw(S: State, r: int, count: int) -> int:
    """A number below ``count``, by seed, request, and how many it has used."""
    request = S.requests[r]
    number = _mix(_mix(_mix(S.sim[0].seed) + np.uint64(r)) + np.uint64(request.draws))
    request.draws += 1
    # numba's int() would keep it unsigned.
    return np.int64(number % np.uint64(count))  # type: ignore[return-value]


@part
def _mix(x: np.uint64) -> np.uint64:
    """splitmix64 (Steele, Lea, Flood, Fast splittable generators, OOPSLA 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@part
def list_able(S: State) -> None:
    """Note which instances may prefill or decode, after a role or health changed."""
    sim = S.sim[0]
    sim.able_prefill, sim.able_decode, sim.turn_prefill, sim.turn_decode = 0, 0, 0, 0
    sim.largest_decode = 0
    changes = sim.timed < S.timers.shape[0]
    switches = sim.switch_every_s > 0.0 or (changes and sim.switches)
    for i in range(S.instances.shape[0]):
        instance = S.instances[i]
        may = instance.role if instance.up else 0
        if may & PREFILL:
            S.able[0, sim.able_prefill] = i
            sim.able_prefill += 1
            sim.turn_prefill += i <= sim.last_prefill
        if may & DECODE:
            S.able[1, sim.able_decode] = i
            sim.able_decode += 1
            sim.turn_decode += i <= sim.last_decode
        if (instance.up or changes) and (instance.role & DECODE or switches):
            tokens = S.ranks[instance.first].capacity * S.pools[instance.pool].block
            sim.largest_decode = max(sim.largest_decode, tokens)
