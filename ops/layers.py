"""Layers of a model with every part filled in: what graphs, counts and memory read.

`ModelSpec.groups` gives them, like layers together; `ModelSpec.sequence` their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from chipsim.ops.parts import (
    CompressedPart,
    ConvPart,
    DensePart,
    GroupedPart,
    LatentPart,
    MoePart,
    ScanPart,
)
from chipsim.spec import FieldError

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    norm: bool = True


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
    beside: Linear | None = None


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
class Scan:
    """A selective scan; fields as `chipsim.ops.parts.ScanPart`."""

    channels: int
    state: int
    rank: int
    conv: int
    conv_bias: bool
    inner_norms: bool
    state_format: str

    @property
    def heads(self) -> int:
        """What tensor parallelism splits: its channels."""
        return self.channels


@dataclass(frozen=True, slots=True)
class ShortConv:
    """A gated short convolution; fields as `chipsim.ops.parts.ConvPart`."""

    channels: int
    conv: int

    @property
    def heads(self) -> int:
        """What tensor parallelism splits: its channels."""
        return self.channels


@dataclass(frozen=True, slots=True)
class Compressed:
    """Attention over compressed rows; fields as `chipsim.ops.parts.CompressedPart`."""

    heads: int
    head_dim: int
    rotary_dim: int
    q_lora_rank: int
    window: int
    ratio: int
    overlaps: bool
    indexer: IndexerPart | None
    output_groups: int
    output_rank: int

    @property
    def series(self) -> int:
        """Projections of a token that go into compressed rows."""
        return 2 if self.overlaps else 1


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
    identity_experts: int = 0

    @property
    def working(self) -> float:
        """Experts of a token that do work, expected: identity experts take their share.

        Whole wherever all do.
        """
        if not self.identity_experts:
            return self.top_k
        return self.top_k * self.experts / (self.experts + self.identity_experts)


Mixer: TypeAlias = Grouped | Latent | Compressed | Linear | Scan | ShortConv
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
    FieldError
        Parts that do not hang together.
    """
    attention = model.attention if kind is None or kind.attention is None else kind.attention
    mlp = model.mlp if kind is None or kind.mlp is None else kind.mlp
    where = "" if kind is None else f"layer_kinds.{kind.name}."
    layer = Layer(
        name="layer" if kind is None else kind.name,
        mixer=None if attention == "none" else _mixer(model, attention, where),
        mlp=None if mlp == "none" else _mlp(model, mlp, where),
        phases=("prefill", "decode") if kind is None else kind.phases,
    )
    if layer.mixer is None and layer.mlp is None:
        raise FieldError(f"{where}mlp", "none", "an MLP, since it has no attention")
    return layer


def check_shared(layers: Iterable[Layer]) -> None:
    """Every layer that shares a cache reads rows that one before it left.

    Raises
    ------
    FieldError
        No earlier layer caches rows of its widths.
    """
    cached: set[tuple[int, int, int]] = set()
    for layer in layers:
        mixer = layer.mixer
        if not isinstance(mixer, Grouped):
            continue
        row = (mixer.kv_heads, mixer.head_dim, mixer.value_dim)
        if not mixer.shares_cache:
            cached.add(row)
        elif row not in cached:
            kind = "" if layer.name == "layer" else f"layer_kinds.{layer.name}."
            heads, key, value = row
            allowed = f"false: no layer before caches {heads} x ({key} + {value}) a token"
            raise FieldError(f"{kind}attention.shares_cache", True, allowed)


def _mixer(model: ModelSpec, part: AttentionPart | None, where: str) -> Mixer:
    where += "attention."
    if part is None or isinstance(part, GroupedPart):
        return _grouped(model, part or GroupedPart(), where)
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
    if isinstance(part, CompressedPart):
        return _compressed(model, part, where)
    if isinstance(part, ScanPart):
        return Scan(**part.model_dump(exclude={"kind"}))
    if isinstance(part, ConvPart):
        return ShortConv(part.channels, part.conv)
    return _linear(part, where)


def _grouped(model: ModelSpec, part: GroupedPart, where: str) -> Grouped:
    heads, head_dim = part.heads or model.heads, part.head_dim or model.head_dim
    kv_heads = part.kv_heads or model.kv_heads
    if heads % kv_heads:
        raise FieldError(f"{where}kv_heads", kv_heads, f"a divisor of the {heads} heads")
    value_dim = part.value_dim or head_dim
    if part.keys_are_values and value_dim != head_dim:
        raise FieldError(f"{where}value_dim", value_dim, f"{head_dim}, since keys are values")
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
        None if part.beside is None else _linear(part.beside, f"{where}beside."),
    )


def _compressed(model: ModelSpec, part: CompressedPart, where: str) -> Compressed:
    fields = part.model_dump(exclude={"kind", "indexer"})
    fields["heads"] = heads = part.heads or model.heads
    fields["head_dim"] = width = part.head_dim or model.head_dim
    if heads % part.output_groups:
        allowed = f"a divisor of the {heads} heads"
        raise FieldError(f"{where}output_groups", part.output_groups, allowed)
    if part.rotary_dim > width:
        raise FieldError(f"{where}rotary_dim", part.rotary_dim, f"at most {width}")
    widths = [width, *([] if part.indexer is None else [part.indexer.head_dim])]
    if part.ratio and any(each % part.ratio for each in widths):
        allowed = f"a divisor of the width of a row: {', '.join(map(str, widths))}"
        raise FieldError(f"{where}ratio", part.ratio, allowed)
    if part.indexer is not None and not part.ratio:
        raise FieldError(f"{where}indexer", "given", "null, where no row is compressed")
    return Compressed(indexer=part.indexer, **fields)


def _linear(part: LinearPart, where: str) -> Linear:
    key_heads = part.key_heads or part.heads
    if part.heads % key_heads:
        raise FieldError(f"{where}key_heads", key_heads, f"a divisor of the {part.heads} heads")
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
        part.norm,
    )


def _mlp(model: ModelSpec, part: MlpPart | None, where: str) -> Mlp:
    part = part or DensePart()
    gated = model.gated if part.gated is None else part.gated
    activation = part.activation or model.activation
    if isinstance(part, MoePart):
        if part.top_k > part.experts:
            allowed = f"at most the {part.experts} experts"
            raise FieldError(f"{where}mlp.top_k", part.top_k, allowed)
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
            part.identity_experts,
        )
    return Dense(part.intermediate or model.intermediate, gated, activation)
