"""Attention over compressed rows, layer by layer (DeepSeek-V4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipsim.importers.hf_layers import same_length

if TYPE_CHECKING:
    from chipsim.importers.hf_attention import Part
    from chipsim.importers.hf_fields import Fields

SPARSE, HEAVY = "compressed_sparse_attention", "heavily_compressed_attention"
RATIOS: dict[str, int] = {"sliding_attention": 0, SPARSE: 4, HEAVY: 128}
"""Words of ``layer_types``, and the tokens of a compressed row that each stands for."""
HASHED = "hash_moe"
"""Experts that a token's number chooses: their router has no bias."""


def compressed_mixers(fields: Fields, layers: int) -> list[Part | None]:
    """The mixer of every layer.

    Raises
    ------
    ConfigError
        Neither ``compress_ratios`` nor ``layer_types``, another length than the layers, an
        unknown ratio or word, or a size that is missing.
    """
    made = {word: _mixer(fields, word) for word in sorted(set(_words(fields, layers)))}
    return [made[word] for word in _words(fields, layers)]


def _words(fields: Fields, layers: int) -> list[str]:
    name = "layer_types" if fields.has("layer_types") else "compress_ratios"
    values: list[Any] = fields.items(name) or []
    if not values:
        raise fields.wrong("compress_ratios", None, "the key is required")
    known: dict[Any, str] = {word: word for word in RATIOS}
    if name == "compress_ratios":
        known = {ratio: word for word, ratio in RATIOS.items()}
    fields.one_of(name, values, list(known))
    same_length(fields, name, values, layers)
    return [known[value] for value in values[:layers]]


def _mixer(fields: Fields, word: str) -> Part:
    part: Part = {
        "kind": "compressed",
        "rotary_dim": fields.whole("qk_rope_head_dim"),
        "q_lora_rank": fields.whole("q_lora_rank"),
        "window": fields.whole("window"),
        "output_groups": fields.whole("o_groups"),
        "output_rank": fields.whole("o_lora_rank"),
    }
    rates = fields.mapping("compress_rates") or {}
    if ratio := RATIOS[word]:
        part["ratio"] = fields.checked(f"compress_rates.{word}", rates.get(word, ratio))
    if word == SPARSE:
        part["overlaps"] = True
        part["indexer"] = {
            "heads": fields.whole("index_n_heads"),
            "head_dim": fields.whole("index_head_dim"),
            "top_k": fields.whole("index_topk"),
        }
    return part


def hashed_layers(fields: Fields, layers: int) -> list[bool]:
    """Whether the router of each layer looks its experts up by a token's number."""
    words = fields.items("mlp_layer_types")
    if words is None:
        first = fields.maybe("num_hash_layers", layers, 0) or 0
        return [index < first for index in range(layers)]
    fields.one_of("mlp_layer_types", words, (HASHED, "moe"))
    same_length(fields, "mlp_layer_types", words, layers)
    return [word == HASHED for word in words[:layers]]
