"""What a cut says, in one sentence, and what it holds for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from chipsim.present.axes import AXES
from chipsim.present.provenance import IDEAL, phase_text, plan_text, precision_text
from chipsim.present.quantities import digits, percent, seconds

if TYPE_CHECKING:
    from chipsim.explore.compare import Comparison
    from chipsim.explore.cuts import CutPoint, CutsResult

TOLD = 0.55
"""A sentence tells of the point nearest to this fraction: about half is what one asks."""


def headline(run: CutsResult) -> str:
    """The conclusion, e.g. ``Prefill is 1.13× slower at 2000 GB/s (60 %)``."""
    kind = run.phase.kind.capitalize()
    point = told_point(run)
    if point is None:
        return f"{kind} of {run.model.name} runs at no point of this cut"
    told = min(run.points, key=_from_half)
    if told.estimate is None:
        return f"{kind} cannot run at {_place(told)}"
    place = _place(point)
    if run.setup.batch == "max":
        kept = f"{percent(point.relative_throughput, 2)} of its tokens/s"
        return f"{kind} keeps {kept} at {place}, batch {point.answer.batch}"
    slowdown = point.slowdown or 1.0
    if abs(slowdown - 1.0) < 0.005:
        return f"{kind} is as fast at {place}"
    if slowdown < 1.0:
        return f"{kind} is {digits(1.0 / slowdown)}× faster at {place}"
    return f"{kind} is {digits(slowdown)}× slower at {place}"


def told_point(run: CutsResult) -> CutPoint | None:
    """The point that the sentence tells of, none where nothing runs."""
    running = [point for point in run.points if point.estimate is not None]
    if not running:
        return None
    return min(running, key=_from_half)


def _place(point: CutPoint) -> str:
    places = [
        f"{AXES[step.resource].text(step.value)} ({percent(step.fraction, 2)})"
        for step in point.steps
    ]
    return " and ".join([*places, *held_text(point.setup.held)])


def held_text(held: Mapping[str, float]) -> list[str]:
    """What every point of a cut keeps of other resources.

    >>> held_text({"l2": 0.5})
    ['50 % of the L2 capacity']
    """
    kept = {name: part for name, part in held.items() if part != 1.0}
    return [f"{percent(part, 2)} of the {AXES[name].inside}" for name, part in kept.items()]


def _from_half(point: CutPoint) -> float:
    return max(abs(step.fraction - TOLD) for step in point.steps)


def subtitle(run: CutsResult, *others: CutsResult) -> str:
    """Chip, model, phase, plan, block and version that a figure holds for.

    The sentence above it tells of ``run``; ``others`` are the same cut under other blocks.
    """
    from chipsim import __version__

    setup = run.setup
    phase = phase_text(run.phase)
    if setup.batch == "max":
        limit = "" if setup.itl_s is None else f" within an ITL of {seconds(setup.itl_s)}"
        length = f"context {run.phase.context}"
        phase = f"{run.phase.kind}, largest batch{limit}, {length}"
    block = IDEAL if run.execution.name == "ideal" else f"block {run.execution.name}"
    beside = [other.execution.name for other in others]
    parts = [
        f"{run.model.name} on {run.chip.name}",
        phase,
        plan_text(run.plan),
        precision_text(setup.precision),
        *(["layers only"] if setup.layers_only else []),
        f"{block}, beside {', '.join(beside)}" if beside else block,
        f"chipsim {__version__}",
    ]
    return " · ".join(parts)


def compare_headline(comparison: Comparison) -> str:
    """The conclusion, and the operator that makes most of it."""
    a, b = comparison.name_a, comparison.name_b
    ratio = comparison.total_b_s / comparison.total_a_s if comparison.total_a_s else 1.0
    if abs(ratio - 1.0) < 0.005:
        return f"{b} takes as long as {a}"
    told = f"{digits(ratio)}× as long as" if ratio > 1 else f"{percent(ratio)} of the time of"
    most = max(comparison.rows, key=lambda row: abs(row.difference_s))
    return f"{b} takes {told} {a}; {most.name} differs most"
