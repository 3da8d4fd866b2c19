"""What a request alone proves: against every company, and runs of crowds that are quicker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chipsim.cluster.company import company_share
from chipsim.cluster.measured import measured_table
from chipsim.cluster.scenario import Scenario
from chipsim.cluster.search import Search
from tests.cluster.test_provision import STEPS, scenario

WIDE = """phase,batch,tokens,latency_s
prefill,1,1,0.011
prefill,1,4000,0.41
decode,1,1,0.01
decode,1,4000,0.04
decode,64,1,0.011
decode,64,4000,0.05
"""
"""Contexts of a batch cost little more than one: beside short ones a long one gains."""


@pytest.mark.parametrize("mixed_factor", [0.7, 1.0])
@pytest.mark.parametrize("steps", [STEPS, WIDE])
def test_no_company_saves_more(tmp_path: Path, steps: str, mixed_factor: float) -> None:
    path = tmp_path / "steps.csv"
    path.write_text(steps)
    table = measured_table(
        path, mixed_factor=mixed_factor, most_sequences=32, most_context=4096
    )
    rng = np.random.default_rng(0)
    seen = dict.fromkeys(("prefill", "decode", "mixed"), 1.0)
    share = {role: company_share(table, role) for role in ("prefill", "decode", "mixed")}
    for _ in range(4000):
        longest = 4096 if rng.random() < 0.5 else int(rng.integers(1, 4096))
        count = int(rng.integers(2, 33))
        width = 1 if rng.random() < 0.5 else int(10 ** rng.uniform(0, 3))
        contexts = [longest, *rng.integers(1, width + 1, count - 1).tolist()]
        apart, alone = table.decode_s(contexts), table.decode_s([longest])
        new = int(rng.integers(1, 2000))
        beside = table.mixed_s([new], 0, contexts)
        seen["decode"] = min(seen["decode"], apart / alone)
        seen["mixed"] = min(seen["mixed"], apart / alone, beside / alone,
                            beside / table.prefill_s([new]))  # fmt: skip
    for role, least in seen.items():
        assert share[role] <= least * (1.0 + 1e-12)
        assert share[role] >= least * 0.95  # and no bound for its own sake


def test_share_is_the_closed_form(tmp_path: Path) -> None:
    """Contexts of 4096 and 1 are read as two of 2048.5, on the lines of two decodes."""
    path = tmp_path / "steps.csv"
    path.write_text(WIDE)
    table = measured_table(path, most_sequences=2, most_context=4096)
    alone = 0.01 + 0.03 * 4095 / 3999
    both = 0.01 + 0.001 / 63 + (0.03 + 0.009 / 63) * 2047.5 / 3999
    assert company_share(table, "decode") == pytest.approx(both / alone, rel=1e-12)


@pytest.mark.parametrize(
    ("steps", "hand_off", "counts", "rate", "share"),
    [
        (WIDE, {}, {"prefill": 8, "decode": 2}, 5.0, "p90"),
        (STEPS, {"overlap": "layerwise", "bandwidth": 2e7}, {"prefill": 2, "decode": 16}, 20.0,
         "p50"),
    ],
    ids=["long contexts beside short ones", "hand-offs behind longer prefills"],
)  # fmt: skip
def test_crowds_that_are_quicker_are_not_ruled_out(
    tmp_path: Path,
    steps: str,
    hand_off: dict[str, Any],
    counts: dict[str, int],
    rate: float,
    share: str,
) -> None:
    base = scenario(tmp_path)
    (tmp_path / "steps.csv").write_text(steps)
    fields: dict[str, Any] = base.model_dump(exclude_unset=True)
    fields["handoff"] |= hand_off
    fields["workload"] |= {"rate": rate}

    def search(limit: float) -> Search:
        return Search(Scenario.build("crowd", **(fields | {"slo": {"tpot": {share: limit}}})))

    asked = search(1.0)
    crowd = asked.workloads[0]
    apart = replace(crowd, arrival_s=1e4 * np.arange(len(crowd), dtype=np.float64))
    quicker, alone = (
        asked.cluster.run(instances=counts, workload=each).objectives[0].reached
        for each in (crowd, apart)
    )
    assert quicker < 0.98 * alone
    tight = search(1.001 * quicker)
    assert tight.cluster.run(instances=counts, workload=crowd).holds
    assert not tight.alone_reason()
