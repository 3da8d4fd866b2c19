"""Serving engines: closed forms of a step, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim import Phase, estimate
from chipsim.arch_configs import names
from chipsim.errors import ConfigError
from chipsim.serving import ServingEngine, engine_step

STEP = estimate("h100-sxm", "llama-2-70b", Phase.decode(4, 512), "tp=8", execution="h100-graph")
PROMPTS = estimate("h100-sxm", "llama-2-70b", Phase.prefill(4, 2048), "tp=8")


def engine(**fields: Any) -> ServingEngine:
    host = {"kernel": fields.pop("kernel", 0.0), "libraries": fields.pop("libraries", 1.0)}
    return ServingEngine.build(
        "mine", name="mine", source="round numbers", machines={"h100-sxm": host}, **fields
    )


def exchanged(phase: Any) -> tuple[float, float]:
    """Seconds of collectives, and of all else."""
    rows = [(row.latency_s, row.estimate.operator.kind == "collective") for row in phase.rows]
    return sum(s for s, linked in rows if linked), sum(s for s, linked in rows if not linked)


def test_an_engine_without_factors_adds_nothing() -> None:
    found = engine_step(engine(), STEP)
    assert found.latency_s == found.device == pytest.approx(STEP.latency_s)


def test_the_host_issues_every_kernel() -> None:
    kernels = sum(row.count for row in STEP.rows)
    found = engine_step(engine(kernel=1e-4, sequence=1e-3, prompts=9.0), STEP)
    assert found.host == pytest.approx(kernels * 1e-4)
    assert found.latency_s == pytest.approx(kernels * 1e-4 + 4e-3)
    prompts = engine_step(engine(kernel=1e-4, prompts=1.0), PROMPTS)
    kernels = sum(row.count for row in PROMPTS.rows)
    assert prompts.latency_s == pytest.approx(1.0 + kernels * 1e-4)


def test_libraries_hold_operators_and_exchanges_their_own() -> None:
    linked, other = exchanged(PROMPTS)
    found = engine_step(engine(libraries=0.5, exchange=3.0), PROMPTS)
    assert found.device == pytest.approx(2 * other + 3 * linked)


def test_long_exchanges_from_their_size_on() -> None:
    """8192 tokens of 8192 elements of 2 bytes are 128 MiB."""
    linked, other = exchanged(PROMPTS)
    slow = {"exchange": 2.0, "long_exchange": 2.0}
    exact = engine_step(engine(**slow, long_from=2.0**27), PROMPTS)
    assert exact.device == pytest.approx(other + 4 * linked)
    beyond = engine_step(engine(**slow, long_from=2.0**27 + 1), PROMPTS)
    assert beyond.device == pytest.approx(other + 2 * linked)


def test_sequences_of_a_mixed_step_are_counted_all() -> None:
    mixed = estimate("h100-sxm", "llama-2-70b", Phase.mixed(256, 256, 7, 512), "tp=8")
    found = engine_step(engine(sequence=1e-3, prompts=1.0), mixed)
    assert found.sequences == pytest.approx(8e-3)
    assert found.host == 1.0


@given(st.floats(0.3, 1.0), st.floats(0, 1e-4), st.floats(1, 5))
def test_an_engine_never_beats_its_chip(share: float, kernel: float, slow: float) -> None:
    mine = engine(libraries=share, kernel=kernel, exchange=slow)
    assert engine_step(mine, STEP).latency_s >= STEP.latency_s * (1 - 1e-12)


def test_what_an_engine_does_not_know_is_refused() -> None:
    other = estimate("a100-sxm", "llama-2-70b", Phase.decode(4, 512), "tp=8")
    with pytest.raises(ConfigError, match="machines: 'a100-sxm' is not allowed; allowed: h100"):
        engine_step(engine(), other)
    stages = estimate("h100-sxm", "llama-2-70b", Phase.decode(4, 512), "tp=4,pp=2")
    with pytest.raises(ConfigError, match="one pipeline stage"):
        engine_step(engine(), stages)
    with pytest.raises(ConfigError, match=r"exchange: 0\.5"):
        engine(exchange=0.5)


@pytest.mark.parametrize("name", names("engines"))
def test_engines_of_the_library_are_read(name: str) -> None:
    found = ServingEngine.load(name)
    assert found.name == name
    assert found.machines
