"""The paper in one command: its form, and that its targets reach comparisons only."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from chipsim.errors import ConfigError, UnknownNameError
from chipsim.validation import spad_reuse
from chipsim.validation.reproduce import Figure, Request, Shift, reproduce
from chipsim.validation.spad_author import author_steps
from chipsim.validation.spad_chip_rows import (
    chip_rows,
    curve_rows,
    latent_remark,
    performance_rows,
    ridge,
)
from chipsim.validation.spad_clusters import (
    H100,
    SYSTEMS,
    Assumptions,
    Machine,
    Served,
    kv_tokens,
    mean_performance,
    scenario,
)
from chipsim.validation.spad_sensitivity import remarks_on_missed
from tests.validation.folders import SHARED, needs_shared


def test_a_figure_is_judged_by_its_tolerance() -> None:
    assert Figure("a", "policy", 25, 27, "machines", 2).within is True
    assert Figure("a", "policy", 25, 27.1, "machines", 2).within is False
    assert Figure("a", "policy", 25, None, "machines", 2).within is False
    assert Figure("a", "data", 25, 99, "machines", 2).within is None
    assert Figure("a", "physics", 25, 99, "machines").within is None


def test_chips_and_curves_of_the_paper() -> None:
    rows = [*chip_rows(), *curve_rows()]
    assert len(rows) == 29  # 19 of three chips, 10 of two curves
    assert [row.figure for row in rows if row.within is False] == []


def test_mean_performance_is_within_reach_or_said() -> None:
    judged = [row for row in performance_rows() if row.within is not None]
    off = {row.figure: abs(row.difference or 9.0) for row in judged}
    assert len(off) == 4
    assert sum(value <= 0.04 for value in off.values()) == 3
    assert max(off.values()) <= 0.05  # the Decode chip's prefill


def test_systems_weigh_as_the_paper_counts() -> None:
    spad, capped = SYSTEMS["spad"], SYSTEMS["h100+capped"]
    cost, tdp = spad.weights("cost"), spad.weights("tdp")
    assert 18 * cost["prefill"] + 7 * cost["decode"] == pytest.approx(14.7, abs=0.05)
    assert 18 * tdp["prefill"] + 7 * tdp["decode"] == pytest.approx(20.4, abs=0.05)
    assert 21 + 4 * capped.weights("tdp")["decode"] == pytest.approx(23.6, abs=0.05)
    assert SYSTEMS["h100+a100"].weights("cost")["decode"] == pytest.approx(0.5, abs=1e-3)


def test_capacities() -> None:
    given = Assumptions()
    assert kv_tokens("spad-h100", given) == 77477
    assert kv_tokens("spad-prefill", given) == 45589
    binary = Assumptions(capacity="binary")
    assert kv_tokens("spad-h100", binary) == pytest.approx(66_400, rel=0.01)
    assert kv_tokens("spad-prefill", binary) == pytest.approx(35_600, rel=0.01)


@pytest.mark.parametrize("system", SYSTEMS)
def test_assumptions_become_fields_of_the_scenario(system: str) -> None:
    made = scenario(
        "code", SYSTEMS[system], Assumptions(rule="fixed", prompt_limit=77, link=1e9)
    )
    assert made.handoff.bandwidth == 1e9
    assert made.prompt_limit == 77
    assert made.routing == "least_tokens"
    assert set(made.pools) == set(SYSTEMS[system].pools)


def test_fixed_pools_of_different_chips_run() -> None:
    from chipsim.cluster.simulate import Cluster

    # Each pool's table lacks the steps of the other phase.
    given = Assumptions(rule="fixed", trace_s=5.0)
    found = Cluster(scenario("code", SYSTEMS["spad"], given)).run(
        instances={"prefill": 22, "decode": 6}
    )
    assert found.counts["finished"] == len(found.workload)


@pytest.mark.slow
def test_clusters_that_are_put_to_other_work_run() -> None:
    from chipsim.cluster.simulate import Cluster

    for served in spad_reuse.SERVED.values():
        used = Assumptions(trace_s=2.0, served=served)
        counts = {"prefill": 16, "prefill-decodes": 2, "decode": 7, "decode-prefills": 1}
        found = Cluster(spad_reuse._reused("code", used)).run(instances=counts)
        assert found.counts["finished"] == len(found.workload)


@pytest.mark.parametrize(
    ("holds_up_to", "found"),
    [(100.0, 100.0), (96.0, 95.0), (137.4, 135.0), (50.0, 50.0), (49.0, None)],
)
def test_the_largest_rate_of_a_built_cluster_is_sought_up_and_down(
    monkeypatch: pytest.MonkeyPatch, holds_up_to: float, found: float | None
) -> None:
    """In steps of a fortieth of the published 100/s; three of ten must change role for it."""

    class Search:
        def __init__(self, rate: float, *_: object, **__: object) -> None:
            self.rate = rate

        def verdict(self, counts: list[int], _: int) -> SimpleNamespace:
            assert sum(counts) == 16
            return SimpleNamespace(holds=self.rate <= holds_up_to and counts == [6, 0, 7, 3])

    monkeypatch.setattr(spad_reuse, "Search", Search)
    monkeypatch.setattr(spad_reuse, "_reused", lambda _, used: used.rate_rps)
    request = Request(False, None, 1, None, lambda _: None)
    built = {"prefill": 6, "decode": 10}
    rate, said = spad_reuse.held(request, "code", built, Assumptions(rate_rps=100.0))
    assert rate == (None if found is None else pytest.approx(found))
    assert ("3 Decode machines prefill" in said) == (found is not None)


def test_searches_at_once_come_back_in_order() -> None:
    both = threading.Barrier(2)

    def work(number: int) -> int:
        both.wait(timeout=10.0)  # two are at work, or this raises
        return number**2

    request = Request(False, None, 2, None, lambda _: None)
    assert request.each(work, range(6)) == [0, 1, 4, 9, 16, 25]
    assert replace(request, workers=1).each(lambda n: n + 1, [3, 1]) == [4, 2]


def test_splitwises_batching_knows_machines_of_one_rank() -> None:
    from chipsim.cluster.simulate import Cluster

    given = Assumptions(trace_s=2.0, served=Served("llama-3.1-8b", "dp=2", "fp8"))
    made = scenario("code", SYSTEMS["h100"], given)
    with pytest.raises(ConfigError, match=r"pools.prefill.plan: 'dp=2' .* dp=1"):
        Cluster(made)


def test_what_comes_nearest_to_a_missed_figure_is_told() -> None:
    row = Figure("code, h100: machines", "policy", 25, 29, "machines", 2)
    shifts = [
        Shift("rule", "fixed", row.figure, 28, 26, "short: 20+6"),
        Shift("link", "slow", row.figure, 28, 40),
        Shift("limit", "none", row.figure, 28, None),
        Shift("rule", "fixed", "another", 28, 25),
    ]
    (said,) = remarks_on_missed([row, Figure("a", "policy", 1, 1, "1", 2)], shifts)
    assert said == (
        "Missed: code, h100: machines 29 for 25. Nearer with rule = fixed: 26 "
        "(moved by -2, 20+6)."
    )
    (none,) = remarks_on_missed([row], shifts[1:3])
    assert none.endswith("Nearer with no assumption that was moved.")


def test_a_capped_machine_prefills_slower_and_decodes_as_fast() -> None:
    prefill, decode = mean_performance(Machine(H100, 450.0), "spad-figures")
    assert 0.9 < prefill < 0.97
    assert decode == pytest.approx(1.0, abs=0.01)


def test_latent_attention_needs_more_than_the_decode_chips_ridge() -> None:
    # 128 heads of 512 + 64 and 512 columns read a row of 576 two-byte values once.
    assert (
        f"needs {128 * 2 * (576 + 512) / (576 * 2):.0f} FLOP for every byte" in latent_remark()
    )
    assert ridge("spad-decode") == pytest.approx(161, abs=1)
    assert ridge("spad-h100") > 242


@needs_shared
def test_authors_tables_as_measured_steps(tmp_path: Path) -> None:
    from chipsim.cluster.measured import measured_table

    table = measured_table(author_steps(SHARED / "spad" / "llmcompass_bloom_tp8.csv", tmp_path))
    assert table.decode_s([1024] * 64) == pytest.approx(0.0437, rel=0.03)
    assert table.decode_s([1366] * 55) == pytest.approx(0.0455, rel=0.05)
    assert table.prefill_s([2048]) == pytest.approx(0.22108, rel=1e-3)


def test_unknown_papers_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean spad"):
        reproduce("spat")


@pytest.mark.slow
def test_quick_spad_reaches_its_figures() -> None:
    made = reproduce("spad", quick=True, workers=2)
    counts = [row for row in made.rows if row.figure.endswith(": machines")]
    savings = [row for row in made.rows if "saved against" in row.figure]
    assert len(counts) == 4
    assert len(savings) == 3
    assert all(row.within for row in [*counts, *savings])
    assert all("prompt limit 1024" in row.note for row in counts)
