"""Quantization blocks of methods that give a weight a number of bits, whole or not.

Each reader takes the hint to fill, the block and the configuration, as those of
`chipsim.importers.hf_quantization`. The bits count scales where the method has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipsim.importers.hf_fields import Fields
    from chipsim.importers.hf_quantization import Hint

_BLOCK = "quantization_config"
_MOST = 999_999
"""Elements of a group, at most: a matrix's rows."""

_TORCHAO = {
    "int4weightonly": ("int4", ""),
    "int8weightonly": ("int8", ""),
    "float8weightonly": ("fp8", ""),
    "int8dynamicactivationint8weight": ("int8", "int8"),
    "int8dynamicactivationint4weight": ("int4", "int8"),
    "float8dynamicactivationfloat8weight": ("fp8", "fp8"),
    "float8dynamicactivationint4weight": ("int4", "fp8"),
}
"""torchao's configurations (their names without ``_`` and ``Config``): weights, activations."""

_QUANTO = {"int8": "int8", "float8": "fp8", "int4": "int4-g128", "int2": "w2.125"}
"""Optimum Quanto's weights; below 8 bits an fp16 scale per 128."""


def bits_per_weight(hint: Hint, block: dict[str, Any], fields: Fields) -> None:
    """ExLlama's EXL2 and EXL3: the mean bits of a weight, all that belongs to it counted."""
    bits: Any = block.get("bits")
    number = isinstance(bits, int | float) and not isinstance(bits, bool)
    if not number or not 1 <= bits <= 16:
        raise fields.wrong(f"{_BLOCK}.bits", bits, "a number from 1 to 16")
    hint.weights = f"w{round(bits, 4):g}"


def hqq(hint: Hint, block: dict[str, Any], fields: Fields) -> None:
    """Half-quadratic quantization: integers, an fp16 scale and zero per group."""
    inner = block.get("quant_config")
    if inner is None:
        left(hint, "hqq without a quant_config")
        return
    weights = inner.get("weight_quant_params") if isinstance(inner, dict) else None
    weights = weights if isinstance(weights, dict) else {}
    path = f"{_BLOCK}.quant_config.weight_quant_params"
    bits = fields.checked(f"{path}.nbits", weights.get("nbits"), 8)
    group = fields.checked(f"{path}.group_size", weights.get("group_size"), _MOST)
    hint.weights = f"w{round(bits + 32 / group, 4):g}"


def aqlm(hint: Hint, block: dict[str, Any], fields: Fields) -> None:
    """Additive codebooks: an index into each of them per group of weights."""
    index, books, inputs, outputs = (
        fields.checked(f"{_BLOCK}.{key}", block.get(key, usual), 1024)
        for key, usual in (
            ("nbits_per_codebook", 16),
            ("num_codebooks", 1),
            ("in_group_size", 8),
            ("out_group_size", 1),
        )
    )
    bits = index * books / (inputs * outputs)
    if not 0.1 <= bits <= 16:
        key = f"{_BLOCK}.nbits_per_codebook"
        raise fields.wrong(key, index, f"0.1 to 16 bits a weight (here {bits:g})")
    hint.weights = f"w{round(bits, 4):g}"


def quanto(hint: Hint, block: dict[str, Any], fields: Fields) -> None:
    """Optimum Quanto: formats by name."""
    for key in ("weights", "activations"):
        name = block.get(key)
        if name is None:
            continue
        if name not in _QUANTO or (key == "activations" and name not in ("int8", "float8")):
            raise fields.wrong(f"{_BLOCK}.{key}", name, ", ".join(_QUANTO))
        setattr(hint, key, _QUANTO[name])


def torchao(hint: Hint, block: dict[str, Any], fields: Fields) -> None:
    """PyTorch's torchao: a configuration by name, with the size of its groups."""
    kind = block.get("quant_type")
    inner = kind.get("default") if isinstance(kind, dict) else None
    if isinstance(inner, dict):
        name, data = inner.get("_type"), inner.get("_data")
    else:
        name, data = kind, block.get("quant_type_kwargs")
    known = _TORCHAO.get(str(name).lower().replace("_", "").removesuffix("config"))
    if known is None:
        left(hint, f"torchao {name} is not known")
        return
    hint.weights, hint.activations = known[0], known[1] or hint.activations
    group = data.get("group_size") if isinstance(data, dict) else None
    if hint.weights == "int4" and group is not None:
        group = fields.checked(f"{_BLOCK}.group_size", group, _MOST)
        hint.weights = f"int4-g{group}"


def left(hint: Hint, reason: str) -> None:
    """Leave the dtype, and say why."""
    hint.quantized = False
    hint.warnings.append(f"{reason}: weights are taken as {hint.weights}")
