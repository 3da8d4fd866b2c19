"""SPAD's published curves and chips, and what is drawn beside a curve of cuts."""

from __future__ import annotations

import pytest

from chipsim.ops.graph import Phase
from chipsim.validation.cases import LayerCase
from chipsim.validation.references import reference_cases
from chipsim.validation.spad import (
    chip_performance,
    curve_points,
    paper_curves,
    performance_grid,
    reference_points,
)


def test_curves_hold_the_printed_figures() -> None:
    printed = {
        (point.resource, point.value): point.slowdown
        for point in paper_curves()
        if (point.series, point.mark) == ("paper", "text")
    }
    assert printed == {
        ("memory_bandwidth", 1500e9): 1.32,
        ("memory_bandwidth", 2000e9): 1.17,
        ("memory_bandwidth", 2500e9): 1.08,
        ("memory_bandwidth", 3352e9): 1.0,
        ("cores", 66): 1.22,
        ("cores", 108): 1.02,
        ("cores", 132): 1.0,
    }


def test_tables_hold_the_rows_that_the_curves_start_from() -> None:
    seconds = {
        (case.suite, case.subject.chip, case.phase): case.references["step"]
        for case in reference_cases()
        if isinstance(case, LayerCase) and "step" in case.references
    }
    # The paper prints 0.2118 s and 0.0437 s.
    prefill = seconds["author-tables", "spad-h100", Phase.prefill(2, 1024)]
    decode = seconds["author-tables", "spad-h100", Phase.decode(64, 1024)]
    assert prefill == pytest.approx(0.2118, rel=0.005)
    assert decode == pytest.approx(0.0437, rel=0.005)


def test_each_point_of_a_curve_is_judged_once() -> None:
    points = list(curve_points("ideal"))
    assert len(points) == len(paper_curves()) - 2  # uncut points of the tables say nothing
    latencies = [p for p in points if p.unit == "s"]
    assert [p.reference for p in latencies] == [0.2118, 0.0437]
    for point in points:
        assert point.error == pytest.approx(point.estimate / point.reference - 1.0)
        assert point.execution == "ideal"


def test_reference_points_of_the_paper_and_of_llmcompass() -> None:
    points = reference_points("bloom-176b", "spad-h100", "prefill", "memory_bandwidth")
    labels = list(dict.fromkeys(p.label for p in points))
    assert labels == [
        "SPAD paper (batch 2, prompt 1024)",
        "author's LLMCompass tables (batch 2, prompt 1024)",
        "public LLMCompass (batch 1, prompt 2048)",
    ]
    for label in labels:
        curve = [p for p in points if p.label == label]
        assert [p.value for p in curve] == sorted(p.value for p in curve)
        assert [p.slowdown for p in curve] == sorted((p.slowdown for p in curve), reverse=True)
        assert [p.slowdown for p in curve if abs(p.fraction - 1.0) < 0.01] == [1.0]
    (slowdown,) = (p.slowdown for p in points if p.label == labels[2] and p.value == 2010e9)
    assert slowdown == pytest.approx(1.0889, abs=1e-4)  # 40 % less bandwidth


def test_half_the_cores_cost_decode_next_to_nothing_in_public_llmcompass() -> None:
    points = reference_points("bloom-176b", "llmcompass-h100", Phase.decode(8, 99), "cores")
    half = next(p for p in points if p.value == 66)
    assert half.slowdown == pytest.approx(1.001, abs=2e-4)


@pytest.mark.parametrize(
    "asked",
    [
        ("gpt3-175b", "spad-h100", "prefill", "memory_bandwidth"),
        ("bloom-176b", "a100-sxm", "prefill", "memory_bandwidth"),
        ("bloom-176b", "spad-h100", "prefill", "clock"),
    ],
)
def test_nothing_to_draw(asked: tuple[str, str, str, str]) -> None:
    assert reference_points(*asked) == []


def test_sweep_of_the_a100_counts_from_its_own_full_bandwidth() -> None:
    points = reference_points("gpt3-175b", "llmcompass-a100", "decode", "memory_bandwidth")
    assert [p.slowdown for p in points if p.value == 2048e9] == [1.0]
    assert len(points) == 8


def test_grid_holds_what_fits_the_smaller_memory() -> None:
    # 0.9 x 64 GiB less 352 GB / 8 of weights, at 4,014,080 / 8 bytes a token: 35.6 K
    # tokens on 8 Prefill chips; 66.4 K at 80 GiB.
    tokens = [p.batch * p.context for p in performance_grid("spad-prefill", "prefill")]
    assert max(tokens) == 32768
    assert max(p.batch for p in performance_grid("spad-decode", "decode")) == 128
    assert max(p.batch * p.context for p in performance_grid("spad-decode", "decode")) == 65536


def test_performance_of_ideal_chips_follows_their_peaks() -> None:
    means = {(row.chip, row.phase): row.mean for row in chip_performance("ideal")}
    assert means["spad-prefill", "prefill"] > 1.0 > means["spad-prefill", "decode"]
    assert means["spad-decode", "prefill"] < 1.0
    assert means["spad-decode", "decode"] == pytest.approx(1.0, abs=0.1)
