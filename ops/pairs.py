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
