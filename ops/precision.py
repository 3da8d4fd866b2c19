"""Which number format each kind of tensor of a model uses."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from chipsim.errors import UnknownNameError
from chipsim.ops.checks import read_pairs
from chipsim.ops.formats import FORMATS, get_format
from chipsim.spec import Spec


def _known(name: str) -> str:
    try:
        return get_format(name).name
    except UnknownNameError:
        raise ValueError(f"one of {', '.join(FORMATS)}") from None


FormatName = Annotated[str, AfterValidator(_known)]
"""Name of a number format."""


class Precision(Spec):
    """Formats of weights, activations, KV cache, and of the sums inside a product."""

    weights: FormatName = "fp16"
    activations: FormatName = "fp16"
    kv: FormatName = "fp16"
    accumulate: FormatName = "fp32"

    @classmethod
    def parse(cls, text: str) -> Precision:
        """Read ``"bf16"`` or ``"weights=fp8,activations=bf16,kv=fp8"``.

        One name sets weights, activations and KV; parts that a list leaves out keep
        their defaults.

        Raises
        ------
        ConfigError
            An unknown format or part, or a part named twice.
        """
        if "=" not in text:
            name = text.strip()
            return cls.build("precision", weights=name, activations=name, kv=name)
        return cls.build("precision", **read_pairs("precision", text, list(cls.model_fields)))
