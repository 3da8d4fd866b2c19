"""Operators of the vector units: softmax, norms, activations and elementwise work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from chipsim.ops.base import Kind, Operator
from chipsim.ops.checks import whole
from chipsim.ops.formats import get_format

SOFTMAX_FLOPS, SOFTMAX_EXPONENTIALS = 7, 3
"""Per element, of the online softmax (Milakov and Gimelshein 2018): a first pass of
maximum, two differences, two exponentials, product and sum; a second of difference,
exponential and quotient. LLMCompass counts the same."""

NORM_FLOPS = {
    "layernorm": 7,  # mean 1, variance 3, scale by deviation 1, weight and bias 2
    "rmsnorm": 4,  # square and sum 2, scale by root 1, weight 1
}
"""FLOP per element."""

SCALE_BYTES = 4.0
"""An fp32 scale of a row."""

ACTIVATION_FLOPS = {
    "relu2": (2, 0),
    "relu": (1, 0),
    "silu": (2, 1),  # x / (1 + exp(-x))
    "gelu": (6, 1),  # tanh form as x / (1 + exp(-x (a + b x^2)))
}
"""FLOP beside exponentials, and exponentials, per element."""


@dataclass(frozen=True, slots=True)
class Softmax(Operator):
    """Softmax over each of ``rows`` rows of ``columns`` elements."""

    name: str
    rows: int
    columns: int
    format: str = "fp16"
    _sizes: ClassVar[tuple[str, ...]] = ("rows", "columns")

    @property
    def kind(self) -> Kind:
        """``"softmax"``."""
        return "softmax"

    @property
    def elements(self) -> int:
        """Elements read, and written."""
        return self.rows * self.columns

    @property
    def flops(self) -> float:
        """10 per element, 3 of them exponentials."""
        return float((SOFTMAX_FLOPS + SOFTMAX_EXPONENTIALS) * self.elements)

    @property
    def exponentials(self) -> float:
        """3 per element."""
        return float(SOFTMAX_EXPONENTIALS * self.elements)

    @property
    def bytes(self) -> float:
        """One read and one write per element."""
        return 2.0 * self.stores

    @property
    def stores(self) -> float:
        """Bytes of `bytes` that are written."""
        return self.elements * get_format(self.format).bytes


@dataclass(frozen=True, slots=True)
class Norm(Operator):
    """LayerNorm or RMSNorm of each of ``rows`` rows; its weights are too few to count."""

    name: str
    rows: int
    columns: int
    format: str = "fp16"
    statistic: Literal["layernorm", "rmsnorm"] = "layernorm"
    _sizes: ClassVar[tuple[str, ...]] = ("rows", "columns")

    def __post_init__(self) -> None:
        Operator.__post_init__(self)
        if self.statistic not in NORM_FLOPS:
            self._refuse("statistic", self.statistic, ", ".join(NORM_FLOPS))

    @property
    def kind(self) -> Kind:
        """``"norm"``."""
        return "norm"

    @property
    def elements(self) -> int:
        """Elements read, and written."""
        return self.rows * self.columns

    @property
    def flops(self) -> float:
        """By `NORM_FLOPS`."""
        return float(NORM_FLOPS[self.statistic] * self.elements)

    @property
    def bytes(self) -> float:
        """One read and one write per element."""
        return 2.0 * self.stores

    @property
    def stores(self) -> float:
        """Bytes of `bytes` that are written."""
        return self.elements * get_format(self.format).bytes


@dataclass(frozen=True, slots=True)
class Activation(Operator):
    """A non-linear function; ``elements`` are those written.

    Gated, the result is multiplied by a second input of the same size.
    """

    name: str
    elements: int
    format: str = "fp16"
    function: Literal["gelu", "relu", "relu2", "silu"] = "gelu"
    gated: bool = False
    _sizes: ClassVar[tuple[str, ...]] = ("elements",)

    def __post_init__(self) -> None:
        Operator.__post_init__(self)
        if self.function not in ACTIVATION_FLOPS:
            self._refuse("function", self.function, ", ".join(ACTIVATION_FLOPS))

    @property
    def kind(self) -> Kind:
        """``"activation"``."""
        return "activation"

    @property
    def flops(self) -> float:
        """By `ACTIVATION_FLOPS`, and one product where gated."""
        per_element = sum(ACTIVATION_FLOPS[self.function]) + (1 if self.gated else 0)
        return float(per_element * self.elements)

    @property
    def exponentials(self) -> float:
        """By `ACTIVATION_FLOPS`."""
        return float(ACTIVATION_FLOPS[self.function][1] * self.elements)

    @property
    def bytes(self) -> float:
        """One read (two where gated) and one write per element."""
        return (3 if self.gated else 2) * self.stores

    @property
    def stores(self) -> float:
        """Bytes of `bytes` that are written."""
        return self.elements * get_format(self.format).bytes


@dataclass(frozen=True, slots=True)
class Quantise(Operator):
    """Rows of ``format`` written in a narrower format, with a scale for each group of it.

    ``columns`` of a row share scales as the narrower format has them; a format without
    scales of its own takes one of fp32 per row. Per element a magnitude, a comparison, a
    product and a cast.
    """

    name: str
    rows: int
    columns: int
    format: str = "bf16"
    to: str = "fp8"
    _sizes: ClassVar[tuple[str, ...]] = ("rows", "columns")
    _formats: ClassVar[tuple[str, ...]] = ("format", "to")

    @property
    def kind(self) -> Kind:
        """``"elementwise"``."""
        return "elementwise"

    @property
    def elements(self) -> int:
        """Elements read, and written."""
        return self.rows * self.columns

    @property
    def flops(self) -> float:
        """4 per element."""
        return 4.0 * self.elements

    @property
    def bytes(self) -> float:
        """One read and one write per element, and the scales."""
        return self.elements * get_format(self.format).bytes + self.stores

    @property
    def stores(self) -> float:
        """Bytes of `bytes` that are written."""
        scales = 0.0 if get_format(self.to).scale_bits else SCALE_BYTES * self.rows
        return self.elements * get_format(self.to).bytes + scales


@dataclass(frozen=True, slots=True)
class Elementwise(Operator):
    """Residual adds, rotary, copies, lookups: a few reads and writes per element.

    ``scattered``: rows come from, or go to, places all over a tensor, as tokens to experts.
    """

    name: str
    elements: int
    format: str = "fp16"
    reads: int = 1
    writes: int = 1
    flops_per_element: int = 0
    scattered: bool = False
    _sizes: ClassVar[tuple[str, ...]] = ("elements",)

    def __post_init__(self) -> None:
        Operator.__post_init__(self)
        for field in ("reads", "writes", "flops_per_element"):
            value = getattr(self, field)
            if type(value) is not int or value < 0:
                object.__setattr__(self, field, whole(self._label(), field, value, least=0))

    @property
    def kind(self) -> Kind:
        """``"elementwise"``."""
        return "elementwise"

    @property
    def flops(self) -> float:
        """``flops_per_element`` each."""
        return float(self.flops_per_element * self.elements)

    @property
    def bytes(self) -> float:
        """``reads`` and ``writes`` per element."""
        return (self.reads + self.writes) * self.elements * get_format(self.format).bytes

    @property
    def stores(self) -> float:
        """Bytes of `bytes` that are written."""
        return self.writes * self.elements * get_format(self.format).bytes
