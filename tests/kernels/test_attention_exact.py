"""Fused attention equals a plain enumeration, and two cases worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipsim.kernels.attention import attention_search
from chipsim.kernels.attention_tiles import AttentionShape
from tests.kernels import attention_oracle as oracle
from tests.kernels.machines import TILES, machine, machines, plain

SERIAL: dict[str, float] = {
    "overlap_weights": 0.0, "overlap_activations": 0.0, "overlap_stores": 0.0,
    "overlap_vector": 0.0,
}  # fmt: skip
"""Nothing hides behind anything: every part shows in the latency."""
CHIPS: dict[str, dict[str, float]] = {
    "serial": SERIAL,
    "drawn": SERIAL | {"core_draw": 3e10, "overlap_activations": 0.3, "vector_flops": 2e11},
    "vast memory": {"memory_bandwidth": 1e15, "l2_bandwidth": 1e13},
    "vectors alone": {"rows": 0.0, "overlap_stores": 0.3, "l2_bandwidth": math.inf},
    "measured": TILES,
    "measured, keys slow to come": TILES | {"tile_draw": 2e9, "chunk_keys": 128.0},
    "measured, keys waited for": TILES | {"tile_draw": 2e9, "prefetch": 0.0},
    "measured, heads apart": TILES | {
        "packed_prompts": 0.0, "resident_tiles": 2.0, "merge_launch": 3e-7,
    },
    "little SRAM": SERIAL | {"sram": 64 * 1024},
    "less SRAM": SERIAL | {"sram": 12 * 1024, "columns": 4, "least_rows": 64.0},
    "least SRAM": SERIAL | {"sram": 2048, "tile_draw": 2e9},
    "measured, little SRAM": TILES | {"sram": 6 * 1024},
    "warm, joined, under load": TILES | {
        "warm": 1.0, "l2_capacity": 3e5, "join": 4.0, "loaded_clock": 0.8, "loaded_after": 1e-6,
    },
}  # fmt: skip
SHAPES: dict[str, tuple[int, ...]] = {
    # batch, query heads, KV heads, head, value, query, context, causal, window
    "a whole block": (1, 9, 9, 64, 64, 1, 64, 1, 0),
    "a key more": (1, 3, 3, 64, 64, 1, 65, 1, 0),
    "split over cores": (1, 2, 1, 64, 64, 1, 1500, 1, 0),
    "grouped decode": (3, 14, 2, 128, 128, 1, 700, 1, 0),
    "several queries": (2, 8, 2, 64, 64, 5, 321, 1, 0),
    "prefill": (1, 2, 2, 64, 64, 200, 200, 1, 0),
    "prefix": (1, 4, 1, 64, 32, 70, 450, 1, 0),
    "bidirectional": (2, 2, 2, 64, 64, 150, 150, 0, 0),
    "windowed decode": (5, 4, 4, 64, 64, 1, 900, 1, 100),
    "windowed prefill": (1, 4, 2, 96, 64, 130, 400, 1, 65),
    "wide": (1, 3, 1, 192, 128, 40, 300, 1, 0),
}


def dense(
    *numbers: int, kv_bytes: float = 2.0, macs: float = 1.0, sum_bytes: float = 4.0
) -> AttentionShape:
    batch, q_heads, kv_heads, head, value, query, context, causal, window = numbers
    return AttentionShape(
        batch, q_heads, kv_heads, head, value, query, context, bool(causal), window,
        2.0, kv_bytes, macs, sum_bytes=sum_bytes,
    )  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("chip", CHIPS)
def test_search_equals_enumeration(chip: str, shape: str) -> None:
    fields, numbers = CHIPS[chip], dense(*SHAPES[shape])
    expected = oracle.latency(plain(**fields), numbers)
    assert attention_search(machine(**fields), numbers).latency == pytest.approx(
        expected, rel=1e-12
    )


@st.composite
def shapes(draw: st.DrawFn) -> AttentionShape:
    kv_heads, group = draw(st.integers(1, 12)), draw(st.sampled_from([1, 2, 7, 8]))
    query = draw(st.sampled_from([1, 1, 2, 3, 33, 64]))
    causal = draw(st.booleans())
    return dense(
        draw(st.sampled_from([1, 2, 30])),
        kv_heads * group,
        kv_heads,
        draw(st.sampled_from([16, 64, 128, 192])),
        draw(st.sampled_from([16, 64, 128])),
        query,
        query + draw(st.integers(0, 400)),
        int(causal),
        draw(st.sampled_from([0, 1, 50, 64])) if causal else 0,
        kv_bytes=draw(st.sampled_from([0.5625, 1.0, 2.0])),
        macs=draw(st.sampled_from([0.5, 1.0, 2.0])),
        sum_bytes=draw(st.sampled_from([2.0, 4.0])),
    )


@settings(max_examples=60)
@given(machines, shapes())
def test_search_equals_enumeration_on_random_machines(
    fields: dict[str, float], shape: AttentionShape
) -> None:
    found = attention_search(machine(**fields), shape).latency
    assert found == pytest.approx(oracle.latency(plain(**fields), shape), rel=1e-12)


def test_blocks_that_sram_does_not_hold_go_piece_by_piece() -> None:
    """Heads of 128 take 16 x 128 x (2 + 4) bytes beside two blocks of keys of 512 bytes each.

    Of 10 blocks of 64 keys, scores take 128 cycles over 4 lanes of 16 x 16, values as many,
    softmax 81.92 ns. 64 KiB hold half a block: 2 of 4 lanes work at its scores, 2 x 128
    cycles. 28 KiB hold a fourth; 22 KiB half the rows of that, and arrays pad both halves.
    """
    shape = dense(1, 8, 8, 128, 128, 16, 640, 1, 0)
    for sram, arrays in ((2**20, 256), (65536, 384), (12288 + 16384, 640), (22528, 1280)):
        found = attention_search(machine(**SERIAL | {"sram": sram}), shape)
        assert (found.rows, found.split) == (16, 1)
        assert found.core == pytest.approx(10 * (arrays + 81.92) * 1e-9, rel=1e-12)


def test_two_waves_by_hand() -> None:
    """9 heads on 8 cores, one block of 64 keys each: the ninth makes a second wave.

    A tile of 16 rows: over 4 lanes the scores (16 x 64) take one pass of 64 cycles, the values
    (16 x 64) another: 128 ns at 1 GHz. Softmax: 16 x 64 x (6 + 4) FLOP at 125 GFLOP/s of a
    core, 81.92 ns. Bytes: 9 x 64 x 128 x 2 of keys and values, 9 x 64 x 2 in and out.
    """
    cost = attention_search(machine(**SERIAL), dense(1, 9, 9, 64, 64, 1, 64, 1, 0))
    assert (cost.rows, cost.split, cost.active) == (16, 1, 8.0)
    assert cost.core == pytest.approx(2 * (128 + 81.92) * 1e-9, rel=1e-12)
    assert cost.traffic == 147456 + 1152 + 1152
    assert cost.memory == pytest.approx((491.52 + 3.84 + 3.84) * 1e-9, rel=1e-12)
    assert cost.latency == pytest.approx(919.04e-9, rel=1e-12)


def test_split_keys_by_hand() -> None:
    """One head, 8 blocks of keys on 8 cores: a block each, and 8 partial results to merge.

    A core draws 37.5 GB/s, so 8 draw what the memory gives, 300 GB/s: joined, that over the
    root of 2. Each draws the one query whole, 128 bytes, and one writes the result. Merging:
    8 x (64 + 2) fp32 written and read, 4224 bytes at 2 TB/s, 2.112 ns.
    """
    chip = machine(core_draw=37.5e9, **SERIAL)
    cost = attention_search(chip, dense(1, 1, 1, 64, 64, 1, 512, 1, 0))
    assert (cost.rows, cost.split, cost.active) == (16, 8, 8.0)
    assert cost.core == pytest.approx(209.92e-9, rel=1e-12)
    assert cost.reduction == pytest.approx(2.112e-9, rel=1e-12)
    moved = 131072 / 3e11 * math.sqrt(2) + 2 * math.hypot(128 / 3e11, 128 / 37.5e9)
    assert cost.latency == pytest.approx(209.92e-9 + moved + 2.112e-9, rel=1e-12)


def test_a_measured_tile_by_hand() -> None:
    """9 heads of one query and 65 keys on 8 cores: the ninth makes a second wave.

    A tile of 64 rows takes 128 keys at a time, so one block: over 4 lanes of 16 x 16 its
    scores are 8 passes of 64 cycles, its values (64 x 64) 4 of 128: 1024 ns. Softmax, 8192 x
    10 FLOP at 125 GFLOP/s, takes 655.36 ns beside them. A tile of 128 rows takes 64 keys at a
    time, so two blocks and twice that. Keys come in two chunks of 64, 256 bytes each, at 10
    GB/s in 3276.8 ns: then all tiles take the same time. A tile starts in 400 ns, takes its
    query of 128 bytes in 3.2 ns (40 GB/s) and stores 128 bytes in 10.667 ns (12 GB/s).
    """
    chip = machine(**TILES | {"tile_draw": 1e10, "sync": 1.0, "memory_bandwidth": 1e15})
    cost = attention_search(chip, dense(1, 9, 9, 64, 64, 1, 65, 1, 0))
    start = 400 + 128 / 40 + 128 / 12
    assert (cost.rows, cost.split) == (128, 1)
    assert cost.core == pytest.approx(2 * (start + 3276.8) * 1e-9, rel=1e-12)
    quick = machine(**TILES | {"tile_draw": 1e15, "sync": 1.0, "memory_bandwidth": 1e15})
    cost = attention_search(quick, dense(1, 9, 9, 64, 64, 1, 65, 1, 0))
    assert cost.rows == 64
    assert cost.core == pytest.approx(2 * (start + 1024) * 1e-9, rel=1e-12)


def test_tiles_at_once_share_the_arrays_and_hide_their_start() -> None:
    """16 heads on 8 cores, two at once: both starts run together, the arithmetic does not."""
    fields = TILES | {"memory_bandwidth": 1e15, "tile_draw": 1e15}
    shape = dense(1, 16, 16, 64, 64, 1, 128, 1, 0)
    alone, both = (
        attention_search(machine(**fields, resident_tiles=tiles), shape) for tiles in (1.0, 2.0)
    )
    start = 400 + 128 / 40 + 128 / 12
    assert alone.core == pytest.approx(2 * (start + 1024) * 1e-9, rel=1e-12)
    assert both.core == pytest.approx(2 * 1024e-9, rel=1e-12)
