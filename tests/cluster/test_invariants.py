"""What holds in every run, whatever the rules: nothing is lost, and time has no origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from chipsim.cluster.engine import Options, Requests, codes, flat_steps, instances, pools, run
from tests.cluster.test_against_oracle import COLOCATED, PAIRS, TIGHT, each

if TYPE_CHECKING:
    from tests.cluster.scenarios import Family, Scenario

ANY = PAIRS.but(ranks=2, turns=True, bounds=True, overlap=("serial", "layerwise", "stream"))
UNBOUND = ANY.but(bounds=False)
EXAMPLES = 40


@pytest.mark.parametrize("family", [ANY, TIGHT], ids=["any", "tight"])
def test_nothing_is_lost(family: Family) -> None:
    def conserved(scenario: Scenario) -> None:
        outcome = run(**scenario.given())
        got, requests = outcome.requests, scenario.requests
        assert set(got["status"]) <= {codes.FINISHED, codes.REJECTED, codes.UNFINISHED}
        finished = got["status"] == codes.FINISHED
        np.testing.assert_array_equal(got["emitted"][finished], requests.output[finished])
        assert (got["emitted"] <= requests.output).all()
        assert outcome.emitted == got["emitted"].sum()
        started = np.count_nonzero(got["emitted"])
        assert outcome.gap_counts.sum() == outcome.emitted - started
        np.testing.assert_array_equal(got["emitted"] > 0, np.isfinite(got["first_token_s"]))
        np.testing.assert_array_equal(finished, np.isfinite(got["finish_s"]))
        np.testing.assert_array_equal(got["reason"] > 0, got["status"] == codes.REJECTED)

    each(family, EXAMPLES, conserved)


def test_gaps_add_up_to_the_time_between_first_and_last_tokens() -> None:
    def add_up(scenario: Scenario) -> None:
        outcome = run(**scenario.given())
        got = outcome.requests
        if outcome.stopped == "done" and (got["status"] != codes.UNFINISHED).all():
            span = np.nansum(got["finish_s"] - got["first_token_s"])
            assert (outcome.gaps >= 0).all()
            assert (outcome.gaps * outcome.gap_counts).sum() == pytest.approx(span, abs=1e-9)

    each(UNBOUND, EXAMPLES, add_up)


def test_every_step_is_accounted_for() -> None:
    def account(scenario: Scenario) -> None:
        outcome = run(**scenario.given())
        log, machines = outcome.steps, outcome.instances
        busy = machines["prefill_s"] + machines["decode_s"] + machines["mixed_s"]
        for i, machine in enumerate(machines):
            mine = log[log["instance"] == i]
            assert len(mine) == machine["steps"]
            assert (mine["start_s"][1:] >= mine["end_s"][:-1]).all()
            assert (mine["end_s"] - mine["start_s"]).sum() == pytest.approx(busy[i], abs=1e-9)
            assert mine["prompt_tokens"].sum() == machine["prompt_tokens"]
            assert mine["decodes"].sum() == machine["decode_tokens"]

    each(ANY, EXAMPLES, account)


def test_littles_law_of_memory() -> None:
    """Blocks x seconds that the ranks counted = what requests held x how long they did."""

    def law(scenario: Scenario) -> None:
        scenario.pools["block"] = 1
        outcome = run(**scenario.given())
        got = outcome.requests[outcome.requests["status"] == codes.FINISHED]
        held = (got["prompt"] + got["output"]) * (got["finish_s"] - got["prefill_start_s"])
        assert outcome.instances["used_seconds"].sum() == pytest.approx(held.sum(), abs=1e-9)

    each(COLOCATED.but(reserve=("final",), ranks=2), EXAMPLES, law)


def test_a_run_is_the_same_twice() -> None:
    def again(scenario: Scenario) -> None:
        first, second = (run(**scenario.given()) for _ in range(2))
        for name in ("requests", "gaps", "gap_counts", "instances", "steps"):
            assert getattr(first, name).tobytes() == getattr(second, name).tobytes(), name

    each(ANY, EXAMPLES, again)


def test_a_seed_moves_random_routing_only() -> None:
    def seeded(scenario: Scenario) -> None:
        options = scenario.options
        if codes.RANDOM not in {options.routing, options.decode_routing}:
            other = {"options": options._replace(seed=options.seed + 1)}
            first, second = run(**scenario.given()), run(**scenario.given() | other)
            assert first.requests.tobytes() == second.requests.tobytes()

    each(ANY, EXAMPLES, seeded)
    many = Requests.of(np.arange(400.0), np.ones(400), np.ones(400))
    places = [
        run(
            many, flat_steps(0.1, 0.1, 8, 8), pools(), instances([0, 0, 0, 0]),
            options=Options(routing=codes.RANDOM, seed=seed),
        ).requests["prefill_instance"]
        for seed in (1, 1, 2)
    ]  # fmt: skip
    np.testing.assert_array_equal(places[0], places[1])
    assert (places[0] != places[2]).any()
    assert np.bincount(places[0]).min() > 60


def test_time_has_no_origin() -> None:
    """All arrivals later by an exact number: all that comes of them is, and nothing else."""
    later = 1024.0

    def shifted(scenario: Scenario) -> None:
        requests = scenario.requests
        moved = requests._replace(arrival_s=requests.arrival_s + later)
        same_but(scenario, {"requests": moved}, lambda seconds: seconds + later, 1.0)

    each(UNBOUND, EXAMPLES, shifted)


def test_time_has_no_unit() -> None:
    """Everything twice as slow takes twice as long."""

    def slower(scenario: Scenario) -> None:
        requests, steps, options = scenario.requests, scenario.steps, scenario.options
        tables = ("prefill", "mixed", "decode", "head", "prompts", "contexts")
        ways, rows = scenario.links.copy(), scenario.pools.copy()
        rows["host_bytes_per_s"] /= 2
        for name in ("latency_s", "descriptor_s"):
            ways[name] *= 2
        for name in ("bytes_per_s", "dequant_bytes_per_s"):
            ways[name] /= 2
        changes = {
            "requests": requests._replace(
                arrival_s=requests.arrival_s * 2, think_s=requests.think_s * 2
            ),
            "steps": steps._replace(**{name: getattr(steps, name) * 2 for name in tables}),
            "pools": rows,
            "links": ways,
            "options": options._replace(retry_s=options.retry_s * 2),
        }
        same_but(scenario, changes, lambda seconds: seconds * 2, 2.0)

    each(UNBOUND.but(retry=(0.0, 1 / 32)), EXAMPLES, slower)


def same_but(scenario: Scenario, changes: dict[str, Any], moved: Any, factor: float) -> None:
    """A run with changes is the same but for its times, to the last bit."""
    before, after = run(**scenario.given()), run(**scenario.given() | changes)
    for name in before.requests.dtype.names or ():
        old, new = before.requests[name], after.requests[name]
        if name == "arrival_s":
            known = scenario.requests.parent < 0
            old, new = old[known], new[known]
        np.testing.assert_array_equal(moved(old) if name.endswith("_s") else old, new, name)
    assert before.events == after.events
    np.testing.assert_array_equal(np.sort(before.gaps) * factor, np.sort(after.gaps))


def test_an_instance_that_cannot_be_used_changes_nothing() -> None:
    """One of each role more, too small for any request."""

    def ignored(scenario: Scenario) -> None:
        small = scenario.pools[:1].copy()
        small["kv_blocks"], small["block"] = 1, 1
        n, size = len(scenario.pools), len(scenario.instances)
        more = instances([n, n, n], role=[codes.PREFILL, codes.DECODE, codes.MIXED])
        ways = np.pad(scenario.links, ((0, 1), (0, 1)), mode="edge")
        bigger = {
            "pools": np.concatenate([scenario.pools, small]),
            "instances": np.concatenate([scenario.instances, more]),
            "links": ways,
        }
        roles = scenario.instances["role"]
        both = (roles & codes.PREFILL).any() and (roles & codes.DECODE).any()
        if both:  # else the reason of a rejection would change
            before, after = run(**scenario.given()), run(**scenario.given() | bigger)
            served = before.requests["prefill_rank"] < scenario.instances["ranks"].sum()
            assert served.all()
            assert before.requests.tobytes() == after.requests.tobytes()
            assert not after.instances["steps"][size:].any()

    each(UNBOUND, EXAMPLES, ignored)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_waits_of_one_server_are_those_of_queueing_theory(load: float) -> None:
    """M/D/1: mean wait = load x service / (2 (1 - load)), Pollaczek and Khinchine."""
    count, service = 400_000, 1.0
    gaps = np.random.default_rng(7).exponential(service / load, count)
    outcome = run(
        Requests.of(np.cumsum(gaps), np.ones(count), np.ones(count)),
        flat_steps(service, service, 4, 4),
        pools(max_batch=1),
        instances([0]),
        options=Options(log_gaps=False),
    )
    waits = outcome.requests["prefill_start_s"] - outcome.requests["arrival_s"]
    assert waits.mean() == pytest.approx(load * service / (2 * (1 - load)), rel=0.02)
