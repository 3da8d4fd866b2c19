"""Requests go to where their prefixes are."""

from __future__ import annotations

from chipsim.cluster.engine import Options, codes, instances
from tests.cluster.prefixed import given, served


def test_a_turn_goes_to_the_rank_that_holds_its_prefix() -> None:
    """Two conversations, two machines; the turns come in the other order."""
    requests = given(
        [[0, 1, 2], [5, 6, 7], [5, 6, 7, 8], [0, 1, 2, 3]], [30, 30, 40, 40], 1,
        arrival_s=[0.0, 0.0, 9.0, 9.0],
    )  # fmt: skip
    options = Options(routing=codes.LONGEST_PREFIX)
    rows = served(requests, 2, options=options).requests
    assert rows["prefill_instance"].tolist() == [0, 1, 1, 0]
    assert rows["cached"].tolist() == [0, 0, 30, 30]
    blind = served(requests, 2, options=Options(routing=codes.LEAST_TOKENS)).requests
    assert blind["cached"].sum() == 0


def test_a_prefix_is_not_worth_a_longer_wait() -> None:
    """30 tokens found where 31 wait are computed elsewhere, where 29 wait they are not."""
    for waiting, machine in ((31, 1), (29, 0)):
        requests = given(
            [[0, 1, 2], [], [0, 1, 2, 3]], [30, waiting, 40], 1, arrival_s=[0.0, 9.0, 9.0]
        )
        rows = served(requests, 2, options=Options(routing=codes.LONGEST_PREFIX)).requests
        assert rows["prefill_instance"].tolist() == [0, 0, machine]


def test_a_prefix_is_on_one_rank() -> None:
    """Ranks of one instance step together, but each finds only what it holds."""
    requests = given([[0, 1, 2]] * 3, 30, 1)
    machines = instances([0], ranks=[2])
    blind = Options(routing=codes.ROUND_ROBIN)
    rows = served(requests, instances=machines, options=blind).requests
    assert rows["prefill_rank"].tolist() == [0, 1, 0]
    assert rows["cached"].tolist() == [0, 0, 29]
    sighted = Options(routing=codes.LONGEST_PREFIX)
    rows = served(requests, instances=machines, options=sighted).requests
    assert rows["cached"].tolist() == [0, 29, 29]
