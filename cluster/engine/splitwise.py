"""Splitwise's simulator: its batching and its two-pool routing, rule by rule.

A machine has one list of waiting tasks, a prompt and its decode apart. At every boundary
the batch is chosen anew: tasks passed over too often, prompts, preempted decodes, decodes
of the last batch, new decodes, within a budget of tokens and of requests. Decodes alone run
as one event of as many iterations as the shortest has left, cut when something arrives.
Source: Patel et al., Splitwise (ISCA 2024), the rules of its public simulator.

Where these rules are wrong about hardware they are so on purpose: this policy exists to
agree with that simulator request by request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.engine.codes import (
    DECODE,
    DECODE_STEP,
    DECODING,
    IDLE,
    MIXED_STEP,
    PREFILL,
    PREFILL_STEP,
    PREFILLING,
    READY,
    SWAPPED,
    WAITING,
)
from chipsim.cluster.engine.kv import take
from chipsim.cluster.engine.running import interrupt_decode, join_decodes, plan_chunk
from chipsim.cluster.engine.touch import charge, rescore, set_clock, touch
from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State

MIXED_ROLE = PREFILL | DECODE

Filled = tuple[int, int, int]
"""A batch as it fills: tasks, tokens, and KV that the machine then holds."""


# ------------------------------------------------------------------ arrivals


@part
def arrive_prompt(S: State, k: int, r: int) -> None:
    """A prompt comes to a machine, with its decode behind it if that stays there."""
    rank, request = S.ranks[k], S.requests[r]
    request.passed_prompt, request.passed_decode = 0, 0
    _list_by_arrival(S, k, r)
    _list_task(S, k, 2 * r)
    rank.waiting += 1
    request.next, request.prev = -1, rank.last_prompt
    if rank.last_prompt < 0:
        rank.prompts = r
    else:
        S.requests[rank.last_prompt].next = r
    rank.last_prompt = r
    _knock(S, k, request.length, True)
    if request.to == k and request.output > 1:
        _list_task(S, k, 2 * r + 1)
        _knock(S, k, 1, False)


@part
def arrive_decode(S: State, k: int, r: int) -> None:
    """A decode comes to a machine, its KV before it."""
    S.requests[r].phase, S.requests[r].passed_decode = READY, 0
    _list_by_arrival(S, k, r)
    _list_task(S, k, 2 * r + 1)
    _knock(S, k, 1, False)


@part
def free_source(S: State, k: int) -> None:
    """A transfer from this machine ended: what waits there may come into the batch."""
    if S.ranks[k].listed > 0:
        _knock(S, k, 1, False)


@part
def _knock(S: State, k: int, tokens: int, prompt: bool) -> None:
    """Cut a run of decodes at its next boundary if the newcomer could join there."""
    rank, pool = S.ranks[k], S.pools[S.ranks[k].pool]
    touch(S, rank.instance)
    if S.instances[rank.instance].step != DECODE_STEP or rank.cut:
        return
    joins = rank.decodes < pool.max_batch and rank.decodes + tokens <= pool.max_tokens
    if joins or (prompt and tokens <= pool.max_tokens):
        instance = S.instances[rank.instance]
        elapsed = S.sim[0].now_s - instance.start_s
        rank.iterations = int(elapsed // instance.iteration_s) + 1
        rank.cut = 1
        left = instance.iteration_s * rank.iterations - elapsed
        set_clock(S, rank.instance, S.sim[0].now_s + left)


# ------------------------------------------------------------------ the lists


@part
def _list_by_arrival(S: State, k: int, r: int) -> None:
    """Into the list of all requests on a machine, in order of arrival."""
    rank, request = S.ranks[k], S.requests[r]
    below = rank.top
    while below >= 0 and S.requests[below].arrival_s > request.arrival_s:
        below = S.requests[below].below
    above = rank.bottom if below < 0 else S.requests[below].above
    request.below, request.above = below, above
    if below < 0:
        rank.bottom = r
    else:
        S.requests[below].above = r
    if above < 0:
        rank.top = r
    else:
        S.requests[above].below = r
    rank.running += 1


@part
def _passed(S: State, task: int) -> int:
    request = S.requests[task >> 1]
    return request.passed_decode if task & 1 else request.passed_prompt


@part
def _list_task(S: State, k: int, task: int) -> None:
    """Into the list of waiting tasks, by bisection on (batches passed over, arrival).

    The counts change while tasks wait and the list is not sorted again, so where the
    bisection ends depends on its course: it must be this one.
    """
    rank, tasks = S.ranks[k], S.pending[k]
    passed, arrival = _passed(S, task), S.requests[task >> 1].arrival_s
    low, high = 0, rank.listed
    while low < high:
        middle = (low + high) // 2
        other = _passed(S, tasks[middle])
        later = passed == other and arrival < S.requests[tasks[middle] >> 1].arrival_s
        if passed < other or later:
            high = middle
        else:
            low = middle + 1
    for place in range(rank.listed, low, -1):
        tasks[place] = tasks[place - 1]
    tasks[low] = task
    rank.listed += 1
    S.sim[0].most_listed = max(S.sim[0].most_listed, rank.listed)


@part
def _unlist_task(S: State, k: int, task: int) -> None:
    rank, tasks = S.ranks[k], S.pending[k]
    place = 0
    while tasks[place] != task:
        place += 1
    rank.listed -= 1
    for at in range(place, rank.listed):
        tasks[at] = tasks[at + 1]


@part
def _unlink(S: State, first: int, last: int, r: int) -> tuple[int, int]:
    """Take a request out of a linked list; its new first and last."""
    request = S.requests[r]
    if request.prev < 0:
        first = request.next
    else:
        S.requests[request.prev].next = request.next
    if request.next < 0:
        last = request.prev
    else:
        S.requests[request.next].prev = request.prev
    return first, last


# ------------------------------------------------------------------ the batch


@part
def splitwise(S: State, i: int) -> int:
    """Choose the batch anew, and how many iterations it runs."""
    k = S.instances[i].first
    rank = S.ranks[k]
    _drop_finished(S, k)
    count = _choose(S, k)
    _preempt_others(S, k)
    _start_chosen(S, k, count)
    _pass_over(S, k)
    rank.decodes = rank.decoding
    if rank.tokens > 0:
        return MIXED_STEP if rank.decodes > 0 else PREFILL_STEP
    if rank.decodes > 0:
        rank.iterations = (S.finish[k, 0] >> 32) - rank.steps
        return DECODE_STEP
    if rank.running == 0 and S.instances[i].ended_s == S.sim[0].now_s:
        _go_home(S, i)
    return IDLE


@part
def _drop_finished(S: State, k: int) -> None:
    rank, kept = S.ranks[k], 0
    for at in range(rank.batched):
        r = S.batch[k, at]
        if S.requests[r].phase == DECODING and S.requests[r].rank == k:
            S.batch[k, kept] = r
            kept += 1
    rank.batched = kept


@part
def _choose(S: State, k: int) -> int:
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
        if _passed(S, task) < limit or _full(S, k, filled, task):
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


@part
def _preempt_others(S: State, k: int) -> None:
    """Decodes of the last batch that found no place wait, and keep their KV."""
    rank, kept = S.ranks[k], 0
    for at in range(rank.batched):
        r = S.batch[k, at]
        request = S.requests[r]
        if request.chosen:
            S.batch[k, kept] = r
            kept += 1
            continue
        context = request.context + rank.steps - request.joined
        interrupt_decode(S, k, r)
        request.phase, request.length, request.done = SWAPPED, context - 1, context - 1
        request.preemptions += 1
        request.next, request.prev = -1, rank.last_blocked
        if rank.last_blocked < 0:
            rank.blocked = r
        else:
            S.requests[rank.last_blocked].next = r
        rank.last_blocked = r
        _list_task(S, k, 2 * r + 1)
    rank.batched = kept


@part
def _start_chosen(S: State, k: int, count: int) -> None:
    """Let what is new in the batch run."""
    for at in range(count):
        task = S.chosen[at]
        if S.requests[task >> 1].phase != DECODING:
            _unlist_task(S, k, task)
            if task & 1:
                _start_decode(S, k, task >> 1)
            else:
                _start_prompt(S, k, task >> 1)


@part
def _start_prompt(S: State, k: int, r: int) -> None:
    rank, request = S.ranks[k], S.requests[r]
    rank.prompts, rank.last_prompt = _unlink(S, rank.prompts, rank.last_prompt, r)
    rank.waiting -= 1
    request.blocks = request.length + 1
    S.instances[rank.instance].promised -= request.blocks
    take(S, k, request.blocks)
    request.phase = PREFILLING
    request.prefill_rank, request.prefill_instance = k, rank.instance
    request.prefill_start_s = S.sim[0].now_s
    plan_chunk(S, k, r, request.length)


@part
def _start_decode(S: State, k: int, r: int) -> None:
    rank, request = S.ranks[k], S.requests[r]
    if request.phase == SWAPPED:
        rank.blocked, rank.last_blocked = _unlink(S, rank.blocked, rank.last_blocked, r)
    else:
        blocks = request.output - 1
        request.blocks += blocks
        S.instances[rank.instance].promised -= blocks
        take(S, k, blocks)
    S.batch[k, rank.batched] = r
    rank.batched += 1
    join_decodes(S, k, r)


@part
def _pass_over(S: State, k: int) -> None:
    """Count the batch against every request that is not in it."""
    r = S.ranks[k].bottom
    while r >= 0:
        request = S.requests[r]
        if request.chosen:
            request.chosen = 0
        elif request.phase == WAITING:
            request.passed_prompt += 1
        else:
            request.passed_decode += 1
        r = request.above


# ------------------------------------------------------------------ routing


@part
def token_jsq(S: State, r: int, k: int) -> None:
    """Count a request's decode from its arrival on, where the least pending tokens are."""
    S.requests[r].to = k
    charge(S, k, 0, 1)


@part
def mixed_pool(S: State, r: int) -> int:
    """Rank that prefills; the one that decodes is noted as the request's ``to``.

    Pools of prompt machines, of token machines, and of those lent to do both. A pool
    refuses where its best machine has too much before it; then the mixed pool is asked;
    then a machine of the other pool is lent; at last the one with the least to do does both.
    """
    request = S.requests[r]
    prompt = _prompt_machine(S, r, PREFILL, 0)
    if prompt < 0:
        prompt = _prompt_machine(S, r, MIXED_ROLE, 1)
    token = _token_machine(S, r, DECODE, 0)
    if token < 0:
        token = _token_machine(S, r, MIXED_ROLE, 1)
    if prompt < 0:
        prompt = _least(S, DECODE, 0, False)
        if prompt >= 0:
            _lend(S, prompt)
    if token < 0:
        token = _least(S, PREFILL, 0, True)
        if token >= 0:
            _lend(S, token)
    if prompt < 0 or token < 0:
        prompt = _least_of_all(S)
        token = prompt
    S.instances[prompt].promised += request.length + 1
    S.instances[token].promised += request.output - 1
    if token != prompt:
        request.promised = request.length + 1
        S.instances[token].promised += request.promised
    request.to = S.instances[token].first
    charge(S, request.to, token != prompt, 1)
    rescore(S, prompt)
    return S.instances[prompt].first


@part
def _prompt_machine(S: State, r: int, home: int, lent: int) -> int:
    """The pool's machine with the least pending tokens, or -1: its queue is long."""
    i = _least(S, home, lent, False)
    if i < 0 or S.ranks[S.instances[i].first].listed == 0:
        return i
    tokens = S.instances[i].pending + S.requests[r].length
    return -1 if tokens > S.sim[0].prompt_limit else i


@part
def _token_machine(S: State, r: int, home: int, lent: int) -> int:
    """The pool's machine with the least KV promised, or -1: its memory is full."""
    i = _least(S, home, lent, True)
    if i >= 0:
        instance, request = S.instances[i], S.requests[r]
        tokens = instance.used + instance.promised + request.prompt + request.output
        if tokens > S.ranks[instance.first].capacity:
            return -1
    return i


@part
def _least(S: State, home: int, lent: int, by_memory: bool) -> int:
    """The machine of a pool with the least KV or pending tokens; the earliest of equals."""
    best, least, place = -1, np.inf, 0
    for i in range(S.instances.shape[0]):
        instance = S.instances[i]
        if instance.up and instance.role & home and instance.lent == lent:
            load = float(instance.pending)
            if by_memory:
                load = float(instance.used + instance.promised)
            if load < least or (load == least and instance.place < place):
                best, least, place = i, load, instance.place
    return best


@part
def _least_of_all(S: State) -> int:
    """The machine with the least pending tokens; prompt, mixed, token pool among equals."""
    best = _least(S, PREFILL, 0, False)
    for i in (_least(S, MIXED_ROLE, 1, False), _least(S, DECODE, 0, False)):
        if i >= 0 and (best < 0 or S.instances[i].pending < S.instances[best].pending):
            best = i
    return best


@part
def _lend(S: State, i: int) -> None:
    S.sim[0].places += 1
    S.instances[i].lent, S.instances[i].place = 1, S.sim[0].places


@part
def _go_home(S: State, i: int) -> None:
    """A lent machine that has nothing left goes back to the end of its own pool."""
    if S.instances[i].lent:
        S.sim[0].places += 1
        S.instances[i].lent, S.instances[i].place = 0, S.sim[0].places
