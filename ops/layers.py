"""Layers of a model with every part filled in: what graphs, counts and memory read.

`ModelSpec.groups` gives them, like layers together; `ModelSpec.sequence` their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from chipsim.ops.parts import DensePart, GroupedPart, LatentPart, MoePart

if TYPE_CHECKING:
    from chipsim.ops.model import ModelSpec
    from chipsim.ops.parts import (
        AttentionPart,
        Function,
        IndexerPart,
        LayerKind,
        LinearPart,
        MlpPart,
        PhaseName,
    )


@dataclass(frozen=True, slots=True)
class Grouped:
    """Softmax attention; fields as `chipsim.ops.parts.GroupedPart` (0: no window)."""

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    window: int = 0
    sinks: bool = False
    qk_norm: Literal["none", "head", "width", "unscaled"] = "none"
    output_gate: bool = False
    keys_are_values: bool = False
    shares_cache: bool = False


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention; fields as `chipsim.ops.parts.LatentPart`."""

    heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    indexer: IndexerPart | None = None

    @property
    def row(self) -> int:
        """Elements of one cached row, the indexer's key left out."""
        return self.kv_lora_rank + self.qk_rope_head_dim


@dataclass(frozen=True, slots=True)
class Linear:
    """A recurrent mixer; fields as `chipsim.ops.parts.LinearPart`."""

    rule: Literal["ssm", "delta", "kda", "decay"]
    heads: int
    key_heads: int
    key_dim: int
    value_dim: int
    conv: int
    conv_bias: bool
    chunk: int
    state_format: str


@dataclass(frozen=True, slots=True)
class Dense:
    """An MLP that every token passes."""

    intermediate: int
    gated: bool
    activation: Function


@dataclass(frozen=True, slots=True)
class Experts:
    """Routed and shared experts; fields as `chipsim.ops.parts.MoePart`."""

    experts: int
    top_k: int
    intermediate: int
    gated: bool
    activation: Function
    shared_intermediate: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    latent: int | None = None


Mixer: TypeAlias = Grouped | Latent | Linear
Mlp: TypeAlias = Dense | Experts


@dataclass(frozen=True, slots=True)
class Layer:
    """One kind of layer; a part that it has not is None."""

    name: str
    mixer: Mixer | None
    mlp: Mlp | None
    phases: tuple[PhaseName, ...] = ("prefill", "decode")


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """``count`` layers of one kind, wherever in the model they stand."""

    layer: Layer
    count: int


def fill_layer(model: ModelSpec, kind: LayerKind | None) -> Layer:
    """A layer with the model's own values wherever its kind is silent.

    Raises
    ------
    ValueError
        Parts that do not hang together; the message says what would be allowed.
    """
    attention = model.attention if kind is None or kind.attention is None else kind.attention
    mlp = model.mlp if kind is None or kind.mlp is None else kind.mlp
    layer = Layer(
        name="layer" if kind is None else kind.name,
        mixer=None if attention == "none" else _mixer(model, attention),
        mlp=None if mlp == "none" else _mlp(model, mlp),
        phases=("prefill", "decode") if kind is None else kind.phases,
    )
    if layer.mixer is None and layer.mlp is None:
        raise ValueError(f"{layer.name}: a layer with an attention or an MLP")
    return layer


def _mixer(model: ModelSpec, part: AttentionPart | None) -> Mixer:
    if part is None or isinstance(part, GroupedPart):
        return _grouped(model, part or GroupedPart())
    if isinstance(part, LatentPart):
        return Latent(
            part.heads or model.heads,
            part.q_lora_rank,
            part.kv_lora_rank,
            part.qk_nope_head_dim,
            part.qk_rope_head_dim,
            part.v_head_dim,
            part.indexer,
        )
    return _linear(part)


def _grouped(model: ModelSpec, part: GroupedPart) -> Grouped:
    heads, head_dim = part.heads or model.heads, part.head_dim or model.head_dim
    kv_heads = part.kv_heads or model.kv_heads
    if heads % kv_heads:
        raise ValueError(f"kv_heads: a divisor of the {heads} heads, not {kv_heads}")
    value_dim = part.value_dim or head_dim
    if part.keys_are_values and value_dim != head_dim:
        raise ValueError(f"value_dim: {head_dim}, since keys are values")
    return Grouped(
        heads,
        kv_heads,
        head_dim,
        value_dim,
        part.window or 0,
        part.sinks,
        part.qk_norm,
        part.output_gate,
        part.keys_are_values,
        part.shares_cache,
    )


def _linear(part: LinearPart) -> Linear:
    key_heads = part.key_heads or part.heads
    if part.heads % key_heads:
        raise ValueError(f"key_heads: a divisor of the {part.heads} heads, not {key_heads}")
    return Linear(
        part.rule,
        part.heads,
        key_heads,
        part.key_dim,
        part.value_dim,
        part.conv,
        part.conv_bias,
        part.chunk,
        part.state_format,
    )


def _mlp(model: ModelSpec, part: MlpPart | None) -> Mlp:
    part = part or DensePart()
    gated = model.gated if part.gated is None else part.gated
    activation = part.activation or model.activation
    if isinstance(part, MoePart):
        if part.top_k > part.experts:
            raise ValueError(f"top_k: at most the {part.experts} experts, not {part.top_k}")
        return Experts(
            part.experts,
            part.top_k,
            part.intermediate,
            gated,
            activation,
            part.shared_intermediate,
            part.shared_gate,
            part.router_bias,
            part.latent,
        )
    return Dense(part.intermediate or model.intermediate, gated, activation)
