"""How a request ends: finished, or turned away with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine.codes import FINISHED, OUTSIDE, PARENT_LOST, REJECTED
from chipsim.cluster.engine.queues import queue_push
from chipsim.cluster.engine.routing import NOWHERE
from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State


@part
def complete(S: State, r: int) -> None:
    """Finished: its next turns begin to think."""
    request, sim = S.requests[r], S.sim[0]
    request.status, request.phase, request.finish_s = FINISHED, OUTSIDE, sim.now_s
    sim.finished += 1
    turn = request.first_turn
    while turn >= 0:
        at = sim.now_s + S.requests[turn].think_s
        sim.thinking = queue_push(S.requests, sim.thinking, turn, at, 0.0)
        turn = S.requests[turn].next_turn


@part
def reject(S: State, r: int, reason: int) -> None:
    """Turn a request away, and with it the turns that would have followed."""
    first, why = r, reason
    S.requests[r].chain = NOWHERE
    while first >= 0:
        request = S.requests[first]
        request.status, request.reason, request.phase = REJECTED, why, OUTSIDE
        S.sim[0].rejected += 1
        why, turn, first = PARENT_LOST, request.first_turn, request.chain
        while turn >= 0:
            S.requests[turn].chain = first
            first, turn = turn, S.requests[turn].next_turn
