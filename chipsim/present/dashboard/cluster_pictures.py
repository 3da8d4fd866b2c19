"""The pictures of a cluster: how long requests wait, who is busy, what it costs, what else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from chipsim.cluster.spending import cluster_price
from chipsim.cluster.timeline import series
from chipsim.errors import ChipsimError
from chipsim.explore.front import pareto_front
from chipsim.present.dashboard.pictures import stacks_sketch
from chipsim.present.quantities import digits, percent, seconds
from chipsim.present.simulation import cumulative, lines_over_time
from chipsim.present.sketch import Sketch, axis, legend_below, packed, plain, sketch
from chipsim.present.theme import BLUE, GREEN, INK, MUTED, ORANGE, VERMILION

if TYPE_CHECKING:
    from chipsim.cluster.results import Simulation

SHARE: dict[str, Any] = {"tickformat": ".0%", "range": [0, 1.02]}

TICKS = [digit * 10.0**power for power in range(-4, 7) for digit in (1, 2, 5)]
"""Of a share of a limit: 1 is the limit itself."""

DOLLARS = {"chips": BLUE, "hosts and network": ORANGE}


@dataclass(frozen=True, slots=True)
class Tried:
    """A cluster of some size.

    Attributes
    ----------
    counts : dict of str to int
        Instances of each pool.
    usd_per_hour : float
    used : float
        The largest of what was reached over its limit: up to 1 the objective holds.
    holds : bool
        Every limit holds and every request was served.
    """

    counts: dict[str, int]
    usd_per_hour: float
    used: float
    holds: bool

    @property
    def name(self) -> str:
        """``3 prefill + 2 decode``."""
        return " + ".join(f"{count} {pool}" for pool, count in self.counts.items())


def waits_figure(run: Simulation, figures: Mapping[str, Any]) -> Sketch:
    """Share of requests within each time: in the queue, to the first token, to the last."""
    done = run.finished
    curves = [
        ("queue", run.times["queue_s"][done], None, MUTED),
        ("TTFT", run.times["ttft_s"][done], None, BLUE),
        ("E2E", run.times["e2e_s"][done], None, ORANGE),
    ]
    ttft = figures["ttft_s"]
    told = "No request was finished" if ttft["p90"] is None else (
        f"90 % have their first token within {seconds(ttft['p90'])}, "
        f"99 % within {seconds(ttft['p99'])}"
    )  # fmt: skip
    return _curves(curves, told, "Seconds from arrival", "Share of requests", figures, "ttft_s")


def gaps_figure(run: Simulation, figures: Mapping[str, Any]) -> Sketch:
    """Share of gaps between tokens within each time."""
    tpot = run.times["tpot_s"][run.finished]
    curves = [
        ("every gap", run.outcome.gaps, run.outcome.gap_counts, GREEN),
        ("mean gap of a request", tpot[~np.isnan(tpot)], None, VERMILION),
    ]
    itl = figures["itl_s"]
    told = "No request has a second token" if itl["p50"] is None else (
        f"Half of the tokens come within {seconds(itl['p50'])} of the last, "
        f"99 % within {seconds(itl['p99'])}"
    )  # fmt: skip
    return _curves(
        curves, told, "Seconds between tokens", "Share of gaps, of requests", figures, "itl_s",
        "D2",
    )  # fmt: skip


def _curves(
    curves: Sequence[tuple[str, Any, Any, str]],
    told: str,
    x: str,
    y: str,
    figures: Mapping[str, Any],
    metric: str,
    step: float | str = 1,
) -> Sketch:
    data = [
        cumulative(name, values, weights, colour).to_plotly_json()
        for name, values, weights, colour in curves
        if np.asarray(values).max(initial=0.0) > 0.0
    ]
    data += [_limit(row) for row in figures["slo"] if row["metric"] == metric]
    under = f"{figures['workload']}, {digits(figures['throughput_rps'])} requests/s served"
    return sketch(
        data, told, under, height=400,
        xaxis=axis(x, type="log", dtick=step, tickformat="~s", ticksuffix="s"),
        yaxis=axis(y, **SHARE),
        legend=legend_below(),
    )  # fmt: skip


def _limit(row: Mapping[str, Any]) -> dict[str, Any]:
    """A limit of the objective as a point that the curve must pass on its left."""
    name = f"limit: {row['percentile']:g} % within {seconds(row['limit'])}"
    return {
        "type": "scatter", "mode": "markers", "name": name,
        "x": [row["limit"]], "y": [row["percentile"] / 100.0],
        "marker": {
            "symbol": "triangle-left" if row["holds"] else "x", "size": 12,
            "color": INK if row["holds"] else VERMILION,
        },
        "hovertemplate": f"{name}: {'holds' if row['holds'] else 'fails'}<extra></extra>",
    }  # fmt: skip


def timeline_figure(run: Simulation) -> Sketch:
    """Who is busy, how full the memory is, and who waits, over time."""
    over_time = series(run)
    data = [
        {
            **trace,
            "x": packed(trace["x"]), "y": packed(trace["y"]),
            "xaxis": "x", "yaxis": "y2" if place else "y",
        }
        for place, trace in lines_over_time(over_time)
    ]  # fmt: skip
    busy = over_time.groupby("pool", sort=False)["busy"].mean()
    busiest = str(busy.idxmax())
    return sketch(
        data,
        f"The {busiest} pool is busy {percent(busy[busiest], 2)} of the time",
        "means over 200 spans of the run",
        height=520,
        xaxis=axis("Time (s)", anchor="y2"),
        yaxis=axis("Share of time, memory, prompts", domain=[0.56, 1.0], **SHARE),
        yaxis2=axis("Sequences", domain=[0.0, 0.46], rangemode="tozero"),
        legend=legend_below(),
    )


def cost_figure(run: Simulation, figures: Mapping[str, Any]) -> Sketch:
    """Capital by pool: chips, and the hosts and network around them."""
    try:
        prices = run.cluster.prices
    except ChipsimError as error:
        return plain(sketch([], f"What it costs is not known: {error}", height=120))
    pools, parts = [], []
    for name, count in run.instances.items():
        of = cluster_price(prices, {name: count})
        pools.append(f"{count} {name}")
        rest = of.capital_usd - of.chips_usd
        parts.append({"chips": of.chips_usd, "hosts and network": rest})
    usd, tokens = figures["cost_usd_per_hour"], figures["usd_per_million_output_tokens"]
    told = f"The cluster costs ${usd:,.2f} an hour"
    if tokens is not None:
        told += f", ${tokens:,.3f} for a million output tokens"
    under = f"capital by pool · prices {run.cluster.scenario.prices}"
    return stacks_sketch(pools, parts, DOLLARS, "Capital (USD)", told, under)


def frontier_figure(tried: Sequence[Tried]) -> Sketch:
    """Dollars an hour against how much of the objective is used, and the front of both."""
    chosen, known = tried[0], [each for each in tried if math.isfinite(each.used)]
    holding = [each for each in tried if each.holds]
    data = [
        _sizes([t for t in known if t.holds], "objective holds", GREEN, "circle"),
        _sizes([t for t in known if not t.holds], "objective fails", VERMILION, "x"),
    ]
    places = pareto_front(
        np.array([t.usd_per_hour for t in known]), np.array([t.used for t in known])
    )
    front = [known[i] for i in places]
    data.append(
        {
            "type": "scatter", "mode": "lines", "name": "front",
            "x": [t.usd_per_hour for t in front], "y": [t.used for t in front],
            "line": {"color": MUTED, "width": 1.5}, "hoverinfo": "skip",
        }
    )  # fmt: skip
    if math.isfinite(chosen.used):
        mark = _sizes([chosen], "this cluster", INK, "circle-open")
        mark["marker"] |= {"size": 17, "line": {"width": 2.5}}
        data.append(mark)
    if holding:
        best = min(holding, key=lambda each: each.usd_per_hour)
        told = f"Cheapest that holds: {best.name}, ${best.usd_per_hour:,.2f} an hour"
    else:
        told = f"None of {len(tried)} clusters around this one holds the objective"
    line = {"color": INK, "width": 1, "dash": "dot"}
    level = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1, "line": line}
    return sketch(
        data, told, f"{len(tried)} sizes around this one, the same requests", height=400,
        xaxis=axis("Cost (USD/h)", rangemode="tozero"),
        yaxis=axis("Reached over limit, the worst", type="log", tickvals=TICKS),
        shapes=[level],
        legend=legend_below(),
    )  # fmt: skip


def _sizes(tried: Sequence[Tried], name: str, colour: str, symbol: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "name": name,
        "x": [each.usd_per_hour for each in tried], "y": [each.used for each in tried],
        "marker": {"color": colour, "symbol": symbol, "size": 9},
        "customdata": [
            f"<b>{each.name}</b><br>${each.usd_per_hour:,.2f} an hour, "
            f"{digits(each.used)} of the limit"
            for each in tried
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip
