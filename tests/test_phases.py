"""Phases: the sum of their operators, remembered, refused when they cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipsim.chip import Chip
from chipsim.errors import InfeasibleError
from chipsim.importers.chip_yaml import to_yaml
from chipsim.ops.graph import LATENT, Phase, phase_graph
from chipsim.phases import PhaseModel, estimate

if TYPE_CHECKING:
    from chipsim.estimates import PhaseEstimate


def bloom(
    phase: Phase,
    *,
    execution: str | None = None,
    layers_only: bool = False,
    check_memory: bool = True,
) -> PhaseEstimate:
    return estimate(
        "spad-h100",
        "bloom-176b",
        phase,
        "tp=8",
        execution=execution,
        layers_only=layers_only,
        check_memory=check_memory,
    )


def test_a_phase_is_the_sum_of_its_operators() -> None:
    step = bloom(Phase.decode(64, 1024))
    frame = step.frame()
    assert step.latency_s == pytest.approx(frame["latency_s"].sum(), rel=1e-12)
    assert frame["share"].sum() == pytest.approx(1.0)
    assert set(frame["count"]) == {1, 70}
    assert step.bound == "memory"


SHORT, LONG = Phase.prefill(1, 2048), Phase.prefill(1, 65536)
BEHIND = Phase.prefill(1, 32, 30_000)


@pytest.mark.parametrize(
    ("name", "execution", "phases"),
    [("deepseek-v3.2", None, (SHORT, LONG)), ("deepseek-v3", "ideal", (SHORT, BEHIND)),
     ("deepseek-v3", "ideal", (LONG, Phase.mixed(32, 30_000, 8, 4096)))],
)  # fmt: skip
def test_latent_attention_prefills_in_the_faster_form(
    name: str, execution: str | None, phases: tuple[Phase, ...]
) -> None:
    """Expanded in a prompt, absorbed where most pairs would be masked or a long prefix's rows
    made again for few queries; both summed up here by hand."""
    model = PhaseModel("h200-sxm", name, "tp=8,ep=8", execution=execution, precision="fp8")
    vector = model.performance.execution.kernels.vector_format
    forms: dict[bool, str] = {}
    for phase in phases:
        summed = {
            form: sum(
                row.latency_s
                for row in model.performance.rows(
                    phase_graph(
                        model.model, phase, model.plan, latent=form,
                        precision=model.precision_of(phase), vector_format=vector,
                    ).nodes
                )
            )
            for form in LATENT
        }  # fmt: skip
        found = model.estimate(phase)
        best = min(summed, key=lambda form: summed[form])
        expanded = any(row.name.endswith("latent_up") for row in found.rows)
        assert expanded == (best == "expanded")
        forms[expanded] = best
    assert forms == {True: "expanded", False: "absorbed"}


def test_more_of_dense_latent_attention_is_never_faster() -> None:
    """Over the prompts and prefixes between which the faster form changes."""
    model = PhaseModel(
        "h200-sxm", "deepseek-v3", "tp=8,ep=8", execution="ideal", precision="fp8",
        check_memory=False,
    )  # fmt: skip
    seconds = [model.estimate(Phase.prefill(1, 48, n)).latency_s for n in range(0, 4000, 130)]
    assert seconds == sorted(seconds)
    seconds = [model.estimate(Phase.prefill(1, n, 20_000)).latency_s for n in range(1, 600, 23)]
    assert seconds == sorted(seconds)


def test_a_longer_prompt_of_sparse_attention_is_never_faster() -> None:
    """Over the length from which the absorbed form is the faster one."""
    model = PhaseModel(
        "h200-sxm", "deepseek-v3.2", "tp=8,ep=8", precision="fp8", check_memory=False
    )
    for lengths in (range(2000, 2100, 7), range(16_000, 40_000, 1500)):
        seconds = [model.estimate(Phase.prefill(1, n)).latency_s for n in lengths]
        assert seconds == sorted(seconds)
    prefixed = [model.estimate(Phase.prefill(1, 64, n)).latency_s for n in range(0, 9000, 500)]
    assert prefixed == sorted(prefixed)


def test_layers_only_leaves_embedding_and_head_out() -> None:
    whole = bloom(Phase.prefill(2, 1024))
    layers = bloom(Phase.prefill(2, 1024), layers_only=True)
    left_out = {row.name for row in whole.rows} - {row.name for row in layers.rows}
    assert left_out == {"embedding", "norm_embedding", "norm_final", "lm_head"}
    assert layers.latency_s < whole.latency_s


def test_a_phase_is_remembered() -> None:
    model = PhaseModel("spad-h100", "bloom-176b", "tp=8")
    assert model.estimate(Phase.decode(8, 512)) is model.estimate(Phase.decode(8, 512))


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    path, chip = tmp_path / "mine.yaml", Chip.load("spad-h100")
    path.write_text(to_yaml(chip), encoding="utf-8")
    before = estimate(str(path), "llama-3.1-8b", Phase.decode(8, 512))
    path.write_text(to_yaml(chip.scaled(memory_bandwidth=0.5)), encoding="utf-8")
    assert (
        estimate(str(path), "llama-3.1-8b", Phase.decode(8, 512)).latency_s > before.latency_s
    )


def test_what_does_not_fit_is_refused_with_the_numbers() -> None:
    with pytest.raises(InfeasibleError, match=r"GB|GiB|bytes") as error:
        estimate("spad-h100", "bloom-176b", Phase.decode(1, 16), "tp=4")
    assert "\n" not in str(error.value)
    loose = estimate("spad-h100", "bloom-176b", Phase.decode(1, 16), "tp=4", check_memory=False)
    assert loose.latency_s > 0


def test_more_chips_than_the_machine_has() -> None:
    with pytest.raises(InfeasibleError, match="at most 4"):
        estimate("llmcompass-a100", "bloom-176b", Phase.decode(1, 16), "tp=8")


@settings(max_examples=25)
@given(
    st.integers(1, 40), st.integers(1, 2000), st.integers(0, 20), st.integers(0, 300),
    st.sampled_from(["ideal", "llmcompass-tables", "spad-figures"]),
)  # fmt: skip
def test_more_batch_and_more_context_is_never_faster(
    batch: int, tokens: int, more_batch: int, more_tokens: int, block: str
) -> None:
    for make in (Phase.prefill, Phase.decode):
        less, more = (
            bloom(phase, execution=block, check_memory=False)
            for phase in (make(batch, tokens), make(batch + more_batch, tokens + more_tokens))
        )
        assert more.latency_s >= less.latency_s * (1 - 1e-9)
