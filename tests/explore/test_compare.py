"""Comparisons: the rows add up to the whole, and the reason is the one that was made."""

from __future__ import annotations

import math

import pytest

from chipsim.chip import Chip
from chipsim.errors import ChipsimError
from chipsim.execution import Execution
from chipsim.explore.compare import GROUPS, Comparison, Reference, compare, compare_phases
from chipsim.explore.reasons import PARTS
from chipsim.ops.phase import Phase
from chipsim.phases import estimate

CHIP, IDEAL = Chip.load("spad-h100"), Execution.load("ideal")
DECODE, PREFILL = Phase.decode(64, 1024), Phase.prefill(2, 1024)


def block(name: str, **changed: object) -> Execution:
    return Execution.build("test", **(IDEAL.model_dump() | {"name": name} | changed))


def against(phase: Phase, chip: Chip, execution: Execution = IDEAL) -> Comparison:
    return compare_phases(
        "bloom-176b", phase, "tp=8", CHIP, IDEAL, chip, execution, check_memory=False
    )


def reasons(comparison: Comparison) -> dict[str, str]:
    return {row.name: row.why for row in comparison.rows}


@pytest.mark.parametrize("phase", [PREFILL, DECODE])
def test_rows_and_parts_add_up(phase: Phase) -> None:
    both = against(phase, CHIP.scaled(memory_bandwidth=0.4, cores=0.5))
    table = both.frame()
    a, b = estimate(CHIP, "bloom-176b", phase, "tp=8", execution=IDEAL), both.total_b_s
    assert both.total_a_s == pytest.approx(a.latency_s, rel=1e-12)
    assert table["difference_s"].sum() == pytest.approx(b - a.latency_s)
    assert table["contribution"].sum() == pytest.approx(1.0)
    parts = table[[f"{part}_difference_s" for part in PARTS]].sum(axis=1)
    for of_parts, whole in zip(parts, table["difference_s"], strict=True):
        assert of_parts == pytest.approx(whole, abs=1e-12)


def test_reason_is_the_bandwidth_that_was_cut() -> None:
    why = reasons(against(DECODE, CHIP.scaled(memory_bandwidth=0.5)))
    assert why["up"] == "memory: 3.35 against 1.68 TB/s at the same bytes"
    assert why["all_reduce_mlp"] == "the same"


def test_reason_is_the_arithmetic_that_was_cut() -> None:
    why = reasons(against(PREFILL, CHIP.scaled(systolic_array=0.5)))
    assert why["up"].startswith("compute: ")
    assert why["up"].endswith(" TFLOP/s")


def test_reason_is_the_bound_that_changed() -> None:
    why = reasons(against(Phase.prefill(1, 600), CHIP.scaled(memory_bandwidth=0.3)))
    assert why["up"].startswith("compute against memory: ")


def test_reason_is_the_links_that_were_cut() -> None:
    why = reasons(against(PREFILL, CHIP.scaled(link_bandwidth=0.5)))
    assert why["all_reduce_mlp"] == "links: 455 against 227 GB/s at the same bytes"


def test_reason_is_the_launch_of_the_other_block() -> None:
    eager = block("eager", launch={"gemm": "20 us", "norm": "3 us"})
    both = against(Phase.decode(1, 16), CHIP, eager)
    assert (both.name_a, both.name_b) == ("ideal", "eager")
    assert reasons(both)["norm_mlp"] == "launch: 0 against 3 µs"
    assert reasons(both)["qkv"] == "launch: 0 against 20 µs"


def test_different_operators_are_compared_by_group() -> None:
    other = block("other", kernels={"attention": "unfused", "qkv": "separate"})
    both = against(PREFILL, CHIP, other)
    assert both.by == "group"
    names = [row.name for row in both.rows]
    assert names == [group for group in GROUPS if group in names]
    assert {"qkv", "attention"} <= set(names)
    fused, unfused = (
        estimate(CHIP, "bloom-176b", PREFILL, "tp=8", execution=e) for e in (IDEAL, other)
    )
    assert (both.total_a_s, both.total_b_s) == pytest.approx(
        (fused.latency_s, unfused.latency_s)
    )


def test_waterfall_walks_from_one_total_to_the_other() -> None:
    both = against(PREFILL, CHIP.scaled(memory_bandwidth=0.3))
    first, *steps, last = both.waterfall()
    assert (first.kind, last.kind) == ("total", "total")
    assert (first.seconds, last.seconds) == (both.total_a_s, both.total_b_s)
    assert steps[-1].reached_s == pytest.approx(last.seconds)
    sizes = [abs(step.seconds) for step in steps]
    assert sizes == sorted(sizes, reverse=True)
    assert len(steps) == len(both.rows)


def test_same_runs_are_the_same() -> None:
    both = against(DECODE, CHIP)
    assert set(reasons(both).values()) == {"the same"}
    assert both.name_a != both.name_b
    assert set(both.frame()["contribution"]) == {0.0}


def test_reference_by_group_and_by_layer() -> None:
    ours = estimate(CHIP, "bloom-176b", DECODE, "tp=8", execution=IDEAL, layers_only=True)
    seconds = {"mlp": 1e-4, "attention": 2e-4, "lm_head": 0.0}
    both = compare(ours, Reference("LLMCompass", seconds, layers=1))
    rows = {row.name: row for row in both.rows}
    assert both.by == "group"
    assert rows["mlp"].b.latency_s == pytest.approx(70 * 1e-4)
    assert rows["qkv"].why == "only in a"
    assert rows["mlp"].why.startswith("ours: ")
    assert both.total_b_s == pytest.approx(70 * 3e-4)
    assert both.frame()["memory_difference_s"].isna().all()
    assert compare(ours, seconds).total_b_s == pytest.approx(3e-4)


def test_reference_by_operator() -> None:
    ours = estimate(CHIP, "bloom-176b", DECODE, "tp=8", execution=IDEAL, layers_only=True)
    seconds = {row.name: 2 * row.latency_s for row in ours.rows}
    both = compare(ours, seconds)
    assert both.by == "operator"
    assert [row.ratio for row in both.rows] == pytest.approx([2.0] * len(seconds))


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        ({}, "at least one operator or group"),
        ({"attentoin": 1.0}, "did you mean attention"),
        ({"mlp": -1.0}, "mlp: -1.0 is not allowed"),
        ({"mlp": math.nan}, "mlp: nan is not allowed"),
        ({"mlp": math.inf}, "mlp: inf is not allowed"),
        ({"mlp": "1"}, "mlp: '1' is not allowed"),
    ],
)
def test_bad_reference_is_one_line(seconds: dict[str, float], says: str) -> None:
    ours = estimate(CHIP, "bloom-176b", DECODE, "tp=8", execution=IDEAL)
    with pytest.raises(ChipsimError, match=says) as error:
        compare(ours, seconds)
    assert "\n" not in str(error.value)
