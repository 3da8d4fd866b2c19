"""What is fitted to measured operators, and in which order: a table of factors.

Stages keep a class that is modelled badly from pulling factors that others fix well: the
silicon's factors come from bf16 products, attention adds its own, quantised products and
experts only the time of one more kernel, and collectives the links'.

A factor takes one line here. Nothing is fitted per shape, framework or variant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipsim.validation.fitting import Factor

if TYPE_CHECKING:
    from chipsim.validation.silicon.measured import Measurement

Weights = Mapping[tuple[str, str] | str, float]


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the fit.

    Attributes
    ----------
    factors : tuple of Factor
        Fitted here; earlier stages' stay as they are.
    weights : mapping
        Weight of a row by operator and format, or by operator alone; others count nothing.
    again : tuple of str
        Earlier stages whose factors are fitted again together with these.
    """

    name: str
    factors: tuple[Factor, ...]
    weights: Weights
    again: tuple[str, ...] = ()

    def weight(self, row: Measurement) -> float:
        """How much a row counts."""
        by_format = self.weights.get((row.operator, row.dtype))
        return self.weights.get(row.operator, 0.0) if by_format is None else by_format


SILICON = (
    Factor(("launch.gemm", "launch.batched_gemm"), 2.7e-6, 2e-7, 2e-5),
    Factor(("sustained.tensor",), 0.84, 0.3, 1.0),
    Factor(("sustained.memory",), 0.82, 0.3, 1.0),
    Factor(("core_feed",), 0.3, 0.02, 4.0),
    Factor(("core_store",), 0.09, 0.005, 2.0),
    Factor(("step_latency",), 8e-8, 1e-9, 1e-6),
    Factor(("sync",), 2.7e-6, 1e-8, 2e-5),
)
"""Fixed by bf16 products."""

ATTENTION = (
    Factor(("launch.attention",), 4e-6, 5e-7, 5e-5),
    Factor(("sustained.stream",), 0.93, 0.3, 1.0),
    Factor(("tile_latency",), 1.5e-6, 1e-8, 2e-5),
    Factor(("tile_draw",), 0.2, 0.02, 4.0),
)
"""Added by attention."""

DEPENDENT = (
    Factor(
        ("launch.elementwise", "launch.activation", "launch.softmax", "launch.norm"),
        2e-6, 2e-7, 2e-5,
    ),
)  # fmt: skip
"""One more kernel that waits for the one before it."""

LINKS = (
    Factor(("launch.collective",), 8e-6, 5e-7, 5e-5),
    Factor(("sustained.link",), 0.75, 0.2, 1.0),
    Factor(("link.hop",), 1e-6, 5e-8, 1e-5),
    Factor(("link.start",), 1.3e-5, 1e-6, 1e-4),
)
"""At most four, beside the twelve of a chip."""

ATTENTIVE: dict[tuple[str, str] | str, float] = {
    "attention_context": 1.5, "attention_generation": 3.0,
    "mla_context": 1.2, "mla_generation": 1.2,
}  # fmt: skip
"""Weights of attention."""

STAGES = (
    Stage("products", SILICON, {("gemm", "bf16"): 1.0}),
    Stage("dependent kernels", DEPENDENT, {("gemm", "bf16"): 0.0, "gemm": 1.0, "moe": 1.0}),
    Stage("attention", ATTENTION, ATTENTIVE),
    Stage("together", (), {**ATTENTIVE, ("gemm", "bf16"): 4.0}, ("products", "attention")),
    Stage("links", LINKS, {"collectives": 1.0}),
)
"""The fit of a chip, in order."""

UNFIT = {("a100-sxm", "mla_context"), ("a100-sxm", "mla_generation")}
"""Left out of a chip's fit: kernels of TensorRT-LLM 1.0.0, which behave unlike the chip's
other attention. They are predicted."""
