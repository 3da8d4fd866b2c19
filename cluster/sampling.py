"""Steps of one instance, sampled from the performance model.

model on chips -> steps of equal sequences -> seconds (and joules) of what goes with tokens,
with sequences that emit, and with the lengths of sequences
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from chipsim.cluster.engine.steps import octave_point
from chipsim.ops.operators import Attention, LatentAttention
from chipsim.ops.phase import Phase

if TYPE_CHECKING:
    from chipsim.cost.energy import EnergyModel
    from chipsim.estimates import Estimate
    from chipsim.ops.graph import Nodes
    from chipsim.ops.operators import Operator
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
    Every method takes many steps and returns an array (2, steps) of seconds and joules;
    joules are those of all chips of the instance. With pipeline stages a prefill step passes
    them as one part, and a decode step as as many parts as keep all stages busy; consecutive
    prefill steps do not overlap.
    """

    def __init__(self, phases: PhaseModel, energy: EnergyModel | None = None) -> None:
        self.phases, self.energy = phases, energy
        self.ranks = phases.plan.dp
        self.limit = sequence_limit(phases)
        self._prefills: dict[int, Floats] = {}

    def prefill_tokens(self, tokens: Iterable[int]) -> Floats:
        """What goes with the tokens of a prefill step alone; remembered."""
        wanted = list(tokens)
        fresh = sorted({*wanted} - self._prefills.keys())
        found = self._tokens([Phase.prefill(self.ranks, each) for each in fresh], _body)
        self._prefills |= zip(fresh, found.T, strict=True)
        return np.stack([self._prefills[each] for each in wanted], axis=1)

    def mixed_tokens(self, tokens: Iterable[int]) -> Floats:
        """The same in a step of prompts and decodes together."""
        ranks = self.ranks
        steps = [
            Phase.mixed(each - 1, 0, ranks, 1, batch=ranks)
            if each > 1
            else Phase.prefill(ranks, each)
            for each in tokens
        ]
        return self._tokens(steps, _body)

    def decode_tokens(self, batches: Iterable[int]) -> Floats:
        """A decode step of a batch of sequences but for their contexts."""
        return self._tokens([Phase.decode(self.ranks * each, 1) for each in batches], _all)

    def head(self, sequences: Iterable[int]) -> Floats:
        """LM head and its norm for the sequences that emit."""
        steps = [Phase.prefill(self.ranks * each, 1) for each in sequences]
        return self._tokens(steps, _head)

    def prefill_sequences(self, prompts: Iterable[tuple[int, int, int]]) -> Floats:
        """Attention of equal prompts: how many, their new tokens, and those before."""
        forms = [
            self.phases.sequence_forms(Phase.prefill(self.ranks * batch, query, prefix))
            for batch, query, prefix in prompts
        ]
        if not forms:
            return np.empty((2, 0))
        each = np.stack([self._sums(nodes) for nodes in zip(*forms, strict=True)])
        fastest = each[:, 0].argmin(axis=0)
        return np.ascontiguousarray(each[fastest, :, np.arange(each.shape[2])].T)

    def decode_sequences(self, steps: Iterable[tuple[int, int]]) -> tuple[Floats, Floats]:
        """Attention of batches of a context: over the whole of it, and within the limit."""
        nodes = [
            self.phases.sequence_forms(Phase.decode(self.ranks * batch, context))[0]
            for batch, context in steps
        ]
        whole, bounded = (
            [{n: v for n, v in each.items() if bool(_limit(v["operator"])) is of}
             for each in nodes]
            for of in (False, True)
        )  # fmt: skip
        return self._sums(whole), self._sums(bounded)

    def _tokens(self, steps: Sequence[Phase], wanted: Callable[[str], bool]) -> Floats:
        return self._sums(
            [
                {name: node for name, node in nodes.items() if wanted(name)}
                for nodes in map(self.phases.token_nodes, steps)
            ]
        )

    def _sums(self, steps: Sequence[Nodes]) -> Floats:
        """Seconds and joules of the nodes of each step, in their order."""
        sums = np.zeros((2, len(steps)))
        nodes = [node for step in steps for node in step.values()]
        if not nodes:
            return sums
        of = np.repeat(np.arange(len(steps)), [len(step) for step in steps])
        counts = np.array([node["count"] for node in nodes], np.float64)
        operators = [node["operator"] for node in nodes]
        model = self.phases.performance
        sums[0] = np.bincount(of, counts * model.latencies(operators), len(steps))
        if self.energy is not None:
            joules = np.array([self._joules(model.estimate(each)) for each in operators])
            sums[1] = np.bincount(of, counts * joules, len(steps))
        return sums

    def _joules(self, estimate: Estimate) -> float:
        if self.energy is None:
            return 0.0
        drawn = self.energy.operator(estimate)
        return (drawn.total_j - drawn.parts["idle"]) * self.phases.plan.chips


def _head(name: str) -> bool:
    return name in HEAD


def _body(name: str) -> bool:
    return name not in HEAD


def _all(name: str) -> bool:  # noqa: ARG001 - as `_body`
    return True


def sequence_limit(phases: PhaseModel) -> int:
    """The most tokens that bounded attention of the model sees (0: none is bounded).

    Of several windows the largest: a smaller one is full before it.
    """
    if phases.plan.cp > 1:
        return 0  # prompts only
    rows = phases.sequence_rows(Phase.decode(phases.plan.dp, 1))
    return max((_limit(row.estimate.operator) for row in rows), default=0)


def _limit(operator: Operator) -> int:
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


def fill(grid: Ints, of: Callable[[Iterable[int]], Floats], most: int) -> Floats:
    """Samples of ``of`` on ``grid`` -> its values at 0 ... ``most``, linear between.

    Returns
    -------
    array (2, most + 1) of float64
        Seconds and joules; 0 at 0.
    """
    whole = np.arange(most + 1)
    filled = np.stack([np.interp(whole, grid, row) for row in of(grid.tolist())])
    filled[:, 0] = 0.0
    return filled


def octave_axis(most: int) -> Floats:
    """Points of a context axis up to the first one that is not below ``most``."""
    points = [0.0]
    while points[-1] < most or len(points) < 2:
        points.append(octave_point(len(points)))
    return np.array(points)
