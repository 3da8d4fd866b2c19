"""Results as JSON objects: SI units in the names, finite numbers only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from chipsim.cost.cap import CappedModel
from chipsim.cost.energy import EnergyModel
from chipsim.errors import UnknownNameError
from chipsim.ops.loads import UNIFORM
from chipsim.present.cost import compare_money
from chipsim.present.provenance import plan_text, precision_text

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.cost.energy import Energy
    from chipsim.estimates import Estimate, OperatorRow, PhaseEstimate
    from chipsim.explore.compare import Comparison
    from chipsim.explore.cuts import CutsResult
    from chipsim.memory import MemoryPlan
    from chipsim.ops.loads import ExpertLoad
    from chipsim.ops.operators import Operator
    from chipsim.ops.phase import Phase
    from chipsim.ops.precision import Precision
    from chipsim.performance import PerformanceModel
    from chipsim.validation import ValidationResult


Joules = EnergyModel | CappedModel | None
"""What says the energy of an estimate; None: nothing is known of the chip's energies."""


def operator_record(
    estimate: Estimate, model: PerformanceModel, joules: Joules = None
) -> dict[str, Any]:
    """One operator: what was asked, and the answer."""
    return _head(model) | {
        "operator": shape_record(estimate.operator),
        **_estimate(estimate),
        **energy_record(_of_operator(joules, estimate), joules),
        **_cap_record(joules, estimate.operator),
    }


def energy_record(energy: Energy | None, joules: Joules) -> dict[str, Any]:
    """Joules of one chip, their parts, the mean power, and the TDP that it may be over."""
    return {
        "energy_j": energy.total_j if energy else None,
        "energy_parts_j": dict(energy.parts) if energy else {},
        "power_w": energy.power_w if energy else None,
        "tdp_w": joules.power.tdp_w if joules else None,
    }


def _of_operator(joules: Joules, estimate: Estimate) -> Energy | None:
    return _known(lambda: joules.operator(estimate)) if joules else None


def _known(make: Callable[[], Energy]) -> Energy | None:
    """An energy, or None where a format has none."""
    try:
        return make()
    except UnknownNameError:
        return None


def _cap_record(joules: Joules, operator: Operator) -> dict[str, Any]:
    if not isinstance(joules, CappedModel):
        return {}
    return {"power_cap_w": joules.cap_w, "clock_fraction": joules.clock(operator)}


def operators_record(
    name: str, estimates: list[Estimate], model: PerformanceModel, joules: Joules = None
) -> dict[str, Any]:
    """Several operators one after the other, as one: unfused attention."""
    total = sum(estimate.latency_s for estimate in estimates)
    slowest = max(estimates, key=lambda estimate: estimate.latency_s)
    rows = [
        {
            "name": estimate.operator.name,
            "share": estimate.latency_s / total,
            **_estimate(estimate),
            **energy_record(_of_operator(joules, estimate), joules),
            **_cap_record(joules, estimate.operator),
            "shape": shape_record(estimate.operator),
        }
        for estimate in estimates
    ]
    return _head(model) | {
        "operator": {"kind": name},
        "latency_s": total,
        "bound": slowest.bound,
        "conversions": conversions([estimate.conversion for estimate in estimates]),
        "flops": sum(estimate.flops for estimate in estimates),
        "memory_bytes": sum(estimate.memory_bytes for estimate in estimates),
        "lower_bound_s": sum(estimate.lower_bound_s for estimate in estimates),
        "mapping": {row["name"]: row["mapping"] for row in rows},
        "energy_j": _total(rows, "energy_j"),
        "operators": rows,
    }


def _total(rows: list[dict[str, Any]], key: str) -> float | None:
    values = [row[key] for row in rows]
    return None if None in values else sum(values)


def phase_record(
    estimate: PhaseEstimate,
    precision: Precision,
    joules: Joules = None,
    *,
    layers_only: bool,
    load: ExpertLoad = UNIFORM,
) -> dict[str, Any]:
    """A phase and its operators; joules are those of one chip."""
    phase = estimate.phase
    energy = _known(lambda: joules.phase(estimate)) if joules else None
    operators = [
        record | _row_energy(row, joules)
        for record, row in zip(estimate.records(), estimate.rows, strict=True)
    ]
    cap = {"power_cap_w": joules.cap_w} if isinstance(joules, CappedModel) else {}
    return {
        "chip": estimate.chip,
        "execution": estimate.execution,
        "model": estimate.model,
        **step_record(phase),
        "plan": plan_text(estimate.plan),
        "precision": precision_text(precision),
        "load": load.text,
        "layers_only": layers_only,
        "latency_s": estimate.latency_s,
        "pipeline": {
            "parts": estimate.parts,
            "stage_s": estimate.stage_s,
            "bubble": estimate.bubble,
            "stage_layers": list(estimate.stage_layers),
        },
        "tokens_per_s": phase.tokens / estimate.latency_s,
        "bound": estimate.bound,
        "flops": estimate.flops,
        "memory_bytes": estimate.memory_bytes,
        **energy_record(energy, joules),
        **cap,
        "conversions": conversions(estimate.conversions),
        "operators": operators,
    }


def step_record(phase: Phase) -> dict[str, Any]:
    """What a step was asked to be: its sequences, with those that decode beside a chunk."""
    asked = {
        "phase": phase.kind,
        "batch": phase.batch,
        "query": phase.query,
        "context": phase.context,
    }
    if phase.kind == "decode":
        return asked | {"draft": phase.draft}
    if phase.kind == "mixed":
        return asked | {"decodes": phase.decodes, "decode_context": phase.decode_context}
    return asked


def _row_energy(row: OperatorRow, joules: Joules) -> dict[str, Any]:
    """Joules of all runs of an operator, its power, and its clock under a cap."""
    energy = _of_operator(joules, row.estimate)
    found: dict[str, Any] = {
        "energy_j": energy.total_j * row.count if energy else None,
        "power_w": energy.power_w if energy else None,
        "tdp_w": joules.power.tdp_w if joules else None,
    }
    if isinstance(joules, CappedModel):
        found["clock_fraction"] = joules.clock(row.estimate.operator)
    return found


def conversions(notes: Iterable[str]) -> list[str]:
    """What runs in another format than its own, each once."""
    return list(dict.fromkeys(part for note in notes if note for part in note.split(", ")))


MEMORY = (
    "capacity_bytes",
    "usable_bytes",
    "weights_bytes_per_chip",
    "kv_bytes_per_token",
    "state_bytes_per_sequence",
    "free_bytes",
    "kv_tokens",
    "fits",
    "shortfall_bytes",
)
"""What a record holds of a memory plan."""


def memory_record(memory: MemoryPlan, context: int) -> dict[str, Any]:
    """A memory plan, and the largest batch of one context."""
    return {name: getattr(memory, name) for name in MEMORY} | {
        "ranks": memory.ranks,
        "context": context,
        "sequence_bytes": max(stage.sequence_bytes(context) for stage in memory.stages),
        "kv_tokens_at_context": memory.kv_tokens_at(context),
        "largest_batch": memory.largest_batch(context),
    }


def cuts_record(runs: Sequence[CutsResult]) -> dict[str, Any]:
    """A cut under one or several execution blocks; their points are ``rows``."""
    setup, main = runs[0].setup, runs[0]
    return {
        "chip": main.chip.name,
        "execution": main.execution.name,
        "model": main.model.name,
        "phase": main.phase.kind,
        "batch": "max" if setup.batch == "max" else main.phase.batch,
        "query": main.phase.query,
        "context": main.phase.context,
        "plan": plan_text(main.plan),
        "precision": precision_text(setup.precision),
        "layers_only": setup.layers_only,
        "itl_s": setup.itl_s,
        "resources": list(main.resources),
        "held": dict(setup.held),
        "prices": setup.prices.name if setup.prices else None,
        "energies": setup.energies.name,
        "uncut": {
            "latency_s": main.uncut.latency_s,
            "batch": main.uncut.batch,
            "tokens_per_s": main.uncut.tokens_per_s,
            **main.money.record(),
        },
        "unpriced": main.money.unpriced,
        "rows": cuts_rows(runs),
    }


def cuts_rows(runs: Sequence[CutsResult]) -> list[dict[str, Any]]:
    """The points of all runs, each with its execution block and its operators."""
    return [row | {"execution": run.execution.name} for run in runs for row in run.records()]


def compare_record(comparison: Comparison, about: str) -> dict[str, Any]:
    """Two runs side by side; operators or groups are ``rows``."""
    a, b = comparison.total_a_s, comparison.total_b_s
    return {
        "a": comparison.name_a,
        "b": comparison.name_b,
        "about": about,
        "by": comparison.by,
        "latency_a_s": a,
        "latency_b_s": b,
        "difference_s": b - a,
        "ratio": b / a if a else None,
        **compare_money(comparison),
        "rows": comparison.records(),
    }


def validation_record(result: ValidationResult, suite: str) -> dict[str, Any]:
    """Errors by group as ``rows``, and what was skipped."""
    record = errors_record(result.frame(), suite)
    record["skipped"] = [{"name": each.name, "why": each.why} for each in result.skipped]
    if suite == "splitwise":
        record["differences"] = result.differences().to_dict("records")
    return record


def errors_record(frame: pd.DataFrame, suite: str) -> dict[str, Any]:
    """A table of errors as ``rows``; null where there is none."""
    rows = [
        {str(name): None if value != value else value for name, value in row.items()}  # noqa: PLR0124 - NaN
        for row in frame.to_dict("records")
    ]
    return {"suite": suite, "rows": rows}


def shape_record(operator: Operator) -> dict[str, Any]:
    """Kind and sizes of an operator."""
    shape = {
        field.name: getattr(operator, field.name)
        for field in fields(operator)  # type: ignore[arg-type]
        if field.name != "name"
    }
    return {"kind": operator.kind} | shape


def _head(model: PerformanceModel) -> dict[str, Any]:
    return {"chip": model.chip.name, "execution": model.execution.name}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "latency_s": estimate.latency_s,
        "bound": estimate.bound,
        "flops": estimate.flops,
        "memory_bytes": estimate.memory_bytes,
        "lower_bound_s": estimate.lower_bound_s,
        "utilisation": estimate.utilisation,
        "parts": estimate.parts,
        "mapping": estimate.mapping,
        "conversions": conversions([estimate.conversion]),
    }
