"""Instances that fail or change their role, and hand-offs for which there is no room."""

from __future__ import annotations

import math
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
    pools,
    run,
    timers,
)
from chipsim.cluster.scenario import Scenario
from chipsim.cluster.simulate import Cluster
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

STEPS = flat_steps(prefill_s=0.5, decode_s=0.25, tokens=64, batch=8)
PREFILL, DECODE, MIXED = codes.PREFILL, codes.DECODE, codes.MIXED


def serve(
    prompts: Sequence[int],
    roles: Sequence[int],
    changes: list[tuple[float, int, int, int]] | None = None,
    output: int = 4,
    every_s: float = 0.0,
    kv: int = 100,
    **options: Any,
) -> Outcome:
    """Prompts that arrive together, or one after another, on instances of one pool."""
    n = len(prompts)
    return run(
        Requests.of(np.arange(n) * every_s, prompts, [output] * n),
        STEPS,
        pools(kv_blocks=kv, block=1, max_batch=8, max_tokens=64),
        instances([0] * len(roles), role=list(roles)),
        timers=timers(changes or []),
        options=Options(**options),
    )


def test_a_request_is_prefilled_again_elsewhere_with_what_it_had_emitted() -> None:
    """Tokens at 0.5, 0.75 | fails at 0.8 | 1.3 (prefill of 10 + 2), 1.55."""
    outcome = serve([10], [MIXED, MIXED], [(0.8, codes.FAULT, 0, 0)])
    [got] = outcome.requests
    assert (got["retries"], got["emitted"], got["prefill_instance"]) == (1, 4, 1)
    assert (got["first_token_s"], got["finish_s"]) == (0.5, pytest.approx(1.55))
    gaps = np.repeat(outcome.gaps, outcome.gap_counts)
    assert gaps.tolist() == pytest.approx([0.25, 0.55, 0.25])
    assert outcome.instances["prompt_tokens"].tolist() == [10, 12]


def test_requests_wait_outside_for_a_recovery() -> None:
    changes = [(0.1, codes.FAULT, 0, 0), (3.0, codes.RECOVERY, 0, 0)]
    [got] = serve([10], [MIXED], changes).requests
    assert (got["retries"], got["finish_s"]) == (1, 3.0 + 0.5 + 3 * 0.25)


def test_two_faults_at_once_need_two_recoveries() -> None:
    changes = [(0.1, codes.FAULT, 0, 0), (0.2, codes.FAULT, 0, 0),
               (1.0, codes.RECOVERY, 0, 0), (2.0, codes.RECOVERY, 0, 0)]  # fmt: skip
    [got] = serve([10], [MIXED], changes).requests
    assert got["prefill_start_s"] == 2.0


def test_what_fails_for_good_rejects_what_it_cannot_serve() -> None:
    [got] = serve([10], [MIXED], [(0.8, codes.FAULT, 0, 0)]).requests
    assert codes.REASON[got["reason"]] == "no_instance"
    assert (got["emitted"], got["retries"]) == (2, 1)


@pytest.mark.parametrize("retry_s", [0.0, 1e-6, 1.0])
def test_a_hand_off_without_any_place_left_is_rejected(retry_s: float) -> None:
    """The only decode instance fails while a prompt runs; retries would go on for ever."""
    changes = [(0.25, codes.FAULT, 1, 0)]
    outcome = serve([10, 20], [PREFILL, DECODE], changes, retry_s=retry_s)
    assert outcome.stopped == "done"
    assert [codes.REASON[i] for i in outcome.requests["reason"]] == ["no_place"] * 2
    assert outcome.events < 10


def test_retries_until_a_far_recovery_cost_nothing() -> None:
    """10^12 of them: each would be an event."""
    changes = [(0.25, codes.FAULT, 1, 0), (1e6, codes.RECOVERY, 1, 0)]
    outcome = serve([10], [PREFILL, DECODE], changes, retry_s=1e-6)
    assert outcome.requests["transfer_start_s"].tolist() == pytest.approx([1e6], abs=2e-6)
    assert outcome.events == pytest.approx(1e12, rel=1e-3)


@pytest.mark.parametrize("retry_s", [0.0, 0.5])
def test_a_circle_of_hand_offs_is_broken(retry_s: float) -> None:
    """Each of two full instances is to take what the other holds."""
    options: dict[str, Any] = {
        "keep_mixed": False,
        "decode_routing": codes.ROUND_ROBIN,
        "retry_s": retry_s,
    }
    options["decode_at"] = codes.AT_ARRIVAL
    outcome = serve([60, 60, 60, 60], [MIXED, MIXED], output=30, **options)
    status = outcome.requests["status"]
    assert outcome.stopped == "done"
    assert set(status) <= {codes.FINISHED, codes.REJECTED}
    assert codes.FINISHED in status


def test_a_request_that_stays_is_not_sent() -> None:
    """A mixed instance that hands off, to itself."""
    [got] = serve([10], [MIXED], keep_mixed=False, kv=14).requests
    assert got["status"] == codes.FINISHED
    assert math.isnan(got["transfer_start_s"])


def test_an_instance_that_decodes_from_now_on_keeps_what_it_prefilled() -> None:
    changes = [(0.25, codes.ROLE_SWITCH, 0, DECODE)]
    [got] = serve([10], [PREFILL, MIXED], changes, decode_routing=codes.LEAST_KV).requests
    assert (got["prefill_instance"], got["status"]) == (0, codes.FINISHED)


def test_prompts_leave_an_instance_that_prefills_no_more() -> None:
    changes = [(0.25, codes.ROLE_SWITCH, 0, DECODE)]
    got = serve([64] * 4, [PREFILL, MIXED], changes, routing=codes.ROUND_ROBIN, kv=70).requests
    assert (got["status"] == codes.FINISHED).all()
    assert (got["prefill_start_s"][got["prefill_instance"] == 0] == 0.0).all()


def test_roles_follow_the_load() -> None:
    """A prompt of 0.5 s each 0.2 s needs three instances, and there is one."""
    roles = [PREFILL, DECODE, DECODE, DECODE]
    looks: dict[str, Any] = {"switch_every_s": 0.1, "switch_tokens": 100.0, "switch_kv": 0.5}
    still = serve([64] * 40, roles, output=2, kv=10**6, every_s=0.2)
    moved = serve([64] * 40, roles, output=2, kv=10**6, every_s=0.2, **looks)
    assert moved.instances["role"].tolist() == [PREFILL, PREFILL, PREFILL, DECODE]
    assert (moved.requests["status"] == codes.FINISHED).all()
    assert moved.end_s < still.end_s / 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"switching": {"every": "0 s", "prefill_tokens": 1, "decode_kv": 0.5}}, "every"),
        ({"switching": {"every": "1 s", "prefill_tokens": 1, "decode_kv": 2}}, "decode_kv"),
        ({"switching": {"every": "1 s"}}, "prefill_tokens"),
        ({"switching": {"every": "1 s", "prefill_tokens": 1, "decode_kv": 0, "by": 1}}, "by"),
        ({"handoff": {"retry": "1 ns"}}, "retry.*or 1e-06 s or more"),
    ],
)
def test_wrong_changes_are_named(change: dict[str, Any], message: str) -> None:
    rules = Scenario.load("roles-8b").model_dump(exclude_unset=True)
    with pytest.raises(ConfigError, match=message):
        Scenario.build("x", **(rules | change))


def test_the_scenario_reaches_the_engine() -> None:
    cluster = Cluster(Scenario.load("roles-8b"))
    options = cluster._options(None, False, True, None)
    assert (options.switch_every_s, options.switch_tokens, options.switch_kv) == (1, 8192, 0.7)
    assert cluster.run().outcome.instances["role"].tolist() != [1] * 2 + [2] * 6
