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

PER_OCTAVE = 4
"""Points of a context axis between a power of two and the next."""
_BITS = 52 - 2
_FIRST = (1023 + 2) * PER_OCTAVE - PER_OCTAVE
"""A float's exponent and the first two bits of its fraction number the points from 4.0 on."""


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
        Axes of ``prompts``: at least two points each, growing, then infinity; prefixes
        start with 0.
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
        return float(table[kind, tokens])
    slope = table[kind, last] - table[kind, last - 1] if last else 0.0
    return float(table[kind, last] + max(0.0, slope) * (tokens - last))


@inline
def octave_point(index: int) -> float:
    """Point of a context axis: 0, 1 ... PER_OCTAVE, then PER_OCTAVE to each octave."""
    if index < PER_OCTAVE:
        return float(index)
    return float(np.int64((index + _FIRST) << _BITS).view(np.float64))


@inline
def octave_index(value: float) -> int:
    """The last point of a context axis up to a number from 0 on."""
    if value < PER_OCTAVE:
        return int(value)
    return int((np.float64(value).view(np.int64) >> _BITS) - _FIRST)


@inline
def decode_attention(steps: Steps, kind: int, bounded: int, n: int, context: float) -> float:
    """Attention of ``n`` decodes whose contexts sum to ``context``, seconds."""
    table = steps.contexts
    row = min(n, table.shape[2] - 1)
    last = table.shape[3] - 1
    mean = context / n
    # Beyond the axis the last piece goes on.
    index = min(octave_index(mean), last - 1)
    low, high = octave_point(index), octave_point(index + 1)
    share = (mean - low) / (high - low)
    start, end = table[kind, bounded, row, index], table[kind, bounded, row, index + 1]
    seconds = start + share * (end - start)
    if share > 1.0:  # it does not fall beyond the axis, whatever it did before
        seconds = max(seconds, end)
    return float(seconds * (n / row) if n > row else seconds)


@inline
def _decodes(steps: Steps, kind: int, n: int, context: float, bounded: float) -> float:
    """Attention of decodes of both sorts."""
    seconds = decode_attention(steps, kind, 0, n, context)
    if steps.limit[kind]:
        # Where every context is past the limit, a kernel may still read all of it.
        seen = bounded if bounded < n * steps.limit[kind] else context
        seconds += decode_attention(steps, kind, 1, n, seen)
    return seconds


@inline
def _bracket(axis: Floats, value: float) -> int:
    """Point of a growing axis (infinite behind its end) below a value, not the last one."""
    count = int(np.searchsorted(axis, np.inf))
    below = int(np.searchsorted(axis, value, side="right")) - 1
    return max(0, min(below, count - 2))


@inline
def _between(low: float, high: float, value: float) -> float:
    """How far a value is from one point to the next; beyond the last one it is above 1."""
    return max(0.0, (value - low) / (high - low))


@inline
def _power(first: float, second: float, share: float) -> float:
    """Between two values as a power law is; in a straight line from or to 0."""
    if first <= 0.0 or second <= 0.0:
        return max(0.0, first + share * (second - first))
    return float(first * (second / first) ** share)


@inline
def prompt_attention(
    steps: Steps, kind: int, tokens: float, squares: float, earlier: float
) -> float:
    """Attention of prompts with sums of new tokens, their squares, new x earlier; seconds.

    Straight in the number of prompts and in earlier tokens, a power law in new ones.
    """
    size = squares / tokens
    batches, queries, prefixes = steps.batches[kind], steps.queries[kind], steps.prefixes[kind]
    i, j, k = (
        _bracket(batches, tokens / size),
        _bracket(queries, size),
        _bracket(prefixes, earlier / tokens),
    )
    x = _between(batches[i], batches[i + 1], tokens / size)
    y = _between(math.log(queries[j]), math.log(queries[j + 1]), math.log(size))
    z = _between(prefixes[k], prefixes[k + 1], earlier / tokens)
    table = steps.prompts[kind]
    near = _power(table[i, j, k], table[i, j + 1, k], y)
    near += x * (_power(table[i + 1, j, k], table[i + 1, j + 1, k], y) - near)
    far = _power(table[i, j, k + 1], table[i, j + 1, k + 1], y)
    far += x * (_power(table[i + 1, j, k + 1], table[i + 1, j + 1, k + 1], y) - far)
    return max(0.0, near + z * (far - near))


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
    return at_tokens(steps.decode, kind, n) + _decodes(steps, kind, n, context, bounded)


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
    return (
        at_tokens(steps.mixed, kind, tokens + n)
        + at_tokens(steps.head, kind, emitting + n)
        + prompt_attention(steps, kind, float(tokens), squares, earlier)
        + _decodes(steps, kind, n, context, bounded)
    )
