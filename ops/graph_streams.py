"""Parallel residual streams as operators (DeepSeek-V4's hyper-connections).

Before a block its streams give, in one product, the weights that gather them into the
block's input, spread its output over them and mix them; after it they are written anew.
Every chip of a tensor-parallel group does all of it. The streams' common scale (an RMS
without weights) is part of the gathering, as fused kernels have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.ops.compressed import stream_columns
from chipsim.ops.operators import Elementwise

if TYPE_CHECKING:
    from chipsim.ops.graph_builder import Builder

BALANCING_FLOPS = 80
"""FLOP per mixing weight: 20 rounds in which rows and columns are summed and divided."""


def add_gathering(
    b: Builder, streams: int, rows: int, block: str, source: str | None, *, last: bool = False
) -> str:
    """Weights of the streams, and their weighted sum (``last``: nothing is spread again)."""
    columns = streams if last else stream_columns(streams)
    product = b.weight(f"stream_weights_{block}", rows, columns, streams * b.model.hidden)
    weights = b.add(product, "elementwise", source)
    if not last:
        name = f"{b.prefix}stream_balance_{block}"
        balance = Elementwise(name, rows * streams**2, "fp32", 1, 1, BALANCING_FLOPS)
        weights = b.add(balance, "elementwise", weights)
    # A product and a sum per stream, and as much for the squares of their scale.
    name, elements = f"{b.prefix}stream_gather_{block}", rows * b.model.hidden
    gather = Elementwise(name, elements, b.activations, streams, 1, 4 * streams)
    return b.add(gather, "elementwise", weights, source)


def add_mixing(b: Builder, streams: int, block: str, output: str, source: str | None) -> str:
    """A block's output spread over the streams, which are mixed with each other."""
    name, elements = f"{b.prefix}stream_mix_{block}", b.tokens * b.model.hidden
    flops = 2 * streams * (streams + 1)
    mix = Elementwise(name, elements, b.activations, streams + 1, streams, flops)
    return b.add(mix, "elementwise", output, source)
