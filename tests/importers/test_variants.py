"""The same model written in several ways is the same model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chipsim.errors import ChipsimError
from chipsim.importers import import_huggingface
from chipsim.importers.hf_architectures import architecture, known
from chipsim.importers.hf_names import ALIASES
from chipsim.ops.layers import Experts, Grouped, Latent, Linear
from tests.importers.files import llama, write
from tests.importers.published import PUBLISHED

if TYPE_CHECKING:
    from pathlib import Path

    from chipsim.ops.model import ModelSpec


def model_of(folder: Path, config: dict[str, Any], name: str = "model.json") -> ModelSpec:
    return import_huggingface(write(folder, config, name)).model


def shape(model: ModelSpec) -> dict[str, Any]:
    return model.model_dump(exclude={"name", "description", "source"})


FLAT = [n for n, p in PUBLISHED.items() if "text_config" not in p.config]


@pytest.mark.parametrize("nested", ["text_config", "llm_config", "language_config"])
@pytest.mark.parametrize("name", FLAT)
def test_nested_is_flat(tmp_path: Path, name: str, nested: str) -> None:
    config = PUBLISHED[name].config
    inside = {
        "architectures": ["SomeVisionModel"],
        nested: config,
        "vision_config": {"depth": 3},
    }
    flat = import_huggingface(write(tmp_path, config))
    wrapped = import_huggingface(write(tmp_path, inside, "nested.json"))
    assert shape(wrapped.model) == shape(flat.model)
    assert wrapped.precision == flat.precision
    assert any("vision_config" in warning for warning in wrapped.warnings)


MOE = PUBLISHED["qwen3-30b-a3b"].config


@pytest.mark.parametrize(
    ("group", "config"),
    [
        (group, config)
        for group, config, written in (
            ("layers", llama(), True),
            ("hidden", llama(), True),
            ("heads", llama(), True),
            ("kv_heads", llama(), True),
            ("head_dim", llama(head_dim=48), True),
            ("intermediate", llama(), True),
            ("vocabulary", llama(), True),
            ("max_positions", llama(), True),
            ("activation", llama(hidden_act="gelu"), True),
            ("dtype", llama(), True),
            ("experts", MOE, True),
            ("top_k", MOE, True),
            ("expert_width", MOE, True),
            ("shared_experts", MOE | {"n_shared_experts": 2}, True),
            ("shared_width", MOE | {"shared_expert_intermediate_size": 512}, True),
            ("dense_first", MOE | {"first_k_dense_replace": 2}, True),
            ("window", llama(sliding_window=64), True),
        )
        if written
    ],
)
def test_every_name_of_a_key_means_the_same(
    tmp_path: Path, group: str, config: dict[str, Any]
) -> None:
    (written,) = [key for key in ALIASES[group] if key in config]
    first = shape(model_of(tmp_path, config))
    for alias in ALIASES[group]:
        value = {key: value for key, value in config.items() if key != written}
        inner = value
        *outer, last = alias.split(".")
        for key in outer:
            inner = inner.setdefault(key, {})
        inner[last] = config[written]
        assert shape(model_of(tmp_path, value)) == first, alias


def test_a_missing_count_of_kv_heads_is_one_per_head(tmp_path: Path) -> None:
    assert model_of(tmp_path, llama(num_key_value_heads=None)).kv_heads == 8


def test_a_null_that_is_written_is_no_default(tmp_path: Path) -> None:
    mistral = llama(model_type="mistral", architectures=["MistralForCausalLM"])
    assert kinds(model_of(tmp_path, mistral)) == "wwww"  # MistralConfig: 4096
    assert kinds(model_of(tmp_path, mistral | {"sliding_window": None})) == "ffff"


def test_an_explicit_head_size_is_kept(tmp_path: Path) -> None:
    assert model_of(tmp_path, llama(head_dim=48)).kv_elements_per_token == 2 * 4 * 2 * 48


def test_the_class_alone_tells_the_architecture(tmp_path: Path) -> None:
    config = PUBLISHED["qwen3-32b"].config
    bare = {key: value for key, value in config.items() if key != "model_type"}
    named = bare | {"architectures": ["Qwen3ForCausalLM"]}
    assert shape(model_of(tmp_path, named)) == shape(model_of(tmp_path, config))


def test_an_unknown_architecture_is_a_dense_decoder_with_a_warning(tmp_path: Path) -> None:
    config = llama(architectures=["NovelForCausalLM"], model_type="novel")
    imported = import_huggingface(write(tmp_path, config))
    assert shape(imported.model) == shape(model_of(tmp_path, llama()))
    assert imported.warnings == (
        "unknown architecture NovelForCausalLM: read as a dense decoder, MLP gated",
    )


def test_an_unknown_architecture_keeps_what_its_keys_say(tmp_path: Path) -> None:
    deepseek = PUBLISHED["deepseek-v3"].config
    novel = deepseek | {"model_type": "novel", "architectures": ["NovelForCausalLM"]}
    assert shape(model_of(tmp_path, novel)) == shape(model_of(tmp_path, deepseek))


def kinds(model: ModelSpec) -> str:
    letters = []
    for layer in model.sequence:
        mixer = layer.mixer
        if isinstance(mixer, Linear):
            letters.append("l")
        elif isinstance(mixer, Grouped):
            letters.append("w" if mixer.window else "f")
        else:
            letters.append("m" if isinstance(mixer, Latent) else "-")
    return "".join(letters)


def experts(model: ModelSpec) -> str:
    return "".join("e" if isinstance(layer.mlp, Experts) else "d" for layer in model.sequence)


LINEAR = {
    "linear_num_value_heads": 8,
    "linear_num_key_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
}


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, "ffff"),
        ({"sliding_window": 64}, "wwww"),
        ({"sliding_window": 64, "use_sliding_window": False}, "ffff"),
        ({"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 3}, "fffw"),
        ({"sliding_window": 64, "sliding_window_pattern": 2}, "wfwf"),
        ({"sliding_window": 64, "sliding_window_pattern": "LLG"}, "wwfw"),
        (
            {
                "sliding_window": 64,
                "layer_types": ["full_attention", "sliding_attention"] * 2,
            },
            "fwfw",
        ),
        ({"sliding_window": 64, "hybrid_layer_pattern": [0, 1, 1, 0]}, "fwwf"),
        ({**LINEAR, "full_attention_interval": 4}, "lllf"),
        ({**LINEAR, "layer_types": ["linear_attention"] * 3 + ["full_attention"]}, "lllf"),
    ],
)
def test_layers_are_windowed_or_recurrent_as_the_keys_say(
    tmp_path: Path, changes: dict[str, Any], wanted: str
) -> None:
    assert kinds(model_of(tmp_path, llama(**changes))) == wanted


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, "eeee"),
        ({"first_k_dense_replace": 1}, "deee"),
        ({"first_k_dense_replace": 1, "moe_layer_freq": 2}, "dded"),
        ({"moe_layer_freq": [0, 1, 1, 0]}, "deed"),
        ({"mlp_layer_types": ["dense", "sparse", "sparse", "dense"]}, "deed"),
        ({"decoder_sparse_step": 2}, "dede"),
        ({"decoder_sparse_step": 1, "mlp_only_layers": [0, 3]}, "deed"),
        ({"interleave_moe_layer_step": 2}, "dede"),
        ({"moe_layers": [1, 2]}, "deed"),
        ({"moe_layers_enum": "1,2"}, "deed"),
        ({"moe_layer_start_index": 1, "moe_layer_end_index": 2}, "deed"),
        ({"expert_layer_period": 2, "expert_layer_offset": 1}, "dede"),
        ({"num_dense_layers": 2}, "ddee"),
        ({"num_experts": 0}, "dddd"),
    ],
)
def test_layers_have_experts_as_the_keys_say(
    tmp_path: Path, changes: dict[str, Any], wanted: str
) -> None:
    moe = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
    assert experts(model_of(tmp_path, llama(**{**moe, **changes}))) == wanted


def test_searched_layers_keep_their_own_widths(tmp_path: Path) -> None:
    blocks = [
        {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 2.0}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 5.25}},
    ] * 2
    config = llama(
        architectures=["DeciLMForCausalLM"],
        model_type="nemotron-nas",
        num_key_value_heads=None,
        intermediate_size=None,
        block_configs=blocks,
    )
    model = model_of(tmp_path, config)
    assert kinds(model) == "f-f-"
    # 2/3 of 2.0 x 256 is 341, of 5.25 x 256 is 896: up to whole multiples of 256
    assert model.parameters == (
        2 * 1000 * 256 + 256  # tables, last norm
        + 2 * (256 * 32 * (8 + 2 * 2 + 8) + 256)  # attention and its norm
        + 2 * (3 * 256 * 512 + 256) + 2 * (3 * 256 * 1024 + 256)
    )  # fmt: skip


@pytest.mark.parametrize("model_type", known())
def test_every_architecture_is_well_formed(tmp_path: Path, model_type: str) -> None:
    traits = architecture(model_type)
    assert traits is not None
    config = llama(architectures=None, model_type=model_type)
    if traits.refused is not None:
        with pytest.raises(ChipsimError, match="cannot be imported"):
            model_of(tmp_path, config)
