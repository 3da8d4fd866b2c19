"""A key without which a configuration would be another model is required."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chipsim.errors import ConfigError
from chipsim.importers import import_huggingface
from tests.importers.files import llama, write
from tests.importers.published import PUBLISHED

if TYPE_CHECKING:
    from pathlib import Path

LATENT = ("n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "kv_lora_rank")
INDEXER = {"index_topk": 2048, "index_n_heads": 64, "index_head_dim": 128}
EXPERTS = ("num_experts", "num_experts_per_tok", "moe_intermediate_size")
LOCAL = ("num_local_experts", "num_experts_per_tok")
NEEDED = {
    "deepseek-v3": (*LATENT, "intermediate_size"),
    "deepseek-v2": LATENT,
    "qwen3-30b-a3b": EXPERTS,
    "mixtral-8x7b": (*LOCAL, "intermediate_size"),
    "gpt-oss-120b": (*LOCAL, "intermediate_size"),
}


def told(folder: Path, config: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        import_huggingface(write(folder, config))
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name, keys in NEEDED.items() for key in keys]
)
@pytest.mark.parametrize("null", [False, True])
def test_a_family_needs_its_keys(tmp_path: Path, name: str, key: str, null: bool) -> None:
    config = dict(PUBLISHED[name].config)
    del config[key]
    config |= {key: None} if null else {}
    assert f"{key}: None is not allowed; allowed: the key is required" in told(tmp_path, config)


@pytest.mark.parametrize("key", INDEXER)
def test_sparse_attention_needs_its_indexer(tmp_path: Path, key: str) -> None:
    config = PUBLISHED["deepseek-v3"].config | INDEXER | {"model_type": "deepseek_v32"}
    import_huggingface(write(tmp_path, config))
    del config[key]
    assert f"{key}: None is not allowed" in told(tmp_path, config)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"num_experts_per_tok": 2}, "num_experts"),
        ({"moe_intermediate_size": 64}, "num_experts"),
        ({"q_lora_rank": 64}, "kv_lora_rank"),
        ({"index_n_heads": 4}, "index_topk"),
    ],
)
def test_half_a_part_of_an_unknown_architecture_is_no_part(
    tmp_path: Path, changes: dict[str, Any], key: str
) -> None:
    config = llama(architectures=["NewForCausalLM"], model_type="new", **changes)
    message = told(tmp_path, config)
    assert f"{key}: None is not allowed; allowed: the key is required beside" in message


@pytest.mark.parametrize(
    "key", ["residual_moe", "parallel_attn_mlp_res", "use_residual", "mamba_d_state"]
)
def test_what_no_architecture_here_has_is_refused(tmp_path: Path, key: str) -> None:
    config = llama(architectures=["NewForCausalLM"], model_type="new", **{key: True})
    assert f"{key}: True is not allowed" in told(tmp_path, config)


@pytest.mark.parametrize("key", ["ssm_state_size", "state_size"])
def test_states_of_unknown_layers_are_refused(tmp_path: Path, key: str) -> None:
    config = llama(architectures=["NewForCausalLM"], model_type="new", **{key: 16})
    assert f"{key}: 16 is not allowed" in told(tmp_path, config)


def test_no_more_dense_layers_than_layers(tmp_path: Path) -> None:
    config = PUBLISHED["deepseek-v3"].config | {"first_k_dense_replace": 62}
    assert "first_k_dense_replace: 62 is not allowed; allowed: at most" in told(
        tmp_path, config
    )


def test_a_missing_width_has_the_name_that_its_family_gives_it(tmp_path: Path) -> None:
    config = llama(architectures=["OPTForCausalLM"], model_type="opt", intermediate_size=None)
    assert "ffn_dim: None is not allowed" in told(tmp_path, config)


@pytest.mark.parametrize("key", ["num_selected_experts", "top_k"])
def test_other_names_of_the_experts_of_a_token(tmp_path: Path, key: str) -> None:
    more = {"num_experts": 8, "moe_intermediate_size": 64, key: 3}
    config = llama(architectures=["NewForCausalLM"], model_type="new", **more)
    model = import_huggingface(write(tmp_path, config)).model
    assert model.parameters > model.active_parameters


@pytest.mark.parametrize("key", ["language_model_config", "thinker_config"])
def test_other_places_of_the_language_model(tmp_path: Path, key: str) -> None:
    config = {"architectures": ["TwoTowers"], "model_type": "towers", key: llama()}
    assert import_huggingface(write(tmp_path, config)).model.layers == 4
