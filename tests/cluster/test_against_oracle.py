"""The engine equals the plain step-by-step engine of `oracle`, token by token."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from chipsim.cluster.engine import Outcome, codes, run
from tests.cluster.oracle.loop import play
from tests.cluster.oracle.state import Cluster
from tests.cluster.scenarios import Family, Scenario, scenarios, seeded

COLOCATED = Family()
PAIRS = Family(roles=("prefill", "decode", "mixed"))
TIGHT = Family(reserve=("prompt",), room=(40, 55))
CHANGED = PAIRS.but(
    ranks=2, decode_at=("arrival", "prefill_end"), keep_mixed=(True, False),
    retry=(0.0, 1 / 32), overlap=("serial", "layerwise", "stream"), room=(40, 80),
)  # fmt: skip
PREFIXES = COLOCATED.but(prefixes=True)
TIERS = PREFIXES.but(tiers=True, ranks=2, turns=True, room=(25, 45))
APART = PAIRS.but(
    decode_at=("arrival", "prefill_end"), ranks=2, overlap=("serial", "layerwise")
)
NEXT_TURNS = APART.but(
    prefixes=True,
    turns=True,
    tiers=True,
    next_turn=("write_back", "shared"),
    roles=("prefill", "decode"),
)
STREAM = PAIRS.but(batching=("chunked",), overlap=("stream",))

FAMILIES = {
    "prefill_first": COLOCATED.but(batching=("prefill_first",)),
    "decode_first": COLOCATED.but(batching=("decode_first",)),
    "chunked": COLOCATED.but(batching=("chunked",)),
    "ranks": COLOCATED.but(ranks=3),
    "recompute": TIGHT.but(preemption=("recompute",)),
    "swap": TIGHT.but(preemption=("swap",)),
    "chunked_tight": TIGHT.but(batching=("chunked",), batch=5, tokens=9),
    "hand_off": PAIRS,
    "layerwise": PAIRS.but(overlap=("layerwise",)),
    "stream": STREAM.but(decode_at=("arrival",)),
    "at_arrival": PAIRS.but(decode_at=("arrival",), ranks=2, overlap=("serial", "layerwise")),
    "retry": PAIRS.but(retry=(1 / 32, 1.0), decode_at=("arrival", "prefill_end")),
    "preempted_elsewhere": PAIRS.but(
        reserve=("prompt",), room=(40, 55), batch=3, decode_at=("arrival", "prefill_end")
    ),
    "swapped_elsewhere": PAIRS.but(
        reserve=("prompt",), preemption=("swap",), room=(45, 60), batch=2
    ),
    "turns": PAIRS.but(turns=True),
    "bounds": PAIRS.but(bounds=True, turns=True),
    "moves_on": PAIRS.but(
        keep_mixed=(False,),
        ranks=2,
        decode_at=("arrival", "prefill_end"),
        overlap=("serial", "stream"),
        batching=("prefill_first", "chunked"),
        room=(40, 80),
    ),
    "fails": COLOCATED.but(faults=True, ranks=2, turns=True),
    "fails_apart": PAIRS.but(
        faults=True,
        ranks=2,
        decode_at=("arrival", "prefill_end"),
        retry=(0.0, 1 / 32),
        overlap=("serial", "layerwise", "stream"),
    ),
    "switches": CHANGED.but(switches=True),
    "by_load": CHANGED.but(load=True),
    "everything": CHANGED.but(switches=True, load=True, faults=True, turns=True, exact=False),
    "prefixes": PREFIXES.but(batching=("prefill_first", "decode_first"), ranks=2),
    "prefixes_tight": PREFIXES.but(reserve=("prompt",), room=(40, 55)),
    "prefixes_apart": APART.but(prefixes=True, turns=True),
    "prefixes_stream": STREAM.but(prefixes=True, decode_at=("arrival",)),
    "tiers": TIERS,
    "tiers_lost": TIERS.but(faults=True, far=True),
    "tiers_chunked": PREFIXES.but(tiers=True, batching=("chunked",), tokens=24, exact=False),
    "tiers_fail": CHANGED.but(
        prefixes=True, tiers=True, faults=True, turns=True, switches=True
    ),
    "pooled": PREFIXES.but(pooled=True, ranks=2),
    "pooled_tight": PREFIXES.but(
        pooled=True, ranks=2, reserve=("prompt",), room=(40, 55), exact=False
    ),
    "pooled_tiers": PREFIXES.but(pooled=True, tiers=True, turns=True, room=(25, 45)),
    "pooled_fail": CHANGED.but(
        prefixes=True, pooled=True, faults=True, turns=True, switches=True, rates=(32.0, 16.0)
    ),
    "pooled_lost": PREFIXES.but(
        pooled=True,
        faults=True,
        turns=True,
        ranks=2,
        rates=(16.0,),
        reserve=("final",),
        room=(60, 80),
    ),
    "next_turns": NEXT_TURNS,
    "next_turns_fail": NEXT_TURNS.but(faults=True, roles=("prefill", "decode", "mixed")),
    "rough": PAIRS.but(exact=False, ranks=2, overlap=("serial", "layerwise", "stream")),
}
"""What the scenarios of a test have in common."""

REACHED = {
    "prefill_first": "finished too_large queue_full budget batch_full no_room grown",
    "decode_first": "finished prefill_s decode_s budget",
    "chunked": "mixed_s partial no_room batch_full",
    "ranks": "mixed_s preempted_decoding",
    "recompute": "preempted_decoding grown",
    "swap": "swap_out swap_in",
    "chunked_tight": "preempted_decoding preempted_prefilling swap_in",
    "hand_off": "transfers hand_off_waits nic_waits dequantised no_instance",
    "layerwise": "layerwise nic_waits hand_off_waits",
    "stream": "pieces partial nic_waits transfers",
    "at_arrival": "bound hand_off_waits layerwise",
    "retry": "asked_again bound transfers",
    "preempted_elsewhere": "recompute_elsewhere bound started_over",
    "swapped_elsewhere": "swap_in started_over swapped_waits_for_batch",
    "turns": "turns parent_lost transfers",
    "bounds": "unfinished turns parent_lost max_time max_events",
    "moves_on": "stays_after_all bound transfers",
    "fails": "lost_waiting lost_prefilling lost_decoding recovered outside turns no_instance",
    "fails_apart": (
        "lost_transferring lost_handing_off lost_decoding recovered unbound_waiting outside "
        "asked_again"
    ),
    "switches": "switched sent_away transfers too_large",
    "by_load": "switched_to_prefill switched_to_decode stays_after_all",
    "everything": "switched lost_decoding recovered swap_in turns",
    "prefixes": "found all_found shared forgotten found_later",
    "prefixes_tight": "found forgotten preempted_decoding",
    "prefixes_apart": "found base twice forgotten",
    "prefixes_stream": "found base",
    "tiers": "loads_0 began_loaded",
    "tiers_lost": "lost_decoding recovered",
    "tiers_chunked": "began_loaded",
    "tiers_fail": "found base lost_decoding recovered switched",
    "pooled": "peer_loads began_loaded peer_idle",
    "pooled_tight": "found preempted_decoding",
    "pooled_tiers": "peer_loads",
    "pooled_fail": "peer_loads found base recovered",
    "pooled_lost": "peer_loads recovered",
    "next_turns": "stored",
    "next_turns_fail": "stored",
    "rough": "layerwise transfers mixed_s preempted_decoding",
}
"""What must have happened in them, or they test less than they say."""

MANIFOLD = ("everything", "tiers_fail", "pooled_fail", "next_turns_fail", "rough")
"""Families that leave most open."""

LOST = ("fails_apart", "tiers_lost", "pooled_lost", "next_turns_fail")
DEPTH = dict.fromkeys(FAMILIES, 500) | dict.fromkeys(LOST, 1000)
"""Scenarios of a family where they are many: more where what it is for is rare."""

IN_DEPTH = {
    "prefixes_tight": "twice swap_in",
    "prefixes_apart": "all_there bound layerwise",
    "prefixes_stream": "pieces all_there",
    "tiers": "loads_1 loads_2 load_waits loads_again faster_computed",
    "tiers_chunked": "loads_0 loads_1 loads_2 faster_computed twice",
    "tiers_lost": "began_loaded lost_loading loads_0 loads_2",
    "tiers_fail": "loads_0 loads_2 lost_transferring",
    "pooled": "peer_waits twice",
    "pooled_tight": "peer_loads twice swap_in",
    "pooled_tiers": "loads_0 loads_1 loads_2 loads_again",
    "pooled_fail": "faster_computed",
    "pooled_lost": "lost_loading faster_computed",
    "next_turns": "returned no_room_to_return loads_2",
    "next_turns_fail": "returned stopped_writing",
    "fails_apart": "lost_arrived lost_ready unbound_prefilling unbound_handing_off no_place",
    "moves_on": "pieces",
    "switches": "no_instance stays_after_all",
    "everything": "stays_after_all no_place",
}
"""What must have happened besides where there are more of them."""

TIMES = {
    "arrival_s": "arrival", "queue_start_s": "queue_start", "prefill_start_s": "prefill_start",
    "prefill_end_s": "prefill_end", "transfer_start_s": "transfer_start",
    "transfer_end_s": "transfer_end", "decode_start_s": "decode_start", "finish_s": "finish",
}  # fmt: skip
COUNTS = ("prompt", "output", "emitted", "cached", "loaded", "preemptions", "retries")
TOTALS = (
    "prefill_s", "decode_s", "mixed_s", "steps", "prompt_tokens", "decode_tokens", "joules",
    "used_seconds", "found_tokens", "loaded_tokens", "returned_tokens",
)  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_engine_equals_the_plain_one(name: str) -> None:
    check(name, 50, REACHED[name])


@pytest.mark.parametrize("name", MANIFOLD)
def test_engine_equals_the_plain_one_wherever_hypothesis_looks(name: str) -> None:
    each(FAMILIES[name], 50, agrees)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_engine_equals_the_plain_one_in_depth(name: str) -> None:
    check(name, DEPTH[name], f"{REACHED[name]} {IN_DEPTH.get(name, '')}")


def test_every_policy_is_drawn() -> None:
    seen: Counter[str] = Counter()
    each(FAMILIES["at_arrival"], 60, lambda scenario: seen.update(policies(scenario)))
    everyones = ("round_robin", "random", "least_requests", "least_tokens", "least_kv")
    wanted = {f"routing {codes.ROUTING[name]}" for name in everyones}
    wanted |= {f"decode_{policy}" for policy in wanted}
    wanted |= {f"order {order}" for order in codes.ORDER.values()}
    wanted |= {f"first token {side}" for side in codes.FIRST_TOKEN_FROM.values()}
    assert wanted <= set(seen)


def policies(scenario: Scenario) -> list[str]:
    options = scenario.options
    return [
        f"routing {options.routing}",
        f"decode_routing {options.decode_routing}",
        f"first token {options.first_token_from}",
        *(f"order {pool['order']}" for pool in scenario.pools),
    ]


def check(name: str, examples: int, reached: str) -> None:
    """Compare on many scenarios of a family, and see that they reach what they are for."""
    seen: Counter[str] = Counter()
    for seed in range(examples):
        try:
            seen += agrees(seeded(FAMILIES[name], seed))
        except Exception as error:
            error.add_note(f"seeded(FAMILIES[{name!r}], {seed})")
            raise
    if seen["unfinished"]:
        assert FAMILIES[name].bounds  # else all are served, or turned away with a reason
    missed = set(reached.split()) - set(seen)
    assert not missed


def agrees(scenario: Scenario) -> Counter[str]:
    """See that both say the same; what came to pass, as often as it did."""
    oracle = play(Cluster(**scenario.given()))
    outcome = run(**scenario.given())
    compare(outcome, oracle)
    unlogged = scenario.options._replace(log_steps=False)
    equal(run(**scenario.given() | {"options": unlogged}), outcome)
    return oracle.seen + Counter([oracle.stopped, *(job.status for job in oracle.jobs)])


def each(family: Family, examples: int, act: Any) -> None:
    """Do something with each of so many scenarios that hypothesis draws.

    Which ones depends on what else was imported: it tries numbers that it finds there.
    """

    # Shrinking takes minutes, and a scenario fits on a screen as it is.
    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(scenarios(family))
    def one(scenario: Scenario) -> None:
        act(scenario)

    one()


def equal(ahead: Outcome, outcome: Outcome) -> None:
    """Steps that are planned ahead, as they are where none is logged, change not a bit."""
    assert ahead.requests.tobytes() == outcome.requests.tobytes()
    gaps = [np.sort(np.repeat(each.gaps, each.gap_counts)) for each in (ahead, outcome)]
    np.testing.assert_array_equal(gaps[0], gaps[1])
    for name in TOTALS:
        np.testing.assert_array_equal(ahead.instances[name], outcome.instances[name], name)
    for name in ("stopped", "end_s", "events", "emitted"):
        assert getattr(ahead, name) == getattr(outcome, name), name


def compare(outcome: Outcome, oracle: Cluster) -> None:
    """Request by request, gap by gap."""
    got, jobs = outcome.requests, oracle.jobs
    assert outcome.stopped == oracle.stopped
    same([codes.STATUS[i] for i in got["status"]], [job.status for job in jobs], "status")
    same([codes.REASON[i] for i in got["reason"]], [job.reason for job in jobs], "reason")
    for name in COUNTS:
        same(got[name], [getattr(job, name) for job in jobs], name)
    first = [job.tokens_at[0] if job.tokens_at else np.nan for job in jobs]
    close(got["first_token_s"], first, "first_token_s")
    arrived = np.array([job.arrived for job in jobs])
    for name, mine in TIMES.items():
        times = np.array([getattr(job, mine) for job in jobs])
        known = arrived if name == "arrival_s" else slice(None)
        close(got[name][known], times[known], name)
    for side in ("prefill", "decode"):
        ranks = [getattr(job, side) for job in jobs]
        same(got[side + "_rank"], [rank.number if rank else -1 for rank in ranks], side)
        machines = [rank.machine.index if rank else -1 for rank in ranks]
        same(got[side + "_instance"], machines, side)
    gaps = np.repeat(outcome.gaps, outcome.gap_counts)
    close(np.sort(gaps), np.sort(oracle.gaps), "gaps")
    assert outcome.events == oracle.events
    assert outcome.emitted == sum(job.emitted for job in jobs)
    close(outcome.end_s, oracle.now, "end_s")
    compare_machines(outcome, oracle)


def compare_machines(outcome: Outcome, oracle: Cluster) -> None:
    """What the instances did, in sums and step by step."""
    for name in TOTALS:
        close(outcome.instances[name], [m.totals[name] for m in oracle.machines], name)
    order = np.lexsort((outcome.steps["instance"], outcome.steps["start_s"]))
    log = sorted(oracle.log, key=lambda row: (row["start_s"], row["instance"]))
    assert len(order) == len(log)
    for name in log[0] if log else ():
        close(outcome.steps[name][order], [row[name] for row in log], name)


def close(got: Any, expected: Any, what: str) -> None:
    """Equal to rounding."""
    np.testing.assert_allclose(
        np.asarray(got, dtype=float), np.asarray(expected, dtype=float),
        rtol=1e-9, atol=1e-9, err_msg=what,
    )  # fmt: skip


def same(got: Any, expected: list[Any], what: str) -> None:
    """Equal."""
    assert np.asarray(got).tolist() == expected, what
