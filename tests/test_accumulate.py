"""The format of sums: room in SRAM, partial sums, and rates of units that state several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.chip import Chip
from chipsim.kernels.attention import attention_search
from chipsim.kernels.gemm import Mapping, Shape, evaluate
from chipsim.kernels.gemm_search import search
from chipsim.ops.graph import Phase, phase_graph
from chipsim.ops.model import ModelSpec
from chipsim.ops.operators import Attention, Gemm
from chipsim.ops.precision import Precision
from chipsim.performance import PerformanceModel
from tests.kernels.machines import machine, machines, shapes
from tests.kernels.test_attention_exact import dense

ADA = PerformanceModel("rtx-4090", "ideal")


def gemm(accumulate: str, m: int = 8192, n: int = 8192, k: int = 8192) -> Gemm:
    return Gemm("x", m, n, k, accumulate=accumulate)


def test_a_table_by_sums_decides_the_rate() -> None:
    """White paper of Ada: 330.3 TFLOP/s with fp16 sums, 165.2 with fp32 ones."""
    for accumulate, peak in (("fp16", 330.3e12), ("fp32", 165.2e12)):
        found = ADA.estimate(gemm(accumulate))
        assert found.bound == "compute"
        assert found.flops / peak == pytest.approx(found.lower_bound_s, rel=1e-3)
        assert found.lower_bound_s <= found.latency_s < 1.1 * found.lower_bound_s
    assert ADA.chip.macs_per_cycle("bf16", "fp32") == ADA.chip.macs_per_cycle("bf16") == 0.5


def test_attention_and_experts_sum_at_that_rate_too() -> None:
    shape = {"query": 8192, "context": 8192, "name": "x", "batch": 1, "q_heads": 16}
    half, full = (
        ADA.estimate(Attention(**shape, kv_heads=4, head_dim=128, accumulate=name))  # type: ignore[arg-type]
        for name in ("fp16", "fp32")
    )
    assert full.lower_bound_s == pytest.approx(2 * half.lower_bound_s)
    assert full.latency_s > 1.4 * half.latency_s


def test_a_chip_that_states_one_rate_keeps_it() -> None:
    chip = Chip.load("h100-sxm")
    assert chip.tensor_flops("fp16", "fp16") == chip.tensor_flops("fp16")


def test_partial_sums_of_a_split_k_by_hand() -> None:
    """32 x 32 results, 4 parts each, written and read: 2 * 4 * 1024 * 2 B at 2 TB/s."""
    shape = (32, 32, 4096, 1, 2.0, 2.0, 2.0, 1.0, True)
    mapping = Mapping(32, 32, 64, 4, 1, 1, 0, 2)
    for sum_bytes in (2.0, 4.0):
        cost = evaluate(machine(), Shape(*shape, sum_bytes), mapping)
        assert cost.reduction == pytest.approx(2 * 4 * 1024 * sum_bytes / 2e12, rel=1e-12)


def test_narrow_sums_leave_room_for_a_larger_tile() -> None:
    """64 x 64 sums take 8 KiB in fp16 and 16 KiB in fp32, of 16 KiB."""
    sides = (256, 256, 1024, 1, 2.0, 2.0, 2.0, 1.0, True)
    mapping = Mapping(64, 64, 8, 1, 1, 1, 0, 2)
    small = machine(sram=16384.0)
    assert evaluate(small, Shape(*sides, 2.0), mapping).latency < 1.0
    assert evaluate(small, Shape(*sides, 4.0), mapping).latency == float("inf")


@given(machines, shapes)
def test_narrower_sums_are_never_slower(fields: dict[str, float], shape: Shape) -> None:
    wide, narrow = (shape._replace(sum_bytes=size) for size in (4.0, 2.0))
    chip = machine(**fields)
    assert search(chip, narrow)[1] <= search(chip, wide)[1] * (1 + 1e-12)


@given(machines, st.integers(1, 300), st.integers(0, 900))
def test_narrower_sums_never_slow_attention(
    fields: dict[str, float], query: int, before: int
) -> None:
    chip = machine(**fields)
    wide, narrow = (
        attention_search(
            chip, dense(1, 8, 2, 64, 64, query, query + before, 1, 0, sum_bytes=size)
        ).latency
        for size in (4.0, 2.0)
    )
    assert narrow <= wide * (1 + 1e-12)


@pytest.mark.parametrize("model", ["llama-3.1-8b", "deepseek-v3.2", "qwen3-30b-a3b"])
def test_every_product_of_a_graph_sums_in_the_format(model: str) -> None:
    precision = Precision.parse("accumulate=bf16")
    for phase in (Phase.prefill(1, 128), Phase.decode(2, 4096)):
        graph = phase_graph(ModelSpec.load(model), phase, precision=precision)
        formats = {
            getattr(node["operator"], "accumulate", "bf16") for _, node in graph.nodes.items()
        }
        assert formats == {"bf16"}
