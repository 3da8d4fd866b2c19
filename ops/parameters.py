"""Exact parameter counts of a model, whole or as one tensor-parallel chip holds them.

Under tensor parallelism heads, MLP columns and vocabulary rows are split; norms,
position tables and the biases added after a reduction stand on every chip; key and
value heads are replicated once there are more chips than heads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipsim.ops.model import ModelSpec


def model_parameters(model: ModelSpec, tp: int = 1) -> int:
    """Parameters that one of ``tp`` chips holds (all of them at 1)."""
    tables = vocabulary_rows(model, tp) * model.hidden * (1 if model.tied_embeddings else 2)
    norms = norm_parameters(model) * (2 if model.embedding_norm else 1)
    return (
        model.layers * layer_parameters(model, tp) + tables + position_parameters(model) + norms
    )


def layer_parameters(model: ModelSpec, tp: int = 1) -> int:
    """Parameters of one layer on one of ``tp`` chips."""
    return (
        attention_parameters(model, tp) + mlp_parameters(model, tp) + 2 * norm_parameters(model)
    )


def attention_parameters(model: ModelSpec, tp: int = 1) -> int:
    """Query, key, value and output projections with their biases."""
    query = model.heads // tp * model.head_dim
    qkv = query + 2 * kv_heads_per_chip(model, tp) * model.head_dim
    count = model.hidden * (qkv + query)
    if model.has_bias("qkv"):
        count += qkv
    if model.has_bias("output"):
        count += model.hidden
    return count


def mlp_parameters(model: ModelSpec, tp: int = 1) -> int:
    """Up, gate (where gated) and down projections with their biases."""
    inner = model.intermediate // tp
    up = inner * (2 if model.gated else 1)
    count = model.hidden * (up + inner)
    if model.has_bias("mlp"):
        count += up + model.hidden
    return count


def norm_parameters(model: ModelSpec) -> int:
    """Parameters of one norm: a scale, and a shift where it is a LayerNorm."""
    return model.hidden * (2 if model.norm == "layernorm" else 1)


def position_parameters(model: ModelSpec) -> int:
    """Parameters of the table of learned positions (0 without one)."""
    if model.position != "learned" or model.max_positions is None:
        return 0
    return (model.max_positions + model.position_offset) * model.hidden


def vocabulary_rows(model: ModelSpec, tp: int = 1) -> int:
    """Rows of the embedding table on one of ``tp`` chips, padded to equal shares."""
    return -(-model.vocabulary // tp)


def kv_heads_per_chip(model: ModelSpec, tp: int = 1) -> int:
    """Key and value heads on one of ``tp`` chips; never less than one."""
    return max(1, model.kv_heads // tp)
