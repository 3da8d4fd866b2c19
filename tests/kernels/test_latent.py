"""Latent and sparse attention, the indexer, and recurrences: brute force and bounds."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chipsim.kernels.attention import Cut, attention_search, wave_seconds
from chipsim.kernels.attention_tiles import (
    AttentionShape,
    picked_blocks,
    rows_read,
    whole_blocks,
)
from chipsim.kernels.recurrence import RecurrenceShape, recurrence_search
from tests.kernels.machines import machine, machines, plain

RISING = ("memory_bandwidth", "core_draw", "l2_bandwidth", "tensor_clock", "sram")


def latent(
    batch: int, heads: int, query: int, before: int, top_k: int, rank: int = 128
) -> AttentionShape:
    width = rank + 16
    return AttentionShape(
        batch, heads, 1, width, rank, query, query + before, True, 0, 2.0, 2.0, 1.0,
        2.0 * width, top_k,
    )  # fmt: skip


latents = st.builds(
    latent, st.integers(1, 65), st.sampled_from([1, 8, 16, 128]), st.integers(1, 300),
    st.integers(0, 3000), st.sampled_from([0, 0, 1, 40, 500]),
)  # fmt: skip


@given(st.integers(1, 60), st.integers(0, 90), st.integers(1, 70), st.integers(1, 40))
def test_blocks_of_picked_rows_one_by_one(
    query: int, before: int, top_k: int, keys: int
) -> None:
    shape = latent(1, 8, query, before, top_k)
    read = [min(before + i + 1, top_k) for i in range(query)]
    blocks = [math.ceil(rows / keys) for rows in read]
    assert picked_blocks(shape, 3, keys) == (
        3 * query, 3 * sum(blocks), max(blocks)
    )  # fmt: skip
    assert rows_read(shape) == sum(read)
    assert whole_blocks(top_k, keys) == sum(math.ceil(i / keys) for i in range(1, top_k + 1))


@given(machines, latents)
def test_no_latent_attention_beats_its_roofline(
    fields: dict[str, float], shape: AttentionShape
) -> None:
    chip = plain(**fields)
    seen = [shape.context - shape.query + i + 1 for i in range(shape.query)]
    pairs = sum(min(s, shape.top_k) if shape.top_k else s for s in seen)
    keys = min(shape.context, shape.query * shape.top_k) if shape.top_k else shape.context
    width = shape.head_dim + shape.value_dim
    flops = 2 * shape.batch * shape.q_heads * width * pairs
    rows = float(shape.batch * keys * shape.row_bytes)
    # A warm L2 holds the cache where that fills half of it, none where it fills it.
    cold = min(1.0, max(0.0, 2.0 * rows / chip.l2_capacity - 1.0)) if chip.warm else 1.0
    moved = shape.batch * shape.q_heads * shape.query * width * 2 + cold * rows
    peak = chip.half_flops * chip.tensor_share
    if chip.rows:
        cells = chip.cores * chip.lanes * chip.rows * chip.columns
        peak = 2 * cells * shape.macs * chip.tensor_clock * chip.tensor_share
    found = attention_search(machine(**fields), shape).latency
    stream = chip.memory_bandwidth * chip.stream_ratio
    assert found >= max(flops / peak, moved / stream) * (1 - 1e-9)


@given(machines, latents, st.sampled_from(RISING))
def test_more_of_a_resource_is_never_slower(
    fields: dict[str, float], shape: AttentionShape, name: str
) -> None:
    before = attention_search(machine(**fields), shape).latency
    assume(math.isfinite(before))
    after = attention_search(machine(**(fields | {name: 2 * fields[name]})), shape).latency
    assert after <= before * (1 + 1e-9)


@given(machines, latents, st.sampled_from(["context", "query", "new", "batch"]), st.just(1))
def test_more_latent_attention_is_never_faster(
    fields: dict[str, float], shape: AttentionShape, name: str, extra: int
) -> None:
    larger = shape._replace(query=min(shape.context, shape.query + extra))
    if name != "new":
        larger = shape._replace(**{name: getattr(shape, name) + extra})
    if name == "query":
        larger = larger._replace(context=shape.context + extra)
    less, more = (attention_search(machine(**fields), each) for each in (shape, larger))
    assert more.latency >= less.latency * (1 - 1e-9)


@given(
    st.integers(1, 9), st.integers(0, 90), st.integers(1, 70), st.integers(1, 40),
    st.sampled_from([1, 2, 6]), st.floats(0.01, 2.0),
)  # fmt: skip
def test_the_fullest_core_of_picked_rows_one_by_one(
    query: int, before: int, top_k: int, keys: int, split: int, share: float
) -> None:
    shape = latent(1, 8, query, before, top_k)
    read = [min(before + i + 1, top_k) for i in range(query)][::-1]
    blocks = [max(1, math.ceil(rows / keys) // split) for rows in read]
    drawn = [2.0 * max(1, math.ceil(rows / 7) // split) for rows in read]
    expected = max(
        math.ceil(share * 3 * count) * (0.5 + max(min(blocks[:count]), drawn[count - 1]))
        for count in range(1, query + 1)
    )
    cut = Cut(16, keys, 8, 1.0, 3 * query, 1.0, 2.0, 0.5, 1.0)  # 2 s for 7 keys
    found = wave_seconds(machine(chunk_keys=7.0), shape, cut, split, share)
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_latent_row_is_read_once_for_keys_and_values() -> None:
    shape = latent(4, 16, 1, 999, 0, rank=512)
    apart = shape._replace(row_bytes=0.0)
    once, twice = (attention_search(machine(sram=1e6), s).traffic for s in (shape, apart))
    queries = 4 * 16 * (528 + 512) * 2
    assert once == queries + 4 * 1000 * 528 * 2
    assert twice == queries + 4 * 1000 * (528 + 512) * 2


def test_few_picked_rows_cost_what_a_short_context_costs() -> None:
    """One query that reads 64 of a million rows moves what it would of 64."""
    chip = machine()
    sparse = attention_search(chip, latent(3, 16, 1, 10**6, 64))
    short = attention_search(chip, latent(3, 16, 1, 63, 0))
    assert sparse.traffic == short.traffic
    assert sparse.latency == pytest.approx(short.latency, rel=0.01)


def test_an_indexer_reads_every_key_and_writes_every_score() -> None:
    shape = AttentionShape(
        2, 64, 1, 128, 0, 1, 5000, True, 0, 1.0, 1.0, 1.0, 128.0, 0, False, 2 * 5000 * 4.0
    )
    cost = attention_search(machine(memory_bandwidth=1e9), shape)
    assert cost.traffic == 2 * (64 * 128 + 5000 * 128 + 5000 * 4)
    assert cost.reduction == 0.0


recurrences = st.builds(
    lambda batch, heads, dk, dv, query, delta: RecurrenceShape(
        batch, heads, dk, dv, query, 64, delta, 7.0 if delta else 5.0,
        2.0 * batch * query * heads * (dk + dv) + 4.0 * batch * heads * dk * dv,
        2.0 * batch * query * heads * dv + 4.0 * batch * heads * dk * dv, 4.0, 1.0,
    ),
    st.integers(1, 64), st.integers(1, 64), st.sampled_from([16, 128]),
    st.sampled_from([64, 128]), st.sampled_from([1, 2, 63, 64, 65, 1000]), st.booleans(),
)  # fmt: skip


@given(machines, recurrences)
def test_no_recurrence_beats_memory_or_the_faster_form(
    fields: dict[str, float], shape: RecurrenceShape
) -> None:
    chip = plain(**fields)
    cost = recurrence_search(machine(**fields), shape)
    moved = shape.load_bytes + shape.store_bytes
    assert cost.traffic >= moved
    tokens = shape.batch * shape.heads * shape.query
    state = shape.key_dim * shape.value_dim
    steps = tokens * state * shape.step_flops / chip.vector_flops
    c = min(shape.chunk, shape.query)
    per_token = 2 * c * (shape.key_dim + shape.value_dim) + 4 * state
    peak = chip.half_flops * chip.tensor_share
    if chip.rows:
        cells = chip.cores * chip.lanes * chip.rows * chip.columns
        peak = 2 * cells * shape.macs * chip.tensor_clock * chip.tensor_share
    least = steps if shape.query == 1 else min(steps, tokens * per_token / peak)
    assert cost.latency >= max(least, moved / chip.memory_bandwidth) * (1 - 1e-9)


@given(machines, recurrences, st.sampled_from(RISING[:4]))
def test_a_better_chip_is_never_slower_at_a_recurrence(
    fields: dict[str, float], shape: RecurrenceShape, name: str
) -> None:
    before = recurrence_search(machine(**fields), shape).latency
    after = recurrence_search(machine(**(fields | {name: 2 * fields[name]})), shape).latency
    assert after <= before * (1 + 1e-9)


def test_a_step_is_its_states_in_and_out() -> None:
    shape = RecurrenceShape(8, 32, 128, 64, 1, 64, False, 5.0, 1e6, 1e6, 4.0, 1.0)
    cost = recurrence_search(machine(vector_flops=1e18), shape)
    assert cost.memory == pytest.approx(2e6 / 3e11)
    assert not cost.chunked
