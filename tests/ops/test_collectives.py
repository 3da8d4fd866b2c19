"""Collectives as shapes: what a chip sends at least, and how far tokens travel."""

from __future__ import annotations

from itertools import combinations

import pytest

from chipsim.errors import ConfigError
from chipsim.ops.collectives import expert_copies
from chipsim.ops.operators import (
    AllGather,
    AllReduce,
    AllToAll,
    Collective,
    ReduceScatter,
    SendRecv,
)

KINDS: list[type[Collective]] = [AllReduce, AllGather, ReduceScatter, AllToAll, SendRecv]


@pytest.mark.parametrize(
    ("kind", "sent"),
    [(AllReduce, 1750), (AllGather, 875), (ReduceScatter, 875), (AllToAll, 875)],
)
def test_least_bytes_that_a_chip_sends(kind: type[Collective], sent: float) -> None:
    assert kind("x", 1000.0, 8).sent == sent
    assert kind("x", 1000.0, 1).sent == 0.0


def test_a_stage_sends_all_it_has() -> None:
    assert SendRecv("stage", 1000.0, stride=8).sent == 1000.0
    assert SendRecv("stage", 1000.0).chips == 2


def test_a_scatter_and_a_gather_are_a_reduction() -> None:
    halves = ReduceScatter("a", 77.0, 5).sent + AllGather("b", 77.0, 5).sent
    assert halves == pytest.approx(AllReduce("c", 77.0, 5).sent, rel=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_are_values_of_their_own_kind(kind: type[Collective]) -> None:
    one = kind("x", 8.0, 4, 2)
    assert (one.kind, one.flops, one.stride) == ("collective", 0.0, 2)
    assert one == kind("x", 8, 4, 2)
    assert hash(one) == hash(kind("x", 8.0, 4, 2))
    assert all(one != other("x", 8.0, 4, 2) for other in KINDS if other is not kind)


@pytest.mark.parametrize("field", ["bytes", "chips", "stride"])
@pytest.mark.parametrize("bad", [0, -1, float("nan"), True, "8", None])
def test_bad_fields_are_one_line(field: str, bad: object) -> None:
    fields: dict[str, object] = {"bytes": 8.0, "chips": 4, "stride": 1, field: bad}
    with pytest.raises(ConfigError, match=f"x: {field}"):
        AllToAll("x", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(("experts", "top_k", "ranks"), [(8, 2, 4), (8, 3, 2), (6, 2, 6)])
def test_copies_of_a_token_counted_one_by_one(experts: int, top_k: int, ranks: int) -> None:
    held = experts // ranks
    picks = list(combinations(range(experts), top_k))
    reached = [len({expert // held for expert in pick}) for pick in picks]
    average = sum(reached) / len(picks)
    assert expert_copies(experts, top_k, ranks) == pytest.approx(average, rel=1e-12)


def test_copies_at_the_ends() -> None:
    assert expert_copies(256, 8, 1) == 1.0
    assert expert_copies(256, 8, 256) == 8.0
