"""Factors of measured silicon: each changes the time of a product as its definition says.

Mappings are given, so every time is a sum that is written out here; the search over them is
held to an exhaustive one in ``tests/kernels/test_gemm_exact.py``.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from chipsim.chip import Chip
from chipsim.execution import Execution
from chipsim.kernels.gemm import B_PANEL, NONE, Mapping, Shape, evaluate
from chipsim.kernels.gemm_search import BLOCK_TILES
from chipsim.machine import machine_record
from chipsim.ops.operators import Attention, Elementwise, Gemm, Quantise
from chipsim.performance import PerformanceModel
from tests.kernels.machines import machine
from tests.test_factors import VAST, about, block, chip

SHAPE = Shape(128, 96, 256, 1, 2.0, 2.0, 2.0, 1.0, True)
"""12 tiles of 32 x 32 on 8 cores: 2 waves, each of 4 steps along k."""
MAPPING = Mapping(32, 32, 64, 1, 2, 3, NONE, 2)
SPLIT = MAPPING._replace(split=2, rm=1, rn=3)
FREE: dict[str, Any] = {"memory_bandwidth": VAST, "l2_bandwidth": VAST}
"""Nothing but the cores takes time."""
ARRAYS = 2 * (256 + 4 * 30) * 1e-9
"""2 waves: one pass per lane of 256 cycles, and 4 slices that fill and drain."""


def cost(shape: Shape = SHAPE, mapping: Mapping = MAPPING, **fields: Any) -> Any:
    return evaluate(machine(**fields), shape, mapping)


def test_neutral_factors_leave_the_arrays() -> None:
    assert cost(**FREE).latency == about(ARRAYS)


@pytest.mark.parametrize("feed", [1e9, 4e9])
def test_a_core_takes_in_its_panels_at_its_own_rate(feed: float) -> None:
    """2 waves of 32 rows of A and 32 of B, 256 long, 2 bytes each."""
    found = cost(core_feed=feed, **FREE)
    assert found.core == found.l2 == about(2 * (32 + 32) * 256 * 2 / feed)


def test_rows_beyond_the_matrix_are_not_fetched() -> None:
    flat = SHAPE._replace(m=5, n=20)
    found = cost(flat, MAPPING._replace(rm=1, rn=1), core_feed=1e9, **FREE)
    assert found.core == about((5 + 20) * 256 * 2 / 1e9)


@pytest.mark.parametrize("rate", [1e9, 4e9])
def test_nothing_hides_the_stores_of_a_tile(rate: float) -> None:
    found = cost(core_store=rate, **FREE)
    assert found.latency == about(ARRAYS + 2 * 32 * 32 * 2 / rate)


def test_a_split_k_stores_sums_and_meets_before_it_adds_them_up() -> None:
    """3 waves of half the length; 2 x 2 sums of 4 bytes per output through the ports."""
    waves = 3 * (128 + 2 * 30) * 1e-9
    alone = cost(mapping=SPLIT, merged_split=1.0, **FREE)
    assert alone.latency == about(waves)
    stored = cost(mapping=SPLIT, merged_split=1.0, core_store=1e9, sync=5e-6, **FREE)
    assert stored.latency == about(waves + 3 * 32 * 32 * 4 / 1e9 + 5e-6)
    moved = cost(mapping=SPLIT, core_feed=1e12, sync=5e-6, **FREE)
    assert moved.reduction == about(5e-6 + 2 * 2 * 128 * 96 * 4 / (8 * 1e12))
    assert cost(sync=5e-6, **FREE).reduction == 0.0


def test_a_step_along_k_has_a_latency_that_no_tile_is_too_small_for() -> None:
    """256 elements of 2 bytes are 4 lines of 128; of 1 byte 2; scales double the latency."""
    assert cost(step_latency=1e-6, **FREE).latency == about(2 * 4 * 1e-6)
    assert cost(step_latency=1e-9, **FREE).latency == about(ARRAYS)
    narrow = SHAPE._replace(a_bytes=1.0, b_bytes=1.0)
    assert cost(narrow, step_latency=1e-6, **FREE).latency == about(2 * 2 * 1e-6)
    scaled = narrow._replace(step_scale=2.0)
    assert cost(scaled, step_latency=1e-6, **FREE).latency == about(2 * 2 * 2e-6)
    ragged = SHAPE._replace(k=257)
    assert cost(ragged, step_latency=1e-6, **FREE).steps == about(2 * 5 * 1e-6)


def test_scaled_sums_stop_the_arrays() -> None:
    """2 FLOP per sum after each 128 of k, on a vector unit of 1/8 TFLOP/s."""
    scaled = SHAPE._replace(sum_flops=2.0)
    extra = 2 * 2 * 32 * 32 * 2 / (1e12 / 8)
    assert cost(scaled, **FREE).latency == about(ARRAYS + extra)


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0])
def test_compute_and_memory_join_with_an_exponent(p: float) -> None:
    """All traffic is that of B, read twice, which can be behind compute."""
    shape = SHAPE._replace(a_bytes=1e-12, c_bytes=1e-12, b_bytes=2.0)
    bandwidth = 2 * 2.0 * 96 * 256 / 1e-6
    found = cost(shape, memory_bandwidth=bandwidth, l2_bandwidth=VAST, join=p)
    assert found.latency == pytest.approx((ARRAYS**p + 1e-6**p) ** (1 / p), rel=1e-6)
    serial: dict[str, Any] = {
        "overlap_weights": 0.0,
        "overlap_activations": 0.0,
        "overlap_stores": 0.0,
    }
    apart = cost(shape, memory_bandwidth=bandwidth, l2_bandwidth=VAST, join=p, **serial)
    assert apart.latency == pytest.approx(ARRAYS + 1e-6, rel=1e-6)


@pytest.mark.parametrize(("join", "p"), [(math.inf, 2.0), (4.0, 4.0)])
def test_memory_and_what_cores_draw_join_with_it_too(join: float, p: float) -> None:
    found = cost(memory_bandwidth=1e11, core_draw=1e10, join=join)
    assert found.bandwidth == about(((1 / 1e11) ** p + (1 / 8e10) ** p) ** (-1 / p))


def test_the_clock_falls_under_a_long_load() -> None:
    """At ``loaded_after`` of full clock the work done is 1 + 1 of 1 + 0.6; then all of 0.6."""
    half = cost(loaded_clock=0.6, loaded_after=ARRAYS, **FREE)
    assert half.latency == about(ARRAYS * 2 / 1.6)
    short = cost(loaded_clock=0.6, loaded_after=1.0, **FREE)
    long = cost(loaded_clock=0.6, loaded_after=1e-12, **FREE)
    assert short.latency == pytest.approx(ARRAYS, rel=1e-5)
    assert long.latency == pytest.approx(ARRAYS / 0.6, rel=1e-5)


A, B, C = 128 * 256 * 2, 96 * 256 * 2, 128 * 96 * 2


@pytest.mark.parametrize(
    ("capacity", "found"), [(2.0, 1.0), (4 / 3, 0.5), (1.0, 0.0), (0.5, 0.0)]
)
def test_warm_activations_stay_in_l2_and_weights_do_not(capacity: float, found: float) -> None:
    """One raster holds all tiles, so each operand is read once."""
    fields: dict[str, Any] = {"warm": 1.0, "l2_capacity": capacity * (A + B + C), "cores": 12}
    mapping = MAPPING._replace(rm=4, rn=3)
    assert cost(mapping=mapping, **fields).traffic == about(B + (1 - found) * (A + C))
    cached = SHAPE._replace(weights=False)
    assert cost(cached, mapping, **fields).traffic == about((1 - found) * (A + B + C))


# ---------------------------------------------------------------- through a block


def test_ports_of_a_core_go_with_the_edges_of_its_arrays() -> None:
    """2 lanes of 16 + 16 rows and columns at 1 GHz; a wider array has more of them."""
    named = block(core_feed=0.5, core_store=0.25)
    small, wide = (machine_record(chip(array=a), named)[0] for a in ((16, 16), (16, 48)))
    assert (small["core_feed"], small["core_store"]) == (32e9, 16e9)
    assert (wide["core_feed"], wide["core_store"]) == (64e9, 32e9)
    tensorless = Chip.load("a100-sxm").model_copy(deep=True)
    core = tensorless.core.model_copy(update={"systolic_array": None})
    none = machine_record(tensorless.model_copy(update={"core": core}), named)[0]
    assert math.isinf(none["core_feed"])
    assert math.isinf(machine_record(chip(), block())[0]["core_store"])


@pytest.mark.parametrize(
    ("factors", "bound"),
    [
        ({"core_feed": 1e-3}, "core draw"),
        ({"step_latency": 1e-4}, "overhead"),
        ({}, "compute"),
    ],
)
def test_the_bound_names_what_holds_the_busiest_core(
    factors: dict[str, float], bound: str
) -> None:
    found = PerformanceModel(chip(l2=None), block(**factors)).estimate(
        Gemm("product", 512, 512, 4096)
    )
    assert found.bound == bound


NARROW = {
    "fp8": {
        "quantisers": 3,
        "reads": 2,
        "blocks": True,
        "column": 1e-9,
        "steps": 2.0,
        "sum_flops": 2.0,
    }
}


def estimates(operator: Any, **kernels: Any) -> Any:
    named = block(
        launch={"gemm": 1e-6, "elementwise": 2e-6}, kernels=kernels, step_latency=1e-7
    )
    return PerformanceModel(chip(), named).estimate(operator)


def test_a_quantiser_takes_its_kernels_and_reads() -> None:
    """64 x 512 of bf16 in, of fp8 out with an fp32 scale per row."""
    quantise = Quantise("", 64, 512, "bf16", "fp8")
    plain, named = estimates(quantise), estimates(quantise, narrow=NARROW)
    assert (plain.parts["launch"], named.parts["launch"]) == (about(2e-6), about(6e-6))
    assert plain.memory_bytes == 64 * 512 * 3 + 64 * 4
    assert named.memory_bytes == 64 * 512 * 5 + 64 * 4
    other = estimates(quantise, narrow={"nvfp4": NARROW["fp8"]})
    assert other.parts == plain.parts


def test_kernels_of_blocks_have_two_sides_and_leave_k_whole() -> None:
    formats = ("fp8", "fp8", "fp16")
    shape = ("product", 16, 64, 65536, 1)
    free, named = (estimates(Gemm(*shape, *formats), narrow=narrow) for narrow in ({}, NARROW))
    assert free.mapping["split"] > 1
    assert named.mapping["split"] == 1
    assert {named.mapping["tm"], named.mapping["tn"]} <= set(BLOCK_TILES.tolist())
    assert named.parts["launch"] == about(1e-6 + 64 * 1e-9)
    assert named.parts["core"] >= 512 * 2e-7  # lines along k at twice the latency


def test_tiles_that_run_along_lines_read_the_other_operand_for_each() -> None:
    """A of twice L2, 64 columns of tiles: read 64 times; of half of L2, once."""
    size = 2**22
    for rows, reads in ((2 * size // 512, 64), (size // 1024, 1)):
        shape = SHAPE._replace(m=rows, n=64 * 128, k=256, lines=True, batch=1)
        mapping = Mapping(64, 128, 64, 1, 8, 1, B_PANEL, 2)
        free = evaluate(
            machine(**FREE), shape._replace(lines=False), mapping._replace(resident=4)
        )
        found = evaluate(machine(**FREE), shape, mapping)
        once = rows * 256 * 2.0
        assert found.traffic - (shape.n * 256 + rows * shape.n) * 2.0 == about(reads * once)
        assert free.traffic <= found.traffic


def test_caches_and_vectors_stream_at_a_rate_of_their_own() -> None:
    named = block(sustained={"memory": 0.4, "stream": 0.8})
    plain = block(sustained={"memory": 0.4})
    add, step = Elementwise("", 10**8, "fp16"), Attention("", 64, 8, 8, 64, context=4096)
    product = Gemm("", 16, 4096, 4096)
    for operator, faster in ((add, 2.0), (step, 2.0), (product, 1.0)):
        slow, fast = (
            PerformanceModel(chip(), each).estimate(operator) for each in (plain, named)
        )
        assert slow.parts["memory"] == about(faster * fast.parts["memory"])


def test_wide_activations_are_not_quantised() -> None:
    """Weights alone in 8 bits: no kernel of `NARROW` runs."""
    mixed = Gemm("product", 16, 512, 65536, 1, "fp16", "fp8", "fp16")
    assert estimates(mixed, narrow=NARROW).parts == estimates(mixed).parts


def test_arrays_that_take_fp8_take_its_blocks() -> None:
    blocks = Gemm("product", 64, 512, 512, 1, "fp8-block", "fp8-block", "fp16")
    plain = Gemm("product", 64, 512, 512, 1, "fp8", "fp8", "fp16")
    found, beside = (estimates(each) for each in (blocks, plain))
    assert found.conversion == ""
    assert found.parts["core"] == pytest.approx(beside.parts["core"], rel=0.02)


def test_warm_is_how_a_time_is_taken() -> None:
    """The lower bound leaves out what is not read: no estimate is below it."""
    product = Gemm("product", 4096, 64, 128)
    cold, warm = (
        PerformanceModel("h100-sxm", "ideal", warm=warm).estimate(product)
        for warm in (False, True)
    )
    assert warm.memory_bytes < 0.1 * product.bytes
    assert cold.memory_bytes == product.bytes
    assert warm.lower_bound_s <= warm.latency_s < cold.latency_s


def test_blocks_that_name_no_factor_are_neutral() -> None:
    assert Execution.load("ideal").kernels.narrow == {}
    record = machine_record(Chip.load("h100-sxm"), Execution.load("llmcompass-tables"))[0]
    neutral = {
        "core_feed": math.inf, "core_store": math.inf, "step_latency": 0.0, "sync": 0.0,
        "join": math.inf, "loaded_clock": 1.0, "warm": 0.0,
    }  # fmt: skip
    assert {name: float(record[name]) for name in neutral} == neutral
