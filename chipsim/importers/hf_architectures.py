"""What an architecture has that its configuration files do not say.

Read from `arch_configs/architectures/*.yaml`, one mapping per ``model_type``; facts of an
architecture are data, and a new one is a few lines there.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, StrictBool

from chipsim.arch_configs import load, names
from chipsim.errors import InternalError
from chipsim.ops.parts import Function
from chipsim.spec import Spec

Projection = Literal["qkv", "output", "mlp"]
FALLBACK = "llama"
"""An unknown architecture is read as a decoder of this kind."""


class Architecture(Spec):
    """Traits of one ``model_type``."""

    refused: str | None = None
    """Why a model of this architecture cannot be imported; null: it can."""
    note: str | None = None
    """What an import simplifies: a warning."""
    norm: Literal["layernorm", "rmsnorm"] = "rmsnorm"
    norm_position: Literal["pre", "post", "sandwich"] = "pre"
    parallel_norms: Literal[0, 1, 2] = 0
    """Norms of a layer whose attention and MLP stand side by side (0: they do not)."""
    parallel_key: str | None = None
    """Key that says whether they do; null: they always do."""
    position: Literal["learned", "rotary", "alibi", "none"] = "rotary"
    position_offset: int = 0
    gated: StrictBool = True
    activation: Function = "silu"
    """Where the configuration names none."""
    biases: dict[str, tuple[Projection, ...]] = Field(default_factory=dict)
    """Projections with a bias, by the key that says so (``always``: no key does)."""
    refusing_keys: dict[str, str | None] = Field(default_factory=dict)
    """Keys that, when they hold anything but zero or null, name what is not modelled;
    null: the architecture has what others are refused for."""
    requires: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Keys that a configuration must have, by the key that says so (``always``: no key
    does); ``a|b``: one of them."""
    keys: dict[str, str] = Field(default_factory=dict)
    """Names that the architecture gives to things, where they are not the commonest."""
    intermediate_ratio: int | None = None
    """Width of the MLP over the hidden size where no key gives it."""
    qk_norm: Literal["none", "head", "width", "unscaled"] = "none"
    qk_norm_key: str | None = None
    """Key that says whether queries and keys are normed; null: they always are."""
    sinks: StrictBool = False
    output_gate: StrictBool = False
    embedding_norm: StrictBool = False
    head_bias: StrictBool = False
    head_bias_key: str | None = None
    """Key that says whether the LM head has a bias; null: ``head_bias`` does."""
    shared_gate: StrictBool = False
    router_bias: StrictBool = False
    shared_like_expert: StrictBool = False
    """One shared expert, as wide as a routed one, that no key names."""
    dense_beside_experts: Literal["none", "intermediate", "hidden"] = "none"
    """A dense MLP beside the routed experts in each of their layers: as wide as the file's
    dense MLPs (Gemma 4), or as the model (Arctic)."""
    doubled: StrictBool = False
    """A layer of the file is two: its experts stand beside the first one's MLP (LongCat)."""
    halved_intermediate: StrictBool = False
    """The file's width of the MLP is that of both halves together."""
    adjusted_intermediate: StrictBool = False
    """The MLP has 2/3 of the file's width, rounded up (LFM2, where its key says so)."""
    linear: Literal["none", "ssm", "delta", "kda", "decay", "scan", "conv"] = "none"
    """Rule of the layers that are not softmax attention."""
    attends: StrictBool = True
    """Some layer has attention heads; not so in Mamba's own models."""
    beside: StrictBool = False
    """The recurrent mixer stands beside attention in every layer (Falcon-H1)."""
    compressed: StrictBool = False
    """Attention over compressed rows, and residual streams (DeepSeek-V4)."""
    inner_norms: StrictBool = False
    """A selective scan norms its step size, B and C with weights (Jamba)."""
    single_parts: StrictBool = False
    """A layer is a mixer or an MLP, never both (Nemotron-H)."""
    embedding_is_active: StrictBool = True
    """The authors count the embedding among the active parameters."""
    head_is_active: StrictBool = True
    """They count the LM head among them."""
    defaults: dict[str, Any] = Field(default_factory=dict)
    """Values of keys that published files leave out: those of the configuration class."""


def architecture(model_type: str) -> Architecture | None:
    """Traits of a ``model_type``, or None where it is unknown."""
    if model_type not in _table():
        return None
    return Architecture.read(_resolved(model_type), f"architectures, {model_type}")


def known() -> list[str]:
    """Every known ``model_type``, sorted."""
    return sorted(_table())


@functools.cache
def _table() -> Mapping[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = {}
    for family in names("architectures"):
        content, path = load("architectures", family)
        for model_type, traits in content.items():
            if model_type in table:
                raise InternalError(f"{path.name}: {model_type} is there twice")
            table[model_type] = traits or {}
    return table


def _resolved(model_type: str) -> dict[str, Any]:
    traits = dict(_table()[model_type])
    like = traits.pop("like", None)
    if like is None:
        return traits
    base = _resolved(like)
    for key in ("defaults", "biases", "keys"):
        if key in base and key in traits:
            traits[key] = {**base[key], **traits[key]}
    return {**base, **traits}
