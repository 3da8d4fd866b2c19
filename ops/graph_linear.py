"""Mixers with a state as operators: projections, convolution, recurrence, gate or norm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.ops.operators import Activation, AllReduce, Elementwise, Recurrence
from chipsim.ops.recurrent_parameters import linear_widths, scan_width

if TYPE_CHECKING:
    from chipsim.ops.graph_builder import Builder
    from chipsim.ops.layers import Linear, Scan, ShortConv


def add_linear(
    b: Builder, mixer: Linear, source: str | None, output: str = "output_projection"
) -> str:
    """Projections, the recurrence of every part of the step, output projection."""
    hidden, tokens, tp = b.model.hidden, b.tokens, b.plan.tp
    convolved, values, inputs = linear_widths(mixer, tp)
    last = b.add(b.weight("linear_input", tokens, inputs, hidden), "qkv", source)
    gates = [_add_low_rank(b, mixer, convolved, values, source)] if mixer.rule == "kda" else []
    last = _add_convolution(b, mixer.conv, convolved, last)
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
    if mixer.norm:
        norm = b.norm("linear_norm", tokens * (mixer.heads // tp), mixer.value_dim)
        gated = b.add(norm, "norm", *mixed)
    else:
        gated = _add_gate(b, values, *mixed)
    return b.add(b.weight(output, tokens, hidden, values), "output", gated)


def add_scan(b: Builder, mixer: Scan, source: str | None) -> str:
    """A selective scan: in, taps, step size with B and C, the scan, its gate, out.

    Step size, B and C are products over all channels: chips that split them add up.
    """
    tokens, channels, tp = b.tokens, mixer.channels // b.plan.tp, b.plan.tp
    wide = b.add(b.weight("scan_input", tokens, 2 * channels, b.model.hidden), "qkv", source)
    last = _add_convolution(b, mixer.conv, channels, wide)
    width = scan_width(mixer)
    last = b.add(b.weight("scan_parameters", tokens, width, channels), "qkv", last)
    if tp > 1:
        size = b.size(tokens * width)
        last = b.exchange(AllReduce, "all_reduce_scan", size, "tp", last)
    if mixer.inner_norms:
        last = b.add(b.norm("scan_norms", tokens, width), "norm", last)
    last = b.add(b.weight("step_sizes", tokens, channels, mixer.rank), "qkv", last)
    mixed = [
        b.add(
            Recurrence(
                f"{b.prefix}scan{'_decode' if index else ''}",
                part.segment.batch,
                channels,
                1,
                mixer.state,
                1,
                part.query,
                1,
                "scan",
                b.activations,
                mixer.state_format,
            ),
            "attention",
            last,
        )
        for index, part in enumerate(b.parts)
    ]
    gated = _add_gate(b, channels, *mixed)
    projection = b.weight("output_projection", tokens, b.model.hidden, channels)
    return b.add(projection, "output", gated)


def add_short_conv(b: Builder, mixer: ShortConv, source: str | None) -> str:
    """A gated short convolution: in, a gate before and one after the taps, out."""
    tokens, channels = b.tokens, mixer.channels // b.plan.tp
    last = b.add(b.weight("conv_input", tokens, 3 * channels, b.model.hidden), "qkv", source)
    # Three reads and one write: a product, the taps, a product.
    flops = 2 * mixer.conv + 2
    taps = Elementwise(f"{b.prefix}convolution", tokens * channels, b.vector, 3, 1, flops)
    last = b.add(taps, "elementwise", last)
    projection = b.weight("output_projection", tokens, b.model.hidden, channels)
    return b.add(projection, "output", last)


def _add_convolution(b: Builder, taps: int, channels: int, last: str) -> str:
    """Taps over the last tokens of every channel, then SiLU."""
    if not taps:
        return last
    name, flops = f"{b.prefix}convolution", 2 * taps + 4
    operator = Elementwise(name, b.tokens * channels, b.vector, 1, 1, flops)
    return b.add(operator, "elementwise", last)


def _add_gate(b: Builder, width: int, *mixed: str) -> str:
    """The results times a gate that was projected with the input."""
    name = f"{b.prefix}state_gate"
    gate = Activation(name, b.tokens * width, b.vector, "silu", gated=True)
    return b.add(gate, "activation", *mixed)


def _add_low_rank(
    b: Builder, mixer: Linear, convolved: int, values: int, source: str | None
) -> str:
    """Decay and output gate through a rank of one head (Kimi delta attention)."""
    keys, tokens = (convolved - values) // 2, b.tokens
    down = b.add(
        b.weight("gates_down", tokens, 2 * mixer.value_dim, b.model.hidden), "qkv", source
    )
    return b.add(b.weight("gates_up", tokens, keys + values, mixer.value_dim), "qkv", down)
