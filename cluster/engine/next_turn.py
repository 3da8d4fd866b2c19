"""What a conversation's next prompt finds of the output that another rank decoded.

`codes.NEXT_TURN`: nothing, and it is computed again; or the decoding rank sends it back to
the one that prefilled, if that has room; or writes it into the store that all ranks share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine.codes import OUTSIDE, RECOMPUTE_OUTPUT, WRITE_BACK, WRITING
from chipsim.cluster.engine.kv import (
    blocks_of,
    claim,
    give_back,
    keep,
    let_go,
    release,
    span,
)
from chipsim.cluster.engine.loading import SHARED_LEVEL
from chipsim.cluster.engine.network import free_from, occupy, seconds_to_send
from chipsim.cluster.engine.prefix import (
    caches,
    fall,
    found_of,
    held_of,
    length_of,
    name_of,
    pinned,
)
from chipsim.cluster.engine.queues import queue_push, queue_remove
from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State


@part
def pass_on(S: State, k: int, r: int, blocks: int, tokens: int) -> bool:
    """Begin to write a finished request's first tokens; whether there is something to write.

    ``blocks`` is what it holds on rank ``k``: what is not written is released.
    """
    request, sim = S.requests[r], S.sim[0]
    if sim.next_turn == RECOMPUTE_OUTPUT or request.first_turn < 0 or request.prefill_rank == k:
        return False
    stop = min(length_of(S, r), tokens // sim.unit)
    back = sim.next_turn == WRITE_BACK
    end = _send_back(S, k, r, stop) if back else _store(S, k, r, stop)
    if end < 0.0:  # never, as time is counted
        return False
    kept = blocks_of(stop * sim.unit, S.pools[S.ranks[k].pool].block)
    release(S, k, blocks - kept)
    request.rank, request.blocks, request.phase, request.loads = k, kept, WRITING, stop
    sim.transfers = queue_push(S.requests, sim.transfers, r, end, float(sim.sequence))
    sim.sequence += 1
    return True


@part
def _send_back(S: State, k: int, r: int, stop: int) -> float:
    """Reserve what the prefilling rank lacks; when it will be there, or -1."""
    request, sim, to = S.requests[r], S.sim[0], S.requests[r].prefill_rank
    target = S.ranks[to]
    receiver = S.instances[target.instance]
    if not receiver.up or not caches(S, to):
        return -1.0
    there = found_of(S, to, r, stop * sim.unit)
    blocks = stop * span(S, to)
    taken = blocks - pinned(S, to, r, there) * span(S, to)
    if there == stop or target.used + taken > target.capacity:
        return -1.0
    claim(S, to, r, blocks, there)
    request.to, request.to_blocks, request.to_shared = to, blocks, there
    tokens = (stop - there) * sim.unit
    end = free_from(S, k, to, sim.now_s) + seconds_to_send(S, k, to, tokens)
    occupy(S, k, to, end)
    receiver.returned_tokens += tokens
    return end


@part
def _store(S: State, k: int, r: int, stop: int) -> float:
    """When all that the shared store lacks will be there, or -1 if it lacks nothing."""
    tier, sim = S.tiers[k, SHARED_LEVEL], S.sim[0]
    lacks = stop - held_of(S, tier.cache, r, stop)
    if lacks == 0:
        return -1.0
    end = max(sim.now_s, tier.free_s) + tier.latency_s + lacks * tier.block_s
    tier.free_s = end
    S.instances[S.ranks[k].instance].returned_tokens += lacks * sim.unit
    return end


@part
def end_writing(S: State, r: int) -> None:
    """It is there: nobody's, until the next turn comes for it."""
    request, left = S.requests[r], S.requests[r].rank
    if request.to < 0:
        for place in range(request.loads - 1, -1, -1):
            fall(S, S.tiers[left, SHARED_LEVEL].cache, name_of(S, r, place))
    give_back(S, left, r, request.blocks, request.shared)
    if request.to >= 0:
        request.rank, request.shared = request.to, request.to_shared
        keep(S, request.to, r, request.loads * S.sim[0].unit)
        give_back(S, request.to, r, request.to_blocks, request.shared)
    _clear(S, r)


@part
def stop_writing(S: State, r: int, i: int) -> None:
    """One end of it failed."""
    request = S.requests[r]
    S.sim[0].transfers = queue_remove(S.requests, S.sim[0].transfers, r)
    if S.ranks[request.rank].instance != i:
        give_back(S, request.rank, r, request.blocks, request.shared)
    elif request.shared > 0:
        let_go(S, request.rank, r, request.shared)
    if request.to >= 0 and S.ranks[request.to].instance != i:
        give_back(S, request.to, r, request.to_blocks, request.to_shared)
    elif request.to >= 0 and request.to_shared > 0:
        let_go(S, request.to, r, request.to_shared)
    _clear(S, r)


@part
def _clear(S: State, r: int) -> None:
    request = S.requests[r]
    request.phase, request.blocks, request.shared, request.loads = OUTSIDE, 0, 0, 0
    request.to, request.to_blocks, request.to_shared = -1, 0, 0
