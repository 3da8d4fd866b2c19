"""Dense MLPs, routed experts and shared experts of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipsim.importers.hf_architectures import Architecture
    from chipsim.importers.hf_fields import Fields

FUNCTIONS = {
    "silu": "silu",
    "swish": "silu",
    "swiglu": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu",
    "gelu_fast": "gelu",
    "gelu_python": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "gelu_pytorch": "gelu",
    "quick_gelu": "gelu",
    "geglu": "gelu",
    "relu": "relu",
    "relu2": "relu2",
    "relu_squared": "relu2",
    "squared_relu": "relu2",
    "xielu": "relu2",
}
"""Names of an activation in configurations, and ours."""
ROUTER_BIAS_KEYS = (
    "use_routing_bias",
    "use_moe_router_bias",
    "use_expert_bias",
    "moe_router_enable_expert_bias",
    "moe_use_aux_free",
)


def activation(fields: Fields, traits: Architecture) -> str:
    """The non-linear function of the MLP."""
    name = fields.text("activation")
    if name is None:
        return traits.activation
    if name.lower() not in FUNCTIONS:
        raise fields.wrong(fields.find("activation")[0], name, ", ".join(FUNCTIONS))
    return FUNCTIONS[name.lower()]


def expert_count(fields: Fields) -> int:
    """Routed experts per layer; 0 for a dense model."""
    count = fields.uniform("experts", 0) or 0
    return count if count > 1 else 0


def dense_width(fields: Fields, traits: Architecture) -> int | None:
    """Width of a dense MLP; None where the configuration has none."""
    if fields.raw("experts") == 0 and fields.maybe("shared_width", least=0):
        return fields.whole("shared_width")  # Granite 4 without experts
    if expert_count(fields) and fields.has("dense_width"):
        return fields.whole("dense_width")
    width = fields.uniform("intermediate")
    if width is None and traits.intermediate_ratio is not None:
        ratio = fields.maybe("expansion_ratio") or traits.intermediate_ratio
        return ratio * fields.whole("hidden")
    if width is not None and traits.halved_intermediate:
        return width // 2
    if width is not None and traits.adjusted_intermediate:
        return _adjusted(fields, width)
    return width


def _adjusted(fields: Fields, width: int) -> int:
    """LFM2's width: 2/3 of the file's, times a factor, up to a whole multiple."""
    if not fields.flag("block_auto_adjust_ff_dim"):
        return width
    key, factor = fields.find("block_ffn_dim_multiplier")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 1000:
        raise fields.wrong(key, factor, "a number above 0")
    multiple = fields.whole("block_multiple_of")
    return -(-int(factor * int(2 * width / 3)) // multiple) * multiple


def expert_part(fields: Fields, traits: Architecture) -> dict[str, Any]:
    """The routed and shared experts of a layer that has some.

    Raises
    ------
    ConfigError
        A size is missing, or more experts per token than experts.
    """
    experts = expert_count(fields)
    top_k = fields.uniform("top_k")
    if top_k is None and not traits.requires:  # a known family has a key of its own
        top_k = fields.uniform("bare_top_k")
    if top_k is None:
        raise fields.wrong(fields.find("top_k")[0], None, "the key is required")
    if top_k > experts:
        raise fields.wrong(fields.find("top_k")[0], top_k, f"at most the {experts} experts")
    width = fields.uniform("expert_width")
    if width is None:
        width = fields.whole("expert_width" if traits.single_parts else "intermediate")
    part: dict[str, Any] = {
        "kind": "moe",
        "experts": experts,
        "top_k": top_k,
        "intermediate": width,
    }
    shared = _shared_width(fields, traits, width)
    if shared:
        part["shared_intermediate"] = shared
        if traits.shared_gate:
            part["shared_gate"] = True
    if _router_bias(fields, traits):
        part["router_bias"] = True
    if idle := fields.maybe("zero_expert_num", least=0):
        part["identity_experts"] = idle
    if (latent := fields.maybe("moe_latent_size")) is not None:
        part["latent"] = latent
    return part


def _shared_width(fields: Fields, traits: Architecture, width: int) -> int:
    """Width of all shared experts together."""
    count, own = fields.uniform("shared_experts", 0), fields.maybe("shared_width", least=0)
    if traits.dense_beside_experts != "none":
        return fields.whole(traits.dense_beside_experts)
    if traits.shared_like_expert:
        return width
    if count == 0:
        return 0
    return own if own is not None else (count or 0) * width


def _router_bias(fields: Fields, traits: Architecture) -> bool:
    if traits.router_bias or fields.raw("topk_method") == "noaux_tc":
        return True
    return any(fields.raw(key) is True for key in ROUTER_BIAS_KEYS)
