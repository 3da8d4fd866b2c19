"""Which number format each kind of tensor of a model uses."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator

from chipsim.errors import UnknownNameError
from chipsim.ops.checks import read_pairs
from chipsim.ops.formats import ALLOWED, FORMATS, get_format
from chipsim.spec import Spec

SUMS = ("fp32", "tf32", "bf16", "fp16")
"""Formats that products are summed in."""


def _known(name: str) -> str:
    try:
        return get_format(name).name
    except UnknownNameError:
        raise ValueError(f"one of {ALLOWED}") from None


def _computed(name: str) -> str:
    if get_format(_known(name)).weight_only:
        raise ValueError(f"one of {', '.join(FORMATS)}, int4-gN (wX is for weights only)")
    return name


def _summed(name: str) -> str:
    if name not in SUMS:
        raise ValueError(f"one of {', '.join(SUMS)}")
    return name


FormatName = Annotated[str, AfterValidator(_known)]
"""Name of a number format."""
TensorFormat = Annotated[str, AfterValidator(_computed)]
"""Name of a format that activations or cached keys and values may have."""

SumFormat = Annotated[str, AfterValidator(_summed)]
"""Name of a format that products are summed in."""


class Precision(Spec):
    """Formats of weights, activations, KV cache, and of the sums inside a product."""

    weights: FormatName = "fp16"
    activations: TensorFormat = "fp16"
    kv: TensorFormat = "fp16"
    accumulate: SumFormat = "fp32"
    """Sums inside a product: accumulators in SRAM, partial sums, and the rate of units that
    sum in another format at another rate."""
    kv_rotary: TensorFormat | None = None
    """Rotary part of a cached MLA row; as ``kv`` unless given."""
    kv_indexer: TensorFormat | None = None
    """Cached keys of an indexer of sparse attention; as ``kv`` unless given."""
    experts: FormatName | None = None
    """Weights of routed experts; as ``weights`` unless given."""

    @classmethod
    def parse(cls, text: str) -> Precision:
        """Read ``"bf16"`` or ``"weights=fp8,activations=bf16,kv=fp8"``.

        One name sets weights, activations and KV (a weight-only format the weights
        alone); parts that a list leaves out keep their defaults. Capitals do not matter.

        Raises
        ------
        ConfigError
            An unknown format or part, or a part named twice.
        """
        text = text.lower()
        if "=" in text:
            parts: dict[str, Any] = {**read_pairs("precision", text, list(cls.model_fields))}
            return cls.build("precision", **parts)
        name = text.strip()
        given = cls.build("precision", weights=name)
        if get_format(name).weight_only:
            return given
        return cls.build("precision", weights=name, activations=name, kv=name)

    @property
    def rotary(self) -> str:
        """Format of the rotary part of a cached MLA row."""
        return self.kv_rotary or self.kv

    @property
    def indexer(self) -> str:
        """Format of the cached keys of an indexer."""
        return self.kv_indexer or self.kv

    def weights_of(self, module: str) -> str:
        """Format of the weights of a module of `chipsim.ops.parameters.Module`."""
        return self.experts or self.weights if module == "experts" else self.weights
