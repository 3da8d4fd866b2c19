"""Peaks, bandwidths and capacities of chips against what their makers print."""

from __future__ import annotations

import pytest

from chipsim.chip import Chip
from chipsim.errors import ConfigError

PRINTED = 0.01
"""Datasheets round; a chip's product of counts and clock comes within 1 %."""

TENSOR_TFLOPS: dict[str, dict[str, float]] = {
    # dense, as printed; NVIDIA A100, H100, H200, HGX B200 and AMD MI210, MI300X datasheets
    "a100-sxm": {"fp16": 312, "bf16": 312, "tf32": 156, "int8": 624, "int4": 1248},
    "h100-sxm": {"fp16": 989.4, "bf16": 989.4, "tf32": 494.7, "fp8": 1978.9, "int8": 1978.9},
    "h200-sxm": {"fp16": 989.4, "bf16": 989.4, "tf32": 494.7, "fp8": 1978.9, "int8": 1978.9},
    "b200-sxm": {
        "fp16": 2250,
        "bf16": 2250,
        "tf32": 1125,
        "fp8": 4500,
        "int8": 4500,
        "nvfp4": 9000,
    },
    "mi210": {"fp16": 181.0, "bf16": 181.0, "int8": 181.0, "fp32": 45.3},
    "mi300x": {
        "fp16": 1307.4,
        "bf16": 1307.4,
        "tf32": 653.7,
        "fp8": 2614.9,
        "int8": 2614.9,
        "fp32": 163.4,
    },
    # Jouppi et al., CACM 2020
    "tpu-v3": {"bf16": 123},
    # SPAD, Table 3
    "spad-h100": {"fp16": 989},
    "spad-prefill": {"fp16": 1920},
    "spad-decode": {"fp16": 540},
    # LLMCompass: products of its own counts
    "llmcompass-a100": {"fp16": 312, "int8": 624},
    "llmcompass-ga100": {"fp16": 369.6},
    "llmcompass-h100": {"fp16": 989},
    "llmcompass-mi210": {"fp16": 149.1},
    "llmcompass-latency": {"fp16": 184.8},
    "llmcompass-throughput": {"fp16": 739.2},
}

OTHERS = {
    # fp32 vector TFLOP/s, memory GB/s, capacity GB or GiB as printed, link GB/s one way
    "a100-sxm": (19.5, 2039, 80, 300),
    "h100-sxm": (66.9, 3350, 80, 450),
    "h200-sxm": (66.9, 4800, 141, 450),
    "b200-sxm": (75, 7700, 180, 900),
    "mi210": (22.6, 1638, 64, 150),
    "mi300x": (163.4, 5300, 192, 448),
    "tpu-v3": (3.85, 900, 32, 328),
    "spad-h100": (66.9, 3352, 80, 450 * 1.073741824),
    "spad-prefill": (32.4, 2048, 64, 450 * 1.073741824),
    "spad-decode": (18.2, 3352, 80, 450 * 1.073741824),
}

LLMCOMPASS_VECTOR = {
    # FLOP per cycle and core in the elements that it assumes (its compute_module.py, JSON)
    "llmcompass-a100": 512,
    "llmcompass-ga100": 512,
    "llmcompass-latency": 512,
    "llmcompass-throughput": 512,
    "llmcompass-h100": 512,
    "llmcompass-mi210": 128,
    "llmcompass-tpu-v3": 1024,
}


@pytest.mark.parametrize(
    ("name", "number_format", "printed"),
    [(name, key, peak) for name, peaks in TENSOR_TFLOPS.items() for key, peak in peaks.items()],
)
def test_tensor_peak_is_the_printed_one(name: str, number_format: str, printed: float) -> None:
    peak = Chip.load(name).tensor_flops(number_format) / 1e12
    assert peak == pytest.approx(printed, rel=PRINTED)


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_vector_memory_and_links_are_the_printed_ones(name: str) -> None:
    chip = Chip.load(name)
    vector, bandwidth, capacity, link = OTHERS[name]
    assert chip.vector_flops / 1e12 == pytest.approx(vector, rel=PRINTED)
    assert chip.memory.bandwidth / 1e9 == pytest.approx(bandwidth, rel=1e-3)
    assert chip.memory.capacity == capacity * 2**30
    assert chip.link_bandwidth / 1e9 == pytest.approx(link, rel=1e-9)


@pytest.mark.parametrize("name", sorted(LLMCOMPASS_VECTOR))
def test_llmcompass_vector_rate_of_16_bit_elements(name: str) -> None:
    chip = Chip.load(name)
    per_cycle = chip.vector_flops / chip.clock.vector / chip.cores
    half = per_cycle * chip.core.vector_unit.half_rate
    assert half == pytest.approx(LLMCOMPASS_VECTOR[name])


def test_fp16_vector_rate_of_a100_is_the_printed_78_tflops() -> None:
    chip = Chip.load("a100-sxm")
    half = chip.vector_flops * chip.core.vector_unit.half_rate
    assert half / 1e12 == pytest.approx(78, rel=PRINTED)


def test_spad_link_carries_the_payload_that_the_authors_tables_imply() -> None:
    chip = Chip.load("spad-h100")
    assert chip.link is not None
    carried = chip.link_bandwidth / (1 + chip.link.header / chip.link.payload)
    assert carried / 1e9 == pytest.approx(454.7, rel=5e-4)


def test_early_machines_are_what_their_tables_are_named() -> None:
    prefill, decode = Chip.load("spad-early-prefill"), Chip.load("spad-early-decode")
    assert (prefill.cores, prefill.memory.bandwidth) == (160, 1365e9)
    assert (prefill.memory.capacity, prefill.l2.capacity) == (160 * 2**30, 54 * 2**20)
    assert decode.cores == 66
    assert decode.scaled(cores=2).core == Chip.load("spad-h100").core


def test_a_format_that_the_arrays_lack_is_refused_with_what_they_have() -> None:
    with pytest.raises(ConfigError, match=r"fp8.*allowed: bf16, fp16, int4, int8, tf32"):
        Chip.load("a100-sxm").tensor_flops("fp8")
