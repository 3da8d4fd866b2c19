"""Exchanges of a plan: bytes counted token by token, and which there are."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.ops.graph_parallel import (
    experts_exchange,
    gathered_cache,
    gathered_prefix,
    held_context,
    rank_query,
    split_rows,
    stage_exchange,
    summed,
    zigzag,
)
from chipsim.ops.pairs import attention_pairs
from chipsim.ops.plan import Parallelism


def names(chain: object) -> list[str]:
    return [operator.name for operator in chain]  # type: ignore[attr-defined]


def test_one_rank_of_tokens_is_only_summed() -> None:
    plan = Parallelism(tp=8, ep=8)
    assert experts_exchange(64, 7168, 256, 8, "fp16", plan) == ([], [])
    (reduce,) = summed("all_reduce_mlp", 64 * 7168, "fp16", plan)
    assert (reduce.name, reduce.bytes, reduce.chips) == ("all_reduce_mlp", 64 * 7168 * 2, 8)
    assert summed("all_reduce_mlp", 64 * 7168, "fp16", Parallelism(dp=8)) == []


def brute_force_bytes(plan: Parallelism, experts: int, top_k: int, tokens: int) -> float:
    """Rows that chip 0 sends when every pick of experts comes once, per token."""
    held = experts // plan.ep
    sent: Counter[int] = Counter()
    picks = list(combinations(range(experts), top_k))
    for pick in picks:
        for rank in {expert // held for expert in pick}:
            for part in range(plan.expert_tp):
                sent[rank * plan.expert_tp + part] += 1
    return sum(sent.values()) / len(picks) * tokens / plan.tp


@pytest.mark.parametrize(
    "plan",
    [Parallelism(dp=4, ep=4), Parallelism(dp=4, ep=2), Parallelism(tp=2, dp=2, ep=4),
     Parallelism(tp=2, cp=2, dp=2, ep=4), Parallelism(dp=8, ep=8)],
    ids=str,
)  # fmt: skip
def test_tokens_travel_once_to_each_rank_of_experts(plan: Parallelism) -> None:
    found = experts_exchange(12, 10, 8, 3, "fp8", plan)
    (dispatch,) = found.before
    assert dispatch.bytes == pytest.approx(10 * brute_force_bytes(plan, 8, 3, 12))
    assert dispatch.chips == plan.stage_chips
    assert names(found.after) == ["combine", *(["all_gather_experts"] * (plan.tp > 1))]
    assert found.after[0].bytes == dispatch.bytes


def test_experts_split_by_columns_gather_all_tokens() -> None:
    found = experts_exchange(12, 10, 8, 3, "fp8", Parallelism(tp=2, dp=4))
    assert names(found.before + found.after) == ["all_gather_tokens", "reduce_scatter_experts"]
    assert {(op.bytes, op.chips, op.stride) for op in found.before + found.after} == {
        (4 * 12 * 10, 4, 2)
    }


def test_dispatch_of_deepseek() -> None:
    """64 tokens a rank, 7168 wide in fp8, 8 of 256 experts over 64 ranks: 7.6 ranks a token."""
    (dispatch,) = experts_exchange(64, 7168, 256, 8, "fp8", Parallelism(dp=64, ep=64)).before
    missed = 1.0
    for pick in range(8):
        missed *= (252 - pick) / (256 - pick)
    assert dispatch.bytes == pytest.approx(64 * 7168 * 64 * (1 - missed), rel=1e-12)
    assert 7.1 < dispatch.bytes / (64 * 7168) < 7.9


def test_cached_rows_of_other_ranks() -> None:
    (gather,) = gathered_cache(2, 4096, 576.0, Parallelism(tp=2, cp=4))
    assert (gather.name, gather.bytes, gather.chips, gather.stride) == (
        "all_gather_kv", 2 * 4096 * 576, 4, 2,
    )  # fmt: skip
    assert gathered_cache(2, 4096, 576.0, Parallelism(tp=8)) == []
    assert gathered_prefix(2, 0, 576.0, Parallelism(tp=8, dcp=8)) == []
    (prefix,) = gathered_prefix(2, 100, 576.0, Parallelism(tp=8, dcp=4))
    assert (prefix.bytes, prefix.chips, prefix.stride) == (2 * 100 * 576, 4, 1)


def test_decode_that_splits_the_rows() -> None:
    """16 heads on each of 8 chips, absorbed: queries of 576, results of 512 and a sum."""
    plan = Parallelism(tp=8, dcp=8)
    (query,), (back,) = split_rows(64, 128, 576, 512, "bf16", plan)
    assert (query.name, query.bytes) == ("all_gather_query", 64 * 128 * 576 * 2)
    assert (back.name, back.bytes) == ("reduce_scatter_attention", 64 * 128 * (512 * 2 + 4))
    assert held_context(4097, plan) == 513
    assert split_rows(64, 128, 576, 512, "bf16", Parallelism(tp=8)) == ([], [])


def test_a_stage_hands_over_what_its_tp_chips_share() -> None:
    send, gather = stage_exchange(64, 8192, "fp16", Parallelism(tp=8, pp=2, dp=2))
    assert (send.name, send.bytes, send.stride) == ("send_stage", 64 * 8192 * 2 / 8, 16)
    assert (gather.bytes, gather.chips) == (64 * 8192 * 2, 8)
    assert stage_exchange(64, 8192, "fp16", Parallelism(tp=8)) == []


@given(st.integers(1, 5000), st.integers(0, 5000), st.integers(1, 16))
def test_every_rank_of_a_prompt_has_its_share_of_pairs(
    query: int, prefix: int, cp: int
) -> None:
    slices = zigzag(query, prefix + query, cp)
    assert sum(part for part, _ in slices) == rank_query(query, cp) >= query / cp
    assert rank_query(query, cp) <= query / cp + 2
    pairs = sum(attention_pairs(part, context) for part, context in slices)
    whole = attention_pairs(query, prefix + query)
    assert pairs >= whole / cp * (1 - 1e-12)
    if query % (2 * cp) == 0:
        assert pairs == whole / cp
