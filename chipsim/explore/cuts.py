"""Cuts: how much slower a phase is when a chip loses a resource.

chip + model + phase -> uncut estimate -> one estimate per cut -> slowdowns
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from chipsim.cost.prices import book_of
from chipsim.errors import ConfigError, InfeasibleError
from chipsim.explore.resources import (
    MOST_POINTS,
    Cut,
    Step,
    parse_fractions,
    parse_values,
)
from chipsim.explore.setup import Answer, Batch, Setup, resolve

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.chip import Chip
    from chipsim.cost.prices import PriceBook
    from chipsim.estimates import OperatorRow, PhaseEstimate
    from chipsim.execution import Execution
    from chipsim.explore.money import Money
    from chipsim.ops.model import ModelSpec
    from chipsim.ops.parallelism import Parallelism
    from chipsim.ops.phase import Phase
    from chipsim.ops.precision import Precision

__all__ = ["Cut", "CutPoint", "CutsResult", "cuts", "parse_fractions", "parse_values"]

NUMBERS = (
    "latency_s",
    "slowdown",
    "cost_usd",
    "tdp_w",
    "energy_j",
    "tokens_per_s_per_usd",
    "energy_j_per_token",
)
"""Columns that may lack a value."""

Resources = Mapping[str, Sequence[float | str] | str] | Iterable[Cut]


@dataclass(frozen=True)
class CutPoint:
    """The phase on one cut chip.

    Attributes
    ----------
    setup : Setup
        What all points share.
    steps : tuple of Step
        What is left of each resource.
    answer : Answer
        Estimate, batch, and whether the chip can run it.
    baseline : Answer
        That of the uncut chip.
    """

    setup: Setup
    steps: tuple[Step, ...]
    answer: Answer
    baseline: Answer

    @property
    def chip(self) -> Chip:
        """The cut chip."""
        return self.setup.cut(_asked(self.steps))

    @cached_property
    def money(self) -> Money:
        """Cost, TDP and energy of one chip, computed when first asked."""
        return self.setup.money(self.chip, self.estimate)

    @property
    def estimate(self) -> PhaseEstimate | None:
        """Estimate on the cut chip; None where it cannot run the phase."""
        return self.answer.estimate

    @property
    def latency_s(self) -> float | None:
        """Seconds of the phase."""
        return self.answer.latency_s

    @property
    def slowdown(self) -> float | None:
        """Latency over that of the uncut chip (with its own largest batch, if asked)."""
        return _ratio(self.answer.latency_s, self.baseline.latency_s)

    @property
    def relative_throughput(self) -> float:
        """Tokens/s over those of the uncut chip."""
        return _ratio(self.answer.tokens_per_s, self.baseline.tokens_per_s) or 0.0

    def place(self) -> dict[str, Any]:
        """``resource, value, fraction`` and, in a grid, ``resource_2, …``."""
        return {
            f"{name}{suffix}": value
            for step, suffix in zip(self.steps, ("", "_2"), strict=False)
            for name, value in (
                ("resource", step.resource),
                ("value", step.value),
                ("fraction", step.fraction),
            )
        }

    def record(self) -> dict[str, Any]:
        """The point as one flat row, the columns of `CutsResult.frame`."""
        answer = self.answer
        return self.place() | {
            "latency_s": answer.latency_s,
            "slowdown": self.slowdown,
            "fits": answer.fits,
            "shortfall_bytes": answer.shortfall_bytes,
            "batch": answer.batch,
            "tokens_per_s": answer.tokens_per_s,
            "relative_throughput": self.relative_throughput,
            "bound": answer.estimate.bound if answer.estimate else "",
            "limit": answer.limit,
            "reason": answer.reason,
            **self.money.record(),
        }

    def operators(self) -> list[dict[str, Any]]:
        """What `CutsResult.operators_frame` has of each operator."""
        if self.estimate is None or self.baseline.estimate is None:
            return []
        uncut = {row.name: row.latency_s for row in self.baseline.estimate.rows}
        total = self.estimate.latency_s
        return [_operator(row, uncut[row.name], total) for row in self.estimate.rows]


@dataclass(frozen=True, slots=True)
class CutsResult:
    """A curve (one resource) or a grid (two).

    Attributes
    ----------
    setup : Setup
        Everything that was asked, resolved.
    resources : tuple of str
        The resources that were cut.
    uncut : Answer
        The uncut chip.
    points : tuple of CutPoint
        In the order asked; the second resource of a grid runs fastest.
    """

    setup: Setup
    resources: tuple[str, ...]
    uncut: Answer
    points: tuple[CutPoint, ...]

    @property
    def baseline(self) -> PhaseEstimate:
        """Estimate on the uncut chip."""
        if self.uncut.estimate is None:  # `cuts` refuses such a chip
            raise InfeasibleError(self.uncut.reason)
        return self.uncut.estimate

    @property
    def chip(self) -> Chip:
        """The uncut chip."""
        return self.setup.chip

    @property
    def money(self) -> Money:
        """Cost, TDP and energy of the uncut chip."""
        return self.setup.money(self.setup.chip, self.uncut.estimate)

    @property
    def execution(self) -> Execution:
        """The execution block of all points."""
        return self.setup.execution

    @property
    def model(self) -> ModelSpec:
        """The model."""
        return self.setup.model

    @property
    def phase(self) -> Phase:
        """The phase as asked; with the largest batch, each point has its own."""
        return self.setup.phase

    @property
    def plan(self) -> Parallelism:
        """The parallelism plan."""
        return self.setup.plan

    def frame(self) -> pd.DataFrame:
        """One row per point.

        Returns
        -------
        pandas.DataFrame
            ``resource, value`` (SI), ``fraction`` (reached; of the uncut chip), the same
            with ``_2`` in a grid, ``latency_s, slowdown`` (NaN where the chip cannot run
            the phase), ``fits, shortfall_bytes`` (per chip), ``batch, tokens_per_s`` (of
            the chips of a plan together), ``relative_throughput, bound, limit`` (of a
            largest batch), ``reason`` (why there is no latency), ``cost_usd, tdp_w`` and
            ``energy_j`` (of the phase) of one chip (NaN where they are not known),
            ``tokens_per_s_per_usd, energy_j_per_token`` (of all chips of the plan),
            ``counterfactual`` (why such a memory cannot be bought) and ``unpriced`` (why
            there is no cost or no TDP).
        """
        import pandas as pd

        table = pd.DataFrame([point.record() for point in self.points])
        return table.astype(dict.fromkeys(NUMBERS, float))

    def records(self) -> list[dict[str, Any]]:
        """One dict per point: the columns of `frame`, and ``operators``."""
        return [point.record() | {"operators": point.operators()} for point in self.points]

    def operators_frame(self) -> pd.DataFrame:
        """One row per point and operator.

        Returns
        -------
        pandas.DataFrame
            Place of the point as in `frame`, then ``name, group, count, latency_s`` (all
            runs), ``slowdown`` (of this operator), ``bound, share`` (of the phase),
            ``flops, memory_bytes`` (all runs on one chip).
        """
        import pandas as pd

        return pd.DataFrame(
            [point.place() | row for point in self.points for row in point.operators()]
        )

    def configuration(self) -> dict[str, Any]:
        """What was asked as plain JSON values, with the cuts of each row."""
        points = [{step.resource: step.asked for step in p.steps} for p in self.points]
        return {"kind": "cuts", **self.setup.configuration(), "points": points}


def cuts(
    chip: Chip | str,
    model: ModelSpec | str,
    phase: Phase,
    resources: Resources,
    *,
    plan: Parallelism | str | None = None,
    execution: Execution | str | None = None,
    precision: Precision | str | None = None,
    layers_only: bool = False,
    batch: Batch = "fixed",
    itl_s: float | None = None,
    memory_share: float = 0.9,
    check_memory: bool = True,
    prices: PriceBook | str = "spad-2025",
    held: Mapping[str, float] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CutsResult:
    """Estimate a phase on a chip with one or two resources cut.

    Parameters
    ----------
    resources : mapping or sequence of Cut
        Resource -> fractions of the uncut chip (numbers) or values with units (text).
        One resource gives a curve, two the grid of both.
    batch : str
        ``"fixed"``, or ``"max"``: at each point the largest batch that the memory and
        ``itl_s`` allow. A fixed batch hides what capacity is worth.
    itl_s : float, optional
        Longest decode step (inter-token latency), seconds.
    memory_share : float
        Part of the memory that weights and KV of a largest batch may take.
    check_memory : bool
        With a fixed batch: a point whose memory is too small has no latency.
    prices : PriceBook or str
        What the chips of the points cost; a chip that it does not price has no cost.
    held : mapping of str to float, optional
        Other resources that every point loses: ``{"cores": 0.5}``. Slowdowns are still over
        the uncut chip.
    progress : callable, optional
        Called with the points done and all points.

    Returns
    -------
    CutsResult
        A point that cannot run the phase is a result (``fits`` or ``reason`` says why).

    Raises
    ------
    InfeasibleError
        The uncut chip cannot run the phase.
    ConfigError, UnknownNameError
        Bad input.

    Examples
    --------
    >>> from chipsim import Phase, cuts
    >>> curve = cuts("spad-h100", "bloom-176b", Phase.prefill(2, 1024),
    ...              {"memory_bandwidth": [1, 0.5]}, plan="tp=8", execution="ideal")
    >>> [round(point.slowdown, 1) for point in curve.points]
    [1.0, 1.1]
    """
    setup = resolve(
        chip,
        model,
        phase,
        plan=plan,
        execution=execution,
        precision=precision,
        layers_only=layers_only,
        batch=batch,
        itl_s=itl_s,
        memory_share=memory_share,
        check_memory=check_memory,
        prices=book_of(prices),
        held=dict(held or {}),
    )
    axes = _axes(setup, resources)
    return run(setup, list(itertools.product(*axes)), progress)


def run(
    setup: Setup,
    grid: Sequence[tuple[Step, ...]],
    progress: Callable[[int, int], None] | None = None,
) -> CutsResult:
    """Answer for the uncut chip and for every point of a grid."""
    uncut = setup.answer(setup.chip)
    if uncut.estimate is None:
        raise InfeasibleError(_refused(setup, uncut))
    points = []
    for steps in grid:
        cut = setup.cut(_asked(steps))
        points.append(CutPoint(setup, steps, setup.answer(cut), uncut))
        if progress is not None:
            progress(len(points), len(grid))
    return CutsResult(setup, tuple(s.resource for s in grid[0]), uncut, tuple(points))


def cut_point(setup: Setup, fractions: Mapping[str, float]) -> CutPoint:
    """One point alone; resource -> fraction, as `CutsResult.configuration` lists them.

    Raises
    ------
    InfeasibleError, ConfigError, UnknownNameError
        As `cuts`.
    """
    return cuts_of(setup, [fractions]).points[0]


def cuts_of(setup: Setup, points: Sequence[Mapping[str, float]]) -> CutsResult:
    """All points again, each as `CutsResult.configuration` lists it (`cuts`' errors)."""
    if not points:
        raise ConfigError("cuts", "points", "0 points", "at least one")
    grid = [
        tuple(Cut(name, fractions=[part]).steps(setup.chip)[0] for name, part in point.items())
        for point in points
    ]
    return run(setup, grid)


def _refused(setup: Setup, uncut: Answer) -> str:
    if not uncut.shortfall_bytes and not uncut.limit:
        return uncut.reason
    return f"{setup.model.name} at tp={setup.plan.tp} on {setup.chip.name}: {uncut.reason}"


def _asked(steps: Sequence[Step]) -> dict[str, float]:
    """What steps leave of the chip, as `Chip.scaled` takes it."""
    return {step.resource: step.asked for step in steps}


def _axes(setup: Setup, resources: Resources) -> list[list[Step]]:
    asked, chip = _as_cuts(resources), setup.chip
    names = [cut.resource for cut in asked]
    for name, part in setup.held.items():
        Cut(name, fractions=[part]).steps(chip)  # such a resource and such a part
        if name in names:
            raise ConfigError("cuts", "held", name, "a resource that is not swept too")
    if not 1 <= len(names) <= 2 or len(set(names)) < len(names):
        raise ConfigError(
            "cuts", "resource", ", ".join(names), "one resource, or two different"
        )
    axes = [cut.steps(chip) for cut in asked]
    size = len(axes[0]) * len(axes[-1]) if len(axes) > 1 else len(axes[0])
    if size > MOST_POINTS:
        raise ConfigError("cuts", "resource", f"{size} points", f"at most {MOST_POINTS}")
    return axes


def _as_cuts(resources: Resources) -> list[Cut]:
    if not isinstance(resources, Mapping):
        return list(resources)
    return [
        Cut(name, values=given)
        if isinstance(given, str) or any(isinstance(item, str) for item in given)
        else Cut(name, fractions=given)  # type: ignore[arg-type]  # no text among them
        for name, given in resources.items()
    ]


def _operator(row: OperatorRow, uncut_s: float, total_s: float) -> dict[str, Any]:
    return {
        "name": row.name,
        "group": row.group,
        "count": row.count,
        "latency_s": row.latency_s,
        "slowdown": _ratio(row.latency_s, uncut_s),
        "bound": row.estimate.bound,
        "share": _ratio(row.latency_s, total_s),
        "flops": row.count * row.estimate.flops,
        "memory_bytes": row.count * row.estimate.memory_bytes,
    }


def _ratio(value: float | None, base: float | None) -> float | None:
    """None where there is nothing to divide; two times of 0 are equal."""
    if value is None or base is None:
        return None
    if base == 0.0:
        return 1.0 if value == 0.0 else None
    return value / base
