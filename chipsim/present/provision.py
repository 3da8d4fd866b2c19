"""The answer of a search for counts: record, tables, and a figure of what was run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from chipsim.cluster.capacity import capacity
from chipsim.cluster.provision import counted
from chipsim.present.quantities import digits, percent
from chipsim.present.tables import footer_line, table
from chipsim.present.theme import BLUE, MUTED, VERMILION, template

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table
    from rich.text import Text

    from chipsim.cluster.provision import Provision
    from chipsim.cluster.search import Candidate


def provision_record(answer: Provision, *, with_capacity: bool = False) -> dict[str, Any]:
    """Everything that `provision` found, in plain values."""
    best, search = answer.best, answer.search
    record: dict[str, Any] = {
        "scenario": search.scenario.name,
        "goal": answer.goal,
        "seeds": list(search.seeds),
        "holds": best is not None,
        "reason": answer.reason,
        "pools": None if best is None else dict(best.instances),
        "cost": None if best is None else best.goal,
        **_money(answer, best),
        "binding": None if best is None else best.worst.binding,
        "margin": None if best is None else best.worst.margin,
        "goodput_rps": None if answer.run is None else answer.run.goodput_rps,
        "goodput_per_usd": None if answer.run is None else answer.run.spending.goodput_per_usd,
        "capacity_rps": None,
        "frontier": [each.record() | _money(answer, each) for each in answer.frontier],
        "by_seed": [
            {"seed": seed, "pools": None if each is None else each.instances,
             "cost": None if each is None else each.goal}
            for seed, each in zip(search.seeds, answer.by_seed, strict=True)
        ],
        "rows": [each.record() for each in answer.tried],
        "refused": answer.refused,
        "wall_s": answer.wall_s,
    }  # fmt: skip
    if with_capacity and best is not None:
        found = capacity(search.cluster, search.workloads[0], best.instances)
        record["capacity_rps"] = found.rate_rps
    return record


def _money(answer: Provision, candidate: Candidate | None) -> dict[str, float | None]:
    price = None if candidate is None else answer.price(candidate)
    return {
        "chips_usd": None if price is None else price.chips_usd,
        "cost_usd_per_hour": None if price is None else price.usd_per_hour,
        "tdp_w": None if price is None else price.tdp_w,
    }


def provision_tables(record: dict[str, Any]) -> Iterator[Table | Text]:
    """What a terminal shows."""
    if not record["holds"]:
        yield footer_line(f"{record['scenario']}: no cluster holds it: {record['reason']}")
        return
    best = counted(record["pools"])
    seeds = ", ".join(map(str, record["seeds"]))
    margin = percent(record["margin"])
    yield footer_line(
        f"{record['scenario']}: {best} hold it under seeds {seeds}; "
        f"{record['binding']} binds with {margin} to spare"
    )
    yield table(
        ["counts", record["goal"], "US$/h", "TDP kW", "binding", "margin"],
        (
            [
                counted(row["instances"]),
                digits(row["goal"]),
                _shown(row["cost_usd_per_hour"]),
                _shown(row["tdp_w"], 1e-3),
                row["binding"],
                percent(row["margin"]),
            ]
            for row in record["frontier"]
        ),
    )
    alone = "; ".join(
        f"seed {row['seed']}: {counted(row['pools'])}"
        for row in record["by_seed"]
        if row["pools"]
    )
    yield footer_line(f"cheapest of each seed alone: {alone}")
    yield footer_line(
        f"{len(record['rows'])} counts run, {record['refused']} ruled out by work"
    )
    if record["capacity_rps"] is not None:
        yield footer_line(
            f"the largest rate that it holds: {digits(record['capacity_rps'])} /s"
        )


def _shown(value: float | None, scale: float = 1.0) -> str:
    return "" if value is None else digits(value * scale)


def provision_figure(answer: Provision) -> go.Figure:
    """Counts of the first two pools that were run: which hold under every seed."""
    names = answer.search.pools
    x, y = names[0], names[min(1, len(names) - 1)]
    figure = go.Figure()
    for holds, colour, label in ((False, VERMILION, "fails"), (True, BLUE, "holds")):
        of = [each for each in answer.tried if each.holds == holds]
        figure.add_scatter(
            x=[each.instances[x] for each in of],
            y=[each.instances[y] for each in of],
            text=[f"{counted(each.instances)}: {each.worst.binding}" for each in of],
            mode="markers",
            name=label,
            marker={"color": colour, "size": 8, "symbol": "circle" if holds else "x"},
        )
    if answer.best is not None:
        best = answer.best.instances
        figure.add_scatter(
            x=[best[x]], y=[best[y]], mode="markers", name="answer",
            marker={"color": MUTED, "size": 18, "symbol": "circle-open"},
        )  # fmt: skip
    head = answer.reason or f"{counted(answer.best.instances) if answer.best else ''} hold it"
    figure.update_layout(
        template=template(),
        xaxis_title=f"{x}, instances",
        yaxis_title=f"{y}, instances",
        meta={"headline": f"{answer.search.scenario.name}: {head}",
              "subtitle": "Each mark is a cluster that was run under every seed asked for."},
    )  # fmt: skip
    return figure
