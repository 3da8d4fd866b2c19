"""Formats that the matrix units lack: what they compute in instead, and what that costs.

The units' own rates say which formats they take (`Chip.macs_per_cycle`). A product runs in the
wider of its two formats; where the arrays lack it, in the next format that they have and that
holds its values; where they have none, on the vector units, which take fp32 and 16 bit.
Operands in another format are converted on the vector units, each element once per kernel. On
the arrays that runs beside the product,

    T = T_product + T_vector - overlap.vector * min(T_product, T_vector)

and on the vector units it can only use what the product's own arithmetic leaves of its time:

    T = T_product + T_vector - overlap.vector * min(T_product - T_arithmetic, T_vector)

Once is a lower bound: a kernel that converts a tile again for every block of rows pays more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from chipsim.ops.formats import get_format
from chipsim.ops.operators import (
    Attention,
    Gemm,
    GroupedGemm,
    Indexer,
    LatentAttention,
    Recurrence,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    import numpy as np

    from chipsim.chip import Chip

HALVES = ("bf16", "fp16")
"""16-bit formats: either holds what has 8 bits or less, and stands in for the other."""
WIDE = ("tf32", "fp32")
"""Formats that hold any of 16 bits, in the order of what they hold."""

Product = Gemm | GroupedGemm | Attention | LatentAttention | Indexer | Recurrence
"""Operators that multiply matrices."""


class Operand(NamedTuple):
    """A tensor of a product: what it is, its format, and its elements."""

    what: str
    format: str
    elements: float


class Conversion(NamedTuple):
    """How a product of some formats runs on a chip.

    Attributes
    ----------
    compute : str
        Format that the units compute in.
    macs : float
        Multiply-accumulates of an array cell per cycle; on the vector units the part of their
        16-bit rate.
    flops : float
        Vector FLOP of all conversions.
    note : str
        What is converted, and what the arrays cannot do, in words; empty where nothing is.
    accumulate : str
        Format of the sums.
    arrays : bool
        Whether the arrays compute it, or the vector units.
    converted : tuple of Operand
        What is converted.
    """

    compute: str
    macs: float
    flops: float
    note: str
    accumulate: str = "fp32"
    arrays: bool = True
    converted: tuple[Operand, ...] = ()

    def peak(self, chip: Chip) -> float:
        """Peak of the units that compute it, FLOP/s."""
        if self.arrays:
            return chip.tensor_flops(self.compute, self.accumulate)
        return chip.vector_peak(get_format(self.compute).bits)

    def fed_bytes(self, name: str) -> float:
        """Bytes of an element of a format as the units read it: converted where it must be."""
        converted = any(operand.format == name for operand in self.converted)
        return get_format(self.compute if converted else name).bytes


class Units(NamedTuple):
    """How products of some formats run on a chip, whatever their sizes.

    Attributes
    ----------
    each : tuple of float
        Vector FLOP to convert an element of each operand; below 0 where none is converted.

    The others are those of `Conversion`.
    """

    compute: str
    macs: float
    note: str
    accumulate: str
    arrays: bool
    each: tuple[float, ...]


Formats = tuple[tuple[str, str], ...]
"""Of operands: what they are, and their formats."""


def conversion(
    chip: Chip,
    *operands: Operand,
    accumulate: str = "fp32",
    known: dict[tuple[Formats, str], Units] | None = None,
) -> Conversion:
    """The format and the units that a product runs in, and the conversions that this needs.

    Parameters
    ----------
    accumulate : str
        Format of the sums: it may change the rate.
    known : dict, optional
        What was found for this chip before, and is added to.
    """
    known = {} if known is None else known
    key = tuple([operand[:2] for operand in operands]), accumulate
    units = known.get(key)
    if units is None:
        units = known[key] = _units(chip, *key)
    compute, macs, note, accumulate, arrays, each = units
    if not note:
        return Conversion(compute, macs, 0.0, note, accumulate, arrays)
    converted = [(op, cost) for op, cost in zip(operands, each, strict=True) if cost >= 0.0]
    flops = sum(cost * op.elements for op, cost in converted)
    which = tuple(op for op, _ in converted)
    return Conversion(compute, macs, flops, note, accumulate, arrays, which)


def _units(chip: Chip, formats: Formats, accumulate: str) -> Units:
    compute, arrays = runs_in(chip, (form for _, form in formats))
    kept = HALVES if compute in HALVES and not arrays else (compute,)
    alike = [form in kept or get_format(form).element == compute for _, form in formats]
    notes = [
        f"{what} {form} -> {compute}"
        for (what, form), same in zip(formats, alike, strict=True)
        if not same
    ]
    if not arrays and chip.core.systolic_array is not None:
        notes.append(f"{compute} on the vector units")
    macs = chip.macs_per_cycle(compute, accumulate) if arrays else chip.vector_share(compute)
    each = tuple(
        -1.0 if same else _convert_flops(form, compute)
        for (_, form), same in zip(formats, alike, strict=True)
    )
    return Units(compute, macs, ", ".join(dict.fromkeys(notes)), accumulate, arrays, each)


def runs_in(chip: Chip, formats: Iterable[str]) -> tuple[str, bool]:
    """Format that a product of these formats is computed in, and whether on the arrays.

    Examples
    --------
    >>> from chipsim.chip import Chip
    >>> h100, mi210 = Chip.load("h100-sxm"), Chip.load("mi210")
    >>> runs_in(h100, ["fp32", "bf16"]), runs_in(mi210, ["tf32", "tf32"])
    (('fp32', False), ('fp32', True))
    """
    widest = max(formats, key=lambda name: (get_format(name).bits, name == "fp32"))
    array = chip.core.systolic_array
    known = array.macs_per_cycle if array else {}
    bits = get_format(widest).bits
    for name in (widest, get_format(widest).element):
        if name in known:
            return name, True
    wide = WIDE if bits <= 16 or widest == "tf32" else WIDE[1:]
    for name in (*HALVES, *wide) if bits <= 16 else wide:
        if name in known:
            return name, True
    if bits > 16:
        return "fp32", False
    return widest if widest in HALVES else "fp16", False


def _convert_flops(name: str, compute: str) -> float:
    """Vector FLOP to bring an element to another format; a tf32 number is one of fp32."""
    return 0.0 if (name, compute) == WIDE else get_format(name).unpack_flops


def product_conversion(
    chip: Chip, op: Product, known: dict[tuple[Formats, str], Units] | None = None
) -> Conversion:
    """How a product of matrices runs on a chip; ``known`` as `conversion` takes it.

    Of experts, those of the first chip of ``op.loads``.
    """
    sums = "fp32" if isinstance(op, Recurrence) else op.accumulate
    return conversion(chip, *READERS[type(op)](op), accumulate=sums, known=known)


def _gemm(op: Gemm) -> tuple[Operand, ...]:
    batch = float(op.batch)
    what = "weights" if op.b_is_weight else "KV"
    return (
        Operand("activations", op.a_format, batch * op.m * op.k),
        Operand(what, op.b_format, batch * op.k * op.n),
    )


def _grouped(op: GroupedGemm) -> tuple[Operand, ...]:
    load = op.loads[0]
    rows = sum(group.experts * group.rows for group in load)
    experts = sum(group.experts for group in load)
    return (
        Operand("activations", op.a_format, rows * op.k),
        Operand("weights", op.b_format, experts * op.k * op.n),
    )


def _attention(op: Attention) -> tuple[Operand, ...]:
    width = float(op.head_dim + op.value_dim) * op.batch
    return (
        Operand("activations", op.q_format, width * op.q_heads * op.query),
        Operand("KV", op.kv_format, width * op.kv_heads * op.keys),
    )


def _latent(op: LatentAttention) -> tuple[Operand, ...]:
    queries = float(op.batch) * op.query * op.heads * (op.latent + op.rotary)
    rows = float(op.batch) * op.keys
    return (
        Operand("activations", op.q_format, queries),
        Operand("KV", op.kv_format, rows * op.latent),
        Operand("KV", op.rotary_format, rows * op.rotary),
    )


def _indexer(op: Indexer) -> tuple[Operand, ...]:
    batch = float(op.batch)
    return (
        Operand("queries", op.q_format, batch * op.query * op.heads * op.head_dim),
        Operand("KV", op.key_format, batch * op.keys * op.head_dim),
    )


def _recurrence(op: Recurrence) -> tuple[Operand, ...]:
    """Queries, keys and values of every token."""
    row = 2.0 * op.key_heads * op.key_dim + op.heads * op.value_dim
    return (Operand("activations", op.format, op.batch * op.query * row),)


READERS: dict[type, Callable[[Any], tuple[Operand, ...]]] = {
    Gemm: _gemm,
    GroupedGemm: _grouped,
    Attention: _attention,
    LatentAttention: _latent,
    Indexer: _indexer,
    Recurrence: _recurrence,
}
"""Operands of each kind of product."""


def exposed_seconds(
    record: np.void, how: Conversion, product: float, product_flops: float
) -> float:
    """What conversions add to a product of ``product`` seconds (launch left out).

    On the vector units ``product_flops`` keep them busy themselves; of attention those are
    its two products, not the softmax between them.
    """
    vector = how.flops / float(record["half_flops"])
    free = product
    if not how.arrays:
        rate = float(record["half_flops"]) * how.macs * float(record["tensor_share"])
        free = max(0.0, product - product_flops / rate)
    return vector - float(record["overlap_vector"]) * min(free, vector)
