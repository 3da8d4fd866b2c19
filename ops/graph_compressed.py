"""Attention over compressed rows as operators (DeepSeek-V4).

One product gives the query latent, the row and what is compressed. A query sees the rows
of its window, and before them compressed ones: all, or those that an indexer picks. One
row is key and value of all heads. Context-parallel chips gather compressed rows and the
window before their tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.ops.compressed import down_width
from chipsim.ops.operators import AllGather, Elementwise, Indexer, LatentAttention
from chipsim.ops.pairs import strided_pairs

if TYPE_CHECKING:
    from chipsim.ops.graph_builder import Builder, Part
    from chipsim.ops.layers import Compressed
    from chipsim.ops.parts import IndexerPart

POOLING_FLOPS = 6
"""FLOP per key that goes into a compressed row: bias, exponential, sum, quotient, product
with the gate's weight, sum."""


def add_compressed(b: Builder, mixer: Compressed, source: str | None) -> str:
    """Projections, compression, attention of every part of the step, output in groups."""
    heads, tp = mixer.heads // b.plan.tp, b.plan.tp
    query, row, latent = _add_projections(b, mixer, heads, source)
    mixed: list[str | None] = []
    for index, part in enumerate(b.parts):
        suffix, after = "_decode" if index else "", [row]
        if b.plan.cp > 1 and part.segment.kind == "prefill":
            after = [_add_gathered(b, mixer, part, suffix, row)]
        mixed.append(_add_window(b, mixer, part, suffix, query, *after))
        context = _context(b, part)
        if mixer.ratio and context >= mixer.ratio:
            if mixer.indexer is not None:
                after = [_add_picks(b, mixer, mixer.indexer, part, suffix, latent, *after)]
            mixed.append(_add_rows(b, mixer, part, suffix, query, *after))
    turned = b.tokens * heads * mixer.rotary_dim
    turn = Elementwise(f"{b.prefix}rotary_back", turned, b.vector, 1, 1, 3)
    last = b.add(turn, "elementwise", *mixed)
    groups, rank = mixer.output_groups // tp, mixer.output_rank
    width = heads * mixer.head_dim // groups
    down = b.weight("output_groups", b.tokens, rank, width, groups)
    last = b.add(down, "output", last)
    up = b.weight("output_projection", b.tokens, b.model.hidden, groups * rank)
    return b.add(up, "output", last)


def _add_projections(
    b: Builder, mixer: Compressed, heads: int, source: str | None
) -> tuple[str, str, str]:
    """The nodes that queries, rows, and the query latent come from."""
    tokens, width = b.tokens, mixer.head_dim
    down = b.weight("latent_down", tokens, down_width(mixer), b.model.hidden)
    made = b.add(down, "qkv", source)
    row = b.add(b.norm("row_norm", tokens, width), "norm", made)
    latent = b.add(b.norm("query_norm", tokens, mixer.q_lora_rank), "norm", made)
    up = b.weight("query_up", tokens, heads * width, mixer.q_lora_rank)
    query = b.add(up, "qkv", latent)
    query = b.add(b.norm("head_norm", tokens * heads, width), "norm", query)
    turned = tokens * (heads + 1) * mixer.rotary_dim
    turn = Elementwise(f"{b.prefix}rotary", turned, b.vector, 1, 1, 3)
    query = b.add(turn, "elementwise", query, row)
    if mixer.ratio:
        widths = width + (0 if mixer.indexer is None else mixer.indexer.head_dim)
        name = f"{b.prefix}compression"
        # Key and gate are read; what is written is a row for many tokens.
        pool = Elementwise(name, tokens * mixer.series * widths, b.vector, 2, 0, POOLING_FLOPS)
        row = b.add(pool, "elementwise", row)
    return query, row, latent


def _context(b: Builder, part: Part) -> int:
    """Context that gives a context-parallel chip its share of the causal pairs."""
    if b.plan.cp > 1 and part.segment.kind == "prefill":
        return part.spread
    return part.segment.context


def _add_window(
    b: Builder, mixer: Compressed, part: Part, suffix: str, query: str, *after: str
) -> str:
    context = min(_context(b, part), mixer.window + part.query - 1)
    operator = LatentAttention(
        f"{b.prefix}window_attention{suffix}",
        part.segment.batch,
        mixer.heads // b.plan.tp,
        mixer.head_dim,
        0,
        part.query,
        context,
        0,
        b.activations,
        b.precision.kv,
        accumulate=b.precision.accumulate,
        window=mixer.window,
    )
    return b.add(operator, "attention", query, *after)


def _add_rows(
    b: Builder, mixer: Compressed, part: Part, suffix: str, query: str, *after: str
) -> str:
    operator = LatentAttention(
        f"{b.prefix}attention{suffix}",
        part.segment.batch,
        mixer.heads // b.plan.tp,
        mixer.head_dim,
        0,
        part.query,
        _context(b, part),
        0 if mixer.indexer is None else mixer.indexer.top_k,
        b.activations,
        b.precision.kv,
        accumulate=b.precision.accumulate,
        stride=mixer.ratio,
    )
    return b.add(operator, "attention", query, *after)


def _add_picks(
    b: Builder,
    mixer: Compressed,
    indexer: IndexerPart,
    part: Part,
    suffix: str,
    latent: str,
    *after: str,
) -> str:
    """Queries of the indexer, scores of every compressed key, and the best of them."""
    width, context = indexer.heads * indexer.head_dim, _context(b, part)
    up = b.weight(f"index_query{suffix}", part.tokens, width, mixer.q_lora_rank)
    queries = b.add(up, "indexer", latent)
    operator = Indexer(
        f"{b.prefix}index_scores{suffix}",
        part.segment.batch,
        indexer.heads,
        indexer.head_dim,
        part.query,
        context,
        b.precision.indexer,
        b.precision.indexer,
        b.precision.accumulate,
        mixer.ratio,
    )
    scored = b.add(operator, "indexer", queries, *after)
    pairs = part.segment.batch * strided_pairs(part.query, context, mixer.ratio)
    best = Elementwise(f"{b.prefix}index_top_k{suffix}", max(1, pairs), "fp32", 1, 0, 2)
    return b.add(best, "indexer", scored)


def _add_gathered(b: Builder, mixer: Compressed, part: Part, suffix: str, row: str) -> str:
    """Compressed rows of the prompt, and the window before each chip's tokens."""
    segment, size = part.segment, 0.0
    if mixer.ratio:
        rows = segment.batch * segment.query / mixer.ratio
        size += b.size(rows * mixer.head_dim, b.precision.kv)
        if mixer.indexer is not None:
            size += b.size(rows * mixer.indexer.head_dim, b.precision.indexer)
    edges = segment.batch * min(mixer.window, part.query) * b.plan.cp
    size += b.size(edges * mixer.head_dim, b.precision.kv)
    return b.exchange(AllGather, f"gather_keys{suffix}", size, "cp", row)
