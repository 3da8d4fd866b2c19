"""Number formats: bits of an element, and the scales that come with it."""

from __future__ import annotations

from dataclasses import dataclass

from chipsim.errors import UnknownNameError


@dataclass(frozen=True, slots=True)
class Format:
    """A number format.

    Attributes
    ----------
    name : str
        Lower-case name, as configuration files write it.
    bits : int
        Bits that one element takes where it is stored.
    scale_bits : int
        Bits of a scale or shared exponent (0: none).
    group : int
        Elements that share one scale.
    """

    name: str
    bits: int
    scale_bits: int = 0
    group: int = 1

    @property
    def bytes(self) -> float:
        """Bytes per element, its share of the scale included."""
        return (self.bits + self.scale_bits / self.group) / 8.0


FORMATS: dict[str, Format] = {
    known.name: known
    for known in (
        Format("fp32", 32),
        Format("tf32", 32),  # 19 bits count in products, 32 are stored
        Format("bf16", 16),
        Format("fp16", 16),
        Format("fp8", 8),
        Format("int8", 8),
        Format("int4", 4, scale_bits=16, group=128),  # GPTQ, AWQ: fp16 scale per 128
        Format("mxfp8", 8, scale_bits=8, group=32),  # OCP microscaling v1.0
        Format("mxfp4", 4, scale_bits=8, group=32),
        Format("nvfp4", 4, scale_bits=8, group=16),
        Format("bfp8", 8, scale_bits=8, group=16),  # shared exponent of a block
    )
}
"""Every format by name."""


def get_format(name: str) -> Format:
    """Format of a name.

    Raises
    ------
    UnknownNameError
        No such format (near misses are suggested).
    """
    try:
        return FORMATS[name]
    except (KeyError, TypeError):
        raise UnknownNameError("format", str(name), FORMATS) from None
