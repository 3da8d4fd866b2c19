"""Which instances to look at before time goes on, and how much the routers like them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.engine.codes import (
    CLOCK,
    DECODE,
    LEAST_KV,
    LEAST_REQUESTS,
    LEAST_TOKENS,
    LONGEST_PREFIX,
    PREFILL,
    ROOM,
    TO_DECODE,
    TO_PREFILL,
)
from chipsim.cluster.engine.heaps import heap_push, tree_update
from chipsim.kernels.jit import hot_part, part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State


@hot_part
def touch(S: State, i: int) -> None:
    """Have a free instance form a batch at the end of this instant."""
    if not S.instances[i].touched:
        S.instances[i].touched = 1
        heap_push(S.touched, S.sim[0].touched, i)
        S.sim[0].touched += 1


@hot_part
def set_clock(S: State, i: int, time_s: float) -> None:
    """Let the running step of an instance end at a time (infinite: nothing runs)."""
    S.values[CLOCK, i] = time_s
    tree_update(S.tree[CLOCK], S.values[CLOCK], i)


@part
def score(S: State, i: int, policy: int) -> float:
    """What a policy minimises."""
    instance = S.instances[i]
    if policy == LEAST_REQUESTS:
        return float(instance.requests)
    if policy == LEAST_TOKENS or policy == LONGEST_PREFIX:  # noqa: PLR1714 - numba
        return float(instance.pending)
    if policy == LEAST_KV:
        return float(instance.used + instance.promised)
    return 0.0


@part
def rescore(S: State, i: int) -> None:
    """Tell both routers that an instance's load, role or health changed."""
    instance, sim = S.instances[i], S.sim[0]
    may = instance.role if instance.up else 0
    _set(S, TO_PREFILL, i, score(S, i, sim.routing) if may & PREFILL else np.inf)
    if sim.disaggregated:
        _set(S, TO_DECODE, i, score(S, i, sim.decode_routing) if may & DECODE else np.inf)
        _set(S, ROOM, i, -float(most_free(S, i)) if may & DECODE else np.inf)


@hot_part
def _set(S: State, row: int, i: int, value: float) -> None:
    if S.values[row, i] != value:
        S.values[row, i] = value
        tree_update(S.tree[row], S.values[row], i)


@part
def most_free(S: State, i: int) -> int:
    """Free tokens of the instance's emptiest rank."""
    instance, free = S.instances[i], 0
    for k in range(instance.first, instance.first + instance.ranks):
        free = max(free, S.ranks[k].capacity - S.ranks[k].used)
    return free * S.pools[instance.pool].block


@part
def charge(S: State, k: int, requests: int, pending: int) -> None:
    """Add to what a rank has before it, as its routers see it."""
    rank = S.ranks[k]
    instance = S.instances[rank.instance]
    rank.requests += requests
    rank.pending += pending
    instance.requests += requests
    instance.pending += pending
    rescore(S, rank.instance)
