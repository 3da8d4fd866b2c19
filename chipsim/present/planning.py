"""A ranking of layouts as tables and as one JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipsim.present.quantities import digits, percent, seconds
from chipsim.present.tables import footer_line, heading, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table
    from rich.text import Text

    from chipsim.cluster.ranking import Ranking

VALUE = {"rate": ("req/s", "capacity_rps"), "latency": ("mean E2E", "mean_e2e_s")}


def planning_record(found: Ranking) -> dict[str, Any]:
    """All that was found, in plain values: ``rows``, the best first."""
    return {
        "scenario": found.scenario.name,
        "model": found.scenario.model,
        "inventory": [{"chip": each.chip, "chips": each.chips} for each in found.inventory],
        "goal": found.goal,
        "seeds": list(found.seeds),
        "requests": found.requests,
        "holds": bool(found.rows),
        "reason": found.reason,
        "rows": found.records(),
        "layouts": found.layouts,
        "tried": found.tried,
        "runs": found.runs,
        "wall_s": found.wall_s,
    }


def planning_tables(found: Ranking) -> Iterator[Table | Text]:
    """What a terminal shows."""
    chips = " + ".join(f"{each.chips} {each.chip}" for each in found.inventory)
    yield heading(f"{found.scenario.model} on {chips}")
    if not found.rows:
        yield footer_line(f"no layout holds it: {found.reason}")
    else:
        yield _ranked(found)
        for said in found.decided:
            yield footer_line(said)
    yield footer_line(
        f"{found.layouts} layouts, {found.layouts - found.tried} ruled out by bounds; "
        f"{found.runs} runs of {found.requests} requests{_lasting(found)}, seeds "
        + ", ".join(map(str, found.seeds))
    )


def _lasting(found: Ranking) -> str:
    """How long a run is: a short one does not see queues that grow slowly."""
    if not found.rows or found.goal != "rate":
        return ""
    return f" ({seconds(found.requests / found.rows[0].value)} at the best rate)"


def _ranked(found: Ranking) -> Table:
    head, key = VALUE[found.goal]
    show = seconds if found.goal == "latency" else digits
    return table(
        [
            *("layout", head, "at most", "chunk", "batch", "P99 TTFT", "P50 E2E"),
            *("binding", "margin"),
        ],
        (
            [
                row["layout"],
                show(row[key]),
                show(row["bound"]) if found.goal == "rate" else "",
                str(row["max_tokens"]),
                str(row["max_batch"]),
                seconds(row["ttft_p99_s"]),
                seconds(row["e2e_p50_s"]),
                row["binding"],
                percent(row["margin"]) if row["margin"] is not None else "",
            ]
            for row in found.records()
        ),
    )
