"""A latency table from the performance model.

model on chips -> samples of equal sequences -> LatencyTable
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from chipsim.cluster.latency_table import LatencyTable, StepArrays
from chipsim.cluster.sampling import (
    StepSampler,
    fill,
    geometric_grid,
    octave_axis,
    query_grid,
    token_grid,
)
from chipsim.errors import ConfigError
from chipsim.memory import kv_bytes_per_chip
from chipsim.ops.checks import whole
from chipsim.ops.phase import Phase
from chipsim.phases import PhaseModel

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.cost.energy import EnergyModel
    from chipsim.execution import Execution
    from chipsim.ops.loads import ExpertLoad
    from chipsim.ops.model import ModelSpec
    from chipsim.ops.plan import Parallelism
    from chipsim.ops.precision import Precision
    from chipsim.performance import PerformanceModel

Steps = Literal["prefill", "decode", "both"]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Sizes(NamedTuple):
    """The largest steps that a table is for."""

    tokens: int
    sequences: int
    context: int


def latency_table(
    chip: Chip | str | PerformanceModel,
    model: ModelSpec | str,
    plan: Parallelism | str | None = None,
    *,
    most_tokens: int = 8192,
    most_sequences: int = 256,
    most_context: int = 32768,
    execution: Execution | str | None = None,
    precision: Precision | str | None = None,
    load: ExpertLoad | str | None = None,
    steps: Steps = "both",
    whole_prompts: bool = False,
    with_energy: bool = False,
) -> LatencyTable:
    """Sample the steps of a model on chips: some thousand steps, a second or two.

    Parameters
    ----------
    most_tokens : int
        Tokens of the largest prefill step of one rank.
    most_sequences : int
        Sequences of the largest decode step of one rank.
    most_context : int
        Tokens of the longest sequence.
    steps : str
        ``"prefill"``, ``"decode"`` or ``"both"``: what the instance runs; the seconds of
        other steps are infinite.
    whole_prompts : bool
        No step computes part of a prompt behind a part that was there before (chunks, a
        cached prefix): attention is sampled without, which is most of the work.
    with_energy : bool
        Joules too; left out where the chip is not described enough.

    The others are those of `chipsim.phases.PhaseModel`.

    Raises
    ------
    InfeasibleError, ConfigError, UnknownNameError
        As `PhaseModel.estimate`, and sizes below 1.

    Examples
    --------
    >>> table = latency_table("spad-h100", "bloom-176b", "tp=8", most_tokens=256,
    ...                       most_sequences=64, most_context=1024)
    >>> round(table.prefill_s([128, 128]), 4), round(table.decode_s([1024] * 64), 4)
    (0.0394, 0.0437)
    """
    sizes = {"tokens": most_tokens, "sequences": most_sequences, "context": most_context}
    for name, size in sizes.items():
        whole("latency_table", f"most_{name}", size)
    phases = PhaseModel(
        chip,
        model,
        plan,
        execution=execution,
        precision=precision,
        load=load,
        check_memory=False,
    )
    if steps not in ("prefill", "decode", "both"):
        raise ConfigError("latency_table", "steps", steps, "prefill, decode, both")
    return _Build(phases, Sizes(**sizes), steps, whole_prompts, with_energy).table()


class _Build:
    """The parts of a table, each a pair of seconds and joules on its grid."""

    def __init__(
        self,
        phases: PhaseModel,
        sizes: Sizes,
        steps: Steps,
        whole_prompts: bool,
        with_energy: bool,
    ) -> None:
        self.sampler = StepSampler(phases, _energy_model(phases.performance.chip, with_energy))
        self.phases = phases
        self.tokens, self.sequences, self.context = tokens, sequences, context = sizes
        self.prefills = steps != "decode"
        self.decodes = steps != "prefill" and phases.plan.cp == 1
        self.cached = _most_cached(phases)
        self.batches = geometric_grid(max(2, min(sequences, tokens)), 4, 8)
        self.queries = query_grid(max(2, tokens))
        self.prefixes = np.concatenate([[0], geometric_grid(max(16, context), 2)[6:]])
        if whole_prompts:
            self.prefixes = np.array([0])

    def table(self) -> LatencyTable:
        """Sample everything."""
        parts = {
            "prefill": self._prefill(),
            "mixed": self._mixed(),
            "decode": self._decode(),
            "head": self._head(),
            "prompts": self._prompts(),
            "contexts": self._contexts(),
        }
        plan = self.phases.plan
        seconds, joules = (
            StepArrays(**{name: part[row].copy() for name, part in parts.items()})
            for row in range(2)
        )
        return LatencyTable(
            name=f"{self.phases.performance.chip.name} {self.phases.model.name} {plan.text}",
            ranks=plan.dp,
            chips=plan.chips,
            batches=self.batches.astype(np.float64),
            queries=self.queries.astype(np.float64),
            prefixes=_two_or_more(self.prefixes.astype(np.float64)),
            limit=self.sampler.limit,
            seconds=seconds,
            joules=joules if self.sampler.energy is not None else None,
        )

    def _prefill(self) -> Floats:
        if not self.prefills:
            return np.full((2, self.tokens + 1), np.inf)
        return fill(token_grid(self.tokens), self.sampler.prefill_tokens, self.tokens)

    def _mixed(self) -> Floats:
        """As prefill, unless decodes run other layers, or in other formats."""
        most = self.tokens + self.sequences
        if not (self.prefills and self.decodes):
            return np.full((2, most + 1), np.inf)
        alike = self._phases_alike()
        of = self.sampler.prefill_tokens if alike else self.sampler.mixed_tokens
        return fill(token_grid(most), of, most)

    def _phases_alike(self) -> bool:
        prefill, mixed = Phase.prefill(1, 1), Phase.mixed(1, 0, 1, 1)
        formats = self.phases.precision_of(prefill) == self.phases.precision_of(mixed)
        return formats and all(
            {"prefill", "decode"} <= set(group.layer.phases)
            for group in self.phases.model.groups
        )

    def _decode(self) -> Floats:
        if not self.decodes:
            return np.full((2, self.sequences + 1), np.inf)
        return fill(token_grid(self.sequences), self.sampler.decode_tokens, self.sequences)

    def _head(self) -> Floats:
        return fill(token_grid(self.sequences), self.sampler.head, self.sequences)

    def _prompts(self) -> Floats:
        """Attention of prompts where a step can come near it; beyond, in proportion."""
        shape = (2, len(self.batches), len(self.queries), len(self.prefixes))
        if not self.prefills:
            return np.full((*shape[:3], max(2, shape[3])), np.inf)
        places = list(np.ndindex(shape[1:]))
        sampled = [place for place in places if self._prompt_reached(*place)]
        found = np.zeros(shape)
        found[(slice(None), *np.transpose(sampled))] = self.sampler.prefill_sequences(
            (int(self.batches[i]), int(self.queries[j]), int(self.prefixes[k]))
            for i, j, k in sampled
        )
        for i, j, k in sorted(set(places) - set(sampled)):
            if self._too_many(i, j):
                fewer, prompts = self.batches[i - 1], self.batches[i]
                found[:, i, j, k] = found[:, i - 1, j, k] * prompts / fewer
            else:
                found[:, i, j, k] = 2.0 * found[:, i, j, k - 1] - found[:, i, j, k - 2]
        return np.repeat(found, 2, axis=3) if len(self.prefixes) == 1 else found

    def _prompt_reached(self, i: int, j: int, k: int) -> bool:
        """Whether a step can come near prompts of these points of the axes."""
        if self._too_many(i, j):
            return False
        longest = self.prefixes[k - 1] + self.queries[max(0, j - 1)]
        return not (k > 1 and longest > self.context)

    def _too_many(self, i: int, j: int) -> bool:
        """Whether fewer and shorter prompts are more tokens already than a step has."""
        return bool(i and self.batches[i - 1] * self.queries[max(0, j - 1)] > self.tokens)

    def _contexts(self) -> Floats:
        """Attention of decodes: quantity, whole or bounded, sequences, points."""
        points = octave_axis(self.context)
        if not self.decodes:
            return np.full((2, 2, self.sequences + 1, len(points)), np.inf)
        rows = geometric_grid(self.sequences, 8, 64)
        near = np.ones((len(rows), len(points)), bool)
        near[1:, 1:] = np.outer(rows[:-1], points[:-1]) <= self.cached
        places = np.argwhere(near)
        whole, bounded = self.sampler.decode_sequences(
            (int(rows[i]), max(1, int(points[j]))) for i, j in places
        )
        sampled = np.zeros((len(rows), len(points), 2, 2))
        sampled[near] = np.stack([whole.T, bounded.T], axis=1)
        for i, j in np.argwhere(~near):
            sampled[i, j] = sampled[i - 1, j] * rows[i] / rows[i - 1]
        return _over_rows(rows, sampled, self.sequences)


def _two_or_more(axis: Floats) -> Floats:
    """An axis as the engine reads it: a second point, of the same value, where there is one."""
    return np.append(axis, axis[-1] + 1.0) if len(axis) == 1 else axis


def _over_rows(rows: Ints, sampled: Floats, most: int) -> Floats:
    """(rows, points, whole or bounded, quantity) -> every number of sequences, in order."""
    whole = np.arange(most + 1)
    upper = np.clip(np.searchsorted(rows, whole), 1, max(1, len(rows) - 1))
    upper = np.minimum(upper, len(rows) - 1)
    lower = np.maximum(upper - 1, 0)
    width = np.maximum(rows[upper] - rows[lower], 1)
    share = ((whole - rows[lower]) / width)[:, None, None, None]
    filled = sampled[lower] * (1.0 - share) + sampled[upper] * share
    filled[0] = 0.0
    return np.ascontiguousarray(filled.transpose(3, 2, 0, 1))


def _energy_model(chip: Chip, wanted: bool) -> EnergyModel | None:
    """What says joules; None where they are not wanted, or the chip is not described."""
    if not wanted:
        return None
    from chipsim.cost.energy import EnergyModel

    try:
        return EnergyModel(chip)
    except ConfigError:
        return None


def _most_cached(phases: PhaseModel) -> float:
    """Tokens that the whole memory of a rank could cache."""
    precision = phases.precision_of(Phase.decode(1, 1))
    each = kv_bytes_per_chip(phases.model, phases.plan, precision)
    return phases.performance.chip.memory.capacity / each if each else np.inf
