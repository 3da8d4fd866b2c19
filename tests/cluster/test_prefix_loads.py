"""Blocks that come from a tier below, or from another rank of the pool."""

from __future__ import annotations

from typing import Any

import pytest

from chipsim.cluster.engine import (
    Options,
    Outcome,
    Requests,
    codes,
    instances,
    links,
    pools,
    run,
    tiers,
    timers,
)
from tests.cluster.prefixed import STEPS, given, served


@pytest.mark.parametrize("block_s", [0.004, 0.009, 0.011])
def test_what_fell_is_loaded_if_that_is_faster(block_s: float) -> None:
    """10 tokens are computed in 10 ms: 3 blocks and 1 ms of latency take 13, 28 or 34 ms."""
    requests = given([[0, 1, 2], [4, 5, 6], [0, 1, 2]], 35, 1)
    below = tiers(1, room=[9, 0, 0], latency_s=1e-3, block_s=block_s)
    outcome = served(requests, kv_blocks=4, tiers=below)
    last = outcome.requests[2]
    loads = 0.001 + 3 * block_s < 0.030
    assert last["loaded"] == (30 if loads else 0)
    took = 0.001 + 3 * block_s + 0.005 if loads else 0.035
    assert last["finish_s"] - last["arrival_s"] == pytest.approx(took)
    assert last["prefill_start_s"] == pytest.approx(2e3 + (took - 0.005 if loads else 0.0))


def test_blocks_fall_from_tier_to_tier_and_are_read_by_all_from_the_last() -> None:
    """Rank 0 pushes a prompt out, through a tier of one block, into the store; rank 1 reads."""
    requests = given([[0, 1, 2], [3], [4, 5, 6], [0, 1, 2]], [35, 12, 35, 35], 1)
    below = tiers(1, room=[1, 1, 9], block_s=1e-4)
    outcome = served(
        requests, 2, kv_blocks=4, tiers=below, options=Options(routing=codes.ROUND_ROBIN)
    )
    assert outcome.requests["prefill_instance"].tolist() == [0, 1, 0, 1]
    # Of 0 1 2 the end fell first: 0 is in the host's memory, 1 on its disk, 2 in the store.
    assert outcome.requests["loaded"].tolist() == [0, 0, 0, 0]
    wider = served(
        requests, 2, kv_blocks=4, tiers=tiers(1, room=[0, 0, 9], block_s=1e-4),
        options=Options(routing=codes.ROUND_ROBIN),
    )  # fmt: skip
    assert wider.requests["loaded"].tolist() == [0, 0, 0, 30]


def test_loads_of_a_rank_wait_for_each_other() -> None:
    requests = given(
        [[0, 1, 2], [4, 5, 6], [8, 9, 10, 11], [0, 1, 2], [4, 5, 6]], [35, 35, 75, 35, 35], 1,
        arrival_s=[0.0, 10.0, 20.0, 30.0, 30.0],
    )  # fmt: skip
    below = tiers(1, room=[20, 0, 0], block_s=0.003)
    rows = served(requests, kv_blocks=8, tiers=below).requests
    assert rows["loaded"].tolist() == [0, 0, 0, 30, 30]
    assert rows["prefill_start_s"][3:].tolist() == pytest.approx([30.009, 30.018])


SEND_A_TOKEN = 1e-4
"""Seconds: a tenth of computing it."""
TURN_ABOUT = Options(routing=codes.ROUND_ROBIN)


def pooled(requests: Requests, machines: int = 2, **fields: Any) -> Outcome:
    """As `served`, round robin, each rank finding what the others have."""
    every: dict[str, Any] = {
        "prefix_cache": codes.BY_POOL,
        "options": TURN_ABOUT,
        "links": links(1, bytes_per_s=1 / SEND_A_TOKEN, bytes_per_token=1.0),
    }
    return served(requests, machines, **(every | fields))


@pytest.mark.parametrize("latency_s", [0.005, 0.026, 0.028])
def test_a_rank_is_sent_what_another_has_if_that_is_faster(latency_s: float) -> None:
    """30 tokens take 30 ms to compute, 3 ms and the latency to be sent, 2 ms converted."""
    ways = links(
        1, bytes_per_s=1e4, bytes_per_token=1.0, latency_s=latency_s - 0.002,
        dequant_bytes_per_s=15e3,
    )  # fmt: skip
    rows = pooled(given([[0, 1, 2]] * 3, 35, 1), links=ways).requests
    sends = latency_s + 0.003 < 0.030
    assert rows["cached"].tolist() == [0, 0, 30]
    assert rows["loaded"].tolist() == [0, 30 if sends else 0, 0]
    took = latency_s + 0.008 if sends else 0.035
    assert rows["finish_s"][1] - rows["arrival_s"][1] == pytest.approx(took)


def test_the_rank_that_has_most_of_a_prompt_sends_it_and_keeps_it() -> None:
    """One has two blocks of it, one four, and the third then has four as well."""
    requests = given([[0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3]], [25, 45, 55, 45], 1)
    outcome = pooled(requests, 3)
    assert outcome.requests["loaded"].tolist() == [0, 20, 40, 20]
    assert outcome.requests["cached"].tolist() == [0, 0, 0, 20]
    assert outcome.caches["loaded"][:3].tolist() == [20, 60, 0]
    alone = pooled(requests, 3, prefix_cache=codes.BY_RANK)
    assert alone.requests["loaded"].sum() == 0


def test_what_is_being_sent_stays_where_it_is() -> None:
    """The sender has room for another prompt only once the first one's blocks are sent."""
    requests = given([[0, 1, 2], [0, 1, 2], [4, 5, 6]], 35, 1, arrival_s=[0.0, 1.0, 1.001])
    ways = links(1, bytes_per_s=2e3, bytes_per_token=1.0)
    rows = pooled(requests, kv_blocks=4, links=ways).requests
    assert rows["prefill_instance"].tolist() == [0, 1, 0]
    assert rows["loaded"].tolist() == [0, 30, 0]
    assert rows["prefill_start_s"][1:].tolist() == pytest.approx([1.015, 1.015])


def test_senders_send_one_at_a_time_where_their_cards_are_shared() -> None:
    requests = given([[0, 1, 2]] * 3, 35, 1, arrival_s=[0.0, 1.0, 1.0])
    for contention, starts in ((codes.NIC, [1.003, 1.006]), (codes.NO_CONTENTION, [1.003] * 2)):
        ways = links(1, bytes_per_s=1e4, bytes_per_token=1.0, contention=contention)
        rows = pooled(requests, 3, links=ways).requests
        assert rows["prefill_start_s"][1:].tolist() == pytest.approx(starts)


def test_pools_do_not_know_what_other_pools_have() -> None:
    requests = given([[0, 1, 2]] * 2, 35, 1)
    steps = pools(2, prefix_cache=codes.BY_POOL, block=10, kv_blocks=1000, max_tokens=1000)
    outcome = run(requests, STEPS, steps, instances([0, 1]), options=TURN_ABOUT)
    assert outcome.requests["loaded"].tolist() == [0, 0]


def test_what_a_failed_rank_was_sending_is_sent_by_another_or_computed() -> None:
    """At 1.010 s the sender fails; the third rank, if it has the prompt, sends it anew."""
    chains = [[0, 1, 2], [0, 1, 2], [0, 1, 2]]
    ways = links(1, bytes_per_s=2e3, bytes_per_token=1.0)
    for second, start in (([9], 1.010), ([0, 1, 2], 1.025)):
        chains[1] = second
        requests = given(chains, [35, 10 * len(second) + 5, 35], 1, arrival_s=[0.0, 0.9, 1.0])
        fault = timers([(1.010, codes.FAULT, 0, 0)])
        rows = pooled(requests, 3, links=ways, timers=fault).requests
        assert rows["prefill_instance"].tolist() == [0, 1, 2]
        assert rows["prefill_start_s"][2] == pytest.approx(start)
        assert rows["loaded"][2] == (30 if start > 1.02 else 0)
