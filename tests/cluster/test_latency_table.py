"""Tables against the estimates that they are sampled from."""

import dataclasses
import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim import Phase
from chipsim.cluster.engine.steps import octave_index, octave_point
from chipsim.cluster.latency_build import latency_table
from chipsim.cluster.latency_table import LatencyTable, stack_tables
from chipsim.cluster.sampling import geometric_grid, token_grid
from chipsim.cost.energy import EnergyModel
from chipsim.errors import ConfigError
from chipsim.phases import PhaseModel

CASES = {
    "dense": ("spad-h100", "bloom-176b", "tp=8"),
    "windows": ("h200-sxm", "gpt-oss-20b", "tp=1"),
    "data-parallel experts": ("h200-sxm", "qwen3-30b-a3b", "dp=2,ep=2"),
}


BLOCK = "ideal"
"""Blocks of measured silicon make attention go in steps of whole tiles: see the last test."""


@functools.cache
def table_of(name: str) -> LatencyTable:
    return latency_table(
        *CASES[name],
        execution=BLOCK,
        most_tokens=2048,
        most_sequences=64,
        most_context=8192,
        with_energy=True,
    )


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[PhaseModel, LatencyTable]:
    phases = PhaseModel(*CASES[request.param], execution=BLOCK, check_memory=False)
    return phases, table_of(request.param)


def log_uniform(rng: np.random.Generator, most: int, least: int = 1) -> int:
    return int(np.exp(rng.uniform(np.log(least), np.log(most + 1))))


def test_prefill_is_within_a_hundredth(case: tuple[PhaseModel, LatencyTable]) -> None:
    phases, table = case
    rng, ranks = np.random.default_rng(3), table.ranks
    for _ in range(25):
        query = log_uniform(rng, 2048)
        batch = log_uniform(rng, min(64, 2048 // query))
        prefix = int(rng.choice([0, log_uniform(rng, 8192 - query)]))
        direct = phases.estimate(Phase.prefill(ranks * batch, query, prefix)).latency_s
        found = table.prefill_s([query] * batch, prefix)
        assert found == pytest.approx(direct, rel=0.01), (batch, query, prefix)


def test_decode_is_within_a_hundredth(case: tuple[PhaseModel, LatencyTable]) -> None:
    phases, table = case
    rng, ranks = np.random.default_rng(4), table.ranks
    for _ in range(25):
        batch, context = log_uniform(rng, 64), log_uniform(rng, 8192)
        if batch * context > 100_000:  # more than memory holds
            continue
        direct = phases.estimate(Phase.decode(ranks * batch, context)).latency_s
        found = table.decode_s([context] * batch)
        assert found == pytest.approx(direct, rel=0.01), (batch, context)


def test_a_mixed_step_is_within_a_hundredth(case: tuple[PhaseModel, LatencyTable]) -> None:
    phases, table = case
    rng, ranks = np.random.default_rng(5), table.ranks
    for _ in range(15):
        chunk, prefix = log_uniform(rng, 1024), log_uniform(rng, 4096)
        batch, context = log_uniform(rng, 64), log_uniform(rng, 1500)
        phase = Phase.mixed(chunk, prefix, ranks * batch, context, batch=ranks)
        direct = phases.estimate(phase).latency_s
        found = table.mixed_s([chunk], prefix, [context] * batch)
        assert found == pytest.approx(direct, rel=0.01), (chunk, prefix, batch, context)


def test_equal_lengths_on_the_grid_are_exact(case: tuple[PhaseModel, LatencyTable]) -> None:
    phases, table = case
    direct = phases.estimate(Phase.prefill(table.ranks * 4, 256, 1024)).latency_s
    assert table.prefill_s([256] * 4, 1024) == pytest.approx(direct, rel=1e-9)
    direct = phases.estimate(Phase.decode(table.ranks * 16, 1024)).latency_s
    assert table.decode_s([1024] * 16) == pytest.approx(direct, rel=1e-9)


def test_bounded_attention_stops_growing_at_its_limit() -> None:
    table = table_of("windows")
    assert table.limit == 128
    # Half of the layers see 128 tokens: one long context among short ones is not a mean.
    ragged = table.decode_s([8000] + [100] * 31)
    assert ragged == pytest.approx(table.decode_s([346] * 32), rel=0.02)


def test_longer_prompts_and_contexts_never_take_less() -> None:
    table = table_of("dense")
    prompts = [table.prefill_s([n]) for n in range(1, 2049, 7)]
    contexts = [table.decode_s([c] * 8) for c in range(1, 8192, 61)]
    assert np.all(np.diff(prompts) > -1e-9 * np.array(prompts[1:]))
    assert np.all(np.diff(contexts) > -1e-9 * np.array(contexts[1:]))


def test_joules_are_those_of_the_energy_model() -> None:
    table = table_of("dense")
    assert table.joules is not None
    phases = PhaseModel(*CASES["dense"], execution=BLOCK)
    step = phases.estimate(Phase.decode(16, 1024))
    drawn = EnergyModel(phases.performance.chip).phase(step)
    of = dataclasses.replace(table, seconds=table.joules, joules=None)
    wanted = 8 * (drawn.total_j - drawn.parts["idle"])
    assert of.decode_s([1024] * 16) == pytest.approx(wanted, rel=1e-9)


def test_stacked_tables_say_what_each_says() -> None:
    small = table_of("windows")
    large = latency_table(
        "a100-sxm", "llama-3.1-8b", most_tokens=512, most_sequences=8, most_context=1024
    )
    steps = stack_tables([small, large])
    assert steps.prefill.shape == (2, 2049)
    from chipsim.cluster.engine.steps import decode_seconds, prefill_seconds

    assert prefill_seconds(steps, 1, 300, 300.0**2, 0.0, 1) == pytest.approx(
        large.prefill_s([300]), rel=1e-12
    )
    assert decode_seconds(steps, 0, 32, 32 * 700.0, 32 * 128.0) == pytest.approx(
        small.decode_s([700] * 32), rel=1e-12
    )


def test_a_plan_that_splits_prompts_does_not_decode() -> None:
    table = latency_table("h100-sxm", "llama-3.1-8b", "cp=2", most_tokens=64, most_context=64)
    assert not table.can_decode
    assert table.prefill_s([256]) > 0.0


def test_sizes_from_one() -> None:
    build = functools.partial(latency_table, "h100-sxm", "llama-3.1-8b")
    with pytest.raises(ConfigError, match="most_tokens"):
        build(most_tokens=0)
    with pytest.raises(ConfigError, match="most_sequences"):
        build(most_sequences=0)
    with pytest.raises(ConfigError, match="most_context"):
        build(most_context=-1)


@given(st.floats(0.0, 1e7))
def test_the_place_of_a_number_lies_between_its_points(value: float) -> None:
    index = octave_index(value)
    assert octave_point(index) <= value < octave_point(index + 1)


@given(st.integers(1, 300_000))
def test_grids_reach_from_one_to_the_end(most: int) -> None:
    for grid in (token_grid(most), geometric_grid(most, 4, 8)):
        assert grid[0] == 1
        assert grid[-1] == most
        assert np.all(np.diff(grid) > 0)


def test_steps_of_tiles_of_measured_silicon_are_met_within_a_fiftieth() -> None:
    table = latency_table(
        "h200-sxm", "qwen3-30b-a3b", most_tokens=1024, most_sequences=32, most_context=4096
    )
    phases = PhaseModel("h200-sxm", "qwen3-30b-a3b", check_memory=False)
    for query, prefix in ((811, 1936), (130, 0), (513, 700), (1000, 3000)):
        direct = phases.estimate(Phase.prefill(1, query, prefix)).latency_s
        assert table.prefill_s([query], prefix) == pytest.approx(direct, rel=0.02)
    for batch, context in ((19, 100), (5, 3000)):
        direct = phases.estimate(Phase.decode(batch, context)).latency_s
        assert table.decode_s([context] * batch) == pytest.approx(direct, rel=0.02)


def test_tables_of_whole_prompts_agree_where_nothing_came_before() -> None:
    def build(whole: bool) -> LatencyTable:
        return latency_table(
            *CASES["dense"],
            execution=BLOCK,
            most_tokens=128,
            most_sequences=16,
            most_context=256,
            whole_prompts=whole,
        )

    full, whole = build(False), build(True)
    assert full.seconds.prompts.shape[2] > whole.seconds.prompts.shape[2] == 2
    for prompts in ([1], [128], [16] * 8, [7, 100]):
        assert whole.prefill_s(prompts) == full.prefill_s(prompts)
        assert whole.mixed_s(prompts, 0, [200] * 4) == full.mixed_s(prompts, 0, [200] * 4)
    assert whole.decode_s([200] * 16) == full.decode_s([200] * 16)
    assert np.array_equal(whole.alone_s([1, 99, 128]), full.alone_s([1, 99, 128]))
