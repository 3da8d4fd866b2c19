"""Memory of one chip of a plan: weights, what is left for KV, and whether it fits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipsim.errors import ConfigError, InfeasibleError
from chipsim.ops.checks import positive, whole
from chipsim.ops.formats import get_format
from chipsim.ops.parallelism import check
from chipsim.ops.parameters import kv_heads_per_chip, model_parameters

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.ops.model import ModelSpec
    from chipsim.ops.parallelism import Parallelism
    from chipsim.ops.precision import Precision


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """How the memory of one chip is divided; every chip of a plan holds the same.

    Attributes
    ----------
    capacity_bytes : float
        Memory of the chip.
    usable_bytes : float
        The share of it that weights and KV may take.
    weights_bytes_per_chip : float
        Weights on one chip, replicated parts included.
    kv_bytes_per_token : float
        KV cache of one token over all layers, on one chip.
    free_bytes : float
        Left for KV after the weights (0 where they do not fit).
    kv_tokens : int
        Whole tokens of KV that fit.
    fits : bool
        The weights fit.
    shortfall_bytes : float
        Missing for the weights (0 where they fit).
    """

    capacity_bytes: float
    usable_bytes: float
    weights_bytes_per_chip: float
    kv_bytes_per_token: float
    free_bytes: float
    kv_tokens: int
    fits: bool
    shortfall_bytes: float

    def largest_batch(self, context: int) -> int:
        """Sequences of ``context`` tokens that fit at once (0: not even one)."""
        return self.kv_tokens // whole("memory", "context", context)


def memory_plan(
    chip: Chip,
    model: ModelSpec,
    plan: Parallelism,
    precision: Precision,
    share: float = 0.9,
) -> MemoryPlan:
    """Divide a chip's memory between weights and KV.

    Parameters
    ----------
    share : float
        Part of the memory for weights and KV, 0 < share <= 1; the rest is for
        activations, communication buffers and the runtime. 0.9 is the default of
        vLLM (``gpu_memory_utilization``).

    Raises
    ------
    InfeasibleError
        The plan does not split the model. Weights that do not fit are a result.
    ConfigError
        ``share`` outside its range.
    """
    if positive("memory", "share", share) > 1.0:
        raise ConfigError("memory", "share", share, "a number above 0, at most 1")
    check(model, plan)
    usable = share * chip.memory.capacity
    weights = weights_bytes_per_chip(model, plan, precision)
    kv = kv_bytes_per_chip(model, plan, precision)
    free = max(0.0, usable - weights)
    return MemoryPlan(
        capacity_bytes=chip.memory.capacity,
        usable_bytes=usable,
        weights_bytes_per_chip=weights,
        kv_bytes_per_token=kv,
        free_bytes=free,
        kv_tokens=math.floor(free / kv),
        fits=weights <= usable,
        shortfall_bytes=max(0.0, weights - usable),
    )


def weights_bytes_per_chip(model: ModelSpec, plan: Parallelism, precision: Precision) -> float:
    """Bytes of weights on one chip: every parameter in the weights' format."""
    return model_parameters(model, plan.tp) * get_format(precision.weights).bytes


def kv_bytes_per_chip(model: ModelSpec, plan: Parallelism, precision: Precision) -> float:
    """Bytes of KV of one token on one chip; heads are replicated beyond one per chip."""
    heads = kv_heads_per_chip(model, plan.tp)
    return 2.0 * model.layers * heads * model.head_dim * get_format(precision.kv).bytes


def check_fits(
    chip: Chip, model: ModelSpec, plan: Parallelism, precision: Precision, tokens: int
) -> None:
    """Refuse what cannot be held: weights and the KV of ``tokens``, in the whole memory.

    Parameters
    ----------
    tokens : int
        Cached tokens of all sequences together, from 0.

    Raises
    ------
    InfeasibleError
        Says what is needed, what there is, and by how much it falls short; or the plan
        does not split the model.
    """
    tokens = whole("memory", "tokens", tokens, least=0)
    memory = memory_plan(chip, model, plan, precision, share=1.0)
    kv = tokens * memory.kv_bytes_per_token
    missing = memory.weights_bytes_per_chip + kv - memory.capacity_bytes
    if missing <= 0.0:
        return
    raise InfeasibleError(
        f"{model.name} at tp={plan.tp} does not fit {chip.name}: each chip needs "
        f"{_gb(memory.weights_bytes_per_chip)} of weights and {_gb(kv)} of KV "
        f"({tokens} tokens), and has {_gb(memory.capacity_bytes)}: "
        f"{_gb(missing)} too little"
    )


def _gb(size: float) -> str:
    return f"{size / 1e9:.2f} GB"
