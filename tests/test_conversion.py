"""Formats that the matrix units lack: what they run in, what that costs, that it is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.batch import gemm_latencies
from chipsim.chip import Chip
from chipsim.conversion import compute_format
from chipsim.errors import ConfigError
from chipsim.execution import Execution
from chipsim.ops.formats import FORMATS, get_format
from chipsim.ops.operators import Attention, Gemm
from chipsim.performance import PerformanceModel

H100, B200, A100, TPU = (
    Chip.load(name) for name in ("h100-sxm", "b200-sxm", "a100-sxm", "tpu-v3")
)
SERIAL = Execution.build("serial", name="serial", source="test", overlap={"vector": 0.0})


@pytest.mark.parametrize(
    ("chip", "formats", "runs_in"),
    [
        (H100, ("fp16", "fp16"), "fp16"),
        (H100, ("fp8", "fp8"), "fp8"),
        (H100, ("bf16", "fp8"), "bf16"),
        (H100, ("bf16", "int4-g128"), "bf16"),
        (H100, ("fp8", "nvfp4"), "fp8"),
        (H100, ("nvfp4", "nvfp4"), "bf16"),
        (H100, ("bfp8", "bfp8"), "bf16"),
        (H100, ("fp16", "w2.5"), "fp16"),
        (B200, ("nvfp4", "nvfp4"), "nvfp4"),
        (A100, ("fp8", "fp8"), "bf16"),
        (A100, ("int4", "int4"), "int4"),
        (TPU, ("fp16", "fp16"), "bf16"),
    ],
)
def test_what_a_product_runs_in(chip: Chip, formats: tuple[str, str], runs_in: str) -> None:
    assert compute_format(chip, formats) == runs_in


@pytest.mark.parametrize("name", ["fp32"])
def test_what_no_unit_holds_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"h100-sxm: .*macs_per_cycle: 'fp32' .* narrower"):
        compute_format(H100, (name, "fp16"))


def test_rates_are_those_of_the_table() -> None:
    """8192^3 in nvfp4 on a B200 runs at its nvfp4 peak; on an H100 at its bf16 peak."""
    gemm = Gemm("x", 8192, 8192, 8192, 1, "nvfp4", "nvfp4", "bf16")
    new, old = (PerformanceModel(chip, "ideal").estimate(gemm) for chip in (B200, H100))
    assert (new.conversion, "conversion" in new.parts) == ("", False)
    assert gemm.flops / new.latency_s < B200.tensor_flops("nvfp4")
    assert gemm.flops / new.latency_s > 0.8 * B200.tensor_flops("nvfp4")
    assert 0.8 * H100.tensor_flops("bf16") < gemm.flops / old.latency_s
    assert gemm.flops / old.latency_s < H100.tensor_flops("bf16")
    assert old.conversion == "activations nvfp4 -> bf16, weights nvfp4 -> bf16"


def test_conversions_cost_time_of_the_vector_units() -> None:
    """One by one: 12288^2 weights, a cast and a scaling each, at 133.8 TFLOP/s."""
    gemm = Gemm("gemv", 1, 12288, 12288, 1, "bf16", "int4", "bf16")
    found = PerformanceModel(H100, SERIAL).estimate(gemm)
    vector = 2 * 12288**2 / (2 * H100.vector_flops)
    assert found.parts["conversion"] == pytest.approx(vector, rel=1e-12)
    assert found.conversion == "weights int4 -> bf16"
    parts = dict(found.parts)
    assert found.latency_s == pytest.approx(
        sum(parts.values()) - 2 * parts.pop("hidden"), rel=1e-12
    )


def test_few_bits_wait_for_the_vector_units_in_the_end() -> None:
    """1 bit a weight: 18.9 MB in 5.6 us, but 302 MFLOP to unpack in 33 us of a quarter
    of the vector units."""
    chip = Chip.load("spad-decode").scaled(vector_width=0.25)
    model = PerformanceModel(chip, "ideal")
    gemv = Gemm("gemv", 1, 12288, 12288, 1, "fp16", "w1", "fp16")
    unpack = 2 * 12288**2 / (2 * chip.vector_flops)
    found = model.estimate(gemv)
    assert found.latency_s == pytest.approx(unpack, rel=1e-12)
    assert found.bound == "compute"
    wide = model.estimate(Gemm("gemv", 1, 12288, 12288, 1, "fp16", "w8", "fp16"))
    assert wide.bound == "memory"
    assert wide.parts["conversion"] == 0.0


def test_cached_rows_are_converted_too() -> None:
    step = Attention("a", 64, 64, 8, 128, context=4096, q_format="bf16", kv_format="fp8")
    found = PerformanceModel(H100, SERIAL).estimate(step)
    assert found.conversion == "KV fp8 -> bf16"
    rows = 64 * 8 * 4096 * 256
    assert found.parts["conversion"] == pytest.approx(rows / (2 * H100.vector_flops), rel=1e-12)


@pytest.mark.parametrize("chip", ["h100-sxm", "a100-sxm", "tpu-v3"])
def test_half_precision_converts_nothing(chip: str) -> None:
    native = "bf16" if chip == "tpu-v3" else "fp16"
    found = PerformanceModel(chip).estimate(Gemm("x", 64, 64, 64, 1, native, native, native))
    assert (found.conversion, "conversion" in found.parts) == ("", False)


def test_batches_convert_as_single_estimates_do() -> None:
    shapes = [[1, 4096, 4096], [300, 4096, 4096]]
    found = gemm_latencies([H100, B200], shapes, formats=("bf16", "nvfp4", "bf16"))
    for row, chip in enumerate((H100, B200)):
        for column, (m, n, k) in enumerate(shapes):
            gemm = Gemm("x", m, n, k, 1, "bf16", "nvfp4", "bf16")
            assert found[row, column] == PerformanceModel(chip).estimate(gemm).latency_s


formats = st.one_of(
    st.sampled_from([name for name in FORMATS if get_format(name).bits <= 16]),
    st.sampled_from(["int4-g32", "w2.5", "w1.58"]),
)


@given(
    formats, st.integers(1, 300), st.integers(1, 5000), st.integers(1, 5000),
    st.sampled_from(["cores", "clock", "memory_bandwidth", "vector_width"]),
    st.floats(0.3, 1.0), st.booleans(),
)  # fmt: skip
def test_cutting_a_chip_never_makes_conversions_faster(
    weights: str, m: int, n: int, k: int, resource: str, fraction: float, serial: bool
) -> None:
    gemm = Gemm("x", m, n, k, 1, "bf16", weights, "bf16")
    block = SERIAL if serial else "ideal"
    whole = PerformanceModel(H100, block).estimate(gemm)
    cut = PerformanceModel(H100.scaled(**{resource: fraction}), block).estimate(gemm)
    assert cut.latency_s >= whole.latency_s * (1 - 1e-9)
    assert whole.latency_s >= whole.lower_bound_s * (1 - 1e-12)
