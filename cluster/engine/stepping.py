"""A step of an instance: how long it takes, and what its end brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.engine.ahead import cut_short, decoding_seconds, pass_steps, plan_ahead
from chipsim.cluster.engine.codes import CLOCK, DECODE_STEP, IDLE, MIXED_STEP, PREFILL_STEP
from chipsim.cluster.engine.kv import keep
from chipsim.cluster.engine.requests import end_decode, end_prefill
from chipsim.cluster.engine.running import next_finished
from chipsim.cluster.engine.steps import mixed_seconds, prefill_seconds
from chipsim.cluster.engine.tokens import tick
from chipsim.cluster.engine.touch import charge, set_clock, touch
from chipsim.cluster.engine.transfer import send_chunk
from chipsim.kernels.jit import hot_part, part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State
    from chipsim.cluster.engine.steps import Steps


@hot_part
def start_step(S: State, i: int, kind: int) -> None:
    """Start the step that was planned: it lasts as long as the slowest rank's."""
    instance, now = S.instances[i], S.sim[0].now_s
    seconds, iterations = 0.0, 1
    for k in range(instance.first, instance.first + instance.ranks):
        rank = S.ranks[k]
        if rank.tokens > 0 or rank.decodes > 0:
            seconds = max(seconds, rank_seconds(S, S.steps, k) + rank.added_s)
            rank.added_s = 0.0
            iterations = rank.iterations
    if S.sim[0].energy:
        for k in range(instance.first, instance.first + instance.ranks):
            instance.joules += rank_seconds(S, S.joules, k) * iterations
    instance.step, instance.start_s, instance.iteration_s = kind, now, seconds
    end = now + seconds * iterations
    if kind == DECODE_STEP and S.sim[0].ahead > 0 and end > now:
        end = plan_ahead(S, i, end)
    set_clock(S, i, end)
    if S.sim[0].log_steps:
        instance.waiting, instance.blocks = 0, instance.used
        for k in range(instance.first, instance.first + instance.ranks):
            instance.waiting += S.ranks[k].waiting


@hot_part
def rank_seconds(S: State, steps: Steps, k: int) -> float:
    """What a table says of a rank's step; 0 if it does nothing."""
    rank, table = S.ranks[k], S.pools[S.ranks[k].pool].table
    n, tokens = rank.decodes, rank.tokens
    if tokens == 0:
        return decoding_seconds(S, steps, k, 0)
    context, bounded = float(rank.context), float(rank.bounded)
    squares, earlier, ending = rank.squares, rank.earlier, rank.ending
    if n == 0:
        return prefill_seconds(steps, table, tokens, squares, earlier, ending)
    return mixed_seconds(
        steps, table, tokens, squares, earlier, ending, n, context, bounded
    )  # fmt: skip


@part
def end_step(S: State, i: int) -> None:
    """Account for a step that ends now, and let every rank's requests go on."""
    instance, now = S.instances[i], S.sim[0].now_s
    set_clock(S, i, np.inf)
    if instance.planned > 0:
        pass_steps(S, i, np.inf)
        instance.planned = 0
    if S.sim[0].log_steps:
        log_step(S, i)
    busy = now - instance.start_s
    if instance.step == PREFILL_STEP:
        instance.prefill_s += busy
    elif instance.step == DECODE_STEP:
        instance.decode_s += busy
    elif instance.step == MIXED_STEP:
        instance.mixed_s += busy
    instance.steps += 1
    for k in range(instance.first, instance.first + instance.ranks):
        if S.ranks[k].decodes > 0:
            end_decodes(S, k)
        if S.ranks[k].tokens > 0:
            end_prompts(S, k)
    instance.step, instance.ended_s = IDLE, now
    touch(S, i)


@part
def interrupt(S: State, i: int, late: bool) -> None:
    """Where steps are planned, go on with the one that runs alone; it may end now."""
    cut_short(S, i, late)
    if S.values[CLOCK, i] == S.sim[0].now_s:
        S.sim[0].events += 1
        end_step(S, i)


@hot_part
def end_decodes(S: State, k: int) -> None:
    """Every decode of a rank has one more token; some have their last."""
    rank = S.ranks[k]
    instance = S.instances[rank.instance]
    instance.decode_tokens += rank.decodes * rank.iterations
    for done in range(1, rank.iterations):
        tick(S, k, instance.start_s + instance.iteration_s * done)
    tick(S, k, S.sim[0].now_s)
    r = next_finished(S, k)
    while r >= 0:
        end_decode(S, k, r)
        r = next_finished(S, k)


@part
def end_prompts(S: State, k: int) -> None:
    """Prompts that a step computed are done, or go on in the next."""
    rank, r = S.ranks[k], S.ranks[k].first
    S.instances[rank.instance].prompt_tokens += rank.tokens
    rank.first = -1
    while r >= 0:
        request = S.requests[r]
        after = request.chain
        request.done += request.chunk
        charge(S, k, 0, -request.chunk)
        keep(S, k, r, request.done)
        if request.done == request.length:
            end_prefill(S, k, r)
        else:
            rank.first = r
            send_chunk(S, k, r)
        r = after


@part
def log_step(S: State, i: int) -> None:
    """A row of the log of steps: written as a step ends, telling how it started."""
    instance = S.instances[i]
    row = S.log[S.sim[0].steps]
    S.sim[0].steps += 1
    row.start_s, row.end_s = instance.start_s, S.sim[0].now_s
    row.instance, row.kind = i, instance.step
    row.prompt_tokens, row.prompts, row.decodes = 0, 0, 0
    row.waiting, row.kv_blocks = instance.waiting, instance.blocks
    for k in range(instance.first, instance.first + instance.ranks):
        rank = S.ranks[k]
        row.prompt_tokens += rank.tokens
        row.decodes += rank.decodes
        r = rank.first
        while r >= 0:
            row.prompts += 1
            r = S.requests[r].chain
