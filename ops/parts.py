"""Parts of a model as its file writes them: attention, MLP, kinds of layers, encoder.

What a part leaves out is the model's own (`ModelSpec.heads`, `gated`, ...);
`chipsim.ops.layers` holds the parts with everything filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Field, StrictBool, Tag, model_validator

from chipsim.ops.precision import Precision
from chipsim.spec import FieldError, Spec

Count = Annotated[int, Field(ge=1, le=10**9, strict=True)]
Layers = Annotated[int, Field(ge=1, le=10**4, strict=True)]
Function = Literal["gelu", "relu", "relu2", "silu"]
"""Non-linear function of an MLP; ``relu2`` squares a ReLU."""
PhaseName = Literal["prefill", "decode"]


class LinearPart(Spec):
    """A mixer with a recurrent state of ``heads`` matrices key_dim x value_dim.

    ``ssm``: Mamba-2 (keys are its B and C, shared by groups of heads); ``delta``: gated
    delta net; ``kda``: the same with a decay per key channel (Kimi); ``decay``: fixed
    decay per head (lightning attention).
    """

    kind: Literal["linear"]
    rule: Literal["ssm", "delta", "kda", "decay"]
    heads: Count
    """Value heads, each with its state."""
    key_heads: Count | None = None
    """Heads (groups) that keys and queries have; null: as ``heads``."""
    key_dim: Count
    value_dim: Count
    conv: Annotated[int, Field(ge=0, le=1024, strict=True)] = 0
    """Taps of the causal convolution before the recurrence (0: none)."""
    conv_bias: StrictBool = False
    chunk: Count = 64
    """Tokens that a prefill kernel takes at a time."""
    state_format: str = "fp32"
    """Format of the state between steps."""
    norm: StrictBool = True
    """A gated norm of the output; without it the gate alone (Falcon-H1)."""


class ScanPart(Spec):
    """A selective scan (Mamba-1): every channel has a state, and decays of its own."""

    kind: Literal["scan"]
    channels: Count
    """Width of the expanded input."""
    state: Count
    """Elements of the state of one channel."""
    rank: Count
    """Rank through which the step size of every channel is projected."""
    conv: Annotated[int, Field(ge=0, le=1024, strict=True)] = 4
    """Taps of the causal convolution before the scan (0: none)."""
    conv_bias: StrictBool = True
    inner_norms: StrictBool = False
    """Norms with weights of the step size's rank, of B and of C (Jamba)."""
    state_format: str = "fp32"
    """Format of the state between steps."""


class ConvPart(Spec):
    """A gated short convolution (LFM2): no state but the last inputs of its taps."""

    kind: Literal["conv"]
    channels: Count
    conv: Annotated[int, Field(ge=1, le=1024, strict=True)]
    """Taps of the causal convolution."""


class GroupedPart(Spec):
    """Softmax attention with key and value heads that query heads share (MHA, GQA, MQA)."""

    kind: Literal["gqa"] = "gqa"
    heads: Count | None = None
    kv_heads: Count | None = None
    head_dim: Count | None = None
    """Width of a query or key head."""
    value_dim: Count | None = None
    """Width of a value head; null: as ``head_dim``."""
    window: Count | None = None
    """Tokens that a query sees, itself included; null: all before it."""
    sinks: StrictBool = False
    """One learned logit per query head joins the softmax (gpt-oss)."""
    qk_norm: Literal["none", "head", "width", "unscaled"] = "none"
    """RMS norm of queries and keys: weights of one head (Qwen3), of the whole width
    (OLMo 2, MiniMax), or none (Llama 4)."""
    output_gate: StrictBool = False
    """The output is multiplied by a gate as wide as itself, projected with the queries."""
    keys_are_values: StrictBool = False
    """One projection gives both keys and values (Gemma 4); both are cached."""
    shares_cache: StrictBool = False
    """Reads keys and values that an earlier layer cached: no projection, no row of its own."""
    beside: LinearPart | None = None
    """A recurrent mixer of the same normed input, its output added (Falcon-H1)."""


class IndexerPart(Spec):
    """Chooses the tokens that sparse attention reads (DeepSeek sparse attention)."""

    heads: Count
    head_dim: Count
    top_k: Count
    """Tokens that a query reads at most."""


class LatentPart(Spec):
    """Multi-head latent attention: one latent and one rotary row per token is cached."""

    kind: Literal["mla"]
    heads: Count | None = None
    q_lora_rank: Count | None = None
    """Rank of the query projection; null: one full matrix."""
    kv_lora_rank: Count
    qk_nope_head_dim: Count
    qk_rope_head_dim: Count
    v_head_dim: Count
    indexer: IndexerPart | None = None
    """Null: dense attention."""


class CompressedPart(Spec):
    """One row per token, key and value of all heads at once, kept within a window; before
    it one row for every ``ratio`` tokens (DeepSeek-V4).

    Queries come through a latent, outputs leave through groups of heads of a low rank.
    """

    kind: Literal["compressed"]
    heads: Count | None = None
    head_dim: Count | None = None
    """Width of a query head and of a row."""
    rotary_dim: Count
    """Elements of a row that rotary positions turn."""
    q_lora_rank: Count
    window: Count
    ratio: Annotated[int, Field(ge=0, le=10**6, strict=True)] = 0
    """Tokens that one row before the window stands for (0: there are none)."""
    overlaps: StrictBool = False
    """A row is made of its own tokens and of those before: two projections of each."""
    indexer: IndexerPart | None = None
    """Picks the rows that a query reads; its keys are compressed alike. Null: all."""
    output_groups: Count
    output_rank: Count
    """Width that each group of heads is projected to."""


class DensePart(Spec):
    """An MLP that every token passes."""

    kind: Literal["dense"] = "dense"
    intermediate: Count | None = None
    gated: StrictBool | None = None
    activation: Function | None = None


class MoePart(Spec):
    """Routed experts, of which each token passes ``top_k``, and shared ones it always does."""

    kind: Literal["moe"]
    experts: Count
    top_k: Count
    intermediate: Count
    """Width inside one routed expert."""
    gated: StrictBool | None = None
    activation: Function | None = None
    shared_intermediate: Annotated[int, Field(ge=0, le=10**9, strict=True)] = 0
    """Width inside all shared experts together (0: none)."""
    shared_gate: StrictBool = False
    """A sigmoid gate, one number per token, on the shared output (Qwen2-MoE)."""
    router_bias: StrictBool = False
    """One bias per expert in the router, learned or set for balance."""
    latent: Count | None = None
    """Routed experts work on a projection of this width (Nemotron 3 Super)."""
    identity_experts: Annotated[int, Field(ge=0, le=10**9, strict=True)] = 0
    """Choices of the router beside the experts that pass a token on as it is (LongCat)."""


def _kind(default: str) -> Discriminator:
    def read(value: Any) -> str:
        if isinstance(value, dict):
            return f"<{value.get('kind', default)}>"
        return f"<{getattr(value, 'kind', default)}>"

    return Discriminator(
        read,
        custom_error_type="kind",
        custom_error_message="kind: gqa, mla, compressed, linear, scan or conv of an "
        "attention, dense or moe of an MLP",
    )


AttentionPart: TypeAlias = Annotated[
    Annotated[GroupedPart, Tag("<gqa>")]
    | Annotated[LatentPart, Tag("<mla>")]
    | Annotated[LinearPart, Tag("<linear>")]
    | Annotated[ScanPart, Tag("<scan>")]
    | Annotated[ConvPart, Tag("<conv>")]
    | Annotated[CompressedPart, Tag("<compressed>")],
    _kind("gqa"),
]
"""Attention of any kind; ``gqa`` unless it says so."""

MlpPart: TypeAlias = Annotated[
    Annotated[DensePart, Tag("<dense>")] | Annotated[MoePart, Tag("<moe>")], _kind("dense")
]
"""MLP of any kind; ``dense`` unless it says so."""


class PerLayerPart(Spec):
    """Inputs that every token brings to every layer from a table of its own (Gemma 4).

    A row of ``width`` for each layer, plus a projection of the embedding to all of them;
    a layer ends with a gate down to ``width``, the product with its row, a projection up,
    a norm and a residual.
    """

    width: Count
    vocabulary: Count
    """Rows of the table."""


class LayerKind(Spec):
    """One kind of layer, where a model has several; what it leaves out is the model's."""

    name: Annotated[str, Field(min_length=1, pattern=r"^[a-z0-9-]+$")]
    attention: AttentionPart | Literal["none"] | None = None
    """Null: the model's own; ``none``: the layer has no attention."""
    mlp: MlpPart | Literal["none"] | None = None
    """Null: the model's own; ``none``: the layer has no MLP."""
    phases: Annotated[tuple[PhaseName, ...], Field(min_length=1)] = ("prefill", "decode")
    """Phases that run it: a decoder tower on a shared cache runs in decode alone."""

    @model_validator(mode="before")
    @classmethod
    def _of_the_models_width(cls, data: object) -> object:
        if isinstance(data, Mapping) and "hidden" in data:
            allowed = "left out: towers of another width than the model's are not modelled"
            raise FieldError(f"layer_kinds.{data.get('name')}.hidden", data["hidden"], allowed)
        return data


class Run(Spec):
    """Layers in order: the kinds one after the other, all of it ``times`` times."""

    kinds: Annotated[tuple[str, ...], Field(min_length=1)]
    times: Layers = 1


class PhasePrecision(Spec):
    """Formats of each phase, where the user names none (null: the common default)."""

    prefill: Precision | None = None
    decode: Precision | None = None


class EncoderPart(Spec):
    """A tower that turns an input (an image, a clip) into rows of the prompt.

    Its tokens see each other; it runs in the ``encode`` phase, before prefill.
    """

    layers: Layers
    hidden: Count
    heads: Count
    intermediate: Count
    gated: StrictBool = False
    activation: Function = "gelu"
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    biases: StrictBool = True
    tokens: Count
    """Tokens of one input inside the tower."""
    outputs: Count
    """Rows of the prompt that one input becomes."""
