"""Recurrent mixers as operators: input projection, convolution, recurrence, gated norm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.ops.operators import Elementwise, Recurrence
from chipsim.ops.parameters import linear_widths

if TYPE_CHECKING:
    from chipsim.ops.graph_builder import Builder
    from chipsim.ops.layers import Linear


def add_linear(b: Builder, mixer: Linear, source: str | None) -> str:
    """Projections, the recurrence of every part of the step, output projection."""
    hidden, tokens, tp = b.model.hidden, b.tokens, b.plan.tp
    convolved, values, inputs = linear_widths(mixer, tp)
    last = b.add(b.weight("linear_input", tokens, inputs, hidden), "qkv", source)
    gates = [_add_low_rank(b, mixer, convolved, values, source)] if mixer.rule == "kda" else []
    if mixer.conv:
        flops = 2 * mixer.conv + 4  # taps, then SiLU
        name = f"{b.prefix}convolution"
        taps = Elementwise(name, tokens * convolved, b.vector, 1, 1, flops)
        last = b.add(taps, "elementwise", last)
    mixed = [
        b.add(
            Recurrence(
                f"{b.prefix}recurrence{'_decode' if index else ''}",
                part.segment.batch,
                mixer.heads // tp,
                max(1, mixer.key_heads // tp),
                mixer.key_dim,
                mixer.value_dim,
                part.query,
                mixer.chunk,
                mixer.rule,
                b.activations,
                mixer.state_format,
            ),
            "attention",
            last,
            *gates,
        )
        for index, part in enumerate(b.parts)
    ]
    norm = b.norm("linear_norm", tokens * (mixer.heads // tp), mixer.value_dim)
    normed = b.add(norm, "norm", *mixed)
    return b.add(b.weight("output_projection", tokens, hidden, values), "output", normed)


def _add_low_rank(
    b: Builder, mixer: Linear, convolved: int, values: int, source: str | None
) -> str:
    """Decay and output gate through a rank of one head (Kimi delta attention)."""
    keys, tokens = (convolved - values) // 2, b.tokens
    down = b.add(
        b.weight("gates_down", tokens, 2 * mixer.value_dim, b.model.hidden), "qkv", source
    )
    return b.add(b.weight("gates_up", tokens, keys + values, mixer.value_dim), "qkv", down)
