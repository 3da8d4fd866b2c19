"""The formats of a checkpoint: its dtype, and what its quantization block says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from chipsim.importers.hf_formats import format_of
from chipsim.importers.hf_low_bit import aqlm, bits_per_weight, hqq, left, quanto, torchao
from chipsim.importers.hf_mlp import expert_count
from chipsim.ops.precision import Precision

if TYPE_CHECKING:
    from collections.abc import Callable

    from chipsim.importers.hf_fields import Fields

LOW_BITS = re.compile(
    r"(?:^|[-_.])(fp8|fp4|nvfp4|mxfp4|int4|int8|awq|gptq|w4a16|w8a8)(?:$|[-_.])"
)
"""Formats that models are named after."""
USUAL = "bf16"
"""What a configuration without a dtype is taken to be."""


class Hint:
    """Formats as they are found, with what could not be kept."""

    def __init__(self, dtype: str) -> None:
        self.weights = self.activations = self.kv = dtype
        self.experts: str | None = None
        self.quantized = False
        self.warnings: list[str] = []

    def precision(self) -> Precision:
        """The formats together."""
        return Precision.build(
            "precision",
            weights=self.weights,
            activations=self.activations,
            kv=self.kv,
            experts=self.experts,
        )


def precision_hint(fields: Fields, beside: dict[str, Any] | None = None) -> Hint:
    """The formats that a checkpoint is stored and computed in.

    Parameters
    ----------
    fields : Fields
    beside : dict, optional
        The ``quantization`` of ``hf_quant_config.json``, where one lies beside the file.
    """
    dtype = format_of(fields, "dtype")
    hint = Hint(dtype or USUAL)
    if dtype is None:
        hint.warnings.append(f"no torch_dtype: {USUAL} is taken")
    block = fields.mapping("quantization_config") or fields.mapping("compression_config")
    if block is None and beside is not None:
        block = {"quant_method": "modelopt", **beside}
    if block:
        _apply(hint, block, fields)
    return hint


def name_doubts(name: str, hint: Hint) -> list[str]:
    """A warning where a model's name tells a format that its files do not."""
    found = LOW_BITS.search(name)
    if found is None or hint.quantized:
        return []
    return [f"the name says {found[1]}, no quantization block does: {hint.weights} is taken"]


def _apply(hint: Hint, block: dict[str, Any], fields: Fields) -> None:
    method = str(block.get("quant_method", "modelopt" if "quant_algo" in block else "")).lower()
    reader = _METHODS.get(method)
    if reader is None:
        shown = method or "without a quant_method"
        hint.warnings.append(
            f"quantization {shown} is not known: weights are taken as {hint.weights}"
        )
        return
    dtype, hint.quantized = hint.weights, True
    reader(hint, block, fields)
    if hint.quantized:
        _keep_exceptions(hint, block, fields, dtype)


def _keep_exceptions(hint: Hint, block: dict[str, Any], fields: Fields, dtype: str) -> None:
    """Attention that a checkpoint leaves as it was: routed experts alone are quantized."""
    kept = [
        str(name)
        for key in ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers")
        if isinstance(block.get(key), list)
        for name in block[key]
    ]
    if not any("attn" in name or "attention" in name for name in kept):
        return
    if expert_count(fields):
        hint.experts, hint.weights = hint.experts or hint.weights, dtype
    else:
        hint.warnings.append(
            f"attention is not quantized in the file; {hint.weights} is taken for all weights"
        )


def _fp8(hint: Hint, block: dict[str, Any], fields: Fields) -> None:
    size = block.get("weight_block_size")
    hint.weights = hint.activations = "fp8"
    if size is not None and not (
        isinstance(size, list) and len(size) == 2 and all(type(side) is int for side in size)
    ):
        key = "quantization_config.weight_block_size"
        raise fields.wrong(key, size, "two whole numbers")
    if size == [128, 128]:
        hint.weights = "fp8-block"
    elif size is not None:
        hint.warnings.append(f"weight_block_size {size}: the scales of its blocks are left out")
    if fields.raw("expert_dtype") == "fp4":
        hint.experts = "mxfp4"


def _mxfp4(hint: Hint, block: dict[str, Any], fields: Fields) -> None:
    del block, fields
    hint.weights = "mxfp4"


def _grouped_int(hint: Hint, block: dict[str, Any], fields: Fields) -> None:
    """GPTQ, AWQ and their like: integers of a few bits, one scale per group."""
    bits = block.get("bits", block.get("w_bit", 4))
    group = block.get("group_size", block.get("q_group_size", 128))
    hint.weights = _integer(bits, group, fields)


def _integer(bits: Any, group: Any, fields: Fields) -> str:
    path = "quantization_config.bits"
    bits = fields.checked(path, bits, 16)
    if group is None or group == -1:
        group = min(fields.whole("hidden"), 999_999)  # one scale per column
    group = fields.checked("quantization_config.group_size", group, 999_999)
    if bits in {4, 8}:
        return f"int{bits}-g{group}"
    return f"w{round(bits + 16 / group, 4):g}"


def _modelopt(hint: Hint, block: dict[str, Any], fields: Fields) -> None:
    algorithm = str(block.get("quant_algo") or "").upper()
    group = block.get("group_size")
    pairs = {
        "FP8": ("fp8", "fp8"),
        "FP8_PER_CHANNEL_PER_TOKEN": ("fp8", "fp8"),
        "FP8_PB_WO": ("fp8-block", "fp8"),
        "NVFP4": ("nvfp4", "nvfp4"),
        "W4A16_NVFP4": ("nvfp4", hint.activations),
        "NVFP4_AWQ": ("nvfp4", "nvfp4"),
        "W4A8_NVFP4_FP8": ("nvfp4", "fp8"),
        "MXFP4": ("mxfp4", hint.activations),
        "W4A8_MXFP4_FP8": ("mxfp4", "fp8"),
        "MXFP8": ("mxfp8", "mxfp8"),
        "W4A16": ("int4", hint.activations),
        "W4A16_AWQ": ("int4", hint.activations),
        "W4A8_AWQ": ("int4", "fp8"),
        "W8A16": ("int8", hint.activations),
        "W8A8_SQ_PER_CHANNEL": ("int8", "int8"),
        "INT8": ("int8", "int8"),
    }
    if algorithm not in pairs:
        left(hint, f"quant_algo {algorithm or 'none'} is not known")
        return
    hint.weights, hint.activations = pairs[algorithm]
    if hint.weights == "int4" and group not in (None, 128, 0):
        hint.weights = _integer(4, group, fields)
    cache = str(block.get("kv_cache_quant_algo") or "").upper()
    if not cache and isinstance(block.get("kv_cache_scheme"), dict):
        hint.kv = _compressed(block["kv_cache_scheme"], hint.kv, fields)
    hint.kv = {"FP8": "fp8", "NVFP4": "nvfp4", "INT8": "int8"}.get(cache, hint.kv)


def _compressed_tensors(hint: Hint, block: dict[str, Any], fields: Fields) -> None:
    groups = block.get("config_groups")
    groups = groups if isinstance(groups, dict) else {}
    first = next(iter(groups.values()), None)
    if not isinstance(first, dict):
        left(hint, "quantization without config_groups")
        return
    if len(groups) > 1:
        hint.warnings.append("several config_groups: the first is taken for all weights")
    hint.weights = _compressed(first.get("weights"), hint.weights, fields)
    hint.activations = _compressed(first.get("input_activations"), hint.activations, fields)
    hint.kv = _compressed(block.get("kv_cache_scheme"), hint.kv, fields)


def _compressed(scheme: Any, otherwise: str, fields: Fields) -> str:
    """A scheme of compressed-tensors (bits, type, strategy, group size) as a format."""
    if not isinstance(scheme, dict) or scheme.get("num_bits", 16) == 16:
        return otherwise
    bits, group = scheme["num_bits"], scheme.get("group_size")
    if scheme.get("type") != "float":
        return "int8" if bits == 8 and not group else _integer(bits, group, fields)
    if bits == 4:
        return "mxfp4" if group == 32 else "nvfp4"
    blocks = scheme.get("block_structure") == [128, 128]
    return "fp8-block" if blocks else ("mxfp8" if group == 32 else "fp8")


def _bitsandbytes(hint: Hint, block: dict[str, Any], fields: Fields) -> None:
    if _flag(block, "load_in_8bit", fields):
        hint.weights = "int8"
    elif not _flag(block, "load_in_4bit", fields):
        left(hint, "bitsandbytes without load_in_4bit or load_in_8bit")
    elif _flag(block, "bnb_4bit_use_double_quant", fields):
        hint.weights = "w4.127"  # QLoRA, arXiv 2305.14314: 0.127 bit of constants
    else:
        hint.weights = "w4.5"  # one fp32 constant per 64


def _flag(block: dict[str, Any], key: str, fields: Fields) -> bool:
    value = block.get(key)
    if value is not None and not isinstance(value, bool):
        raise fields.wrong(f"quantization_config.{key}", value, "true or false")
    return bool(value)


_QUARK = {"fp8_e4m3": "fp8", "int8": "int8", "fp4": "mxfp4", "int4": "int4"}
"""Dtypes of AMD Quark that one of our formats stands for."""


def _quark(hint: Hint, block: dict[str, Any], fields: Fields) -> None:
    """AMD Quark: one setting for all layers, of weights, inputs and, where it is, cache."""
    whole = block.get("global_quant_config")
    whole = whole if isinstance(whole, dict) else {}
    weights = _quark_format(whole.get("weight"), fields)
    if weights is None:
        left(hint, "quark without a known dtype of the weights")
        return
    hint.weights = weights
    hint.activations = _quark_format(whole.get("input_tensors"), fields) or hint.activations
    cache = block.get("kv_cache_quant_config")
    layers = [*cache.values()] if isinstance(cache, dict) else []
    outputs = [layer.get("output_tensors") for layer in layers if isinstance(layer, dict)]
    hint.kv = next(filter(None, (_quark_format(out, fields) for out in outputs)), hint.kv)


def _quark_format(scheme: Any, fields: Fields) -> str | None:
    if not isinstance(scheme, dict):
        return None
    kind = _QUARK.get(str(scheme.get("dtype")))
    if kind == "mxfp4" and scheme.get("group_size") != 32:
        return None
    if kind == "int4" and scheme.get("group_size") is not None:
        return _integer(4, scheme["group_size"], fields)
    return kind


def _int8(hint: Hint, block: dict[str, Any], fields: Fields) -> None:
    del block, fields
    hint.weights = "int8"


def _ternary(hint: Hint, block: dict[str, Any], fields: Fields) -> None:
    del block, fields
    hint.weights = "w2"  # four ternary weights in a byte


_METHODS: dict[str, Callable[[Hint, dict[str, Any], Fields], None]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fp8,
    "mxfp4": _mxfp4,
    "gptq": _grouped_int,
    "awq": _grouped_int,
    "gptq_marlin": _grouped_int,
    "awq_marlin": _grouped_int,
    "auto-round": _grouped_int,
    "intel/auto-round": _grouped_int,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "compressed-tensors": _compressed_tensors,
    "bitsandbytes": _bitsandbytes,
    "quark": _quark,
    "eetq": _int8,
    "bitnet": _ternary,
    "exl2": bits_per_weight,
    "exl3": bits_per_weight,
    "hqq": hqq,
    "aqlm": aqlm,
    "quanto": quanto,
    "torchao": torchao,
}
"""Readers of a quantization block by its ``quant_method``."""
