"""``estimate``: latency of one operator, or of a phase of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipsim.cli.answers import answer_operators, answer_phase, answered_by
from chipsim.cli.options import (
    AsJson,
    ChipName,
    Draft,
    ExecutionName,
    Formats,
    MaybeFormats,
    ModelName,
    Plan,
    PowerCap,
    Tp,
)
from chipsim.errors import ChipsimError, ConfigError

if TYPE_CHECKING:
    from chipsim.cli.answers import Asked
    from chipsim.ops.operators import Operator
    from chipsim.ops.phase import Phase
    from chipsim.ops.precision import Precision

Size = Annotated[str, typer.Option("--bytes", metavar="SIZE", help="29360128, or 28 MiB.")]
Rows = Annotated[int, typer.Option("-m", "--rows", metavar="M", help="Rows.")]
Columns = Annotated[int, typer.Option("-n", "--columns", metavar="N", help="Columns.")]
Batch = Annotated[int, typer.Option("--batch", metavar="B", help="Sequences.")]


@answered_by(answer_operators)
def gemm(
    m: Annotated[int, typer.Option("-m", metavar="M", help="Rows of A and C.")],
    n: Annotated[int, typer.Option("-n", metavar="N", help="Columns of B and C.")],
    k: Annotated[int, typer.Option("-k", metavar="K", help="Columns of A, rows of B.")],
    batch: Annotated[int, typer.Option("--batch", metavar="B", help="Products.")] = 1,
    formats: Formats = "fp16",
) -> Asked:
    """Matrix product C (m x n) = A (m x k) B (k x n); B is a weight unless batched."""
    from chipsim.ops.operators import Gemm

    p = _precision(formats)
    b_format = p.weights if batch == 1 else p.kv
    operator = Gemm(
        "gemm", m, n, k, batch, p.activations, b_format, p.activations, batch == 1, p.accumulate
    )
    return [operator], f"gemm {m} × {n} × {k}, batch {batch}"


@answered_by(answer_operators)
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
) -> Asked:
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
    return operators, title


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


@answered_by(answer_operators)
def softmax(
    m: Rows,
    n: Columns,
    formats: Formats = "fp16",
) -> Asked:
    """Softmax over each of M rows of N elements."""
    from chipsim.ops.operators import Softmax

    operator = Softmax("softmax", m, n, _precision(formats).activations)
    return [operator], f"softmax {m} × {n}"


@answered_by(answer_operators)
def layernorm(
    m: Rows,
    n: Columns,
    formats: Formats = "fp16",
) -> Asked:
    """LayerNorm of each of M rows of N elements."""
    from chipsim.ops.operators import Norm

    operator = Norm("layernorm", m, n, _precision(formats).activations)
    return [operator], f"layernorm {m} × {n}"


@answered_by(answer_operators)
def gelu(
    elements: Annotated[
        int | None, typer.Option("--elements", metavar="N", help="Elements; or -m and -n.")
    ] = None,
    m: Annotated[int | None, typer.Option("-m", metavar="M", help="Rows.")] = None,
    n: Annotated[int | None, typer.Option("-n", metavar="N", help="Columns.")] = None,
    formats: Formats = "fp16",
) -> Asked:
    """GELU of a number of elements, or of M rows of N."""
    from chipsim.ops.checks import whole
    from chipsim.ops.operators import Activation

    if (elements is None) == (m is None and n is None):
        raise ChipsimError("gelu: give --elements N, or -m M and -n N")
    if elements is None:
        elements = whole("gelu", "m", 1 if m is None else m)
        elements *= whole("gelu", "n", 1 if n is None else n)
    operator = Activation("gelu", elements, _precision(formats).activations)
    return [operator], f"gelu of {elements} elements"


def _exchange(name: str, kind: str, help_text: str) -> Callable[..., None]:
    """A command for one class of `chipsim.ops.collectives`."""

    def command(
        size: Size,
        chips: Annotated[int, typer.Option("--chips", metavar="N", help="Chips of the group.")],
        stride: Annotated[
            int, typer.Option("--stride", metavar="N", help="Ranks between neighbours.")
        ] = 1,
    ) -> Asked:
        from chipsim.ops import collectives

        operator = getattr(collectives, kind)(name, _bytes(size), chips, stride)
        title = f"{name} of {size} over {chips} chips"
        return [operator], title

    command.__doc__ = help_text
    return answered_by(answer_operators)(command)


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


@answered_by(answer_phase)
def prefill(
    prompt: Annotated[int, typer.Option("--prompt", metavar="N", help="Prompt tokens.")],
    batch: Batch = 1,
    prefix: Annotated[
        int, typer.Option("--prefix", metavar="N", help="Cached tokens before the prompt.")
    ] = 0,
) -> Phase:
    """All prompt tokens of a batch in one step."""
    from chipsim.ops.phase import Phase

    return Phase.prefill(batch, prompt, prefix)


@answered_by(answer_phase)
def decode(
    context: Annotated[
        int,
        typer.Option("--context", metavar="N", help="Tokens attended to: prompt + generated."),
    ],
    batch: Batch = 1,
    draft: Draft = 0,
) -> Phase:
    """One token of each sequence of a batch."""
    from chipsim.ops.phase import Phase

    return Phase.decode(batch, context, draft)


@answered_by(answer_phase)
def mixed(
    chunk: Annotated[int, typer.Option("--chunk", metavar="N", help="New prompt tokens.")],
    decodes: Annotated[
        int, typer.Option("--decodes", metavar="N", help="Sequences that decode beside it.")
    ],
    context: Annotated[int, typer.Option("--context", metavar="N", help="Tokens of each.")],
    batch: Annotated[int, typer.Option("--batch", metavar="B", help="Prompts.")] = 1,
    prefix: Annotated[
        int, typer.Option("--prefix", metavar="N", help="Cached tokens before the chunk.")
    ] = 0,
) -> Phase:
    """A chunk of prompts and a decode batch in one step."""
    from chipsim.ops.phase import Phase

    return Phase.mixed(chunk, prefix, decodes, context, batch)


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
    answer_phase(
        phase,
        chip=chip,
        model=model,
        tp=tp,
        plan=plan,
        formats=formats,
        execution=execution,
        layers_only=True,
        power_cap=power_cap,
        as_json=as_json,
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
