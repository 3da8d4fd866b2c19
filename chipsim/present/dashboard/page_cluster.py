"""Cluster: pools of chips serve a trace; percentiles, who is busy, what it costs, what else."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml
from dash import Dash, Input, Output, State, dcc, html

from chipsim.arch_configs import names
from chipsim.cluster.scenario import Scenario
from chipsim.cluster.simulate import Cluster
from chipsim.cluster.spending import cluster_price
from chipsim.errors import ChipsimError
from chipsim.present.command import command
from chipsim.present.dashboard.cluster_pictures import (
    Tried,
    cost_figure,
    frontier_figure,
    gaps_figure,
    timeline_figure,
    waits_figure,
)
from chipsim.present.dashboard.parts import (
    card,
    card_outputs,
    choose,
    filled,
    labelled,
    nothing,
    number,
    remarks,
    text,
    tiles,
)
from chipsim.present.dashboard.state import Choice, Fields, Number, Text, query_of
from chipsim.present.quantities import digits, grouped, seconds
from chipsim.present.simulation import headline

if TYPE_CHECKING:
    from chipsim.cluster.results import Simulation

PATH, NAME = "/cluster", "Cluster"

TOGETHER, APART = "together", "apart"

ROUTING = ("least_tokens", "least_requests", "round_robin", "random", "least_kv", "prefix")
BATCHING = ("chunked", "prefill_first", "decode_first")

FIELDS: Fields = {
    "model": Choice("llama-3.1-8b", lambda: names("models")),
    "precision": Text("bf16"),
    "split": Choice(TOGETHER, lambda: (TOGETHER, APART)),
    "chip": Choice("h100-sxm", lambda: names("chips")),
    "plan": Text("tp=1"),
    "count": Number(6, 1, 256, whole=True),
    "decode_chip": Choice("h100-sxm", lambda: names("chips")),
    "decode_plan": Text("tp=1"),
    "decode_count": Number(4, 1, 256, whole=True),
    "workload": Choice("azure-conversation", lambda: names("workloads")),
    "rate": Number(100, 0.001, 100_000),
    "requests": Number(2000, 1, 20_000, whole=True),
    "seed": Number(0, 0, 2**31 - 1, whole=True),
    "batching": Choice("chunked", lambda: BATCHING),
    "routing": Choice("least_tokens", lambda: ROUTING),
    "ttft_p90": Number(500, 0.01, 10_000_000),
    "ttft_p99": Number(2000, 0.01, 10_000_000),
    "itl_p99": Number(50, 0.01, 10_000_000),
    "prices": Choice("spad-2025", lambda: names("prices")),
}

TITLES = {
    "split": "prefill and decode",
    "chip": "chip (of prefill, where apart)",
    "plan": "plan of an instance",
    "count": "instances",
    "decode_chip": "decode: chip",
    "decode_plan": "decode: plan",
    "decode_count": "decode: instances",
    "workload": "trace",
    "rate": "requests/s",
    "ttft_p90": "TTFT, 90 % within (ms)",
    "ttft_p99": "TTFT, 99 % within (ms)",
    "itl_p99": "ITL, 99 % within (ms)",
}

GROUPS = {
    "Pools": (
        *("model", "precision", "split", "chip", "plan", "count"),
        *("decode_chip", "decode_plan", "decode_count"),
    ),
    "Requests": ("workload", "rate", "requests", "seed"),
    "Objective": ("ttft_p90", "ttft_p99", "itl_p99"),
    "Policies and prices": ("batching", "routing", "prices"),
}

CARDS = ("cluster-waits", "cluster-gaps", "cluster-timeline", "cluster-cost")
FRONTIER = "cluster-frontier"

MOST_EVENTS = 5_000_000
"""Of one run: a cluster that is far too small ends here instead of keeping its reader."""


def layout(state: Mapping[str, Any]) -> list[Any]:
    """The page in a state."""
    groups = [
        html.Details(
            [
                html.Summary(group),
                html.Div(
                    [labelled(TITLES.get(name, name), _control(name, state)) for name in members],
                    className="controls",
                ),
            ],
            open=group in ("Pools", "Requests", "Objective"),
        )
        for group, members in GROUPS.items()
    ]
    return [
        html.Aside(
            [
                *groups,
                html.Button("Download YAML", id="cluster-save", n_clicks=0),
                dcc.Download(id="cluster-file"),
            ]
        ),
        html.Div(
            [
                html.Div(id="cluster-remarks"),
                html.H1(id="cluster-headline"),
                html.Div(id="cluster-tiles", className="tiles"),
                html.Div(
                    [
                        *[card(name, wide=name == "cluster-timeline") for name in CARDS],
                        card(FRONTIER),
                    ],
                    className="cards",
                ),
            ]
        ),
    ]


def _control(name: str, state: Mapping[str, Any]) -> Any:
    field, key = FIELDS[name], f"cluster-{name}"
    if isinstance(field, Choice):
        return choose(key, state[name], field.names())
    if isinstance(field, Number):
        step = 1 if field.whole else "any"
        return number(key, state[name], field.low, field.high, step)
    return text(key, state[name])


def register(app: Dash) -> None:
    """The page's callbacks."""
    inputs = {name: Input(f"cluster-{name}", "value") for name in FIELDS}

    @app.callback(
        output={
            "cards": [card_outputs(name) for name in CARDS],
            "headline": Output("cluster-headline", "children"),
            "tiles": Output("cluster-tiles", "children"),
            "remarks": Output("cluster-remarks", "children"),
        },
        inputs={"values": inputs, "theme": Input("theme", "data")},
    )
    def draw(values: dict[str, Any], theme: str | None) -> dict[str, Any]:
        del theme
        return answer(values)

    @app.callback(
        output=card_outputs(FRONTIER),
        inputs={"values": inputs, "theme": Input("theme", "data")},
    )
    def frontier(values: dict[str, Any], theme: str | None) -> list[Any]:
        del theme
        return around(values)

    @app.callback(
        Output("cluster-file", "data"),
        Input("cluster-save", "n_clicks"),
        {name: State(f"cluster-{name}", "value") for name in FIELDS},
        prevent_initial_call=True,
    )
    def save(clicks: int, values: dict[str, Any]) -> Any:
        if not clicks:
            return None
        content = yaml.safe_dump(description(_whole(values)), sort_keys=False)
        return {"content": content, "filename": "scenario.yaml", "type": "text/yaml"}


def _whole(values: Mapping[str, Any]) -> dict[str, Any]:
    """What was cleared is as at the start."""
    return {
        name: field.default if values.get(name) in (None, "") else values[name]
        for name, field in FIELDS.items()
    }


def description(state: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario as a file has it."""
    first = {
        "role": "mixed" if state["split"] == TOGETHER else "prefill",
        "chip": state["chip"],
        "plan": state["plan"],
        "instances": int(state["count"]),
        "batching": state["batching"],
        "max_tokens": 2048,
    }
    pools = {first["role"]: first}
    if state["split"] == APART:
        pools["decode"] = {
            "role": "decode",
            "chip": state["decode_chip"],
            "plan": state["decode_plan"],
            "instances": int(state["decode_count"]),
        }
    return {
        "name": "dashboard",
        "model": state["model"],
        "precision": state["precision"],
        "workload": {
            "base": state["workload"],
            "rate": float(state["rate"]),
            "requests": int(state["requests"]),
            "seed": int(state["seed"]),
        },
        "pools": pools,
        "routing": state["routing"],
        "slo": {
            "ttft": {"p90": f"{state['ttft_p90']:g} ms", "p99": f"{state['ttft_p99']:g} ms"},
            "itl": {"p99": f"{state['itl_p99']:g} ms"},
        },
        "goodput": {"ttft": f"{state['ttft_p99']:g} ms", "tpot": f"{state['itl_p99']:g} ms"},
        "limits": {"events": MOST_EVENTS},
        "prices": state["prices"],
    }


@functools.lru_cache(maxsize=16)
def cluster_of(told: str) -> Cluster:
    """A cluster with its tables, from a description as JSON."""
    return Cluster(Scenario.read(json.loads(told), "scenario.yaml"))


@functools.lru_cache(maxsize=32)
def served(told: str) -> Simulation:
    """A run with its steps."""
    return cluster_of(told).run(log_steps=True)


def answer(values: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that the page shows of one cluster."""
    state = _whole(values)
    link = PATH + query_of(FIELDS, state)
    try:
        run = served(json.dumps(description(state)))
        figures = run.summary()
        cards = _cards(run, figures, link)
    except ChipsimError as error:
        return {
            "cards": [nothing(str(error) if i == 0 else "", link) for i in range(len(CARDS))],
            "headline": "", "tiles": [], "remarks": remarks([str(error)]),
        }  # fmt: skip
    told = [f"no cost: {figures['unpriced']}"] if figures["unpriced"] else []
    if figures["unfinished"]:
        told.append(f"{grouped(figures['unfinished'])} requests were not finished: too few chips")
    told += [f"{grouped(n)} requests rejected: {why}" for why, n in figures["rejections"].items()]
    return {
        "cards": cards, "headline": headline(figures), "tiles": _tiles(figures),
        "remarks": remarks(told),
    }  # fmt: skip


def _cards(run: Simulation, figures: dict[str, Any], link: str) -> list[Any]:
    same = command("simulate scenario.yaml", json=True)
    steps = command("simulate scenario.yaml", out="run")
    pictures = (
        (waits_figure(run, figures), same),
        (gaps_figure(run, figures), same),
        (timeline_figure(run), steps),
        (cost_figure(run, figures), same),
    )
    return [filled(figure, told, link) for figure, told in pictures]


def _tiles(figures: dict[str, Any]) -> Any:
    usd, per_token = figures["cost_usd_per_hour"], figures["usd_per_million_output_tokens"]
    good, watts = figures["goodput_rps"], figures["tdp_w"]
    return tiles(
        [
            ("objective", "holds" if figures["holds"] else "fails", "every limit"),
            ("served", f"{digits(figures['throughput_rps'])}/s", "requests"),
            ("goodput", "–" if good is None else f"{digits(good)}/s", "requests in time"),
            ("TTFT", _time(figures["ttft_s"]["p99"]), "99 % within"),
            ("ITL", _time(figures["itl_s"]["p99"]), "99 % of gaps within"),
            ("cost", "–" if usd is None else f"${usd:,.2f}", "an hour, all included"),
            ("tokens", "–" if per_token is None else f"${per_token:,.3f}", "a million of output"),
            ("TDP", "–" if watts is None else f"{watts / 1e3:,.1f} kW", "all chips"),
        ]
    )


def _time(value: float | None) -> str:
    return "–" if value is None else seconds(value)


def around(values: Mapping[str, Any]) -> list[Any]:
    """Clusters of other sizes: what they cost, and how much of the objective they use."""
    state = _whole(values)
    link = PATH + query_of(FIELDS, state)
    try:
        tried = sizes_around(json.dumps(description(state)))
    except ChipsimError as error:
        return nothing(str(error), link)
    instances = ",".join(f"{pool}={n}" for pool, n in _cheapest(tried).counts.items())
    told = command("simulate scenario.yaml", instances=instances, json=True)
    return filled(frontier_figure(tried), told, link)


def _cheapest(tried: tuple[Tried, ...]) -> Tried:
    """The cheapest that holds; where none does, the one that comes nearest."""
    holding = [each for each in tried if each.holds]
    if holding:
        return min(holding, key=lambda each: each.usd_per_hour)
    return min(tried, key=lambda each: each.used)


@functools.lru_cache(maxsize=16)
def sizes_around(told: str) -> tuple[Tried, ...]:
    """Runs with fewer and more instances in each pool, the chosen one first.

    Raises
    ------
    ChipsimError
        A chip that the book does not price.
    """
    cluster = cluster_of(told)
    chosen = {name: pool.instances for name, pool in cluster.scenario.pools.items()}
    choices = [_near(count, len(chosen)) for count in chosen.values()]
    grids = [dict(zip(chosen, counts, strict=True)) for counts in itertools.product(*choices)]
    grids.sort(key=lambda counts: counts != chosen)
    return tuple(_tried(cluster, counts) for counts in grids)


def _near(count: int, pools: int) -> list[int]:
    """Counts from half to twice as many: seven for one pool, four for each of two."""
    parts = (0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0) if pools == 1 else (0.5, 0.75, 1.0, 1.5)
    around_it = {max(1, round(count * part)) for part in parts}
    return sorted(around_it | {count, count + 1, max(1, count - 1)})


def _tried(cluster: Cluster, counts: dict[str, int]) -> Tried:
    run = cluster.run(instances=counts)
    price = cluster_price(cluster.prices, counts)
    used = max((each.reached / each.limit for each in run.objectives), default=0.0)
    return Tried(counts, price.usd_per_hour, used, run.holds)


