"""What the next turn of a conversation finds, prefilled and decoded apart."""

from __future__ import annotations

from typing import Any

import pytest

from chipsim.cluster.engine import Options, codes, instances, links, pools, run, tiers
from tests.cluster.prefixed import STEPS, given, served

APART_INSTANCES = instances([0, 0], role=[codes.PREFILL, codes.DECODE])


def conversation(**fields: Any) -> Any:
    """Two turns, prefilled and decoded apart: 30 tokens, 21 decoded, then 60."""
    requests = given(
        [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]], [30, 60], [21, 1],
        arrival_s=[0.0, 0.0], parent=[-1, 0], think_s=[0.0, 5.0],
    )  # fmt: skip
    ways = links(1, bytes_per_s=1e4, bytes_per_token=1.0)
    return served(requests, links=ways, instances=APART_INSTANCES, **fields)


def test_the_prefilling_rank_lacks_what_the_other_decoded() -> None:
    second = conversation().requests[1]
    assert second["cached"] == 30
    assert second["first_token_s"] - second["arrival_s"] == pytest.approx(0.030)


@pytest.mark.parametrize("rule", [codes.WRITE_BACK, codes.WRITE_TO_STORE])
def test_nothing_is_written_where_no_rank_keeps_prefixes(rule: int) -> None:
    """Of two pools one would keep them, and has no instance."""
    requests = given(
        [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]], [30, 60], [21, 1],
        arrival_s=[0.0, 0.0], parent=[-1, 0], think_s=[0.0, 5.0],
    )  # fmt: skip
    outcome = run(
        requests, STEPS,
        pools(2, prefix_cache=[1, 0], block=10, kv_blocks=1000, max_tokens=1000),
        instances([1, 1], role=[codes.PREFILL, codes.DECODE]),
        links=links(2, bytes_per_s=1e4, bytes_per_token=1.0),
        tiers=tiers(2, room=2 * [0, 0, 99], block_s=1e-3),
        options=Options(next_turn=rule),
    )  # fmt: skip
    assert outcome.requests["cached"].tolist() == [0, 0]
    assert outcome.instances["returned_tokens"].sum() == 0
    assert outcome.requests["first_token_s"][1] > 0.0


def test_output_is_sent_back() -> None:
    outcome = conversation(options=Options(next_turn=codes.WRITE_BACK))
    second = outcome.requests[1]
    assert second["cached"] == 50
    assert second["first_token_s"] - second["arrival_s"] == pytest.approx(0.010)
    assert outcome.instances["returned_tokens"].tolist() == [20, 0]


def test_a_turn_that_comes_before_the_output_is_back_does_not_find_it() -> None:
    """20 bytes at 10 kB/s: 2 ms."""
    requests = given(
        [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]], [30, 60], [21, 1],
        arrival_s=[0.0, 0.0], parent=[-1, 0], think_s=[0.0, 0.001],
    )  # fmt: skip
    ways = links(1, bytes_per_s=1e4, bytes_per_token=1.0)
    options = Options(next_turn=codes.WRITE_BACK)
    rows = served(requests, links=ways, instances=APART_INSTANCES, options=options).requests
    assert rows["cached"][1] == 30


def test_output_is_read_from_a_store() -> None:
    """Five blocks are written, 1 ms each; two of them read."""
    below = tiers(1, room=[0, 0, 99], block_s=1e-3)
    outcome = conversation(options=Options(next_turn=codes.WRITE_TO_STORE), tiers=below)
    second = outcome.requests[1]
    assert (second["cached"], second["loaded"]) == (30, 20)
    assert second["first_token_s"] - second["arrival_s"] == pytest.approx(0.002 + 0.010)


def test_a_receiver_is_sent_only_what_it_lacks() -> None:
    """The second turn's 60 tokens: 50 lie where the first one decoded."""
    requests = given(
        [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]], [30, 60], [21, 2],
        arrival_s=[0.0, 0.0], parent=[-1, 0], think_s=[0.0, 5.0],
    )  # fmt: skip
    ways = links(1, bytes_per_s=1e3, bytes_per_token=1.0)
    rows = served(requests, links=ways, instances=APART_INSTANCES).requests
    moved = rows["transfer_end_s"] - rows["transfer_start_s"]
    assert moved.tolist() == pytest.approx([0.030, 0.010])
