"""Bad configurations: one line that names the file, the key, its value and what is allowed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipsim.errors import ChipsimError, ConfigError
from chipsim.importers import import_huggingface, import_model
from chipsim.ops.precision import Precision
from tests.importers.files import llama, write
from tests.importers.published import PUBLISHED

if TYPE_CHECKING:
    from pathlib import Path

    from chipsim.ops.model import ModelSpec

MOE = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64}


def told(folder: Path, config: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        import_huggingface(write(folder, config))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("model.json")
    return message


@pytest.mark.parametrize(
    ("changes", "key", "value"),
    [
        ({"num_attention_heads": 0}, "num_attention_heads", "0"),
        ({"num_key_value_heads": 0}, "num_key_value_heads", "0"),
        ({"num_key_value_heads": 3}, "num_key_value_heads", "3"),
        ({"num_attention_heads": 7}, "num_key_value_heads", "2"),
        ({"num_attention_heads": 6}, "num_attention_heads", "6"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers", "1000000000"),
        ({"num_hidden_layers": -1}, "num_hidden_layers", "-1"),
        ({"num_hidden_layers": 4.5}, "num_hidden_layers", "4.5"),
        ({"num_hidden_layers": True}, "num_hidden_layers", "True"),
        ({"hidden_size": "256"}, "hidden_size", "'256'"),
        ({"hidden_size": 10**30}, "hidden_size", "1000"),
        ({"hidden_size": math.nan}, "hidden_size", "nan"),
        ({"vocab_size": math.inf}, "vocab_size", "inf"),
        ({"intermediate_size": [512]*2 + [7]}, "intermediate_size", "512"),
        ({"torch_dtype": "float7"}, "torch_dtype", "'float7'"),
        ({"torch_dtype": 16}, "torch_dtype", "16"),
        ({"hidden_act": "tanhish"}, "hidden_act", "'tanhish'"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings", "'yes'"),
        ({"head_dim": 0}, "head_dim", "0"),
        ({"sliding_window": -5}, "sliding_window", "-5"),
        ({"layer_types": ["full_attention"] * 3}, "layer_types", "3 entries"),
        ({"layer_types": ["nothing"] * 4}, "layer_types", "'nothing'"),
        ({"layer_types": ["sliding_attention"] * 4}, "sliding_window", "None"),
        ({"layer_types": ["linear_attention"] * 4}, "layer_types", "'linear_attention'"),
        ({"layer_types": "full_attention"}, "layer_types", "'full_attention'"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder", "True"),
        ({"word_embed_proj_dim": 128}, "word_embed_proj_dim", "128"),
        ({"n_layer": 5}, "n_layer", "5"),
        ({"num_experts": 8}, "num_experts_per_tok", "None"),
        ({**MOE, "num_experts_per_tok": 9}, "num_experts_per_tok", "9"),
        ({**MOE, "moe_layers_enum": "a"}, "moe_layers_enum", "'a'"),
        ({"kv_lora_rank": 64}, "qk_nope_head_dim", "None"),
        ({"architectures": "LlamaForCausalLM"}, "architectures", "'LlamaForCausalLM'"),
        ({"architectures": [3]}, "architectures", "3"),
        ({"quantization_config": "fp8"}, "quantization_config", "'fp8'"),
        (
            {"quantization_config": {"quant_method": "gptq", "bits": "four"}},
            "quantization_config.bits",
            "'four'",
        ),
        ({"text_config": [1]}, "text_config", "[1]"),
    ],
)  # fmt: skip
def test_one_line_names_key_and_value(
    tmp_path: Path, changes: dict[str, Any], key: str, value: str
) -> None:
    message = told(tmp_path, llama(**changes))
    assert f": {key}: " in message
    assert value in message
    assert "allowed:" in message


@pytest.mark.parametrize(
    "key",
    [
        "num_hidden_layers",
        "hidden_size",
        "num_attention_heads",
        "intermediate_size",
        "vocab_size",
    ],
)
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    message = told(tmp_path, llama(**{key: None}))
    assert message == f"model.json: {key}: None is not allowed; allowed: the key is required"


@pytest.mark.parametrize(
    "key", ["qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "num_experts_per_tok"]
)
def test_a_missing_key_of_experts_and_latents_is_named(tmp_path: Path, key: str) -> None:
    config = {k: v for k, v in PUBLISHED["deepseek-v3"].config.items() if k != key}
    assert f": {key}: None" in told(tmp_path, config)


def test_a_model_without_a_name_of_its_kind_is_refused(tmp_path: Path) -> None:
    config = llama(architectures=None, model_type=None)
    assert ": model_type: None" in told(tmp_path, config)


@pytest.mark.parametrize("content", ["[1, 2]", "3", "nonsense", "", '{"a": ', "null"])
def test_what_is_no_object_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "model.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"model\.json.*a JSON object"):
        import_huggingface(file)


def test_a_folder_without_a_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChipsimError, match=r"no config\.json in this folder"):
        import_huggingface(tmp_path)
    with pytest.raises(ChipsimError, match="no such file"):
        import_huggingface(tmp_path / "absent.json")


def test_what_is_not_modelled_is_refused_with_the_reason(tmp_path: Path) -> None:
    config = llama(model_type="gemma3n_text", architectures=["Gemma3nForCausalLM"])
    with pytest.raises(ChipsimError, match=r"Gemma3nForCausalLM cannot be imported: .*AltUp"):
        import_huggingface(write(tmp_path, config))


def test_our_yaml_is_written_to_yaml_files_only(tmp_path: Path) -> None:
    file = write(tmp_path, llama())
    with pytest.raises(ConfigError, match=r"--out.*\.yaml"):
        import_model(file, tmp_path / "model.csv")


WILD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
NAMES = [
    "llama-3.1-8b",
    "deepseek-v3",
    "deepseek-v4-flash",
    "gemma-3-4b",
    "gemma-4-e2b",
    "nemotron-h-8b",
    "qwen3.5-397b-a17b",
    "jamba-v0.1",
    "falcon-mamba-7b",
    "lfm2-1.2b",
    "falcon-h1-7b",
    "longcat-flash",
    "hunyuan-large",
]


def outcome(file: Path) -> tuple[str, ModelSpec | None]:
    try:
        return "", import_huggingface(file).model
    except ChipsimError as error:
        return str(error), None


@settings(max_examples=400)
@given(data=st.data())
def test_any_value_imports_or_is_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(NAMES))
    config = dict(PUBLISHED[name].config)
    where = config
    if "text_config" in config and data.draw(st.booleans()):
        where = config["text_config"] = dict(config["text_config"])
    key = data.draw(st.sampled_from(sorted(where)))
    where[key] = data.draw(WILD)
    file = write(tmp_path_factory.getbasetemp(), config, "wild.json")
    message, model = outcome(file)
    assert "\n" not in message
    if model is None:
        assert "wild.json" in message
    else:
        assert model.parameters > 0
        assert math.isfinite(model.kv_bytes_per_token(Precision()))


@pytest.mark.parametrize("kind", ["t5", "bart", "whisper"])
def test_encoder_decoders_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    # T5's files say is_encoder_decoder; a converted one may not
    file = write(tmp_path, llama(model_type=kind, architectures=["X"]))
    with pytest.raises(ChipsimError, match="encoder-decoders are not modelled"):
        import_huggingface(file)
