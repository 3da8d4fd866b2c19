"""The library of chips, models, blocks, price books and workloads: as lists, and one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chipsim.arch_configs import load, locate, names, notes
from chipsim.chip import Chip
from chipsim.cluster.scenario import Scenario
from chipsim.cluster.workload_spec import WorkloadSpec
from chipsim.cost.prices import PriceBook
from chipsim.errors import UnknownNameError
from chipsim.execution import Execution
from chipsim.ops.model import ModelSpec
from chipsim.present.describe import (
    Line,
    chip_lines,
    chip_record,
    engine_lines,
    engine_record,
    execution_lines,
    execution_record,
    half_precision_flops,
    model_derived,
    model_lines,
    model_record,
    price_lines,
)
from chipsim.present.provenance import IDEAL, block_text
from chipsim.present.quantities import binary, format_si
from chipsim.present.tables import footer_line, heading, lines_table, table
from chipsim.present.workload import workload_lines
from chipsim.serving import ServingEngine

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


def chip_rows() -> list[dict[str, Any]]:
    """Name, description and main figures of every chip."""
    return [_chip_row(Chip.load(name)) for name in names("chips")]


def _chip_row(chip: Chip) -> dict[str, Any]:
    half, flops = half_precision_flops(chip)
    return {
        "name": chip.name,
        "description": chip.description,
        "cores": chip.cores,
        "tensor_format": half,
        "tensor_flops_per_s": flops,
        "memory_bandwidth_bytes_per_s": chip.memory.bandwidth,
        "memory_capacity_bytes": chip.memory.capacity,
        "execution": chip.execution,
    }


def chips_table(rows: list[dict[str, Any]]) -> Table:
    """The list of chips."""
    return table(
        ("chip", "description", "block", "FLOP/s", "memory", "capacity"),
        (
            (
                row["name"],
                row["description"],
                row["execution"],
                format_si(row["tensor_flops_per_s"], ""),
                format_si(row["memory_bandwidth_bytes_per_s"], "B/s"),
                binary(row["memory_capacity_bytes"]),
            )
            for row in rows
        ),
        text_columns=3,
    )


def model_rows() -> list[dict[str, Any]]:
    """Name, description and main figures of every model."""
    return [_model_row(ModelSpec.load(name)) for name in names("models")]


def _model_row(model: ModelSpec) -> dict[str, Any]:
    return {
        "name": model.name,
        "description": model.description,
        "layers": model.layers,
        "hidden": model.hidden,
        "heads": model.heads,
        "kv_heads": model.kv_heads,
        **model_derived(model),
    }


def models_table(rows: list[dict[str, Any]]) -> Table:
    """The list of models."""
    return table(
        ("model", "description", "attention", "layers", "heads", "parameters", "active", "KV"),
        (
            (
                row["name"],
                row["description"],
                row["attention"],
                str(row["layers"]),
                f"{row['heads']}/{row['kv_heads']}",
                format_si(row["parameters"], "").replace("G", "B"),
                format_si(row["active_parameters"], "").replace("G", "B"),
                format_si(row["kv_bytes_per_token_fp16"], "B"),
            )
            for row in rows
        ),
        text_columns=3,
    )


def execution_rows() -> list[dict[str, Any]]:
    """Name, source and fit of every execution block, and the chips that use it."""
    users: dict[str, list[str]] = {}
    for name in names("chips"):
        users.setdefault(load("chips", name)[0].get("execution", ""), []).append(name)
    return [
        {
            "name": block.name,
            "source": block.source,
            "fitted_to": block.fitted.to if block.fitted else None,
            "chips": users.get(block.name, []),
        }
        for block in map(Execution.load, names("executions"))
    ]


def executions_table(rows: list[dict[str, Any]]) -> Table:
    """The list of execution blocks."""
    return table(
        ("block", "source", "fitted to", "default of"),
        (
            (
                row["name"],
                row["source"],
                row["fitted_to"] or "nothing",
                ", ".join(row["chips"]) or "–",
            )
            for row in rows
        ),
        text_columns=4,
    )


def price_rows() -> list[dict[str, Any]]:
    """Name, basis, date and content of every price book."""
    return [_price_row(PriceBook.load(name)) for name in names("prices")]


def _price_row(book: PriceBook) -> dict[str, Any]:
    return {
        "name": book.name,
        "description": book.description,
        "basis": book.basis,
        "date": book.date,
        "source": book.source,
        "wafers": list(book.wafers),
        "memory": list(book.memory),
        "chips": list(book.chips),
    }


def prices_table(rows: list[dict[str, Any]]) -> Table:
    """The list of price books."""
    made = table(
        ("prices", "description", "basis", "date", "wafers", "chips"),
        (
            (
                row["name"],
                row["description"],
                row["basis"],
                row["date"],
                *(", ".join(row[kind]) or "–" for kind in ("wafers", "chips")),
            )
            for row in rows
        ),
        text_columns=6,
    )
    for column in (0, 2, 3):
        made.columns[column].no_wrap = True
    return made


@dataclass(frozen=True, slots=True)
class Found:
    """A chip, model, block, engine, price book or workload that was asked for by name."""

    title: str
    source: str
    lines: list[Line]
    remarks: list[str]
    record: dict[str, Any]


def look_up(name: str) -> Found:
    """Find what a name or a file describes.

    Raises
    ------
    UnknownNameError
        Nothing in the library has the name (near misses are suggested).
    ConfigError, ChipsimError
        The file is not a valid description, or is not there.
    """
    return READERS[_kind_of(name)](name)


def _kind_of(name: str) -> str:
    if name.endswith((".yaml", ".yml")) or "/" in name:
        content, _ = load("chips", name)
        return next((kind for key, kind in TELLING.items() if key in content), "executions")
    for kind in READERS:
        if name in names(kind):
            return kind
    known = [each for kind in READERS for each in names(kind)]
    raise UnknownNameError("chip, model, block, engine, price book or workload", name, known)


def _chip(name: str) -> Found:
    chip, comments = Chip.load(name), notes(locate("chips", name))
    remarks = [comments[""]] if "" in comments else []
    if chip.execution == "ideal":
        remarks.append(IDEAL)
    return Found(
        _title(chip.name, chip.description),
        chip.source,
        chip_lines(chip, comments),
        remarks,
        chip_record(chip),
    )


def _model(name: str) -> Found:
    model, comments = ModelSpec.load(name), notes(locate("models", name))
    return Found(
        _title(model.name, model.description),
        model.source,
        model_lines(model, comments),
        [comments[""]] if "" in comments else [],
        model_record(model),
    )


def _execution(name: str) -> Found:
    block, comments = Execution.load(name), notes(locate("executions", name))
    remarks = [comments[""]] if "" in comments else []
    if block.fitted is not None:
        remarks += [
            block_text(block),
            f"fit again: {block.fitted.command}",
            block.fitted.report,
        ]
    return Found(
        _title(block.name, ""),
        block.source,
        execution_lines(block, comments),
        [remark for remark in remarks if remark],
        execution_record(block),
    )


def _engine(name: str) -> Found:
    engine, comments = ServingEngine.load(name), notes(locate("engines", name))
    remarks = [comments[""]] if "" in comments else []
    if engine.fitted is not None:
        remarks.append(f"fitted to {engine.fitted.to}; again: {engine.fitted.command}")
    return Found(
        _title(engine.name, ""),
        engine.source,
        engine_lines(engine, comments),
        remarks,
        engine_record(engine),
    )


def _prices(name: str) -> Found:
    book, path = PriceBook.load(name), locate("prices", name)
    comments = notes(path)
    return Found(
        _title(book.name, book.description),
        book.source,
        price_lines(book, comments),
        [comments[""]] if "" in comments else [],
        {"kind": "prices", **book.model_dump(by_alias=True)},
    )


def _workload(name: str) -> Found:
    spec, path = WorkloadSpec.load(name), locate("workloads", name)
    comments = notes(path)
    return Found(
        _title(spec.name, spec.description),
        spec.source,
        workload_lines(spec, comments),
        [comments[""]] if "" in comments else [],
        {"kind": "workload", **spec.model_dump()},
    )


def _scenario(name: str) -> Found:
    scenario, path = Scenario.load(name), locate("scenarios", name)
    comments = notes(path)
    return Found(
        _title(scenario.name, scenario.description),
        scenario.source or "chosen for this library",
        workload_lines(scenario, comments),
        [comments[""]] if "" in comments else [],
        {"kind": "scenario", **scenario.model_dump()},
    )


TELLING = {
    "pools": "scenarios",
    "cores": "chips",
    "layers": "models",
    "basis": "prices",
    "machines": "engines",
    "lengths": "workloads",
    "sessions": "workloads",
    "trace": "workloads",
}
"""A key that only one kind of file has."""

READERS: dict[str, Callable[[str], Found]] = {
    "chips": _chip,
    "models": _model,
    "executions": _execution,
    "engines": _engine,
    "prices": _prices,
    "workloads": _workload,
    "scenarios": _scenario,
}


def shown(found: Found) -> list[Table | Text]:
    """What ``chipsim show`` prints."""
    parts: list[Table | Text] = [heading(found.title), lines_table(found.lines)]
    parts.append(footer_line(f"source: {' '.join(found.source.split())}"))
    parts += [footer_line(remark) for remark in found.remarks]
    return parts


def _title(name: str, description: str) -> str:
    return f"{name} – {description}" if description else name
