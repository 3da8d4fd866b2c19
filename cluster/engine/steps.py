"""How long a step takes: latency tables as arrays, read in constant time.

A step of one rank is known by its features alone:

    prompts:  number b, sum of new tokens Q, of their squares QQ, of new x earlier tokens QP
    decodes:  number n, sum of contexts C, of contexts up to the limit L

    step = tokens(Q + n) + head(sequences that emit) + attention of prompts + of decodes

Equal prompts are read exactly; unequal ones as Q^2 / QQ prompts of QQ / Q tokens after
QP / Q earlier ones, the means that a token sees.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from chipsim.kernels.jit import inline

Floats = npt.NDArray[np.float64]

PER_OCTAVE = 8
"""Points of a context axis between a power of two and the next."""


class Steps(NamedTuple):
    """Latency tables of all kinds of instances; the first axis of every array is the kind.

    Attributes
    ----------
    prefill, mixed : array (kinds, tokens + 1)
        Seconds of all that goes with tokens alone, of prompts only, and beside decodes.
    decode : array (kinds, sequences + 1)
        The same of decodes alone, head included.
    head : array (kinds, sequences + 1)
        Seconds of what goes with the sequences that emit a token.
    batches, queries, prefixes : array (kinds, points)
        Axes of ``prompts``, growing; prefixes start with 0. Filled up with infinity.
    prompts : array (kinds, batches, queries, prefixes)
        Attention of equal prompts, seconds.
    contexts : array (kinds, 2, sequences + 1, points)
        Attention of decodes over whole contexts, and within the limit, seconds;
        at mean contexts of `octave_point`.
    limit : array (kinds)
        The most tokens that bounded attention sees (0: none is).
    """

    prefill: Floats
    mixed: Floats
    decode: Floats
    head: Floats
    batches: Floats
    queries: Floats
    prefixes: Floats
    prompts: Floats
    contexts: Floats
    limit: npt.NDArray[np.int64]


@inline
def at_tokens(table: Floats, kind: int, tokens: int) -> float:
    """A table over whole numbers; beyond its end it goes on as its last piece does."""
    last = table.shape[1] - 1
    if tokens <= last:
        return table[kind, tokens]
    slope = table[kind, last] - table[kind, last - 1] if last else 0.0
    return table[kind, last] + max(0.0, slope) * (tokens - last)


@inline
def octave_point(index: int) -> float:
    """Point of a context axis: 0, 1 ... PER_OCTAVE, then PER_OCTAVE to each octave."""
    octave = index // PER_OCTAVE
    if octave == 0:
        return float(index)
    return math.ldexp(PER_OCTAVE + index % PER_OCTAVE, octave - 1)


@inline
def octave_place(value: float) -> float:
    """Place of a number from 0 on a context axis: index and, behind the point, the share."""
    if value < PER_OCTAVE:
        return value
    mantissa, exponent = math.frexp(value / PER_OCTAVE)  # mantissa: 0.5 ... 1
    return PER_OCTAVE * (exponent + 2.0 * mantissa - 1.0)


@inline
def decode_attention(steps: Steps, kind: int, bounded: int, n: int, context: float) -> float:
    """Attention of ``n`` decodes whose contexts sum to ``context``, seconds."""
    table = steps.contexts
    row = min(n, table.shape[2] - 1)
    last = table.shape[3] - 1
    place = octave_place(context / n)
    # Beyond the axis the last piece goes on.
    index = min(int(place), last - 1)
    mean = context / n
    low, high = octave_point(index), octave_point(index + 1)
    share = (mean - low) / (high - low)
    start, end = table[kind, bounded, row, index], table[kind, bounded, row, index + 1]
    seconds = start + share * (end - start)
    return seconds * (n / row) if n > row else seconds


@inline
def _bracket(axis: Floats, value: float) -> tuple[int, float]:
    """Point of a growing axis below a value, and its share of the way to the next, in logs."""
    count = np.searchsorted(axis, np.inf)
    if count < 2:
        return 0, 0.0
    index = min(max(int(np.searchsorted(axis, value, side="right")) - 1, 0), count - 2)
    low, high = axis[index] + 1.0, axis[index + 1] + 1.0
    return index, math.log((value + 1.0) / low) / math.log(high / low)


@inline
def prompt_attention(
    steps: Steps, kind: int, tokens: float, squares: float, earlier: float
) -> float:
    """Attention of prompts with sums of new tokens, their squares, new x earlier; seconds."""
    size = squares / tokens
    i, x = _bracket(steps.batches[kind], tokens / size)
    j, y = _bracket(steps.queries[kind], size)
    k, z = _bracket(steps.prefixes[kind], earlier / tokens)
    table = steps.prompts[kind]
    seconds = 0.0
    for di in range(2):
        for dj in range(2):
            for dk in range(2):
                share = (x if di else 1 - x) * (y if dj else 1 - y) * (z if dk else 1 - z)
                if share != 0.0:
                    i_, j_, k_ = i + di, j + dj, k + dk
                    seconds += share * math.log(table[i_, j_, k_])
    return math.exp(seconds)


@inline
def prefill_seconds(
    steps: Steps, kind: int, tokens: int, squares: float, earlier: float, emitting: int
) -> float:
    """A step of prompts alone."""
    return (
        at_tokens(steps.prefill, kind, tokens)
        + at_tokens(steps.head, kind, emitting)
        + prompt_attention(steps, kind, float(tokens), squares, earlier)
    )


@inline
def decode_seconds(steps: Steps, kind: int, n: int, context: float, bounded: float) -> float:
    """A step of ``n`` decodes; ``bounded``: the sum of contexts up to the limit."""
    seconds = at_tokens(steps.decode, kind, n) + decode_attention(steps, kind, 0, n, context)
    if steps.limit[kind]:
        seconds += decode_attention(steps, kind, 1, n, bounded)
    return seconds


@inline
def mixed_seconds(
    steps: Steps,
    kind: int,
    tokens: int,
    squares: float,
    earlier: float,
    emitting: int,
    n: int,
    context: float,
    bounded: float,
) -> float:
    """A step of prompts beside ``n`` decodes: one read of the weights, attention added.

    ``emitting`` counts the prompts that end in the step; every decode emits.
    """
    seconds = (
        at_tokens(steps.mixed, kind, tokens + n)
        + at_tokens(steps.head, kind, emitting + n)
        + prompt_attention(steps, kind, float(tokens), squares, earlier)
        + decode_attention(steps, kind, 0, n, context)
    )
    if steps.limit[kind]:
        seconds += decode_attention(steps, kind, 1, n, bounded)
    return seconds
