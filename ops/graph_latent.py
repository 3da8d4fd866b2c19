"""Latent attention as operators: expanded or absorbed in prefill, absorbed in decode.

Expanded, the cached latents of the whole context become keys and values of every head
again, each time a chunk needs them. Absorbed, queries move into the latent space and all
heads share one row per token. Prefill is in either form: expanded has fewer FLOPs a pair,
absorbed does not make a long prefix's rows again. The indexer of sparse attention scores
every token first at every length: expanded it computes every pair and masks, absorbed it
reads what was picked. In one form scores add up over chunks, and a step never gets cheaper
where its context outgrows what a query may read; so neither does the faster of the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.ops.operators import (
    AllGather,
    AllToAll,
    Attention,
    Elementwise,
    Indexer,
    LatentAttention,
)
from chipsim.ops.pairs import attention_pairs

if TYPE_CHECKING:
    from chipsim.ops.graph_builder import Builder, Part
    from chipsim.ops.layers import Latent
    from chipsim.ops.parts import IndexerPart


def add_latent(b: Builder, mixer: Latent, source: str | None) -> str:
    """Projections, latent attention of every part of the step, output projection."""
    heads = mixer.heads // b.plan.tp
    query, latent = _add_projections(b, mixer, heads, source)
    mixed = add_latent_parts(b, mixer, query, latent)
    width = heads * mixer.v_head_dim
    return b.add(
        b.weight("output_projection", b.tokens, b.model.hidden, width), "output", *mixed
    )


def add_latent_parts(
    b: Builder, mixer: Latent, query: str | None, latent: str | None
) -> list[str]:
    """Attention of every part of the step, in its form; the last node of each."""
    form = b.latent or ("expanded" if mixer.indexer is None else "absorbed")
    mixed = []
    for index, part in enumerate(b.parts):
        suffix, picks = "_decode" if index else "", []
        if mixer.indexer is not None:
            picks = [_add_indexer(b, mixer.indexer, part, suffix, query, latent)]
        if form == "absorbed" or part.segment.kind == "decode":
            made = _add_absorbed(b, mixer, part, suffix, query, latent, *picks)
        else:
            made = _add_expanded(b, mixer, part, suffix, query, latent, *picks)
        mixed.append(made)
    return mixed


def _add_projections(
    b: Builder, mixer: Latent, heads: int, source: str | None
) -> tuple[str, str]:
    """Down to the latents, their norms, up to the queries, rotary: queries and latent row."""
    hidden, tokens = b.model.hidden, b.tokens
    width = heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim)
    indexer = mixer.indexer
    beside = 0 if indexer is None else indexer.head_dim + indexer.heads
    down_width = mixer.row + beside + (mixer.q_lora_rank or width)
    down = b.add(b.weight("latent_down", tokens, down_width, hidden), "qkv", source)
    row = b.add(b.norm("latent_norm", tokens, mixer.kv_lora_rank), "norm", down)
    query = down
    if mixer.q_lora_rank is not None:
        normed = b.add(b.norm("query_norm", tokens, mixer.q_lora_rank), "norm", down)
        query = b.add(b.weight("query_up", tokens, width, mixer.q_lora_rank), "qkv", normed)
    turned = tokens * (heads + 1) * mixer.qk_rope_head_dim
    turn = Elementwise(f"{b.prefix}rotary", turned, b.vector, 1, 1, 3)
    return b.add(turn, "elementwise", query, down), row


def _add_expanded(
    b: Builder,
    mixer: Latent,
    part: Part,
    suffix: str,
    query: str | None,
    latent: str | None,
    *picks: str,
) -> str:
    """Keys and values of every head from the latents of the whole context, then attention.

    Where an indexer ``picks``, all are computed and those that it left out are masked: what
    a mask costs is in its own pass over the scores.
    """
    segment, heads = part.segment, mixer.heads // b.plan.tp
    rows, context = segment.batch * segment.context, segment.context
    if b.plan.cp > 1:
        latent = _add_gathered(b, mixer, part, suffix, latent)
        context = part.spread
    width = heads * (mixer.qk_nope_head_dim + mixer.v_head_dim)
    up = b.weight(f"latent_up{suffix}", rows, width, mixer.kv_lora_rank)
    expanded = b.add(up, "attention", latent)
    operator = Attention(
        f"{b.prefix}attention{suffix}",
        segment.batch,
        heads,
        heads,
        mixer.qk_nope_head_dim + mixer.qk_rope_head_dim,
        mixer.v_head_dim,
        part.query,
        context,
        q_format=b.activations,
        kv_format=b.activations,
        accumulate=b.precision.accumulate,
    )
    return b.add(operator, "attention", query, expanded, *picks)


def _add_absorbed(
    b: Builder,
    mixer: Latent,
    part: Part,
    suffix: str,
    query: str | None,
    *after: str | None,
) -> str:
    """Queries into the latent space, attention over the rows, results out of it."""
    heads, segment, tokens = mixer.heads // b.plan.tp, part.segment, part.tokens
    rank, context, shared = mixer.kv_lora_rank, segment.context, heads
    absorb = b.weight(f"query_absorb{suffix}", tokens, rank, mixer.qk_nope_head_dim, heads)
    queries = b.add(absorb, "attention", query)
    split = segment.kind == "decode" and b.plan.dcp > 1
    if split:
        shared = heads * b.plan.dcp
        context = max(part.query, -(-context // b.plan.dcp))
        size = b.size(tokens * shared * mixer.row)
        queries = b.exchange(AllGather, f"gather_queries{suffix}", size, "dcp", queries)
    elif segment.kind == "prefill" and b.plan.cp > 1:
        after = (_add_gathered(b, mixer, part, suffix, *after),)
        context = part.spread
    operator = LatentAttention(
        f"{b.prefix}attention{suffix}",
        segment.batch,
        shared,
        rank,
        mixer.qk_rope_head_dim,
        part.query,
        context,
        0 if mixer.indexer is None else mixer.indexer.top_k,
        b.activations,
        b.precision.kv,
        b.precision.rotary,
        b.precision.accumulate,
    )
    mixed = b.add(operator, "attention", queries, *after)
    if split:
        size = b.size(tokens * shared * rank)
        mixed = b.exchange(AllToAll, f"merge_heads{suffix}", size, "dcp", mixed)
    up = b.weight(f"value_up{suffix}", tokens, mixer.v_head_dim, rank, heads)
    return b.add(up, "attention", mixed)


def _add_indexer(
    b: Builder,
    indexer: IndexerPart,
    part: Part,
    suffix: str,
    query: str | None,
    latent: str | None,
) -> str:
    """Queries of the indexer, scores of every token that is seen, and the best of them."""
    segment, model = part.segment, b.model
    source = getattr(model.attention, "q_lora_rank", None) or model.hidden
    width = indexer.heads * indexer.head_dim
    queries = b.add(
        b.weight(f"index_query{suffix}", part.tokens, width, source), "indexer", query
    )
    context = segment.context
    if segment.kind == "prefill" and b.plan.cp > 1:
        context = part.spread
    elif segment.kind == "decode" and b.plan.dcp > 1:
        context = max(part.query, -(-context // b.plan.dcp))
    operator = Indexer(
        f"{b.prefix}index_scores{suffix}",
        segment.batch,
        indexer.heads,
        indexer.head_dim,
        part.query,
        context,
        b.precision.indexer,
        b.precision.indexer,
        b.precision.accumulate,
    )
    scored = b.add(operator, "indexer", queries, latent)
    # One pass over the scores: compare with a threshold, keep.
    pairs = segment.batch * attention_pairs(part.query, context)
    best = Elementwise(f"{b.prefix}index_top_k{suffix}", pairs, "fp32", 1, 0, 2)
    return b.add(best, "indexer", scored)


def _add_gathered(
    b: Builder, mixer: Latent, part: Part, suffix: str, *after: str | None
) -> str:
    """Latent rows of a prompt, gathered over the context-parallel chips."""
    rows = part.segment.batch * part.segment.query
    size = b.size(rows * mixer.kv_lora_rank, b.precision.kv)
    size += b.size(rows * mixer.qk_rope_head_dim, b.precision.rotary)
    return b.exchange(AllGather, f"gather_keys{suffix}", size, "cp", *after)
