"""Closed forms of queueing theory, Little's law, and small cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import poisson as poisson_law

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
    timers,
)

SERVICE_S = 0.1


def served(arrival_s: np.ndarray, prompt: np.ndarray, machines: int = 1) -> np.ndarray:
    """Waits of requests that machines serve one at a time, prompt / 1000 x SERVICE_S long."""
    longest = int(prompt.max())
    count = len(arrival_s)
    outcome = run(
        Requests.of(arrival_s, prompt, np.ones(count)),
        flat_steps(SERVICE_S * np.arange(longest + 1) / 1000, 1.0, longest, 1),
        pools(max_batch=1, max_tokens=longest),
        instances(np.zeros(machines)),
        options=Options(routing=codes.LEAST_REQUESTS, log_gaps=False),
    )
    got = outcome.requests
    assert outcome.stopped == "done"
    return np.asarray(got["prefill_start_s"] - got["arrival_s"])


def poisson(rate: float, count: int, seed: int) -> np.ndarray:
    return np.asarray(np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count)))


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_m_d_1(load: float) -> None:
    """Mean wait of M/D/1: ρS / 2(1 - ρ) (Pollaczek, Khinchine)."""
    count = 1_000_000
    waits = served(poisson(load / SERVICE_S, count, 1), np.full(count, 1000))
    assert waits.mean() == pytest.approx(load * SERVICE_S / (2 * (1 - load)), rel=0.02)


@pytest.mark.parametrize("load", [0.5, 0.7])
def test_m_m_1(load: float) -> None:
    """Mean wait of M/M/1: ρS / (1 - ρ); prompts are exponential, in whole tokens."""
    count = 1_000_000
    prompt = np.ceil(np.random.default_rng(2).exponential(1000, count))
    mean = SERVICE_S * prompt.mean() / 1000
    waits = served(poisson(load / mean, count, 3), prompt)
    assert waits.mean() == pytest.approx(load * mean / (1 - load), rel=0.02)


@pytest.mark.parametrize(("machines", "load"), [(2, 0.7), (4, 0.8)])
def test_m_d_c(machines: int, load: float) -> None:
    """Mean wait of M/D/c, one queue before c servers (Crommelin 1932).

    With one length for all, one queue in order of arrival is the same as serving in turn.
    """
    count = 400_000
    arrival = poisson(machines * load / SERVICE_S, count, 4)
    outcome = run(
        Requests.of(arrival, np.full(count, 1000), np.ones(count)),
        flat_steps(SERVICE_S, 1.0, 1000, 1),
        pools(max_batch=1, max_tokens=1000),
        instances(np.zeros(machines)),
        options=Options(routing=codes.ROUND_ROBIN, log_gaps=False),
    )
    got = outcome.requests
    wait = float((got["prefill_start_s"] - got["arrival_s"]).mean())
    assert crommelin(1, 0.5) == pytest.approx(0.5)
    assert wait == pytest.approx(crommelin(machines, load) * SERVICE_S, rel=0.02)


def crommelin(servers: int, load: float) -> float:
    """Mean wait of M/D/c in service times: sum over n of E(arrivals in n services - nc)+ / nλ.

    Spitzer's identity for the walk that one of the c servers sees.
    """
    rate = servers * load
    total, n, tail = 0.0, 0, 1.0
    while tail > 1e-12:
        n += 1
        first, mean = n * servers, n * rate
        # E(A - k)+ = mean P(A >= k) - k P(A > k)
        tail = mean * float(poisson_law.sf(first - 1, mean)) - first * float(
            poisson_law.sf(first, mean)
        )
        total += tail / (n * rate)
    return total


def example(count: int = 3000, seed: int = 5, **options: object) -> tuple[Requests, Outcome]:
    rng = np.random.default_rng(seed)
    requests = Requests.of(
        poisson(30, count, seed), rng.integers(1, 400, count), rng.integers(1, 60, count)
    )
    steps = flat_steps(
        0.005 + 1e-5 * np.arange(4096), 0.01 + 1e-4 * np.arange(33), 4095, 32, context_s=1e-7
    )
    outcome = run(
        requests,
        steps,
        pools(kv_blocks=400, max_batch=32, max_tokens=512),
        instances([0, 0, 0]),
        options=Options(**options),  # type: ignore[arg-type]
    )
    return requests, outcome


def test_littles_law() -> None:
    """Requests in the system, averaged over time, are their rate times their stay."""
    requests, outcome = example()
    stay = outcome.requests["finish_s"] - requests.arrival_s
    events = np.concatenate([requests.arrival_s, outcome.requests["finish_s"]])
    change = np.concatenate([np.ones(len(stay)), -np.ones(len(stay))])
    order = np.argsort(events)
    inside = np.cumsum(change[order])[:-1]
    integral = float((inside * np.diff(events[order])).sum())
    span = outcome.end_s
    assert integral / span == pytest.approx(len(stay) / span * stay.mean(), rel=1e-9)


def test_conservation() -> None:
    requests, outcome = example(max_time_s=60.0)
    status = np.bincount(outcome.requests["status"], minlength=4)
    assert status[codes.PENDING] == 0
    assert status.sum() == len(requests.prompt)
    assert status[codes.FINISHED] > 0
    assert status[codes.UNFINISHED] > 0
    done = outcome.requests["status"] == codes.FINISHED
    assert (outcome.requests["emitted"][done] == requests.output[done]).all()
    assert outcome.emitted == outcome.requests["emitted"].sum()
    first = ~np.isnan(outcome.requests["first_token_s"])
    assert outcome.gap_counts.sum() == (outcome.requests["emitted"][first] - 1).sum()


def test_gaps_are_all_the_time_between_tokens() -> None:
    _, outcome = example()
    between = (outcome.requests["finish_s"] - outcome.requests["first_token_s"]).sum()
    assert (outcome.gaps * outcome.gap_counts).sum() == pytest.approx(between, rel=1e-9)


def test_a_transfer_between_a_prefill_and_a_decode() -> None:
    """Prefill 1 s, transfer 0.5 s, two decode steps of 0.1 s; the source is free at 1.5 s."""
    outcome = run(
        Requests.of([0.0], [100], [3]),
        flat_steps(1.0, 0.1, 100, 4),
        pools(2, kv_blocks=1000, block=1),
        instances([0, 1], role=[codes.PREFILL, codes.DECODE]),
        links=links(2, latency_s=0.1, bytes_per_s=1000.0, bytes_per_token=4.0),
    )
    (got,) = outcome.requests
    assert got["first_token_s"] == pytest.approx(1.0)
    assert (got["transfer_start_s"], got["transfer_end_s"]) == pytest.approx((1.0, 1.5))
    assert (got["decode_start_s"], got["finish_s"]) == pytest.approx((1.5, 1.7))
    assert outcome.gaps == pytest.approx([0.6, 0.1])
    assert outcome.instances["used_seconds"] == pytest.approx([101 * 1.5, 103 * 0.7])


@pytest.mark.parametrize(
    ("overlap", "end"), [("serial", 2.0), ("layerwise", 1.1), ("stream", 2.0)]
)
def test_overlap_hides_all_but_the_last_layer(overlap: str, end: float) -> None:
    """A prefill and a transfer of 1 s each, ten layers: 0.1 s of it is left."""
    outcome = run(
        Requests.of([0.0], [100], [3]),
        flat_steps(1.0, 0.1, 100, 4),
        pools(2),
        instances([0, 1], role=[codes.PREFILL, codes.DECODE]),
        links=links(2, bytes_per_s=100.0, bytes_per_token=1.0, layers=10,
                    overlap=codes.OVERLAP[overlap]),
    )  # fmt: skip
    assert outcome.requests["transfer_end_s"] == pytest.approx([end])


def test_a_full_decode_side_stalls_the_prefill_side() -> None:
    """Room for one request at each side: the second waits with its blocks, the third behind."""
    outcome = run(
        Requests.of([0.0, 0.0, 0.0], [10, 10, 10], [11, 11, 11]),
        flat_steps(1.0, 1.0, 10, 4),
        pools(2, kv_blocks=[11, 21], block=1, max_tokens=10),
        instances([0, 1], role=[codes.PREFILL, codes.DECODE]),
    )
    got = outcome.requests
    assert got["prefill_end_s"] == pytest.approx([1, 2, 12])
    assert got["transfer_start_s"] == pytest.approx([1, 11, 21])
    assert got["finish_s"] == pytest.approx([11, 21, 31])


def test_preemption_recomputes_and_emits_no_token_twice() -> None:
    """Two of 4 + 4 tokens in ten blocks: the later one gives way as both hold 5 tokens."""
    outcome = run(
        Requests.of([0.0, 0.0], [4, 4], [4, 4]),
        flat_steps(1.0, 1.0, 16, 4),
        pools(kv_blocks=10, block=1, reserve=codes.RESERVE_PROMPT, max_tokens=16),
        instances([0]),
    )
    got = outcome.requests
    assert got["preemptions"].tolist() == [0, 1]
    assert got["emitted"].tolist() == [4, 4]
    # prefill, a decode of both, two of the first, prefill of 6, a decode
    assert got["finish_s"] == pytest.approx([4, 6])


def test_ranks_step_together() -> None:
    """A step lasts as long as its fullest rank; the budget is each rank's own."""
    outcome = run(
        Requests.of([0.0, 0.0], [100, 300], [1, 1]),
        flat_steps(0.01 * np.arange(401), 1.0, 400, 4),
        pools(max_tokens=300),
        instances([0], ranks=2),
    )
    assert outcome.requests["prefill_rank"].tolist() == [0, 1]
    assert outcome.requests["first_token_s"] == pytest.approx([3.0, 3.0])


def test_a_turn_follows_its_parent_and_is_lost_with_it() -> None:
    outcome = run(
        Requests.of([0.0, 0.0, 0.0, 0.0], [10, 10, 99, 10], [1, 1, 1, 1],
                    parent=[-1, 0, -1, 2], think_s=[0, 5.0, 0, 5.0]),
        flat_steps(1.0, 1.0, 100, 4),
        pools(kv_blocks=50, block=1),
        instances([0]),
    )  # fmt: skip
    got = outcome.requests
    assert got["arrival_s"][1] == pytest.approx(6.0)
    assert got["finish_s"][:2] == pytest.approx([1.0, 7.0])
    assert [codes.REASON[reason] for reason in got["reason"]] == [
        "", "", "too_large", "parent_lost",
    ]  # fmt: skip


def test_a_fault_sends_every_request_elsewhere() -> None:
    """One decodes, one waits; both start over on the other instance, tokens kept."""
    outcome = run(
        Requests.of([0.0, 0.0, 0.0], [10, 99, 10], [5, 1, 1]),
        flat_steps(1.0, 1.0, 100, 4),
        pools(max_batch=1),
        instances([0, 0]),
        timers=timers([(3.5, codes.FAULT, 0, 0), (9.0, codes.RECOVERY, 0, 0)]),
        options=Options(routing=codes.ROUND_ROBIN),
    )
    got = outcome.requests
    # Request 0 had tokens at 1, 2, 3; request 2 waited behind it. Instance 1 is free.
    assert got["retries"].tolist() == [1, 0, 1]
    assert got["emitted"].tolist() == [5, 1, 1]
    assert got["finish_s"] == pytest.approx([5.5, 1.0, 6.5])
    assert np.sort(np.repeat(outcome.gaps, outcome.gap_counts)) == pytest.approx([1, 1, 1, 1.5])


def test_requests_wait_outside_until_an_instance_is_back() -> None:
    given = Requests.of([0.0, 2.0], [10, 10], [5, 1])
    common = (flat_steps(1.0, 1.0, 100, 4), pools(), instances([0]))
    fault = (1.5, codes.FAULT, 0, 0)
    outcome = run(given, *common, timers=timers([fault, (5.0, codes.RECOVERY, 0, 0)]))
    assert outcome.requests["finish_s"] == pytest.approx([9.0, 6.0])
    outcome = run(given, *common, timers=timers([fault]))
    assert [codes.REASON[reason] for reason in outcome.requests["reason"]] == [
        "no_instance"
    ] * 2
    assert outcome.requests["emitted"].tolist() == [1, 0]


def test_a_fault_during_a_transfer_frees_the_other_side() -> None:
    for broken in (0, 1):
        outcome = run(
            Requests.of([0.0], [10], [3]),
            flat_steps(1.0, 1.0, 100, 4),
            pools(2),
            instances([0, 1], role=[codes.PREFILL, codes.DECODE]),
            links=links(2, bytes_per_s=1.0, bytes_per_token=0.2),
            timers=timers([(2.0, codes.FAULT, broken, 0), (4.0, codes.RECOVERY, broken, 0)]),
        )
        again = 4.0 if broken == 0 else 2.0  # prefilled again at once, or when it can be
        (got,) = outcome.requests
        assert got["retries"] == 1
        assert got["prefill_start_s"] == pytest.approx(again)
        assert got["transfer_start_s"] == pytest.approx(max(again + 1, 4.0))
        assert got["finish_s"] == pytest.approx(max(again + 1, 4.0) + 11 * 0.2 + 1)
        assert outcome.instances["used"].tolist() == [0, 0]


def test_roles_change_at_a_time_and_by_load() -> None:
    """Waiting prompts stay where prefill goes on, and move where it ends; no retries."""
    given = Requests.of(np.zeros(8), np.full(8, 100), np.full(8, 2))
    common = (flat_steps(1.0, 0.1, 100, 8), pools(2, max_tokens=100))
    roles = instances([0, 1, 1], role=[codes.PREFILL, codes.DECODE, codes.DECODE])
    alone = run(given, *common, roles)
    timed = run(
        given, *common, roles, timers=timers([(0.5, codes.ROLE_SWITCH, 2, codes.PREFILL)])
    )
    load = run(
        given, *common, roles,
        options=Options(switch_every_s=0.5, switch_tokens=200, switch_kv=0.9),
    )  # fmt: skip
    assert alone.requests["prefill_end_s"].max() == pytest.approx(8.0)
    # Those that waited at instance 0 stay there: only what comes later goes to instance 2.
    assert timed.requests["prefill_end_s"].max() == pytest.approx(8.0)
    assert load.instances["role"].tolist() == [codes.PREFILL, codes.PREFILL, codes.DECODE]
    assert (load.requests["status"] == codes.FINISHED).all()
    back = run(
        given,
        *common,
        roles,
        timers=timers(
            [
                (0.5, codes.ROLE_SWITCH, 0, codes.DECODE),
                (0.5, codes.ROLE_SWITCH, 1, codes.PREFILL),
            ]
        ),
    )
    assert (back.requests["prefill_instance"][1:] == 1).all()
    assert back.requests["retries"].sum() == 0
