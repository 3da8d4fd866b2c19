"""The performance model: parts add up, bounds are named, nothing is below its roofline."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipsim.arch_configs import names
from chipsim.chip import Chip
from chipsim.errors import ConfigError, InfeasibleError, UnknownNameError
from chipsim.execution import Execution
from chipsim.ops.operators import (
    Activation,
    AllReduce,
    Attention,
    Elementwise,
    Gemm,
    Norm,
    Operator,
    Softmax,
)
from chipsim.performance import PerformanceModel

BOUNDS = {"compute", "memory", "core draw", "link", "overhead"}
FORMAT = {"tpu-v3": "bf16", "llmcompass-tpu-v3": "bf16"}


def operators(format_name: str) -> list[Operator]:
    f = format_name
    return [
        Gemm("one", 1, 1, 1, 1, f, f, f),
        Gemm("prime", 127, 131, 8191, 1, f, f, f),
        Gemm("vector", 1, 12288, 12288, 1, f, f, f),
        Gemm("large", 4096, 12288, 12288, 1, f, f, f),
        Gemm("scores", 1024, 1024, 128, 28, f, f, f, b_is_weight=False),
        Attention("prefill", 2, 14, 14, 128, 128, 1024, 1024, q_format=f, kv_format=f),
        Attention("decode", 64, 16, 2, 128, 128, 1, 4096, q_format=f, kv_format=f),
        Softmax("softmax", 4096, 32768, f),
        Norm("norm", 4096, 32768, f),
        Activation("gelu", 2**20, f, "gelu"),
        Elementwise("residual", 2**20, f, 2, 1, 1),
        AllReduce("reduce", 2.0**20, 2),
    ]


@pytest.mark.parametrize("block", names("executions"))
@pytest.mark.parametrize("chip", names("chips"))
def test_every_chip_under_every_block(chip: str, block: str) -> None:
    model = PerformanceModel(chip, block)
    for operator in operators(FORMAT.get(chip, "fp16")):
        if isinstance(operator, AllReduce) and model.chip.machine.chips < operator.chips:
            continue
        found = model.estimate(operator)
        parts = dict(found.parts)
        hidden = parts.pop("hidden", 0.0)
        assert found.latency_s == pytest.approx(sum(parts.values()) - hidden, rel=1e-12)
        assert math.isfinite(found.latency_s)
        assert found.latency_s >= found.lower_bound_s * (1 - 1e-12)
        assert found.bound in BOUNDS
        assert 0 <= found.utilisation <= 1 + 1e-12
        assert found.flops == operator.flops
        assert found.operator is operator


def test_gemv_is_at_least_its_bytes() -> None:
    """1 x 12288 x 12288 in fp16 at 2.039 TB/s: 302,039,040 bytes, 148.13 us."""
    found = PerformanceModel("a100-sxm", "ideal").estimate(Gemm("gemv", 1, 12288, 12288))
    assert found.memory_bytes == 302_039_040
    assert found.latency_s == pytest.approx(148.13e-6, rel=1e-4)
    assert found.bound == "memory"


def test_bounds_are_named() -> None:
    ideal, tables = (PerformanceModel("spad-h100", b) for b in ("ideal", "llmcompass-tables"))
    assert ideal.estimate(Gemm("large", 8192, 8192, 8192)).bound == "compute"
    assert tables.estimate(Gemm("tiny", 1, 16, 16)).bound == "overhead"
    assert tables.estimate(AllReduce("reduce", 1e9, 8)).bound == "link"
    few = PerformanceModel(Chip.load("spad-h100").scaled(cores=0.1), "llmcompass-tables")
    assert few.estimate(Gemm("gemv", 1, 14336, 14336)).bound == "core draw"


def test_an_estimate_carries_its_mapping() -> None:
    mapping = PerformanceModel("spad-h100").estimate(Gemm("x", 2048, 7168, 14336)).mapping
    assert {"tm", "tn", "tk", "split", "rm", "rn", "resident", "buffers"} <= mapping.keys()
    assert mapping["rm"] * mapping["rn"] <= 132
    assert mapping["mappings"] > 1000


def test_same_shape_other_name_is_searched_once() -> None:
    model = PerformanceModel("spad-h100")
    first = model.estimate(Gemm("query", 64, 1792, 14336))
    second = model.estimate(Gemm("key", 64, 1792, 14336))
    assert first.latency_s == second.latency_s
    assert (first.operator.name, second.operator.name) == ("query", "key")
    assert first.parts is second.parts


def test_rows_longer_than_the_buffer_are_read_again() -> None:
    model = PerformanceModel("a100-sxm", "a100-eager")
    short, long = (model.estimate(Softmax("s", 64, n)) for n in (1024, 2048))
    assert short.memory_bytes == 64 * 1024 * 2 * 2
    assert long.memory_bytes == 64 * 2048 * 2 * 3


def test_one_chip_reduces_nothing() -> None:
    found = PerformanceModel("a100-sxm").estimate(AllReduce("reduce", 1e6, 1))
    assert found.latency_s == 0.0


def test_refusals_are_one_line() -> None:
    h100 = Chip.load("h100-sxm")
    with pytest.raises(InfeasibleError, match="its machine has 8"):
        PerformanceModel("spad-early-decode").estimate(AllReduce("reduce", 1e6, 16))
    with pytest.raises(InfeasibleError, match=r"core\.sram"):
        PerformanceModel(h100.scaled(sram=1e-3)).estimate(Gemm("x", 64, 64, 64))
    with pytest.raises(InfeasibleError, match="a query of attention, its keys"):
        PerformanceModel(h100.scaled(sram=1e-3)).estimate(Attention("x", 1, 8, 8, 64, 64, 9, 9))
    with pytest.raises(UnknownNameError, match="did you mean"):
        PerformanceModel("h100-sxn")
    with pytest.raises(UnknownNameError, match="llmcompass-tables"):
        PerformanceModel("h100-sxm", "llmcompass-table")


@settings(max_examples=60)
@given(
    st.sampled_from(["cores", "clock", "memory_bandwidth", "l2", "link_bandwidth"]),
    st.floats(0.2, 1.0),
    st.sampled_from([op for op in operators("fp16") if op.name != "one"]),
    st.sampled_from(["ideal", "llmcompass-tables", "a100-eager"]),
)
def test_cutting_a_chip_never_makes_it_faster(
    resource: str, fraction: float, operator: Operator, block: str
) -> None:
    chip = Chip.load("a100-sxm")
    whole = PerformanceModel(chip, block).estimate(operator)
    cut = PerformanceModel(chip.scaled(**{resource: fraction}), block).estimate(operator)
    assert cut.latency_s >= whole.latency_s * (1 - 1e-9)


def test_neutral_factors_are_the_ideal_machine() -> None:
    nothing = Execution.build("neutral", name="neutral", source="no factor named")
    named = Execution.load("ideal")
    assert nothing.model_dump(exclude={"name", "source"}) == named.model_dump(
        exclude={"name", "source"}
    )


def test_without_arrays_products_run_at_the_rate_of_their_format() -> None:
    chip = Chip.load("h100-sxm")
    core = chip.core.model_copy(update={"systolic_array": None})
    fields = {name: getattr(chip, name) for name in Chip.model_fields} | {"core": core}
    bare = PerformanceModel(Chip.build(chip.name, **fields), "ideal")
    work = 2.0 * 4096**3
    for name, peak in (("fp32", chip.vector_flops), ("fp16", chip.vector_peak(16))):
        found = bare.estimate(Gemm("x", 4096, 4096, 4096, 1, name, name, name))
        assert work / peak <= found.latency_s <= 1.2 * work / peak
        assert found.lower_bound_s == pytest.approx(work / peak)


def test_a_vector_operator_is_bound_by_the_rate_of_its_format() -> None:
    chip = Chip.load("h100-sxm").scaled(vector_width=0.01, memory_bandwidth=100.0)
    for name in ("fp32", "fp16"):
        found = PerformanceModel(chip, "ideal").estimate(Activation("x", 10**6, name))
        assert found.utilisation <= 1.0


def test_more_queries_than_a_kernel_walks_are_refused() -> None:
    with pytest.raises(ConfigError, match="at most 16777216"):
        PerformanceModel("h100-sxm").estimate(
            Attention("x", 1, 1, 1, 64, query=10**12, context=10**12)
        )
