"""What an operator asks of each level of a chip: multiply-accumulates, FLOP, bytes.

estimate (operator and mapping) -> `Work`; `chipsim.cost.energy` puts joules to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from chipsim.conversion import product_conversion
from chipsim.kernels.grouped import ROUNDING
from chipsim.ops.formats import get_format
from chipsim.ops.operators import (
    Attention,
    Collective,
    Gemm,
    GroupedGemm,
    Indexer,
    LatentAttention,
    Recurrence,
)
from chipsim.ops.recurrence import STEP_FLOPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from chipsim.chip import Chip
    from chipsim.conversion import Product
    from chipsim.estimates import Estimate
    from chipsim.ops.operators import Operator

EXPONENTIAL_FLOPS = 4.0
"""Vector FLOP of an exponential, as `chipsim.execution.Execution` has unless told otherwise."""

SOFTMAX_FLOPS = 6.0
"""Vector FLOP of a score of fused attention beside its exponential (`kernels.attention`)."""


@dataclass(frozen=True, slots=True)
class Work:
    """What an operator asks of each level of one chip.

    Attributes
    ----------
    macs : float
        Multiply-accumulates of the arrays, of operands in ``format``.
    vector_flops : float
        FLOP of the vector units.
    sram_bytes : float
        Into and out of the SRAM of the cores.
    l2_bytes : float
        Between L2 and the cores, as delivered: a shared panel counts at each core.
    memory_bytes, link_bytes : float
        Over the memory interface, and over the links in one direction.
    """

    macs: float = 0.0
    format: str = ""
    vector_flops: float = 0.0
    sram_bytes: float = 0.0
    l2_bytes: float = 0.0
    memory_bytes: float = 0.0
    link_bytes: float = 0.0


def work(estimate: Estimate, chip: Chip) -> Work:
    """What an operator, mapped as its estimate says, asks of each level of a chip."""
    operator = estimate.operator
    if isinstance(operator, Collective):
        return Work(link_bytes=estimate.memory_bytes, l2_bytes=2.0 * estimate.memory_bytes)
    return READERS.get(type(operator), _vector)(operator, estimate, chip)


def _product(
    chip: Chip,
    op: Product,
    formats: tuple[str, str],
    macs: float,
    moved: float,
    memory: float,
    vector_flops: float = 0.0,
) -> Work:
    """Products on the arrays, or on the vector units, and the conversions before them.

    ``formats`` are those of the operands: the first enters at the rows of an array and is
    used by all its columns, the second the other way round. ``moved`` bytes pass L2. What is
    converted leaves the SRAM once and comes back as the units read it.
    """
    how = product_conversion(chip, op)
    vector_flops += how.flops
    rewritten = sum(
        elements * (get_format(name).bytes + how.fed_bytes(name))
        for _, name, elements in how.converted
    )
    array = chip.core.systolic_array
    if array is None or not how.arrays:
        return Work(0.0, "", 2.0 * macs + vector_flops, rewritten + moved, moved, memory)
    a, b = (how.fed_bytes(name) for name in formats)
    fed = macs * (a / array.columns + b / array.rows)
    return Work(macs, how.compute, vector_flops, fed + rewritten + moved, moved, memory)


def _gemm(op: Gemm, estimate: Estimate, chip: Chip) -> Work:
    """Each tile is fed its panels of A and B once, and k split over cores is merged in L2."""
    a, b, c = (get_format(name).bytes for name in (op.a_format, op.b_format, op.c_format))
    mapping, batch = estimate.mapping, float(op.batch)
    a_fills = batch * op.m * op.k * a * math.ceil(op.n / mapping["tn"])
    b_fills = batch * op.k * op.n * b * math.ceil(op.m / mapping["tm"])
    moved = a_fills + b_fills + batch * op.m * op.n * c
    moved += _merged(mapping["split"], batch * op.m * op.n)
    macs = batch * op.m * op.n * op.k
    formats = (op.a_format, op.b_format)
    return _product(chip, op, formats, macs, moved, estimate.memory_bytes)


def _grouped(op: GroupedGemm, estimate: Estimate, chip: Chip) -> Work:
    """As a product, every expert's rows in tiles of their own; of the chip of the estimate."""
    a, b, c = (get_format(name).bytes for name in (op.a_format, op.b_format, op.c_format))
    mapping = estimate.mapping
    load = next(
        load
        for load in op.loads
        if math.isclose(sum(group.experts for group in load), mapping["experts"])
    )
    rows = sum(group.experts * group.rows for group in load)
    down = sum(
        group.experts * math.ceil(group.rows / mapping["tm"] * (1.0 - ROUNDING))
        for group in load
    )
    moved = rows * op.k * a * math.ceil(op.n / mapping["tn"])
    moved += down * op.k * op.n * b + rows * op.n * c
    moved += _merged(mapping["split"], rows * op.n)
    macs = rows * op.n * op.k
    one, formats = replace(op, loads=(load,)), (op.a_format, op.b_format)
    return _product(chip, one, formats, macs, moved, estimate.memory_bytes)


def _merged(split: int, outputs: float) -> float:
    """Bytes of the partial sums of a split k, out to L2 and back."""
    return 2.0 * split * outputs * 4.0 if split > 1 else 0.0


def _attention(op: Attention, estimate: Estimate, chip: Chip) -> Work:
    """Each tile of query rows walks the keys and values that its mask leaves."""
    q, kv = get_format(op.q_format).bytes, get_format(op.kv_format).bytes
    width = op.head_dim + op.value_dim
    group = op.q_heads // op.kv_heads
    queries = float(op.batch) * op.q_heads * op.query * width * q
    keys = float(op.batch) * op.kv_heads * op.keys * width * kv
    moved = queries + _walks(op, op.query * group, estimate) * keys
    formats = (op.q_format, op.kv_format)
    softmax = op.exponentials * (SOFTMAX_FLOPS + EXPONENTIAL_FLOPS)
    return _product(chip, op, formats, op.flops / 2.0, moved, estimate.memory_bytes, softmax)


def _latent(op: LatentAttention, estimate: Estimate, chip: Chip) -> Work:
    """As attention, one row of a token being key and value of all heads."""
    rows = float(op.batch) * op.keys * op.row_bytes
    moved = op.bytes - rows + _walks(op, op.query * op.heads, estimate) * rows
    formats = (op.q_format, op.kv_format)
    softmax = op.exponentials * (SOFTMAX_FLOPS + EXPONENTIAL_FLOPS)
    return _product(chip, op, formats, op.flops / 2.0, moved, estimate.memory_bytes, softmax)


def _indexer(op: Indexer, estimate: Estimate, chip: Chip) -> Work:
    """Scores alone: a ReLU, a weight and a sum for each head and pair, every sum written."""
    keys = float(op.batch) * op.keys * op.head_dim * get_format(op.key_format).bytes
    moved = op.bytes - keys + _walks(op, op.query * op.heads, estimate) * keys
    formats = (op.q_format, op.key_format)
    picked = 3.0 * op.batch * op.heads * op.pairs
    return _product(chip, op, formats, op.flops / 2.0, moved, estimate.memory_bytes, picked)


def _walks(op: Attention | LatentAttention | Indexer, rows: int, estimate: Estimate) -> float:
    """Times that keys come from L2: once per tile of query rows, as far as its mask lets."""
    tiles = math.ceil(rows / estimate.mapping["rows"])
    return max(1.0, tiles * op.pairs / (op.query * op.keys)) if op.keys else 1.0


def _recurrence(op: Recurrence, estimate: Estimate, chip: Chip) -> Work:
    """Chunks are products on the arrays; token by token the vector units do it."""
    memory = estimate.memory_bytes
    if not estimate.mapping["chunked"]:
        steps = float(STEP_FLOPS[op.rule]) * op.batch * op.query * op.state
        steps += product_conversion(chip, op).flops
        return Work(0.0, "", steps, memory, memory, memory)
    formats = (op.format, op.format)
    return _product(chip, op, formats, op.chunked_flops / 2.0, memory, memory)


def _vector(op: Operator, estimate: Estimate, chip: Chip) -> Work:
    """Every byte of memory passes L2 and a core once."""
    del chip
    flops = op.flops + (EXPONENTIAL_FLOPS - 1.0) * op.exponentials
    moved = estimate.memory_bytes
    return Work(0.0, "", flops, moved, moved, moved)


READERS: dict[type[Operator], Callable[[Any, Estimate, Chip], Work]] = {
    Gemm: _gemm,
    GroupedGemm: _grouped,
    Attention: _attention,
    LatentAttention: _latent,
    Indexer: _indexer,
    Recurrence: _recurrence,
}
"""Work of each kind of product; the others are the vector units'."""
