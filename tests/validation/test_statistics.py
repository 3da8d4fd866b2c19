"""Statistics of errors against figures worked out by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from chipsim.validation.statistics import COLUMNS, error_statistics, summarise


def test_statistics_of_hand_made_errors() -> None:
    found = error_statistics([0.1, -0.2, 0.3, -0.4])
    assert found["n"] == 4
    assert found["mape"] == pytest.approx(0.25)
    assert found["median_ape"] == pytest.approx(0.25)
    assert found["p90_ape"] == pytest.approx(0.3 + 0.7 * 0.1)  # rank 2.7 of 0 ... 3
    assert found["bias"] == pytest.approx(-0.05)


def test_statistics_of_one_error() -> None:
    assert error_statistics([-0.5]) == {
        "n": 1,
        "mape": 0.5,
        "median_ape": 0.5,
        "p90_ape": 0.5,
        "bias": -0.5,
    }


def rows(*values: tuple[str, str, str, float, bool]) -> pd.DataFrame:
    """Points of one suite: chip, operator, regime, error, whole."""
    frame = pd.DataFrame(values, columns=["chip", "operator", "regime", "error", "whole"])
    return frame.assign(suite="s", dtype="fp16")


def test_groups_and_totals() -> None:
    points = rows(
        ("a", "matmul", "small", 0.1, True),
        ("a", "matmul", "memory", 0.3, True),
        ("b", "matmul", "memory", -0.5, True),
    )
    frame = summarise(points)
    assert tuple(frame.columns) == COLUMNS
    groups = frame.set_index(["chip", "operator", "dtype", "regime"])
    assert groups.loc[("a", "matmul", "fp16", "small"), "mape"] == pytest.approx(0.1)
    assert groups.loc[("a", "matmul", "all", "all"), "mape"] == pytest.approx(0.2)
    assert groups.loc[("all", "matmul", "all", "all"), "bias"] == pytest.approx(-0.1 / 3)
    assert groups.loc[("b", "all", "all", "all"), "n"] == 1
    assert groups.loc[("all", "all", "all", "all"), "n"] == 3
    assert len(frame) == 3 + 2 + 2 + 1 + 2 + 1
    assert groups.loc[("a", "matmul", "fp16", "all"), "n"] == 2
    assert groups.index.is_unique


def test_parts_are_left_out_where_operators_are_pooled() -> None:
    points = rows(
        ("a", "matmul", "decode", 0.4, False),
        ("a", "total", "decode", 0.1, True),
    )
    groups = summarise(points).set_index(["chip", "operator", "dtype", "regime"])
    assert groups.loc[("all", "all", "all", "all"), "mape"] == pytest.approx(0.1)
    assert groups.loc[("all", "matmul", "all", "all"), "mape"] == pytest.approx(0.4)
