"""The reference figures that come with the package: ``data/*.csv``, in our own schema.

Each file says in its head where its rows are from, under which licence, and how they
were chosen; ``data/README.md`` describes the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from chipsim.ops.graph import Phase
from chipsim.ops.model import ModelSpec
from chipsim.validation.cases import LABELS, LayerCase, OperatorCase, operator_of
from chipsim.validation.llmcompass import overheads
from chipsim.validation.subjects import EAGER, Subject
from chipsim.validation.table import Row, Table, read_table

DATA = Path(__file__).parent / "data"
"""Folder of the reference tables."""


@cache
def reference_table(stem: str) -> Table:
    """One of the reference tables, by the stem of its file."""
    return read_table(DATA / f"{stem}.csv")


def reference_cases() -> Iterator[OperatorCase | LayerCase]:
    """Every case of the reference tables."""
    for row in reference_table("bloom_tables").rows:
        yield _layer("author-tables", row, residuals=True)
    for row in reference_table("public_operators").rows:
        yield _operator("public", row, "latency_s")
    for row in reference_table("public_layers").rows:
        yield _layer("public-layer", row)
    for row in reference_table("silicon_operators").rows:
        yield _operator("silicon-eager", row, "measured_s", launch=True)
    yield from _measured_layers(reference_table("silicon_layers"))


def _operator(suite: str, row: Row, column: str, *, launch: bool = False) -> OperatorCase:
    kind, dtype = row.text("operator"), row.text("dtype")
    subject = _subject(row, suite)
    m, n, k, batch = (row.whole(size, 1) for size in ("m", "n", "k", "batch"))
    return OperatorCase(
        suite,
        subject,
        kind,
        dtype,
        operator_of(kind, dtype, m, n, k, batch, subject.chips),
        row.positive(column),
        launch,
        row.where,
        row.positive("llmcompass_s") if row.has("llmcompass_s") else 0.0,
    )


def _layer(suite: str, row: Row, *, residuals: bool = False) -> LayerCase:
    batch, context = row.whole("batch"), row.whole("context")
    make = Phase.prefill if row.text("phase") == "prefill" else Phase.decode
    subject = _subject(row, suite)
    return LayerCase(
        suite,
        subject,
        ModelSpec.load(row.text("model")),
        row.whole("tp"),
        make(batch, context),
        "fp16",
        _seconds(row),
        residuals,
        row.where,
        overheads(subject.chip) if suite == "public-layer" else None,
    )


def _measured_layers(table: Table) -> Iterator[LayerCase]:
    """Measured rows, each with LLMCompass's row of the same phase beside it."""
    simulated = {
        row.text("phase"): row for row in table.rows if row.text("origin") != "measured"
    }
    for row in table.rows:
        if row.text("origin") == "measured":
            case = _layer("silicon-layer", row)
            others = _seconds(simulated[case.phase.kind])
            yield LayerCase(
                case.suite,
                case.subject,
                case.model,
                case.tp,
                case.phase,
                case.dtype,
                case.references,
                case.residuals,
                case.source,
                others=others,
            )


def _subject(row: Row, suite: str) -> Subject:
    chip = row.text("chip")
    return Subject(
        chip,
        row.whole("chips", 1),
        row.whole("cores") if row.has("cores") else 0,
        row.positive("memory_bandwidth_bytes_per_s")
        if row.has("memory_bandwidth_bytes_per_s")
        else 0.0,
        execution=EAGER.get(chip, "") if suite.startswith("silicon") else "",
    )


def _seconds(row: Row) -> dict[str, float]:
    return {kind: row.positive(f"{kind}_s") for kind in LABELS if row.has(f"{kind}_s")}
