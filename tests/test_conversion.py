"""Formats that the matrix units lack: what they run in, what that costs, that it is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.batch import gemm_latencies
from chipsim.chip import Chip
from chipsim.conversion import runs_in
from chipsim.execution import Execution
from chipsim.ops.formats import FORMATS
from chipsim.ops.operators import Attention, Gemm
from chipsim.performance import PerformanceModel

H100, B200, A100, TPU, MI210, SPAD = (
    Chip.load(name)
    for name in ("h100-sxm", "b200-sxm", "a100-sxm", "tpu-v3", "mi210", "spad-prefill")
)


def with_array(chip: Chip, array: object) -> Chip:
    """The chip with other arrays."""
    core = chip.core.model_dump() | {"systolic_array": array}
    fields = {name: getattr(chip, name) for name in Chip.model_fields} | {"core": core}
    return Chip.build(chip.name, **fields)


BARE = with_array(H100, None)
BYTES = with_array(H100, {"rows": 16, "columns": 16, "macs_per_cycle": {"int8": 1.0}})
SERIAL = Execution.build("serial", name="serial", source="test", overlap={"vector": 0.0})


@pytest.mark.parametrize(
    ("chip", "formats", "computed"),
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
def test_what_a_product_runs_in(chip: Chip, formats: tuple[str, str], computed: str) -> None:
    assert runs_in(chip, formats) == (computed, True)


@pytest.mark.parametrize(
    ("chip", "formats", "computed", "arrays"),
    [
        (H100, ("fp32", "fp32"), "fp32", False),
        (H100, ("bf16", "fp32"), "fp32", False),
        (H100, ("tf32", "fp32"), "fp32", False),  # tf32 holds no fp32, in either order
        (H100, ("fp32", "tf32"), "fp32", False),
        (H100, ("tf32", "bf16"), "tf32", True),
        (H100, ("bf16", "w20"), "fp32", False),
        (MI210, ("tf32", "tf32"), "fp32", True),
        (MI210, ("fp32", "fp32"), "fp32", True),
        (SPAD, ("tf32", "tf32"), "fp32", False),
        (BYTES, ("int8", "int8"), "int8", True),
        (BYTES, ("bf16", "int8"), "bf16", False),
        (BYTES, ("fp8", "fp8"), "fp16", False),  # 8 bit, and other values
        (BARE, ("fp8", "fp8"), "fp16", False),
        (BARE, ("bf16", "fp32"), "fp32", False),
    ],
)
def test_what_no_array_holds_runs_on_the_vector_units(
    chip: Chip, formats: tuple[str, str], computed: str, arrays: bool
) -> None:
    assert runs_in(chip, formats) == (computed, arrays)


@pytest.mark.parametrize("chip", [H100, B200, A100, SPAD, TPU])
def test_fp32_products_take_the_vector_peak_and_say_so(chip: Chip) -> None:
    """White paper of the H100: 66.9 TFLOP/s of fp32 beside 494.7 of tf32."""
    gemm = Gemm("x", 4096, 4096, 4096, 1, "fp32", "fp32", "fp32")
    found = PerformanceModel(chip, "ideal").estimate(gemm)
    least = 2.0 * 4096**3 / chip.vector_flops
    assert found.lower_bound_s == pytest.approx(least, rel=1e-12)
    assert least <= found.latency_s < 1.25 * least
    assert (found.conversion, found.bound) == ("fp32 on the vector units", "compute")
    assert "conversion" not in found.parts


def test_attention_in_fp32_shares_the_vector_units_with_its_softmax() -> None:
    op = Attention(
        "a", 4, 16, 4, 128, query=2048, context=2048, q_format="fp32", kv_format="fp32"
    )
    found = PerformanceModel(H100, "ideal").estimate(op)
    softmax = op.exponentials * (6 + 4) / H100.vector_flops
    assert found.latency_s >= op.flops / H100.vector_flops + softmax
    assert found.conversion == "fp32 on the vector units"


def test_a_tf32_number_is_one_of_fp32() -> None:
    """MI210: its matrix cores take the rate of fp32, and nothing is computed for that."""
    same, other = (
        PerformanceModel(MI210, SERIAL).estimate(Gemm("x", 512, 512, 512, 1, name, name, name))
        for name in ("fp32", "tf32")
    )
    assert same.latency_s == other.latency_s
    assert (same.conversion, other.conversion) == (
        "", "activations tf32 -> fp32, weights tf32 -> fp32"
    )  # fmt: skip


def test_conversions_beside_a_product_on_the_same_units_add() -> None:
    """2 m n k and a cast of every activation, both of the vector units, which are full."""
    gemm = Gemm("x", 2048, 2048, 2048, 1, "fp8", "fp32", "fp32")
    even = H100.scaled(cores=128 / 132, memory_bandwidth=1e3)
    found = PerformanceModel(even, "ideal").estimate(gemm)
    cast = 2048**2 / (2 * even.vector_flops)
    assert found.latency_s >= gemm.flops / even.vector_flops + cast
    assert found.parts["conversion"] == pytest.approx(cast, rel=1e-6)
    assert found.conversion == "activations fp8 -> fp32, fp32 on the vector units"


def test_vector_units_pad_no_rows() -> None:
    """One row of 4096^2 weights in fp32: 33.6 MFLOP, and not 16 times that."""
    chip = SPAD.scaled(memory_bandwidth=1e3)
    found = PerformanceModel(chip, "ideal").estimate(
        Gemm("x", 1, 4096, 4096, 1, "fp32", "fp32", "fp32")
    )
    assert found.parts["core"] < 4 * 2 * 4096**2 / chip.vector_flops


def test_conversions_hide_behind_what_a_slow_memory_leaves_of_the_vector_units() -> None:
    gemv = Gemm("x", 1, 4096, 4096, 1, "fp32", "w8", "fp32")
    found = PerformanceModel(H100, "ideal").estimate(gemv)
    assert (found.bound, found.parts["conversion"]) == ("memory", 0.0)


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


def test_batches_on_vector_units_are_single_estimates_too() -> None:
    chips, shapes = [H100, MI210, SPAD], [[1, 4096, 4096], [300, 4096, 512]]
    for formats in (("fp32",) * 3, ("tf32",) * 3, ("bf16", "fp32", "fp32")):
        found = gemm_latencies(chips, shapes, formats=formats)
        for row, chip in enumerate(chips):
            model = PerformanceModel(chip)
            for column, (m, n, k) in enumerate(shapes):
                one = model.estimate(Gemm("x", m, n, k, 1, *formats))
                assert found[row, column] == one.latency_s


formats = st.one_of(
    st.sampled_from(list(FORMATS)),
    st.sampled_from(["int4-g32", "w2.5", "w1.58", "w20"]),
)
chips = st.sampled_from([H100, MI210, SPAD, BARE, BYTES])


@given(
    formats, st.integers(1, 300), st.integers(1, 5000), st.integers(1, 5000),
    st.sampled_from(["cores", "clock", "memory_bandwidth", "vector_width"]),
    st.floats(0.3, 1.0), st.booleans(), chips,
)  # fmt: skip
def test_cutting_a_chip_never_makes_conversions_faster(
    weights: str,
    m: int,
    n: int,
    k: int,
    resource: str,
    fraction: float,
    serial: bool,
    chip: Chip,
) -> None:
    gemm = Gemm("x", m, n, k, 1, "bf16", weights, "bf16")
    block = SERIAL if serial else "ideal"
    whole = PerformanceModel(chip, block).estimate(gemm)
    cut = PerformanceModel(chip.scaled(**{resource: fraction}), block).estimate(gemm)
    assert cut.latency_s >= whole.latency_s * (1 - 1e-9)
    assert whole.latency_s >= whole.lower_bound_s * (1 - 1e-12)
