"""A saved run, request by request: what its report says and draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from chipsim.arch_configs import names
from chipsim.cluster.scenario import Scenario
from chipsim.present.columns import named
from chipsim.present.command import command
from chipsim.present.quantities import grouped, seconds
from chipsim.present.rows import front_figure
from chipsim.present.simulation import (
    COLUMNS,
    cumulative,
    facts,
    headline,
    objective_rows,
    time_rows,
)
from chipsim.present.sketch import Sketch, axis, legend_above, sketch
from chipsim.present.standalone import Section
from chipsim.present.theme import BLUE, MUTED, ORANGE

if TYPE_CHECKING:
    import pandas as pd

CURVES = (("queue_s", "queue", MUTED), ("ttft_s", "TTFT", BLUE), ("e2e_s", "E2E", ORANGE))
"""Columns drawn as shares of requests."""


def run_title(table: pd.DataFrame, told: Mapping[str, Any]) -> tuple[str, str]:
    """What a run says, and what it is of.

    Parameters
    ----------
    table : DataFrame
        Its requests, as `chipsim.cluster.results.Simulation.frame` has them.
    told : mapping
        Its configuration.
    """
    scenario = told.get("scenario", {})
    pools = " + ".join(f"{count} {name}" for name, count in told.get("instances", {}).items())
    about = f"{scenario.get('name', '')} · {scenario.get('model', '')} · {pools}"
    if "summary" in told:
        return headline(told["summary"]), about
    done = table[table["status"] == "finished"]
    served = f"{grouped(len(done))} of {grouped(len(table))} requests served"
    if not len(done):
        return served, about
    ends = (seconds(float(done["ttft_s"].quantile(part))) for part in (0.9, 0.99))
    return f"{served}; first token within {next(ends)} for 90 %, {next(ends)} for 99 %", about


def run_command(told: Mapping[str, Any]) -> str:
    """The command line that makes the run again: of a scenario of the library, unchanged."""
    scenario = told.get("scenario", {})
    name = str(scenario.get("name", ""))
    if name not in names("scenarios") or Scenario.load(name).plain() != scenario:
        return ""
    return command(f"simulate {name}", json=True)


def waits(table: pd.DataFrame, told: Mapping[str, Any]) -> Iterator[Section]:
    """Shares of requests over seconds, then the figures of the whole run."""
    figures = told.get("summary")
    rows = [["", *COLUMNS], *time_rows(figures)] if figures else ()
    title = "Time in the queue, to the first token, to the last"
    yield Section(title, "", _shares(table), rows, unfolded=True)
    if figures:
        if figures["slo"]:
            yield Section(
                "Objective",
                rows=[["limit", "reached", ""], *objective_rows(figures)],
                unfolded=True,
            )
        whole = [["", ""], *(list(each) for each in facts(figures))]
        yield Section("The whole run", rows=whole, unfolded=True)


def _shares(table: pd.DataFrame) -> Sketch:
    done = table[table["status"] == "finished"]
    data = [
        cumulative(name, done[key].to_numpy(), None, colour).to_plotly_json()
        for key, name, colour in CURVES
        if len(done) and done[key].max() > 0.0
    ]
    return sketch(
        data, "", "", height=460,
        xaxis=axis(
            "Seconds from arrival", type="log", dtick=1, tickformat="~s", ticksuffix="s"
        ),
        yaxis=axis("Share of requests", tickformat=".0%", range=[0, 1.02]),
        legend=legend_above(),
    )  # fmt: skip


def each_request(table: pd.DataFrame) -> Section:
    """TTFT of every request over its arrival: when it was that they waited."""
    colour = next(iter(named(table)), "")
    figure = front_figure(table, "arrival_s", "ttft_s", colour=colour)
    return Section("Each request's time to the first token, over its arrival", "", figure)
