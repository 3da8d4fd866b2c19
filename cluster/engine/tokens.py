"""Tokens as they come out, and the gaps between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.engine.running import step_contexts
from chipsim.kernels.jit import hot_part, part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State


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


@hot_part
def tick(S: State, k: int, time_s: float) -> None:
    """One more token for every decode of a rank."""
    rank = S.ranks[k]
    old = rank.decodes
    if rank.fresh >= 0:
        old -= _emit_fresh(S, k, time_s)
    if old > 0:
        log_gap(S, time_s - rank.last_s, old)
    rank.last_s = time_s
    step_contexts(S, k)


@part
def _emit_fresh(S: State, k: int, time_s: float) -> int:
    """Those whose first step this was have gaps of their own; how many."""
    rank, count = S.ranks[k], 0
    start = S.instances[rank.instance].start_s
    r = rank.fresh
    while r >= 0:
        request = S.requests[r]
        emit(S, r, time_s)
        if np.isnan(request.decode_start_s):
            request.decode_start_s = start
        r, count = request.chain, count + 1
    rank.fresh, rank.fresh_on_edge = -1, 0
    return count
