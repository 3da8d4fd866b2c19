"""Grouped GEMMs: against batched GEMMs and roofline; monotone in work and chip."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chipsim.kernels.gemm import Shape
from chipsim.kernels.gemm_search import search
from chipsim.kernels.grouped import GroupedShape, grouped_search
from tests.kernels.machines import machine, machines, plain

shapes = st.builds(
    GroupedShape,
    n=st.integers(1, 3000), k=st.integers(1, 3000),
    a_bytes=st.sampled_from([1.0, 2.0]), b_bytes=st.sampled_from([0.5625, 1.0, 2.0]),
    c_bytes=st.sampled_from([2.0]), macs=st.sampled_from([1.0, 4.0]),
    sum_bytes=st.sampled_from([2.0, 4.0]),
    blocks=st.sampled_from([False, False, True]), step_scale=st.sampled_from([1.0, 2.0]),
    sum_flops=st.sampled_from([0.0, 2.0]),
)  # fmt: skip
groups = st.lists(
    st.tuples(st.floats(0.1, 200.0), st.floats(1.0, 900.0)), min_size=1, max_size=4
)
RISING = {
    "memory_bandwidth": 2.0, "core_draw": 2.0, "l2_bandwidth": 2.0, "tensor_clock": 2.0,
    "sram": 2.0, "l2_capacity": 2.0, "core_feed": 2.0, "core_store": 2.0,
    "step_latency": 0.5, "sync": 0.5,
}  # fmt: skip


def latency(
    fields: dict[str, float], shape: GroupedShape, load: list[tuple[float, float]]
) -> float:
    experts, rows = (np.array(column, np.float64) for column in zip(*load, strict=True))
    return float(grouped_search(machine(**fields), shape, experts, rows)[1].latency)


@given(machines, shapes, st.integers(1, 40), st.integers(1, 700))
def test_whole_numbers_are_a_batched_product(
    fields: dict[str, float], shape: GroupedShape, experts: int, rows: int
) -> None:
    a, b, c, macs = shape.a_bytes, shape.b_bytes, shape.c_bytes, shape.macs
    kernel = (shape.sum_bytes, shape.blocks, shape.step_scale, shape.sum_flops)
    batched = Shape(rows, shape.n, shape.k, experts, a, b, c, macs, True, *kernel)
    found = search(machine(**fields), batched)[1]
    assert latency(fields, shape, [(experts, rows)]) == pytest.approx(found, rel=1e-12)


@given(machines, shapes, groups)
def test_never_below_the_roofline(
    fields: dict[str, float], shape: GroupedShape, load: list[tuple[float, float]]
) -> None:
    chip = plain(**fields)
    found = latency(fields, shape, load)
    rows, experts = sum(e * r for e, r in load), sum(e for e, _ in load)
    moved = rows * shape.k * shape.a_bytes + experts * shape.k * shape.n * shape.b_bytes
    moved += rows * shape.n * shape.c_bytes
    if chip.warm:
        moved = experts * shape.k * shape.n * shape.b_bytes
    peak = chip.half_flops * shape.macs * chip.tensor_share
    if chip.rows:
        cells = chip.cores * chip.lanes * chip.rows * chip.columns
        peak = 2 * cells * shape.macs * chip.tensor_clock * chip.tensor_share
    least = max(moved / chip.memory_bandwidth, 2 * rows * shape.n * shape.k / peak)
    assert found >= least * (1 - 1e-9)


@given(machines, shapes, groups, st.sampled_from(sorted(RISING)))
def test_more_of_a_resource_is_never_slower(
    fields: dict[str, float], shape: GroupedShape, load: list[tuple[float, float]], name: str
) -> None:
    before = latency(fields, shape, load)
    assume(math.isfinite(before))
    value = fields.get(name, math.inf)
    more = fields | {name: value * RISING[name]}
    assert latency(more, shape, load) <= before * (1 + 1e-9)


@given(machines, shapes, groups)
def test_more_rows_are_never_faster(
    fields: dict[str, float], shape: GroupedShape, load: list[tuple[float, float]]
) -> None:
    # With fewer outputs than cores one more lets another core draw from memory.
    assume(sum(experts * rows for experts, rows in load) * shape.n >= fields["cores"])
    before = latency(fields, shape, load)
    assume(math.isfinite(before))
    wider = [(experts, rows + 16.0) for experts, rows in load]
    assert latency(fields, shape, wider) >= before * (1 - 1e-9)


def test_experts_fill_the_cores_together() -> None:
    """Eight cores of 16 x 16 cells x 4: an expert of one tile each, one wave."""
    shape = GroupedShape(64, 4096, 2.0, 2.0, 2.0, 1.0)
    fields = {"memory_bandwidth": 1e15, "l2_bandwidth": 1e15}
    eight, sixteen = (latency(fields, shape, [(experts, 16.0)]) for experts in (8.0, 16.0))
    assert eight == pytest.approx(4096e-9, rel=0.05)
    assert sixteen == pytest.approx(2 * eight, rel=0.05)
