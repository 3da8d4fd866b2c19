"""Splitwise's simulator: its batching and its two-pool routing, rule by rule.

A machine has one list of waiting tasks, a prompt and its decode apart. At every boundary
the batch is chosen anew: tasks passed over too often, prompts, preempted decodes, decodes
of the last batch, new decodes, within a budget of tokens and of requests. Decodes alone run
as one event of as many iterations as the shortest has left, cut when something arrives.
Source: Patel et al., Splitwise (ISCA 2024), the rules of its public simulator.

Where these rules are wrong about hardware they are so on purpose: this policy exists to
agree with that simulator request by request.

Arrivals and batches are here; what a batch takes in is chosen in `splitwise_choice`, from
lists in `splitwise_lists`, and requests are sent to machines by `splitwise_routing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.cluster.engine.codes import (
    DECODE_STEP,
    DECODING,
    IDLE,
    MIXED_STEP,
    PREFILL_STEP,
    PREFILLING,
    READY,
    SWAPPED,
    WAITING,
)
from chipsim.cluster.engine.kv import take
from chipsim.cluster.engine.running import interrupt_decode, join_decodes, plan_chunk
from chipsim.cluster.engine.splitwise_choice import choose
from chipsim.cluster.engine.splitwise_lists import (
    list_by_arrival,
    list_task,
    unlink,
    unlist_task,
)
from chipsim.cluster.engine.splitwise_routing import go_home
from chipsim.cluster.engine.touch import set_clock, touch
from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State


@part
def arrive_prompt(S: State, k: int, r: int) -> None:
    """A prompt comes to a machine, with its decode behind it if that stays there."""
    rank, request = S.ranks[k], S.requests[r]
    request.passed_prompt, request.passed_decode = 0, 0
    list_by_arrival(S, k, r)
    list_task(S, k, 2 * r)
    rank.waiting += 1
    request.next, request.prev = -1, rank.last_prompt
    if rank.last_prompt < 0:
        rank.prompts = r
    else:
        S.requests[rank.last_prompt].next = r
    rank.last_prompt = r
    _knock(S, k, request.length, True)
    if request.to == k and request.output > 1:
        list_task(S, k, 2 * r + 1)
        _knock(S, k, 1, False)


@part
def arrive_decode(S: State, k: int, r: int) -> None:
    """A decode comes to a machine, its KV before it."""
    S.requests[r].phase, S.requests[r].passed_decode = READY, 0
    list_by_arrival(S, k, r)
    list_task(S, k, 2 * r + 1)
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


@part
def splitwise(S: State, i: int) -> int:
    """Choose the batch anew, and how many iterations it runs."""
    k = S.instances[i].first
    rank = S.ranks[k]
    _drop_finished(S, k)
    count = choose(S, k)
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
        go_home(S, i)
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
        list_task(S, k, 2 * r + 1)
    rank.batched = kept


@part
def _start_chosen(S: State, k: int, count: int) -> None:
    """Let what is new in the batch run."""
    for at in range(count):
        task = S.chosen[at]
        if S.requests[task >> 1].phase != DECODING:
            unlist_task(S, k, task)
            if task & 1:
                _start_decode(S, k, task >> 1)
            else:
                _start_prompt(S, k, task >> 1)


@part
def _start_prompt(S: State, k: int, r: int) -> None:
    rank, request = S.ranks[k], S.requests[r]
    rank.prompts, rank.last_prompt = unlink(S, rank.prompts, rank.last_prompt, r)
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
        rank.blocked, rank.last_blocked = unlink(S, rank.blocked, rank.last_blocked, r)
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
