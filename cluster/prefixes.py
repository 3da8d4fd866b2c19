"""Which tokens of a workload's prompts are alike: chains of block ids, for the engine.

Workload (block ids, or turns) -> `Chains`: ids of whole blocks of prompt and output

An id of a chain stands for its block and all before it, whatever the trace's own ids mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from chipsim.cluster.workload import Workload

    Whole = NDArray[np.int64]

TURN_BLOCK = 512
"""Tokens of a block of turns whose trace names no blocks."""


class Chains(NamedTuple):
    """Blocks of each request's prompt, and of its output where a later prompt goes on from it.

    Attributes
    ----------
    start : (n + 1,) int64
        Request i has the ids from ``start[i]`` up to ``start[i + 1]``.
    ids : (m,) int64
        From 0; equal ids: equal tokens up to the end of the block.
    block : int
        Tokens of a block; whole ones only.
    """

    start: Whole
    ids: Whole
    block: int

    @classmethod
    def none(cls, requests: int) -> Chains:
        """No prompt has anything in common with another, as far as is known."""
        return cls(np.zeros(requests + 1, np.int64), np.empty(0, np.int64), TURN_BLOCK)


def chains(workload: Workload) -> Chains:
    """What may be found again of a workload's requests.

    A turn's prompt is its parent's prompt and output and what is new, if it is as long as
    these and its ids, if it has any, begin as the parent's do. Then the parent's chain goes
    on over its output. Turns whose trace names no blocks get ids by conversation and place.
    """
    if len(workload.block_ids):
        size = workload.block_tokens
        counts = np.minimum(np.diff(workload.block_offsets), workload.prompt_tokens // size)
        start, ids = _first(workload.block_offsets[:-1], counts, workload.block_ids)
    elif workload.closed_loop:
        size = TURN_BLOCK
        counts = workload.prompt_tokens // size
        start = np.append(0, np.cumsum(counts))
        place = np.arange(start[-1]) - np.repeat(start[:-1], counts)
        ids = np.repeat(_conversation(workload), counts) * (int(counts.max()) + 1) + place
    else:
        return Chains.none(len(workload))
    return Chains(*_over_output(workload, start, _by_prefix(start, ids), size), size)


def _first(begin: Whole, counts: Whole, values: Whole) -> tuple[Whole, Whole]:
    """So many values of each row, from where the row begins."""
    start = np.append(0, np.cumsum(counts))
    return start, values[np.arange(start[-1]) + np.repeat(begin - start[:-1], counts)]


def _grows(workload: Workload) -> NDArray[np.bool_]:
    """Which requests' prompts are so long that they can hold all of the turn before."""
    before = workload.prompt_tokens + workload.output_tokens
    grows: NDArray[np.bool_] = workload.prompt_tokens >= before[workload.parent]
    return grows & (workload.parent >= 0)


def _conversation(workload: Workload) -> Whole:
    """First turn of each request's conversation: those whose prompts grow from turn to turn."""
    first = np.where(_grows(workload), workload.parent, np.arange(len(workload)))
    while (first[first] != first).any():
        first = first[first]
    return first


def _by_prefix(start: Whole, ids: Whole) -> Whole:
    """Ids counted from 0, each one's name made of itself and of all before it."""
    counts, named = np.diff(start), np.empty_like(ids)
    plain = np.unique(ids, return_inverse=True)[1].astype(np.int64)
    base = int(plain.max(initial=0)) + 1
    before, used, rows = np.zeros(len(counts), np.int64), 0, np.flatnonzero(counts)
    place = 0
    while len(rows):
        at = start[rows] + place
        found, inverse = np.unique(before[rows] * base + plain[at], return_inverse=True)
        named[at] = used + inverse
        before[rows] = named[at] + 1
        used += len(found)
        place += 1
        rows = rows[counts[rows] > place]
    return named


def _over_output(
    workload: Workload, start: Whole, ids: Whole, size: int
) -> tuple[Whole, Whole]:
    """Chains that go on where the next turn's prompt holds the output too."""
    counts, of = np.diff(start), np.arange(len(workload))
    turns = np.flatnonzero(_grows(workload))
    parent = workload.parent[turns]
    total = workload.prompt_tokens[parent] + workload.output_tokens[parent]
    last = start[parent] + counts[parent] - 1
    # Ids stand for all before them: where the last one is the same, all are.
    alike, some = counts[turns] >= counts[parent], counts[parent] > 0
    both = some & alike
    there = start[turns] + counts[parent] - 1
    alike[both] = ids[there[both]] == ids[last[both]]
    turns, parent, total = turns[alike], parent[alike], total[alike]
    of[parent] = turns
    longer = counts.copy()
    longer[parent] = np.minimum(counts[turns], total // size)
    return _first(start[of], longer, ids)
