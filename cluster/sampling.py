"""Steps of one instance, sampled from the performance model.

model on chips -> steps of equal sequences -> seconds (and joules) of what goes with tokens,
with sequences that emit, and with the lengths of sequences
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from chipsim.cluster.engine.steps import octave_point
from chipsim.ops.graph import SEQUENCE_GROUPS
from chipsim.ops.operators import Attention, LatentAttention
from chipsim.ops.phase import Phase

if TYPE_CHECKING:
    from chipsim.cost.energy import EnergyModel
    from chipsim.estimates import OperatorRow
    from chipsim.phases import PhaseModel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

HEAD = frozenset({"norm_final", "lm_head"})
"""Operators that go with the sequences that emit a token."""

FEW = 64
"""Tokens up to which each number is sampled: every one may wake one expert more."""

ROWS_PER_TILE = 16
"""Products take their rows in multiples of this: latency steps just behind one."""


class StepSampler:
    """Seconds and joules of steps of one data-parallel rank, all ranks alike.

    Parameters
    ----------
    phases : PhaseModel
        Model, chips and plan; memory is not checked here.
    energy : EnergyModel, optional
        Joules of one chip; 0 unless given. What idles is left out: time tells it.

    Notes
    -----
    Every method returns ``(seconds, joules)``; joules are those of all chips of the
    instance. With pipeline stages a prefill step passes them as one part, and a decode
    step as as many parts as keep all stages busy; consecutive prefill steps do not overlap.
    """

    def __init__(self, phases: PhaseModel, energy: EnergyModel | None = None) -> None:
        self.phases, self.energy = phases, energy
        self.ranks = phases.plan.dp
        self.limit = sequence_limit(phases)

    def prefill_tokens(self, tokens: int) -> Floats:
        """What goes with the ``tokens`` of a prefill step alone."""
        rows = self._rows(Phase.prefill(self.ranks, tokens))
        return self._sum(row for row in rows if row.name not in HEAD)

    def mixed_tokens(self, tokens: int) -> Floats:
        """The same in a step of prompts and decodes together."""
        if tokens < 2:
            return self.prefill_tokens(tokens)
        rows = self._rows(Phase.mixed(tokens - 1, 0, self.ranks, 1, batch=self.ranks))
        return self._sum(row for row in rows if row.name not in HEAD)

    def decode_tokens(self, batch: int) -> Floats:
        """A decode step of ``batch`` sequences but for their contexts."""
        return self._sum(self._rows(Phase.decode(self.ranks * batch, 1)))

    def head(self, sequences: int) -> Floats:
        """LM head and its norm for the ``sequences`` that emit."""
        rows = self._rows(Phase.prefill(self.ranks * sequences, 1))
        return self._sum(row for row in rows if row.name in HEAD)

    def prefill_sequences(self, batch: int, query: int, prefix: int) -> Floats:
        """Attention of ``batch`` prompts of ``query`` new tokens after ``prefix``."""
        return self._sum(
            self.phases.sequence_rows(Phase.prefill(self.ranks * batch, query, prefix))
        )

    def decode_sequences(self, batch: int, context: int) -> tuple[Floats, Floats]:
        """Attention of ``batch`` decodes: over the whole context, and within the limit."""
        rows = self.phases.sequence_rows(Phase.decode(self.ranks * batch, context))
        bounded = [row for row in rows if _limit(row)]
        return self._sum(row for row in rows if not _limit(row)), self._sum(bounded)

    def _rows(self, phase: Phase) -> tuple[OperatorRow, ...]:
        rows = self.phases.estimate(phase).rows
        return tuple(row for row in rows if row.group not in SEQUENCE_GROUPS)

    def _sum(self, rows: Iterable[OperatorRow]) -> Floats:
        seconds = joules = 0.0
        for row in rows:
            seconds += row.latency_s
            joules += row.count * self._joules(row)
        return np.array((seconds, joules))

    def _joules(self, row: OperatorRow) -> float:
        if self.energy is None:
            return 0.0
        drawn = self.energy.operator(row.estimate)
        return (drawn.total_j - drawn.parts["idle"]) * self.phases.plan.chips


def sequence_limit(phases: PhaseModel) -> int:
    """The most tokens that bounded attention of the model sees (0: none is bounded).

    Of several windows the largest: a smaller one is full before it.
    """
    if phases.plan.cp > 1:
        return 0  # prompts only
    rows = phases.sequence_rows(Phase.decode(phases.plan.dp, 1))
    return max((_limit(row) for row in rows), default=0)


def _limit(row: OperatorRow) -> int:
    operator = row.estimate.operator
    if isinstance(operator, Attention):
        return operator.window
    return operator.top_k if isinstance(operator, LatentAttention) else 0


def token_grid(most: int) -> Ints:
    """Numbers of tokens to sample: both sides of the steps that whole tiles make.

    All up to 64, every multiple of 16 and the one after it up to 2048, then fewer and fewer.
    """
    ends: set[int] = set(range(1, min(most, FEW) + 1))
    start, step = FEW, ROWS_PER_TILE
    while start < most:
        stop = min(most, start * 2 if step > ROWS_PER_TILE else 2048)
        ends.update(range(start, stop, step))
        ends.update(range(start + 1, stop, step))
        start, step = stop, 2 * step if stop >= 4096 else 4 * ROWS_PER_TILE
    ends.add(most)
    return np.array(sorted(ends), np.int64)


def geometric_grid(most: int, per_octave: int, every: int = 1) -> Ints:
    """Whole numbers from 1 to ``most``: all up to ``every``, then ``per_octave``."""
    count = int(np.ceil(np.log2(max(most, 2)) * per_octave)) + 1
    powers = np.round(2.0 ** (np.arange(count) / per_octave)).astype(np.int64)
    grid = np.concatenate([np.arange(1, min(every, most) + 1), powers, [most]])
    return np.unique(grid[grid <= most])


def query_grid(most: int) -> Ints:
    """Lengths of prompts to sample: both sides of the steps that tiles of 128 rows make."""
    tiles = 128 * np.arange(1, 17)
    grid = np.concatenate([geometric_grid(most, 4), tiles, tiles + 1])
    return np.unique(grid[grid <= most])


def fill(grid: Ints, of: Callable[[int], Floats], most: int) -> Floats:
    """Samples of ``of`` on ``grid`` -> its values at 0 ... ``most``, linear between.

    Returns
    -------
    array (2, most + 1) of float64
        Seconds and joules; 0 at 0.
    """
    samples = np.array([of(int(at)) for at in grid])
    whole = np.arange(most + 1)
    filled = np.stack([np.interp(whole, grid, column) for column in samples.T])
    filled[:, 0] = 0.0
    return filled


def octave_axis(most: int) -> Floats:
    """Points of a context axis up to the first one that is not below ``most``."""
    points = [0.0]
    while points[-1] < most or len(points) < 2:
        points.append(octave_point(len(points)))
    return np.array(points)
