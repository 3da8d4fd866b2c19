"""``estimate``: latency of one operator, or of a phase of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipsim.cli.options import (
    AsJson,
    ChipName,
    Draft,
    ExecutionName,
    Formats,
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
from chipsim.errors import ChipsimError, ConfigError

if TYPE_CHECKING:
    from chipsim.cost.cap import CappedModel
    from chipsim.cost.energy import EnergyModel
    from chipsim.estimates import PhaseEstimate
    from chipsim.ops.operators import Operator
    from chipsim.ops.phase import Phase
    from chipsim.ops.precision import Precision
    from chipsim.performance import PerformanceModel

Size = Annotated[str, typer.Option("--bytes", metavar="SIZE", help="29360128, or 28 MiB.")]
Rows = Annotated[int, typer.Option("-m", "--rows", metavar="M", help="Rows.")]
Columns = Annotated[int, typer.Option("-n", "--columns", metavar="N", help="Columns.")]
Batch = Annotated[int, typer.Option("--batch", metavar="B", help="Sequences.")]


def gemm(
    chip: ChipName,
    m: Annotated[int, typer.Option("-m", metavar="M", help="Rows of A and C.")],
    n: Annotated[int, typer.Option("-n", metavar="N", help="Columns of B and C.")],
    k: Annotated[int, typer.Option("-k", metavar="K", help="Columns of A, rows of B.")],
    batch: Annotated[int, typer.Option("--batch", metavar="B", help="Products.")] = 1,
    formats: Formats = "fp16",
    execution: ExecutionName = None,
    power_cap: PowerCap = None,
    as_json: AsJson = False,
) -> None:
    """Matrix product C (m x n) = A (m x k) B (k x n); B is a weight unless batched."""
    from chipsim.ops.operators import Gemm

    p = _precision(formats)
    b_format = p.weights if batch == 1 else p.kv
    operator = Gemm(
        "gemm", m, n, k, batch, p.activations, b_format, p.activations, batch == 1, p.accumulate
    )
    _answer(
        [operator], f"gemm {m} × {n} × {k}, batch {batch}", chip, execution, power_cap, as_json
    )


def attention(
    chip: ChipName,
    batch: Batch,
    q_heads: Annotated[int, typer.Option("--q-heads", metavar="N", help="Query heads.")],
    head_dim: Annotated[int, typer.Option("--head-dim", metavar="N", help="Head width.")],
    query: Annotated[int, typer.Option("--query", metavar="N", help="New tokens.")],
    context: Annotated[int, typer.Option("--context", metavar="N", help="All tokens.")],
    kv_heads: Annotated[
        int | None,
        typer.Option("--kv-heads", metavar="N", help="KV heads; as many as q unless given."),
    ] = None,
    window: Annotated[
        int, typer.Option("--window", metavar="N", help="Tokens that a query sees (0: all).")
    ] = 0,
    unfused: Annotated[
        bool, typer.Option("--unfused", help="Scores, softmax and values apart.")
    ] = False,
    formats: Formats = "fp16",
    execution: ExecutionName = None,
    power_cap: PowerCap = None,
    as_json: AsJson = False,
) -> None:
    """Causal attention of the last QUERY of CONTEXT tokens."""
    from chipsim.ops.operators import Attention

    p, heads = _precision(formats), q_heads if kv_heads is None else kv_heads
    fused = Attention(
        "attention",
        batch,
        q_heads,
        heads,
        head_dim,
        query=query,
        context=context,
        window=window,
        q_format=p.activations,
        kv_format=p.kv,
        accumulate=p.accumulate,
    )
    unfused = unfused or _runs_unfused(chip, execution)
    title = f"{'unfused ' if unfused else ''}attention, batch {batch}, "
    title += f"{q_heads}/{heads} heads of {head_dim}, "
    title += f"query {query} of context {context}"
    operators: list[Operator] = _unfused(fused) if unfused else [fused]
    _answer(operators, title, chip, execution, power_cap, as_json)


def _runs_unfused(chip: str, execution: str | None) -> bool:
    """Whether the kernels of a block are apart: its launches belong to those."""
    from chipsim.chip import Chip
    from chipsim.execution import Execution

    block = Execution.load(execution or Chip.load(chip).execution)
    return block.kernels.attention == "unfused"


def _unfused(fused: Any) -> list[Operator]:
    from chipsim.ops.operators import Gemm, Softmax

    if fused.window:
        raise ConfigError("--window", "", fused.window, "0 with --unfused: all is computed")
    groups, rows = fused.batch * fused.kv_heads, fused.query * fused.q_heads // fused.kv_heads
    formats = (fused.q_format, fused.kv_format, fused.q_format, False, fused.accumulate)
    width, context = fused.head_dim, fused.context
    softmax_rows = fused.batch * fused.q_heads * fused.query
    return [
        Gemm("scores", rows, context, width, groups, *formats),
        Softmax("softmax", softmax_rows, context, fused.q_format),
        Gemm("values", rows, width, context, groups, *formats),
    ]


def softmax(
    chip: ChipName,
    m: Rows,
    n: Columns,
    formats: Formats = "fp16",
    execution: ExecutionName = None,
    power_cap: PowerCap = None,
    as_json: AsJson = False,
) -> None:
    """Softmax over each of M rows of N elements."""
    from chipsim.ops.operators import Softmax

    operator = Softmax("softmax", m, n, _precision(formats).activations)
    _answer([operator], f"softmax {m} × {n}", chip, execution, power_cap, as_json)


def layernorm(
    chip: ChipName,
    m: Rows,
    n: Columns,
    formats: Formats = "fp16",
    execution: ExecutionName = None,
    power_cap: PowerCap = None,
    as_json: AsJson = False,
) -> None:
    """LayerNorm of each of M rows of N elements."""
    from chipsim.ops.operators import Norm

    operator = Norm("layernorm", m, n, _precision(formats).activations)
    _answer([operator], f"layernorm {m} × {n}", chip, execution, power_cap, as_json)


def gelu(
    chip: ChipName,
    elements: Annotated[
        int | None, typer.Option("--elements", metavar="N", help="Elements; or -m and -n.")
    ] = None,
    m: Annotated[int | None, typer.Option("-m", metavar="M", help="Rows.")] = None,
    n: Annotated[int | None, typer.Option("-n", metavar="N", help="Columns.")] = None,
    formats: Formats = "fp16",
    execution: ExecutionName = None,
    power_cap: PowerCap = None,
    as_json: AsJson = False,
) -> None:
    """GELU of a number of elements, or of M rows of N."""
    from chipsim.ops.checks import whole
    from chipsim.ops.operators import Activation

    if (elements is None) == (m is None and n is None):
        raise ChipsimError("gelu: give --elements N, or -m M and -n N")
    if elements is None:
        elements = whole("gelu", "m", 1 if m is None else m)
        elements *= whole("gelu", "n", 1 if n is None else n)
    operator = Activation("gelu", elements, _precision(formats).activations)
    _answer([operator], f"gelu of {elements} elements", chip, execution, power_cap, as_json)


def _exchange(name: str, kind: str, help_text: str) -> Callable[..., None]:
    """A command for one class of `chipsim.ops.collectives`."""

    def command(
        chip: ChipName,
        size: Size,
        chips: Annotated[int, typer.Option("--chips", metavar="N", help="Chips of the group.")],
        stride: Annotated[
            int, typer.Option("--stride", metavar="N", help="Ranks between neighbours.")
        ] = 1,
        execution: ExecutionName = None,
        power_cap: PowerCap = None,
        as_json: AsJson = False,
    ) -> None:
        from chipsim.ops import collectives

        operator = getattr(collectives, kind)(name, _bytes(size), chips, stride)
        title = f"{name} of {size} over {chips} chips"
        _answer([operator], title, chip, execution, power_cap, as_json)

    command.__doc__ = help_text
    return command


def _bytes(text: str) -> float:
    from chipsim.units import parse

    try:
        return float(text)
    except ValueError:
        pass
    try:
        return parse(text, "capacity")
    except ValueError as error:
        raise ConfigError("--bytes", "", text, f"bytes, or {error}") from None


def prefill(
    chip: ChipName,
    model: ModelName,
    prompt: Annotated[int, typer.Option("--prompt", metavar="N", help="Prompt tokens.")],
    batch: Batch = 1,
    prefix: Annotated[
        int, typer.Option("--prefix", metavar="N", help="Cached tokens before the prompt.")
    ] = 0,
    tp: Tp = None,
    plan: Plan = None,
    load: Load = None,
    formats: MaybeFormats = None,
    execution: ExecutionName = None,
    layers_only: LayersOnly = False,
    power_cap: PowerCap = None,
    as_json: AsJson = False,
) -> None:
    """All prompt tokens of a batch in one step."""
    from chipsim.ops.phase import Phase

    phase = Phase.prefill(batch, prompt, prefix)
    arguments = (chip, model, read_plan(tp, plan), execution, formats)
    _answer_phase(
        phase,
        *arguments,
        load=load,
        layers_only=layers_only,
        power_cap=power_cap,
        as_json=as_json,
    )


def decode(
    chip: ChipName,
    model: ModelName,
    context: Annotated[
        int,
        typer.Option("--context", metavar="N", help="Tokens attended to: prompt + generated."),
    ],
    batch: Batch = 1,
    draft: Draft = 0,
    tp: Tp = None,
    plan: Plan = None,
    load: Load = None,
    formats: MaybeFormats = None,
    execution: ExecutionName = None,
    layers_only: LayersOnly = False,
    power_cap: PowerCap = None,
    as_json: AsJson = False,
) -> None:
    """One token of each sequence of a batch."""
    from chipsim.ops.phase import Phase

    phase = Phase.decode(batch, context, draft)
    arguments = (chip, model, read_plan(tp, plan), execution, formats)
    _answer_phase(
        phase,
        *arguments,
        load=load,
        layers_only=layers_only,
        power_cap=power_cap,
        as_json=as_json,
    )


def mixed(
    chip: ChipName,
    model: ModelName,
    chunk: Annotated[int, typer.Option("--chunk", metavar="N", help="New prompt tokens.")],
    decodes: Annotated[
        int, typer.Option("--decodes", metavar="N", help="Sequences that decode beside it.")
    ],
    context: Annotated[int, typer.Option("--context", metavar="N", help="Tokens of each.")],
    batch: Annotated[int, typer.Option("--batch", metavar="B", help="Prompts.")] = 1,
    prefix: Annotated[
        int, typer.Option("--prefix", metavar="N", help="Cached tokens before the chunk.")
    ] = 0,
    tp: Tp = None,
    plan: Plan = None,
    load: Load = None,
    formats: MaybeFormats = None,
    execution: ExecutionName = None,
    layers_only: LayersOnly = False,
    power_cap: PowerCap = None,
    as_json: AsJson = False,
) -> None:
    """A chunk of prompts and a decode batch in one step."""
    from chipsim.ops.phase import Phase

    phase = Phase.mixed(chunk, prefix, decodes, context, batch)
    arguments = (chip, model, read_plan(tp, plan), execution, formats)
    _answer_phase(
        phase,
        *arguments,
        load=load,
        layers_only=layers_only,
        power_cap=power_cap,
        as_json=as_json,
    )


def encode(
    chip: ChipName,
    model: ModelName,
    tokens: Annotated[
        int | None,
        typer.Option(
            "--tokens", metavar="N", help="Of one input; the encoder's own unless given."
        ),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", metavar="B", help="Inputs.")] = 1,
    tp: Tp = None,
    plan: Plan = None,
    formats: MaybeFormats = None,
    execution: ExecutionName = None,
    power_cap: PowerCap = None,
    as_json: AsJson = False,
) -> None:
    """Inputs through the encoder of a model, before prefill."""
    from chipsim.ops.model import ModelSpec
    from chipsim.ops.phase import Phase

    tower = ModelSpec.load(model).encoder
    if tower is None:
        raise ConfigError(model, "encoder", None, "a model with an encoder")
    phase = Phase.encode(batch, tower.tokens if tokens is None else tokens)
    arguments = (chip, model, read_plan(tp, plan), execution, formats)
    _answer_phase(
        phase, *arguments, load=None, layers_only=True, power_cap=power_cap, as_json=as_json
    )


COMMANDS: dict[str, Callable[..., None]] = {
    "gemm": gemm,
    "attention": attention,
    "softmax": softmax,
    "layernorm": layernorm,
    "gelu": gelu,
    **{
        name: _exchange(name, kind, text)
        for name, kind, text in (
            ("all-reduce", "AllReduce", "Sum of a tensor over chips, the result on each."),
            ("all-gather", "AllGather", "A tensor that chips share, whole on each."),
            ("reduce-scatter", "ReduceScatter", "Sum of a tensor, a share on each chip."),
            ("all-to-all", "AllToAll", "BYTES of each chip, in equal shares to all."),
            ("send-recv", "SendRecv", "BYTES to the chip STRIDE ranks further on."),
        )
    },
    "prefill": prefill,
    "decode": decode,
    "mixed": mixed,
    "encode": encode,
}


def _precision(formats: str) -> Precision:
    from chipsim.ops.precision import Precision

    return Precision.parse(formats)


def _answer(
    operators: list[Operator],
    title: str,
    chip: str,
    execution: str | None,
    power_cap: str | None,
    as_json: bool,
) -> None:
    from chipsim.present.records import operator_record, operators_record

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


def _answer_phase(
    phase: Phase,
    chip: str,
    model: str,
    plan: Any,
    execution: str | None,
    formats: str | None,
    *,
    load: str | None,
    layers_only: bool,
    power_cap: str | None,
    as_json: bool,
) -> None:
    from chipsim.phases import PhaseModel
    from chipsim.present.records import phase_record

    performance = _model(chip, execution, power_cap)
    phases = PhaseModel(
        performance,
        model,
        plan,
        precision=formats,
        load=read_load(load),
        layers_only=layers_only,
    )
    estimate = phases.estimate(phase)
    joules = _joules(performance)
    formats_of = phases.precision_of(phase)
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
