"""The search finds the least of a plain enumeration that shares no code with it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from chipsim.kernels.gemm import RESIDENT, Shape, evaluate
from chipsim.kernels.gemm_search import BLOCK_TILES, SPLITS, SQUARE_TILES, TILES, search
from tests.kernels.machines import MEASURED, machine, plain
from tests.kernels.oracle import everything, latency

TINY: list[tuple[dict[str, float], Shape]] = [
    ({"cores": 1}, Shape(1, 1, 1, 1, 2.0, 2.0, 2.0, 1.0, True)),
    ({"cores": 4}, Shape(37, 53, 11, 1, 2.0, 2.0, 2.0, 1.0, True)),
    ({"cores": 3, "multicast": 1.0}, Shape(48, 130, 7, 2, 2.0, 2.0, 4.0, 2.0, False)),
    ({"cores": 5, "overlap_weights": 0.6}, Shape(17, 90, 16, 1, 2.0, 1.0, 2.0, 1.0, True)),
    ({"cores": 4, "overlap_stores": 0.0}, Shape(130, 33, 5, 1, 2.0, 2.0, 2.0, 0.5, True)),
    ({"cores": 4, "core_draw": 2e10}, Shape(64, 64, 9, 1, 2.0, 2.0, 2.0, 1.0, True)),
    ({"cores": 4, "sram": 3000.0}, Shape(40, 20, 10, 1, 2.0, 2.0, 2.0, 1.0, True)),
    ({"cores": 4, "rows": 0.0}, Shape(40, 50, 6, 1, 2.0, 2.0, 2.0, 1.0, True)),
    ({"cores": 6, "l2_capacity": 3000.0}, Shape(100, 70, 8, 1, 2.0, 2.0, 2.0, 1.0, True)),
    ({"cores": 6, "l2_capacity": 9000.0}, Shape(150, 100, 8, 1, 2.0, 2.0, 2.0, 1.0, True)),
    ({"cores": 2, "l2_bandwidth": math.inf}, Shape(30, 60, 12, 1, 2.0, 2.0, 2.0, 1.0, True)),
    ({"cores": 4, "sram": 3000.0}, Shape(40, 20, 10, 1, 2.0, 2.0, 2.0, 1.0, True, 2.0)),
    ({"cores": 4, "memory_bandwidth": 1e9}, Shape(96, 97, 6, 3, 4.0, 2.0, 2.0, 1.0, True)),
    ({"cores": 4, "lanes": 3.0, "rows": 5.0, "columns": 7.0},
     Shape(19, 23, 29, 1, 2.0, 2.0, 2.0, 1.0, True)),
    ({"cores": 4} | MEASURED, Shape(37, 150, 70, 1, 2.0, 2.0, 2.0, 1.0, True)),
    ({"cores": 5, "memory_bandwidth": 1e10} | MEASURED,
     Shape(40, 50, 130, 2, 2.0, 2.0, 2.0, 1.0, False)),
    ({"cores": 6, "overlap_stores": 0.3, "l2_capacity": 3e4} | MEASURED,
     Shape(17, 90, 64, 1, 2.0, 2.0, 2.0, 1.0, True)),
    ({"cores": 6, "sram": 3000.0, "core_draw": 2e10} | MEASURED,
     Shape(33, 64, 40, 1, 2.0, 2.0, 2.0, 1.0, True)),
    ({"cores": 3, "rows": 0.0} | MEASURED,
     Shape(40, 70, 130, 1, 1.0, 1.0, 2.0, 1.0, True, 4.0, True, 2.0, 2.0)),
    ({"cores": 4, "l2_bandwidth": math.inf} | MEASURED,
     Shape(70, 200, 130, 1, 1.0, 1.0, 2.0, 1.0, True, 4.0, True, 1.0, 2.0)),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "shape"), TINY)
def test_search_is_the_least_of_everything(fields: dict[str, float], shape: Shape) -> None:
    chip = plain(**fields)
    sides = [int(side) for side in TILES if side <= 2 * max(shape.m, shape.n, 16)]
    splits = [int(split) for split in SPLITS if split <= 4]
    if shape.blocks:
        sides, splits = [int(side) for side in BLOCK_TILES], [1]
    best = min(latency(chip, shape, p) for p in everything(chip, shape, sides, splits))
    _, found, covered, costed = search(machine(**fields), shape)
    more_splits = [int(split) for split in SPLITS if split > 4]
    if not shape.blocks and shape.k > 4:
        rest = everything(chip, shape, [16, 32, 48, 64], more_splits)
        best = min([best, *(latency(chip, shape, p) for p in rest)])
    assert found == pytest.approx(best, rel=1e-12)
    assert covered >= 1
    assert costed >= 1


@pytest.mark.parametrize(("fields", "shape"), TINY)
def test_evaluate_agrees_with_the_oracle(fields: dict[str, float], shape: Shape) -> None:
    chip = machine(**fields)
    names = dict(zip(RESIDENT, ("", "A", "B", "A+b", "B+a"), strict=True))
    mapping, found, _, _ = search(chip, shape)
    point = (*mapping[:6], names[RESIDENT[mapping.resident]], mapping.buffers)
    assert evaluate(chip, shape, mapping).latency == found
    assert latency(plain(**fields), shape, point) == pytest.approx(found, rel=1e-12)


def test_square_tiles_are_square_or_cut_by_the_matrix() -> None:
    shape = Shape(300, 5000, 256, 1, 2.0, 2.0, 2.0, 1.0, True)
    mapping, _, _, _ = search(machine(square_tiles=1.0, cores=64), shape)
    assert mapping.tm in SQUARE_TILES
    assert mapping.tn in SQUARE_TILES
    short, long = sorted((mapping.tm, mapping.tn))
    covered = mapping.tm >= shape.m if short == mapping.tm else mapping.tn >= shape.n
    assert short == long or covered


def test_a_restricted_mapper_is_never_faster() -> None:
    for m in (1, 64, 300, 2048):
        shape = Shape(m, 1792, 1024, 1, 2.0, 2.0, 2.0, 1.0, True)
        free: Any = search(machine(cores=64), shape)[1]
        assert free <= search(machine(cores=64, square_tiles=1.0), shape)[1]


def test_no_tile_fits_a_sram_below_its_accumulators() -> None:
    found = search(machine(sram=900.0), Shape(64, 64, 64, 1, 2.0, 2.0, 2.0, 1.0, True))[1]
    assert math.isinf(found)


def test_output_stationary_pass_of_a_tile() -> None:
    """One 16 x 16 tile over k = 100 takes k + rows + columns - 2 cycles."""
    chip = machine(cores=1, lanes=1, memory_bandwidth=1e15, l2_bandwidth=math.inf)
    found = search(chip, Shape(16, 16, 100, 1, 2.0, 2.0, 2.0, 1.0, True))[1]
    assert found == pytest.approx((100 + 16 + 16 - 2) / 1e9, rel=1e-12)


def test_130_by_130_on_a_128_array_is_four_passes() -> None:
    chip = machine(cores=1, lanes=1, rows=128, columns=128, sram=2e6,
                   memory_bandwidth=1e16, l2_bandwidth=math.inf)  # fmt: skip
    found = search(chip, Shape(130, 130, 4096, 1, 2.0, 2.0, 2.0, 1.0, True))[1]
    assert found >= 4 * 4096 / 1e9
