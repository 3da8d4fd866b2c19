"""Keys that a configuration must have, because without them it would be another model."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipsim.importers.hf_architectures import Architecture
    from chipsim.importers.hf_fields import Fields

TELLING = {
    "experts": ("top_k", "expert_width"),
    "kv_lora_rank": ("q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim"),
    "index_topk": ("index_n_heads", "index_head_dim"),
}
"""Sizes, and what tells that they are meant even in an architecture that is not known."""
REFUSED = {
    "is_encoder_decoder": "encoder-decoders are not modelled",
    "residual_moe": "a dense MLP beside the experts (residual_moe) is not modelled",
    "parallel_attn_mlp_res": "experts beside attention are not modelled",
    "use_residual": "a dense MLP beside the experts (use_residual) is not modelled",
}
"""Keys that, set, name what no architecture here has."""
RECURRENT = ("ssm_state_size", "state_size", "ssm_cfg")
"""Keys of recurrent layers; so is all that begins with ``mamba_``."""


def check_keys(fields: Fields, traits: Architecture, *, unknown: bool) -> None:
    """Refuse a configuration that lacks a key of its family, or has one of another.

    Raises
    ------
    ConfigError
        Names the key that is missing, or the one that says what is not modelled.
    """
    for key, reason in {**REFUSED, **traits.refusing_keys}.items():
        if reason is not None and fields.raw(key):
            raise fields.wrong(key, fields.raw(key), f"none: {reason}")
    _check_required(fields, traits)
    _check_told(fields, traits)
    if unknown:
        _check_recurrent(fields)


def _check_required(fields: Fields, traits: Architecture) -> None:
    for condition, keys in traits.requires.items():
        if condition != "always" and not fields.flag(condition):
            continue
        for alternatives in keys:
            names = alternatives.split("|")
            if "kv_lora_rank" in names and fields.raw("use_mla") is False:
                continue
            if not any(fields.has(fields.meaning(name)) for name in names):
                raise fields.wrong(names[0], None, "the key is required")


def _check_told(fields: Fields, traits: Architecture) -> None:
    """Experts, latent and indexer of which some sizes are there and one is not."""
    for name, signs in TELLING.items():
        if name == "kv_lora_rank" and traits.compressed:
            continue
        if fields.has(name) or (name == "kv_lora_rank" and fields.raw("use_mla") is False):
            continue
        found = [fields.find(sign) for sign in signs if fields.has(sign)]
        wanted = [key for key, value in found if value not in (0, 1)]
        if wanted and not fields.written(name):
            key = fields.find(name)[0]
            raise fields.wrong(key, None, f"the key is required beside {wanted[0]}")


def _check_recurrent(fields: Fields) -> None:
    """An unknown architecture with recurrent layers that nothing says the places of."""
    if any(fields.has(name) for name in ("hybrid_override_pattern", "layer_types")):
        return
    if fields.has("attn_layer_indices") or fields.has("layers_block_type"):
        return
    for key in fields.keys():  # noqa: SIM118 - Fields is no mapping
        if (key in RECURRENT or key.startswith("mamba_")) and fields.raw(key):
            allowed = (
                "none: which layers of this unknown architecture are recurrent is not said"
            )
            raise fields.wrong(key, fields.raw(key), allowed)
