"""How many tokens queries see: the one count that all attention rests on."""

from __future__ import annotations


def attention_pairs(query: int, context: int, causal: bool = True, window: int = 0) -> int:
    """Pairs (query, seen token) of the last ``query`` of ``context`` tokens.

    A chunk of c tokens after p gives c p + c (c + 1) / 2, so chunks add up to the
    whole. With a window, queries beyond the first ``window`` tokens see ``window``.
    """
    if not causal:
        return query * context
    before = context - query
    growing = min(query, max(0, window - before)) if window else query
    return growing * before + growing * (growing + 1) // 2 + (query - growing) * window


def strided_pairs(query: int, context: int, stride: int, most: int = 0) -> int:
    """Pairs (query, row) where a row stands for ``stride`` tokens that are all past.

    The token at position n (from 1) sees ``n // stride`` rows, ``most`` at most (0: all).
    """

    def up_to(tokens: int) -> int:
        growing = min(tokens, most * stride) if most else tokens
        full = growing // stride
        rows = stride * full * (full - 1) // 2 + full * (growing - full * stride + 1)
        return rows + (tokens - growing) * most

    return up_to(context) - up_to(context - query)
