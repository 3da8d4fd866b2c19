"""Models: the shape of a dense decoder-only transformer, its parameters and its KV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StrictBool, ValidationInfo, field_validator

from chipsim.arch_configs import load
from chipsim.ops import parameters
from chipsim.ops.formats import get_format
from chipsim.spec import Spec

if TYPE_CHECKING:
    from chipsim.ops.precision import Precision

Count = Annotated[int, Field(ge=1, le=10**9, strict=True)]
Projection = Literal["qkv", "output", "mlp"]


class ModelSpec(Spec):
    """A dense decoder-only transformer.

    Read one with `ModelSpec.load`. Parameter counts are exact, as published.
    """

    name: str
    description: str = ""
    source: str
    """Where the numbers come from: paper, or the file that its authors publish."""
    layers: Count
    hidden: Count
    heads: Count
    """Query heads."""
    kv_heads: Count = Field(default=None, validate_default=True)
    """Key and value heads; omitted: one per query head (MHA)."""
    head_dim: Count = Field(default=None, validate_default=True)
    """Width of one head; omitted: hidden / heads."""
    intermediate: Count
    """Width inside the MLP (of each of its two halves where gated)."""
    vocabulary: Count
    """Rows of the embedding table, padding included where the source has it."""
    norm: Literal["layernorm", "rmsnorm"]
    activation: Literal["gelu", "relu", "silu"]
    gated: bool = False
    """The MLP multiplies the activated half by a second projection (SwiGLU)."""
    position: Literal["learned", "rotary", "alibi"]
    max_positions: Count | None = Field(default=None, validate_default=True)
    """Longest sequence; required for learned positions."""
    position_offset: Annotated[int, Field(ge=0, le=10**6, strict=True)] = 0
    """Rows of a learned position table beyond ``max_positions`` (OPT has 2)."""
    biases: StrictBool | tuple[Projection, ...] = False
    """Projections with a bias: all, none, or a list of ``qkv``, ``output``, ``mlp``."""
    tied_embeddings: bool = False
    """The LM head is the embedding table."""
    embedding_norm: bool = False
    """A norm right after the embedding (BLOOM)."""

    @classmethod
    def load(cls, name: str) -> ModelSpec:
        """Read a model by library name or path (`ConfigError`, `UnknownNameError`)."""
        data, path = load("models", name)
        return cls.read(data, path)

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
        hidden, heads = info.data.get("hidden", 1), info.data.get("heads", 1)
        if hidden % heads:
            raise ValueError(
                f"an explicit width: {heads} heads do not divide the hidden size {hidden}"
            )
        return hidden // heads

    @field_validator("max_positions")
    @classmethod
    def _counted_if_learned(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is None and info.data.get("position") == "learned":
            raise ValueError("a whole number, since the positions are learned")
        return value

    def has_bias(self, projection: Projection) -> bool:
        """Whether a projection (``qkv``, ``output``, ``mlp``) has biases."""
        if isinstance(self.biases, bool):
            return self.biases
        return projection in self.biases

    @property
    def parameters(self) -> int:
        """All parameters: embeddings, layers, final norm, and the head unless tied."""
        return parameters.model_parameters(self)

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer, norms and biases included."""
        return parameters.layer_parameters(self)

    @property
    def kv_elements_per_token(self) -> int:
        """Cached elements of one token over all layers: keys and values."""
        return 2 * self.layers * self.kv_heads * self.head_dim

    def kv_bytes_per_token(self, precision: Precision) -> float:
        """Bytes of KV cache of one token over all layers and heads."""
        return self.kv_elements_per_token * get_format(precision.kv).bytes
