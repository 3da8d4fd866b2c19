"""One line below every result: which chip, which block, and what the block is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipsim.execution import Execution
    from chipsim.ops.parallelism import Parallelism
    from chipsim.ops.phase import Phase
    from chipsim.ops.precision import Precision

IDEAL = "ideal machine: no measured block for this chip"
"""What a result under the block ``ideal`` says of itself."""


def footer(chip: str, execution: Execution) -> str:
    """Chip, block, and what the block was fitted to.

    >>> from chipsim import Execution
    >>> footer("tpu-v3", Execution.load("ideal"))
    'chip tpu-v3 · ideal machine: no measured block for this chip'
    """
    return f"chip {chip} · {block_text(execution)}"


def block_text(execution: Execution) -> str:
    """A block and what it was fitted to, or that nothing was."""
    if execution.name == "ideal":
        return IDEAL
    fitted = f"fitted to {execution.fitted.to}" if execution.fitted else "nothing fitted"
    return f"block {execution.name}, {fitted}"


def plan_text(plan: Parallelism | str) -> str:
    """A plan without its ones.

    >>> from chipsim import Parallelism
    >>> plan_text(Parallelism(tp=8)), plan_text("tp=8 pp=1 ep=1 dp=1"), plan_text("tp=1")
    ('tp=8', 'tp=8', 'one chip')
    """
    kept = [part for part in str(plan).replace(",", " ").split() if not part.endswith("=1")]
    return ",".join(kept) or "one chip"


def phase_text(phase: Phase) -> str:
    """A phase with its sizes.

    >>> from chipsim import Phase
    >>> phase_text(Phase.prefill(2, 1024)), phase_text(Phase.decode(64, 1024))
    ('prefill, batch 2, prompt 1024', 'decode, batch 64, context 1024')
    """
    if phase.kind == "decode":
        draft = f", {phase.draft} drafted" if phase.draft else ""
        return f"decode, batch {phase.batch}, context {phase.context}{draft}"
    if phase.kind == "encode":
        return f"encode, batch {phase.batch}, {phase.query} tokens each"
    prefix = phase.context - phase.query
    cached = f" after {prefix} cached" if prefix else ""
    if phase.kind == "mixed":
        beside = f"decode batch {phase.decodes}, context {phase.decode_context}"
        return f"mixed, batch {phase.batch}, chunk {phase.query}{cached}, beside {beside}"
    return f"prefill, batch {phase.batch}, prompt {phase.query}{cached}"


def precision_text(precision: Precision) -> str:
    """One format, or the parts that differ.

    >>> from chipsim import Precision
    >>> precision_text(Precision.parse("bf16")), precision_text(Precision(kv="fp8"))
    ('bf16', 'weights=fp16,activations=fp16,kv=fp8')
    >>> precision_text(Precision(kv="nvfp4", kv_rotary="fp8"))
    'weights=fp16,activations=fp16,kv=nvfp4,kv_rotary=fp8'
    """
    parts = (precision.weights, precision.activations, precision.kv)
    text = parts[0]
    if len(set(parts)) > 1:
        text = "weights={},activations={},kv={}".format(*parts)
    rest = {
        name: getattr(precision, name)
        for name in ("kv_rotary", "kv_indexer", "experts", "accumulate")
        if getattr(precision, name) not in (None, "fp32")
    }
    if rest and "=" not in text:
        text = f"weights={text},activations={text},kv={text}"
    return ",".join([text, *(f"{name}={value}" for name, value in rest.items())])
