"""Decode steps that are planned ahead, beside the same seen one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
)
from chipsim.cluster.engine.layout import AHEAD
from tests.cluster.scenarios import Scenario, seeded
from tests.cluster.test_against_oracle import FAMILIES, PAIRS, equal

MACHINES = 4
EVENTS = AHEAD * MACHINES
"""So many may be over and not counted."""


def outcome(looks: Any = (), enough: Any = None, **options: Any) -> Outcome:
    """Of 60 requests of 1 to 300 tokens, on two machines that prefill and two that decode."""
    random = np.random.default_rng(3)
    requests = Requests.of(
        random.exponential(0.3, 60).cumsum(), random.integers(1, 100, 60),
        random.integers(1, 300, 60),
    )  # fmt: skip
    return run(
        requests,
        flat_steps(0.2, 0.03, 100, 16, context_s=1e-6),
        pools(max_batch=16, max_tokens=100),
        instances(np.zeros(MACHINES), role=[codes.PREFILL] * 2 + [codes.DECODE] * 2),
        links=links(1, latency_s=0.01),
        options=Options(first_token_from=codes.BY_DECODE, energy=True, **options),
        joules=flat_steps(5.0, 1.0, 100, 16, context_s=1e-4),
        looks=looks,
        enough=enough,
    )


@pytest.mark.parametrize("events", [1, EVENTS - 1, *range(EVENTS, 4 * EVENTS, 23)])
def test_a_bound_of_events_is_met_to_the_event(events: int) -> None:
    seen = outcome(max_events=events, log_steps=True)
    assert seen.stopped == "max_events"
    equal(outcome(max_events=events), seen)


@pytest.mark.parametrize("time_s", np.random.default_rng(4).uniform(0.0, 25.0, 20))
def test_a_bound_of_time_falls_between_planned_steps(time_s: float) -> None:
    seen = outcome(max_time_s=time_s, log_steps=True)
    assert seen.stopped == "max_time"
    equal(outcome(max_time_s=time_s), seen)


def test_looks_see_what_is_over_and_change_nothing() -> None:
    looks = np.random.default_rng(5).uniform(0.0, 25.0, 40)
    looks.sort()
    rows: list[list[bytes]] = [[], []]

    def look(log_steps: bool) -> Outcome:
        def enough(requests: Any, time_s: float) -> bool:  # noqa: ARG001 - its interface
            rows[log_steps].append(requests["first_token_s"].tobytes())
            return False

        return outcome(looks.tolist(), enough, log_steps=log_steps)

    equal(look(log_steps=False), look(log_steps=True))
    assert rows[False] == rows[True]
    assert len(rows[False]) == len(looks)
    equal(look(log_steps=False), outcome())


BOTH = PAIRS.but(room=(40, 55), batch=3, decode_at=("arrival", "prefill_end"))
"""Machines whose decodes are preempted, beside others whose steps are planned."""


@pytest.mark.parametrize("family", [*FAMILIES.values(), BOTH], ids=[*FAMILIES, "both"])
def test_scenarios_of_every_family(family: Any) -> None:
    for seed in range(1100, 1200):
        same_both_ways(seeded(family, seed))


def test_prompts_that_take_no_time() -> None:
    """What follows from a step that ends as it begins finds the next steps begun."""
    for seed in range(400):
        scenario = seeded(PAIRS, seed)
        steps = scenario.steps._replace(prefill=np.zeros_like(scenario.steps.prefill))
        same_both_ways(replace(scenario, steps=steps._replace(head=np.zeros_like(steps.head))))


def same_both_ways(scenario: Scenario) -> None:
    given = scenario.given()
    unlogged = scenario.options._replace(log_steps=False)
    equal(run(**given | {"options": unlogged}), run(**given))


def test_steps_are_planned_where_none_is_logged() -> None:
    """Or the others say nothing."""
    assert outcome(max_time_s=10.0).instances["planned"].max() > 4
    assert not outcome(max_time_s=10.0, log_steps=True).instances["planned"].any()
