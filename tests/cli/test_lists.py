from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chipsim.arch_configs import names

if TYPE_CHECKING:
    from tests.cli.conftest import Command


@pytest.mark.parametrize("kind", ["chips", "models", "executions", "prices", "workloads"])
def test_a_list_has_every_name_with_a_description(chipsim: Command, kind: str) -> None:
    rows = chipsim(kind, "--json").json["rows"]
    assert [row["name"] for row in rows] == names(kind)
    assert all(row.get("description") or row.get("source") for row in rows)
    text = chipsim(kind).out
    assert max(len(line) for line in text.splitlines()) <= 100
    assert all(name in text for name in names(kind))


def test_a_chip_is_shown_in_si_with_its_peaks(chipsim: Command) -> None:
    shown = chipsim("show", "spad-h100", "--json").json
    assert shown["memory"]["bandwidth_bytes_per_s"] == 3352e9
    assert shown["core"]["sram_bytes"] == 256 * 2**10
    assert shown["tdp_w"] == 700
    # SPAD, Table 3: 0.99 PFLOP/s and 66.9 TFLOP/s
    derived = shown["derived"]
    assert math.isclose(derived["tensor_flops_per_s"]["fp16"], 0.99e15, rel_tol=1e-3)
    assert math.isclose(derived["vector_flops_per_s"], 66.9e12, rel_tol=1e-3)


def test_a_chip_is_shown_with_units_and_sources(chipsim: Command) -> None:
    text = chipsim("show", "spad-h100").out
    assert "3352 GB/s" in text
    assert "989 TFLOP/s" in text
    assert "NVLink 4 (NVIDIA H100 white paper)" in text
    assert "source: SPAD, arXiv 2510.08544" in text


def test_a_model_is_shown_with_its_counts(chipsim: Command) -> None:
    derived = chipsim("show", "llama-3.1-8b", "--json").json["derived"]
    assert derived["parameters"] == 8_030_261_248  # its authors' count
    assert derived["attention"] == "GQA"
    assert "8,030,261,248" in chipsim("show", "llama-3.1-8b").out


def test_a_block_is_shown_with_its_fit(chipsim: Command) -> None:
    shown = chipsim("show", "llmcompass-tables", "--json").json
    assert shown["kind"] == "execution"
    assert 0 < shown["launch"]["gemm_s"] < 1e-3
    assert "fitted to" in chipsim("show", "llmcompass-tables").out


def test_a_file_is_shown_as_what_it_describes(chipsim: Command, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    source = Path(str(names.__globals__["LIBRARY"])) / "models" / "opt-30b.yaml"
    path.write_text(source.read_text())
    assert chipsim("show", str(path), "--json").json["kind"] == "model"


def test_the_ideal_machine_says_so(chipsim: Command) -> None:
    note = "ideal machine: no measured block for this chip"
    assert note in chipsim("show", "mi300x").out
    assert note in chipsim("estimate gemm --chip mi300x -m 64 -n 64 -k 64").out


def test_doctor_tells_versions(chipsim: Command) -> None:
    found = chipsim("doctor", "--json").json
    assert found["packages"]["numba"][0].isdigit()
    assert isinstance(found["pictures"], bool)
    assert chipsim("doctor").code == 0
