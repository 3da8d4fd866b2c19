"""Conditions on rows, against pandas' own comparisons."""

from __future__ import annotations

import pandas as pd
import pytest

from chipsim.errors import ChipsimError
from chipsim.explore.filters import filtered, narrowed, parse_filter

TABLE = pd.DataFrame(
    {
        "cost_usd": [10.0, 20.0, float("nan"), 30.0],
        "batch": [1, 2, 3, 4],
        "bound": ["memory", "compute", "memory", ""],
        "fits": [True, False, True, True],
    }
)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", [0, 1, 2, 3]),
        ("cost_usd <= 20", [0, 1]),
        ("cost_usd>20", [3]),
        ("cost_usd != 10", [1, 3]),
        ("batch = 1|4", [0, 3]),
        ("batch != 1|4", [1, 2]),
        ("bound = memory and fits = True", [0, 2]),
        ("bound = memory, batch >= 2", [2]),
        ("bound =", [3]),
        ("cost_usd < 1e3 AND batch<3", [0, 1]),
        ("cost_usd < 1", []),
    ],
)
def test_rows_that_hold(text: str, rows: list[int]) -> None:
    assert filtered(TABLE, text).index.tolist() == rows


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cost < 3", "unknown column 'cost'; did you mean cost_usd"),
        ("cost_usd < cheap", "a number"),
        ("cost_usd < nan", "a number"),
        ("bound < memory", "= or !="),
        ("__import__('os')", "conditions such as"),
        ("batch", "conditions such as"),
        ("and ".join(["batch > 0 "] * 41), "at most 40"),
    ],
)
def test_what_is_no_condition(text: str, says: str) -> None:
    with pytest.raises(ChipsimError, match=says):
        filtered(TABLE, text)


def test_a_column_gets_another_range() -> None:
    clauses = parse_filter("batch >= 1 and bound = memory and batch <= 4")
    assert narrowed(clauses, "batch", parse_filter("batch >= 2")) == (
        "bound = memory and batch >= 2"
    )
