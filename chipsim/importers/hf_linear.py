"""Layers with a state: Mamba-1 and -2, gated delta net, KDA, lightning attention, LFM2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipsim.importers.hf_formats import format_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from chipsim.importers.hf_architectures import Architecture
    from chipsim.importers.hf_fields import Fields


MOST_TAPS = 1024
"""No convolution here is longer."""


def linear_part(fields: Fields, traits: Architecture) -> dict[str, Any]:
    """The recurrent mixer of a configuration.

    Raises
    ------
    ConfigError
        No rule is known for the architecture's recurrent layers, or a size is missing.
    """
    rule = traits.linear if traits.linear != "none" else _guessed(fields)
    if rule is None:
        key = "layer_types" if fields.has("layer_types") else "model_type"
        value = "linear_attention" if key == "layer_types" else fields.raw(key)
        allowed = "recurrent layers whose sizes are written (linear_num_value_heads, ...)"
        raise fields.wrong(key, value, allowed)
    if rule == "scan":
        return {"kind": "scan", **_scan(fields), "inner_norms": traits.inner_norms}
    if rule == "conv":
        taps = fields.whole("conv_L_cache", MOST_TAPS)
        return {"kind": "conv", "channels": fields.whole("hidden"), "conv": taps}
    return {"kind": "linear", "rule": rule, **_READERS[rule](fields)}


def _guessed(fields: Fields) -> str | None:
    """The rule that the keys of an unknown architecture tell."""
    for name, rule in (("delta_heads", "delta"), ("kda_heads", "kda"), ("ssm_heads", "ssm")):
        if fields.has(name):
            return rule
    return None


def _delta(fields: Fields) -> dict[str, Any]:
    heads, keys = fields.whole("delta_heads"), fields.whole("linear_num_key_heads")
    if heads % keys:
        key, value = fields.find("linear_num_key_heads")
        raise fields.wrong(key, value, f"a divisor of the {heads} value heads")
    return {
        "heads": heads,
        "key_heads": keys,
        "key_dim": fields.whole("linear_key_head_dim"),
        "value_dim": fields.whole("linear_value_head_dim"),
        "conv": fields.maybe("linear_conv", MOST_TAPS) or 0,
        **_state_format(fields),
    }


def _kda(fields: Fields) -> dict[str, Any]:
    width = fields.whole("kda_head_dim")
    return {
        "heads": fields.whole("kda_heads"),
        "key_dim": width,
        "value_dim": width,
        "conv": fields.maybe("linear_conv", MOST_TAPS) or 0,
    }


def _ssm(fields: Fields) -> dict[str, Any]:
    heads, groups = fields.whole("ssm_heads"), fields.maybe("ssm_groups") or 1
    if heads % groups:
        key, value = fields.find("ssm_groups")
        raise fields.wrong(key, value, f"a divisor of the {heads} heads")
    return {
        "heads": heads,
        "key_heads": groups,
        "key_dim": fields.whole("ssm_state"),
        "value_dim": _ssm_head_dim(fields, heads),
        "conv": fields.maybe("ssm_conv", MOST_TAPS) or 0,
        "conv_bias": fields.flag("ssm_conv_bias"),
        "norm": fields.raw("mamba_rms_norm") is not False,
        "chunk": fields.maybe("ssm_chunk") or 256,
        **_state_format(fields),
    }


def _ssm_head_dim(fields: Fields, heads: int) -> int:
    """Width of a head; ``auto`` shares the expanded hidden size out."""
    key, value = fields.find("ssm_head_dim")
    if value is not None and value != "auto":
        return fields.checked(key, value)
    inner = fields.maybe("mamba_d_ssm") or _expanded(fields)
    if inner % heads:
        raise fields.wrong(key, value, f"a width: {heads} heads do not divide {inner}")
    return inner // heads


def _scan(fields: Fields) -> dict[str, Any]:
    """A selective scan; the rank of its step size is 1/16 of the hidden size by default."""
    key, rank = fields.find("ssm_rank")
    if rank in (None, "auto"):
        rank = -(-fields.whole("hidden") // 16)
    return {
        "channels": _expanded(fields),
        "state": fields.whole("ssm_state"),
        "rank": fields.checked(key, rank),
        "conv": fields.maybe("ssm_conv", MOST_TAPS) or 0,
        "conv_bias": fields.flag("ssm_conv_bias"),
        **_state_format(fields),
    }


def _expanded(fields: Fields) -> int:
    """Width of the expanded input of a state-space layer."""
    return (fields.maybe("ssm_expand") or 2) * fields.whole("hidden")


def _decay(fields: Fields) -> dict[str, Any]:
    heads = fields.whole("heads")
    width = fields.maybe("head_dim") or max(1, fields.whole("hidden") // heads)
    return {
        "heads": heads,
        "key_dim": width,
        "value_dim": width,
        "chunk": fields.maybe("block_size") or 256,
    }


def _state_format(fields: Fields) -> dict[str, str]:
    """The format of the state where the configuration says it (fp32 otherwise)."""
    found = format_of(fields, "ssm_dtype")
    return {} if found is None else {"state_format": found}


_READERS: dict[str, Callable[[Fields], dict[str, Any]]] = {
    "delta": _delta,
    "kda": _kda,
    "ssm": _ssm,
    "decay": _decay,
}
