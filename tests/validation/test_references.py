"""The tables that come with the package: their heads, their figures, their chips."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipsim.execution import Execution
from chipsim.ops.graph import Phase
from chipsim.performance import PerformanceModel
from chipsim.phases import PhaseModel
from chipsim.validation.cases import NODES, Judge, LayerCase
from chipsim.validation.references import DATA, reference_cases
from chipsim.validation.statistics import error_statistics
from chipsim.validation.suites import SUITES
from chipsim.validation.table import read_table

FILES = sorted(DATA.glob("*.csv"))
WORDS = {
    "chip",
    "die",
    "block",
    "model",
    "phase",
    "operator",
    "dtype",
    "origin",
    "series",
    "resource",
    "mark",
    "source",
    "hardware",
    "system",
    "trace",
    "against",
    "of",
    "kind",
    "figure",
    "cluster",
    "metric",
    "unit",
}

SIGNED = {("spad_reuse", "cost"), ("spad_reuse", "tdp")}
"""Shares saved, which may be losses."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_table_says_where_it_is_from(path: Path) -> None:
    head = read_table(path).head
    for key in ("source", "licence", "made"):
        assert any(line.startswith(f"# {key}: ") for line in head), key
    assert f"`{path.name}`" in (DATA / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_figure_is_positive_and_finite(path: Path) -> None:
    table = read_table(path)
    assert table.rows
    for row in table.rows:
        for column in set(table.columns) - WORDS:
            if row.has(column) and (path.stem, column) in SIGNED:
                assert -1.0 < float(row.text(column)) < 1.0
            elif row.has(column):
                row.positive(column)


def test_every_row_becomes_a_case_of_a_suite() -> None:
    cases = list(reference_cases())
    stems = ("bloom_tables", "public_operators", "public_layers", "silicon_operators")
    rows = sum(len(read_table(DATA / f"{stem}.csv").rows) for stem in stems)
    assert len(cases) == rows + 2  # two measured layers, each with a simulated one beside it
    assert {case.suite for case in cases} <= set(SUITES)


def test_layers_of_the_tables_are_the_sums_of_their_operators() -> None:
    for case in reference_cases():
        if isinstance(case, LayerCase):
            parts = sum(case.references.get(kind, 0.0) for kind in NODES)
            # The author's tables are rounded to five digits.
            assert case.references["layer"] == pytest.approx(parts, rel=2e-4), case.source
            if "step" in case.references:
                step = case.model.layers * parts
                assert case.references["step"] == pytest.approx(step, rel=2e-4), case.source


@pytest.mark.parametrize("phase", [Phase.prefill(2, 1024), Phase.decode(64, 1024)])
def test_step_is_what_the_phase_model_gives(phase: Phase, tmp_path: Path) -> None:
    block = tmp_path / "unfused.yaml"
    block.write_text(
        "name: unfused\nsource: test\n"
        "kernels: {attention: unfused, qkv: separate, vector_format: fp32}\n"
    )
    case = next(
        case
        for case in reference_cases()
        if isinstance(case, LayerCase) and (case.suite, case.phase) == ("author-tables", phase)
    )
    points = {p.operator: p.estimate for p in case.points(Judge(str(block)))}
    model = PerformanceModel(case.subject.build(), Execution.load(str(block)))
    whole = PhaseModel(model, "bloom-176b", "tp=8", layers_only=True, check_memory=False)
    assert points["total"] == pytest.approx(whole.estimate(phase).latency_s, rel=1e-12)
    parts = sum(value for name, value in points.items() if name not in ("layer", "total"))
    assert points["layer"] == pytest.approx(parts, rel=1e-12)


def test_llmcompass_errs_on_the_selected_rows_about_as_on_all() -> None:
    # Its own report on all rows: matmul 6.5 and 10.1 %, softmax 9.4 and 14.2 %.
    errors: dict[tuple[str, str], list[float]] = {}
    for case in reference_cases():
        if case.suite == "silicon-eager" and not isinstance(case, LayerCase):
            key = (case.subject.chip, case.kind)
            errors.setdefault(key, []).append(case.other / case.reference - 1.0)
    mape = {key: error_statistics(values)["mape"] for key, values in errors.items()}
    assert mape["a100-sxm", "gemm"] == pytest.approx(0.065, abs=0.001)
    assert mape["mi210", "gemm"] == pytest.approx(0.101, abs=0.001)
    assert mape["a100-sxm", "softmax"] == pytest.approx(0.094, abs=0.02)
    assert mape["mi210", "softmax"] == pytest.approx(0.142, abs=0.02)
