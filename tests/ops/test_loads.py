"""Loads of experts, against enumeration and simulation."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.errors import ConfigError
from chipsim.ops.experts import GroupedGemm
from chipsim.ops.loads import ExpertGroup, ExpertLoad, RankLoad, distinct_experts, rank_loads


def rows(load: RankLoad) -> float:
    return sum(group.experts * group.rows for group in load)


def touched(load: RankLoad) -> float:
    return sum(group.experts for group in load)


@pytest.mark.parametrize(
    ("experts", "top_k", "tokens"), [(4, 2, 1), (4, 2, 3), (5, 1, 4), (3, 3, 2)]
)
def test_distinct_experts_against_every_outcome(experts: int, top_k: int, tokens: int) -> None:
    picks = list(itertools.combinations(range(experts), top_k))
    outcomes = list(itertools.product(picks, repeat=tokens))
    mean = sum(len(set().union(*outcome)) for outcome in outcomes) / len(outcomes)
    assert distinct_experts(experts, top_k, tokens) == pytest.approx(mean, rel=1e-12)


def test_distinct_experts_of_deepseek_worked_out() -> None:
    # 64 sequences of one rank against those of 8 ranks: 222 or all 256 experts are read
    assert distinct_experts(256, 8, 64) == pytest.approx(256 * (1 - (1 - 8 / 256) ** 64))
    assert distinct_experts(256, 8, 512) == pytest.approx(256, rel=1e-6)
    assert distinct_experts(256, 8, 1) == pytest.approx(8)
    assert distinct_experts(128, 4, 10**12) == 128


def test_even_load_of_one_rank() -> None:
    ((group,),) = rank_loads(256, 8, 64, ranks=8)
    assert group.experts == pytest.approx(distinct_experts(256, 8, 64) / 8)
    assert group.experts * group.rows == pytest.approx(64 * 8 / 8)
    # Experts that do not divide: the rank with most decides.
    assert touched(rank_loads(10, 10, 1, ranks=4)[0]) == 3


def test_zipf_of_exponent_0_is_even() -> None:
    flat = ExpertLoad(kind="zipf", exponent=0.0)
    for ranks in (1, 4, 8):
        even, zipf = (rank_loads(64, 4, 100, ranks, load)[0] for load in (ExpertLoad(), flat))
        assert rows(zipf) == pytest.approx(rows(even))
        assert touched(zipf) == pytest.approx(touched(even))


def test_zipf_against_simulation() -> None:
    """Tokens that pick one expert each, drawn by weight."""
    weights = [(i + 1) ** -1.2 for i in range(16)]
    generator = random.Random(1)  # noqa: S311 - a simulation, no secret
    tries, tokens = 4000, 12
    seen = [len(set(generator.choices(range(16), weights, k=tokens))) for _ in range(tries)]
    (load,) = rank_loads(16, 1, tokens, 1, ExpertLoad(kind="zipf", exponent=1.2))
    assert touched(load) == pytest.approx(sum(seen) / tries, rel=0.02)
    assert rows(load) == pytest.approx(tokens)


def test_no_expert_gets_more_than_every_token() -> None:
    steep = ExpertLoad(kind="zipf", exponent=8.0)
    (load,) = rank_loads(16, 4, 100, 1, steep)
    assert rows(load) == pytest.approx(400)
    assert max(group.rows for group in load) <= 100 * (1 + 1e-12)


def test_the_rank_of_the_most_wanted_expert_is_the_slowest() -> None:
    skewed = ExpertLoad(kind="zipf", exponent=1.0)
    loads = rank_loads(64, 4, 256, 8, skewed)
    assert rows(loads[0]) > rows(rank_loads(64, 4, 256, 8)[0])
    assert len(loads) == 1  # dealt in turn, it has most of everything


def test_a_histogram_is_cut_into_neighbours() -> None:
    counted = ExpertLoad(kind="histogram", tokens=(8, 8, 1, 1, 1, 1, 0, 0))
    # 20 tokens of one expert each: ranks get 16, 2, 2 and 0 of them
    (most,) = rank_loads(8, 1, 20, 4, counted)
    assert rows(most) == pytest.approx(16)
    assert touched(most) == pytest.approx(2 * (1 - (1 - 0.4) ** 20))


def test_ranks_that_read_more_stay_beside_those_that_compute_more() -> None:
    counted = ExpertLoad(kind="histogram", tokens=(9, 0, 0, 0, 2, 2, 2, 2))
    first, second = rank_loads(8, 1, 30, 2, counted)
    assert (rows(first) > rows(second), touched(first) < touched(second)) == (True, True)


@given(
    st.integers(1, 64), st.integers(1, 8), st.integers(1, 300), st.integers(1, 8),
    st.floats(0, 4),
)  # fmt: skip
def test_more_tokens_are_never_less_of_anything(
    experts: int, top_k: int, tokens: int, ranks: int, exponent: float
) -> None:
    top_k = min(top_k, experts)
    for load in (ExpertLoad(), ExpertLoad(kind="zipf", exponent=exponent)):
        before, after = (
            rank_loads(experts, top_k, t, ranks, load) for t in (tokens, tokens + 1)
        )
        for count in (rows, touched):
            assert max(map(count, after)) >= max(map(count, before)) * (1 - 1e-12)
        whole = rank_loads(experts, top_k, tokens, 1, load)
        assert rows(whole[0]) == pytest.approx(tokens * top_k)
        assert touched(whole[0]) <= min(experts, tokens * top_k) * (1 + 1e-12)


@given(
    st.integers(2, 400), st.integers(1, 8), st.integers(1, 60_000), st.integers(1, 500),
    st.floats(0, 4),
)  # fmt: skip
def test_every_group_grows_with_the_tokens(
    experts: int, top_k: int, tokens: int, more: int, exponent: float
) -> None:
    load = ExpertLoad(kind="zipf", exponent=exponent)
    (before,), (after,) = (
        rank_loads(experts, min(top_k, experts), t, 1, load) for t in (tokens, tokens + more)
    )
    for less, grown in zip(before, after, strict=True):
        assert grown.experts >= less.experts * (1 - 1e-12)
        assert grown.rows >= less.rows * (1 - 1e-12)


@pytest.mark.parametrize(
    ("text", "kind", "exponent"), [("uniform", "uniform", 0), (" zipf = 1.1 ", "zipf", 1.1)]
)
def test_parse(text: str, kind: str, exponent: float) -> None:
    load = ExpertLoad.parse(text)
    assert (load.kind, load.exponent) == (kind, exponent)
    assert ExpertLoad.parse("histogram=4,0,1.5").tokens == (4, 0, 1.5)


@pytest.mark.parametrize(
    "text", ["", "zipf", "zipf=", "zipf=a", "zipf=1,2", "zipf=-1", "zipf=nan", "uniform=1",
             "histogram=", "histogram=0,0", "histogram=1,-1", "histogram=inf"],
)  # fmt: skip
def test_bad_loads_are_one_line(text: str) -> None:
    with pytest.raises(ConfigError, match="experts") as caught:
        ExpertLoad.parse(text)
    assert "\n" not in str(caught.value)


def test_a_histogram_has_a_number_for_each_expert() -> None:
    with pytest.raises(ConfigError, match=r"histogram: 2 .* 8 numbers"):
        rank_loads(8, 2, 4, 1, ExpertLoad(kind="histogram", tokens=(1, 1)))


def test_counts_of_a_grouped_product() -> None:
    op = GroupedGemm.even("up", 3.5, 2.0, 64, 32, "bf16", "fp8", "fp16")
    assert op.flops == 2 * 7 * 64 * 32
    assert op.weight_bytes == 3.5 * 64 * 32
    assert op.bytes == 7 * 32 * 2 + 3.5 * 64 * 32 + 7 * 64 * 2
    assert op.kind == "gemm"


def test_a_grouped_product_of_two_chips_is_the_worse_of_each() -> None:
    few, many = (ExpertGroup(1.0, 90.0),), (ExpertGroup(40.0, 1.0),)
    op = GroupedGemm("up", (few, many), 64, 32)
    assert op.flops == 2 * 90 * 64 * 32
    assert op.weight_bytes == 40 * 64 * 32 * 2
    assert op.bytes == max(GroupedGemm("up", (load,), 64, 32).bytes for load in (few, many))


@pytest.mark.parametrize(
    "loads", [(), ((),), ((ExpertGroup(0.0, 1.0),),), ((ExpertGroup(1.0, math.nan),),)]
)
def test_a_product_of_no_expert_is_refused(loads: tuple[RankLoad, ...]) -> None:
    with pytest.raises(ConfigError, match=r"^up: "):
        GroupedGemm("up", loads, 64, 32)


def test_a_histogram_of_fewer_experts_than_a_token_picks_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"tokens for 3 experts.*at least the 4 experts"):
        rank_loads(8, 4, 10, 1, ExpertLoad.parse("histogram=5,0,0,2,0,1,0,0"))
    (load,) = rank_loads(8, 4, 10, 1, ExpertLoad.parse("histogram=5,0,0,2,0,1,0,1"))
    assert rows(load) == pytest.approx(40)
