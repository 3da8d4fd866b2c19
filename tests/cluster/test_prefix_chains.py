"""Ids of blocks from what traces say of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from chipsim.cluster.prefixes import chains
from chipsim.cluster.workload import Workload


def workload(**fields: Any) -> Workload:
    given = {"arrival_s": [0.0, 1.0, 2.0], "prompt_tokens": [9, 20, 14]}
    return Workload(**{**given, "output_tokens": [4, 1, 1], **fields})


def test_chains_stand_for_all_before_them() -> None:
    """Id 7 behind 1 is not id 7 behind 2; a block that is not whole is left out."""
    trace = workload(
        block_ids=[1, 7, 9, 2, 7, 5, 8, 8, 1, 7, 9, 9],
        block_offsets=[0, 3, 8, 12],
        block_tokens=4,
    )
    start, ids, size = chains(trace)
    assert (start.tolist(), size) == ([0, 2, 7, 10], 4)
    first, second, third = (ids[start[i] : start[i + 1]].tolist() for i in range(3))
    assert first == third[:2]
    assert not set(second) & {*first, *third}
    assert len({*first, *second, *third}) == 5 + 3


def test_a_chain_goes_on_over_output_that_the_next_prompt_holds() -> None:
    turns = {"parent": [-1, 0, -1], "block_tokens": 4}
    trace = workload(block_ids=[1, 2, 1, 2, 3, 4, 5], block_offsets=[0, 2, 7, 7], **turns)
    start, ids, _ = chains(trace)
    # 9 + 4 tokens: three blocks.
    assert np.diff(start).tolist() == [3, 5, 0]
    assert ids[:3].tolist() == ids[3:6].tolist()
    other = workload(block_ids=[1, 2, 1, 9, 3, 4, 5], block_offsets=[0, 2, 7, 7], **turns)
    assert np.diff(chains(other).start).tolist() == [2, 5, 0]


def test_turns_without_blocks_get_them_by_place() -> None:
    long = {"prompt_tokens": [1030, 2100, 1500], "output_tokens": [600, 1, 1]}
    start, ids, size = chains(workload(**long, parent=[-1, 0, 1]))
    assert size == 512
    # The third is shorter than what was said before: another conversation.
    assert np.diff(start).tolist() == [3, 4, 2]
    assert ids[:3].tolist() == ids[3:6].tolist()
    assert not set(ids[7:]) & set(ids[:7])
