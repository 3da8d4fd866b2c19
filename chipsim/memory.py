"""Memory of one chip of a plan: weights, what is left for KV, and whether it fits.

Each pipeline stage holds its layers (one more or less than another); within one every chip
holds the same, and the stage with the least room decides. KV heads are split over tp and
replicated beyond one per chip; the row of latent attention is whole on every tp chip, unless
``dcp`` of them split the tokens. Experts are spread over ep; each data-parallel rank has its
own sequences. A tower that one phase alone runs is in the format of that phase.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipsim.errors import ConfigError, InfeasibleError
from chipsim.ops.cache import layer_cache
from chipsim.ops.checks import positive, whole
from chipsim.ops.formats import get_format
from chipsim.ops.parallelism import cache_copies, check, stages
from chipsim.ops.parameters import layer_modules, module_parameters
from chipsim.ops.precision import Precision

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chipsim.chip import Chip
    from chipsim.ops.layers import Layer
    from chipsim.ops.model import ModelSpec
    from chipsim.ops.parallelism import Parallelism
    from chipsim.ops.parts import PhaseName
    from chipsim.ops.phase import Phase


@dataclass(frozen=True, slots=True)
class StageMemory:
    """What one chip of a pipeline stage holds.

    Attributes
    ----------
    weights_bytes : float
        Weights, replicated parts included.
    rows : tuple of (int, float)
        Window (0: none) and bytes that one token adds, over the layers of that window.
    state_bytes : float
        Recurrent state of one sequence.
    """

    weights_bytes: float
    rows: tuple[tuple[int, float], ...]
    state_bytes: float

    @property
    def row_bytes(self) -> float:
        """Bytes of one token while no window is full."""
        return sum(size for _, size in self.rows)

    def sequence_bytes(self, tokens: int) -> float:
        """Bytes of a sequence of ``tokens`` tokens."""
        rows = sum(
            size * (min(tokens, window) if window else tokens) for window, size in self.rows
        )
        return rows + self.state_bytes

    def kv_bytes(self, sequences: Iterable[tuple[int, int]]) -> float:
        """Bytes of sequences of one rank: how many, and the tokens of each."""
        return sum(batch * self.sequence_bytes(context) for batch, context in sequences)


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """How the memory of one chip is divided.

    Attributes
    ----------
    capacity_bytes : float
        Memory of the chip.
    usable_bytes : float
        The share of it that weights and KV may take.
    stages : tuple of StageMemory
        The pipeline stages that differ.
    ranks : int
        Data-parallel ranks, each with sequences of its own.
    """

    capacity_bytes: float
    usable_bytes: float
    stages: tuple[StageMemory, ...]
    ranks: int = 1

    @property
    def weights_bytes_per_chip(self) -> float:
        """Weights on the chip that holds most."""
        return max(stage.weights_bytes for stage in self.stages)

    @property
    def kv_bytes_per_token(self) -> float:
        """KV of one token on the chip that holds most, while no window is full."""
        return max(stage.row_bytes for stage in self.stages)

    @property
    def state_bytes_per_sequence(self) -> float:
        """Recurrent state of one sequence on the chip that holds most."""
        return max(stage.state_bytes for stage in self.stages)

    @property
    def free_bytes(self) -> float:
        """Left for KV after the weights (0 where they do not fit)."""
        return max(0.0, self.usable_bytes - self.weights_bytes_per_chip)

    @property
    def fits(self) -> bool:
        """The weights fit."""
        return self.weights_bytes_per_chip <= self.usable_bytes

    @property
    def shortfall_bytes(self) -> float:
        """Missing for the weights (0 where they fit)."""
        return max(0.0, self.weights_bytes_per_chip - self.usable_bytes)

    @property
    def kv_tokens(self) -> int | None:
        """Whole tokens that fit one rank, no window full; None where tokens take nothing."""
        return min(
            (
                math.floor(self._free(stage) / stage.row_bytes)
                for stage in self.stages
                if stage.row_bytes
            ),
            default=None,
        )

    def kv_tokens_at(self, context: int) -> int | None:
        """Whole tokens that fit one rank in sequences of ``context`` tokens.

        Full windows hold no more, and every sequence has a state: so it may be more or
        less than `kv_tokens`. None where a sequence takes nothing.
        """
        context = whole("memory", "context", context)
        return min(
            (
                math.floor(self._free(stage) * context / size)
                for stage in self.stages
                if (size := stage.sequence_bytes(context))
            ),
            default=None,
        )

    def largest_batch(self, context: int) -> int:
        """Sequences of ``context`` tokens that fit at once on all ranks (0: not even one)."""
        context = whole("memory", "context", context)
        fitting = [
            math.floor(self._free(stage) / size)
            for stage in self.stages
            if (size := stage.sequence_bytes(context))
        ]
        return self.ranks * min(fitting, default=0)

    def missing_bytes(self, sequences: Iterable[tuple[int, int]]) -> float:
        """What the fullest chip lacks (below 0: what is left).

        Parameters
        ----------
        sequences : iterable of (int, int)
            Sequences on all ranks together, and the tokens of each.
        """
        held = [(-(-batch // self.ranks), context) for batch, context in sequences]
        return max(
            stage.weights_bytes + stage.kv_bytes(held) - self.usable_bytes
            for stage in self.stages
        )

    def _free(self, stage: StageMemory) -> float:
        return max(0.0, self.usable_bytes - stage.weights_bytes)


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
    capacity = chip.memory.capacity
    stages = stage_memories(model, plan, precision)
    return MemoryPlan(capacity, share * capacity, stages, plan.dp)


@functools.lru_cache(maxsize=4096)
def stage_memories(
    model: ModelSpec, plan: Parallelism, precision: Precision
) -> tuple[StageMemory, ...]:
    """The different stages of a plan, in order of first appearance."""
    if plan.pp == 1:
        layers = Counter({group.layer: group.count for group in model.groups})
        return (_stage(model, layers, plan, precision, first=True, last=True),)
    different = dict.fromkeys(
        (number == 0, number == plan.pp - 1, frozenset(Counter(held).items()))
        for number, held in enumerate(stages(model, plan.pp))
    )
    found = {
        _stage(model, Counter(dict(layers)), plan, precision, first=first, last=last): None
        for first, last, layers in different
    }
    return tuple(found)


def _stage(
    model: ModelSpec,
    layers: Counter[Layer],
    plan: Parallelism,
    precision: Precision,
    *,
    first: bool,
    last: bool,
) -> StageMemory:
    stored: Counter[str] = Counter()
    for layer, number in layers.items():
        kept = kept_precision(model, layer.phases, precision)
        for module, count in layer_modules(model, layer, plan.shares).items():
            stored[kept.weights_of(module)] += number * count
    ahead = module_parameters(model, plan.shares, (), embedding=first, head=False)
    ends = module_parameters(model, plan.shares, (), embedding=first, head=last)
    kept = kept_precision(model, model.sequence[-1].phases, precision)
    for form, parts in ((precision, ahead), (kept, ends - ahead)):
        for module, count in parts.items():
            stored[form.weights_of(module)] += count
    if first and model.encoder is not None:  # it runs before prefill, by the first layers
        parts = module_parameters(model.encoder_model, plan.shares, embedding=False, head=False)
        stored[kept_precision(model, ("prefill",), precision).weights] += sum(parts.values())
    weights = sum(count * get_format(name).bytes for name, count in stored.items())
    rows, state = _cache(layers.items(), plan, precision)
    return StageMemory(weights, tuple(sorted(rows.items())), state)


def kept_precision(
    model: ModelSpec, phases: tuple[PhaseName, ...], precision: Precision
) -> Precision:
    """Formats of the weights that only some ``phases`` run.

    Of one phase alone they are in the checkpoint of that phase, whichever of the model's
    own two is asked for; formats that the user names hold for all.
    """
    own: dict[PhaseName, Precision] = {
        "prefill": model.precision.prefill or Precision(),
        "decode": model.precision.decode or Precision(),
    }
    if len(set(phases)) > 1 or precision not in own.values():
        return precision
    return own[phases[0]]


def _cache(
    layers: Iterable[tuple[Layer, int]], plan: Parallelism, precision: Precision
) -> tuple[dict[int, float], float]:
    """Bytes of a token by window, and of the states of a sequence, on one chip."""
    rows: dict[int, float] = {}
    state = 0.0
    for layer, count in layers:
        # The dcp chips of a tp group share their heads and have a part of the tokens each.
        cache = layer_cache(layer, plan.tp // plan.dcp, precision.activations)
        for part in cache.each:
            size = count * part.own_bytes(precision) / (plan.dcp * plan.cp)
            if size:
                rows[part.window] = rows.get(part.window, 0.0) + size
        state += count * layer_cache(layer, plan.tp, precision.activations).state_bytes
    return rows, state


def memory_notes(model: ModelSpec, plan: Parallelism, precision: Precision) -> list[str]:
    """What a plan wastes and another would not, one line each.

    Cached rows that stand on several tp chips are read whole by each, so neither memory nor
    the time to read them falls with tp; with context parallelism they do.
    """
    notes = _other_checkpoint(model, plan, precision)
    copies = cache_copies(model, plan.tp) // plan.dcp
    if copies <= 1:
        return notes
    split = plan.model_copy(update={"dcp": plan.dcp * copies})
    now, then = (kv_bytes_per_chip(model, each, precision) for each in (plan, split))
    whole_rows = f"{copies} chips hold each cached row whole ({now:.0f} B per token and chip)"
    return [*notes, f"{whole_rows}; {split.text} splits the tokens over them ({then:.0f} B)"]


def _other_checkpoint(model: ModelSpec, plan: Parallelism, precision: Precision) -> list[str]:
    """The weights of the other phase, where the model has formats of its own for each."""
    both = {"prefill": model.precision.prefill, "decode": model.precision.decode}
    if precision not in both.values():
        return []
    here = weights_bytes_per_chip(model, plan, precision)
    return [
        f"{kind} has a checkpoint of its own, {other.weights}: {_gb(size)} of weights a chip"
        for kind, other in both.items()
        if other is not None and (size := weights_bytes_per_chip(model, plan, other)) != here
    ]


def weights_bytes_per_chip(model: ModelSpec, plan: Parallelism, precision: Precision) -> float:
    """Bytes of weights on the chip that holds most: every parameter in their format."""
    return max(stage.weights_bytes for stage in stage_memories(model, plan, precision))


def kv_bytes_per_chip(model: ModelSpec, plan: Parallelism, precision: Precision) -> float:
    """Bytes of KV of one token on the chip that holds most, while no window is full."""
    return max(stage.row_bytes for stage in stage_memories(model, plan, precision))


def check_fits(
    chip: Chip,
    model: ModelSpec,
    plan: Parallelism,
    precision: Precision,
    tokens: int,
    sequences: int | None = None,
) -> None:
    """Refuse what cannot be held: weights and the KV of ``tokens``, in the whole memory.

    Parameters
    ----------
    tokens : int
        Cached tokens of all sequences of one data-parallel rank together, from 0.
    sequences : int, optional
        How many equal sequences they are of, so that windows bound them and states count;
        as if no window were full unless given.

    Raises
    ------
    InfeasibleError
        Says what is needed, what there is, and by how much it falls short; or the plan
        does not split the model.
    """
    tokens = whole("memory", "tokens", tokens, least=0)
    memory = memory_plan(chip, model, plan, precision, share=1.0)
    for stage in memory.stages:
        kv = tokens * stage.row_bytes
        if sequences is not None:
            kv = sequences * stage.sequence_bytes(-(-tokens // sequences))
        if stage.weights_bytes + kv > memory.capacity_bytes:
            raise _too_little(chip, model, plan, stage, kv, tokens)


def check_phase(
    chip: Chip, model: ModelSpec, plan: Parallelism, precision: Precision, phase: Phase
) -> None:
    """Refuse a step whose weights and caches the whole memory does not hold.

    Raises
    ------
    InfeasibleError
        Says what is needed, what there is, and by how much it falls short.
    """
    memory = memory_plan(chip, model, plan, precision, share=1.0)
    held = [(plan.rank_batch(segment.batch), segment.context) for segment in phase.segments]
    for stage in memory.stages:
        kv = stage.kv_bytes(held)
        if stage.weights_bytes + kv > memory.capacity_bytes:
            tokens = sum(batch * context for batch, context in held)
            raise _too_little(chip, model, plan, stage, kv, tokens)


def _too_little(
    chip: Chip,
    model: ModelSpec,
    plan: Parallelism,
    stage: StageMemory,
    kv: float,
    tokens: int,
) -> InfeasibleError:
    missing = stage.weights_bytes + kv - chip.memory.capacity
    return InfeasibleError(
        f"{model.name} at {plan.text} does not fit {chip.name}: each chip needs "
        f"{_gb(stage.weights_bytes)} of weights and {_gb(kv)} of KV "
        f"({tokens} tokens), and has {_gb(chip.memory.capacity)}: "
        f"{_gb(missing)} too little"
    )


def _gb(size: float) -> str:
    return f"{size / 1e9:.2f} GB"
