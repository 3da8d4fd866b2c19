"""Operators as kernels read them: sizes, bytes of elements, and how their units compute.

operator + conversion -> Shape of `chipsim.kernels.gemm`, AttentionShape of `.attention`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.errors import ConfigError
from chipsim.kernels.attention_tiles import AttentionShape, folded
from chipsim.kernels.gemm import Shape
from chipsim.ops.formats import get_format
from chipsim.ops.operators import Attention, Gemm, Indexer, LatentAttention

if TYPE_CHECKING:
    from chipsim.conversion import Conversion
    from chipsim.execution import Narrow

Attentions = Attention | LatentAttention | Indexer
"""Operators that attention's kernels compute."""


def gemm_shape(op: Gemm, how: Conversion, narrow: Narrow) -> Shape:
    """A product, under the block's kernels for its formats."""
    a, b, c, sums = (
        get_format(form).bytes
        for form in (op.a_format, op.b_format, op.c_format, op.accumulate)
    )
    kernel = (*narrow.tiles, narrow.raster == "lines")
    return Shape(
        op.m, op.n, op.k, op.batch, a, b, c, how.macs, op.b_is_weight, sums, *kernel
    )  # fmt: skip


MOST_QUERIES = 2**24
"""New tokens of a sequence: a kernel walks their tiles one by one."""


def attention_shapes(op: Attentions, how: Conversion) -> tuple[AttentionShape, ...]:
    """Kernels that compute the same attention: the fastest is what runs.

    Raises
    ------
    ConfigError
        More queries than a kernel walks.
    """
    if op.query > MOST_QUERIES:
        raise ConfigError(op.name or op.kind, "query", op.query, f"at most {MOST_QUERIES}")
    if isinstance(op, Attention):
        return (_fused(op, how),)
    if isinstance(op, LatentAttention):
        return _latent(op, how)
    return (_indexer(op, how),)


def _fused(op: Attention, how: Conversion) -> AttentionShape:
    return AttentionShape(
        op.batch,
        op.q_heads,
        op.kv_heads,
        op.head_dim,
        op.value_dim,
        op.query,
        op.context,
        op.causal,
        op.window,
        get_format(op.q_format).bytes,
        get_format(op.kv_format).bytes,
        how.macs,
        sum_bytes=get_format(op.accumulate).bytes,
    )


def _latent(op: LatentAttention, how: Conversion) -> tuple[AttentionShape, ...]:
    """One row per token for all heads: multi-query attention that reads a row once.

    Sparse, two kernels: each query gathers its rows, or all rows are read in order and
    those not picked are masked (DeepSeek-V3.2 does so where short).
    """
    shape = AttentionShape(
        op.batch,
        op.heads,
        1,
        op.latent + op.rotary,
        op.latent,
        op.query,
        op.context,
        True,
        op.window,
        get_format(op.q_format).bytes,
        get_format(op.kv_format).bytes,
        how.macs,
        op.row_bytes,
        op.top_k,
        sum_bytes=get_format(op.accumulate).bytes,
    )
    dense = folded(shape._replace(top_k=0), op.stride)
    return (folded(shape, op.stride), dense) if op.top_k else (dense,)


def _indexer(op: Indexer, how: Conversion) -> AttentionShape:
    """Scores alone, every one written."""
    keys = get_format(op.key_format).bytes
    shape = AttentionShape(
        op.batch,
        op.heads,
        1,
        op.head_dim,
        0,
        op.query,
        op.context,
        True,
        0,
        get_format(op.q_format).bytes,
        keys,
        how.macs,
        op.head_dim * keys,
        0,
        False,
        op.stores,
    )
    return folded(shape, op.stride)
