"""Prefix caches: worked out by hand, against a list, and on a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from chipsim.cluster.engine import Options, Requests, codes, flat_steps, instances, pools, run
from chipsim.cluster.prefixes import chains
from chipsim.cluster.readers import read_trace
from chipsim.errors import ConfigError
from tests.cluster import traces
from tests.cluster.prefixed import STEPS, given, served
from tests.cluster.test_against_oracle import APART, PREFIXES, each

if TYPE_CHECKING:
    from tests.cluster.scenarios import Family, Scenario


def test_a_second_turn_computes_what_is_new() -> None:
    """Prompt 95, output 8: 102 tokens of KV; the next prompt, of 120, finds the first 100."""
    requests = given(
        [list(range(10)), list(range(12))], [95, 120], [8, 3],
        arrival_s=[0.0, 0.0], parent=[-1, 0], think_s=[0.0, 5.0],
    )  # fmt: skip
    first, second = served(requests).requests
    assert first["finish_s"] == pytest.approx(0.095 + 7 * 0.01)
    assert second["cached"] == 100
    assert second["first_token_s"] == pytest.approx(first["finish_s"] + 5.0 + 0.020)
    assert second["finish_s"] == pytest.approx(second["first_token_s"] + 0.02)


def test_one_token_of_a_known_prompt_is_computed() -> None:
    outcome = served(given([[0, 1, 2]] * 2, 30, 1))
    assert outcome.requests["cached"].tolist() == [0, 29]
    assert outcome.requests["finish_s"][1] == pytest.approx(1e3 + 0.001)


def test_prompts_of_one_step_do_not_find_each_other_but_share_memory() -> None:
    requests = given([[0, 1, 2]] * 2, 30, 101, arrival_s=[0.0, 0.0])
    outcome = served(requests, kv_blocks=28)
    assert outcome.requests["cached"].tolist() == [0, 0]
    # The third finds room only since two hold the same three blocks.
    three = given([[0, 1, 2]] * 3, 30, 101, arrival_s=[0.0, 0.0, 0.5])
    late = served(three, kv_blocks=36).requests[2]
    assert late["cached"] == 29
    assert late["prefill_start_s"] < 1.0
    alone = served(three, kv_blocks=36, prefix_cache=0).requests[2]
    assert alone["prefill_start_s"] > 1.0


def test_attention_reads_what_was_found() -> None:
    """Seconds by new x earlier tokens: 20 new ones after 100."""
    steps = STEPS._replace(
        prompts=np.array([[[[0.0, 1.0]] * 2] * 2]), prefixes=np.array([[0.0, 200.0, np.inf]]),
        queries=np.array([[1.0, 1e3, np.inf]]), batches=np.array([[1.0, 2.0, np.inf]]),
    )  # fmt: skip
    requests = given([list(range(10)), list(range(12))], [100, 120], 1)
    outcome = run(
        requests, steps, pools(1, prefix_cache=1, block=10, max_tokens=1000), instances([0])
    )
    assert outcome.requests["finish_s"][1] == pytest.approx(1e3 + 0.020 + 100 / 200)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("room", [4, 7, 20, 60])
def test_what_goes_is_what_was_let_go_longest_ago(seed: int, room: int) -> None:
    """One request at a time: a list of blocks, the end of each chain before its beginning."""
    random = np.random.default_rng(seed)
    trees: list[list[int]] = []
    for _ in range(60):
        known = trees[random.integers(len(trees))] if trees else []
        common = known[: random.integers(0, 4)]
        new = max((max(chain) for chain in trees if chain), default=-1) + 1
        trees.append([*common, *range(new, new + int(random.integers(0, 4 - len(common))))])
    held: list[int] = []  # oldest first
    hits = []
    for chain in trees:
        count = 0
        while count < len(chain) and chain[count] in held:
            count += 1
        hits.append(count * 10)
        held = [name for name in held if name not in chain]
        own = 4  # blocks of a prompt of 35 tokens
        while len(held) + own > room:
            held.pop(0)
        held += reversed(chain)
    outcome = served(given(trees, 35, 1), kv_blocks=room)
    assert outcome.requests["cached"].tolist() == hits


def test_a_cache_without_bounds_finds_every_prefix_of_a_trace() -> None:
    """Mooncake's synthetic trace, one request at a time; 65.0 % of its tokens, by a set."""
    workload = read_trace(traces.reference("mooncake_synthetic_trace.jsonl"))
    start, ids, size = chains(workload)
    seen: set[int] = set()
    expected = []
    for i, prompt in enumerate(workload.prompt_tokens.tolist()):
        chain = ids[start[i] : start[i + 1]].tolist()
        count = next((j for j, name in enumerate(chain) if name not in seen), len(chain))
        expected.append(min(count * size, prompt - 1))
        seen.update(chain)
    requests = Requests.of(
        np.arange(len(workload)) * 1e3, workload.prompt_tokens, workload.output_tokens,
        block_start=start, blocks=ids, prefix_block=size,
    )  # fmt: skip
    outcome = run(
        requests,
        flat_steps(1.0, 1e-3, 16, 4),
        pools(1, prefix_cache=1, block=16),
        instances([0]),
    )
    assert outcome.requests["cached"].tolist() == expected
    assert sum(expected) / workload.prompt_tokens.sum() == pytest.approx(0.650, abs=0.001)


def test_more_memory_finds_no_less() -> None:
    """LRU holds what a smaller one holds: one request at a time."""
    random = np.random.default_rng(3)
    chains = [[name, 100 + name, 200 + name] for name in random.zipf(1.3, 400) % 60]
    found = [
        served(given(chains, 31, 1), kv_blocks=room).requests["cached"].sum()
        for room in (4, 10, 40, 100, 1000)
    ]
    assert found == sorted(found)
    assert found[0] < found[-1]


@pytest.mark.parametrize(
    "family",
    [
        PREFIXES.but(ranks=2),
        PREFIXES.but(tiers=True),
        PREFIXES.but(tiers=True, pooled=True),
        APART.but(prefixes=True, turns=True),
    ],
    ids=["ranks", "tiers", "pooled", "apart"],
)
def test_found_loaded_and_computed_tokens_are_those_of_the_prompts(family: Family) -> None:
    family = family.but(reserve=("final",))  # nothing is computed twice

    def conserved(scenario: Scenario) -> None:
        outcome = run(**scenario.given())
        got = outcome.requests
        done = np.isfinite(got["prefill_end_s"])
        assert (got["status"] != codes.UNFINISHED).all()
        found = [got[name][done].sum() for name in ("cached", "loaded")]
        assert found[0] == outcome.instances["found_tokens"].sum()
        assert found[1] == outcome.instances["loaded_tokens"].sum()
        # Counted step by step.
        computed = outcome.steps["prompt_tokens"].sum()
        assert sum(found) + computed == got["prompt"][done].sum()

    each(family, 40, conserved)


def test_what_cannot_be_is_named() -> None:
    for changes, named in (
        ({"prefix_block": 7}, "pools: block"),
        ({"blocks": [0, 1, 1, 0], "block_start": [0, 2, 4]}, "requests: blocks"),
        ({"block_start": [0, 3, 2]}, "requests: block_start"),
    ):
        requests = given([[0, 1], [0, 1]], 20, 1)
        wrong: dict[str, Any] = {
            name: value if name == "prefix_block" else np.array(value)
            for name, value in changes.items()
        }
        with pytest.raises(ConfigError, match=named):
            served(requests._replace(**wrong))
    store = Options(next_turn=codes.WRITE_TO_STORE)
    with pytest.raises(ConfigError, match="next_turn"):
        served(given([[0]], 20, 1), options=store)
