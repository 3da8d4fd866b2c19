"""Sessions of many turns: who waits for whom, and how a prompt grows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim import ChipsimError, Workload
from chipsim.cluster.distributions import Fixed, Lognormal, Think, Uniform
from chipsim.cluster.sessions import Sessions, sessions
from chipsim.cluster.statistics import carried, prefix_hits

KIND = Sessions(
    turns=Uniform(low=1, high=9),
    first=Lognormal(mean=300.0, cv=1.0),
    new=Lognormal(mean=100.0, cv=1.0),
    output=Lognormal(mean=50.0, cv=1.0),
    think=Think(kind="exponential", mean=5.0),
    shared=64,
    block_tokens=16,
)


def blocks(made: Workload, index: int) -> list[int]:
    found: list[int] = made.block_ids[
        made.block_offsets[index] : made.block_offsets[index + 1]
    ].tolist()
    return found


@given(seed=st.integers(0, 10**6), requests=st.integers(1, 80))
def test_a_turn_holds_all_that_went_before(seed: int, requests: int) -> None:
    made = sessions(1.0, KIND, requests=requests, seed=seed)
    assert len(made) == requests
    for index, parent in enumerate(made.parent):
        assert len(blocks(made, index)) == made.prompt_tokens[index] // 16
        assert blocks(made, index)[:4] == [0, 1, 2, 3]  # the 64 shared tokens
        if parent < 0:
            assert made.think_s[index] == 0.0
            continue
        assert made.session[index] == made.session[parent]
        context = made.prompt_tokens[parent] + made.output_tokens[parent]
        assert made.prompt_tokens[index] > context
        assert carried(made)[index] == context
        assert blocks(made, index)[: len(blocks(made, parent))] == blocks(made, parent)
        assert made.arrival_s[index] == made.arrival_s[parent] + made.think_s[index]


def test_sessions_share_only_what_is_shared() -> None:
    made = sessions(1.0, KIND, requests=500, seed=2)
    owner: dict[int, int] = {}
    for index in range(len(made)):
        for block in blocks(made, index)[4:]:
            assert owner.setdefault(block, made.session[index]) == made.session[index]


def test_hits_are_the_parents_blocks_or_the_shared_ones() -> None:
    made = sessions(1.0, KIND, requests=500, seed=2)
    hits = prefix_hits(made)
    for index, parent in enumerate(made.parent[1:], start=1):
        expected = 64 if parent < 0 else made.prompt_tokens[parent] // 16 * 16
        assert hits[index] == expected


def test_uncached_prompt_over_output_is_new_over_output() -> None:
    long = {"turns": Fixed(tokens=400), "block_tokens": 0}
    made = sessions(1.0, KIND.model_copy(update=long), requests=40_000)
    ratio = made.summary()["uncached_prompt_to_output"]
    assert ratio == pytest.approx(2.0, rel=0.03)  # 100 new over 50 of output


def test_a_longer_run_begins_with_the_same_sessions() -> None:
    long, short = (sessions(1.0, KIND, requests=n, seed=3) for n in (2000, 200))
    last = int(short.session.max())

    def turns(made: Workload, session: int) -> list[int]:
        found: list[int] = made.prompt_tokens[made.session == session].tolist()
        return found

    for session in range(last):
        assert turns(long, session) == turns(short, session)


def test_another_rate_moves_beginnings_not_turns() -> None:
    slow, fast = (sessions(rate, KIND, requests=300, seed=3) for rate in (0.1, 10.0))
    assert sorted(slow.prompt_tokens) == sorted(fast.prompt_tokens)
    stretched = slow.at_rate(10.0)
    assert stretched.rate_rps == pytest.approx(10.0)
    assert sorted(stretched.think_s) == sorted(slow.think_s)
    assert (np.diff(stretched.arrival_s) >= 0.0).all()


def test_a_session_ends_where_its_context_does() -> None:
    made = sessions(1.0, KIND.model_copy(update={"most_context": 600}), requests=400, seed=1)
    assert len(made) == 400
    assert (made.prompt_tokens + made.output_tokens).max() <= 600
    assert made.dropped["turns beyond the longest context"] > 0


def test_a_context_that_holds_no_turn_is_refused() -> None:
    with pytest.raises(ChipsimError, match=r"most_context: 10 .*to hold a first turn"):
        sessions(1.0, KIND.model_copy(update={"most_context": 10}), requests=5)


def test_blocks_may_be_left_out_and_never_fill_the_memory() -> None:
    bare = sessions(1.0, KIND.model_copy(update={"block_tokens": 0}), requests=50)
    assert len(bare.block_ids) == 0
    huge = KIND.model_copy(update={"first": Fixed(tokens=2**30), "block_tokens": 1})
    with pytest.raises(ChipsimError, match="larger blocks"):
        sessions(1.0, huge, requests=50)


def test_sessions_begin_until_a_time() -> None:
    made = sessions(2.0, KIND, duration_s=100.0, seed=1)
    assert made.arrival_s[made.roots].max() < 100.0
    assert made.roots.sum() == pytest.approx(200, abs=60)
