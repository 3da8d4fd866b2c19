"""What a workload holds, refuses, and how it is cut and stretched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim import ChipsimError, Workload
from chipsim.cluster.readers import read_trace
from chipsim.cluster.statistics import carried, prefix_hits


def workload(count: int = 4, **others: Any) -> Workload:
    arrays: dict[str, Any] = {
        "arrival_s": np.arange(float(count)),
        "prompt_tokens": np.arange(10, 10 + count),
        "output_tokens": np.ones(count, int),
    }
    return Workload(**(arrays | others))


IDS = (0, 1, 2, 3, -7, 2**62)
"""Ids counted through, and hashes of any size."""


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Any workload: open or closed loop, with and without blocks."""
    count = draw(st.integers(1, 12))

    def each(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    times = st.floats(0.0, 1e6, allow_subnormal=False)
    blocks = [draw(st.lists(st.sampled_from(IDS), max_size=3)) for _ in range(count)]
    free, parent = list(range(count)), []
    for index in range(count):
        options = [-1, *(place for place in free if place < index)]
        parent.append(draw(st.sampled_from(options)))
        if parent[-1] >= 0:
            free.remove(parent[-1])
    return Workload(
        arrival_s=np.sort(np.array(each(times))),
        prompt_tokens=np.array(each(st.integers(1, 2**31))),
        output_tokens=np.array(each(st.integers(1, 2**31))),
        session=np.array(each(st.integers(-1, 9))),
        parent=np.array(parent),
        think_s=np.array(each(times)),
        priority=np.array(each(st.integers(-3, 3))),
        block_offsets=np.cumsum([0, *map(len, blocks)]),
        block_ids=np.array([block for row in blocks for block in row], int),
        block_tokens=16,
    )


ARRAYS = (
    "arrival_s", "prompt_tokens", "output_tokens", "session", "parent", "think_s", "priority",
    "block_offsets", "block_ids",
)  # fmt: skip


def same(one: Workload, other: Workload) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ARRAYS)


@given(made=workloads())
def test_a_csv_reads_back_to_the_same_bits(
    tmp_path_factory: pytest.TempPathFactory, made: Workload
) -> None:
    path = made.to_csv(tmp_path_factory.mktemp("csv") / "a.csv")
    read = read_trace(path)
    assert same(read, made)
    assert read.dropped == {}


@given(made=workloads(), data=st.data())
def test_a_slice_is_the_requests_of_the_range(made: Workload, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(made) - 1))
    stop = data.draw(st.integers(start + 1, len(made)))
    part = made.slice(start, stop)
    for index in range(start, stop):
        assert part.prompt_tokens[index - start] == made.prompt_tokens[index]
        ids = [
            w.block_ids[w.block_offsets[i] : w.block_offsets[i + 1]].tolist()
            for w, i in ((made, index), (part, index - start))
        ]
        assert ids[0] == ids[1]
        parent = made.parent[index] - start if made.parent[index] >= start else -1
        assert part.parent[index - start] == parent


@given(made=workloads(), rate=st.floats(1e-3, 1e3))
def test_another_rate_keeps_requests_and_reaches_the_rate(made: Workload, rate: float) -> None:
    if made.rate_rps == 0.0 or made.span_s < 1e-3:
        return
    other = made.at_rate(rate)
    assert other.rate_rps == pytest.approx(rate, rel=1e-6)
    assert sorted(other.prompt_tokens) == sorted(made.prompt_tokens)
    turns = np.flatnonzero(other.parent >= 0)
    wait = other.arrival_s[turns] - other.arrival_s[other.parent[turns]]
    assert wait == pytest.approx(other.think_s[turns], abs=1e-6)


@given(made=workloads())
def test_prefix_hits_equal_a_plain_count(made: Workload) -> None:
    seen: set[int] = set()
    for index, hit in enumerate(prefix_hits(made)):
        ids = made.block_ids[made.block_offsets[index] : made.block_offsets[index + 1]].tolist()
        known = next((i for i, block in enumerate(ids) if block not in seen), len(ids))
        assert hit == min(16 * known, made.prompt_tokens[index])
        seen.update(ids)


def test_a_turn_carries_its_parents_prompt_and_output() -> None:
    made = workload(3, parent=np.array([-1, 0, -1]), prompt_tokens=np.array([10, 15, 5]))
    assert carried(made).tolist() == [0, 11, 0]


def test_arrays_cannot_be_written_and_are_copies() -> None:
    times = np.arange(4.0)
    made = workload(arrival_s=times)
    times[0] = 0.5
    assert made.arrival_s[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        made.prompt_tokens[0] = 1


BAD: list[tuple[dict[str, Any], str]] = [
    ({"arrival_s": []}, "requests: 0 is not allowed; allowed: 1 to"),
    ({"arrival_s": [0.0, 2.0, 1.0, 3.0]}, r"arrival_s\[2\]: 1.0 .*2.0 or later"),
    ({"arrival_s": [-1.0, 0.0, 1.0, 2.0]}, r"arrival_s\[0\]: -1.0 .*0 to"),
    ({"arrival_s": [0.0, np.nan, 1.0, 2.0]}, r"arrival_s\[1\]: nan .*finite"),
    ({"arrival_s": [0.0, 1.0, 2.0, np.inf]}, r"arrival_s\[3\]: inf .*finite"),
    ({"arrival_s": [0.0, 1.0, 2.0, 1.7e18]}, r"arrival_s\[3\]: 1.7e\+18 .*seconds"),
    ({"arrival_s": [[0.0, 1.0, 2.0, 3.0]] * 4}, "a list of numbers"),
    ({"prompt_tokens": [1, 2, 3]}, "prompt_tokens: '3 entries'"),
    ({"prompt_tokens": [1, 0, 3, 4]}, r"prompt_tokens\[1\]: 0 .*from 1"),
    ({"prompt_tokens": [1, 2.5, 3, 4]}, r"prompt_tokens\[1\]: 2.5 .*whole"),
    ({"prompt_tokens": [1, 2, 3, 2**31 + 1]}, r"prompt_tokens\[3\]: 2147483649"),
    ({"prompt_tokens": ["a", "b", "c", "d"]}, "a list of numbers"),
    ({"output_tokens": [1, 1, 1, -5]}, r"output_tokens\[3\]: -5"),
    ({"parent": [-1, 1, 0, 0]}, r"parent\[1\]: 1 .*earlier"),
    ({"parent": [-1, 0, 0, -1]}, r"parent\[2\]: 0 .*no other turn"),
    ({"parent": [-1, -2, 0, 0]}, r"parent\[1\]: -2"),
    ({"think_s": [0.0, 1.0, -1.0, 0.0]}, r"think_s\[2\]: -1.0"),
    ({"block_offsets": [0, 1], "block_ids": [1], "block_tokens": 16}, "block_offsets"),
    ({"block_offsets": [0, 1, 0, 1, 1], "block_ids": [1], "block_tokens": 16}, "rise"),
    ({"block_offsets": [0, 1, 1, 1, 1], "block_ids": [1]}, "block_tokens: 0"),
]


@pytest.mark.parametrize(("others", "message"), BAD)
def test_what_is_no_workload_is_refused_in_one_line(
    others: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {
        name: value if isinstance(value, int) else np.array(value)
        for name, value in others.items()
    }
    with pytest.raises(ChipsimError, match=message) as caught:
        workload(4, **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rate", [0.0, -1.0, np.nan, np.inf])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ChipsimError, match=r"rate: .* above 0"):
        workload().at_rate(rate)


def test_requests_that_come_at_once_have_no_rate() -> None:
    burst = workload(arrival_s=np.zeros(4))
    assert burst.rate_rps == 0.0
    assert burst.summary()["rate_rps"] is None
    with pytest.raises(ChipsimError, match="at once"):
        burst.at_rate(1.0)


def test_a_slice_without_requests_is_refused() -> None:
    with pytest.raises(ChipsimError, match="at least one request"):
        workload().slice(3, 3)
