"""Joules: closed forms of each part, and how near power comes to what silicon draws."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipsim.chip import Chip
from chipsim.cost.energies import Energies
from chipsim.cost.energy import PARTS, EnergyModel, energy
from chipsim.cost.work import work
from chipsim.errors import UnknownNameError
from chipsim.ops.loads import ExpertLoad, rank_loads
from chipsim.ops.operators import (
    AllGather,
    AllReduce,
    AllToAll,
    Attention,
    Collective,
    Elementwise,
    Gemm,
    GroupedGemm,
    Indexer,
    LatentAttention,
    Norm,
    Recurrence,
    ReduceScatter,
    SendRecv,
)
from chipsim.ops.phase import Phase
from chipsim.performance import PerformanceModel
from chipsim.phases import estimate

if TYPE_CHECKING:
    from collections.abc import Callable

H100 = Chip.load("spad-h100")
MODEL = EnergyModel(H100)
TIMES = PerformanceModel(H100, "ideal")


def test_a_multiply_accumulate_is_the_table() -> None:
    # Ten Lessons, Table 2, 7 nm: 0.34 + 0.38 pJ in fp16; 4 nm takes 0.7 of it
    assert MODEL.mac_joules("fp16") == pytest.approx(0.7 * 0.72e-12)
    assert MODEL.record()["fp16_pj_per_flop"] == pytest.approx(0.252)
    assert MODEL.record()["memory_pj_per_byte"] == pytest.approx(150 / 3352e9 * 1e12)


def test_the_parts_of_a_product() -> None:
    found = TIMES.estimate(Gemm("x", 1024, 512, 256))
    asked = work(found, H100)
    tiles_m = math.ceil(1024 / found.mapping["tm"])
    tiles_n = math.ceil(512 / found.mapping["tn"])
    assert found.mapping["split"] == 1
    assert asked.macs == 1024 * 512 * 256
    moved = 2 * (1024 * 256 * tiles_n + 256 * 512 * tiles_m + 1024 * 512)
    assert asked.l2_bytes == moved
    # 16 rows and 32 columns, each operand of two bytes enters at an edge
    assert asked.sram_bytes == moved + asked.macs * (2 / 32 + 2 / 16)
    parts = MODEL.operator(found).parts
    dynamic = sum(parts[name] for name in ("arithmetic", "sram", "l2", "memory", "link"))
    assert parts["overhead"] == pytest.approx(dynamic / 9)
    assert parts["idle"] == pytest.approx(MODEL.power.idle_w * found.latency_s)


def test_each_operand_enters_at_its_own_edge_of_the_array() -> None:
    # 16 rows and 32 columns: A is used by all columns, B by all rows
    found = TIMES.estimate(Gemm("x", 1024, 512, 256, 1, "bf16", "bf16", "bf16"))
    asked = work(found, H100)
    assert asked.sram_bytes - asked.l2_bytes == pytest.approx(asked.macs * (2 / 32 + 2 / 16))


def test_conversions_are_paid_and_arrays_are_fed_what_they_compute_in() -> None:
    """B leaves the SRAM in 1 byte and comes back in 2, one cast each; A is as it is."""
    found = TIMES.estimate(Gemm("x", 1024, 512, 256, 1, "bf16", "fp8", "bf16"))
    asked = work(found, H100)
    fed = asked.macs * (2 / 32 + 2 / 16) + 512 * 256 * (1 + 2)
    assert asked.sram_bytes - asked.l2_bytes == pytest.approx(fed)
    assert asked.vector_flops == 512 * 256
    casts = 512 * 256 * MODEL.rates["vector_j_per_flop"]
    macs = asked.macs * MODEL.mac_joules("bf16")
    assert MODEL.operator(found).parts["arithmetic"] == pytest.approx(casts + macs)
    op = Attention("x", 1, 1, 1, 128, query=512, context=512, q_format="bf16", kv_format="fp8")
    asked = work(TIMES.estimate(op), H100)
    fed = asked.macs * (2 / 32 + 2 / 16) + 512 * 256 * (1 + 2)
    assert asked.sram_bytes - asked.l2_bytes == pytest.approx(fed)
    assert asked.vector_flops == 512 * 256 + op.exponentials * (6 + 4)


def test_what_no_array_holds_is_paid_on_the_vector_units() -> None:
    found = TIMES.estimate(Gemm("x", 256, 256, 256, 1, "fp8", "fp32", "fp32"))
    asked = work(found, H100)
    assert (asked.macs, asked.vector_flops) == (0.0, 2 * 256**3 + 256**2)
    joules = asked.vector_flops * MODEL.rates["vector_j_per_flop"]
    assert MODEL.operator(found).parts["arithmetic"] == pytest.approx(joules)


def test_the_links_pay_for_both_ends() -> None:
    found = TIMES.estimate(AllReduce("x", 1e9, 8))
    parts = MODEL.operator(found).parts
    assert parts["link"] == pytest.approx(2 * 7 / 8 * 1e9 * 8 * 6.5e-12)
    assert parts["memory"] == parts["arithmetic"] == 0.0


def test_decode_attention_reads_its_cache_once() -> None:
    found = TIMES.estimate(Attention("x", 8, 32, 8, 128, query=1, context=4096))
    assert work(found, H100).l2_bytes == pytest.approx(found.memory_bytes)


def test_prefill_attention_reads_keys_once_per_tile_of_queries() -> None:
    op = Attention("x", 1, 1, 1, 128, query=4096, context=4096)
    found = TIMES.estimate(op)
    keys = 4096 * 256 * 2
    tiles = 4096 / found.mapping["rows"]
    seen = op.pairs / 4096**2
    assert work(found, H100).l2_bytes == pytest.approx(keys + keys * tiles * seen)


def test_a_phase_is_the_sum_of_its_operators() -> None:
    step = estimate(H100, "llama-3.1-8b", Phase.decode(4, 512), execution="ideal")
    whole = energy(step, H100)
    assert whole.parts.keys() == set(PARTS)
    each = [(row.count, MODEL.operator(row.estimate).total_j) for row in step.rows]
    assert whole.total_j == pytest.approx(sum(count * joules for count, joules in each))
    assert whole.parts["idle"] == pytest.approx(MODEL.power.idle_w * step.latency_s)


def sizes() -> st.SearchStrategy[int]:
    return st.integers(1, 3000)


@settings(max_examples=25)
@given(m=sizes(), n=sizes(), k=sizes(), more=st.integers(2, 4))
def test_no_part_is_negative_and_a_batch_costs_as_much_as_its_products(
    m: int, n: int, k: int, more: int
) -> None:
    one = MODEL.operator(TIMES.estimate(Gemm("x", m, n, k)))
    many = MODEL.operator(TIMES.estimate(Gemm("x", m, n, k, more)))
    assert min(one.parts.values()) >= 0
    assert many.parts["arithmetic"] == pytest.approx(more * one.parts["arithmetic"])
    assert one.power_w > MODEL.power.idle_w
    assert math.isfinite(one.total_j)


@pytest.mark.parametrize(
    ("wide", "narrow"), [("fp32", "fp16"), ("fp16", "bf16"), ("bf16", "fp8"), ("fp8", "nvfp4")]
)
def test_narrower_formats_take_less(wide: str, narrow: str) -> None:
    energies = Energies.load()
    assert energies.mac_joules(narrow, "4 nm") < energies.mac_joules(wide, "4 nm")


@pytest.mark.parametrize(
    ("chip", "dtype", "watts", "within"),
    [
        ("h100-sxm", "bf16", 700, 0.10),
        ("a100-sxm", "bf16", 400, 0.10),
        ("h200-sxm", "bf16", 700, 0.10),
        ("h100-sxm", "fp8", 700, 0.10),
    ],
)
def test_a_product_bound_by_compute_draws_near_the_stated_tdp(
    chip: str, dtype: str, watts: float, within: float
) -> None:
    op = Gemm("x", 8192, 8192, 8192, 1, dtype, dtype, "bf16")
    found = PerformanceModel(chip, "ideal").estimate(op)
    assert energy(found, chip).power_w == pytest.approx(watts, rel=within)


def test_decode_draws_what_was_measured_on_an_h200() -> None:
    # arXiv 2605.11999: decode draws 137 to 300 W on an H200. The ideal machine reads memory
    # faster than silicon does, so the power of one byte a second less is what compares.
    step = estimate("spad-h100", "bloom-176b", Phase.decode(64, 1024), "tp=8")
    assert 137 <= energy(step, "spad-h100").power_w <= 300


def test_streaming_draws_memory_and_little_else() -> None:
    found = TIMES.estimate(Elementwise("x", 10**9, "fp16", 1, 1, 1))
    parts = MODEL.operator(found).parts
    assert parts["memory"] > 3 * parts["arithmetic"]
    assert parts["memory"] == pytest.approx(150 / 3352e9 * found.memory_bytes)


def test_a_cut_clock_takes_the_square_of_its_supply() -> None:
    cut = H100.scaled(clock=0.5)
    slow = EnergyModel(cut, base=H100)
    found = PerformanceModel(cut, "ideal").estimate(Gemm("x", 512, 512, 512))
    floor = slow.energies.voltage.floor
    assert slow.operator(found).parts["arithmetic"] == pytest.approx(
        floor**2 * 512**3 * MODEL.mac_joules("fp16")
    )


def test_no_energy_for_a_format_is_one_line() -> None:
    energies = Energies.load()
    less = energies.model_copy(update={"mac": {"fp32": energies.mac["fp32"]}})
    found = TIMES.estimate(Gemm("x", 64, 64, 64))
    with pytest.raises(UnknownNameError, match="format in energies published 'fp16'"):
        EnergyModel(H100, less).operator(found)


def test_a_chip_without_arrays_multiplies_on_its_vector_units() -> None:
    plain = H100.model_copy(
        update={"core": H100.core.model_copy(update={"systolic_array": None})}
    )
    found = PerformanceModel(plain, "ideal").estimate(Gemm("x", 256, 256, 256))
    asked = work(found, plain)
    assert (asked.macs, asked.vector_flops) == (0.0, 2 * 256**3)
    norm = PerformanceModel(plain, "ideal").estimate(Norm("x", 64, 4096))
    assert EnergyModel(plain).operator(norm).total_j > 0


def test_a_product_is_paid_in_the_format_that_it_runs_in() -> None:
    """The A100 has no fp8: its arrays multiply in 16 bit, and draw for that."""
    a100 = Chip.load("a100-sxm")
    found = PerformanceModel(a100, "ideal").estimate(
        Gemm("x", 1024, 1024, 1024, 1, "fp8", "fp8", "fp16")
    )
    assert work(found, a100).format in ("fp16", "bf16")


@pytest.mark.parametrize("batch", [1, 2, 64])
@pytest.mark.parametrize("phase", [Phase.decode, Phase.prefill])
def test_the_chips_of_a_pipeline_share_the_work_and_idle_for_the_whole_step(
    phase: Callable[[int, int], Phase], batch: int
) -> None:
    # by hand: four stages do the work of all parts, and each chip idles from begin to end
    step = estimate("spad-h100", "llama-2-70b", phase(batch, 512), "tp=2,pp=4")
    found = MODEL.phase(step)
    way = [MODEL.operator(row.estimate) for row in step.rows for _ in range(row.count)]
    for name in PARTS:
        if name != "idle":
            together = step.parts * sum(each.parts[name] for each in way)
            assert found.parts[name] == pytest.approx(together / 4)
    assert found.parts["idle"] == pytest.approx(MODEL.power.idle_w * step.latency_s)
    assert found.power_w >= MODEL.power.idle_w


H200 = Chip.load("h200-sxm")
H200_MODEL, H200_TIMES = EnergyModel(H200), PerformanceModel(H200, "ideal")


def test_products_of_experts_are_products_of_the_arrays() -> None:
    # 8 experts of 512 rows and one batch of 8 products are the same work
    experts = H200_TIMES.estimate(GroupedGemm.even("x", 8, 512, 2048, 7168, "fp8", "fp8"))
    batch = H200_TIMES.estimate(Gemm("x", 512, 2048, 7168, 8, "fp8", "fp8"))
    same = {"tm": batch.mapping["tm"], "tn": batch.mapping["tn"]}
    asked = work(replace(experts, mapping=experts.mapping | same), H200)
    other = work(batch, H200)
    assert asked.macs == other.macs == 8 * 512 * 2048 * 7168
    assert (asked.vector_flops, asked.format) == (0.0, other.format)
    assert asked.l2_bytes == pytest.approx(other.l2_bytes)
    assert asked.sram_bytes == pytest.approx(other.sram_bytes)


def test_the_chip_of_the_slowest_experts_is_the_one_that_draws() -> None:
    loads = rank_loads(8, 1, 4096, 2, ExpertLoad.parse("histogram=100,0,0,0,5,5,5,5"))
    assert len(loads) > 1
    found = H200_TIMES.estimate(GroupedGemm("x", loads, 2048, 4096))
    assert work(found, H200).macs == pytest.approx(found.flops / 2)


def test_latent_attention_multiplies_on_the_arrays() -> None:
    op = LatentAttention("x", 64, 128, 512, 64, 1, 4096, q_format="fp8", kv_format="fp8")
    asked = work(H200_TIMES.estimate(op), H200)
    assert asked.macs == 64 * 128 * 4096 * (512 + 512 + 64)
    assert asked.vector_flops == 64 * 128 * 4096 * (6 + 4)  # the softmax
    assert asked.l2_bytes >= 64 * 4096 * 576  # every row once


def test_the_indexer_multiplies_on_the_arrays() -> None:
    op = Indexer("x", 4, 64, 128, 1, 32768, "fp8", "fp8")
    asked = work(H200_TIMES.estimate(op), H200)
    assert asked.macs == 4 * 64 * 128 * 32768
    assert asked.vector_flops == 4 * 64 * 32768 * 3  # ReLU, weight, sum


def test_chunks_of_a_recurrence_are_products_and_its_steps_are_not() -> None:
    prefill = Recurrence("x", 1, 64, 8, 128, 64, 4096, 128, "ssm")
    chunked = H200_TIMES.estimate(prefill)
    assert chunked.mapping["chunked"]
    asked = work(chunked, H200)
    assert (asked.macs, asked.vector_flops) == (prefill.chunked_flops / 2, 0.0)
    step = work(H200_TIMES.estimate(replace(prefill, query=1)), H200)
    assert (step.macs, step.vector_flops) == (0.0, 5 * 64 * 128 * 64)


@pytest.mark.parametrize("kind", [AllGather, ReduceScatter, AllToAll, SendRecv])
def test_every_collective_pays_for_links_and_not_for_memory(kind: type[Collective]) -> None:
    op = kind("x", 1e9, 8)
    parts = H200_MODEL.operator(H200_TIMES.estimate(op)).parts
    assert parts["link"] == pytest.approx(op.sent * 8 * 6.5e-12)
    assert parts["memory"] == parts["arithmetic"] == 0.0


def test_experts_and_latents_draw_as_dense_layers_do() -> None:
    # Bound by compute in fp8, as a dense model's prefill is: near the TDP, not four times it.
    for model, plan in (("deepseek-v3", "tp=8,ep=8"), ("llama-3.1-70b", "tp=4")):
        step = estimate(
            "h200-sxm", model, Phase.prefill(8, 4096), plan, precision="fp8", execution="ideal"
        )
        assert 400 < energy(step, "h200-sxm").power_w < 800
