"""Formats of a checkpoint from its dtype and its quantization block."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from chipsim.errors import ConfigError
from chipsim.importers import import_huggingface
from chipsim.ops.formats import get_format
from chipsim.ops.parameters import module_parameters
from tests.importers.files import llama, write
from tests.importers.published import PUBLISHED

if TYPE_CHECKING:
    from pathlib import Path

    from chipsim.importers import Imported


def with_block(folder: Path, block: dict[str, Any]) -> Imported:
    return import_huggingface(write(folder, llama(quantization_config=block)))


def group(weights: dict[str, Any], inputs: dict[str, Any] | None) -> dict[str, Any]:
    scheme = {"weights": weights, "input_activations": inputs, "targets": ["Linear"]}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": scheme}}


FP8 = {"num_bits": 8, "type": "float", "strategy": "tensor"}
FP4 = {"num_bits": 4, "type": "float", "group_size": 16, "strategy": "tensor_group"}
INT4 = {"num_bits": 4, "type": "int", "group_size": 32, "strategy": "group"}


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("bfloat16", "bf16"), ("float16", "fp16"), ("torch.float32", "fp32"), ("auto", "bf16")],
)
def test_a_dtype_is_all_formats(tmp_path: Path, dtype: str, name: str) -> None:
    found = import_huggingface(write(tmp_path, llama(torch_dtype=dtype))).precision
    assert (found.weights, found.activations, found.kv) == (name, name, name)


@pytest.mark.parametrize(
    ("block", "formats"),
    [
        ({"quant_method": "fp8", "fmt": "e4m3"}, ("fp8", "fp8", "bf16")),
        (
            {"quant_method": "fp8", "weight_block_size": [128, 128]},
            ("fp8-block", "fp8", "bf16"),
        ),
        ({"quant_method": "mxfp4"}, ("mxfp4", "bf16", "bf16")),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, ("int4-g128", "bf16", "bf16")),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, ("int8-g256", "bf16", "bf16")),
        ({"quant_method": "gptq", "bits": 3, "group_size": 128}, ("w3.125", "bf16", "bf16")),
        ({"quant_method": "awq", "bits": 4, "group_size": 64}, ("int4-g64", "bf16", "bf16")),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, ("w4.5", "bf16", "bf16")),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, ("int8", "bf16", "bf16")),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": FP8},
            ("nvfp4", "nvfp4", "fp8"),
        ),
        (
            {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"},
            ("fp8", "fp8", "fp8"),
        ),
        (group(FP8, FP8), ("fp8", "fp8", "bf16")),
        (group(FP4, FP4), ("nvfp4", "nvfp4", "bf16")),
        (group(INT4, None), ("int4-g32", "bf16", "bf16")),
        (group(FP8, FP8) | {"kv_cache_scheme": FP8}, ("fp8", "fp8", "fp8")),
        (
            group(FP8 | {"strategy": "block", "block_structure": [128, 128]}, FP8),
            ("fp8-block", "fp8", "bf16"),
        ),
    ],
)
def test_a_block_gives_the_formats(
    tmp_path: Path, block: dict[str, Any], formats: tuple[str, str, str]
) -> None:
    imported = with_block(tmp_path, block)
    found = imported.precision
    assert (found.weights, found.activations, found.kv) == formats
    assert imported.model.precision.decode == found
    assert not imported.warnings


def test_a_cache_in_fp8_halves_its_bytes(tmp_path: Path) -> None:
    plain = import_huggingface(write(tmp_path, llama()))
    fp8 = with_block(tmp_path, group(FP8, FP8) | {"kv_cache_scheme": FP8})
    assert plain.kv_bytes_per_token == 2 * 4 * 2 * 32 * 2
    assert fp8.kv_bytes_per_token == plain.kv_bytes_per_token / 2


def test_a_block_beside_the_configuration_is_read(tmp_path: Path) -> None:
    write(tmp_path, llama(), "config.json")
    block = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}
    write(tmp_path, block, "hf_quant_config.json")
    found = import_huggingface(tmp_path).precision
    assert (found.weights, found.kv) == ("nvfp4", "fp8")


def test_an_unknown_method_is_a_warning(tmp_path: Path) -> None:
    imported = with_block(tmp_path, {"quant_method": "novel"})
    assert imported.precision.weights == "bf16"
    assert imported.warnings == ("quantization novel is not known: weights are taken as bf16",)


def test_modules_that_stay_as_they_are_are_a_warning(tmp_path: Path) -> None:
    block = group(INT4, None) | {"ignore": ["lm_head", "re:.*self_attn.*"]}
    (warning,) = with_block(tmp_path, block).warnings
    assert warning.startswith("attention is not quantized")


def test_experts_alone_are_quantized_where_attention_is_not(tmp_path: Path) -> None:
    block = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}
    config = PUBLISHED["gpt-oss-120b"].config | {"quantization_config": block}
    imported = import_huggingface(write(tmp_path, config))
    found, model = imported.precision, imported.model
    assert (found.weights, found.experts) == ("bf16", "mxfp4")
    # The model card (arXiv 2508.10925), Table 1: a checkpoint of 60.8 GiB.
    counts = module_parameters(model)
    stored = sum(
        count * get_format(found.weights_of(module)).bytes for module, count in counts.items()
    )
    assert stored / 2**30 == pytest.approx(60.8, rel=0.01)


def test_a_name_that_tells_more_than_the_file_is_a_warning(tmp_path: Path) -> None:
    file = write(tmp_path, llama(), "some--Model-8B-NVFP4.json")
    (warning,) = import_huggingface(file).warnings
    assert "nvfp4" in warning


HQQ = {"quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}}
NEGATIVE = {"group_size": -3}
AO: dict[str, Any] = {"_type": "Int4WeightOnlyConfig", "_data": {"group_size": 64}}


@pytest.mark.parametrize(
    ("block", "weights", "activations"),
    [
        ({"quant_method": "exl2", "bits": 3.5, "head_bits": 6}, "w3.5", "bf16"),
        ({"quant_method": "exl3", "bits": 2.5}, "w2.5", "bf16"),
        # 4 bits, and a scale and a zero of 16 bits for 64 weights
        ({"quant_method": "hqq", **HQQ}, "w4.5", "bf16"),
        # one index of 16 bits for 8 weights: the 2 bits of AQLM's 1x16
        ({"quant_method": "aqlm", "nbits_per_codebook": 16, "in_group_size": 8}, "w2", "bf16"),
        ({"quant_method": "quanto", "weights": "int8"}, "int8", "bf16"),
        ({"quant_method": "torchao", "quant_type": "int4_weight_only"}, "int4", "bf16"),
        ({"quant_method": "torchao", "quant_type": {"default": AO}}, "int4-g64", "bf16"),
        (
            {
                "quant_method": "torchao",
                "quant_type": "float8_dynamic_activation_float8_weight",
            },
            "fp8",
            "fp8",
        ),
    ],
)
def test_bits_per_weight_of_other_methods(
    tmp_path: Path, block: dict[str, Any], weights: str, activations: str
) -> None:
    imported = with_block(tmp_path, block)
    found = imported.precision
    assert (found.weights, found.activations, found.kv) == (weights, activations, "bf16")
    assert not any("not known" in warning for warning in imported.warnings)


@pytest.mark.parametrize(
    ("block", "named"),
    [
        ({"quant_method": "exl2", "bits": 0}, "quantization_config.bits: 0 "),
        ({"quant_method": "exl2", "bits": float("nan")}, "quantization_config.bits: nan "),
        ({"quant_method": "exl2"}, "quantization_config.bits: None "),
        ({"quant_method": "hqq", "quant_config": []}, "weight_quant_params.nbits: None "),
        ({"quant_method": "aqlm", "num_codebooks": "2"}, "num_codebooks: '2' "),
        ({"quant_method": "aqlm", "in_group_size": 1, "num_codebooks": 9}, "(here 144)"),
        ({"quant_method": "quanto", "weights": "int3"}, "weights: 'int3' "),
        (
            {"quant_method": "torchao", "quant_type": {"default": AO | {"_data": NEGATIVE}}},
            "group_size: -3 ",
        ),
    ],
)
def test_bits_that_are_none_are_refused(
    tmp_path: Path, block: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(named)):
        with_block(tmp_path, block)
