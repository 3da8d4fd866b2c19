"""The answer of a search for counts: record, tables, and a figure of what was run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from chipsim.cluster.capacity import capacity
from chipsim.cluster.provision import counted
from chipsim.present.quantities import digits, percent
from chipsim.present.tables import footer_line, table
from chipsim.present.theme import BLUE, GREEN, INK, VERMILION, template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
        "capacity_by_seed": None,
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
        rates = [
            capacity(search.cluster, served, best.instances).rate_rps
            for served in search.workloads
        ]
        known = [rate for rate in rates if rate is not None]
        record["capacity_by_seed"] = rates
        record["capacity_rps"] = min(known) if len(known) == len(rates) else None
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
    seeds = _seeds(record["seeds"])
    margin = percent(record["margin"])
    yield footer_line(
        f"{record['scenario']}: {best} hold the objective under {seeds}; "
        f"{record['binding']} binds with {margin} to spare"
    )
    yield table(
        ["counts", _goal(record["goal"]), "US$/h", "TDP kW", "binding", "margin"],
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
    if record["goodput_rps"] is not None:
        yield footer_line(_goodput(record))
    if record["capacity_by_seed"] is not None:
        yield footer_line(_largest(record))

    if record.get("versus"):
        yield footer_line(_versus(record["versus"]))
    if record.get("uncertainty"):
        yield from _uncertainty(record["uncertainty"], record["goal"])


def versus_record(other: Provision, answer: Provision) -> dict[str, Any]:
    """Another answer, and the share that this one saves of it."""
    pair = (answer.best, other.best)
    known = [each.goal for each in pair if each is not None]
    return {
        "scenario": other.search.scenario.name,
        "pools": None if other.best is None else dict(other.best.instances),
        "goal": None if other.best is None else other.best.goal,
        "reason": other.reason,
        "saving": 1.0 - known[0] / known[1] if len(known) == len(pair) else None,
    }


def _versus(record: dict[str, Any]) -> str:
    if record["pools"] is None:
        return f"{record['scenario']}: no cluster holds it: {record['reason']}"
    saved = "" if record["saving"] is None else f"; saved: {percent(record['saving'])}"
    return f"{record['scenario']}: {counted(record['pools'])}{saved}"


VERDICTS = {
    "yes": "the saving is real: 95 % of the draws save",
    "no": "there is no saving: 95 % of the draws save nothing",
    "open": "whether it saves is open: draws disagree",
}


def _uncertainty(record: dict[str, Any], goal: str) -> Iterator[Table | Text]:
    """Intervals of draws, what they were drawn from, and what follows."""
    rows = [[_goal(goal), *_interval(record["goal_interval"], digits)]]
    if record["saving_interval"]:
        rows += [
            ["saving", *_interval(record["saving_interval"], percent)],
            ["saving, prices alone", *_interval(record["saving_by_prices"], percent)],
        ]
    yield table(
        [f"{record['draws']} draws, seed {record['seed']}", "5 %", "50 %", "95 %"], rows
    )
    alike: dict[str, list[str]] = {}
    for each in record["errors"]:
        least, most = min(each["classes"].values()), max(each["classes"].values())
        span = percent(most) if least == most else f"{percent(least)} to {percent(most)}"
        alike.setdefault(f"off by {span}: {each['said']}", []).append(each["chip"])
    for said, chips in alike.items():
        yield footer_line(f"steps of {', '.join(chips)}: {said}")
    lost = [record["draws"] - held for held in record["held"]]
    if any(lost):
        yield footer_line(f"draws in which no cluster holds it: {', '.join(map(str, lost))}")
    if record["real"]:
        yield footer_line(VERDICTS[record["real"]])


UNITS = {"cost": "US$/h", "silicon": "US$", "power": "W"}
"""What a goal is counted in, where that is not its name."""


def _goal(goal: str) -> str:
    """``silicon`` with its unit."""
    return f"{goal}, {UNITS[goal]}" if goal in UNITS else goal


def _seeds(seeds: list[int]) -> str:
    """``seed 0``, or ``seeds 0, 1``."""
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def _interval(record: dict[str, float | None], show: Callable[[float], str]) -> list[str]:
    return ["none" if value is None else show(value) for value in record.values()]


def _goodput(record: dict[str, Any]) -> str:
    said = f"goodput of the first seed: {digits(record['goodput_rps'])} /s"
    each = record["goodput_per_usd"]
    return said if each is None else f"{said}, {digits(each)} requests per US$"


def _largest(record: dict[str, Any]) -> str:
    rates = [each for each in record["capacity_by_seed"] if each is not None]
    if not rates:
        return "no rate of the grid is held"
    spread = ", ".join(map(digits, rates))
    said = f"the largest rate held: {digits(min(rates))} /s"
    return said if len(rates) == 1 else f"{said} (of each seed {spread})"


def _shown(value: float | None, scale: float = 1.0) -> str:
    return "" if value is None else digits(value * scale)


MARKS = ("fails", VERMILION, "x"), ("holds", BLUE, "circle"), ("frontier", GREEN, "circle")
"""What a mark says, its colour and its symbol."""


def provision_figure(answer: Provision) -> go.Figure:
    """Counts of the first two pools that were run, or of one pool and its margin."""
    names, frontier = answer.search.pools, answer.frontier
    figure = go.Figure()
    for label, colour, symbol in MARKS:
        of = [each for each in answer.tried if _mark(each, frontier) == label]
        figure.add_scatter(
            x=[each.instances[names[0]] for each in of],
            y=[_height(each, names) for each in of],
            text=[_hover(each) for each in of],
            mode="markers",
            name=label,
            marker={"color": colour, "size": 8 + 3 * (label == "frontier"), "symbol": symbol},
        )
    best = answer.best
    if best is not None:
        figure.add_scatter(
            x=[best.instances[names[0]]], y=[_height(best, names)], mode="markers",
            name="answer", marker={"color": INK, "size": 20, "symbol": "circle-open"},
        )  # fmt: skip
    held = None if best is None else f"{counted(best.instances)} hold the objective"
    one = len(names) == 1
    figure.update_layout(
        template=template(),
        xaxis_title=f"{names[0]}, instances",
        yaxis_title="margin to the objective, %" if one else f"{names[1]}, instances",
        meta={"headline": f"{answer.search.scenario.name}: {held or answer.reason}",
              "subtitle": "Each mark is a cluster that was run under every seed asked for; "
              "frontier: no smaller one that holds is part of it."},
    )  # fmt: skip
    return figure


def _mark(candidate: Candidate, frontier: list[Candidate]) -> str:
    if not candidate.holds:
        return "fails"
    return "frontier" if candidate in frontier else "holds"


def _height(candidate: Candidate, names: tuple[str, ...]) -> float:
    if len(names) > 1:
        return candidate.instances[names[1]]
    margin = candidate.worst.margin
    return 0.0 if margin is None else 100.0 * margin  # none: stopped once it had failed


def _hover(candidate: Candidate) -> str:
    margin = candidate.worst.margin
    left = "" if margin is None else f", {percent(margin)} left"
    return f"{counted(candidate.instances)}: {candidate.worst.binding}{left}"
