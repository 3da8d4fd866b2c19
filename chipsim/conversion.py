"""Formats that the matrix units lack: what they compute in instead, and what that costs.

The units' own rates say which formats they take (`Chip.macs_per_cycle`). A product runs in the
wider of its two formats; where the units lack it, in the next format that holds its values.
Operands in another format are converted on the vector units, each element once per kernel:

    T = T_product + T_vector - overlap.vector * min(T_product, T_vector)

Once is a lower bound: a kernel that converts a tile again for every block of rows pays more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from chipsim.errors import ConfigError
from chipsim.ops.formats import get_format

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from chipsim.chip import Chip

HALVES = ("bf16", "fp16")
"""16-bit formats: either holds what has 8 bits or less, and stands in for the other."""
WIDE = ("tf32", "fp32")


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
        Format that the matrix units compute in.
    macs : float
        Multiply-accumulates of an array cell per cycle (1 without arrays).
    flops : float
        Vector FLOP of all conversions.
    note : str
        What is converted, in words; empty where nothing is.
    accumulate : str
        Format of the sums.
    """

    compute: str
    macs: float
    flops: float
    note: str
    accumulate: str = "fp32"


def conversion(chip: Chip, *operands: Operand, accumulate: str = "fp32") -> Conversion:
    """The format that a product runs in, and the conversions that this needs.

    ``accumulate`` is the format of the sums: it may change the rate.

    Raises
    ------
    ConfigError
        The chip's matrix units take no format that holds the operands' values.
    """
    compute = compute_format(chip, [operand.format for operand in operands])
    has_arrays = chip.core.systolic_array is not None
    flops, notes = 0.0, []
    for what, name, elements in operands:
        own = get_format(name)
        if not (compute in (name, own.element) or (not has_arrays and own.bits >= 16)):
            flops += own.unpack_flops * elements
            notes.append(f"{what} {name} -> {compute}")
    if has_arrays:
        macs = chip.macs_per_cycle(compute, accumulate)
    else:
        macs = chip.vector_share(compute)
    return Conversion(compute, macs, flops, ", ".join(dict.fromkeys(notes)), accumulate)


def compute_format(chip: Chip, formats: Sequence[str]) -> str:
    """Format that a product of these formats is computed in.

    Raises
    ------
    ConfigError
        The matrix units take none that holds the values.
    """
    widest = max(formats, key=lambda name: get_format(name).bits)
    array = chip.core.systolic_array
    if array is None:
        return widest if get_format(widest).bits >= 16 else HALVES[1]
    known = array.macs_per_cycle
    for name in (widest, get_format(widest).element):
        if name in known:
            return name
    holding = [*HALVES, *WIDE] if get_format(widest).bits <= 16 else []
    for name in holding:
        if name in known:
            return name
    allowed = ", ".join(sorted(known)) + ", and narrower ones by conversion"
    raise ConfigError(chip.name, "core.systolic_array.macs_per_cycle", widest, allowed)


def exposed_seconds(record: np.void, flops: float, product: float) -> float:
    """What conversions add to a product of ``product`` seconds (launch left out)."""
    vector = flops / float(record["half_flops"])
    return vector - float(record["overlap_vector"]) * min(product, vector)
