"""Latency tables: what the engine knows of chips.

    LatencyTable (one kind of instance) -> Steps (arrays of all kinds, as the engine reads them)

A table comes from the performance model (`chipsim.cluster.latency_build.latency_table`), or
from measured steps (`chipsim.cluster.measured.measured_table`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chipsim.cluster.alone import alone_seconds
from chipsim.cluster.engine.steps import (
    Steps,
    decode_seconds,
    mixed_seconds,
    prefill_seconds,
)
from chipsim.errors import ConfigError

Floats = npt.NDArray[np.float64]


PARTS = ("prefill", "mixed", "decode", "head", "prompts", "contexts")
"""Arrays of a table: the fields of `StepArrays`."""


@dataclass(frozen=True, eq=False)
class StepArrays:
    """One quantity (seconds, or joules) of the steps of one kind of instance.

    Attributes
    ----------
    prefill, mixed : array (tokens + 1)
        What goes with the tokens of a step alone, without and beside decodes.
    decode : array (sequences + 1)
        The same of a decode step, LM head included.
    head : array (sequences + 1)
        What goes with the sequences that emit a token.
    prompts : array (batches, queries, prefixes)
        Attention of equal prompts.
    contexts : array (2, sequences + 1, points)
        Attention of decodes: over whole contexts, and within the limit.
    """

    prefill: Floats
    mixed: Floats
    decode: Floats
    head: Floats
    prompts: Floats
    contexts: Floats


@dataclass(frozen=True, eq=False)
class LatencyTable:
    """How long steps of an instance take, and the joules they draw.

    All numbers are those of one data-parallel rank whose fellows do the same.

    Attributes
    ----------
    name : str
        Chip, model, plan and precision, or the file of the measured steps.
    ranks, chips : int
        Data-parallel ranks that step together, and chips of all of them.
    batches, queries, prefixes : array
        Axes of the attention of prompts.
    limit : int
        The most tokens that bounded attention sees (0: none is).
    seconds : StepArrays
    joules : StepArrays or None
        Joules of all chips, without what idles; None where they are not known.
    """

    name: str
    ranks: int
    chips: int
    batches: Floats
    queries: Floats
    prefixes: Floats
    limit: int
    seconds: StepArrays
    joules: StepArrays | None = None

    @property
    def most_tokens(self) -> int:
        """Tokens of a prefill step up to which the table was sampled."""
        return len(self.seconds.prefill) - 1

    @property
    def can_prefill(self) -> bool:
        """Whether prefill steps were sampled."""
        return bool(np.isfinite(self.seconds.prefill).all())

    @property
    def can_decode(self) -> bool:
        """Whether decode steps were sampled; a plan that splits prompts (``cp``) has none."""
        return bool(np.isfinite(self.seconds.decode).all())

    @property
    def most_sequences(self) -> int:
        """Sequences of a decode step up to which the table was sampled."""
        return len(self.seconds.decode) - 1

    def prefill_s(self, new: Sequence[int], earlier: Sequence[int] | int = 0) -> float:
        """Seconds of a prefill step of prompts that all end in it.

        Parameters
        ----------
        new : sequence of int
            New tokens of each prompt.
        earlier : sequence of int, or int
            Cached or earlier tokens of each.
        """
        tokens, squares, crossed = prompt_sums(new, earlier)
        return float(prefill_seconds(self._steps, 0, tokens, squares, crossed, len(new)))

    def decode_s(self, contexts: Sequence[int]) -> float:
        """Seconds of a decode step of sequences at so many tokens, the new one included."""
        return float(decode_seconds(self._steps, 0, *self._decode_sums(contexts)))

    def mixed_s(
        self,
        new: Sequence[int],
        earlier: Sequence[int] | int,
        contexts: Sequence[int],
        ending: int | None = None,
    ) -> float:
        """Seconds of a step of prompts beside decodes; ``ending`` prompts (all) end in it."""
        tokens, squares, crossed = prompt_sums(new, earlier)
        ending = len(new) if ending is None else ending
        decodes = self._decode_sums(contexts)
        return float(mixed_seconds(self._steps, 0, tokens, squares, crossed, ending, *decodes))

    def alone_s(self, prompts: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Seconds of prefill of each prompt alone, and of a decode step right behind it."""
        return alone_seconds(self._steps, 0, np.asarray(prompts, np.int64))

    def _decode_sums(self, contexts: Sequence[int]) -> tuple[int, float, float]:
        tokens = np.asarray(contexts, np.float64)
        if not len(tokens) or tokens.min() < 1:
            raise ConfigError("decode", "contexts", contexts, "whole numbers from 1")
        bounded = np.minimum(tokens, self.limit).sum() if self.limit else 0.0
        return len(tokens), float(tokens.sum()), float(bounded)

    @functools.cached_property
    def _steps(self) -> Steps:
        return stack_tables([self])


def prompt_sums(new: Sequence[int], earlier: Sequence[int] | int) -> tuple[int, float, float]:
    """Of prompts: new tokens, their squares, and new x earlier tokens, summed."""
    tokens = np.asarray(new, np.float64)
    before = np.broadcast_to(np.asarray(earlier, np.float64), tokens.shape)
    if not len(tokens) or tokens.min() < 1 or before.min() < 0:
        raise ConfigError("prefill", "new", new, "whole numbers from 1, earlier ones from 0")
    return int(tokens.sum()), float(tokens @ tokens), float(tokens @ before)


def stack_tables(tables: Sequence[LatencyTable]) -> Steps:
    """Tables as the engine reads them: one kind of instance each, filled up to one shape.

    Raises
    ------
    ConfigError
        No table.
    """
    return _stack(tables, [table.seconds for table in tables])


def stack_joules(tables: Sequence[LatencyTable]) -> Steps | None:
    """Joules of one rank's steps, likewise; None unless all tables know them."""
    known = [table.joules for table in tables if table.joules is not None]
    if len(known) < len(tables):
        return None
    each = [
        StepArrays(**{part: getattr(of, part) / table.ranks for part in PARTS})
        for table, of in zip(tables, known, strict=True)
    ]
    return _stack(tables, each)


def _stack(tables: Sequence[LatencyTable], of: Sequence[StepArrays]) -> Steps:
    if not tables:
        raise ConfigError("cluster", "tables", 0, "at least one")
    arrays = {part: _alike([getattr(each, part) for each in of]) for part in PARTS}
    axes = {
        axis: _side_by_side([getattr(table, axis) for table in tables])
        for axis in ("batches", "queries", "prefixes")
    }
    return Steps(**arrays, **axes, limit=np.array([t.limit for t in tables], np.int64))


def _alike(arrays: list[Floats]) -> Floats:
    """Arrays side by side; a shorter one goes on as its last piece does."""
    shape = [max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True)]
    return np.stack([_longer(array, shape) for array in arrays])


def _longer(array: Floats, shape: Sequence[int]) -> Floats:
    for axis, size in enumerate(shape):
        missing = size - array.shape[axis]
        if missing:
            last, before = np.take(array, [-1], axis), np.take(array, [-2], axis)
            slope = np.subtract(last, before, where=np.isfinite(last), out=np.zeros_like(last))
            steps = np.arange(1.0, missing + 1.0)
            steps = steps.reshape([-1 if a == axis else 1 for a in range(array.ndim)])
            array = np.concatenate([array, last + steps * slope], axis)
    return np.ascontiguousarray(array)


def _side_by_side(axes: list[Floats]) -> Floats:
    """Axes filled up with infinity."""
    longest = max(len(axis) for axis in axes)
    rows = [np.pad(axis, (0, longest - len(axis)), constant_values=np.inf) for axis in axes]
    return np.stack(rows)
