"""The front against its definition: nobody is at least as good in both and better in one."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chipsim.explore.front import pareto_front

NUMBER = st.one_of(st.integers(-4, 4).map(float), st.just(math.nan), st.floats(-1, 1))


@given(st.lists(st.tuples(NUMBER, NUMBER), max_size=30), st.booleans(), st.booleans())
def test_it_is_what_nobody_beats(
    points: list[tuple[float, float]], most_x: bool, most_y: bool
) -> None:
    x, y = np.array([p[0] for p in points]), np.array([p[1] for p in points])
    found = pareto_front(x, y, most_x=most_x, most_y=most_y)
    a, b = (-x if most_x else x), (-y if most_y else y)
    known = [i for i in range(len(points)) if not math.isnan(a[i] + b[i])]
    expected = {
        i
        for i in known
        if not any(
            a[j] <= a[i] and b[j] <= b[i] and (a[j] < a[i] or b[j] < b[i]) for j in known
        )
    }
    assert set(found.tolist()) == expected
    assert len(found) == len(expected)
    assert sorted(a[found].tolist()) == a[found].tolist()
