"""Models: the shape of a decoder-only transformer, its parameters and its cache."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, StrictBool, ValidationInfo, field_validator, model_validator

from chipsim.arch_configs import load, locate
from chipsim.errors import ConfigError
from chipsim.ops import cache, parameters
from chipsim.ops.layers import Layer, LayerGroup, check_shared, fill_layer
from chipsim.ops.parts import (
    AttentionPart,
    Count,
    EncoderPart,
    Function,
    LatentPart,
    LayerKind,
    Layers,
    MlpPart,
    MoePart,
    PerLayerPart,
    PhasePrecision,
    Run,
)
from chipsim.spec import FieldError, Spec

if TYPE_CHECKING:
    from chipsim.ops.precision import Precision

Projection = Literal["qkv", "output", "mlp"]


class ModelSpec(Spec):
    """A decoder-only transformer; its layers are alike, or of several kinds.

    The flat fields describe a dense layer; ``attention`` and ``mlp`` change it for the
    whole model, ``layer_kinds`` with ``layer_order`` for some layers. Read one with
    `ModelSpec.load`. Parameter counts are exact, as published.
    """

    name: str
    description: str = ""
    source: str
    """Where the numbers come from: paper, or the file that its authors publish."""
    layers: Layers
    hidden: Count
    heads: Count
    """Query heads."""
    kv_heads: Count = Field(default=None, validate_default=True)
    """Key and value heads; omitted: one per query head (MHA)."""
    attention: AttentionPart | None = None
    """Null: softmax attention of the flat fields."""
    mlp: MlpPart | None = None
    """Null: a dense MLP of the flat fields."""
    layer_kinds: tuple[LayerKind, ...] = ()
    """Kinds of layers, where they are not all alike."""
    layer_order: tuple[Run, ...] = Field(default=(), validate_default=True)
    """Which kind each layer is, from the first; required with ``layer_kinds``."""
    head_dim: Count = Field(default=None, validate_default=True)
    """Width of one head; omitted: hidden / heads (of the queries, with latent attention)."""
    intermediate: Count = Field(default=None, validate_default=True)
    """Width inside a dense MLP (of each of its two halves where gated); may be left out
    where no MLP is dense."""
    vocabulary: Count
    """Rows of the embedding table, padding included where the source has it."""
    norm: Literal["layernorm", "rmsnorm"]
    norm_position: Literal["pre", "post", "sandwich"] = "pre"
    """Norms before attention and MLP, after them (OLMo 2), or both (Gemma 2 and 3)."""
    parallel_norms: Literal[0, 1, 2] = 0
    """Attention and MLP side by side, after one norm (Phi) or one each (Falcon 40B); 0:
    one after the other."""
    activation: Function
    gated: bool = False
    """The MLP multiplies the activated half by a second projection (SwiGLU)."""
    position: Literal["learned", "rotary", "alibi", "none"]
    max_positions: Count | None = Field(default=None, validate_default=True)
    """Longest sequence; required for learned positions."""
    position_offset: Annotated[int, Field(ge=0, le=10**6, strict=True)] = 0
    """Rows of a learned position table beyond ``max_positions`` (OPT has 2)."""
    biases: StrictBool | tuple[Projection, ...] = False
    """Projections with a bias: all, none, or a list of ``qkv``, ``output``, ``mlp``."""
    head_bias: StrictBool = False
    """The LM head has a bias (Phi)."""
    tied_embeddings: bool = False
    """The LM head is the embedding table."""
    embedding_is_active: StrictBool = True
    """Whether `active_parameters` hold the embedding table, as most authors count
    (OpenAI's do not)."""
    head_is_active: StrictBool = True
    """Whether they hold the LM head (not as the authors of GLM and MiniMax count)."""
    embedding_norm: bool = False
    """A norm right after the embedding (BLOOM)."""
    per_layer: PerLayerPart | None = None
    """Inputs from a table of their own to every layer; null: none."""
    streams: Annotated[int, Field(ge=2, le=64, strict=True)] | None = None
    """Residual streams side by side, mixed by every block (DeepSeek-V4's hyper-connections);
    null: one."""
    precision: PhasePrecision = PhasePrecision()
    """Formats by phase, where the user names none."""
    encoder: EncoderPart | None = None
    """A tower for images or sound, run before prefill; not among the `parameters`."""

    @classmethod
    def load(cls, name: str) -> ModelSpec:
        """Read a model by library name or path (`ConfigError`, `UnknownNameError`).

        Two models of one file are the same object while the file is: that they are alike is
        asked of every graph, and two objects are compared field by field.
        """
        path = locate("models", name).resolve()
        stat = path.stat()
        return _read_model(str(path), stat.st_mtime_ns, stat.st_size)

    @field_validator("kv_heads", mode="before")
    @classmethod
    def _mha_unless_told(cls, value: object, info: ValidationInfo) -> object:
        return info.data.get("heads", 1) if value is None else value

    @field_validator("kv_heads", mode="after")
    @classmethod
    def _whole_groups(cls, value: int, info: ValidationInfo) -> int:
        heads = info.data.get("heads", value)
        if heads % value:
            raise ValueError(f"a divisor of the {heads} heads")
        return value

    @field_validator("head_dim", mode="before")
    @classmethod
    def _hidden_over_heads(cls, value: object, info: ValidationInfo) -> object:
        if value is not None:
            return value
        attention = info.data.get("attention")
        if isinstance(attention, LatentPart):
            return attention.qk_nope_head_dim + attention.qk_rope_head_dim
        hidden, heads = info.data.get("hidden", 1), info.data.get("heads", 1)
        if hidden % heads:
            raise ValueError(
                f"an explicit width: {heads} heads do not divide the hidden size {hidden}"
            )
        return hidden // heads

    @field_validator("intermediate", mode="before")
    @classmethod
    def _told_if_dense(cls, value: object, info: ValidationInfo) -> object:
        if value is not None:
            return value
        kinds = info.data.get("layer_kinds", ())
        parts = [info.data.get("mlp") if kind.mlp is None else kind.mlp for kind in kinds]
        parts = parts or [info.data.get("mlp")]
        widths = [getattr(part, "intermediate", 1) for part in parts if part is not None]
        if len(widths) < len(parts) or None in widths:
            raise ValueError("the key is required")
        return max(widths)

    @field_validator("max_positions")
    @classmethod
    def _counted_if_learned(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is None and info.data.get("position") == "learned":
            raise ValueError("a whole number, since the positions are learned")
        return value

    @field_validator("layer_order")
    @classmethod
    def _every_layer_has_a_kind(
        cls, runs: tuple[Run, ...], info: ValidationInfo
    ) -> tuple[Run, ...]:
        names = [kind.name for kind in info.data.get("layer_kinds", ())]
        if len(set(names)) < len(names):
            raise ValueError(f"kinds of different names, not {', '.join(names)}")
        used = {name for run in runs for name in run.kinds}
        if used != set(names):
            raise ValueError(f"each of the layer_kinds, no other: {', '.join(names) or 'none'}")
        count = sum(run.times * len(run.kinds) for run in runs)
        if runs and count != info.data.get("layers", count):
            raise ValueError(f"{info.data['layers']} layers in all, not {count}")
        return runs

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        for kind in self.layer_kinds or (None,):
            fill_layer(self, kind)
        if self.streams is not None and (self.parallel_norms or self.norm_position != "pre"):
            allowed = "null, where blocks stand side by side or norms after them"
            raise FieldError("streams", self.streams, allowed)
        check_shared(self.sequence)
        return self

    @functools.cached_property
    def groups(self) -> tuple[LayerGroup, ...]:
        """Like layers together, with every part filled in, in order of first appearance."""
        if not self.layer_kinds:
            return (LayerGroup(fill_layer(self, None), self.layers),)
        counts: dict[str, int] = {}
        for run in self.layer_order:
            for name in run.kinds:
                counts[name] = counts.get(name, 0) + run.times
        kinds = {kind.name: kind for kind in self.layer_kinds}
        return tuple(
            LayerGroup(fill_layer(self, kinds[name]), count) for name, count in counts.items()
        )

    @functools.cached_property
    def sequence(self) -> tuple[Layer, ...]:
        """Every layer, from the first to the last."""
        by_name = {group.layer.name: group.layer for group in self.groups}
        if not self.layer_kinds:
            return tuple(by_name.values()) * self.layers
        order = [name for run in self.layer_order for name in run.kinds * run.times]
        return tuple(by_name[name] for name in order)

    @functools.cached_property
    def encoder_model(self) -> ModelSpec:
        """The encoder as a model of its own, without embedding and head.

        Raises
        ------
        ConfigError
            The model has no encoder, or one whose heads do not divide its width.
        """
        tower = self.encoder
        if tower is None:
            raise ConfigError(self.name, "encoder", None, "an encoder")
        return ModelSpec.build(
            f"{self.name}: encoder",
            name=f"{self.name}-encoder",
            source=self.source,
            vocabulary=1,
            position="none",
            **tower.model_dump(exclude={"tokens", "outputs"}),
        )

    def has_bias(self, projection: Projection) -> bool:
        """Whether a projection (``qkv``, ``output``, ``mlp``) has biases."""
        if isinstance(self.biases, bool):
            return self.biases
        return projection in self.biases

    @property
    def is_moe(self) -> bool:
        """Whether some layer has routed experts."""
        return isinstance(self.mlp, MoePart) or any(
            isinstance(kind.mlp, MoePart) for kind in self.layer_kinds
        )

    @property
    def parameters(self) -> int:
        """All parameters: embeddings, layers, final norm, and the head unless tied."""
        return parameters.model_parameters(self)

    @property
    def active_parameters(self) -> int:
        """Parameters that one token passes: of the routed experts only its ``top_k``."""
        return parameters.active_parameters(self)

    @property
    def layer_parameters(self) -> int:
        """Parameters of the first layer, norms and biases included."""
        return parameters.layer_parameters(self, self.sequence[0])

    @property
    def kv_elements_per_token(self) -> int:
        """Cached elements of one token over all layers, bounded windows not yet full."""
        return cache.row_elements(self)

    def kv_bytes_per_token(self, precision: Precision) -> float:
        """Bytes of cache of one token over all layers and heads.

        Windowed layers count as long as their window is not full; `cache.sequence_bytes`
        gives the bytes of a sequence.
        """
        return cache.row_bytes(self, precision)


@functools.lru_cache(maxsize=64)
def _read_model(file: str, *version: int) -> ModelSpec:
    """The model of a file in one of its versions."""
    del version
    data, path = load("models", file)
    return ModelSpec.read(data, path)
