"""What ``estimate`` answers: options that its commands share, and how a result is shown."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_type_hints

from chipsim.cli.options import (
    AsJson,
    ChipName,
    ExecutionName,
    LayersOnly,
    Load,
    MaybeFormats,
    ModelName,
    Plan,
    PowerCap,
    Tp,
    read_cap,
    read_load,
    read_plan,
)
from chipsim.cli.output import emit, show
from chipsim.errors import ChipsimError

if TYPE_CHECKING:
    from chipsim.cost.cap import CappedModel
    from chipsim.cost.energy import EnergyModel
    from chipsim.estimates import PhaseEstimate
    from chipsim.ops.operators import Operator
    from chipsim.ops.phase import Phase
    from chipsim.performance import PerformanceModel

    Asked = tuple[list[Operator], str]
    """Operators one after the other, and what they are, in words."""

NOT_OPTIONS = ("asked", "return")
"""Annotations of a function that no word of a command line gives."""


def answered_by(
    answer: Callable[..., None],
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a command of a function that says what is asked.

    The command has the options of the function and those of ``answer``, which gets the
    function's result as ``asked``; what both name, both get.
    """

    def make(asks: Callable[..., Any]) -> Callable[..., None]:
        own, shared = _options(asks), _options(answer)

        def command(**given: Any) -> None:
            asked = asks(**{name: given[name] for name in own})
            answer(asked, **{name: given[name] for name in shared})

        options = shared | own
        needed = {k: v for k, v in options.items() if v.default is v.empty}
        ordered = needed | own | shared
        command.__doc__ = asks.__doc__
        command.__annotations__ = {name: option.annotation for name, option in ordered.items()}
        signature = inspect.Signature(list(ordered.values()))
        command.__signature__ = signature  # type: ignore[attr-defined]
        return command

    return make


def _options(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The options of a function, by name; what names types of heavy modules is left alone."""
    texts = {k: v for k, v in function.__annotations__.items() if k not in NOT_OPTIONS}
    known = getattr(function, "__globals__")  # noqa: B009 - a function has it
    holder: Any = SimpleNamespace(__annotations__=texts)
    hints = get_type_hints(holder, known, include_extras=True)
    parameters = inspect.signature(function).parameters
    kind = inspect.Parameter.KEYWORD_ONLY
    return {
        name: parameters[name].replace(annotation=hint, kind=kind)
        for name, hint in hints.items()
    }


def answer_operators(
    asked: Asked,
    *,
    chip: ChipName,
    execution: ExecutionName = None,
    power_cap: PowerCap = None,
    as_json: AsJson = False,
) -> None:
    """Latency of operators that run one after the other."""
    from chipsim.present.records import operator_record, operators_record

    operators, title = asked
    model = _model(chip, execution, power_cap)
    joules = _joules(model)
    estimates = [model.estimate(operator) for operator in operators]
    if len(estimates) == 1:
        record = operator_record(estimates[0], model, joules)
    else:
        record = operators_record("unfused attention", estimates, model, joules)
    if as_json:
        emit(record)
        return
    from chipsim.present.provenance import footer
    from chipsim.present.tables import (
        conversion_lines,
        footer_line,
        heading,
        operator_parts,
    )

    show(
        heading(title),
        *operator_parts(record),
        *conversion_lines(record),
        footer_line(footer(model.chip.name, model.execution)),
    )


def _model(chip: str, execution: str | None, power_cap: str | None) -> PerformanceModel:
    """The performance model, under a cap where one is asked."""
    from chipsim.performance import PerformanceModel

    cap_w = read_cap(power_cap, chip)
    if cap_w is None:
        return PerformanceModel(chip, execution)
    from chipsim.cost.cap import CappedModel

    return CappedModel(chip, cap_w, execution)


def _joules(model: PerformanceModel) -> EnergyModel | CappedModel | None:
    """What says the energy of an estimate; None where the chip is not described enough."""
    from chipsim.cost.cap import CappedModel
    from chipsim.cost.energy import EnergyModel

    if isinstance(model, CappedModel):
        return model
    try:
        return EnergyModel(model.chip)
    except ChipsimError:
        return None


def answer_phase(
    asked: Phase,
    *,
    chip: ChipName,
    model: ModelName,
    tp: Tp = None,
    plan: Plan = None,
    load: Load = None,
    formats: MaybeFormats = None,
    execution: ExecutionName = None,
    layers_only: LayersOnly = False,
    power_cap: PowerCap = None,
    as_json: AsJson = False,
) -> None:
    """Latency of a phase of a model."""
    from chipsim.phases import PhaseModel
    from chipsim.present.records import phase_record

    performance = _model(chip, execution, power_cap)
    phases = PhaseModel(
        performance,
        model,
        read_plan(tp, plan),
        precision=formats,
        load=read_load(load),
        layers_only=layers_only,
    )
    estimate = phases.estimate(asked)
    joules = _joules(performance)
    formats_of = phases.precision_of(asked)
    record = phase_record(
        estimate, formats_of, joules, layers_only=layers_only, load=phases.load
    )
    if as_json:
        emit(record)
    else:
        _show_phase(estimate, record, phases)


def _show_phase(estimate: PhaseEstimate, record: dict[str, Any], phases: Any) -> None:
    from chipsim.present.provenance import footer
    from chipsim.present.tables import (
        conversion_lines,
        footer_line,
        heading,
        phase_table,
        phase_title,
    )

    performance = phases.performance
    show(
        heading(phase_title(record, estimate.phase)),
        phase_table(record["operators"]),
        *conversion_lines(record),
        footer_line(footer(performance.chip.name, performance.execution)),
    )
