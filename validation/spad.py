"""SPAD's argument in figures: its two curves, its chips, and what LLMCompass says of both."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from chipsim.chip import Chip
from chipsim.memory import memory_plan
from chipsim.ops.graph import Phase
from chipsim.ops.model import ModelSpec
from chipsim.ops.parallelism import Parallelism
from chipsim.ops.precision import Precision
from chipsim.performance import PerformanceModel
from chipsim.phases import PhaseModel
from chipsim.validation.cases import Point, point
from chipsim.validation.references import reference_table

if TYPE_CHECKING:
    from chipsim.execution import Execution
    from chipsim.validation.table import Row

MODEL, BASE, PLAN = "bloom-176b", "spad-h100", "tp=8"
"""Model, reference chip and plan of every figure of the paper that is used here."""

BLOCKS = ("llmcompass-tables", "spad-figures")
"""Execution blocks that the paper's figures are set beside."""

SWEPT_FOR = {"spad-h100": "llmcompass-h100"}
"""Chips that the public LLMCompass does not know, and the one whose sweep stands for them."""


class CurvePoint(NamedTuple):
    """One point of a published curve.

    Attributes
    ----------
    mark : str
        ``text`` as printed, ``fig`` read off a picture (3 %), ``table`` from two rows of
        the author's tables, ``derived`` from them under an assumption.
    """

    series: str
    phase: Phase
    resource: str
    value: float  # SI
    slowdown: float
    latency_s: float  # 0: not published
    mark: str
    source: str


class ReferencePoint(NamedTuple):
    """A reference to draw beside a curve of cuts."""

    label: str
    value: float  # of the resource, SI
    fraction: float  # of the resource of the chip that the reference is about
    slowdown: float
    source: str


class ChipPerformance(NamedTuple):
    """Mean performance of a chip over the paper's grid: latency of the H100 over its own."""

    chip: str
    phase: str
    mean: float
    points: int


def paper_curves() -> tuple[CurvePoint, ...]:
    """Figures 2 and 3 of the paper, and the same from its author's tables."""
    return tuple(
        CurvePoint(
            row.text("series"),
            _phase(row.text("phase"), row.whole("batch"), row.whole("context")),
            row.text("resource"),
            row.positive("value"),
            row.positive("slowdown"),
            row.positive("latency_s") if row.has("latency_s") else 0.0,
            row.text("mark"),
            row.text("source"),
        )
        for row in reference_table("spad_curves").rows
    )


def curve_points(execution: str | None = None) -> Iterator[Point]:
    """The published curves beside ours, under one block or under each of `BLOCKS`."""
    for block in BLOCKS if execution is None else (execution,):
        base = _base(block)
        for ref in paper_curves():
            cut = _phases(_cut(ref.resource, ref.value), block)
            latency = base.estimate(ref.phase).latency_s
            ratio = cut.estimate(ref.phase).latency_s / latency
            shape = f"{ref.resource} {ref.value:g}"
            kind, suite = ref.phase.kind, f"{ref.series}-curves"
            if ref.latency_s:
                yield point(
                    suite, BASE, f"{kind} latency", "fp16", block, "uncut",
                    ref.latency_s, latency, execution=block, source=ref.source,
                )  # fmt: skip
            elif ref.slowdown != 1.0:
                yield point(
                    suite, BASE, f"{kind} slowdown", "fp16", block, shape,
                    ref.slowdown, ratio, unit="1", execution=block, source=ref.source,
                )  # fmt: skip


def slowdown(ref: CurvePoint, execution: Execution | str | None = None) -> float:
    """Our slowdown of the modeled H100 at the cut of a published point."""
    base = _base(execution)
    cut = _phases(_cut(ref.resource, ref.value), execution)
    return cut.estimate(ref.phase).latency_s / base.estimate(ref.phase).latency_s


CHIPS = ("spad-prefill", "spad-decode")


def chip_performance(
    execution: str | None = None, chips: Sequence[str] = CHIPS
) -> list[ChipPerformance]:
    """Mean performance of SPAD's chips relative to the modeled H100, by phase.

    Parameters
    ----------
    execution : str, optional
        Block of all chips; their own unless given.
    chips : sequence of str
        Others to judge on the same grid.

    Notes
    -----
    The paper's grid: batch and sequence in powers of two, batch 1 ... 256 in prefill and
    ... 128 in decode, sequence 64 ... 16384; only points whose weights and KV fit 90 % of
    the smaller memory of the two chips. The mean is arithmetic.
    """
    results = []
    for name in chips:
        on = PerformanceModel(name, execution)
        for kind in ("prefill", "decode"):
            count = len(list(performance_grid(name, kind)))
            results.append(
                ChipPerformance(name, kind, mean_ratio(name, kind, on, execution), count)
            )
    return results


def mean_ratio(
    chip: str, kind: str, on: PerformanceModel, execution: str | None = None
) -> float:
    """Mean of the modeled H100's seconds over those of a chip, over the chip's grid."""
    base = _base(execution)
    other = _phases(on, None)
    grid = list(performance_grid(chip, kind))
    ratios = [base.estimate(p).latency_s / other.estimate(p).latency_s for p in grid]
    return sum(ratios) / len(ratios)


def performance_points(execution: str | None = None) -> Iterator[Point]:
    """The paper's mean performances beside ours."""
    published = {
        (row.text("chip"), row.text("phase")): row
        for row in reference_table("spad_performance").rows
    }
    for block in BLOCKS if execution is None else (execution,):
        for chip, phase, mean, count in chip_performance(block):
            row = published[chip, phase]
            yield point(
                "paper-chips", chip, f"{phase} performance", "fp16", block,
                f"mean of {count} points", row.positive("mean_performance"), mean,
                unit="1", execution=block, source=row.text("source"),
            )  # fmt: skip


def performance_grid(chip: str, kind: str) -> Iterator[Phase]:
    """Phases of the paper's grid that fit both a chip and the modeled H100."""
    model, plan = ModelSpec.load(MODEL), Parallelism.parse(PLAN)
    room = min(
        memory_plan(Chip.load(name), model, plan, Precision(), share=0.9).kv_tokens or 0
        for name in (BASE, chip)
    )
    for power in range(9 if kind == "prefill" else 8):
        for length in range(6, 15):
            if 2**power * 2**length <= room:
                yield _phase(kind, 2**power, 2**length)


def reference_points(
    model: str, chip: str, phase: str | Phase, resource: str
) -> list[ReferencePoint]:
    """What there is to draw beside a curve of cuts.

    Parameters
    ----------
    model, chip : str
        Library names.
    phase : str or Phase
        ``prefill`` or ``decode``; only the kind counts, labels say the rest.
    resource : str
        As `Chip.scaled` takes it.

    Returns
    -------
    list of ReferencePoint
        Empty where nobody has published anything.
    """
    kind = phase if isinstance(phase, str) else phase.kind
    points = []
    if (model, chip) == (MODEL, BASE):
        points += _published(kind, resource)
    return points + _swept(model, chip, kind, resource)


def _published(kind: str, resource: str) -> list[ReferencePoint]:
    full = _full(Chip.load(BASE), resource)
    return [
        ReferencePoint(
            f"{_NAMES[ref.series]} ({_words(ref.phase)})",
            ref.value,
            ref.value / full,
            ref.slowdown,
            ref.source,
        )
        for ref in paper_curves()
        if (ref.phase.kind, ref.resource) == (kind, resource)
    ]


_NAMES = {"paper": "SPAD paper", "table": "author's LLMCompass tables"}


def _swept(model: str, chip: str, kind: str, resource: str) -> list[ReferencePoint]:
    """Sweeps of the public LLMCompass: rows that differ in the resource alone."""
    swept = SWEPT_FOR.get(chip, chip)
    rows = [
        row
        for row in reference_table("public_layers").rows
        if (row.text("model"), row.text("chip"), row.text("phase")) == (model, swept, kind)
        and row.has("cores")
    ]
    points = []
    for row in rows:
        value = _resource(row, resource)
        base = _base_row(rows, row, resource)
        if value is None or base is None:
            continue
        phase = _phase(kind, row.whole("batch"), row.whole("context"))
        points.append(
            ReferencePoint(
                f"public LLMCompass ({_words(phase)})",
                value,
                value / _full(Chip.load(row.text("chip")), resource),
                row.positive("layer_s") / base.positive("layer_s"),
                f"LLMCompass, {row.text('chip')}, one layer with its overheads",
            )
        )
    return sorted(points, key=lambda p: (p.label, p.value))


def _base_row(rows: list[Row], row: Row, resource: str) -> Row | None:
    """The uncut row beside a row; None where something else is cut as well."""
    other = "cores" if resource == "memory_bandwidth" else "memory_bandwidth"
    whole = Chip.load(row.text("chip"))
    for base in rows:
        same = all(base.text(c) == row.text(c) for c in ("chip", "batch", "context"))
        full = all(_is_full(base, whole, r) for r in ("cores", "memory_bandwidth"))
        if same and full and _is_full(row, whole, other):
            return base
    return None


def _is_full(row: Row, chip: Chip, resource: str) -> bool:
    value = _resource(row, resource)
    # LLMCompass's A100 has 2039 GB/s in its code and 2048 in its template.json.
    return value is not None and abs(value / _full(chip, resource) - 1.0) < 0.01


def _resource(row: Row, resource: str) -> float | None:
    columns = {"cores": "cores", "memory_bandwidth": "memory_bandwidth_bytes_per_s"}
    column = columns.get(resource)
    return row.positive(column) if column else None


def _full(chip: Chip, resource: str) -> float:
    return float(chip.cores) if resource == "cores" else chip.memory.bandwidth


def _cut(resource: str, value: float) -> Chip:
    chip = Chip.load(BASE)
    return chip.scaled(**{resource: value / _full(chip, resource)})


def _base(execution: Execution | str | None) -> PhaseModel:
    """The chip that all others are set beside; under one of `BLOCKS` it is remembered."""
    if isinstance(execution, str) and execution in BLOCKS:
        return _kept_base(execution)
    return _phases(Chip.load(BASE), execution)


@functools.cache
def _kept_base(execution: str) -> PhaseModel:
    return _phases(Chip.load(BASE), execution)


def _phases(chip: Chip | PerformanceModel, execution: Execution | str | None) -> PhaseModel:
    return PhaseModel(
        chip, MODEL, PLAN, execution=execution, layers_only=True, check_memory=False
    )


def _phase(kind: str, batch: int, context: int) -> Phase:
    return Phase.prefill(batch, context) if kind == "prefill" else Phase.decode(batch, context)


def _words(phase: Phase) -> str:
    length = "prompt" if phase.kind == "prefill" else "context"
    return f"batch {phase.batch}, {length} {phase.context}"
