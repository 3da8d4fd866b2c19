"""The engine equals the plain step-by-step engine of `oracle`, token by token."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tests.cluster.oracle import Cluster
from tests.cluster.scenarios import Family, Scenario, scenarios

from chipsim.cluster.engine import Outcome, codes, run

TIMES = {
    "arrival_s": "arrival", "queue_start_s": "queue_start", "prefill_start_s": "prefill_start",
    "prefill_end_s": "prefill_end", "transfer_start_s": "transfer_start",
    "transfer_end_s": "transfer_end", "decode_start_s": "decode_start", "finish_s": "finish",
}  # fmt: skip
COUNTS = ("prompt", "output", "emitted", "cached", "preemptions", "retries")
TOTALS = ("prefill_s", "decode_s", "mixed_s", "steps", "prompt_tokens", "decode_tokens", "joules")


def close(got: Any, expected: Any, what: str) -> None:
    np.testing.assert_allclose(
        np.asarray(got, dtype=float), np.asarray(expected, dtype=float),
        rtol=1e-9, atol=1e-9, err_msg=what,
    )  # fmt: skip


def same(got: Any, expected: list[Any], what: str) -> None:
    assert np.asarray(got).tolist() == expected, what


def compare(outcome: Outcome, oracle: Cluster) -> None:
    """Request by request, gap by gap, step by step."""
    got, jobs = outcome.requests, oracle.jobs
    assert outcome.stopped == oracle.stopped
    same([codes.STATUS[i] for i in got["status"]], [job.status for job in jobs], "status")
    same([codes.REASON[i] for i in got["reason"]], [job.reason for job in jobs], "reason")
    for name in COUNTS:
        same(got[name], [getattr(job, name) for job in jobs], name)
    first = [job.tokens_at[0] if job.tokens_at else np.nan for job in jobs]
    close(got["first_token_s"], first, "first_token_s")
    for name, mine in TIMES.items():
        arrived = [job.arrived or name != "arrival_s" for job in jobs]
        close(got[name][arrived], [getattr(job, mine) for job in jobs if job.arrived or
              name != "arrival_s"], name)  # fmt: skip
    for side in ("prefill", "decode"):
        ranks = [getattr(job, side) for job in jobs]
        same(got[side + "_rank"], [rank.number if rank else -1 for rank in ranks], side)
        same(got[side + "_instance"],
             [rank.machine.index if rank else -1 for rank in ranks], side)  # fmt: skip
    gaps = np.repeat(outcome.gaps, outcome.gap_counts)
    assert len(gaps) == len(oracle.gaps)
    close(np.sort(gaps), np.sort(oracle.gaps), "gaps")
    assert outcome.events == oracle.events
    assert outcome.emitted == sum(job.emitted for job in jobs)
    close(outcome.end_s, oracle.now, "end_s")
    compare_machines(outcome, oracle)


def compare_machines(outcome: Outcome, oracle: Cluster) -> None:
    """What the instances did, in sums and step by step."""
    for name in (*TOTALS, "used_seconds"):
        close(outcome.instances[name], [m.totals[name] for m in oracle.machines], name)
    assert len(outcome.steps) == len(oracle.log)
    if oracle.log:
        order = np.lexsort((outcome.steps["instance"], outcome.steps["start_s"]))
        log = sorted(oracle.log, key=lambda row: (row["start_s"], row["instance"]))
        for name in log[0]:
            close(outcome.steps[name][order], [row[name] for row in log], name)


def check(family: Family, examples: int) -> Counter[str]:
    """Compare on many scenarios of a family; what happened in them, counted."""
    seen: Counter[str] = Counter()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(scenarios(family))
    def agrees(scenario: Scenario) -> None:
        oracle = Cluster(**scenario.given()).run()
        compare(run(**scenario.given()), oracle)
        seen.update(oracle.seen)
        seen.update(job.status for job in oracle.jobs)

    agrees()
    return seen


ONE_POOL = Family()
PAIRS = Family(roles=("prefill", "decode", "mixed"), machines=4)

FAMILIES = {
    "prefill_first": ONE_POOL.only(batching=("prefill_first",)),
    "decode_first": ONE_POOL.only(batching=("decode_first",)),
    "chunked": ONE_POOL.only(batching=("chunked",)),
    "ranks": ONE_POOL.only(ranks=3),
    "hand_off": PAIRS,
    "layerwise": PAIRS.only(overlap=("layerwise", "serial")),
    "stream": PAIRS.only(overlap=("stream",), batching=("chunked",), decode_at=("arrival",)),
    "at_arrival": PAIRS.only(decode_at=("arrival",), ranks=2),
    "retry": PAIRS.only(retry=True),
    "turns": PAIRS.only(turns=True),
    "bounds": PAIRS.only(bounds=True, turns=True),
    "rough": PAIRS.only(exact=False, ranks=2, overlap=("serial", "layerwise")),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_engine_equals_the_plain_one(name: str) -> None:
    seen = check(FAMILIES[name], 40)
    print(seen)
