"""Decode steps that follow from each other, planned at once and gone through when it matters.

From a step that nobody waits behind to the first decode that ends, an instance decodes the
same sequences, step after step. When these steps end is written down as the first begins,
and the clock is set to the end of the last. If something touches the instance before, the
steps that are over go into the books, the one that runs goes on alone, and the rest is void.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.engine.codes import RESERVE_FINAL, SPLITWISE
from chipsim.cluster.engine.steps import decode_seconds
from chipsim.cluster.engine.tokens import tick
from chipsim.cluster.engine.touch import set_clock
from chipsim.kernels.jit import hot_part, part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State
    from chipsim.cluster.engine.steps import Steps


@part
def plan_ahead(S: State, i: int, end_s: float) -> float:
    """Plan the decode steps after the one that starts and ends at a time; when the last ends.

    Two that end at one instant are not planned together.
    """
    instance = S.instances[i]
    S.ends[i, 0], instance.passed, instance.planned = end_s, 0, 0
    for later in range(1, _steps_alike(S, i)):
        seconds = 0.0
        for k in range(instance.first, instance.first + instance.ranks):
            seconds = max(seconds, decoding_seconds(S, S.steps, k, later))
        if end_s + seconds == end_s:
            break
        end_s += seconds
        S.ends[i, later], instance.planned = end_s, later
    return end_s


@part
def _steps_alike(S: State, i: int) -> int:
    """Decode steps of an instance until one of its sequences ends or meets the limit."""
    instance, count = S.instances[i], S.sim[0].ahead
    pool = S.pools[instance.pool]
    if pool.reserve != RESERVE_FINAL or pool.batching == SPLITWISE:
        return 0
    for k in range(instance.first, instance.first + instance.ranks):
        rank = S.ranks[k]
        if rank.queue >= 0 or rank.ready >= 0 or rank.loaded >= 0 or rank.first >= 0:
            return 0
        if rank.decodes > 0:
            count = min(count, (S.finish[k, 0] >> 32) - rank.steps)
        if rank.saturations > 0:
            count = min(count, (S.saturate[k, 0] >> 32) - rank.steps)
    return count


@hot_part
def decoding_seconds(S: State, steps: Steps, k: int, later: int) -> float:
    """What a table says of a rank's decodes so many steps later; 0 if it has none."""
    rank = S.ranks[k]
    if rank.decodes == 0:
        return 0.0
    context, bounded = rank.context + later * rank.decodes, rank.bounded + later * rank.growing
    table = S.pools[rank.pool].table
    return decode_seconds(steps, table, rank.decodes, float(context), float(bounded))


@part
def pass_steps(S: State, i: int, until_s: float) -> None:
    """Account for the planned steps, but for the last, that end before a time."""
    instance, sim = S.instances[i], S.sim[0]
    while instance.passed < instance.planned and S.ends[i, instance.passed] < until_s:
        end = S.ends[i, instance.passed]
        instance.decode_s += end - instance.start_s
        for k in range(instance.first, instance.first + instance.ranks):
            if S.ranks[k].decodes > 0:
                instance.decode_tokens += S.ranks[k].decodes
                tick(S, k, end)
            if sim.energy:
                instance.joules += decoding_seconds(S, S.joules, k, 0)
        instance.start_s = end
        instance.passed += 1
        instance.steps += 1
        sim.events += 1


@part
def cut_short(S: State, i: int, late: bool) -> None:
    """Let the step that runs be the last one planned.

    Of two steps with an end and a start now it is the first, which then ends now, or, if it
    is late, the second.
    """
    instance, now = S.instances[i], S.sim[0].now_s
    pass_steps(S, i, np.nextafter(now, np.inf) if late else now)
    set_clock(S, i, S.ends[i, instance.passed])
    instance.planned = 0


@part
def cut_all(S: State) -> None:
    """Let the next end of every step be seen; those with a start now have begun."""
    for i in range(S.instances.shape[0]):
        if S.instances[i].planned > 0:
            cut_short(S, i, True)


@part
def catch_up(S: State, until_s: float) -> None:
    """Account for all steps that end up to a time."""
    for i in range(S.instances.shape[0]):
        if S.instances[i].planned > 0:
            pass_steps(S, i, np.nextafter(until_s, np.inf))
            S.sim[0].now_s = max(S.sim[0].now_s, S.instances[i].start_s)
