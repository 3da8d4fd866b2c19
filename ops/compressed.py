"""Sizes and parameters of attention over compressed rows, and of parallel residual streams.

As the published module of DeepSeek-V4 has them (transformers 5, Apache-2.0): under tensor
parallelism heads and groups of outputs are split; the row, its compression and the indexer
stand on every chip, and so do the streams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipsim.ops.layers import Compressed


def down_width(mixer: Compressed) -> int:
    """Columns of the projections of the input: query latent, row, and what is compressed.

    Compressed are keys and gates, of the row and of the indexer's key; an indexer has a
    weight per head beside.
    """
    width = mixer.q_lora_rank + mixer.head_dim
    if mixer.ratio:
        width += 2 * mixer.series * mixer.head_dim
    if mixer.indexer is not None:
        width += 2 * mixer.series * mixer.indexer.head_dim + mixer.indexer.heads
    return width


def compressed_parameters(hidden: int, mixer: Compressed, tp: int = 1) -> int:
    """Projections, norms, sinks and compression; the indexer left out."""
    heads, width = mixer.heads // tp, mixer.head_dim
    count = mixer.q_lora_rank * (hidden + 1 + heads * width) + (hidden + 1) * width + heads
    count += heads * width * mixer.output_rank
    count += mixer.output_groups // tp * mixer.output_rank * hidden
    return count + _pooling(hidden, mixer, width)


def picking_parameters(hidden: int, mixer: Compressed) -> int:
    """Of an indexer: queries from the query latent, head weights, compressed keys."""
    indexer = mixer.indexer
    if indexer is None:
        return 0
    queries = mixer.q_lora_rank * indexer.heads * indexer.head_dim
    return queries + hidden * indexer.heads + _pooling(hidden, mixer, indexer.head_dim)


def _pooling(hidden: int, mixer: Compressed, width: int) -> int:
    """Keys and gates of every series, a bias per place in a row, a norm of the row."""
    if not mixer.ratio:
        return 0
    return mixer.series * width * (2 * hidden + mixer.ratio) + width


def stream_columns(streams: int) -> int:
    """Weights that a block derives: to gather, to spread and to mix its streams."""
    return (2 + streams) * streams


def stream_parameters(hidden: int, streams: int | None) -> int:
    """Of one block: a projection of all streams to those weights, a bias, three scales."""
    if streams is None:
        return 0
    return stream_columns(streams) * (streams * hidden + 1) + 3


def stream_head_parameters(hidden: int, streams: int | None) -> int:
    """Of the last gathering: a weight for each stream, its bias, one scale."""
    return 0 if streams is None else streams * (streams * hidden + 1) + 1
