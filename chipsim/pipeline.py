"""Pipeline stages side by side: how long a step takes, and how long stages wait.

A rank's sequences are cut into ``m`` parts, at most one per stage. One part needs ``T`` for
its way through all stages and the slowest stage ``s`` for its piece of it:

    prefill:  T + (m - 1) s           the last part ends behind the others
    decode:   max(T, m s)             every part comes round again once per token
    bubble:   1 - m T / (pp latency)  share of the stages' time without work
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from chipsim.ops.parallelism import stages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chipsim.estimates import OperatorRow
    from chipsim.ops.model import ModelSpec
    from chipsim.ops.phase import Phase
    from chipsim.ops.plan import Parallelism

FIRST, LAST, BETWEEN = ("embedding", "norm_embedding"), ("norm_final", "lm_head"), "send_stage"
"""Operators of the first stage, of the last, and of all but the last."""


class Pipeline(NamedTuple):
    """A step through the stages of a plan.

    Attributes
    ----------
    parts : int
        Parts that a rank's sequences are cut into.
    stage_s : float
        Seconds of one part in the slowest stage.
    latency_s : float
        Seconds of the step.
    bubble : float
        Share of the stages' time without work, 0 ... 1.
    """

    parts: int
    stage_s: float
    latency_s: float
    bubble: float


def pipeline(
    model: ModelSpec, plan: Parallelism, phase: Phase, rows: Sequence[OperatorRow]
) -> Pipeline:
    """The step that the operators of one part, over all stages, make.

    Without stages it is their sum.
    """
    through = sum(row.latency_s for row in rows)
    if plan.pp == 1:
        return Pipeline(1, through, through, 0.0)
    parts = max(plan.microbatches(segment.batch) for segment in phase.segments)
    slowest = max(stage_seconds(model, plan, rows))
    latency = through + (parts - 1) * slowest
    if phase.kind == "decode":
        latency = max(through, parts * slowest)
    idle = 1.0 - parts * through / (plan.pp * latency) if latency > 0.0 else 0.0
    return Pipeline(parts, slowest, latency, max(0.0, idle))


def stage_seconds(
    model: ModelSpec, plan: Parallelism, rows: Sequence[OperatorRow]
) -> list[float]:
    """Seconds of one part in each stage."""
    kinds = {group.layer.name: group.count for group in model.groups}
    only = next(iter(kinds)) if len(kinds) == 1 else ""
    layers: dict[str, float] = dict.fromkeys(kinds, 0.0)
    ends = {"first": 0.0, "last": 0.0, "between": 0.0}
    for row in rows:
        if row.name in FIRST:
            ends["first"] += row.latency_s
        elif row.name in LAST:
            ends["last"] += row.latency_s
        elif row.name == BETWEEN:
            ends["between"] += row.estimate.latency_s
        else:
            kind = only or row.name.partition(".")[0]
            layers[kind] += row.latency_s / kinds[kind]
    seconds = [
        sum(count * layers[kind] for kind, count in held) for held in _kinds(model, plan.pp)
    ]
    seconds[0] += ends["first"]
    seconds[-1] += ends["last"]
    return [each + ends["between"] for each in seconds[:-1]] + seconds[-1:]


@functools.lru_cache(maxsize=1024)
def _kinds(model: ModelSpec, pp: int) -> list[list[tuple[str, int]]]:
    """Kinds of layers of each stage, and how many of each it has."""
    return [list(Counter(layer.name for layer in held).items()) for held in stages(model, pp)]
