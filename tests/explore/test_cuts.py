"""Cuts: never faster, equal to single estimates, and small chips are results."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipsim.chip import Chip
from chipsim.errors import ChipsimError, InfeasibleError
from chipsim.explore.cuts import Cut, CutsResult, cuts
from chipsim.explore.largest import largest_within
from chipsim.memory import memory_plan
from chipsim.ops.model import ModelSpec
from chipsim.ops.parallelism import Parallelism
from chipsim.ops.phase import Phase
from chipsim.ops.precision import Precision
from chipsim.phases import estimate

PREFILL, DECODE = Phase.prefill(2, 1024), Phase.decode(64, 1024)
MONOTONE = ("memory_bandwidth", "cores", "clock", "l2", "link_bandwidth")
DESCENDING = (1.0, 0.83, 0.5, 0.31, 0.1)


def bloom(phase: Phase, resources: object, **options: object) -> CutsResult:
    options = {"plan": "tp=8", "execution": "ideal"} | options
    return cuts("spad-h100", "bloom-176b", phase, resources, **options)  # type: ignore[arg-type]


def phases() -> st.SearchStrategy[Phase]:
    size = st.integers(1, 300)
    return st.one_of(
        st.builds(Phase.prefill, st.integers(1, 3), size),
        st.builds(Phase.decode, st.integers(1, 90), st.integers(1, 5000)),
    )


@settings(max_examples=15)
@given(
    chip=st.sampled_from(["spad-h100", "a100-sxm", "mi210", "tpu-v3", "spad-decode"]),
    phase=phases(),
    resource=st.sampled_from(MONOTONE),
    block=st.sampled_from(["ideal", "llmcompass-tables", "llmcompass-public", "a100-eager"]),
)
def test_less_is_never_faster(chip: str, phase: Phase, resource: str, block: str) -> None:
    curve = cuts(
        chip, "llama-3.1-8b", phase, {resource: DESCENDING}, plan="tp=4", execution=block,
        precision="bf16", check_memory=False,
    )  # fmt: skip
    slowdowns = [point.slowdown or 0.0 for point in curve.points]
    assert slowdowns[0] == 1.0
    for wider, narrower in itertools.pairwise(slowdowns):
        assert narrower >= wider * (1 - 1e-12)


@settings(max_examples=8)
@given(
    context=st.integers(1, 4000),
    itl_s=st.floats(0.02, 0.5),
    resource=st.sampled_from(["memory_capacity", "memory_bandwidth"]),
)
def test_less_never_carries_more_tokens(context: int, itl_s: float, resource: str) -> None:
    curve = bloom(Phase.decode(1, context), {resource: [1, 0.8, 0.6]}, batch="max", itl_s=itl_s)
    batches = [point.answer.batch for point in curve.points]
    assert batches == sorted(batches, reverse=True)
    for point in curve.points:
        assert point.latency_s is None or point.latency_s <= itl_s
        assert point.relative_throughput <= 1 + 1e-9


@pytest.mark.parametrize("phase", [PREFILL, DECODE])
def test_grid_is_the_product_of_single_estimates(phase: Phase) -> None:
    grid = bloom(phase, {"memory_bandwidth": [1, 0.5], "cores": "132, 66, 44"})
    chip = Chip.load("spad-h100")
    expected = [
        estimate(
            chip.scaled(memory_bandwidth=bandwidth, cores=cores / 132),
            "bloom-176b",
            phase,
            "tp=8",
            execution="ideal",
        ).latency_s
        for bandwidth in (1, 0.5)
        for cores in (132, 66, 44)
    ]
    assert [point.latency_s for point in grid.points] == expected
    assert grid.resources == ("memory_bandwidth", "cores")
    table = grid.frame()
    assert list(table["value_2"]) == [132, 66, 44] * 2
    assert list(table["resource_2"].unique()) == ["cores"]


def test_records_hold_every_operator() -> None:
    curve = bloom(PREFILL, {"memory_bandwidth": [1, 0.3]})
    uncut, cut = curve.records()
    assert {"resource", "value", "fraction", "latency_s", "slowdown", "operators"} <= cut.keys()
    assert cut["value"] == 0.3 * 3.352e12
    assert sum(row["latency_s"] for row in cut["operators"]) == pytest.approx(cut["latency_s"])
    assert sum(row["share"] for row in cut["operators"]) == pytest.approx(1.0)
    assert {row["slowdown"] for row in uncut["operators"]} == {1.0}
    assert all(row["slowdown"] >= 1.0 for row in cut["operators"])
    table = curve.operators_frame()
    assert len(table) == 2 * len(curve.baseline.rows)
    assert table.loc[table["fraction"] == 0.3, "latency_s"].sum() == pytest.approx(
        cut["latency_s"]
    )


def test_frame_has_documented_columns() -> None:
    assert list(bloom(PREFILL, {"cores": [1]}).frame().columns) == [
        "resource", "value", "fraction", "latency_s", "slowdown", "fits", "shortfall_bytes",
        "batch", "tokens_per_s", "relative_throughput", "bound", "limit", "reason",
        "cost_usd", "tdp_w", "energy_j", "tokens_per_s_per_usd", "energy_j_per_token",
        "counterfactual", "unpriced",
    ]  # fmt: skip


def test_point_without_enough_memory_is_a_result() -> None:
    curve = bloom(DECODE, {"memory_capacity": "80 GiB, 74 GiB, 60 GiB"})
    fits = [point.answer.fits for point in curve.points]
    assert fits == [True, True, False]
    small = curve.points[-1]
    plan, model = Parallelism.parse("tp=8"), ModelSpec.load("bloom-176b")
    memory = memory_plan(Chip.load("spad-h100"), model, plan, Precision(), share=1.0)
    needed = memory.weights_bytes_per_chip + 64 * 1024 * memory.kv_bytes_per_token
    assert small.answer.shortfall_bytes == pytest.approx(needed - 60 * 2**30)
    assert (small.latency_s, small.slowdown, small.answer.tokens_per_s) == (None, None, 0.0)
    assert math.isnan(curve.frame()["latency_s"].iloc[-1])
    assert small.operators() == []
    assert "lacks" in small.answer.reason
    unchecked = bloom(DECODE, {"memory_capacity": [0.1]}, check_memory=False)
    assert unchecked.points[0].slowdown == 1.0


def test_point_without_room_for_a_tile_is_a_result() -> None:
    curve = bloom(DECODE, {"sram": [1, 0.005]})
    assert [point.answer.fits for point in curve.points] == [True, False]
    assert "core.sram" in curve.points[1].answer.reason


def test_largest_batch_is_the_largest() -> None:
    curve = bloom(DECODE, {"memory_capacity": [1, 0.8]}, batch="max", itl_s=0.03)
    chip, model = Chip.load("spad-h100"), ModelSpec.load("bloom-176b")
    plan = Parallelism.parse("tp=8")
    for point, fraction in zip(curve.points, (1, 0.8), strict=True):
        cut, batch = chip.scaled(memory_capacity=fraction), point.answer.batch
        most = memory_plan(cut, model, plan, Precision()).largest_batch(1024)
        assert 1 <= batch <= most
        assert point.latency_s is not None
        assert point.answer.tokens_per_s == batch / point.latency_s
        if point.answer.limit == "memory":
            assert batch == most
        else:
            over = estimate(
                cut, model, Phase.decode(batch + 1, 1024), "tp=8", execution="ideal",
                check_memory=False,
            )  # fmt: skip
            assert over.latency_s > 0.03


def test_prefill_takes_its_largest_batch_from_memory() -> None:
    curve = bloom(Phase.prefill(1, 2048), {"memory_capacity": [1, 0.7]}, batch="max")
    assert [point.answer.limit for point in curve.points] == ["memory", "memory"]
    first, second = curve.points
    assert first.answer.batch > second.answer.batch >= 1
    assert first.latency_s is not None
    assert first.answer.tokens_per_s == first.answer.batch * 2048 / first.latency_s


def test_points_that_not_even_one_sequence_fits() -> None:
    curve = bloom(DECODE, {"memory_capacity": [1, 0.5]}, batch="max")
    small = curve.points[1].answer
    assert (small.batch, small.fits, small.tokens_per_s) == (0, False, 0.0)
    assert small.shortfall_bytes > 0
    slow = bloom(DECODE, {"memory_bandwidth": [1, 0.1]}, batch="max", itl_s=0.03).points[1]
    assert (slow.answer.batch, slow.answer.fits, slow.answer.limit) == (0, True, "itl")
    assert slow.relative_throughput == 0.0
    assert "over the 0.03 s allowed" in slow.answer.reason


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"plan": "tp=5"}, "tp: 5 is not allowed for bloom-176b"),
        ({"plan": "tp=1"}, "bloom-176b at tp=1 on spad-h100: each chip lacks"),
        ({"batch": "max", "itl_s": 1e-6}, "a batch of 1 takes"),
        ({"plan": "tp=9"}, "tp: 9 is not allowed"),
    ],
)
def test_uncut_chip_must_run_the_phase(options: dict[str, object], says: str) -> None:
    with pytest.raises(InfeasibleError, match=says) as error:
        bloom(DECODE, {"cores": [0.5]}, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("resources", "options", "says"),
    [
        ({}, {}, "one resource, or two different"),
        ({"cores": [1], "l2": [1], "clock": [1]}, {}, "one resource, or two different"),
        ([Cut("cores", [1]), Cut("cores", [0.5])], {}, "one resource, or two different"),
        ({"cores": [0.5] * 101, "clock": [0.5] * 100}, {}, "10100 points"),
        ({"core": [1]}, {}, "did you mean cores"),
        ({"cores": [1]}, {"batch": "all"}, "fixed, max"),
        ({"cores": [1]}, {"itl_s": 0.05}, "with the largest batch of decode"),
        ({"cores": [1]}, {"itl_s": math.nan, "batch": "max"}, "itl: nan"),
        ({"cores": [1]}, {"itl_s": -1.0, "batch": "max"}, "itl: -1.0"),
        ({"cores": [1]}, {"memory_share": 1.5, "batch": "max"}, "share: 1.5"),
        ({"cores": [1]}, {"execution": "idea"}, "did you mean ideal"),
    ],
)
def test_bad_questions_are_one_line(
    resources: object, options: dict[str, object], says: str
) -> None:
    with pytest.raises(ChipsimError, match=says) as error:
        bloom(DECODE, resources, **options)
    assert "\n" not in str(error.value)


def test_progress_is_told() -> None:
    seen: list[tuple[int, int]] = []
    bloom(DECODE, {"cores": [1, 0.5]}, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 2), (2, 2)]


@given(
    base=st.floats(0, 10),
    slope=st.floats(0.001, 5),
    step=st.integers(1, 70),
    limit=st.floats(0.01, 1000),
    most=st.integers(0, 5000),
)
def test_largest_within_equals_a_plain_scan(
    base: float, slope: float, step: int, limit: float, most: int
) -> None:
    tried = []

    def latency(batch: int) -> float:
        tried.append(batch)
        return base + slope * math.ceil(batch / step)

    expected = sum(1 for batch in range(1, most + 1) if latency(batch) <= limit)
    tried.clear()
    assert largest_within(latency, limit, most) == expected
    assert len(tried) <= 2 + 2 * (most + 1).bit_length()
    assert all(1 <= batch <= most for batch in tried)


def test_held_resources_are_cut_at_every_point() -> None:
    """The same chip made by hand, and slowdowns over the whole one."""
    held = {"cores": 0.5, "l2": 0.6}
    run = bloom(DECODE, {"memory_bandwidth": [1.0, 0.7]}, held=held)
    whole = estimate("spad-h100", "bloom-176b", DECODE, "tp=8", execution="ideal").latency_s
    for point, part in zip(run.points, (1.0, 0.7), strict=True):
        chip = Chip.load("spad-h100").scaled(cores=0.5, l2=0.6, memory_bandwidth=part)
        by_hand = estimate(chip, "bloom-176b", DECODE, "tp=8", execution="ideal").latency_s
        assert point.latency_s == by_hand
        assert point.slowdown == by_hand / whole
        assert point.chip == chip
    assert run.resources == ("memory_bandwidth",)


@pytest.mark.parametrize(
    ("held", "says"),
    [
        ({"memory_bandwidth": 0.5}, "held.*not swept"),
        ({"bandwidth": 0.5}, "unknown resource"),
        ({"cores": 0.0}, "above 0"),
        ({"cores": math.nan}, "above 0"),
    ],
)
def test_what_cannot_be_held(held: dict[str, float], says: str) -> None:
    with pytest.raises(ChipsimError, match=says):
        bloom(DECODE, {"memory_bandwidth": [1.0]}, held=held)


def test_operators_carry_their_work() -> None:
    run = bloom(DECODE, {"cores": [0.5]})
    rows = run.points[0].operators()
    found = run.points[0].estimate
    assert found is not None
    assert sum(row["flops"] for row in rows) == pytest.approx(found.flops)
    assert all(row["memory_bytes"] >= 0 for row in rows)
