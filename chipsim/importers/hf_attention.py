"""Heads, windows and latents: what mixes tokens in each layer of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from chipsim.importers.hf_linear import linear_part

if TYPE_CHECKING:
    from chipsim.importers.hf_architectures import Architecture
    from chipsim.importers.hf_fields import Fields
    from chipsim.importers.hf_layers import Kind

Part: TypeAlias = dict[str, Any]
"""A part of a model as its file writes it (`chipsim.ops.parts`)."""


class Heads(NamedTuple):
    """Sizes of softmax attention that hold unless a kind of layer says otherwise."""

    heads: int
    kv_heads: int
    head_dim: int


def head_sizes(fields: Fields, *, attends: bool = True) -> Heads:
    """Heads of the configuration; one as wide as the model where no layer attends.

    Raises
    ------
    ConfigError
        Heads that the key and value heads do not divide, or a hidden size that no whole
        number of them makes up and no ``head_dim``.
    """
    if not attends:
        return Heads(1, 1, fields.whole("hidden"))
    heads = fields.whole("heads")
    kv_heads = _kv_heads(fields, heads)
    if heads % kv_heads:
        key, value = fields.find("kv_heads")
        raise fields.wrong(key, value, f"a divisor of the {heads} heads")
    head_dim = fields.maybe("head_dim")
    if head_dim is None:
        hidden = fields.whole("hidden")
        if hidden % heads and not is_latent(fields):
            key, value = fields.find("heads")
            raise fields.wrong(
                key, value, f"a divisor of the hidden size {hidden}, or head_dim beside it"
            )
        head_dim = max(1, hidden // heads)
    return Heads(heads, kv_heads, head_dim)


def _kv_heads(fields: Fields, heads: int) -> int:
    """Key and value heads; the flags of Falcon, StarCoder and ChatGLM come first."""
    if fields.has("new_decoder_architecture") and not fields.flag("new_decoder_architecture"):
        return 1 if fields.flag("multi_query") else heads
    if fields.has("multi_query_attention") and not fields.flag("multi_query_attention"):
        return heads
    if fields.flag("multi_query") and not fields.has("new_decoder_architecture"):
        return 1
    return fields.maybe("kv_heads") or heads


def is_latent(fields: Fields) -> bool:
    """Whether softmax attention is latent (MLA); some files of a family say that it is not."""
    return bool(fields.raw("kv_lora_rank")) and fields.raw("use_mla") is not False


def mixers(
    fields: Fields, traits: Architecture, kinds: list[Kind], sizes: Heads
) -> list[Part | None]:
    """The mixer of every layer; None where a layer has none."""
    latent = is_latent(fields)
    per_layer = fields.numbers("num_attention_heads_per_layer", 10**6)
    if per_layer is not None and len(per_layer) != len(kinds):
        key = "num_attention_heads_per_layer"
        raise fields.wrong(key, per_layer, f"{len(kinds)} entries, one per layer")
    shared = fields.maybe("num_kv_shared_layers", len(kinds), 0) or 0
    group = fields.whole("cla_share_factor", len(kinds)) if fields.flag("use_cla") else 1
    parts: dict[Kind, Part] = {}
    result: list[Part | None] = []
    for index, kind in enumerate(kinds):
        if kind == "none":
            result.append(None)
            continue
        if kind not in parts:
            parts[kind] = _part(fields, traits, kind, sizes, latent=latent)
        part = dict(parts[kind])
        if per_layer is not None and per_layer[index] != sizes.heads:
            part["heads"] = per_layer[index]
        if kind != "linear" and (index >= len(kinds) - shared or index % group):
            part["shares_cache"] = True
        result.append(part)
    return result


def _part(
    fields: Fields, traits: Architecture, kind: Kind, sizes: Heads, *, latent: bool
) -> Part:
    if kind == "linear":
        return linear_part(fields, traits)
    if latent:
        return _latent(fields)
    return _grouped(fields, traits, kind, sizes)


def _latent(fields: Fields) -> Part:
    part: Part = {"kind": "mla"}
    if rank := fields.maybe("q_lora_rank", least=0):
        part["q_lora_rank"] = rank
    for key in ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"):
        part[key] = fields.whole(key)
    if fields.has("index_topk"):
        part["indexer"] = {
            "heads": fields.whole("index_n_heads"),
            "head_dim": fields.whole("index_head_dim"),
            "top_k": fields.whole("index_topk"),
        }
    return part


def _grouped(fields: Fields, traits: Architecture, kind: Kind, sizes: Heads) -> Part:
    part: Part = {"beside": linear_part(fields, traits)} if traits.beside else {}
    own = _own_sizes(fields, kind)
    for key, value in zip(("heads", "kv_heads", "head_dim"), sizes, strict=True):
        if own.get(key, value) != value:
            part[key] = own[key]
    value_dim = own.get("value_dim") or fields.maybe("value_dim")
    if value_dim is not None and value_dim != part.get("head_dim", sizes.head_dim):
        part["value_dim"] = value_dim
    if kind == "window":
        part["window"] = window_length(fields)
    elif fields.flag("attention_k_eq_v"):
        part["keys_are_values"] = True
    if traits.sinks or _sink_keys(fields, kind):
        part["sinks"] = True
    norm = _qk_norm(fields, traits)
    if norm != "none":
        part["qk_norm"] = norm
    if traits.output_gate or fields.flag("attn_output_gate"):
        part["output_gate"] = True
    return part


def _own_sizes(fields: Fields, kind: Kind) -> dict[str, int]:
    """Sizes that windowed layers, or full ones beside them, have for themselves."""
    names = {
        key: fields.maybe(f"{kind}_{key}")
        for key in ("heads", "kv_heads", "head_dim", "value_dim")
    }
    return {key: value for key, value in names.items() if value is not None}


def window_length(fields: Fields) -> int:
    """Tokens that a windowed layer sees, itself included."""
    if not fields.has("window") and fields.has("attention_chunk_size"):
        return fields.whole("attention_chunk_size")
    return fields.whole("window")


def _sink_keys(fields: Fields, kind: Kind) -> bool:
    wanted = (
        "add_swa_attention_sink_bias" if kind == "window" else "add_full_attention_sink_bias"
    )
    return fields.flag(wanted)


def _qk_norm(fields: Fields, traits: Architecture) -> str:
    key = traits.qk_norm_key
    if key is not None and not fields.flag(key):
        return "none"
    if traits.qk_norm == "none" and fields.flag("use_qk_norm"):
        return "head"
    return traits.qk_norm
