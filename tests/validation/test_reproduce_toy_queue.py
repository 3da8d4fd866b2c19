"""The small queue model: what its runs are, against hand and closed form."""

from __future__ import annotations

import numpy as np
import pytest

from chipsim.cluster.scenario import Scenario
from chipsim.cluster.simulate import Cluster
from chipsim.cluster.workload import Workload
from chipsim.validation.reproduce import reproduce
from chipsim.validation.reproduce_toy_queue import SYSTEMS, answered, measured


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster(Scenario.load("toy-queue"))


def lonely() -> Workload:
    """Prompts of one length that never meet."""
    apart = 1000.0 * np.arange(3, dtype=np.float64)
    return Workload(apart, np.full(3, 32768), np.full(3, 4))


def test_a_lonely_request_is_not_stalled(cluster: Cluster) -> None:
    one, two = (measured(cluster, counts, lonely()) for counts in SYSTEMS.values())
    assert one["itl_max"] < 2e-3
    assert two["itl_max"] < 2e-3
    # KV: two vectors of 8 heads of 64 in 16 layers, 2 bytes each, over the chip's network.
    sent = 32768 * 2 * 8 * 64 * 16 * 2 / 50e9
    assert one["ttft_p90"] - two["ttft_p90"] == pytest.approx(sent, rel=1e-2)
    assert one["handoff_share"] == pytest.approx(sent / one["ttft_p90"], rel=1e-2)
    assert two["handoff_share"] == 0.0


def test_a_prompt_stalls_the_tokens_of_those_on_its_chip(cluster: Cluster) -> None:
    """The second prompt arrives while the first request decodes."""
    alone = measured(cluster, SYSTEMS["colocated"], lonely())["ttft_p90"]
    pair = Workload(np.array([0.0, alone + 1e-3]), np.full(2, 32768), np.full(2, 30))
    assert measured(cluster, SYSTEMS["colocated"], pair)["itl_max"] > 0.9 * alone
    assert measured(cluster, SYSTEMS["separated"], pair)["itl_max"] < 2e-3


def test_answers_change_nothing_else(cluster: Cluster) -> None:
    told = cluster.workload
    changed = answered(told, 16)
    assert (changed.output_tokens == 16).all()
    assert (changed.prompt_tokens == told.prompt_tokens).all()
    assert (told.prompt_tokens >= 16384).all()
    assert (told.prompt_tokens <= 65536).all()


def test_rows_are_of_the_table() -> None:
    made = reproduce("toy-queue", quick=True)
    named = {row.figure: row for row in made.rows}
    stall = named["worst stall, 1/s, ratio of the two"]
    assert stall.published == pytest.approx(931.0)
    assert stall.simulated is not None
    assert stall.simulated > 100.0
    assert {row.kind for row in made.rows if row.within is not None} == {"policy"}
