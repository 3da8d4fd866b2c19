"""Searches against brute force: every counts of a small box is run to its end.

Kinds of scenarios: pools apart, pools that lend each other machines (where what holds is
ragged), three pools, chunked prefill, limits in seconds and as slowdown, KV that runs short.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from chipsim.cluster import verdicts
from chipsim.cluster.provision import provision
from chipsim.cluster.scenario import Scenario
from chipsim.cluster.search import Search

STEPS = """phase,batch,tokens,latency_s
prefill,1,1,0.011
prefill,1,1000,0.11
prefill,1,4000,0.41
decode,1,1,0.0101
decode,1,4000,0.012
decode,64,1,0.02
decode,64,4000,0.08
"""

POOL = {"kv_tokens": 20_000, "block": 1, "max_batch": 32, "max_tokens": 2048}
APART = {"prefill": {"role": "prefill"}, "decode": {"role": "decode"}}
LENDING = {
    "pools": {
        name: pool | {"reserve": "prompt", "batching": "splitwise"}
        for name, pool in APART.items()
    },
    "routing": "mixed_pool",
    "handoff": {"bandwidth": 50e9, "contention": "none", "at": "arrival", "retry": 1.0},
}
SECONDS = {"ttft": {"p90": 0.6, "p99": 1.2}, "tpot": {"p90": 0.05}}
Counts = tuple[int, ...]


class Kind(NamedTuple):
    """A kind of scenario: what it changes, how many instances in all, whether it is ragged."""

    fields: dict[str, Any]
    most: int
    ragged: bool = False


KINDS = {
    "apart": Kind({"pools": APART, "slo": SECONDS}, 8),
    "lending at 14/s": Kind(LENDING | {"slo": SECONDS}, 9, ragged=True),
    "lending at 20/s": Kind(LENDING | {"slo": SECONDS, "rate": 20.0}, 10, ragged=True),
    "three pools": Kind(
        {"pools": APART | {"both": {"role": "mixed", "batching": "chunked"}},
         "slo": SECONDS, "rate": 8.0},
        6,
    ),
    "chunked": Kind(
        {
            "pools": {"all": {"role": "mixed", "batching": "chunked", "max_tokens": 256}},
            "slo": {"ttft": {"p90": 0.8}, "itl": {"p99": 0.09}},
        },
        12,
    ),
    "slowdown": Kind(
        {
            "pools": APART,
            "slo": {"slowdown": {"reference": {}, "ttft": {"p90": 3}, "tbt": {"p90": 2.5}}},
        },
        10,
    ),
    "whole requests": Kind({"pools": APART, "slo": {"e2e": {"p50": 5.0, "p95": 20.0}}}, 8),
    "after a warm-up": Kind(LENDING | {"slo": SECONDS | {"warm_up": 9.0}}, 9),
    "slowdown after a warm-up": Kind(
        {
            "pools": APART,
            "slo": {
                "slowdown": {"reference": {}, "ttft": {"p90": 3}, "tbt": {"p90": 2.5}},
                "warm_up": 5.0,
            },
        },
        10,
    ),
    "little memory": Kind(
        {
            "pools": APART | {"decode": {"role": "decode", "kv_tokens": 15_000}},
            "slo": SECONDS,
        },
        10,
    ),
}  # fmt: skip


def built(folder: Path, kind: Kind) -> Scenario:
    """A scenario of a few hundred requests on measured steps."""
    steps = folder / "steps.csv"
    steps.write_text(STEPS)
    fields = dict(kind.fields)
    rate = fields.pop("rate", 14.0)
    on = {"steps": str(steps)}
    pools = {name: on | POOL | pool for name, pool in fields.pop("pools").items()}
    slo = fields.pop("slo")
    if "slowdown" in slo:
        slo = slo | {"slowdown": slo["slowdown"] | {"reference": on}}
    workload = {"base": "azure-conversation", "rate": rate, "requests": 400}
    common = {"name": "small", "model": "llama-3.1-8b", "handoff": {"bandwidth": 50e9}}
    return Scenario.build(
        "small", **(common | {"workload": workload, "pools": pools, "slo": slo} | fields)
    )


def box(search: Search, most: int) -> Iterator[Counts]:
    """All counts up to a total that serve both phases."""
    roles = [pool.role for pool in search.scenario.pools.values()]
    for counts in itertools.product(range(most + 1), repeat=len(roles)):
        served = {role for role, count in zip(roles, counts, strict=True) if count}
        both = all(served & {phase, "mixed"} for phase in ("prefill", "decode"))
        if both and sum(counts) <= most:
            yield counts


def holding(search: Search, most: int) -> list[set[Counts]]:
    """What holds under each seed, by a whole run of everything."""
    return [
        {
            counts
            for counts in box(search, most)
            if search.cluster.run(
                instances=dict(zip(search.pools, counts, strict=True)), workload=served
            ).holds
        }
        for served in search.workloads
    ]


def is_ragged(held: set[Counts], most: int) -> bool:
    """Whether one more instance breaks what fewer hold."""
    return any(
        more not in held and sum(more) <= most
        for counts in held
        for more in ((*counts[:i], counts[i] + 1, *counts[i + 1 :]) for i in range(len(counts)))
    )


def smallest(held: set[Counts]) -> set[Counts]:
    """Counts of which no others that hold are part."""
    return {
        counts
        for counts in held
        if not any(
            other != counts and all(a <= b for a, b in zip(other, counts, strict=True))
            for other in held
        )
    }


def weighed(counts: Counts, weights: Sequence[float]) -> float:
    return sum(count * weight for count, weight in zip(counts, weights, strict=True))


@pytest.mark.parametrize("name", KINDS)
def test_answer_is_that_of_brute_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(verdicts, "FEW_REQUESTS", 1)  # runs are stopped early where they can be
    kind = KINDS[name]
    search = Search(built(tmp_path, kind), (0, 1))
    seeds = holding(search, kind.most)
    both = seeds[0] & seeds[1]
    assert both
    assert is_ragged(seeds[0], kind.most) or not kind.ragged
    for weights in ((1.0, 1.0, 1.0), (0.3, 1.0, 1.1), (1.0, 0.45, 1.2)):
        each = weights[: len(search.pools)]
        by_pool = dict(zip(search.pools, each, strict=True))
        answer = provision(search, weights=by_pool, most=kind.most, spare=1e3)
        assert answer.best is not None
        cheapest = min(weighed(counts, each) for counts in both)
        assert answer.best.goal == pytest.approx(cheapest)
        assert tuple(answer.best.instances.values()) in both
        # Everything of the box was decided, and rightly so.
        found = {tuple(row.instances.values()) for row in answer.tried if row.holds}
        assert found == both
        assert {tuple(row.instances.values()) for row in answer.frontier} == smallest(both)
        apart = provision(search, weights=by_pool, most=kind.most, common=False)
        firsts = [[each and each.instances for each in a.by_seed] for a in (apart, answer)]
        assert firsts[0] == firsts[1]
        assert len(apart.tried) <= len(answer.tried)
        for held, alone in zip(seeds, answer.by_seed, strict=True):
            assert alone is not None
            assert alone.goal == pytest.approx(min(weighed(counts, each) for counts in held))
