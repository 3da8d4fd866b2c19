"""Errors of blocks are those that `validate` finds, or the default, and say which."""

from __future__ import annotations

import statistics

import pytest

from chipsim import validate
from chipsim.cluster.scenario import ReplicaSpec
from chipsim.validation.block_errors import block_error


def test_a_measured_chip_has_the_error_of_its_operators() -> None:
    found = block_error(ReplicaSpec(chip="h200-sxm"), "fp8", 0.3)
    points = validate("silicon", chip="h200-sxm").points
    off = points.error.abs()
    gemm = off[(points.operator == "gemm") & (points.dtype == "fp8")]
    assert found.block == "h200-graph"
    assert found.of("gemm") == pytest.approx(gemm.mean())
    assert found.of("moe") == pytest.approx(off[points.operator == "moe"].mean())
    assert found.said.startswith("measured operators of h200-sxm")


@pytest.mark.slow
def test_another_chip_has_the_error_of_a_transfer() -> None:
    found = block_error(ReplicaSpec(chip="mi300x", execution="h100-graph"), "bf16", 0.3)
    points = validate("silicon", transfer=True).points
    off = points.error.abs()
    each = [
        off[(points.chip == chip) & (points.operator == "attention_generation")].mean()
        for chip in ("h100-sxm", "h200-sxm", "b200-sxm")
    ]
    assert found.of("attention_generation") == pytest.approx(statistics.median(each))
    assert "a transfer of h100-graph" in found.said


def test_a_block_that_states_none_gets_the_default_and_says_so() -> None:
    found = block_error(ReplicaSpec(chip="spad-decode"), "fp16", 0.25)
    assert (found.block, found.of("gemm"), found.of("moe")) == ("llmcompass-tables", 0.25, 0.25)
    assert "states no error against silicon: the default" in found.said
    steps = block_error(ReplicaSpec(steps="steps.csv"), "fp16", 0.1)
    assert (steps.chip, steps.of("gemm")) == ("steps.csv", 0.1)
