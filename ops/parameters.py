"""Exact parameter counts of a model, whole or as one chip of a plan holds them.

Under tensor parallelism heads, MLP columns and vocabulary rows are split; norms, routers,
the low-rank halves of latent attention, its indexer, position tables and the biases added
after a reduction stand on every chip; key and value heads are replicated once there are
more chips than heads. Routed experts are spread over the chips of expert parallelism.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from chipsim.ops.compressed import (
    compressed_parameters,
    picking_parameters,
    stream_head_parameters,
    stream_parameters,
)
from chipsim.ops.layers import Compressed, Dense, Grouped, Latent, Layer
from chipsim.ops.recurrent_parameters import recurrent_parameters

if TYPE_CHECKING:
    from chipsim.ops.layers import Experts
    from chipsim.ops.model import ModelSpec

Module = Literal[
    "embedding", "head", "norm", "attention", "indexer", "mlp", "router", "shared", "experts"
]
"""Parts of a model that may be stored in formats of their own."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Over how many chips the parts of a layer are split.

    Attributes
    ----------
    tp : int
        Chips that split attention, dense MLPs, shared experts and vocabulary.
    ep : int
        Chips over which the routed experts are spread.
    expert_tp : int
        Chips that split the columns of each routed expert.
    """

    tp: int = 1
    ep: int = 1
    expert_tp: int = 1


WHOLE = Shares()


def model_parameters(model: ModelSpec, tp: int = 1, ep: int = 1, expert_tp: int = 1) -> int:
    """Parameters that one chip holds (all of them with every degree at 1)."""
    return sum(module_parameters(model, Shares(tp, ep, expert_tp)).values())


def module_parameters(
    model: ModelSpec,
    shares: Shares = WHOLE,
    layers: Iterable[Layer] | None = None,
    *,
    embedding: bool = True,
    head: bool = True,
) -> Counter[Module]:
    """Parameters of one chip by module.

    Parameters
    ----------
    shares : Shares
    layers : iterable of Layer, optional
        Those of a pipeline stage; all of the model's unless given.
    embedding, head : bool
        Whether the stage holds the embedding, and the head.
    """
    counts: Counter[Module] = Counter()
    wanted = _counted(model) if layers is None else Counter(layers).items()
    for layer, number in wanted:
        for module, count in layer_modules(model, layer, shares).items():
            counts[module] += number * count
    table = vocabulary_rows(model, shares.tp) * model.hidden
    if embedding:
        counts["embedding"] += table + position_parameters(model)
        counts["embedding"] += per_layer_table(model, shares.tp)
        if model.per_layer is not None:
            counts["mlp"] += model.hidden * model.layers * model.per_layer.width
            counts["norm"] += model.per_layer.width
        counts["norm"] += norm_parameters(model) if model.embedding_norm else 0
    if head:
        counts["head"] += vocabulary_rows(model, shares.tp) if model.head_bias else 0
        # A tied head is the same table, unless the embedding is on another stage.
        counts["head"] += 0 if model.tied_embeddings and embedding else table
        counts["norm"] += norm_parameters(model)
        counts["norm"] += stream_head_parameters(model.hidden, model.streams)
    return counts


def active_parameters(model: ModelSpec) -> int:
    """Parameters that one token passes: of the routed experts only its ``top_k``.

    Identity experts among those count as none: the expected number. Tables of inputs to
    every layer are left out, as their authors count (Gemma's "effective" parameters).
    """
    total = model.parameters
    for layer, number in _counted(model):
        experts = layer.mlp
        if experts is not None and not isinstance(experts, Dense):
            idle = experts.experts - experts.working
            total -= round(number * idle * expert_parameters(model, experts))
    total -= per_layer_table(model)
    return total - _uncounted_tables(model) * model.vocabulary * model.hidden


def _uncounted_tables(model: ModelSpec) -> int:
    """Tables that the authors leave out of the active parameters; a tied one is both."""
    counted = (model.embedding_is_active, model.head_is_active)
    return int(not any(counted)) if model.tied_embeddings else counted.count(False)


def _counted(model: ModelSpec) -> Iterable[tuple[Layer, int]]:
    return ((group.layer, group.count) for group in model.groups)


def layer_parameters(model: ModelSpec, layer: Layer, shares: Shares = WHOLE) -> int:
    """Parameters of one layer on one chip."""
    return sum(layer_modules(model, layer, shares).values())


def layer_modules(model: ModelSpec, layer: Layer, shares: Shares = WHOLE) -> Counter[Module]:
    """Parameters of one layer on one chip, by module."""
    counts: Counter[Module] = Counter()
    counts["norm"] = layer_norms(model, layer) * norm_parameters(model)
    if layer.mixer is not None:
        counts["attention"] = attention_parameters(model, layer, shares.tp)
    if isinstance(layer.mixer, Latent):
        counts["indexer"] = indexer_parameters(model, layer.mixer)
    elif isinstance(layer.mixer, Compressed):
        counts["indexer"] = picking_parameters(model.hidden, layer.mixer)
    if isinstance(layer.mlp, Dense):
        counts["mlp"] = mlp_parameters(model, layer.mlp, shares.tp)
    elif layer.mlp is not None:
        counts.update(moe_parameters(model, layer.mlp, shares))
    if model.per_layer is not None:
        counts["mlp"] += 2 * model.hidden * model.per_layer.width
    blocks = (layer.mixer is not None) + (layer.mlp is not None)
    counts["norm"] += blocks * stream_parameters(model.hidden, model.streams)
    return counts


def layer_norms(model: ModelSpec, layer: Layer) -> int:
    """Norms over the hidden size in a layer."""
    blocks = (layer.mixer is not None) + (layer.mlp is not None)
    beside = 0 if model.per_layer is None else 1
    if model.parallel_norms and blocks == 2:
        return model.parallel_norms + beside
    return blocks * (2 if model.norm_position == "sandwich" else 1) + beside


def attention_parameters(model: ModelSpec, layer: Layer, tp: int = 1) -> int:
    """Projections of a mixer with their biases and inner norms; the indexer left out."""
    mixer = layer.mixer
    if isinstance(mixer, Grouped):
        return _grouped_parameters(model, mixer, tp)
    if isinstance(mixer, Latent):
        return _latent_parameters(model, mixer, tp)
    if isinstance(mixer, Compressed):
        return compressed_parameters(model.hidden, mixer, tp)
    return 0 if mixer is None else recurrent_parameters(model.hidden, mixer, tp)


def _grouped_parameters(model: ModelSpec, mixer: Grouped, tp: int) -> int:
    heads, kv_heads = mixer.heads // tp, kv_heads_per_chip(mixer, tp)
    qkv, output = qkv_width(mixer, tp), heads * mixer.value_dim
    count = model.hidden * (qkv + output)
    if mixer.beside is not None:
        count += recurrent_parameters(model.hidden, mixer.beside, tp)
    if model.has_bias("qkv"):
        count += qkv
    if model.has_bias("output"):
        count += model.hidden
    if mixer.sinks:
        count += heads
    if mixer.qk_norm == "head":
        count += mixer.head_dim * (1 if mixer.shares_cache else 2)
    elif mixer.qk_norm == "width":
        count += mixer.head_dim * (heads + (0 if mixer.shares_cache else kv_heads))
    return count


def qkv_width(mixer: Grouped, tp: int = 1) -> int:
    """Columns of the projections of queries (and their gate), keys and values."""
    heads, kv_heads = mixer.heads // tp, kv_heads_per_chip(mixer, tp)
    queries = heads * mixer.head_dim
    if mixer.output_gate:
        queries += heads * mixer.value_dim
    if mixer.shares_cache:
        return queries
    cached = mixer.head_dim + (0 if mixer.keys_are_values else mixer.value_dim)
    return queries + kv_heads * cached


def _latent_parameters(model: ModelSpec, mixer: Latent, tp: int) -> int:
    heads = mixer.heads // tp
    query = heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim)
    count = model.hidden * mixer.row + mixer.kv_lora_rank  # down, and its norm
    count += mixer.kv_lora_rank * heads * (mixer.qk_nope_head_dim + mixer.v_head_dim)
    count += heads * mixer.v_head_dim * model.hidden
    if mixer.q_lora_rank is None:
        count += model.hidden * query
    else:
        count += mixer.q_lora_rank * (model.hidden + query + 1)
    if model.has_bias("qkv"):
        count += mixer.row + (query if mixer.q_lora_rank is None else mixer.q_lora_rank)
    if model.has_bias("output"):
        count += model.hidden
    return count


def indexer_parameters(model: ModelSpec, mixer: Latent) -> int:
    """Of an indexer: queries from the query latent, one key with its norm, head weights."""
    indexer = mixer.indexer
    if indexer is None:
        return 0
    source = mixer.q_lora_rank or model.hidden
    queries = source * indexer.heads * indexer.head_dim
    return queries + model.hidden * (indexer.head_dim + indexer.heads) + 2 * indexer.head_dim


def mlp_parameters(model: ModelSpec, mlp: Dense, tp: int = 1) -> int:
    """Up, gate (where gated) and down projections with their biases."""
    return _projections(model, model.hidden, mlp.intermediate // tp, mlp.gated)


def moe_parameters(model: ModelSpec, mlp: Experts, shares: Shares = WHOLE) -> dict[Module, int]:
    """Router, shared and routed experts of one layer on one chip."""
    choices = mlp.experts + mlp.identity_experts
    router = choices * (model.hidden + (1 if mlp.router_bias else 0))
    shared = 0
    if mlp.shared_intermediate:
        inner = mlp.shared_intermediate // shares.tp
        shared = _projections(model, model.hidden, inner, mlp.gated)
        shared += model.hidden if mlp.shared_gate else 0
    if mlp.latent is not None:
        shared += 2 * model.hidden * mlp.latent
    held = -(-mlp.experts // shares.ep)
    experts = held * expert_parameters(model, mlp, shares.expert_tp)
    return {"router": router, "shared": shared, "experts": experts}


def expert_parameters(model: ModelSpec, mlp: Experts, expert_tp: int = 1) -> int:
    """Parameters of one routed expert, or of a chip's share of it."""
    inner = mlp.intermediate // expert_tp
    return _projections(model, mlp.latent or model.hidden, inner, mlp.gated)


def _projections(model: ModelSpec, outer: int, inner: int, gated: bool) -> int:
    up = inner * (2 if gated else 1)
    count = outer * (up + inner)
    if model.has_bias("mlp"):
        count += up + outer
    return count


def norm_parameters(model: ModelSpec) -> int:
    """Parameters of one norm: a scale, and a shift where it is a LayerNorm."""
    return model.hidden * (2 if model.norm == "layernorm" else 1)


def position_parameters(model: ModelSpec) -> int:
    """Parameters of the table of learned positions (0 without one)."""
    if model.position != "learned" or model.max_positions is None:
        return 0
    return (model.max_positions + model.position_offset) * model.hidden


def per_layer_table(model: ModelSpec, tp: int = 1) -> int:
    """Parameters of the table of inputs to every layer on one of ``tp`` chips (0: none)."""
    part = model.per_layer
    if part is None:
        return 0
    return -(-part.vocabulary // tp) * model.layers * part.width


def vocabulary_rows(model: ModelSpec, tp: int = 1) -> int:
    """Rows of the embedding table on one of ``tp`` chips, padded to equal shares."""
    return -(-model.vocabulary // tp)


def kv_heads_per_chip(mixer: Grouped | ModelSpec, tp: int = 1) -> int:
    """Key and value heads on one of ``tp`` chips; never less than one."""
    return max(1, mixer.kv_heads // tp)
