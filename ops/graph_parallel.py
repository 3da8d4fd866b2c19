"""Exchanges that a plan puts between the operators of a layer, as lists to be chained.

========================== ============ ====================================================
node                       group        when
========================== ============ ====================================================
all_reduce_attention, _mlp tp           sums of split products
all_gather_kv              cp, dcp      prefill: keys and values of the other ranks' tokens
all_gather_query           dcp          decode: queries of the heads whose rows are shared
reduce_scatter_attention   dcp          decode: their results back, merged
dispatch, combine          stage        tokens of several ranks to their experts and back
all_gather_tokens          cp x dp      the same where every chip holds a part of each expert
reduce_scatter_experts     cp x dp      … and their sums back
all_gather_experts         tp           what each tp chip combined, to all of them
send_stage                 pp           activations to the next pipeline stage
========================== ============ ====================================================

``tokens`` are always those of one data- and context-parallel rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from chipsim.ops.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Collective,
    ReduceScatter,
    SendRecv,
    expert_copies,
)
from chipsim.ops.formats import get_format

if TYPE_CHECKING:
    from chipsim.ops.plan import Parallelism

Chain = list[Collective]

LSE_BYTES = 4
"""One log-sum-exp in fp32 goes with every partial result of attention."""


class Exchange(NamedTuple):
    """What runs before and after the part that it surrounds."""

    before: Chain
    after: Chain


def summed(name: str, elements: float, format_name: str, plan: Parallelism) -> Chain:
    """Partial sums of the tp chips to whole ones: ``all_reduce_attention``, ``_mlp``."""
    if plan.tp == 1:
        return []
    return [AllReduce(name, elements * get_format(format_name).bytes, plan.tp)]


def experts_exchange(
    tokens: int,
    width: int,
    experts: int,
    top_k: int,
    format_name: str,
    plan: Parallelism,
) -> Exchange:
    """Tokens to their experts and results back, drawn evenly.

    With one data- and context-parallel rank every chip of the stage has all tokens: each
    runs its own experts and `summed` over tp adds the results up, so nothing is here.

    Parameters
    ----------
    tokens : int
        Tokens of one rank; its tp chips each have them all, and send an equal part.
    width : int
        Elements of a token as it travels.
    """
    ranks = plan.cp * plan.dp
    if ranks == 1:
        return Exchange([], [])
    size = tokens * width * get_format(format_name).bytes
    if plan.ep == 1:
        group = (ranks, plan.tp)
        return Exchange(
            [AllGather("all_gather_tokens", size * ranks, *group)],
            [ReduceScatter("reduce_scatter_experts", size * ranks, *group)],
        )
    copies = expert_copies(experts, top_k, plan.ep) * plan.expert_tp
    sent, chips = size / plan.tp * copies, plan.stage_chips
    after: Chain = [AllToAll("combine", sent, chips)]
    if plan.tp > 1:
        after.append(AllGather("all_gather_experts", size, plan.tp))
    return Exchange([AllToAll("dispatch", sent, chips)], after)


def expert_tokens(tokens: int, plan: Parallelism) -> int:
    """Tokens that the experts of a stage see in a step: those of all its ranks."""
    return tokens * plan.cp * plan.dp


def gathered_cache(batch: int, context: int, row_bytes: float, plan: Parallelism) -> Chain:
    """Prefill under cp: the rows of every rank's tokens to all of them (``all_gather_kv``).

    Parameters
    ----------
    context : int
        Tokens of each sequence, the prefix included.
    row_bytes : float
        Cached bytes of a token in this layer on one chip.
    """
    if plan.cp == 1 or row_bytes == 0.0:
        return []
    return [AllGather("all_gather_kv", batch * context * row_bytes, *plan.group("cp"))]


def gathered_prefix(batch: int, prefix: int, row_bytes: float, plan: Parallelism) -> Chain:
    """Prefill after a prefix whose rows the tp chips have split (``dcp``)."""
    if plan.dcp == 1 or prefix == 0 or row_bytes == 0.0:
        return []
    return [AllGather("all_gather_kv", batch * prefix * row_bytes, *plan.group("dcp"))]


def split_rows(
    rows: int, heads: int, query_dim: int, value_dim: int, format_name: str, plan: Parallelism
) -> Exchange:
    """Decode where dcp chips split the cached rows: heads gathered before, merged after.

    Parameters
    ----------
    rows : int
        Query tokens of the rank.
    heads : int
        Query heads of the ``dcp`` chips together; each attends to its part of the rows
        with all of them.
    query_dim, value_dim : int
        Elements of a head's query, and of its result, as attention takes and gives them.
    """
    if plan.dcp == 1:
        return Exchange([], [])
    each = get_format(format_name).bytes
    queries = rows * heads * query_dim * each
    results = rows * heads * (value_dim * each + LSE_BYTES)
    group = plan.group("dcp")
    return Exchange(
        [AllGather("all_gather_query", queries, *group)],
        [ReduceScatter("reduce_scatter_attention", results, *group)],
    )


def held_context(context: int, plan: Parallelism) -> int:
    """Cached tokens of a sequence that the fullest of the dcp chips holds."""
    return -(-context // plan.dcp)


def zigzag(query: int, context: int, cp: int) -> list[tuple[int, int]]:
    """A rank's part of a causal prompt: an early and a late slice, as (query, context).

    The 2 cp slices of a prompt are dealt out so that every rank has as many pairs
    of query and key; the first rank's are returned (all are alike up to rounding).

    Examples
    --------
    >>> zigzag(4096, 4096, 4)
    [(512, 512), (512, 4096)]
    """
    if cp == 1:
        return [(query, context)]
    if query < 2 * cp:
        return [(-(-query // cp), context)]
    part = -(-query // (2 * cp))
    return [(part, context - query + part), (part, context)]


def rank_query(query: int, cp: int) -> int:
    """Prompt tokens of each sequence whose linear layers one cp rank runs."""
    return sum(part for part, _ in zigzag(query, query, cp))


def stage_exchange(tokens: int, width: int, format_name: str, plan: Parallelism) -> Chain:
    """Activations to the next stage, each tp chip a part (``send_stage``); pp - 1 times."""
    if plan.pp == 1:
        return []
    size = tokens * width * get_format(format_name).bytes / plan.tp
    after: Chain = [SendRecv("send_stage", size, 2, plan.group("pp")[1])]
    if plan.tp > 1:
        after.append(AllGather("all_gather_stage", size * plan.tp, plan.tp))
    return after
