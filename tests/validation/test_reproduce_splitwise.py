"""Splitwise's claims: the objective worked out by hand, and the form of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from chipsim.cluster.workload import Workload
from chipsim.validation.reproduce_splitwise import (
    A100,
    CLUSTERS,
    H100,
    MODEL,
    holds,
    slowdowns,
)
from chipsim.validation.splitwise import Setup


def lonely(count: int = 5) -> Workload:
    """Requests that never meet."""
    apart = 1000.0 * np.arange(count, dtype=np.float64)
    return Workload(apart, np.full(count, 1024), np.full(count, 50), name="lonely")


def test_a_request_alone_is_not_slowed_down() -> None:
    found = list(slowdowns(lonely(), Setup(MODEL, 1, 0, A100, A100)))
    assert [value for _, value, _ in found] == pytest.approx([1.0] * 9)
    assert [limit for _, _, limit in found] == [2, 3, 6, 1.25, 1.5, 5, 1.25, 1.5, 5]


def test_a_hand_off_counts_between_tokens_not_in_ttft() -> None:
    found = {
        name: value for name, value, _ in slowdowns(lonely(), Setup(MODEL, 1, 1, A100, A100))
    }
    transfer = 1024 * 4_014_080 / (200 * 2**30)
    assert found["p50 ttft"] == pytest.approx(1.0)
    decode = 47.51752e-3  # of one sequence, by that simulator's table
    assert found["p50 tbt"] == pytest.approx(1.0 + transfer / (49 * decode), rel=1e-4)


def test_a_crowd_breaks_the_objective() -> None:
    crowd = Workload(np.zeros(50), np.full(50, 2000), np.full(50, 5), name="crowd")
    assert holds(lonely(), Setup(MODEL, 1, 0, H100, H100))
    assert not holds(crowd, Setup(MODEL, 1, 0, H100, H100))


def test_clusters_are_those_of_the_paper() -> None:
    split, base = CLUSTERS["AA at equal power"], CLUSTERS["H100 only"]
    assert split.power == pytest.approx(base.power, rel=0.02)
    assert CLUSTERS["AA at equal cost"].cost == pytest.approx(base.cost, rel=0.01)
    assert 1.0 - split.cost / base.cost == pytest.approx(0.20, abs=0.02)
    assert all(s.prompt + s.token == 70 and s.token > 0 for s in split.setups())
