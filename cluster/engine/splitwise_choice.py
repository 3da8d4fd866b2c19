"""Which tasks Splitwise's simulator takes into a batch, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine.codes import READY, WAITING
from chipsim.cluster.engine.splitwise_lists import times_passed
from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State

Filled = tuple[int, int, int]
"""A batch as it fills: tasks, tokens, and KV that the machine then holds."""


@part
def choose(S: State, k: int) -> int:
    """Tasks of the next batch, in order, in State.chosen; how many."""
    rank = S.ranks[k]
    filled = _choose_starved(S, k, (0, 0, rank.used))
    filled = _choose_prompts(S, k, filled)
    r = rank.blocked
    while r >= 0 and not _full(S, k, filled, 2 * r + 1):
        if not S.requests[r].chosen:
            filled = _take_in(S, filled, 2 * r + 1)
        r = S.requests[r].next
    for at in range(rank.batched):
        task = 2 * S.batch[k, at] + 1
        if _full(S, k, filled, task):
            break
        filled = _take_in(S, filled, task)
    if rank.listed > 0:
        filled = _choose_others(S, k, filled)
    return filled[0]


@part
def _choose_starved(S: State, k: int, filled: Filled) -> Filled:
    """Tasks that too many batches passed over, while they stand first in the list."""
    rank, limit = S.ranks[k], S.pools[S.ranks[k].pool].max_preemptions
    for at in range(rank.listed):
        task = S.pending[k, at]
        if times_passed(S, task) < limit or _full(S, k, filled, task):
            break
        if not S.requests[task >> 1].chosen and _holds(S, k, filled, task):
            filled = _take_in(S, filled, task)
    return filled


@part
def _choose_prompts(S: State, k: int, filled: Filled) -> Filled:
    """Waiting prompts, first come first served."""
    r = S.ranks[k].prompts
    while r >= 0 and not _full(S, k, filled, 2 * r):
        if not S.requests[r].chosen:
            if not _holds(S, k, filled, 2 * r):
                break
            filled = _take_in(S, filled, 2 * r)
        r = S.requests[r].next
    return filled


@part
def _choose_others(S: State, k: int, filled: Filled) -> Filled:
    """Whatever else waits, by arrival of its request; a prompt that waits stops them."""
    r = S.ranks[k].bottom
    while r >= 0:
        if not S.requests[r].chosen:
            task = 2 * r + (S.requests[r].phase != WAITING)
            if _full(S, k, filled, task) or not _holds(S, k, filled, task):
                break
            filled = _take_in(S, filled, task)
        r = S.requests[r].above
    return filled


@part
def _tokens(S: State, task: int) -> int:
    return 1 if task & 1 else S.requests[task >> 1].length


@part
def _memory(S: State, task: int) -> int:
    """Tokens of KV that a task takes as it starts: none if it goes on."""
    request = S.requests[task >> 1]
    if not task & 1:
        return request.length + 1
    return request.output - 1 if request.phase in (READY, WAITING) else 0


@part
def _full(S: State, k: int, filled: Filled, task: int) -> bool:
    """Whether a batch has no place for a task; the first one always has."""
    pool = S.pools[S.ranks[k].pool]
    if filled[0] == pool.max_batch:
        return True
    return filled[0] > 0 and filled[1] + _tokens(S, task) > pool.max_tokens


@part
def _holds(S: State, k: int, filled: Filled, task: int) -> bool:
    """Whether a machine has the KV that a task takes."""
    return filled[2] + _memory(S, task) <= S.ranks[k].capacity


@part
def _take_in(S: State, filled: Filled, task: int) -> Filled:
    count, tokens, used = filled
    S.chosen[count] = task
    S.requests[task >> 1].chosen = 1
    return count + 1, tokens + _tokens(S, task), used + _memory(S, task)
