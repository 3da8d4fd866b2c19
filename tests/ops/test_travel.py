"""What tokens and experts exchange under a plan, against rows counted chip by chip."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from chipsim.ops.graph import Phase, layer_graph
from chipsim.ops.operators import Collective
from chipsim.ops.plan import Parallelism
from tests.ops.models import llama

if TYPE_CHECKING:
    from chipsim.ops.model import ModelSpec

EXPERTS, TOP_K, HIDDEN = 8, 3, 768
PLANS = [
    "dp=4,ep=4", "dp=8,ep=8", "dp=4,ep=2", "dp=8,ep=2", "tp=2,dp=2,ep=4", "tp=2,dp=2,ep=2",
    "tp=4,dp=2,ep=4", "dp=8", "tp=2,dp=4,ep=2",
]  # fmt: skip


def moe() -> ModelSpec:
    mlp = {"kind": "moe", "experts": EXPERTS, "top_k": TOP_K, "intermediate": 64}
    return llama(2, HIDDEN, 8, mlp=mlp, intermediate=2048)


def exchanges(plan: Parallelism, batch: int) -> dict[str, Collective]:
    graph = layer_graph(moe(), Phase.decode(batch, 64), plan)
    found = (node["operator"] for _, node in graph.nodes(data=True))
    return {op.name: op for op in found if isinstance(op, Collective)}


def rows_by_chip(plan: Parallelism, tokens: int) -> tuple[float, float]:
    """Rows that one chip sends in the all-to-all, and that it has after the gather.

    Every pick of experts comes once per token; a chip sends its part of the rank's tokens
    to the chips of its place in each expert group, which then share what they got.
    """
    picks = list(combinations(range(EXPERTS), TOP_K))
    held = EXPERTS // plan.ep
    # tokens that a chip answers for: an equal part of those that its tp chips and, in the
    # same place of the other ranks of experts, nobody else sends
    twins = plan.tp if plan.expert_tp > plan.tp else plan.tp // plan.expert_tp
    each = tokens / twins
    sent: Counter[int] = Counter()
    for pick in picks:
        for rank in {expert // held for expert in pick}:
            sent[rank] += 1
    out = sum(sent.values()) / len(picks) * each
    arrived = sent[0] / len(picks) * each * plan.ep  # as much from every place
    return out, arrived * plan.expert_tp


@pytest.mark.parametrize("text", PLANS)
def test_rows_travel_as_counted(text: str) -> None:
    plan = Parallelism.parse(text)
    tokens = 16
    found = exchanges(plan, tokens * plan.dp)
    out, gathered = rows_by_chip(plan, tokens)
    if plan.ep > 1:
        for name in ("dispatch", "combine"):
            assert found[name].bytes == pytest.approx(out * HIDDEN * 2)
            assert (found[name].chips, found[name].stride) == (plan.ep, plan.expert_tp)
    if plan.expert_tp > plan.tp:
        for name in ("gather_rows", "scatter_sums"):
            assert found[name].bytes == pytest.approx(gathered * HIDDEN * 2)
            assert (found[name].chips, found[name].stride) == (plan.expert_tp, 1)
    else:
        assert "gather_rows" not in found


@pytest.mark.parametrize("text", ["tp=8,ep=8", "tp=8", "tp=4,ep=2"])
def test_one_rank_of_tokens_is_only_summed(text: str) -> None:
    names = set(exchanges(Parallelism.parse(text), 16))
    assert names == {"all_reduce_attention", "all_reduce_mlp"}


def test_no_plan_no_exchange() -> None:
    assert exchanges(Parallelism(), 16) == {}
