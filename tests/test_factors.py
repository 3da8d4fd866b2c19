"""Every factor of a chip and of its execution block changes the time that it should.

The chip is small and its numbers round, so each time is a sum that is written out here.
"""

from __future__ import annotations

from math import hypot, prod
from typing import Any

import pytest

from chipsim.chip import Chip
from chipsim.execution import Execution
from chipsim.explore.largest import largest_within
from chipsim.kernels.gemm import (
    A_ALL,
    A_PANEL,
    B_ALL,
    B_PANEL,
    NONE,
    Mapping,
    Shape,
    array_passes,
    evaluate,
)
from chipsim.network import group_sides
from chipsim.ops.operators import (
    Activation,
    AllGather,
    AllReduce,
    Attention,
    Elementwise,
    Gemm,
    LatentAttention,
    Norm,
    Operator,
    Softmax,
)
from chipsim.performance import PerformanceModel
from tests.kernels.machines import machine

MEMORY, L2, VECTOR, LINKS = 1e12, 512e9, 128e9, 50e9
"""Rates of the chip: bytes/s of memory, of L2, fp32 FLOP/s, bytes/s of the links."""
VAST = 1e24


def chip(
    memory: float = MEMORY,
    l2: float | None = 512.0,
    topology: str = "fully-connected",
    more: dict[str, Any] | None = None,
    array: tuple[int, int] = (16, 16),
) -> Chip:
    """4 cores of 2 lanes at 1 GHz."""
    rates = {"fp16": 1.0, "fp8": 2.0}
    return Chip.build(
        "small",
        name="small",
        source="round numbers",
        cores=4,
        core={
            "lanes": 2,
            "systolic_array": {"rows": array[0], "columns": array[1], "macs_per_cycle": rates},
            "vector_unit": {"width": 8, "flops_per_element": 2.0, "half_rate": 2.0},
            "sram": 131072.0,
        },
        clock={"tensor": 1e9, "vector": 1e9},
        l2={"capacity": 4194304.0, "bandwidth": l2},
        memory={"technology": "HBM3", "bandwidth": memory, "capacity": 1e11},
        link={
            "count": 2,
            "bandwidth": 25e9,
            "latency": 1e-6,
            "header": 16.0,
            "payload": 256.0,
        },
        machine={"chips": 8, "topology": topology} | (more or {}),
        execution="ideal",
    )


def block(**factors: Any) -> Execution:
    return Execution.build("factors", name="factors", source="a test", **factors)


def seconds(operator: Operator, on: Chip, **factors: Any) -> float:
    return PerformanceModel(on, block(**factors)).estimate(operator).latency_s


def about(value: float) -> Any:
    return pytest.approx(value, rel=1e-12)


# ------------------------------------------------------------------ collectives

SHARE = 256000.0
WIRE = SHARE + 1000 * 16
"""A share of 1000 packets, with their headers."""


@pytest.mark.parametrize("chips", [2, 4, 8])
@pytest.mark.parametrize("link", [1.0, 0.5])
def test_a_ring_waits_for_every_step_and_a_mesh_for_two(chips: int, link: float) -> None:
    reduce = AllReduce("reduce", SHARE * chips, chips)
    rounds = 2 * (chips - 1)
    moved = rounds * WIRE / (LINKS * link)
    sustained = {"link": link}
    mesh, ring = chip(), chip(topology="ring")
    assert seconds(reduce, mesh, sustained=sustained) == about(2 * 1e-6 + moved)
    assert seconds(reduce, ring, sustained=sustained) == about(rounds * 1e-6 + moved)


def test_a_gather_takes_half_the_steps_of_an_all_reduce() -> None:
    gather = AllGather("gather", SHARE * 8, 8)
    moved = 7 * WIRE / LINKS
    assert seconds(gather, chip()) == about(1e-6 + moved)
    assert seconds(gather, chip(topology="ring")) == about(7e-6 + moved)


def test_the_topology_of_a_machine_names_the_algorithm() -> None:
    reduce = AllReduce("reduce", 1e6, 8)
    found = [
        PerformanceModel(chip(topology=topology, more=more))
        .estimate(reduce)
        .mapping["algorithm"]
        for topology, more in (
            ("ring", {}),
            ("fully-connected", {}),
            ("switch", {}),
            ("switch", {"in_network_reduction": True}),
            ("torus", {"sides": (2, 4)}),
        )
    ]
    assert found == ["ring", "direct", "direct", "in the switch", "ring per dimension"]


def test_a_switch_is_all_links_to_any_pattern() -> None:
    for operator in (AllReduce("x", 1e6, 8), AllGather("x", 1e6, 8)):
        assert seconds(operator, chip(topology="switch")) == seconds(operator, chip())
    adding = chip(topology="switch", more={"in_network_reduction": True})
    found = PerformanceModel(adding).estimate(AllReduce("x", SHARE * 8, 8))
    assert found.latency_s == about(2e-6 + 8 * WIRE / LINKS)
    assert found.lower_bound_s == about(8 * SHARE / LINKS)


@pytest.mark.parametrize(
    ("sides", "chips", "stride", "expected"),
    [
        ((4, 4, 4), 64, 1, (4, 4, 4)),
        ((4, 4, 4), 8, 1, (4, 2, 1)),
        ((4, 4, 4), 4, 4, (1, 4, 1)),
        ((4, 4, 4), 4, 16, (1, 1, 4)),
        ((4, 4, 4), 8, 2, (2, 4, 1)),
        ((8, 2), 2, 8, (1, 2, 1)),
        ((4, 4, 4), 5, 1, (5, 1, 1)),
    ],
)
def test_a_group_of_ranks_lies_along_the_sides(
    sides: tuple[int, ...], chips: int, stride: int, expected: tuple[int, ...]
) -> None:
    machine = {"chips": prod(sides), "sides": sides}
    on = chip(topology="torus", more=machine)
    assert group_sides(on, chips, stride) == (*expected, len(sides))


# ------------------------------------------------------------- vector operators

E = 64 * 1024
"""Elements of the operators below; 4 E bytes read and written in fp16."""
SERIAL = {"vector": 0.0}
NORM = Norm("norm", 64, 1024)


@pytest.mark.parametrize("l2", [1.0, 0.25])
@pytest.mark.parametrize("vector", [1.0, 0.5])
@pytest.mark.parametrize("memory", [1.0, 0.8])
def test_a_serial_norm_is_memory_and_l2_and_arithmetic(
    l2: float, vector: float, memory: float
) -> None:
    sustained = {"l2": l2, "vector": vector, "memory": memory}
    expected = 4 * E / (MEMORY * memory) + 4 * E / (L2 * l2) + 7 * E / (2 * VECTOR * vector)
    assert seconds(NORM, chip(), overlap=SERIAL, sustained=sustained) == about(expected)


def test_overlap_hides_the_shorter_side() -> None:
    memory, core = 4 * E / MEMORY, 4 * E / L2 + 7 * E / (2 * VECTOR)
    assert seconds(NORM, chip()) == about(max(memory, core))
    assert seconds(NORM, chip(), overlap={"vector": 0.3}) == about(memory + core - 0.3 * memory)


@pytest.mark.parametrize("vector", [1.0, 0.5])
def test_16_bit_elements_run_at_twice_the_rate_of_fp32(vector: float) -> None:
    on = chip(memory=VAST, l2=None)
    sustained = {"vector": vector}
    for name, rate in (("fp32", VECTOR), ("fp16", 2 * VECTOR), ("fp8", 2 * VECTOR)):
        relu = Activation("relu", E, name, "relu")
        assert seconds(relu, on, sustained=sustained) == pytest.approx(
            E / (rate * vector), rel=1e-9
        )


@pytest.mark.parametrize("price", [1.0, 4.0, 10.0])
def test_an_exponential_costs_its_price(price: float) -> None:
    on = chip(memory=VAST, l2=None)
    counted: list[tuple[Operator, int, int]] = [
        (Softmax("softmax", 64, 1024), 10, 3),
        (Activation("gelu", E, "fp16", "gelu"), 7, 1),
        (Activation("silu", E, "fp16", "silu"), 3, 1),
        (NORM, 7, 0),
    ]
    for operator, flops, exponentials in counted:
        expected = (flops + (price - 1) * exponentials) * E / (2 * VECTOR)
        found = seconds(operator, on, exp_flops=price)
        assert found == pytest.approx(expected, rel=1e-9), operator.name


def test_what_cores_draw_holds_all_but_plain_streams() -> None:
    """4 cores draw 64 bytes per cycle each: 256 GB/s beside 1 TB/s of memory."""
    per_byte = hypot(1 / MEMORY, 1 / 256e9)
    on, factors = chip(l2=None), {"core_draw": 64.0, "overlap": SERIAL, "exp_flops": 1.0}
    relu = Activation("relu", E, "fp16", "relu")
    copy = Elementwise("copy", E)
    for operator, flops in ((NORM, 7), (Softmax("softmax", 64, 1024), 10), (relu, 1)):
        expected = 4 * E * per_byte + flops * E / (2 * VECTOR)
        assert seconds(operator, on, **factors) == about(expected), operator.name
    assert seconds(copy, on, **factors) == about(4 * E / MEMORY)


def test_scattered_rows_take_longer_than_a_stream() -> None:
    rows = Elementwise("rows", E, scattered=True)
    assert seconds(rows, chip(l2=None), scatter=2.5) == about(2.5 * 4 * E / MEMORY)
    assert seconds(Elementwise("copy", E), chip(l2=None), scatter=2.5) == about(4 * E / MEMORY)
    model = PerformanceModel(chip(), block(scatter=2.5))
    assert model.estimate(rows).memory_bytes == rows.bytes == 4 * E


@pytest.mark.parametrize(("kind", "reads"), [(Norm, 3), (Softmax, 2)])
def test_a_row_longer_than_the_buffer_is_read_once_per_pass(kind: Any, reads: int) -> None:
    buffer = {"row_buffer": {"norm": 2048.0, "softmax": 2048.0}}
    model = PerformanceModel(chip(), block(kernels=buffer))
    assert model.estimate(kind("fits", 64, 1024)).memory_bytes == 64 * 1024 * 2 * 2
    longer = model.estimate(kind("longer", 64, 1025))
    assert longer.memory_bytes == 64 * 1025 * 2 * (reads + 1)
    kept = PerformanceModel(chip(), block()).estimate(kind("kept", 64, 10**6))
    assert kept.memory_bytes == 64 * 10**6 * 2 * 2


# -------------------------------------------------------------------- attention

HEADS = 5
"""Heads of one query each, on 4 cores: the fifth makes a second wave."""
DECODE = Attention("decode", 1, HEADS, HEADS, 64, context=128)
TILE = {"least_rows": 64, "most_rows": 64, "scores": 8192}
BLOCK = (64 * 128 * 64 + 64 * 64 * 128) / (2 * 16 * 16) / 1e9
"""Seconds of 64 rows against 128 keys, scores and values, at the rate of the arrays."""


def attention_core(**factors: Any) -> float:
    """Seconds of the busiest core where splitting keys never pays."""
    free = {
        "exp_flops": 1.0,
        "sync": 1.0,
        "kernels": {"fused": TILE | factors.pop("fused", {})},
    }
    model = PerformanceModel(chip(memory=VAST, array=(16, 16)), block(**(free | factors)))
    return model.estimate(DECODE).parts["core"]


@pytest.mark.parametrize("start", [0.0, 1e-6, 1e-4])
def test_every_tile_has_its_latency(start: float) -> None:
    vector = 7 * 64 * 128 / (VECTOR / 4)
    assert attention_core(tile_latency=start) == about(2 * (start + max(BLOCK, vector)))


def test_a_tile_takes_queries_and_stores_results_through_its_core() -> None:
    """128 bytes each, at 2 bytes per cycle and row and column of 2 arrays of 16 x 16."""
    vector = 7 * 64 * 128 / (VECTOR / 4)
    port = 128 / (2 * 2 * 32 * 1e9)
    for factors, parts in (({"core_feed": 2.0}, 1), ({"core_feed": 2.0, "core_store": 1.0}, 3)):
        expected = 2 * (parts * port + max(BLOCK, vector))
        assert attention_core(**factors) == about(expected)


@pytest.mark.parametrize(("chunk", "keys"), [(1, 128), (100, 200), (512, 512)])
def test_a_tile_draws_its_keys_by_chunks(chunk: int, keys: int) -> None:
    """Keys and values of 256 bytes at 0.25 bytes per cycle and edge: 16 GB/s of a core."""
    found = attention_core(tile_draw=0.25, fused={"chunk": chunk})
    assert found == about(2 * keys * 256 / (0.25 * 64 * 1e9))


def test_a_tile_that_prefetches_nothing_waits_for_its_first_keys() -> None:
    ahead, waiting = (
        attention_core(tile_draw=0.25, fused={"chunk": 64, "prefetch": prefetch})
        for prefetch in (True, False)
    )
    assert waiting == about(1.5 * ahead)  # 2 chunks of keys, and 1 waited for


@pytest.mark.parametrize(("resident", "waves"), [(1, 2), (2, 1)])
def test_more_tiles_at_once_hide_their_latency(resident: int, waves: int) -> None:
    """A second tile beside the first starts at once; SRAM has room for three of 40 KiB."""
    found = attention_core(tile_latency=1e-3, fused={"resident": resident})
    assert found == pytest.approx(waves * 1e-3, rel=0.05)


def test_split_keys_meet_and_merge() -> None:
    """4 pieces of one head: the cores meet; a kernel of its own merges, where that is said."""
    one = Attention("one", 1, 1, 1, 64, context=8192)
    for merge, launch in (("same", 0.0), ("kernel", 3e-6)):
        factors = {
            "sync": 1e-6, "launch": {"elementwise": 3e-6},
            "kernels": {"fused": TILE | {"merge": merge}},
        }  # fmt: skip
        found = PerformanceModel(chip(memory=VAST), block(**factors)).estimate(one)
        split = found.mapping["split"]
        assert split > 1
        partial = 2 * split * (64 + 2) * 4 / L2
        assert found.parts["reduction"] == about(1e-6 + launch + partial)


def test_prompts_and_latents_are_split_only_where_the_source_does() -> None:
    """One head of 256 queries (4 tiles) and 65536 keys; a latent row of one query."""
    prompt = Attention("prompt", 1, 1, 1, 64, query=256, context=65536)
    latent = LatentAttention("latent", 1, 16, 512, 64, context=65536)
    for operator, switch in ((prompt, "prompt_split"), (latent, "latent_split")):
        splits = [
            PerformanceModel(
                chip(memory=VAST), block(kernels={"fused": TILE | {switch: allowed}})
            ).estimate(operator).mapping["split"]
            for allowed in (True, False)
        ]  # fmt: skip
        assert splits[0] > splits[1] == 1, switch


def test_heads_of_prompts_are_packed_only_where_the_source_does() -> None:
    """8 heads of 8 queries share keys: packed, one tile of 64 rows, else 8 of 64 rows."""
    prompt = Attention("prompt", 1, 8, 1, 64, query=8, context=4096)
    times = [
        PerformanceModel(
            chip(memory=VAST), block(kernels={"fused": TILE | {"packed_prompts": packed}})
        ).estimate(prompt).parts["core"]
        for packed in (True, False)
    ]  # fmt: skip
    assert times[1] == pytest.approx(8 * times[0], rel=0.05)


# --------------------------------------------------------------------- products


@pytest.mark.parametrize("l2", [1.0, 0.5])
def test_a_product_that_l2_cannot_feed_is_held_by_the_draw(l2: float) -> None:
    """Each tile pulls its panels from L2 at 4 bytes per cycle: far less than is computed."""
    factors = {"kernels": {"multicast": False}, "sustained": {"l2": l2}}
    product = Gemm("product", 512, 512, 512)
    found = PerformanceModel(chip(l2=4.0), block(**factors)).estimate(product)
    tm, tn = found.mapping["tm"], found.mapping["tn"]
    tiles = -(-512 // tm) * -(-512 // tn)
    assert found.parts["core"] == about(tiles * (tm + tn) * 512 * 2 / (4e9 * l2))
    assert found.bound == "core draw"
    assert PerformanceModel(chip(), block(**factors)).estimate(product).bound == "compute"


@pytest.mark.parametrize(("a", "b"), [("fp16", "fp8"), ("fp8", "fp16")])
def test_a_mixed_product_runs_in_the_wider_format(a: str, b: str) -> None:
    """512 x 512 x 512 on 2048 cells: 65536 cycles of fp16 and 32768 of fp8, and ramps."""
    model = PerformanceModel(chip(memory=VAST, l2=None), block())
    mixed, wide, narrow = (
        model.estimate(Gemm("product", 512, 512, 512, 1, *formats))
        for formats in ((a, b), ("fp16", "fp16"), ("fp8", "fp8"))
    )
    assert mixed.parts["core"] >= 65.536e-6
    assert mixed.lower_bound_s == wide.lower_bound_s == about(65.536e-6)
    assert 32.768e-6 <= narrow.parts["core"] < 40e-6
    what = "weights" if b == "fp8" else "activations"
    assert mixed.conversion == f"{what} fp8 -> fp16"


def test_an_array_may_be_fed_either_way_round() -> None:
    """A tile of 64 x 16 fills an array of 16 x 64 once, turned; upright it takes 4 passes."""
    one = machine(lanes=1, rows=16, columns=64)
    assert [array_passes(one, *tile) for tile in ((64, 16), (16, 64), (64, 64))] == [1, 1, 4]
    assert array_passes(machine(lanes=1, rows=64, columns=16), 16, 64) == 1


@pytest.mark.parametrize("array", [(16, 64), (64, 16)])
def test_tall_and_flat_products_take_the_same_time(array: tuple[int, int]) -> None:
    model = PerformanceModel(chip(memory=VAST, l2=None, array=array), block())
    tall, flat = (
        model.estimate(Gemm("product", m, n, 4096, 8)).parts["core"]
        for m, n in ((64, 32), (32, 64))
    )
    # 8 products on 4 cores of 2 lanes: 2 waves of one pass of 4096 cycles, and ramps.
    assert tall == about(flat)
    assert 8.192e-6 <= tall < 1.25 * 8.192e-6


@pytest.mark.parametrize(
    ("resident", "needed"),
    [
        (A_PANEL, 2 * 32 * 64 * 2),
        (B_PANEL, 3 * 32 * 64 * 2),
        (A_ALL, (128 + 3 * 32) * 64 * 2),
        (B_ALL, (256 + 2 * 32) * 64 * 2),
    ],
)
def test_what_l2_cannot_keep_is_refused(resident: int, needed: int) -> None:
    """2 x 3 tiles of 32 x 32 run together over a product of 128 x 256 x 64."""
    shape = Shape(128, 256, 64, 1, 2.0, 2.0, 2.0, 1.0, True)
    mapping = Mapping(32, 32, 64, 1, 2, 3, resident, 2)
    fits = evaluate(machine(l2_capacity=2 * needed), shape, mapping)
    over = evaluate(machine(l2_capacity=2 * needed - 2), shape, mapping)
    assert fits.latency < 1.0
    assert over.latency == float("inf")
    streamed = evaluate(machine(l2_capacity=0), shape, mapping._replace(resident=NONE))
    assert streamed.latency < 1.0


# ----------------------------------------------------------------- largest batch


@pytest.mark.parametrize("limit", range(11))
def test_a_batch_exactly_at_the_limit_is_within_it(limit: int) -> None:
    assert largest_within(lambda batch: 0.25 * batch, 0.25 * limit, 10) == limit
    assert largest_within(lambda batch: 0.25 * batch, 0.25 * limit, 1) == min(limit, 1)
