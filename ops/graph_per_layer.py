"""Inputs that every token brings to every layer, as operators (Gemma 4's embeddings).

Every chip of a tensor-parallel group does all of it: the published plan does not split it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.ops.operators import Activation

if TYPE_CHECKING:
    from chipsim.ops.graph_builder import Builder


def add_per_layer_inputs(b: Builder, source: str) -> str:
    """Rows of all layers from their table, and the embedding projected to as many."""
    part, layers = b.model.per_layer, b.model.layers
    if part is None:
        return source
    wide = layers * part.width
    rows = b.elementwise("per_layer_rows", b.tokens * wide, 1, 0)
    looked_up = b.add(rows, "embedding", source)
    projection = b.weight("per_layer_projection", b.tokens, wide, b.model.hidden, module="mlp")
    projected = b.add(projection, "embedding", source)
    norm = b.norm("per_layer_norm", b.tokens * layers, part.width)
    normed = b.add(norm, "norm", projected)
    total = b.elementwise("per_layer_sum", b.tokens * wide, 2, 1)
    return b.add(total, "elementwise", looked_up, normed)


def add_per_layer(b: Builder, source: str) -> str:
    """A layer's own input: gate down, product, projection up, norm, residual."""
    part, hidden = b.model.per_layer, b.model.hidden
    if part is None:
        return source
    down = b.weight("per_layer_gate", b.tokens, part.width, hidden, module="mlp")
    gate = b.add(down, "mlp", source)
    name = f"{b.prefix}per_layer_activation"
    product = Activation(name, b.tokens * part.width, b.vector, b.model.activation, True)
    active = b.add(product, "activation", gate)
    up = b.weight("per_layer_up", b.tokens, hidden, part.width, module="mlp")
    wide = b.add(up, "mlp", active)
    normed = b.add(b.norm("norm_per_layer", b.tokens), "norm", wide)
    residual = b.elementwise("residual_per_layer", b.tokens * hidden, 2, 1)
    return b.add(residual, "elementwise", normed, source)
