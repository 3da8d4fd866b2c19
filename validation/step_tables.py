"""Latency tables beside direct estimates: steps of equal sequences, and of unequal ones.

cases -> a table each -> random steps -> points (reference: the performance model itself)

The model estimates equal sequences only. A step of unequal ones is taken for what goes with its
tokens, and attention to which each of its ``n`` sequences adds a share: an ``n``-th of what
``n`` like it take together. Its longest sequence alone bounds it from below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from chipsim.cluster.latency_build import latency_table
from chipsim.cluster.sampling import StepSampler
from chipsim.cluster.workload_spec import load_workload
from chipsim.ops.phase import Phase
from chipsim.phases import PhaseModel
from chipsim.validation.cases import Point, point

if TYPE_CHECKING:
    from chipsim.cluster.latency_table import LatencyTable

Ints = npt.NDArray[np.int64]

SUITE = "tables"
LENGTHS = "azure-conversation"
"""Workload of the library whose prompts and contexts unequal steps have."""
TOKENS, SEQUENCES, CONTEXT = 8192, 256, 16384
"""Of the largest steps."""
STEPS = 20
"""Of each kind."""
SEED = 0


class TableCase(NamedTuple):
    """A kind of instance."""

    chip: str
    model: str
    plan: str


CASES = (
    TableCase("h100-sxm", "llama-3.1-70b", "tp=4"),
    TableCase("h200-sxm", "gpt-oss-120b", "tp=1"),
    TableCase("h200-sxm", "deepseek-v3", "tp=8"),
)
"""Grouped heads, windows in every other layer, latent rows with experts."""


def table_points(
    execution: str | None = None,
    cases: Sequence[TableCase] = CASES,
    steps: int = STEPS,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[Point]:
    """Seconds of random steps as tables tell them, beside direct estimates.

    Parameters
    ----------
    execution : str, optional
        Execution block; each chip's own unless given.
    cases : sequence of TableCase
    steps : int
        Of each kind and regime: ``equal``; ``ragged``, with lengths of `LENGTHS`; and
        ``one long``, a sequence of `CONTEXT` tokens among those (in decode).
    progress : callable
        Told what is under way: a table takes seconds.

    Raises
    ------
    ChipsimError
        As `latency_table`.
    """
    for case in cases:
        progress(f"{case.model} on {case.chip}, {case.plan}: steps of a table")
        yield from _Judge(case, execution).points(steps)


class _Judge:
    """A table and what says what it should tell."""

    def __init__(self, case: TableCase, execution: str | None) -> None:
        self.case = case
        self.phases = PhaseModel(*case, execution=execution, check_memory=False)
        self.sampler = StepSampler(self.phases)
        self.table: LatencyTable = latency_table(
            *case, execution=execution, most_tokens=TOKENS, most_sequences=SEQUENCES,
            most_context=CONTEXT,
        )  # fmt: skip
        self.random = np.random.default_rng(SEED)
        self.lengths = load_workload(LENGTHS, seed=SEED)

    def points(self, steps: int) -> Iterator[Point]:
        for _ in range(steps):
            yield from self._equal()
            prompts, contexts = self._prompts(), self._contexts()
            yield self._point("prefill", "ragged", prompts, np.zeros(0, np.int64))
            yield self._point("decode", "ragged", prompts[:0], contexts)
            yield self._point("mixed", "ragged", prompts[:1], contexts)
            longest = np.append(contexts[1:], CONTEXT)
            yield self._point("decode", "one long", prompts[:0], longest)

    def _equal(self) -> Iterator[Point]:
        ranks = self.table.ranks
        query = self._up_to(2048)
        batch = self._up_to(max(1, min(64, TOKENS // query)))
        direct = self.phases.estimate(Phase.prefill(ranks * batch, query)).latency_s
        shape = f"{batch} prompts of {query}"
        yield self._told(
            "prefill", "equal", shape, direct, self.table.prefill_s([query] * batch)
        )
        batch, context = self._up_to(SEQUENCES), self._up_to(4096)
        direct = self.phases.estimate(Phase.decode(ranks * batch, context)).latency_s
        shape = f"{batch} at {context}"
        yield self._told(
            "decode", "equal", shape, direct, self.table.decode_s([context] * batch)
        )

    def _up_to(self, most: int) -> int:
        """A whole number from 1, log-uniform."""
        return int(np.exp(self.random.uniform(0.0, np.log(most + 1))))

    def _prompts(self) -> Ints:
        """Prompts of a step, in any order until its budget is full."""
        drawn = self.random.choice(self.lengths.prompt_tokens, 64)
        fit = int((np.cumsum(drawn) <= TOKENS).sum())
        return np.asarray(np.minimum(drawn[: max(1, fit)], TOKENS), np.int64)

    def _contexts(self) -> Ints:
        """Contexts of as many decodes as may be, each somewhere in its output."""
        of = self.random.integers(0, len(self.lengths), max(2, self._up_to(SEQUENCES)))
        done = self.random.random(len(of)) * self.lengths.output_tokens[of]
        contexts = self.lengths.prompt_tokens[of] + done.astype(np.int64) + 1
        return np.asarray(np.minimum(contexts, CONTEXT), np.int64)

    def _point(self, kind: str, regime: str, prompts: Ints, contexts: Ints) -> Point:
        tokens, n = int(prompts.sum()), len(contexts)
        head = float(self.sampler.head([len(prompts) + n])[0, 0])
        if kind == "prefill":
            rest = float(self.sampler.prefill_tokens([tokens])[0, 0]) + head
            found = self.table.prefill_s(prompts.tolist())
        elif kind == "decode":
            rest = float(self.sampler.decode_tokens([n])[0, 0])
            found = self.table.decode_s(contexts.tolist())
        else:
            rest = float(self.sampler.mixed_tokens([tokens + n])[0, 0]) + head
            found = self.table.mixed_s(prompts.tolist(), 0, contexts.tolist())
        direct = rest + shared(self._prompt_s, prompts) + shared(self._context_s, contexts)
        shape = f"{len(prompts)} prompts, {n} decodes, {tokens + int(contexts.sum())} tokens"
        return self._told(kind, regime, shape, direct, found)

    def _prompt_s(self, batch: int, length: int) -> float:
        return float(self.sampler.prefill_sequences([(batch, length, 0)])[0, 0])

    def _context_s(self, batch: int, length: int) -> float:
        return float(sum(p[0, 0] for p in self.sampler.decode_sequences([(batch, length)])))

    def _told(self, kind: str, regime: str, shape: str, direct: float, found: float) -> Point:
        chip = f"{self.case.chip} {self.case.model} {self.case.plan}"
        block = self.phases.performance.execution.name
        return point(
            SUITE, chip, kind, "own", regime, shape, direct, found,
            execution=block, source="the performance model",
        )  # fmt: skip


def shared(seconds: Callable[[int, int], float], lengths: Ints) -> float:
    """Attention of unequal sequences: of each its share of as many like it.

    Parameters
    ----------
    seconds : callable
        Of a number of equal sequences of a length.
    lengths : int64 array
        Empty: 0.
    """
    n = len(lengths)
    if n == 0:
        return 0.0
    each, counts = np.unique(lengths, return_counts=True)
    all_like_it = [seconds(n, length) for length in each.tolist()]
    return max(float(counts @ np.array(all_like_it)) / n, seconds(1, int(lengths.max())))
