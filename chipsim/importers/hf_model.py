"""A Hugging Face configuration as our model: file -> fields -> parts -> `ModelSpec`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipsim.errors import ChipsimError
from chipsim.importers.document import Document
from chipsim.importers.hf_attention import head_sizes, is_latent, mixers
from chipsim.importers.hf_blocks import searched_layers
from chipsim.importers.hf_compressed import compressed_mixers, hashed_layers
from chipsim.importers.hf_fields import MOST_LAYERS, Fields
from chipsim.importers.hf_kinds import Mlp, layer_fields
from chipsim.importers.hf_layers import MIXERS, attention_kinds, expert_layers, single_blocks
from chipsim.importers.hf_mlp import activation, dense_width, expert_count, expert_part
from chipsim.importers.hf_quantization import Hint, name_doubts, precision_hint
from chipsim.importers.hf_required import check_keys
from chipsim.importers.hf_source import (
    find_architecture,
    language_model,
    located,
    model_name,
    quantization_beside,
)
from chipsim.ops.model import ModelSpec

if TYPE_CHECKING:
    from chipsim.importers.hf_architectures import Architecture
    from chipsim.importers.hf_attention import Heads, Part
    from chipsim.importers.hf_layers import Kind
    from chipsim.ops.precision import Precision

MOST_STREAMS = 64
"""No model has more residual streams side by side."""
PROJECTIONS = ("qkv", "output", "mlp")
"""Projections that may have a bias."""
TOWERS = ("vision_config", "audio_config", "vision_tower_config", "visual")
"""Keys of what stands beside a language model."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A model read from a Hugging Face configuration.

    Attributes
    ----------
    model : ModelSpec
    architecture : str
        The class that the configuration names, or its ``model_type``.
    precision : Precision
        Formats of the checkpoint: its dtype, or what its quantization block says.
    warnings : tuple of str
        What was assumed, simplified or left out, one line each.
    """

    model: ModelSpec
    architecture: str
    precision: Precision
    warnings: tuple[str, ...]

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes that one token adds to the cache in the checkpoint's formats."""
        return self.model.kv_bytes_per_token(self.precision)


def import_huggingface(path: str | Path) -> Imported:
    """Read a model from ``config.json``, or from the folder that holds it.

    Raises
    ------
    ConfigError
        Names the file, the key, its value and what is allowed.
    ChipsimError
        No such file, no configuration in the folder, or an architecture that is not
        modelled, with the reason.
    """
    file = located(Path(path))
    document = Document(file)
    prefix = language_model(document)
    name, traits, unknown = find_architecture(document, prefix)
    _refuse(document, traits, name)
    fields = Fields(document, prefix, traits.defaults, traits.keys)
    warnings = []
    if unknown:
        traits = _guessed(fields, traits)
        warnings.append(f"unknown architecture {name}: read as {_shape_read(fields, traits)}")
    check_keys(fields, traits, unknown=unknown)
    hint = precision_hint(fields, quantization_beside(file))
    model = _model(fields, traits, model_name(file), name, hint)
    warnings += _remarks(document, fields, traits) + hint.warnings
    warnings += name_doubts(model.name, hint)
    return Imported(model, name, hint.precision(), tuple(warnings))


def _refuse(document: Document, traits: Architecture, name: str) -> None:
    if traits.refused is not None:
        raise ChipsimError(f"{document.name}: {name} cannot be imported: {traits.refused}")


def _guessed(fields: Fields, traits: Architecture) -> Architecture:
    """Traits of an unknown architecture: an MLP is gated where its function is SiLU."""
    return traits.model_copy(update={"gated": activation(fields, traits) == "silu"})


def _shape_read(fields: Fields, traits: Architecture) -> str:
    """What an unknown architecture is taken for."""
    found = {"experts": bool(expert_count(fields)), "latent attention": is_latent(fields)}
    parts = " and ".join(name for name, there in found.items() if there)
    kind = f"a decoder with {parts}" if parts else "a dense decoder"
    return f"{kind}, MLP {'gated' if traits.gated else 'plain'}"


def _refuse_projected(fields: Fields) -> None:
    width, hidden = fields.maybe("word_embed_proj_dim"), fields.whole("hidden")
    if width not in {None, hidden}:
        allowed = f"{hidden}, the hidden size: projected embeddings are not modelled"
        raise fields.wrong("word_embed_proj_dim", width, allowed)


def _model(
    fields: Fields, traits: Architecture, name: str, architecture_name: str, hint: Hint
) -> ModelSpec:
    _refuse_projected(fields)
    layers = _layer_count(fields, traits)
    sizes = head_sizes(fields, attends=traits.attends)
    content: dict[str, Any] = {
        "name": name,
        "description": f"{architecture_name}, imported",
        "source": f"{fields.file}, a Hugging Face configuration",
        "layers": layers,
        "hidden": fields.whole("hidden"),
        "heads": sizes.heads,
        **_head_fields(fields, sizes),
        **layer_fields(*_layers(fields, traits, layers, sizes)),
        **_width(fields, traits),
        "vocabulary": fields.whole("vocabulary"),
        "activation": activation(fields, traits),
        **_shape(fields, traits),
        **_per_layer(fields),
        **({"streams": fields.whole("hc_mult", MOST_STREAMS, 2)} if traits.compressed else {}),
    }
    if hint.quantized:
        formats = hint.precision().model_dump(exclude_defaults=True)
        content["precision"] = {"prefill": formats, "decode": formats}
    return ModelSpec.read(content, fields.file)


def _per_layer(fields: Fields) -> dict[str, Any]:
    """Inputs that every token brings to every layer, from a table of their own."""
    width = fields.maybe("hidden_size_per_layer_input", least=0)
    if not width:
        return {}
    rows = fields.whole("vocab_size_per_layer_input")
    return {"per_layer": {"width": width, "vocabulary": rows}}


def _layer_count(fields: Fields, traits: Architecture) -> int:
    """Layers; newer files of Nemotron-H give only their list, LongCat's are two each."""
    if traits.doubled:
        return 2 * fields.whole("num_layers", MOST_LAYERS // 2)
    blocks = fields.items("layers_block_type")
    if blocks and not fields.has("layers"):
        return fields.checked("layers_block_type", len(blocks), MOST_LAYERS)
    layers = fields.whole("layers", MOST_LAYERS)
    crossed = _crossed(fields)
    if (crossed and crossed[-1] >= layers) or len(crossed) == layers:
        allowed = f"some of the {layers} layers, from 0"
        raise fields.wrong("cross_attention_layers", crossed, allowed)
    return layers - len(crossed)


def _crossed(fields: Fields) -> list[int]:
    """Layers that attend to an image alone: a step without one skips them."""
    return sorted(set(fields.numbers("cross_attention_layers") or ()))


def _head_fields(fields: Fields, sizes: Heads) -> dict[str, Any]:
    if is_latent(fields):
        return {}
    return {"kv_heads": sizes.kv_heads, "head_dim": sizes.head_dim}


def _width(fields: Fields, traits: Architecture) -> dict[str, Any]:
    if not traits.attends:
        return {}
    width = dense_width(fields, traits)
    if width is None and not expert_count(fields) and not fields.has("block_configs"):
        raise fields.wrong(fields.find("intermediate")[0], None, "the key is required")
    return {} if width is None else {"intermediate": width}


def _layers(
    fields: Fields, traits: Architecture, layers: int, sizes: Heads
) -> tuple[list[Part | None], list[Mlp]]:
    """Mixer and MLP of every layer; None where a layer has none."""
    searched = searched_layers(fields, layers, sizes)
    if searched is not None:
        return searched
    if not traits.attends:
        return mixers(fields, traits, ["linear"] * layers, sizes), [None] * layers
    experts = expert_part(fields, traits) if expert_count(fields) else None
    dense: Part = {"kind": "dense"}
    if traits.single_parts or fields.has("hybrid_override_pattern"):
        blocks = single_blocks(fields, layers)
        if experts is None and "moe" in blocks:
            raise fields.wrong(fields.find("experts")[0], None, "the key is required")
        mlps = [{"mlp": dense, "moe": experts}.get(block) for block in blocks]
        kinds: list[Kind] = [MIXERS.get(block, "none") for block in blocks]
        return mixers(fields, traits, kinds, sizes), mlps
    if traits.compressed:
        hashed = hashed_layers(fields, layers)
        plain = {key: v for key, v in (experts or dense).items() if key != "router_bias"}
        mlps = [plain if mark else experts or dense for mark in hashed]
        return compressed_mixers(fields, layers), mlps
    kinds = attention_kinds(fields, layers)
    marks = [False] * layers
    if experts is not None:
        marks = (
            [True, False] * (layers // 2) if traits.doubled else expert_layers(fields, layers)
        )
    if experts is not None and not all(marks) and dense_width(fields, traits) is None:
        raise fields.wrong(fields.find("intermediate")[0], None, "the key is required")
    mlps = [experts if mark else dense for mark in marks]
    if fields.flag("use_double_wide_mlp"):  # Gemma 4, where keys and values are another's
        wide: Part = {"kind": "dense", "intermediate": 2 * fields.whole("intermediate")}
        first = layers - (fields.maybe("num_kv_shared_layers", layers, 0) or 0)
        mlps[first:] = [wide if mlp == dense else mlp for mlp in mlps[first:]]
    return mixers(fields, traits, kinds, sizes), mlps


def _shape(fields: Fields, traits: Architecture) -> dict[str, Any]:
    """Norms, positions, biases and embeddings."""
    parallel = traits.parallel_norms
    if traits.parallel_key is not None and not fields.flag(traits.parallel_key):
        parallel = 0
    if parallel and fields.flag("new_decoder_architecture"):  # Falcon from 40B on
        parallel = 1 if fields.raw("num_ln_in_parallel_attn") == 1 else 2
    key = traits.head_bias_key
    content: dict[str, Any] = {
        "norm": traits.norm,
        "norm_position": traits.norm_position,
        "parallel_norms": parallel,
        "gated": traits.gated,
        "position": _position(fields, traits),
        "position_offset": traits.position_offset,
        "biases": _biases(fields, traits),
        "head_bias": traits.head_bias if key is None else fields.flag(key),
        "tied_embeddings": fields.flag("tie_word_embeddings"),
        "embedding_norm": traits.embedding_norm,
        "embedding_is_active": traits.embedding_is_active,
        "head_is_active": traits.head_is_active,
    }
    if fields.has("max_positions"):
        content["max_positions"] = fields.whole("max_positions")
    elif content["position"] == "learned":
        raise fields.wrong(fields.find("max_positions")[0], None, "the key is required")
    return content


def _position(fields: Fields, traits: Architecture) -> str:
    if fields.flag("alibi") or fields.raw("attn_config.alibi") is True:
        return "alibi"
    if fields.raw("attn_config.alibi") is False and traits.position == "alibi":
        return "learned"
    return traits.position


def _biases(fields: Fields, traits: Architecture) -> bool | list[str]:
    found = {
        projection
        for key, projections in traits.biases.items()
        if key == "always" or fields.flag(key)
        for projection in projections
    }
    if len(found) in {0, len(PROJECTIONS)}:
        return bool(found)
    return [projection for projection in PROJECTIONS if projection in found]


def _remarks(document: Document, fields: Fields, traits: Architecture) -> list[str]:
    """What an import leaves out or simplifies."""
    found = [traits.note] if traits.note is not None else []
    extra = fields.maybe("nextn", MOST_LAYERS, 0) or 0
    if extra:
        found.append(
            f"multi-token prediction is left out: {extra} {'layer' if extra == 1 else 'layers'}"
        )
    if crossed := _crossed(fields):
        found.append(f"layers of cross-attention to an image are left out: {len(crossed)}")
    towers = [key for key in TOWERS if document.has(key) and document.get(key)]
    if towers:
        found.append(f"{', '.join(towers)}: left out, the numbers are the language model's")
    tables = {"embedding": traits.embedding_is_active, "LM head": traits.head_is_active}
    idle = " and ".join(name for name, active in tables.items() if not active)
    if idle:
        found.append(f"active parameters leave {idle} out, as the authors count")
    return found
