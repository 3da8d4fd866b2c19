"""The small queue model: prefill and decode on one instance, or on one each.

scenario ``toy-queue`` -> runs of both systems at two rates -> rows, and how they move
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.percentiles import percentiles
from chipsim.cluster.scenario import Scenario
from chipsim.cluster.simulate import Cluster, scenario_workload
from chipsim.validation.references import reference_table
from chipsim.validation.reproduce import Assumption, Figure, Reproduction, Shift

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.cluster.workload import Workload
    from chipsim.validation.reproduce import Request
    from chipsim.validation.table import Row

SCENARIO = "toy-queue"
SOURCE = "a small queue model, as published in summary; its parameters are not"

SYSTEMS = {
    "separated": {"prefill": 1, "decode": 1, "mixed": 0},
    "colocated": {"prefill": 0, "decode": 0, "mixed": 1},
}
PAIR = {"prefill": 0, "decode": 0, "mixed": 2}
"""As many chips as separated, colocated."""

OUTPUTS = (16, 64)
"""Output tokens tried beside the scenario's."""

TOLERANCES = {("separated", "ttft_p90"): 0.15, ("separated", "itl_p99"): 0.25}
"""Chosen here: of what rests on prompts and step alone, which are published."""

NAMES = {"itl_p99": "P99 ITL", "itl_max": "worst stall", "ttft_p90": "P90 TTFT"}
"""Of what moves: seconds, all of them."""

Metrics = dict[str, float]
Runs = dict[tuple[str, float], Metrics]


def reproduction(request: Request) -> Reproduction:
    """Colocated against separated serving, beside what was published."""
    request.told("latency tables")
    scenario = Scenario.load(SCENARIO)
    drawn = scenario_workload(scenario)
    cluster = Cluster(scenario, answered(drawn, max(OUTPUTS)))
    table = reference_table("toy_queue").rows
    rates = sorted({row.positive("rate") for row in table})
    runs = {
        (system, rate): measured(cluster, counts, drawn.at_rate(rate))
        for system, counts in SYSTEMS.items()
        for rate in rates
    }
    rows = [_figure(row, runs) for row in table]
    return Reproduction(
        "toy-queue",
        "Long prompts: prefill and decode on one chip, or on one each",
        SOURCE,
        (*rows, *_contrast(rows)),
        _assumptions(scenario, drawn),
        () if request.quick else tuple(_moves(cluster, drawn, runs)),
        REMARKS,
        {"runs": partial(_frame, runs)},
    )


def answered(workload: Workload, tokens: int) -> Workload:
    """The same requests with so many output tokens each."""
    return replace(workload, output_tokens=np.full(len(workload.prompt_tokens), tokens))


def measured(cluster: Cluster, counts: Mapping[str, int], workload: Workload) -> Metrics:
    """Percentiles of one run.

    Returns
    -------
    dict of str to float
        ``ttft_p90, itl_p99, itl_max`` in seconds, ``handoff_share`` (of TTFT, means).
    """
    run = cluster.run(instances=counts, workload=workload)
    times, gaps = run.times, run.outcome
    ttft = times["ttft_s"]
    return {
        "ttft_p90": float(percentiles(ttft, [90.0])[0]),
        "itl_p99": float(percentiles(gaps.gaps, [99.0], gaps.gap_counts)[0]),
        "itl_max": float(gaps.gaps.max()),
        "handoff_share": float(times["transfer_s"].mean() / ttft.mean()),
    }


def _figure(row: Row, runs: Runs) -> Figure:
    system, rate, published = row.text("system"), row.positive("rate"), row.positive("value")
    metric = row.text("metric")
    share = TOLERANCES.get((system, metric))
    return Figure(
        f"{row.text('figure')}, {rate:g}/s, {system}",
        "input" if share is None else "policy",
        published,
        runs[system, rate][metric],
        row.text("unit"),
        None if share is None else share * published,
    )


def _contrast(rows: list[Figure]) -> Iterator[Figure]:
    """Colocated over separated: what the model was made to show."""
    named = {row.figure: row for row in rows}
    for row in rows:
        apart = named.get(row.figure.replace("colocated", "separated"))
        if "colocated" in row.figure and apart is not None:
            yield Figure(
                row.figure.replace("colocated", "ratio of the two"), "input",
                row.published / apart.published,
                (row.simulated or 0.0) / (apart.simulated or 1.0), "1",
            )  # fmt: skip


def _moves(cluster: Cluster, drawn: Workload, runs: Runs) -> Iterator[Shift]:
    """How the figures move with what was chosen."""
    sooner = {"first_token_from": "prefill"}
    early = Cluster(cluster.scenario.changed(**sooner), cluster.workload, made=cluster.replicas)
    for system, rate in runs:
        served, base = drawn.at_rate(rate), runs[system, rate]
        where = f"{rate:g}/s, {system}"
        moved = measured(early, SYSTEMS[system], served)
        yield from _shifts("first token from", "prefill", where, base, moved)
        if system == "colocated":
            for tokens in OUTPUTS:
                moved = measured(cluster, SYSTEMS[system], answered(served, tokens))
                yield from _shifts("output tokens", str(tokens), where, base, moved)
        else:
            moved = measured(cluster, PAIR, served)
            yield from _shifts("as many chips", "two colocated", where, base, moved)


def _shifts(
    assumption: str, value: str, system: str, base: Metrics, moved: Metrics
) -> Iterator[Shift]:
    for metric, name in NAMES.items():
        yield Shift(assumption, value, f"{name}, {system}", base[metric], moved[metric])


def _frame(runs: Runs) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        [
            {"system": system, "rate_rps": rate, **found}
            for (system, rate), found in runs.items()
        ]
    )


def _assumptions(scenario: Scenario, drawn: Workload) -> tuple[Assumption, ...]:
    pool = scenario.pools["prefill"]
    return (
        Assumption("prompts", "16K to 64K tokens, seed 42", "published", "uniform: chosen"),
        Assumption("model", scenario.model, "chosen", "1B-class"),
        Assumption("chip", f"{pool.chip}, {pool.plan}", "chosen",
                   "a decode step near the published 1.0 ms"),
        Assumption("output tokens", int(drawn.output_tokens.max()), "chosen",
                   "not published"),
        Assumption("prefill", f"{pool.batching}, whole prompts", "chosen", "not published"),
        Assumption("link", scenario.handoff.bandwidth or "the chip's share of its machine's "
                   "network", "chosen", "not published"),
        Assumption("first token from", scenario.first_token_from, "published",
                   "the hand-off is a share of TTFT there"),
        Assumption("requests", len(drawn.prompt_tokens), "chosen", "Poisson"),
    )  # fmt: skip


REMARKS = (
    (
        "Rows of kind input rest on what is not published: output tokens, link, order. P99 ITL "
        "of a mixed instance is a decode step until more than 1 % of the gaps are stalls; then "
        "it is a stall, hundreds of times as long. With the first token counted at the end of "
        "prefill the gap after it is one of them wherever the next prompt waits."
    ),
    (
        "Separated is two chips, colocated one, as published; two colocated chips stand under "
        "what moves: they stall decodes as long, but seldom."
    ),
    (
        "A single prompt of 64K takes less than the published worst stall of 931 ms, which is "
        "thus prefills back to back; how many follow one another is chance, and order."
    ),
)
