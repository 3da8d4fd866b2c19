"""A run of a cluster as tables for a terminal, and as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from chipsim.arch_configs import names
from chipsim.cluster.scenario import Scenario
from chipsim.present.quantities import digits, grouped, percent, seconds
from chipsim.present.tables import footer_line, heading, table
from chipsim.present.theme import BLUE, GREEN, LINES, MUTED, ORANGE, VERMILION, template

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from rich.table import Table
    from rich.text import Text

    from chipsim.cluster.results import Simulation

METRICS = {
    "queue_s": "queue",
    "ttft_s": "TTFT",
    "itl_s": "ITL, all gaps",
    "tpot_s": "ITL, mean of a request",
    "e2e_s": "E2E",
    "transfer_s": "KV hand-off",
}
COLUMNS = ("mean", "p50", "p90", "p99", "max")
MOST_POINTS = 600
"""Points of a cumulative curve."""


def headline(figures: dict[str, Any]) -> str:
    """What a run says, in a line."""
    pools = " + ".join(f"{count} {name}" for name, count in figures["instances"].items())
    served = f"{grouped(figures['finished'])} of {grouped(figures['requests'])} requests served"
    if not figures["slo"]:
        return f"{pools}: {served}"
    broken = [row for row in figures["slo"] if not row["holds"]]
    if not broken and figures["holds"]:
        tight = min(figures["slo"], key=lambda row: row["margin"])
        left = percent(tight["margin"])
        return f"{pools}: the objective holds, {_limit(tight)} with {left} to spare"
    if not broken:
        return f"{pools}: {served}, so the objective does not hold"
    worst = min(broken, key=lambda row: -np.inf if row["margin"] is None else row["margin"])
    reached = _value(worst, "reached")
    return f"{pools}: the objective fails, {_limit(worst)} reached {reached}"


def _limit(row: dict[str, Any]) -> str:
    name, _, unit = row["metric"].rpartition("_")
    of = "slowdown of " if unit == "slowdown" else ""
    return f"P{row['percentile']:g} {of}{name.upper()} ≤ {_value(row, 'limit')}"


def _value(row: dict[str, Any], key: str) -> str:
    if row[key] is None:
        return "never reached"
    return f"{row[key]:.3g} ×" if row["metric"].endswith("slowdown") else seconds(row[key])


def summary_tables(figures: dict[str, Any]) -> list[Table | Text]:
    """What ``chipsim simulate`` prints."""
    times = table(("", *COLUMNS), time_rows(figures))
    parts: list[Table | Text] = [heading(headline(figures)), times]
    if figures["slo"]:
        head = ("objective", "reached", "")
        parts.append(table(head, objective_rows(figures), text_columns=1))
    pools = [
        [
            row["pool"],
            str(row["instances"]),
            str(row["chips"]),
            *(percent(row[f"{kind}_share"]) for kind in ("prefill", "decode", "mixed", "kv")),
        ]
        for row in figures["rows"]
    ]
    columns = ("pool", "instances", "chips", "prefill", "decode", "mixed", "KV held")
    parts += [table(columns, pools), table(("", ""), facts(figures), text_columns=2)]
    parts.append(footer_line(_source(figures)))
    return parts


def time_rows(figures: dict[str, Any]) -> list[list[str]]:
    """Names and `COLUMNS` of everything that took time, or that compares times."""
    times = [
        [label, *(_time(figures[key][column]) for column in COLUMNS)]
        for key, label in METRICS.items()
        if key != "transfer_s" or figures[key]["max"]
    ]
    times += [
        [f"{name.upper()} slowdown", *(_ratio(of[column]) for column in COLUMNS)]
        for name, of in figures["slowdown"].items()
    ]
    return times


def objective_rows(figures: dict[str, Any]) -> list[list[str]]:
    """Limits, what was reached, and whether each holds."""
    return [
        [_limit(row), _value(row, "reached"), "holds" if row["holds"] else "FAILS"]
        for row in figures["slo"]
    ]


def _prefix_facts(prefix: dict[str, Any]) -> list[tuple[str, str]]:
    """What prefix caches saved."""
    if not prefix:
        return []
    total = max(1, prefix["found_tokens"] + prefix["loaded_tokens"] + prefix["computed_tokens"])
    told = [("prompt tokens found in prefix caches", percent(prefix["found_tokens"] / total))]
    told += [
        (f"loaded from {tier}", percent(tokens / total))
        for tier, tokens in prefix["loaded"].items()
        if tokens
    ]
    if prefix["returned_tokens"]:
        told.append(("tokens written for next turns", grouped(prefix["returned_tokens"])))
    return told


def facts(figures: dict[str, Any]) -> list[tuple[str, str]]:
    """Names and values of what is one number."""
    told = [
        ("requests/s served", digits(figures["throughput_rps"])),
        ("output tokens/s", digits(figures["output_tokens_per_s"])),
    ]
    told += [(f"rejected: {why}", grouped(n)) for why, n in figures["rejections"].items()]
    for key, name in (
        ("unfinished", "unfinished"),
        ("preemptions", "preemptions"),
        ("retries", "retries after faults"),
    ):
        if figures[key]:
            told.append((name, grouped(figures[key])))
    told += _prefix_facts(figures["prefix"])
    if figures["goodput_rps"] is not None:
        told.append(("goodput, requests/s", digits(figures["goodput_rps"])))
    if figures["cost_usd_per_hour"] is not None:
        told += [
            ("chips", f"${figures['chips_usd']:,.0f}"),
            (
                "per hour, host and electricity included",
                f"${figures['cost_usd_per_hour']:,.2f}",
            ),
            ("TDP of the chips", f"{figures['tdp_w'] / 1e3:,.1f} kW"),
        ]
    if figures["usd_per_million_output_tokens"] is not None:
        price = figures["usd_per_million_output_tokens"]
        told.append(("per million output tokens", f"${price:,.3f}"))
    if figures["energy_j"] is not None:
        told.append(("energy", f"{figures['energy_j'] / 3.6e6:,.2f} kWh"))
    return told


def _time(value: float | None) -> str:
    return "–" if value is None else seconds(value)


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} ×"


def _source(figures: dict[str, Any]) -> str:
    seed = "" if figures["seed"] is None else f", seed {figures['seed']}"
    unpriced = f" · no cost: {figures['unpriced']}" if figures["unpriced"] else ""
    took = f"{grouped(figures['events'])} events in {seconds(figures['wall_s'])}"
    return f"{figures['model']} · {figures['workload']}{seed} · {took}{unpriced}"


def simulation_figure(run: Simulation, over_time: pd.DataFrame | None = None) -> go.Figure:
    """Draw a run: how long requests take, and how busy pools are over time.

    Parameters
    ----------
    over_time : DataFrame, optional
        `chipsim.cluster.timeline.series`; only the distributions unless given.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    figures = run.summary()
    rows = 1 if over_time is None else 3
    figure = make_subplots(
        rows,
        2,
        specs=[[{}, {}], *[[{"colspan": 2}, None]] * (rows - 1)],
        vertical_spacing=0.15,
        horizontal_spacing=0.1,
    )
    _latencies(figure, run)
    if over_time is not None:
        _over_time(figure, over_time)
    domains = [figure.layout[f"yaxis{n}"].domain[1] for n in ("", "3", "4")[:rows]]
    beside = figure.layout.xaxis2.domain[0]
    places = [(0.0, domains[0]), (beside, domains[0]), *((0.0, top) for top in domains[1:])]
    legends = {
        "legend" if n == 1 else f"legend{n}": {
            "x": x, "y": y + 0.01, "xanchor": "left", "yanchor": "bottom", "orientation": "h",
        }
        for n, (x, y) in enumerate(places, 1)
    }  # fmt: skip
    title, under = headline(figures), _source(figures)
    figure.update_layout(
        template=template(),
        height=440 if over_time is None else 1000,
        title={"text": title, "subtitle": {"text": under}},
        meta={"headline": title, "subtitle": under},
        **legends,
    )
    return figure


def _latencies(figure: go.Figure, run: Simulation) -> None:
    """Shares of requests, and of gaps between tokens, up to each time."""
    done = run.finished
    gaps, counts = run.outcome.gaps, run.outcome.gap_counts
    tpot = run.times["tpot_s"][done]
    curves = [
        (1, "queue", run.times["queue_s"][done], None, MUTED),
        (1, "TTFT", run.times["ttft_s"][done], None, BLUE),
        (1, "E2E", run.times["e2e_s"][done], None, ORANGE),
        (2, "every gap", gaps, counts, GREEN),
        (2, "mean gap of a request", tpot[~np.isnan(tpot)], None, VERMILION),
    ]
    for column, name, values, weights, colour in curves:
        if np.asarray(values).max(initial=0.0) > 0.0:
            trace = cumulative(name, values, weights, colour)
            trace.legend = "legend" if column == 1 else "legend2"
            figure.add_trace(trace, 1, column)
    for column, name, what in (
        (1, "Seconds from arrival", "Share of requests"),
        (2, "Seconds between tokens", "Share of gaps, of requests"),
    ):
        figure.update_xaxes(title_text=name, type="log", dtick=1, row=1, col=column)
        figure.update_yaxes(
            title_text=what, tickformat=".0%", range=[0, 1.02], row=1, col=column
        )


def cumulative(name: str, values: Any, counts: Any, colour: str) -> go.Scatter:
    """Share of values up to each, thinned to a curve's points; what is 0 has no place."""
    order = np.argsort(values)
    weights = np.ones(len(values)) if counts is None else np.asarray(counts, np.float64)
    share = np.cumsum(weights[order]) / weights.sum()
    tail = 1.0 - np.geomspace(0.01, 1e-6, 60)
    wanted = np.concatenate([np.linspace(0.0, 0.99, MOST_POINTS), tail, [1.0]])
    place = np.unique(np.minimum(np.searchsorted(share, wanted), len(share) - 1))
    at = np.asarray(values)[order][place]
    return go.Scatter(
        x=at[at > 0.0],
        y=share[place][at > 0.0],
        name=name,
        mode="lines",
        line={"color": colour, "width": 2.5},
        hovertemplate=f"{name}: %{{y:.2%}} within %{{x:.4g}} s<extra></extra>",
    )


OVER_TIME = (
    (0, "busy", "solid", "busy"),
    (0, "kv", "dot", "KV held"),
    (0, "hits", "dash", "prompts found in caches"),
    (1, "decodes", "solid", "decoding"),
    (1, "waiting", "dot", "waiting for prefill"),
)
"""What is drawn over time: shares above, sequences below; column, dash and name."""


def lines_over_time(over_time: pd.DataFrame) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every pool's curves of `OVER_TIME` that are not 0 throughout.

    Parameters
    ----------
    over_time : DataFrame
        `chipsim.cluster.timeline.series`.

    Yields
    ------
    int
        0: a share of time, of memory, of prompt tokens; 1: a number of sequences.
    dict
        A plotly trace.
    """
    some = over_time["prompts"].where(over_time["prompts"] > 0.0)  # a gap where none began
    shares = over_time.assign(hits=over_time["found"] / some)
    for number, (pool, of) in enumerate(shares.groupby("pool", sort=False)):
        for place, column, dash, what in OVER_TIME:
            if of[column].max() > 0.0:
                yield (
                    place,
                    {
                        "type": "scatter",
                        "mode": "lines",
                        "name": f"{pool}: {what}",
                        "x": of["time_s"].to_numpy(),
                        "y": of[column].to_numpy(),
                        "line": {"color": LINES[number % len(LINES)], "dash": dash, "width": 2},
                        "hovertemplate": f"{pool}, {what}: %{{y:.3g}} at %{{x:.4g}} s"
                        "<extra></extra>",
                    },
                )


def _over_time(figure: go.Figure, over_time: pd.DataFrame) -> None:
    """Shares of time, of memory, and of prompts in caches; sequences that decode and wait."""
    for place, trace in lines_over_time(over_time):
        figure.add_trace({**trace, "legend": f"legend{place + 3}"}, place + 2, 1)
    figure.update_yaxes(title_text="Share", tickformat=".0%", range=[0, 1.02], row=2, col=1)
    figure.update_yaxes(title_text="Sequences", rangemode="tozero", row=3, col=1)
    figure.update_xaxes(title_text="Time (s)", row=2, col=1)
    figure.update_xaxes(title_text="Time (s)", row=3, col=1)


def scenario_rows() -> list[dict[str, Any]]:
    """The scenarios of the library as plain values."""
    return [
        {
            "name": scenario.name,
            "description": scenario.description,
            "model": scenario.model,
            "workload": scenario.workload.base,
            "rate_rps": scenario.workload.rate,
            "instances": {name: pool.instances for name, pool in scenario.pools.items()},
            "source": " ".join(scenario.source.split()),
        }
        for scenario in map(Scenario.load, names("scenarios"))
    ]


def scenarios_table(rows: list[dict[str, Any]]) -> Table:
    """The list of scenarios."""
    return table(
        ("scenario", "description", "model", "workload", "pools"),
        (
            (
                row["name"],
                row["description"],
                row["model"],
                row["workload"],
                " + ".join(f"{count} {name}" for name, count in row["instances"].items()),
            )
            for row in rows
        ),
        text_columns=5,
    )
