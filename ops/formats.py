"""Number formats: bits of an element, and the scales that come with it.

Three families are open and given by name: ``int4-g64`` (groups of any size), ``w2.5``
(weight-only, so many bits per weight, everything included) and the fixed names of
`FORMATS`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from chipsim.errors import UnknownNameError


@dataclass(frozen=True, slots=True)
class Format:
    """A number format.

    Attributes
    ----------
    name : str
        Lower-case name, as configuration files write it.
    bits : float
        Bits that one element takes where it is stored.
    scale_bits : int
        Bits of a scale or shared exponent (0: none).
    group : int
        Elements that share one scale.
    weight_only : bool
        Storage of weights, unpacked before any arithmetic: codebooks, ternary packs.
    element : str
        Format that matrix units multiply the elements in: scales of blocks so large that
        they can be applied to sums instead (empty: no other than its own).
    """

    name: str
    bits: float
    scale_bits: int = 0
    group: int = 1
    weight_only: bool = False
    element: str = ""

    @property
    def bytes(self) -> float:
        """Bytes per element, its share of the scale included."""
        return (self.bits + self.scale_bits / self.group) / 8.0

    @property
    def unpack_flops(self) -> float:
        """Vector FLOP to bring one element into another format: a cast, and a scaling
        where the format has scales (a codebook's entry is scaled too).
        """
        return 2.0 if self.scale_bits or self.weight_only else 1.0


FORMATS: dict[str, Format] = {
    known.name: known
    for known in (
        Format("fp32", 32),
        Format("tf32", 32),  # 19 bits count in products, 32 are stored
        Format("bf16", 16),
        Format("fp16", 16),
        Format("fp8", 8),
        # DeepSeek-V3 report, 3.3
        Format("fp8-block", 8, scale_bits=32, group=128 * 128, element="fp8"),
        Format("int8", 8),
        Format("int4", 4, scale_bits=16, group=128),  # GPTQ, AWQ: fp16 scale per 128
        Format("mxfp8", 8, scale_bits=8, group=32),  # OCP microscaling v1.0
        Format("mxfp4", 4, scale_bits=8, group=32),
        Format("nvfp4", 4, scale_bits=8, group=16),
        Format("bfp8", 8, scale_bits=8, group=16),  # shared exponent of a block
    )
}
"""Every format with a fixed name."""

ALLOWED = f"{', '.join(FORMATS)}, int4-gN (scale per N), wX (weights only, X bits each)"
"""What a format may be called, for messages."""

LEAST_BITS, MOST_BITS = 0.1, 32.0
"""Bits per weight that ``wX`` takes."""

_GROUPED = re.compile(r"int([48])-g([1-9][0-9]{0,5})")
_WEIGHTS = re.compile(r"w([0-9]{1,2}(?:\.[0-9]{1,4})?)")


def get_format(name: str) -> Format:
    """Format of a name.

    Examples
    --------
    >>> get_format("int4-g128").bytes, get_format("w2.5").bytes
    (0.515625, 0.3125)

    Raises
    ------
    UnknownNameError
        No such format (near misses are suggested).
    """
    try:
        return FORMATS[name]
    except (KeyError, TypeError):
        made = _open_format(str(name))
    if made is None:
        raise UnknownNameError("format", str(name), FORMATS)
    return made


@functools.cache
def _open_format(name: str) -> Format | None:
    """A format of the open families; None where the name is of neither."""
    if grouped := _GROUPED.fullmatch(name):
        bits, group = (int(part) for part in grouped.groups())
        return Format(name, bits, scale_bits=16, group=group)
    if weights := _WEIGHTS.fullmatch(name):
        bits_each = float(weights[1])
        if LEAST_BITS <= bits_each <= MOST_BITS:
            return Format(name, bits_each, weight_only=True)
    return None
