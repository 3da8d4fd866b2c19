"""Plans: how they are written, and which ones a model allows."""

from __future__ import annotations

import pytest

from chipsim.errors import ConfigError, InfeasibleError
from chipsim.ops.parallelism import Parallelism, allowed_tp, check
from tests.ops.models import GPT3, LLAMA2_70B, llama, opt


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
    assert allowed_tp(llama(2, 768, 12, intermediate=100)) == [1, 2, 4]


def test_kv_heads_split_or_replicate_evenly() -> None:
    assert allowed_tp(LLAMA2_70B) == [1, 2, 4, 8, 16, 32, 64]
    # 6 divides neither into 4 KV heads nor into a multiple of them; 12 and 24 do
    assert allowed_tp(llama(2, 768, 24, kv_heads=4, intermediate=96)) == [1, 2, 4, 8, 12, 24]


@pytest.mark.parametrize("degree", ["pp", "ep", "dp"])
def test_only_tensor_parallelism_builds_graphs(degree: str) -> None:
    with pytest.raises(InfeasibleError, match=f"plan: {degree}: 2 is not allowed; allowed: 1"):
        check(GPT3, Parallelism.parse(f"{degree}=2"))
