"""Properties over random machines and shapes: lower bounds and monotonicity."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chipsim.kernels.attention import attention_search
from chipsim.kernels.attention_tiles import AttentionShape
from chipsim.kernels.collective import FULLY_CONNECTED, RING, Sides, all_reduce_seconds
from chipsim.kernels.gemm import Shape, evaluate
from chipsim.kernels.gemm_search import search
from chipsim.kernels.vector import vector_cost
from tests.kernels.machines import TILES, machine, machines, plain, shapes

GROW = (
    "memory_bandwidth",
    "stream_ratio",
    "core_draw",
    "cores",
    "tensor_clock",
    "l2_bandwidth",
    "l2_capacity",
    "l2_share",
    "sram",
    "tensor_share",
    "overlap_weights",
    "overlap_activations",
    "overlap_stores",
    "core_feed",
    "core_store",
    "loaded_clock",
    "loaded_after",
    "warm",
    "tile_draw",
    "prefetch",
    "resident_tiles",
    "prompt_split",
    "latent_split",
)
"""Fields of which more never makes a product slower."""
SHRINK = ("step_latency", "sync", "tile_latency", "merge_launch")
"""Fields of which less never does."""

attention_shapes = st.builds(
    lambda batch, kv, group, dim, query, before, causal, window: AttentionShape(
        batch, kv * group, kv, dim, dim, query, query + before, causal, window if causal else 0,
        2.0, 2.0, 1.0,
    ),
    st.integers(1, 65), st.integers(1, 9), st.integers(1, 8), st.sampled_from([40, 64, 128]),
    st.integers(1, 700), st.integers(0, 3000), st.booleans(), st.sampled_from([0, 0, 1, 100]),
)  # fmt: skip


SHARES = ("tensor_share", "l2_share", "loaded_clock")


def grown(fields: dict[str, float], name: str, factor: float) -> dict[str, float]:
    """A machine with more of one thing; the vector units grow with the cores and clock."""
    more = fields | {name: fields[name] * factor}
    if name == "cores":
        more[name] = float(math.ceil(more[name]))
    if name.startswith("overlap") or name in SHARES:
        more[name] = min(1.0, fields[name] + 0.3)
    if name in ("warm", "prefetch", "prompt_split", "latent_split"):
        more[name] = 1.0
    if name == "tensor_clock":  # what a core moves in a cycle stays
        more |= {port: fields[port] * factor for port in ("core_feed", "core_store")}
    if name in ("cores", "tensor_clock"):
        ratio = more[name] / fields[name]
        more |= {"vector_flops": 1e12 * ratio, "half_flops": 2e12 * ratio}
        more["fma_flops"] = 1e12 * ratio
    return more


@settings(max_examples=400)
@given(machines, shapes)
def test_no_product_beats_its_roofline(fields: dict[str, float], shape: Shape) -> None:
    chip = machine(**fields)
    mapping, latency, _, _ = search(chip, shape)
    if math.isinf(latency):
        return  # no tile fits: said so, no figure given
    cost = evaluate(chip, shape, mapping)
    known = plain(**fields)
    work = 2.0 * shape.batch * shape.m * shape.n * shape.k
    cells = known.cores * known.lanes * known.rows * known.columns
    peak = shape.macs * (2.0 * cells * known.tensor_clock if known.rows else known.half_flops)
    a = shape.batch * shape.m * shape.k * shape.a_bytes
    b = shape.batch * shape.k * shape.n * shape.b_bytes
    moved = a + b + shape.batch * shape.m * shape.n * shape.c_bytes
    if known.warm:
        cold = min(1.0, max(0.0, 2.0 * moved / known.l2_capacity - 1.0))
        moved = cold * moved + (1.0 - cold) * (b if shape.weights else 0.0)
    assert latency >= work / peak * (1 - 1e-12)
    assert latency >= moved / known.memory_bandwidth * (1 - 1e-12)
    assert cost.traffic >= moved * (1 - 1e-12)
    assert cost.latency == latency
    assert cost.hidden <= min(cost.memory, cost.core) * (1 + 1e-12)


@settings(max_examples=400)
@given(machines, shapes, st.sampled_from(GROW + SHRINK), st.floats(1.0, 3.0))
def test_more_of_anything_is_never_slower(
    fields: dict[str, float], shape: Shape, name: str, factor: float
) -> None:
    if name in SHRINK:
        factor = 1.0 / factor
    before = search(machine(**fields), shape)[1]
    after = search(machine(**grown(fields, name, factor)), shape)[1]
    assert after <= before * (1 + 1e-9)


@settings(max_examples=200)
@given(machines, shapes, st.sampled_from(["m", "n", "k", "batch"]), st.integers(1, 300))
def test_more_work_is_never_faster(
    fields: dict[str, float], shape: Shape, name: str, extra: int
) -> None:
    # With fewer outputs than cores one more lets another core draw from memory.
    assume(shape.batch * shape.m * shape.n >= fields["cores"])
    chip = machine(**fields)
    larger = shape._replace(**{name: getattr(shape, name) + extra})
    assert search(chip, larger)[1] >= search(chip, shape)[1] * (1 - 1e-9)


def test_huge_products_do_not_overflow() -> None:
    size = 10**15 - 1
    shape = Shape(size, size, size, 1, 2.0, 2.0, 2.0, 1.0, True)
    latency = search(machine(), shape)[1]
    peak = 2.0 * 8 * 4 * 16 * 16 * 1e9
    assert 2.0 * float(size) ** 3 / peak <= latency < math.inf


@settings(max_examples=150)
@given(machines, attention_shapes, st.sampled_from(GROW + SHRINK), st.floats(1.0, 3.0))
def test_attention_bounds_and_monotone(
    fields: dict[str, float], shape: AttentionShape, name: str, factor: float
) -> None:
    chip = machine(**fields)
    cost = attention_search(chip, shape)
    if math.isinf(cost.latency):
        return
    seen = 0
    start = shape.context - shape.query
    for q in range(shape.query):
        end = start + q + 1 if shape.causal else shape.context
        seen += end - (max(0, end - shape.window) if shape.window else 0)
    known = plain(**fields)
    work = 4.0 * shape.batch * shape.q_heads * shape.head_dim * seen
    cells = known.cores * known.lanes * known.rows * known.columns
    peak = 2.0 * cells * known.tensor_clock if known.rows else known.half_flops
    assert cost.latency >= work / peak * (1 - 1e-12)
    stream = known.memory_bandwidth * known.stream_ratio
    assert cost.latency >= cost.traffic / stream * (1 - 1e-12)
    if name in SHRINK:
        factor = 1.0 / factor
    after = attention_search(machine(**grown(fields, name, factor)), shape)
    assert after.latency <= cost.latency * (1 + 1e-9)


@settings(max_examples=200)
@given(
    machines,
    attention_shapes,
    st.sampled_from(["context", "query", "batch", "new"]),
    st.one_of(st.just(1), st.integers(1, 300)),
)
def test_more_attention_is_never_faster(
    fields: dict[str, float], shape: AttentionShape, name: str, extra: int
) -> None:
    """More cached tokens, more new ones after as many cached or of as many, more sequences."""
    chip = machine(**fields)
    if name == "new":
        larger = shape._replace(query=min(shape.context, shape.query + extra))
    else:
        larger = shape._replace(**{name: getattr(shape, name) + extra})
    if name == "query":
        larger = larger._replace(context=shape.context + extra)
    less, more = attention_search(chip, shape), attention_search(chip, larger)
    assert more.latency >= less.latency * (1 - 1e-9)


DRAWN: dict[str, dict[str, float]] = {
    "at once": {"overlap_activations": 0.3},
    "slowly": {"overlap_activations": 0.3, "core_draw": 2e9},
    "fast": {"overlap_activations": 0.3, "core_draw": 5e10},
    "by tiles": TILES,
    "by tiles, heads apart": TILES | {"packed_prompts": 0.0, "resident_tiles": 2.0},
    "by tiles, slowly": TILES | {"tile_draw": 2e9, "chunk_keys": 128.0, "merge_launch": 3e-6},
    "by tiles that wait": TILES | {"tile_draw": 2e9, "prefetch": 0.0},
}
"""How cores come by their keys."""


@pytest.mark.parametrize("window", [0, 1, 100])
@pytest.mark.parametrize("group", [1, 7, 8])
@pytest.mark.parametrize("factors", DRAWN)
def test_attention_rises_query_by_query(factors: str, group: int, window: int) -> None:
    """Every length in turn: a tile more neither idles cores nor brings keys faster."""
    chip = machine(**DRAWN[factors])
    lengths = [
        AttentionShape(1, group, 1, 64, 64, query, 500, True, window, 2.0, 2.0, 1.0)
        for query in range(1, 501)
    ]
    seconds = [attention_search(chip, shape).latency for shape in lengths]
    falls = [query for query, (a, b) in enumerate(pairwise(seconds), 1) if b < a * (1 - 1e-9)]
    assert not falls


@given(machines, st.floats(1, 1e12), st.floats(0, 1e13), st.booleans(), st.booleans())
def test_vector_operator(
    fields: dict[str, float], traffic: float, flops: float, half: bool, stream: bool
) -> None:
    chip = machine(**fields)
    known = plain(**fields)
    cost = vector_cost(chip, traffic, flops, half, stream)
    rate = known.half_flops if half else known.vector_flops
    stream_seconds = traffic / (known.memory_bandwidth * known.stream_ratio)
    least = max(stream_seconds, flops / rate)
    assert least * (1 - 1e-12) <= cost.latency <= (cost.core + cost.memory) * (1 + 1e-12)
    if stream:
        assert cost.memory == stream_seconds


ONE = Sides(1, 1, 1, 1)
"""No torus."""


@given(st.floats(1, 1e10), st.integers(2, 512), st.sampled_from([FULLY_CONNECTED, RING]))
def test_all_reduce_is_at_least_the_ring_bound(size: float, chips: int, topology: int) -> None:
    chip = machine()
    seconds = all_reduce_seconds(chip, size, chips, topology, ONE)
    bound = 2.0 * (chips - 1) / chips * size / plain().link_bandwidth
    assert seconds >= bound * (1 - 1e-12)
    faster = all_reduce_seconds(machine(link_bandwidth=2e11), size, chips, topology, ONE)
    assert faster < seconds


def test_all_reduce_of_one_chip_is_free() -> None:
    assert all_reduce_seconds(machine(), 1e8, 1, RING, ONE) == 0.0


def test_all_reduce_closed_form() -> None:
    """100 MB over 8 chips at 50 GB/s: 3.5 ms without packets and latency."""
    chip = machine(link_bandwidth=5e10, link_latency=0.0, link_header=0.0)
    assert all_reduce_seconds(chip, 1e8, 8, RING, ONE) == pytest.approx(3.5e-3, rel=1e-12)
