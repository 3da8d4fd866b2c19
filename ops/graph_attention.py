"""Attention of a layer as operators: softmax attention over keys and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.ops.graph_compressed import add_compressed
from chipsim.ops.graph_latent import add_latent, add_latent_parts
from chipsim.ops.graph_linear import add_linear, add_scan, add_short_conv
from chipsim.ops.layers import Compressed, Grouped, Latent, Linear, Scan
from chipsim.ops.operators import (
    Activation,
    AllGather,
    AllToAll,
    Attention,
    Elementwise,
    Norm,
    Softmax,
)
from chipsim.ops.parameters import kv_heads_per_chip, qkv_width

if TYPE_CHECKING:
    from chipsim.ops.graph_builder import Builder, Nodes, Part
    from chipsim.ops.layers import Mixer


def add_mixer(b: Builder, mixer: Mixer, source: str | None) -> str:
    """Projections, the mixer itself and its output projection; the last node's name.

    The output is a partial sum wherever tensor parallelism splits the heads.
    """
    if isinstance(mixer, Grouped):
        return _add_grouped(b, mixer, source)
    if isinstance(mixer, Latent):
        return add_latent(b, mixer, source)
    if isinstance(mixer, Compressed):
        return add_compressed(b, mixer, source)
    if isinstance(mixer, Linear):
        return add_linear(b, mixer, source)
    if isinstance(mixer, Scan):
        return add_scan(b, mixer, source)
    return add_short_conv(b, mixer, source)


def add_sequences(b: Builder, mixer: Mixer) -> None:
    """Of `add_mixer` what goes with the lengths of sequences, and in rare mixers the rest."""
    if isinstance(mixer, Grouped):
        _add_parts(b, mixer, (), ())
    elif isinstance(mixer, Latent):
        add_latent_parts(b, mixer, None, None)
    else:
        add_mixer(b, mixer, None)


def _add_grouped(b: Builder, mixer: Grouped, source: str | None) -> str:
    queries, cached = _add_qkv(b, mixer, source)
    mixed = _add_parts(b, mixer, queries, cached)
    width = mixer.heads // b.plan.tp * mixer.value_dim
    if mixer.output_gate:
        gate = Activation(
            f"{b.prefix}output_gate", b.tokens * width, b.vector, "silu", gated=True
        )
        mixed = [b.add(gate, "activation", *mixed)]
    projection = b.weight("output_projection", b.tokens, b.model.hidden, width)
    output = b.add(projection, "output", *mixed)
    if mixer.beside is None:
        return output
    other = add_linear(b, mixer.beside, source, "linear_output")
    both = b.elementwise("sum_mixers", b.tokens * b.model.hidden, 2, 1)
    return b.add(both, "elementwise", output, other)


def _add_parts(b: Builder, mixer: Grouped, queries: Nodes, cached: Nodes) -> list[str]:
    """Attention of every part of the step."""
    return [
        _add_attention(b, mixer, part, "_decode" if index else "", queries, cached)
        for index, part in enumerate(b.parts)
    ]


def _add_qkv(b: Builder, mixer: Grouped, source: str | None) -> tuple[list[str], list[str]]:
    """Projections and rotary; the nodes that queries and keys, and values, come from."""
    hidden, tp = b.model.hidden, b.plan.tp
    kv_heads = 0 if mixer.shares_cache else kv_heads_per_chip(mixer, tp)
    if b.fused_qkv:
        gemm = b.weight("qkv", b.tokens, qkv_width(mixer, tp), hidden)
        rotated = values = [b.add(gemm, "qkv", source)]
    else:
        key, value = kv_heads * mixer.head_dim, kv_heads * mixer.value_dim
        keys = 0 if mixer.shares_cache else key
        widths = {"query": qkv_width(mixer, tp) - keys, "key": keys, "value": value}
        if mixer.keys_are_values:
            widths["value"] = 0
        widths["query"] -= widths["value"]
        made = [
            b.add(b.weight(name, b.tokens, width, hidden), "qkv", source)
            for name, width in widths.items()
            if width
        ]
        rotated, values = made[:2], made[2:] or made[-1:]
    heads = mixer.heads // tp
    width = (heads + kv_heads) * mixer.head_dim
    if mixer.qk_norm != "none":
        rotated = [b.add(_qk_norm(b, mixer, heads + kv_heads), "norm", *rotated)]
    if b.model.position == "rotary":
        # Two products and a sum per element of query and key, written in place.
        turn = Elementwise(f"{b.prefix}rotary", b.tokens * width, b.vector, 1, 1, 3)
        rotated = [b.add(turn, "elementwise", *rotated)]
    return rotated, values


def _qk_norm(b: Builder, mixer: Grouped, heads: int) -> Norm:
    rows, columns = b.tokens * heads, mixer.head_dim
    if mixer.qk_norm == "width":
        rows, columns = b.tokens, heads * mixer.head_dim
    return b.norm("qk_norm", rows, columns)


def _add_attention(
    b: Builder, mixer: Grouped, part: Part, suffix: str, queries: Nodes, values: Nodes
) -> str:
    """Attention of equal sequences; over context-parallel chips with what they exchange."""
    batch = part.segment.batch
    heads, kv_heads = mixer.heads // b.plan.tp, kv_heads_per_chip(mixer, b.plan.tp)
    query, context = part.query, part.segment.context
    if part.segment.kind == "prefill" and b.plan.cp > 1:
        rows = part.segment.batch * part.segment.query
        width = kv_heads * (mixer.head_dim + mixer.value_dim)
        size, name = b.size(rows * width, b.precision.kv), f"gather_keys{suffix}"
        queries = values = [b.exchange(AllGather, name, size, "cp", *queries, *values)]
        context = part.spread
    elif part.segment.kind == "decode" and b.plan.dcp > 1:
        heads *= b.plan.dcp
        context = max(query, -(-context // b.plan.dcp))
        size = b.size(part.tokens * heads * mixer.head_dim)
        queries = [b.exchange(AllGather, f"gather_queries{suffix}", size, "dcp", *queries)]
    if b.fused_attention:
        operator = Attention(
            f"{b.prefix}attention{suffix}",
            batch,
            heads,
            kv_heads,
            mixer.head_dim,
            mixer.value_dim,
            query,
            context,
            b.causal,
            mixer.window if b.causal else 0,
            b.activations,
            b.precision.kv,
            b.precision.accumulate,
        )
        mixed = b.add(operator, "attention", *queries, *values)
    else:
        seen = min(context, mixer.window + query - 1) if mixer.window else context
        mixed = _add_unfused(
            b, mixer, (batch, heads, kv_heads, query, seen), suffix, queries, values
        )
    if part.segment.kind == "decode" and b.plan.dcp > 1:
        size = b.size(part.tokens * heads * mixer.value_dim)
        mixed = b.exchange(AllToAll, f"merge_heads{suffix}", size, "dcp", mixed)
    return mixed


def _add_unfused(
    b: Builder,
    mixer: Grouped,
    sizes: tuple[int, int, int, int, int],
    suffix: str,
    queries: Nodes,
    values: Nodes,
) -> str:
    """Scores, softmax and values apart, over the full rectangle of queries and context."""
    batch, heads, kv_heads, query, context = sizes
    rows, products = query * (heads // kv_heads), batch * kv_heads
    kv = b.precision.kv
    scores = b.product(f"scores{suffix}", rows, context, mixer.head_dim, products, kv)
    scored = b.add(scores, "attention", *queries)
    name = f"{b.prefix}softmax{suffix}"
    softmax = Softmax(name, batch * heads * query, context, b.vector)
    weights = b.add(softmax, "softmax", scored)
    mixed = b.product(f"values{suffix}", rows, mixer.value_dim, context, products, kv)
    return b.add(mixed, "attention", weights, *values)
