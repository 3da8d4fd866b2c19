"""Ranked plans as a table and as one JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from chipsim.present.provenance import phase_text, precision_text
from chipsim.present.quantities import digits, format_si, percent, seconds
from chipsim.present.records import step_record
from chipsim.present.tables import bound_cell, table

if TYPE_CHECKING:
    from rich.table import Table

    from chipsim.explore.plans import PlanSearch

COLUMNS = (
    "plan",
    "bound",
    "latency",
    "tok/s/chip",
    "J/token",
    "exchange",
    "bubble",
    "weights",
    "most seqs",
)


def plans_title(found: PlanSearch) -> str:
    """What was asked, and how many plans there are."""
    fitting = sum(plan.missing_bytes == 0.0 for plan in found.plans)
    asked = f"{found.model.model.name} {phase_text(found.phase)}, {found.chips} chips, "
    formats = precision_text(found.model.precision_of(found.phase))
    return f"{asked}{formats}\n{len(found.plans)} plans, {fitting} of them fit the memory"


def plans_table(found: PlanSearch, top: int) -> Table:
    """The best plans; what does not fit is told by what it lacks."""
    rows: list[list[str | Text]] = []
    for record in found.records()[:top]:
        batch: str | Text = f"{record['largest_batch']:,}"
        if not record["fits"]:
            batch = Text(f"lacks {format_si(record['shortfall_bytes'], 'B')}", "bold red")
        rows.append(
            [
                record["plan"],
                bound_cell(record["bound"]),
                seconds(record["latency_s"]),
                format_si(record["tokens_per_s_per_chip"], "").strip(),
                _digits(record["energy_j_per_token"]),
                percent(record["exchange_share"]),
                percent(record["bubble"]) if record["pp"] > 1 else "–",
                format_si(record["weights_bytes_per_chip"], "B"),
                batch,
            ]
        )
    made = table(COLUMNS, rows, text_columns=2)
    for column in (made.columns[0], made.columns[-1]):
        column.no_wrap = True
    return made


def _digits(value: float | None) -> str:
    return "–" if value is None else digits(value)


def plans_record(found: PlanSearch) -> dict[str, Any]:
    """All plans as ``rows``, the best first."""
    phase, performance = found.phase, found.model.performance
    return {
        "chip": performance.chip.name,
        "execution": performance.execution.name,
        "model": found.model.model.name,
        **step_record(phase),
        "chips": found.chips,
        "precision": precision_text(found.model.precision_of(phase)),
        "load": found.model.load.text,
        "share": found.memory_share,
        "prices": found.prices.name,
        "rows": found.records(),
    }
