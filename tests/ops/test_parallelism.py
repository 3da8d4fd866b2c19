"""Plans: how they are written, and which ones a model allows."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.errors import ConfigError, InfeasibleError
from chipsim.ops.model import ModelSpec
from chipsim.ops.parallelism import (
    Parallelism,
    allowed_tp,
    check,
    divisors,
    stages,
    valid_plans,
)
from tests.ops.models import GPT3, LLAMA2_70B, llama, opt

DEEPSEEK = ModelSpec.load("deepseek-v3")


def test_parse() -> None:
    assert Parallelism.parse("tp=8,pp=1") == Parallelism(tp=8)
    assert Parallelism.parse(" tp = 2 , pp = 3, dp=2").chips == 12


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("tp=0", "tp: 0"),
        ("tp=-1", "tp: '-1'"),
        ("tp=1.5", "tp: '1.5'"),
        ("tp=1_0", "tp: '1_0'"),
        ("tp=nan", "tp: 'nan'"),
        ("tp=", "tp: ''"),
        ("8", "'8'"),
        ("", "plan: ''"),
        ("tq=8", "tq=8"),
        ("tp=8,tp=8", "tp: 'tp=8'"),
        ("tp=99999999", "tp: 99999999"),
    ],
)
def test_bad_plans_are_one_line(text: str, named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Parallelism.parse(text)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [True, 0, 2.0, "8", float("nan")])
def test_bad_degrees_in_code(bad: object) -> None:
    with pytest.raises(ConfigError, match="plan: tp"):
        Parallelism.build("plan", tp=bad)


def test_heads_that_do_not_divide_list_what_does() -> None:
    with pytest.raises(InfeasibleError) as caught:
        check(GPT3, Parallelism(tp=5))
    assert str(caught.value) == (
        "plan: tp: 5 is not allowed for gpt3-175b (96 heads, 96 KV heads, "
        "intermediate 49152); allowed: 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96"
    )


def test_forty_heads_on_sixteen_chips() -> None:
    with pytest.raises(InfeasibleError, match=r"allowed: 1, 2, 4, 5, 8, 10, 20, 40$"):
        check(opt(2, 5120, 40), Parallelism(tp=16))


def test_columns_of_the_mlp_must_divide_too() -> None:
    assert allowed_tp(llama(2, 768, 12, intermediate=100)) == (1, 2, 4)


def test_kv_heads_split_or_replicate_evenly() -> None:
    assert allowed_tp(LLAMA2_70B) == (1, 2, 4, 8, 16, 32, 64)
    # 6 divides neither into 4 KV heads nor into a multiple of them; 12 and 24 do
    assert allowed_tp(llama(2, 768, 24, kv_heads=4, intermediate=96)) == (1, 2, 4, 8, 12, 24)


def test_a_stage_has_a_layer_at_least() -> None:
    assert check(GPT3, Parallelism(pp=8)) is None
    assert check(GPT3, Parallelism(tp=8, pp=5)) is None
    with pytest.raises(InfeasibleError) as caught:
        check(GPT3, Parallelism(tp=8, pp=97))
    assert str(caught.value) == (
        "plan: pp: 97 is not allowed for gpt3-175b (96 layers); allowed: 1 to 96"
    )


@given(st.integers(1, 130), st.integers(1, 130))
def test_layers_are_dealt_as_engines_deal_them(pp: int, more: int) -> None:
    """Layers left over go one each to the stages before the last, from the back."""
    layers = pp + more
    expected = [layers // pp] * pp
    for place in range(layers % pp):
        expected[-2 - place] += 1
    found = Parallelism(pp=pp).stage_layers(layers)
    assert list(found) == expected
    assert sum(found) == layers
    assert found[-1] == min(found)


def test_stages_hold_the_layers_in_their_order() -> None:
    held = stages(DEEPSEEK, 4)
    assert [len(stage) for stage in held] == [15, 15, 16, 15]
    assert tuple(layer for stage in held for layer in stage) == DEEPSEEK.sequence


def test_a_dense_model_has_no_experts_to_spread() -> None:
    with pytest.raises(
        InfeasibleError, match=r"ep: 2 .*\(no experts on 2 chips\); allowed: 1$"
    ):
        check(GPT3, Parallelism(tp=2, ep=2))


def test_experts_are_spread_over_the_chips_of_a_stage() -> None:
    for plan in ("tp=8,ep=8", "dp=8,ep=8", "tp=4,dp=16,ep=64", "tp=8,dp=2,ep=4", "tp=8"):
        check(DEEPSEEK, Parallelism.parse(plan))
    with pytest.raises(InfeasibleError, match=r"ep: 16 .*256 experts of 2048 on 8 chips"):
        check(DEEPSEEK, Parallelism(tp=8, ep=16))
    # 3 chips do not hold 256 experts evenly, nor their 2048 columns
    offered = r"ep: 3 .* allowed: none; .* of 2 chips with ep=1\|2 or 4 chips"
    with pytest.raises(InfeasibleError, match=offered):
        check(DEEPSEEK, Parallelism(dp=3, ep=3))


def test_cached_rows_are_split_inside_a_tp_group() -> None:
    check(DEEPSEEK, Parallelism(tp=8, dcp=8))
    with pytest.raises(
        InfeasibleError, match=r"dcp: 3 .*8 copies of a row\); allowed: 1, 2, 4, 8$"
    ):
        check(DEEPSEEK, Parallelism(tp=8, dcp=3))
    check(LLAMA2_70B, Parallelism(tp=32, dcp=4))
    with pytest.raises(
        InfeasibleError, match=r"dcp: 2 .*tp=8: 1 copies of a row\); allowed: 1$"
    ):
        check(LLAMA2_70B, Parallelism(tp=8, dcp=2))


def test_chips_and_groups() -> None:
    plan = Parallelism(tp=4, dp=2, cp=2, ep=8, pp=3)
    assert (plan.stage_chips, plan.chips, plan.expert_tp) == (16, 48, 2)
    ranks = {}
    for rank in range(plan.chips):
        rest, tp = divmod(rank, plan.tp)
        rest, cp = divmod(rest, plan.cp)
        pp, dp = divmod(rest, plan.dp)
        ranks[tp, cp, dp, pp] = rank
    for place, axis in enumerate(("tp", "cp", "dp", "pp")):
        chips, stride = plan.group(axis)  # type: ignore[arg-type]
        peers = [[0, 0, 0, 0] for _ in range(chips)]
        for index, peer in enumerate(peers):
            peer[place] = index
        numbers = [ranks[tuple(peer)] for peer in peers]  # type: ignore[index]
        assert numbers == [index * stride for index in range(chips)]


@pytest.mark.parametrize(
    ("batch", "rank", "parts", "stage"),
    [(1, 1, 1, 1), (8, 4, 4, 1), (9, 5, 4, 2), (64, 32, 4, 8)],
)
def test_sequences_of_a_rank_and_of_a_stage(
    batch: int, rank: int, parts: int, stage: int
) -> None:
    plan = Parallelism(dp=2, pp=4)
    found = plan.rank_batch(batch), plan.microbatches(batch), plan.stage_batch(batch)
    assert found == (rank, parts, stage)


def test_valid_plans_are_all_that_pass_the_check() -> None:
    for model, chips in ((DEEPSEEK, 64), (LLAMA2_70B, 16), (GPT3, 24)):
        for phase, extra in (("prefill", "cp"), ("decode", "dcp")):
            plans = list(valid_plans(model, chips, phase))  # type: ignore[arg-type]
            assert len(plans) == len(set(plans))
            for plan in plans:
                check(model, plan)
                assert plan.chips == chips
            assert {1} < {getattr(plan, extra) for plan in plans} or model is GPT3
            assert {1} == {getattr(plan, "cp" if extra == "dcp" else "dcp") for plan in plans}


def test_no_plan_is_left_out() -> None:
    degrees = list(product(divisors(12), repeat=4))
    passed = set()
    for tp, pp, dp, ep in degrees:
        plan = Parallelism(tp=tp, pp=pp, dp=dp, ep=ep)
        try:
            check(GPT3, plan)
        except InfeasibleError:
            continue
        if plan.chips == 12:
            passed.add(plan)
    assert passed == set(valid_plans(GPT3, 12, "decode"))
