"""Whether a step may be shorter for what else is in it: what a request alone proves.

Tables know sums and means: beside short contexts a long one is read as two of middling length,
which may take less than the long one alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from chipsim.cluster.engine.steps import (
    Steps,
    decode_seconds,
    mixed_seconds,
    octave_point,
    prefill_seconds,
)
from chipsim.cluster.latency_table import stack_tables
from chipsim.kernels.jit import kernel

if TYPE_CHECKING:
    from chipsim.cluster.latency_table import LatencyTable


def company_share(table: LatencyTable, role: Literal["prefill", "decode", "mixed"]) -> float:
    """Least time of a step beside the shortest others, over that of the same alone; at most 1.

    Parameters
    ----------
    role : str
        What an instance does: steps of the other phase, and of both, it never has.

    Notes
    -----
    Over whole contexts it is exact: both times are straight between the points of either.
    """
    steps, share = stack_tables([table]), 1.0
    if role != "prefill":
        share = min(share, _decoding(steps, role == "mixed"))
    if role == "mixed":
        share = min(share, _prompts(steps))
    return share


@kernel
def _decoding(steps: Steps, mixed: bool) -> float:
    """Of a decode, beside decodes of one token of context, or a prompt of one token too."""
    least, limit = 1.0, float(steps.limit[0])
    points = steps.contexts.shape[3]
    end = octave_point(points - 1)
    for n in range(1, steps.decode.shape[1]):
        for index in range(1, points):
            point = octave_point(index)
            for context in (point, n * point - (n - 1)):
                if context > end:
                    continue
                seen = min(context, limit)
                alone = decode_seconds(steps, 0, 1, context, seen)
                whole, bounded = context + n - 1, seen + (n - 1) * min(1.0, limit)
                beside = decode_seconds(steps, 0, n, whole, bounded)
                if mixed:
                    more = mixed_seconds(steps, 0, 1, 1.0, 0.0, 0, n, whole, bounded)
                    beside = min(beside, more)
                if beside < least * alone:
                    least = beside / alone
    return least


@kernel
def _prompts(steps: Steps) -> float:
    """Of a prompt, beside a decode of one token of context."""
    least, seen = 1.0, float(min(1, steps.limit[0]))
    for tokens in range(1, steps.prefill.shape[1]):
        square = float(tokens) ** 2
        alone = prefill_seconds(steps, 0, tokens, square, 0.0, 1)
        beside = mixed_seconds(steps, 0, tokens, square, 0.0, 1, 1, 1.0, seen)
        if beside < least * alone:
            least = beside / alone
    return least
