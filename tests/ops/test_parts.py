"""Models of several kinds of layers: what a file may say, and what is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chipsim.errors import ConfigError
from chipsim.ops.layers import Dense, Experts, Grouped, Latent, Linear
from tests.ops.models import llama, model

if TYPE_CHECKING:
    from chipsim.ops.model import ModelSpec

MLA: dict[str, Any] = {
    "kind": "mla", "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4, "v_head_dim": 6,
}  # fmt: skip
MOE: dict[str, Any] = {"kind": "moe", "experts": 8, "top_k": 2, "intermediate": 40}
SSM: dict[str, Any] = {
    "kind": "linear", "rule": "ssm", "heads": 8, "key_heads": 2, "key_dim": 16, "value_dim": 4
}  # fmt: skip


def small(**fields: Any) -> ModelSpec:
    shape: dict[str, Any] = {"layers": 4, "hidden": 64, "heads": 4, "intermediate": 96}
    return llama(**(shape | fields))


def test_flat_fields_are_one_group() -> None:
    spec = small(kv_heads=2)
    (group,) = spec.groups
    assert (group.count, group.layer.name) == (4, "layer")
    assert group.layer.mixer == Grouped(4, 2, 16, 16)
    assert group.layer.mlp == Dense(96, gated=True, activation="silu")
    assert spec.sequence == (group.layer,) * 4


def test_parts_of_the_whole_model() -> None:
    spec = small(attention=MLA, mlp=MOE)
    (group,) = spec.groups
    assert group.layer.mixer == Latent(4, 24, 16, 8, 4, 6)
    assert isinstance(group.layer.mlp, Experts)
    assert (group.layer.mlp.gated, spec.is_moe, spec.head_dim) == (True, True, 12)


def test_kinds_stand_in_their_order() -> None:
    spec = small(
        layers=7,
        layer_kinds=[
            {"name": "local", "attention": {"window": 8}}, {"name": "full"},
            {"name": "state", "attention": SSM, "mlp": "none"},
        ],
        layer_order=[
            {"kinds": ["local", "full"], "times": 2}, {"kinds": ["state"], "times": 2},
            {"kinds": ["local"]},
        ],
    )  # fmt: skip
    assert [layer.name for layer in spec.sequence] == [
        "local", "full", "local", "full", "state", "state", "local"
    ]  # fmt: skip
    assert [(group.layer.name, group.count) for group in spec.groups] == [
        ("local", 3), ("full", 2), ("state", 2)
    ]  # fmt: skip
    local, _, state = (group.layer for group in spec.groups)
    assert isinstance(local.mixer, Grouped)
    assert local.mixer.window == 8
    assert isinstance(state.mixer, Linear)
    assert state.mlp is None


def test_models_of_many_parts_can_be_keys() -> None:
    first, second = (small(attention=MLA, mlp=MOE) for _ in range(2))
    assert hash(first) == hash(second)
    assert first == second
    assert first.groups == second.groups


def test_a_width_may_be_left_out_where_no_mlp_needs_it() -> None:
    assert small(intermediate=None, mlp=MOE).intermediate == 40
    with pytest.raises(ConfigError, match=r"intermediate: None .* required"):
        small(
            intermediate=None,
            layer_kinds=[{"name": "moe", "mlp": MOE}, {"name": "dense"}],
            layer_order=[{"kinds": ["moe", "dense"], "times": 2}],
        )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"attention": {"kind": "mlx"}},
            "attention: .* gqa, mla, compressed, linear, scan or conv",
        ),
        (
            {"attention": {"kind": ["mla"]}},
            "attention: .* gqa, mla, compressed, linear, scan or conv",
        ),
        ({"attention": 5}, "attention: 5"),
        ({"attention": {"kind": "mla"}}, "attention.kv_lora_rank: None .* required"),
        ({"attention": MLA | {"q_lora": 3}}, "attention.q_lora: 3 .* no such key"),
        ({"attention": {"window": 0}}, "attention.window: 0"),
        ({"attention": {"window": True}}, "attention.window: True"),
        ({"attention": {"kv_heads": 3}}, "attention.kv_heads: 3 .* a divisor of the 4 heads"),
        (
            {"attention": {"keys_are_values": True, "value_dim": 8}},
            "attention.value_dim: 8 .* 16, since keys are values",
        ),
        (
            {"attention": SSM | {"key_heads": 3}},
            "attention.key_heads: 3 .* a divisor of the 8 heads",
        ),
        ({"attention": SSM | {"rule": "rwkv"}}, "attention.rule: 'rwkv'"),
        ({"mlp": MOE | {"top_k": 9}}, "mlp.top_k: 9 .* at most the 8 experts"),
        ({"mlp": MOE | {"experts": 0}}, "mlp.experts: 0"),
        ({"mlp": {"kind": "sparse"}}, "mlp: .* dense or moe"),
        ({"layer_kinds": [{"name": "a"}]}, "layer_order: .* no other: a"),
        ({"layer_order": [{"kinds": ["a"], "times": 4}]}, "layer_order: .* no other: none"),
        (
            {"layer_kinds": [{"name": "a"}], "layer_order": [{"kinds": ["a"], "times": 3}]},
            "layer_order: .* 4 layers in all, not 3",
        ),
        (
            {"layer_kinds": [{"name": "a"}, {"name": "a"}]},
            "layer_order: .* kinds of different names",
        ),
        ({"layer_kinds": [{"name": "A b"}]}, r"layer_kinds.0.name: 'A b'"),
        (
            {
                "layer_kinds": [{"name": "a", "attention": "none", "mlp": "none"}],
                "layer_order": [{"kinds": ["a"], "times": 4}],
            },
            "layer_kinds.a.mlp: 'none' .* an MLP",
        ),
        ({"layers": 10**9}, "layers: 1000000000"),
        ({"parallel_norms": 3}, "parallel_norms: 3"),
    ],
)
def test_one_line_names_the_part(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        small(**fields)
    assert "\n" not in str(caught.value)


def test_an_encoder_is_a_model_of_its_own() -> None:
    tower = {
        "layers": 2, "hidden": 32, "heads": 4, "intermediate": 64, "tokens": 9, "outputs": 3
    }  # fmt: skip
    spec = small(encoder=tower)
    assert spec.parameters == small().parameters
    assert spec.encoder_model.layers == 2
    with pytest.raises(ConfigError, match="llama: encoder: None"):
        _ = small().encoder_model
    with pytest.raises(ConfigError, match=r"llama: encoder: head_dim: .* do not divide"):
        _ = small(encoder=tower | {"heads": 5}).encoder_model


@pytest.mark.parametrize(
    ("order", "reads", "message"),
    [
        (["reads", "builds"], {}, r"no layer before caches 4 x \(16 \+ 16\)"),
        (["builds", "reads"], {"kv_heads": 1}, r"no layer before caches 1 x \(16 \+ 16\)"),
        (["builds", "reads"], {"value_dim": 8}, r"no layer before caches 4 x \(16 \+ 8\)"),
    ],
)
def test_a_cache_is_shared_that_is_there(
    order: list[str], reads: dict[str, int], message: str
) -> None:
    kinds = [{"name": "builds"}, {"name": "reads", "attention": {"shares_cache": True} | reads}]
    field = r"layer_kinds\.reads\.attention\.shares_cache: True"
    with pytest.raises(ConfigError, match=f"{field} .* {message}"):
        small(layer_kinds=kinds, layer_order=[{"kinds": order, "times": 2}])
    with pytest.raises(ConfigError, match=r"attention\.shares_cache: True"):
        small(attention={"shares_cache": True})


def test_formats_by_phase_are_part_of_a_model() -> None:
    spec = small(precision={"prefill": {"weights": "nvfp4"}, "decode": {"weights": "w1.75"}})
    assert spec.precision.prefill is not None
    assert spec.precision.prefill.weights == "nvfp4"
    with pytest.raises(ConfigError, match=r"precision.prefill.weights: 'fp5'"):
        small(precision={"prefill": {"weights": "fp5"}})


def test_a_model_needs_a_source() -> None:
    with pytest.raises(ConfigError, match="source"):
        model(name="x", source=None)
