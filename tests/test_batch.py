"""The batch API against single estimates: equal in every bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chipsim.batch import gemm_frame, gemm_latencies, machine_latencies
from chipsim.chip import Chip
from chipsim.errors import ChipsimError
from chipsim.kernels.gemm_batch import gemm_product
from chipsim.kernels.gemm_search import search
from chipsim.kernels.jit import _SOURCES
from chipsim.kernels.vector import vector_cost
from chipsim.machine import machine_record
from chipsim.ops.operators import Gemm
from chipsim.performance import PerformanceModel

SHAPES = np.array(
    [
        [1, 1, 1, 1],
        [7, 13, 17, 3],
        [64, 5376, 14336, 1],
        [2048, 12288, 12288, 1],
        [1024, 1024, 128, 28],
        [1, 50257, 4096, 1],
    ]
)
CHIPS = ["a100-sxm", "spad-h100", "mi210"]


def single(model: PerformanceModel, row: np.ndarray, formats: str, weight: bool) -> float:
    m, n, k, batch = (int(size) for size in row)
    gemm = Gemm("", m, n, k, batch, formats, formats, formats, weight)
    return model.estimate(gemm).latency_s


@pytest.mark.parametrize("threads", [1, 2, 3, None])
@pytest.mark.parametrize("weight", [True, False])
def test_batch_equals_single_in_every_bit(threads: int | None, weight: bool) -> None:
    models = [PerformanceModel(chip, "ideal") for chip in CHIPS]
    found = gemm_latencies(models, SHAPES, b_is_weight=weight, threads=threads)
    expected = [[single(m, row, "fp16", weight) for row in SHAPES] for m in models]
    np.testing.assert_array_equal(found, expected)


def test_each_chip_keeps_its_own_block_and_launch() -> None:
    ideal = PerformanceModel("a100-sxm", "ideal")
    launch = ideal.execution.launch.model_copy(update={"gemm": 2e-5})
    slow = PerformanceModel(ideal.chip, ideal.execution.model_copy(update={"launch": launch}))
    quick, late = gemm_latencies([ideal, slow], SHAPES)
    np.testing.assert_allclose(late - quick, 2e-5)
    assert late[3] == single(slow, SHAPES[3], "fp16", True)


def test_three_columns_are_a_batch_of_one() -> None:
    with_batch = gemm_latencies(["a100-sxm"], SHAPES[[0, 2, 3]], execution="ideal")
    without = gemm_latencies(["a100-sxm"], SHAPES[[0, 2, 3], :3], execution="ideal")
    np.testing.assert_array_equal(with_batch, without)


def test_records_of_numbers_are_taken() -> None:
    model = PerformanceModel("spad-h100", "ideal")
    record = machine_record(model.chip, model.execution)
    found = machine_latencies(np.concatenate([record, record]), SHAPES, launch_s=[0.0, 1.0])
    np.testing.assert_array_equal(found[0], gemm_latencies([model], SHAPES)[0])
    np.testing.assert_allclose(found[1], found[0] + 1.0)


def test_frame_is_chip_by_chip() -> None:
    table = gemm_frame(CHIPS[:2], SHAPES[:3], execution="ideal")
    columns = ["chip", "execution", "m", "n", "k", "batch", "latency_s"]
    assert list(table.columns) == columns
    assert list(table["chip"]) == ["a100-sxm"] * 3 + ["spad-h100"] * 3
    second = gemm_latencies(["spad-h100"], SHAPES[1:2], execution="ideal")
    assert table["latency_s"][4] == second[0, 0]


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        ([[1, 2]], "rows of m, n, k"),
        ([], "rows of m, n, k"),
        ([[1, 2, 3], [1, 2]], "rows of m, n, k"),
        ([[1, 2, 0]], "0 is not allowed"),
        ([[1, 2, -3]], "-3 is not allowed"),
        ([[1, 2, 10**16]], "whole numbers"),
        ([[1.0, 2.0, 3.5]], "whole numbers"),
        ([[1, 2, float("nan")]], "whole numbers"),
    ],
)
def test_bad_shapes_are_one_line(shapes: list[list[float]], says: str) -> None:
    with pytest.raises(ChipsimError, match=says) as error:
        gemm_latencies(["a100-sxm"], shapes, execution="ideal")
    assert "\n" not in str(error.value)


def test_bad_chips_threads_and_rates_are_one_line() -> None:
    for chips, threads in (([], 1), ("a100-sxm", 1), (["a100-sxm"], 0), (["a100"], 1)):
        with pytest.raises(ChipsimError) as error:
            gemm_latencies(chips, SHAPES, execution="ideal", threads=threads)
        assert "\n" not in str(error.value)
    model = PerformanceModel("mi210", "ideal")
    record = machine_record(model.chip, model.execution)
    with pytest.raises(ChipsimError, match="1 of them"):
        machine_latencies(record, SHAPES, launch_s=[1.0, 2.0])


def test_chip_without_room_for_a_tile_is_named() -> None:
    small = Chip.load("a100-sxm").scaled(sram=0.005)
    with pytest.raises(ChipsimError, match="a100-sxm: the SRAM"):
        gemm_latencies([small], SHAPES, execution="ideal")


def test_kernels_kept_on_disk_go_stale_with_any_of_their_sources() -> None:
    kernels: list[Any] = [search, vector_cost, gemm_product]
    for compiled in kernels:
        stamp = compiled._cache._cache_file._source_stamp
        assert _SOURCES in stamp, "numba has moved what chipsim.kernels.jit sets"
