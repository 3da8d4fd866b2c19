"""Prefix caches: worked out by hand, against a list, and on a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from chipsim.cluster.engine import (
    Options,
    Outcome,
    Requests,
    codes,
    flat_steps,
    instances,
    links,
    pools,
    run,
    tiers,
    timers,
)
from chipsim.cluster.prefixes import chains
from chipsim.cluster.readers import read_trace
from chipsim.cluster.workload import Workload
from chipsim.errors import ConfigError
from tests.cluster import traces
from tests.cluster.test_against_oracle import APART, PREFIXES, each

if TYPE_CHECKING:
    from tests.cluster.scenarios import Family, Scenario

# 1 ms per prompt token, 10 ms per decode step.
STEPS = flat_steps(np.arange(1001) / 1000, 0.01, 1000, 64)


def given(chains: list[list[int]], prompt: Any, output: Any, **fields: Any) -> Requests:
    """Requests with ids of blocks of 10 tokens."""
    blocks = [name for chain in chains for name in chain]
    start = np.cumsum([0, *map(len, chains)])
    every: dict[str, Any] = {
        "arrival_s": np.arange(len(chains)) * 1e3,
        "prefix_block": 10,
    } | fields
    return Requests.of(
        prompt=np.broadcast_to(prompt, len(chains)),
        output=np.broadcast_to(output, len(chains)),
        block_start=start,
        blocks=blocks,
        **every,
    )


def served(requests: Requests, machines: int = 1, **fields: Any) -> Outcome:
    """By machines of one rank with a cache."""
    given = {"prefix_cache": 1, "block": 10, "kv_blocks": 1000, "max_tokens": 1000}
    own = {
        name: fields.pop(name)
        for name in list(fields)
        if name in set(pools().dtype.names or ())
    }
    every: dict[str, Any] = {"instances": instances([0] * machines)} | fields
    return run(requests, STEPS, pools(1, **given | own), **every)


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


# ---------------------------------------------------------------- routing


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


# ---------------------------------------------------------------- tiers


@pytest.mark.parametrize("block_s", [0.004, 0.009, 0.011])
def test_what_fell_is_loaded_if_that_is_faster(block_s: float) -> None:
    """10 tokens are computed in 10 ms: 3 blocks and 1 ms of latency take 13, 28 or 34 ms."""
    requests = given([[0, 1, 2], [4, 5, 6], [0, 1, 2]], 35, 1)
    below = tiers(1, room=[9, 0, 0], latency_s=1e-3, block_s=block_s)
    outcome = served(requests, kv_blocks=4, tiers=below)
    last = outcome.requests[2]
    loads = 0.001 + 3 * block_s < 0.030
    assert last["loaded"] == (30 if loads else 0)
    took = 0.001 + 3 * block_s + 0.005 if loads else 0.035
    assert last["finish_s"] - last["arrival_s"] == pytest.approx(took)
    assert last["prefill_start_s"] == pytest.approx(2e3 + (took - 0.005 if loads else 0.0))


def test_blocks_fall_from_tier_to_tier_and_are_read_by_all_from_the_last() -> None:
    """Rank 0 pushes a prompt out, through a tier of one block, into the store; rank 1 reads."""
    requests = given([[0, 1, 2], [3], [4, 5, 6], [0, 1, 2]], [35, 12, 35, 35], 1)
    below = tiers(1, room=[1, 1, 9], block_s=1e-4)
    outcome = served(
        requests, 2, kv_blocks=4, tiers=below, options=Options(routing=codes.ROUND_ROBIN)
    )
    assert outcome.requests["prefill_instance"].tolist() == [0, 1, 0, 1]
    # Of 0 1 2 the end fell first: 0 is in the host's memory, 1 on its disk, 2 in the store.
    assert outcome.requests["loaded"].tolist() == [0, 0, 0, 0]
    wider = served(
        requests, 2, kv_blocks=4, tiers=tiers(1, room=[0, 0, 9], block_s=1e-4),
        options=Options(routing=codes.ROUND_ROBIN),
    )  # fmt: skip
    assert wider.requests["loaded"].tolist() == [0, 0, 0, 30]


def test_loads_of_a_rank_wait_for_each_other() -> None:
    requests = given(
        [[0, 1, 2], [4, 5, 6], [8, 9, 10, 11], [0, 1, 2], [4, 5, 6]], [35, 35, 75, 35, 35], 1,
        arrival_s=[0.0, 10.0, 20.0, 30.0, 30.0],
    )  # fmt: skip
    below = tiers(1, room=[20, 0, 0], block_s=0.003)
    rows = served(requests, kv_blocks=8, tiers=below).requests
    assert rows["loaded"].tolist() == [0, 0, 0, 30, 30]
    assert rows["prefill_start_s"][3:].tolist() == pytest.approx([30.009, 30.018])


# ---------------------------------------------------------------- one index for a pool

SEND_A_TOKEN = 1e-4
"""Seconds: a tenth of computing it."""
TURN_ABOUT = Options(routing=codes.ROUND_ROBIN)


def pooled(requests: Requests, machines: int = 2, **fields: Any) -> Outcome:
    """As `served`, round robin, each rank finding what the others have."""
    every: dict[str, Any] = {
        "prefix_cache": codes.BY_POOL,
        "options": TURN_ABOUT,
        "links": links(1, bytes_per_s=1 / SEND_A_TOKEN, bytes_per_token=1.0),
    }
    return served(requests, machines, **(every | fields))


@pytest.mark.parametrize("latency_s", [0.005, 0.026, 0.028])
def test_a_rank_is_sent_what_another_has_if_that_is_faster(latency_s: float) -> None:
    """30 tokens take 30 ms to compute, 3 ms and the latency to be sent, 2 ms converted."""
    ways = links(
        1, bytes_per_s=1e4, bytes_per_token=1.0, latency_s=latency_s - 0.002,
        dequant_bytes_per_s=15e3,
    )  # fmt: skip
    rows = pooled(given([[0, 1, 2]] * 3, 35, 1), links=ways).requests
    sends = latency_s + 0.003 < 0.030
    assert rows["cached"].tolist() == [0, 0, 30]
    assert rows["loaded"].tolist() == [0, 30 if sends else 0, 0]
    took = latency_s + 0.008 if sends else 0.035
    assert rows["finish_s"][1] - rows["arrival_s"][1] == pytest.approx(took)


def test_the_rank_that_has_most_of_a_prompt_sends_it_and_keeps_it() -> None:
    """One has two blocks of it, one four, and the third then has four as well."""
    requests = given([[0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3]], [25, 45, 55, 45], 1)
    outcome = pooled(requests, 3)
    assert outcome.requests["loaded"].tolist() == [0, 20, 40, 20]
    assert outcome.requests["cached"].tolist() == [0, 0, 0, 20]
    assert outcome.caches["loaded"][:3].tolist() == [20, 60, 0]
    alone = pooled(requests, 3, prefix_cache=codes.BY_RANK)
    assert alone.requests["loaded"].sum() == 0


def test_what_is_being_sent_stays_where_it_is() -> None:
    """The sender has room for another prompt only once the first one's blocks are sent."""
    requests = given([[0, 1, 2], [0, 1, 2], [4, 5, 6]], 35, 1, arrival_s=[0.0, 1.0, 1.001])
    ways = links(1, bytes_per_s=2e3, bytes_per_token=1.0)
    rows = pooled(requests, kv_blocks=4, links=ways).requests
    assert rows["prefill_instance"].tolist() == [0, 1, 0]
    assert rows["loaded"].tolist() == [0, 30, 0]
    assert rows["prefill_start_s"][1:].tolist() == pytest.approx([1.015, 1.015])


def test_senders_send_one_at_a_time_where_their_cards_are_shared() -> None:
    requests = given([[0, 1, 2]] * 3, 35, 1, arrival_s=[0.0, 1.0, 1.0])
    for contention, starts in ((codes.NIC, [1.003, 1.006]), (codes.NO_CONTENTION, [1.003] * 2)):
        ways = links(1, bytes_per_s=1e4, bytes_per_token=1.0, contention=contention)
        rows = pooled(requests, 3, links=ways).requests
        assert rows["prefill_start_s"][1:].tolist() == pytest.approx(starts)


def test_pools_do_not_know_what_other_pools_have() -> None:
    requests = given([[0, 1, 2]] * 2, 35, 1)
    steps = pools(2, prefix_cache=codes.BY_POOL, block=10, kv_blocks=1000, max_tokens=1000)
    outcome = run(requests, STEPS, steps, instances([0, 1]), options=TURN_ABOUT)
    assert outcome.requests["loaded"].tolist() == [0, 0]


def test_what_a_failed_rank_was_sending_is_sent_by_another_or_computed() -> None:
    """At 1.010 s the sender fails; the third rank, if it has the prompt, sends it anew."""
    chains = [[0, 1, 2], [0, 1, 2], [0, 1, 2]]
    ways = links(1, bytes_per_s=2e3, bytes_per_token=1.0)
    for second, start in (([9], 1.010), ([0, 1, 2], 1.025)):
        chains[1] = second
        requests = given(chains, [35, 10 * len(second) + 5, 35], 1, arrival_s=[0.0, 0.9, 1.0])
        fault = timers([(1.010, codes.FAULT, 0, 0)])
        rows = pooled(requests, 3, links=ways, timers=fault).requests
        assert rows["prefill_instance"].tolist() == [0, 1, 2]
        assert rows["prefill_start_s"][2] == pytest.approx(start)
        assert rows["loaded"][2] == (30 if start > 1.02 else 0)


# ---------------------------------------------------------------- next turns

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


# ---------------------------------------------------------------- chains


def workload(**fields: Any) -> Workload:
    given = {"arrival_s": [0.0, 1.0, 2.0], "prompt_tokens": [9, 20, 14]}
    return Workload(**{**given, "output_tokens": [4, 1, 1], **fields})


def test_chains_stand_for_all_before_them() -> None:
    """Id 7 behind 1 is not id 7 behind 2; a block that is not whole is left out."""
    trace = workload(
        block_ids=[1, 7, 9, 2, 7, 5, 8, 8, 1, 7, 9, 9],
        block_offsets=[0, 3, 8, 12],
        block_tokens=4,
    )
    start, ids, size = chains(trace)
    assert (start.tolist(), size) == ([0, 2, 7, 10], 4)
    first, second, third = (ids[start[i] : start[i + 1]].tolist() for i in range(3))
    assert first == third[:2]
    assert not set(second) & {*first, *third}
    assert len({*first, *second, *third}) == 5 + 3


def test_a_chain_goes_on_over_output_that_the_next_prompt_holds() -> None:
    turns = {"parent": [-1, 0, -1], "block_tokens": 4}
    trace = workload(block_ids=[1, 2, 1, 2, 3, 4, 5], block_offsets=[0, 2, 7, 7], **turns)
    start, ids, _ = chains(trace)
    # 9 + 4 tokens: three blocks.
    assert np.diff(start).tolist() == [3, 5, 0]
    assert ids[:3].tolist() == ids[3:6].tolist()
    other = workload(block_ids=[1, 2, 1, 9, 3, 4, 5], block_offsets=[0, 2, 7, 7], **turns)
    assert np.diff(chains(other).start).tolist() == [2, 5, 0]


def test_turns_without_blocks_get_them_by_place() -> None:
    long = {"prompt_tokens": [1030, 2100, 1500], "output_tokens": [600, 1, 1]}
    start, ids, size = chains(workload(**long, parent=[-1, 0, 1]))
    assert size == 512
    # The third is shorter than what was said before: another conversation.
    assert np.diff(start).tolist() == [3, 4, 2]
    assert ids[:3].tolist() == ids[3:6].tolist()
    assert not set(ids[7:]) & set(ids[:7])


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
