"""Which plans a model can be split by: refusals that say what is allowed, and all plans."""

from __future__ import annotations

import functools
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from chipsim.errors import InfeasibleError
from chipsim.ops.layers import (
    Compressed,
    Dense,
    Experts,
    Grouped,
    Latent,
    Linear,
    Scan,
    ShortConv,
)
from chipsim.ops.plan import Parallelism

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chipsim.ops.layers import Layer, Mixer
    from chipsim.ops.model import ModelSpec

__all__ = [
    "Parallelism",
    "allowed_ep",
    "allowed_tp",
    "cache_copies",
    "check",
    "divisors",
    "stages",
    "valid_plans",
]


@functools.lru_cache(maxsize=4096)
def check(model: ModelSpec, plan: Parallelism) -> None:
    """Refuse a plan that the model cannot be split by.

    The vocabulary is padded to equal shares, and stages may differ by a layer; all else must
    divide: heads (key and value heads may be replicated instead), MLP columns, experts and
    their columns.

    Raises
    ------
    InfeasibleError
        Names the degree, its value, the sizes that it does not divide, and what is allowed.
    """
    if plan.tp not in allowed_tp(model):
        _refuse(model, plan, "tp", _sizes(model), allowed_tp(model))
    if plan.pp > model.layers:
        _refuse(model, plan, "pp", f"{model.layers} layers", f"1 to {model.layers}")
    copies = cache_copies(model, plan.tp)
    if copies % plan.dcp:
        _refuse(model, plan, "dcp", f"tp={plan.tp}: {copies} copies of a row", divisors(copies))
    if plan.ep not in allowed_ep(model, plan.stage_chips):
        allowed = allowed_ep(model, plan.stage_chips)
        _refuse(model, plan, "ep", _expert_sizes(model, plan.stage_chips), allowed)


def _refuse(
    model: ModelSpec, plan: Parallelism, key: str, sizes: str, allowed: Sequence[int] | str
) -> None:
    text = allowed if isinstance(allowed, str) else ", ".join(map(str, allowed))
    text = text or f"none; {_near_chips(model, plan)}"
    raise InfeasibleError(
        f"plan: {key}: {getattr(plan, key)} is not allowed for {model.name} ({sizes}); "
        f"allowed: {text}"
    )


def _near_chips(model: ModelSpec, plan: Parallelism) -> str:
    """The next numbers of chips, down and up, that the experts can be spread over."""
    chips = plan.stage_chips
    sides = (range(chips - 1, 0, -1), range(chips + 1, 2 * chips + 1))
    found = (next((n for n in side if allowed_ep(model, n)), None) for side in sides)
    each = [
        f"{number} chips with ep={'|'.join(map(str, allowed_ep(model, number)))}"
        for number in found
        if number is not None
    ]
    return f"tp x cp x dp of {' or '.join(each)}"


@functools.lru_cache(maxsize=256)
def allowed_tp(model: ModelSpec) -> tuple[int, ...]:
    """Tensor-parallel degrees that split a model evenly, ascending."""
    layers = [group.layer for group in model.groups]
    most = max(
        [layer.mixer.heads for layer in layers if layer.mixer is not None] or [model.heads]
    )
    return tuple(tp for tp in divisors(most) if all(_splits(layer, tp) for layer in layers))


def allowed_ep(model: ModelSpec, chips: int) -> tuple[int, ...]:
    """Expert-parallel degrees over the chips of a stage, ascending; 1 without experts."""
    experts = [group.layer.mlp for group in model.groups]
    routed = [mlp for mlp in experts if isinstance(mlp, Experts)]
    if not routed:
        return (1,)
    return tuple(
        ep
        for ep in divisors(chips)
        if not any(mlp.experts % ep or mlp.intermediate % (chips // ep) for mlp in routed)
    )


def _splits(layer: Layer, tp: int) -> bool:
    """Whether heads and columns of a layer divide; few heads may be replicated evenly."""
    mixer, mlp = layer.mixer, layer.mlp
    if mixer is not None and mixer.heads % tp:
        return False
    if isinstance(mixer, Grouped) and mixer.kv_heads % tp and tp % mixer.kv_heads:
        return False
    if isinstance(mixer, Compressed) and mixer.output_groups % tp:
        return False
    beside = mixer.beside if isinstance(mixer, Grouped) else mixer
    if isinstance(beside, Linear) and not _splits_states(beside, tp):
        return False
    if isinstance(mlp, Dense):
        return mlp.intermediate % tp == 0
    return not isinstance(mlp, Experts) or mlp.shared_intermediate % tp == 0


def _splits_states(mixer: Linear, tp: int) -> bool:
    """Whether states divide, and the heads of their keys or their copies."""
    keys = mixer.key_heads
    return mixer.heads % tp == 0 and (keys % tp == 0 or tp % keys == 0)


def _sizes(model: ModelSpec) -> str:
    """The sizes that tensor parallelism divides, each once."""
    found: dict[str, None] = {}
    for group in model.groups:
        mixer, mlp = group.layer.mixer, group.layer.mlp
        if mixer is not None:
            found[f"{mixer.heads} {_split_word(mixer)}"] = None
        if isinstance(mixer, Compressed):
            found[f"{mixer.output_groups} groups of outputs"] = None
        if isinstance(mixer, Grouped):
            found[f"{mixer.kv_heads} KV heads"] = None
            if mixer.beside is not None:
                found[f"{mixer.beside.heads} states"] = None
        if isinstance(mlp, Dense):
            found[f"intermediate {mlp.intermediate}"] = None
        elif isinstance(mlp, Experts) and mlp.shared_intermediate:
            found[f"shared {mlp.shared_intermediate}"] = None
    return ", ".join(found)


def _split_word(mixer: Mixer) -> str:
    if isinstance(mixer, Linear):
        return "states"
    return "channels" if isinstance(mixer, Scan | ShortConv) else "heads"


def _expert_sizes(model: ModelSpec, chips: int) -> str:
    found = {
        f"{mlp.experts} experts of {mlp.intermediate}": None
        for mlp in (group.layer.mlp for group in model.groups)
        if isinstance(mlp, Experts)
    }
    place = "one chip: ep spreads over tp x cp x dp" if chips == 1 else f"{chips} chips"
    return f"{', '.join(found) or 'no experts'} on {place}"


@functools.lru_cache(maxsize=1024)
def stages(model: ModelSpec, pp: int) -> tuple[tuple[Layer, ...], ...]:
    """The layers of each of ``pp`` pipeline stages, in their order."""
    counts = Parallelism(pp=pp).stage_layers(model.layers)
    ends = accumulate(counts)
    pairs = zip(ends, counts, strict=True)
    return tuple(model.sequence[end - count : end] for end, count in pairs)


def divisors(number: int) -> list[int]:
    """Divisors of a number from 1, ascending.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def valid_plans(
    model: ModelSpec, chips: int, phase: Literal["prefill", "decode"]
) -> Iterator[Parallelism]:
    """Every plan of a number of chips that splits the model.

    Context parallelism belongs to its phase: ``cp`` in prefill; in decode ``dcp``, where
    cached rows would otherwise stand on several tp chips.
    """
    for pp in divisors(chips):
        if pp > model.layers:
            continue
        stage = chips // pp
        experts = allowed_ep(model, stage)
        for tp in (tp for tp in allowed_tp(model) if stage % tp == 0):
            copies = cache_copies(model, tp) if phase == "decode" else 1
            for cp in divisors(stage // tp) if phase == "prefill" else [1]:
                for ep in experts:
                    for dcp in divisors(copies):
                        yield Parallelism(
                            tp=tp, pp=pp, ep=ep, dp=stage // tp // cp, cp=cp, dcp=dcp
                        )


def cache_copies(model: ModelSpec, tp: int) -> int:
    """Chips of a tp group that hold the same cached rows, in the layer with the fewest."""
    if any(isinstance(group.layer.mixer, Compressed) for group in model.groups):
        return 1  # a row stands for tokens of several chips: not split by tokens
    copies = [
        tp if isinstance(mixer, Latent) else max(1, tp // mixer.kv_heads)
        for mixer in (group.layer.mixer for group in model.groups)
        if isinstance(mixer, Latent | Grouped)
    ]
    return min(copies, default=1)
