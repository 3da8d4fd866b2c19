"""Files that no one should write: each is one line of error, or a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from chipsim.errors import ChipsimError, ConfigError
from chipsim.importers import import_huggingface
from tests.importers.files import llama, write
from tests.importers.published import PUBLISHED

if TYPE_CHECKING:
    from pathlib import Path

TEXT = json.dumps(llama())


def told(file: Path) -> str:
    with pytest.raises(ChipsimError) as caught:
        import_huggingface(file)
    message = str(caught.value)
    assert "\n" not in message
    return message


def raw(folder: Path, content: str | bytes) -> Path:
    file = folder / "model.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@pytest.mark.parametrize(
    "content",
    [
        bytes(range(256)),
        b"\0" * 64,
        TEXT.encode("utf-16"),
        TEXT.replace("llama", "ll\xe4ma").encode("latin-1"),
        "[" * 100_000,
        '{"a":' * 50_000,
        TEXT + "x",
        TEXT[:-1] + ",}",
        "// comment\n" + TEXT,
        TEXT.replace("256", "9" * 5000),
    ],
    ids=[
        "binary",
        "zeros",
        "utf-16",
        "latin-1",
        "lists",
        "objects",
        "rest",
        "comma",
        "//",
        "9",
    ],
)
def test_what_is_no_json_is_refused(tmp_path: Path, content: str | bytes) -> None:
    assert "allowed: a JSON object" in told(raw(tmp_path, content))


def test_a_byte_order_mark_and_much_else_are_no_harm(tmp_path: Path) -> None:
    plain = import_huggingface(raw(tmp_path, TEXT)).model
    marked = import_huggingface(raw(tmp_path, b"\xef\xbb\xbf" + TEXT.encode())).model
    deep = '{"a":' * 200 + "1" + "}" * 200
    much = f'{TEXT[:-1]}, "x": {deep}, "y": {list(range(100_000))}}}'
    assert plain == marked == import_huggingface(raw(tmp_path, much)).model


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "256.5", "1e30"])
def test_a_number_that_is_no_size_is_refused(tmp_path: Path, number: str) -> None:
    message = told(raw(tmp_path, TEXT.replace(": 256", f": {number}")))
    assert "model.json: hidden_size: " in message


@pytest.mark.parametrize(
    "more", ['"num_hidden_layers": 8', '"rope": {"a": 1, "a": 2}', '"vocab_size": null']
)
def test_a_key_that_says_two_things_is_refused(tmp_path: Path, more: str) -> None:
    message = told(raw(tmp_path, f"{TEXT[:-1]}, {more}}}"))
    assert "one value, and an earlier one differs" in message


def test_a_key_that_says_the_same_twice_is_read(tmp_path: Path) -> None:
    twice = raw(tmp_path, f'{TEXT[:-1]}, "num_hidden_layers": 4}}')
    assert import_huggingface(twice).model.layers == 4


def test_odd_places(tmp_path: Path) -> None:
    (tmp_path / "folder" / "config.json").mkdir(parents=True)
    assert "no config.json in this folder" in told(tmp_path / "folder")
    assert "no config.json in this folder" in told(tmp_path / "folder" / "config.json")
    loop = tmp_path / "loop"
    loop.mkdir()
    (loop / "config.json").symlink_to("config.json")
    assert "no config.json in this folder" in told(loop)
    assert "no such file" in told(loop / "config.json")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "no such file" in told(tmp_path / "a")
    assert "no such file" in told(tmp_path / ("x" * 5000))
    assert "no such file" in told(tmp_path / "a\0b")


def test_a_folder_that_is_linked_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    write(tmp_path / "real", llama(), "config.json")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert import_huggingface(tmp_path / "link").model.layers == 4


def test_an_unreadable_block_beside_is_refused(tmp_path: Path) -> None:
    write(tmp_path, llama(), "config.json")
    beside = tmp_path / "hf_quant_config.json"
    for content in ("nonsense", "[]", '{"quantization": 3}'):
        beside.write_text(content, encoding="utf-8")
        assert "hf_quant_config.json" in told(tmp_path)


@pytest.mark.parametrize(
    ("block", "key"),
    [
        ({"quant_method": "fp8", "weight_block_size": "x"}, "weight_block_size"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, "weight_block_size"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": "yes"}, "load_in_4bit"),
        ({"quant_method": "gptq", "bits": 0}, "bits"),
        ({"quant_method": "awq", "bits": [4]}, "bits"),
        ({"quant_algo": "W4A16", "group_size": [64]}, "group_size"),
        ({"quant_method": "gptq", "group_size": -5}, "group_size"),
    ],
)
def test_a_bad_block_names_its_key(tmp_path: Path, block: dict[str, Any], key: str) -> None:
    message = told(write(tmp_path, llama(quantization_config=block)))
    assert f"model.json: quantization_config.{key}: " in message


def quark(weight: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"quant_method": "quark", "global_quant_config": {"weight": weight, **more}}


MX = {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0"}
FP8 = {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}


@pytest.mark.parametrize(
    ("block", "formats"),
    [
        (quark(MX, input_tensors=MX), ("mxfp4", "mxfp4", "bf16")),
        (quark(FP8, input_tensors=FP8), ("fp8", "fp8", "bf16")),
        (quark({"dtype": "int4", "group_size": 128}), ("int4-g128", "bf16", "bf16")),
        (
            quark(FP8) | {"kv_cache_quant_config": {"*k_proj": {"output_tensors": FP8}}},
            ("fp8", "bf16", "fp8"),
        ),
    ],
)
def test_the_blocks_of_quark(
    tmp_path: Path, block: dict[str, Any], formats: tuple[str, str, str]
) -> None:
    imported = import_huggingface(write(tmp_path, llama(quantization_config=block)))
    found = imported.precision
    assert (found.weights, found.activations, found.kv) == formats
    assert not imported.warnings


@pytest.mark.parametrize(
    "block",
    [
        {"quant_method": "bitsandbytes"},
        {"quant_method": "bitsandbytes", "load_in_4bit": False, "load_in_8bit": False},
        {"quant_method": "hqq"},
        {"quant_method": 3},
        quark({"dtype": "int3"}),
        quark({"dtype": "fp4", "group_size": 16}),
        {"quant_method": "compressed-tensors", "config_groups": {}},
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"},
    ],
)
def test_what_a_block_leaves_open_is_a_warning(tmp_path: Path, block: dict[str, Any]) -> None:
    imported = import_huggingface(write(tmp_path, llama(quantization_config=block)))
    (warning,) = imported.warnings
    assert "weights are taken as bf16" in warning
    assert imported.precision.weights == "bf16"


@pytest.mark.parametrize(
    ("name", "changes", "key"),
    [
        ("deepseek-v4-flash", {"compress_ratios": [0, 0, 4]}, "compress_ratios"),
        ("deepseek-v4-flash", {"compress_ratios": [64] * 43}, "compress_ratios"),
        ("deepseek-v4-flash", {"o_groups": 7}, "output_groups"),
        ("deepseek-v4-flash", {"hc_mult": 1}, "hc_mult"),
        ("jamba-v0.1", {"attn_layer_period": None}, "attn_layer_period"),
        ("jamba-v0.1", {"mamba_proj_bias": True}, "mamba_proj_bias"),
        ("jamba-v0.1", {"mamba_dt_rank": "x"}, "mamba_dt_rank"),
        ("jamba-v0.1", {"mamba_dt_rank": [1]}, "mamba_dt_rank"),
        ("falcon-mamba-7b", {"state_size": None}, "state_size"),
        ("falcon-mamba-7b", {"use_bias": True}, "use_bias"),
        ("mamba-codestral-7b", {"num_heads": None}, "num_heads"),
        ("lfm2-1.2b", {"full_attn_idxs": None}, "layer_types"),
        ("lfm2-1.2b", {"conv_bias": True}, "conv_bias"),
        ("lfm2-1.2b", {"conv_L_cache": 0}, "conv_L_cache"),
        ("falcon-h1-34b", {"projectors_bias": True}, "projectors_bias"),
        ("falcon-h1-34b", {"mamba_n_heads": None}, "mamba_n_heads"),
        ("longcat-flash", {"num_layers": None}, "num_layers"),
        ("longcat-flash", {"zero_expert_num": -1}, "zero_expert_num"),
        ("hunyuan-large", {"cla_share_factor": None}, "cla_share_factor"),
    ],
)
def test_uncommon_models_name_what_is_wrong(
    tmp_path: Path, name: str, changes: dict[str, Any], key: str
) -> None:
    config = {k: v for k, v in (PUBLISHED[name].config | changes).items() if v is not None}
    with pytest.raises(ConfigError) as caught:
        import_huggingface(write(tmp_path, config))
    assert f"{key}: " in str(caught.value)


def test_a_size_of_another_kind_is_refused_where_it_tells_a_part(tmp_path: Path) -> None:
    config = llama(architectures=["NewForCausalLM"], model_type="new", q_lora_rank=[64])
    assert "kv_lora_rank: None" in told(write(tmp_path, config))


@pytest.mark.parametrize("layers", [[40], list(range(40))])
def test_layers_of_cross_attention_are_some_of_the_layers(
    tmp_path: Path, layers: list[int]
) -> None:
    config = dict(PUBLISHED["llama-3.2-11b-vision"].config)
    config["text_config"] = config["text_config"] | {"cross_attention_layers": layers}
    assert "cross_attention_layers" in told(write(tmp_path, config))
