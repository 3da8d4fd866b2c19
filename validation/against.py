"""A run of LLMCompass (or a measured layer) beside our estimate, operator by operator.

reference case -> the same layer estimated -> comparison by class of operators
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from chipsim.errors import ChipsimError, UnknownNameError
from chipsim.explore.compare import Comparison, ComparisonRow
from chipsim.explore.reasons import Side
from chipsim.ops.graph import layer_graph
from chipsim.ops.model import ModelSpec
from chipsim.ops.parallelism import Parallelism
from chipsim.validation.cases import LABELS, NODES, Judge, LayerCase
from chipsim.validation.references import reference_cases
from chipsim.validation.suites import read_folder

if TYPE_CHECKING:
    from chipsim.ops.graph import Phase
    from chipsim.performance import PerformanceModel

RUNS = {
    "author-tables": "tables of SPAD's author",
    "public-layer": "public LLMCompass",
    "silicon-layer": "measured layer",
}
"""Suites of layers that an estimate can be set beside."""


def compare_reference(
    run: str | Path,
    chip: str,
    model: str,
    phase: Phase,
    tp: int = 1,
    execution: str | None = None,
) -> Comparison:
    """Set our estimate of one layer beside a reference run of the same.

    Parameters
    ----------
    run : str or Path
        One of `RUNS`, or a CSV file with the columns of LLMCompass's layer outputs.
    chip, model : str
        Library names.
    phase : Phase
        With batch and context of the run.
    execution : str, optional
        Block; the chip's own unless given.

    Returns
    -------
    Comparison
        ``a`` is our estimate, ``b`` the reference; rows are classes of operators.

    Raises
    ------
    UnknownNameError
        No such run.
    ChipsimError
        It has no such layer; the nearest that it has are named.
    """
    case = _case(list(_layers(run)), chip, ModelSpec.load(model), phase, tp, str(run))
    judged = Judge(execution).model(case.subject, case.launch)
    sides = _sides(case, judged)
    rows = tuple(
        ComparisonRow(LABELS[kind], kind, sides.get(kind, Side()), Side(seconds))
        for kind, seconds in case.references.items()
        if kind in NODES
    )
    name = RUNS.get(str(run), Path(run).name)
    return Comparison(f"{chip} {judged.execution.name}", name, rows, "group")


def _layers(run: str | Path) -> Iterable[LayerCase]:
    if str(run) in RUNS:
        cases = list(reference_cases())
        return [c for c in cases if isinstance(c, LayerCase) and c.suite == str(run)]
    path = Path(run)
    if path.suffix != ".csv":
        raise UnknownNameError("reference run", str(run), RUNS)
    return [case for case in read_folder(path, []) if isinstance(case, LayerCase)]


def _case(
    cases: list[LayerCase], chip: str, model: ModelSpec, phase: Phase, tp: int, run: str
) -> LayerCase:
    alike = [
        case
        for case in cases
        if case.phase.kind == phase.kind and _whole(case) and _about(case, chip, model)
    ]
    for case in alike:
        if (case.phase, case.tp) == (phase, tp):
            return case
    near = sorted(alike, key=lambda case: _distance(case.phase, phase))[:4]
    known = "; ".join(case.shape for case in near) or "none of that chip, model and phase"
    raise ChipsimError(
        f"{run}: no {phase.kind} layer of {model.name} on {chip} with batch {phase.batch}, "
        f"context {phase.context}, tp {tp}; it has {known}"
    )


def _whole(case: LayerCase) -> bool:
    return not (case.subject.cores or case.subject.memory_bandwidth) and case.subject.arrays


def _about(case: LayerCase, chip: str, model: ModelSpec) -> bool:
    """Whether a case is of the chip and of the same layer; files name no model."""
    return case.subject.chip == chip and all(
        getattr(case.model, size) == getattr(model, size)
        for size in ("hidden", "heads", "kv_heads", "intermediate")
    )


def _distance(a: Phase, b: Phase) -> float:
    pairs = ((a.batch, b.batch), (a.context, b.context))
    return sum(max(x, y) / min(x, y) for x, y in pairs)


def _sides(case: LayerCase, judged: PerformanceModel) -> dict[str, Side]:
    """Our operators by class; attention unfused, as in every reference."""
    kernels = judged.execution.kernels
    graph = layer_graph(
        case.model,
        case.phase,
        Parallelism(tp=case.tp),
        attention="unfused",
        qkv=kernels.qkv,
        vector_format=kernels.vector_format,
    )
    rows = judged.rows(graph.nodes)
    classes = {kind: [r for r in rows if r.name in nodes] for kind, nodes in NODES.items()}
    return {kind: Side.of(members) for kind, members in classes.items() if members}
