"""A workload as tables for a terminal and as a figure: arrivals, lengths, and how they go."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from chipsim.importers.chip_yaml import quantity_text
from chipsim.present.describe import Line
from chipsim.present.heatmap import SCALE
from chipsim.present.quantities import digits, grouped, percent, plain, seconds
from chipsim.present.tables import footer_line, heading, table
from chipsim.present.theme import BLUE, GREEN, ORANGE, template

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.table import Table
    from rich.text import Text

    from chipsim.cluster.workload import Workload
    from chipsim.spec import Spec

STATISTICS = ("mean", "std", "min", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "max")
NAMES = {
    "prompt_tokens": "prompt tokens",
    "output_tokens": "output tokens",
    "interarrival_s": "inter-arrival (s)",
    "reusable_prompt_tokens": "reusable of them",
    "new_prompt_tokens": "new of them",
}
"""Series in the words of a table."""
TIMES = ("think.mean", "duration", "period", "latency", "per_descriptor", "retry", "warm_up")
LIMITS = ("slo.ttft.", "slo.itl.", "slo.tpot.", "slo.e2e.", "goodput.")
RATES = ("bandwidth", "dequantise")
"""Ends of fields that are seconds, beginnings of others, and ends of bytes per second."""
MOST_BINS, CURVE, CELLS = 120, 400, 40
"""Bins of time, points of a curve, and cells of a map along each side, at most."""


def headline(figures: dict[str, Any]) -> str:
    """What a workload is, in a line."""
    lengths = {row["series"]: row for row in figures["rows"]}
    prompt, output = (grouped(round(lengths[k]["p50"])) for k in list(NAMES)[:2])
    what = f"{grouped(figures['sessions'])} sessions" if figures["closed_loop"] else ""
    rate = figures["rate_rps"]
    begun = "" if rate is None else f" at {digits(rate)} {'sessions' if what else 'requests'}/s"
    count = figures["requests"]
    counted = f"{grouped(count)} request{'s' * (count > 1)}" + (f" of {what}" if what else "")
    median = f"median prompt {prompt} and output {output} tokens"
    return f"{figures['name']}: {counted}{begun}, {median}"


def facts(figures: dict[str, Any]) -> list[tuple[str, str]]:
    """Names and values of what is one number."""
    turns = " of first turns" if figures["closed_loop"] else ""
    told = [
        ("span", f"{digits(figures['span_s'], 5)} s"),
        (f"peak{turns}", f"{figures['peak_rps']} in a second"),
        (f"inter-arrival CV{turns}", _number(figures["interarrival_cv"])),
        ("gaps of 0 s", _part(figures["zero_gap_share"])),
        ("prompt tokens", grouped(figures["prompt_tokens_total"])),
        ("output tokens", grouped(figures["output_tokens_total"])),
        ("prompt : output, of sums", digits(figures["prompt_to_output"], 4)),
        ("prompt : output, median", digits(figures["median_prompt_to_output"], 4)),
        ("correlation of prompt and output", _number(figures["prompt_output_correlation"])),
    ]
    if figures["prefix_hit_share"] is not None:
        told += [
            ("ideal prefix hit, of prompt tokens", _part(figures["prefix_hit_share"])),
            ("ideal prefix hit, of requests", _part(figures["requests_hit_share"])),
            ("with own outputs kept, of tokens", _part(figures["reusable_share"])),
            ("uncached prompt : output", digits(figures["uncached_prompt_to_output"], 4)),
        ]
    kinds = {**figures["dropped"], **figures["counted"]}
    return told + [(kind, grouped(count)) for kind, count in kinds.items()]


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"-{digits(-value)}" if value < 0.0 else digits(value)


def _part(value: float | None) -> str:
    return "–" if value is None else percent(value)


def summary_tables(figures: dict[str, Any]) -> list[Table | Text]:
    """What ``chipsim workload`` prints."""
    head, *body = cells(figures)
    seed = "" if figures["seed"] is None else f" · seed {figures['seed']}"
    return [
        heading(headline(figures)),
        table(("", ""), facts(figures), text_columns=2),
        table(head, body),
        footer_line(f"source: {' '.join(figures['source'].split())}{seed}"),
    ]


def cells(figures: dict[str, Any]) -> list[list[str]]:
    """A column per series, a line per statistic; the first line is the names."""
    rows = figures["rows"]
    body = [[name, *(_cell(row[name]) for row in rows)] for name in STATISTICS]
    return [["", *(NAMES[row["series"]] for row in rows)], *body]


def _cell(value: float) -> str:
    if value == round(value):
        return plain(value)
    return f"{value:.1f}" if abs(value) >= 100.0 else digits(value)


def workload_figure(workload: Workload, figures: dict[str, Any]) -> go.Figure:
    """Draw a workload.

    Returns
    -------
    plotly.graph_objects.Figure
        Arrivals over time above; below, cumulative lengths, and prompt against output.
    """
    figure = make_subplots(
        2, 2, specs=[[{"colspan": 2}, None], [{}, {}]], vertical_spacing=0.2,
        horizontal_spacing=0.14, row_heights=[0.42, 0.58],
    )  # fmt: skip
    _arrivals(workload, figure)
    lengths = (workload.prompt_tokens, workload.output_tokens)
    curves = [("prompt", lengths[0], BLUE), ("output", lengths[1], ORANGE)]
    if figures["prefix_hit_share"] is not None:
        from chipsim.cluster.statistics import carried, prefix_hits

        new = workload.prompt_tokens - np.maximum(prefix_hits(workload), carried(workload))
        curves.append(("prompt, new to an ideal cache", new, GREEN))
    for name, values, colour in curves:
        figure.add_trace(_cumulative(name, values, colour), 2, 1)
    figure.add_trace(_density(workload), 2, 2)
    under = _under(figures)
    figure.update_layout(
        template=template(),
        height=780,
        title={"text": headline(figures), "subtitle": {"text": under}},
        legend={"x": 0, "xanchor": "left", "y": 0.5, "yanchor": "bottom"},
        meta={"headline": headline(figures), "subtitle": under},
    )
    share = {"tickformat": ".0%", "range": [0, 1.01]}
    figure.update_xaxes(title_text="Tokens", showgrid=True, row=2, col=1, **_decades(*lengths))
    figure.update_yaxes(title_text="Share with at most so many", row=2, col=1, **share)
    prompt, output = (_decades(values) for values in lengths)
    figure.update_xaxes(title_text="Prompt tokens", row=2, col=2, **prompt)
    figure.update_yaxes(title_text="Output tokens", row=2, col=2, **output)
    return figure


def _decades(*values: NDArray[np.int64]) -> dict[str, Any]:
    """A logarithmic axis of a decade or more, ticks at 1, 2 and 5 where it has few decades."""
    low = math.log10(min(int(v.min()) for v in values)) - 0.03
    high = math.log10(max(int(v.max()) for v in values)) + 0.03
    wider = max(0.0, 1.0 - (high - low)) / 2.0
    low, high = low - wider, high + wider
    steps = (1, 2, 5) if high - low < 2.5 else (1,)
    ticks = [step * 10.0**power for power in range(math.floor(low), 10) for step in steps]
    inside = [tick for tick in ticks if low <= math.log10(tick) <= high]
    names = [grouped(int(tick)) if tick >= 1 else plain(tick) for tick in inside]
    return {"type": "log", "range": [low, high], "tickvals": inside, "ticktext": names}


def _under(figures: dict[str, Any]) -> str:
    parts = [f"prompt : output {digits(figures['prompt_to_output'])}"]
    if figures["interarrival_cv"] is not None:
        parts.insert(0, f"inter-arrival CV {digits(figures['interarrival_cv'])}")
    if figures["prefix_hit_share"] is not None:
        parts.append(f"ideal prefix hit {percent(figures['prefix_hit_share'])}")
        parts.append(f"uncached prompt : output {digits(figures['uncached_prompt_to_output'])}")
    return " · ".join(parts)


def _arrivals(workload: Workload, figure: go.Figure) -> None:
    """Mean rate in equal parts of the span, some ten arrivals in each, as steps."""
    at = workload.arrival_s[workload.roots]
    count = min(MOST_BINS, max(1, len(at) // 10))
    span = workload.span_s or 1.0
    counts, edges = np.histogram(at, bins=count, range=(at[0], at[0] + span))
    width = span / count
    trace = go.Scatter(
        x=edges.tolist(),
        y=(np.append(counts, counts[-1]) / width).tolist(),
        mode="lines",
        line={"shape": "hv", "color": BLUE, "width": 1.5},
        fill="tozeroy",
        fillcolor="rgba(0,114,178,0.15)",
        showlegend=False,
        hovertemplate="from %{x:.4g} s: %{y:.3g} /s<extra></extra>",
    )
    figure.add_trace(trace, 1, 1)
    who = "First turns/s" if workload.closed_loop else "Requests/s"
    title = f"{who}, in bins of {seconds(width)}"
    figure.update_yaxes(title_text=title, rangemode="tozero", row=1, col=1)
    figure.update_xaxes(title_text="Time (s)", row=1, col=1)


def _cumulative(name: str, values: NDArray[np.int64], colour: str) -> go.Scatter:
    """Shares at or below each of some lengths, as a staircase of at most `CURVE` steps."""
    ordered = np.sort(np.maximum(values, 1))  # 0 new tokens have no place on a log axis
    unique, first = np.unique(ordered[::-1], return_index=True)
    share = 1.0 - first / len(ordered)
    kept = np.unique(np.searchsorted(share, np.linspace(share[0], 1.0, CURVE)))
    kept = kept[kept < len(unique)]
    return go.Scatter(
        x=[int(unique[0]), *unique[kept].tolist()],
        y=[0.0, *share[kept].tolist()],
        mode="lines",
        line={"shape": "hv", "color": colour, "width": 2.5},
        name=f"{name}, mean {digits(float(values.mean()), 4)}",
        hovertemplate=f"{name}: %{{y:.1%}} have at most %{{x}} tokens<extra></extra>",
    )


def _density(workload: Workload) -> go.Heatmap:
    """Share of the requests in each cell of prompt × output, both logarithmic."""
    prompt, output = (_edges(v) for v in (workload.prompt_tokens, workload.output_tokens))
    counts, _, _ = np.histogram2d(
        workload.prompt_tokens, workload.output_tokens, bins=(prompt, output)
    )
    share = counts.T / len(workload)
    return go.Heatmap(
        x=np.sqrt(prompt[1:] * prompt[:-1]).tolist(),
        y=np.sqrt(output[1:] * output[:-1]).tolist(),
        z=[[math.sqrt(value) if value else None for value in row] for row in share.tolist()],
        customdata=share.tolist(),
        colorscale=SCALE,
        showscale=False,
        hovertemplate="prompt %{x:.0f}, output %{y:.0f}: %{customdata:.2%}<extra></extra>",
    )


def _edges(values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Edges of cells, even in the logarithm, that hold all values."""
    low, high = float(values.min()) * 0.95, float(values.max()) * 1.05
    return np.geomspace(low, high, CELLS + 1)


def workload_rows() -> list[dict[str, Any]]:
    """Name, kind, rate and description of every workload of the library."""
    from chipsim.arch_configs import names
    from chipsim.cluster.workload_spec import WorkloadSpec

    return [
        {
            "name": spec.name,
            "description": spec.description,
            "kind": spec.kind,
            "arrivals": spec.arrivals.kind if spec.arrivals else "poisson",
            "rate_rps": spec.rate,
            "requests": spec.requests,
            "license": spec.license or None,
            "source": " ".join(spec.source.split()),
        }
        for spec in map(WorkloadSpec.load, names("workloads"))
    ]


def workload_lines(spec: Spec, comments: dict[str, str]) -> list[Line]:
    """Fields of a description with what its file says of them; tables by their ends."""
    data = spec.model_dump(exclude_unset=True)
    hidden = ("name", "description", "source")
    found = list(_leaves({k: v for k, v in data.items() if k not in hidden}, ""))
    return [Line(path, text, comments.get(path, "")) for path, text in found]


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, tuple) and value and isinstance(value[0], dict):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}.{index}")
    elif isinstance(value, tuple) and len(value) > 4:
        yield path, f"{len(value)} from {plain(value[0])} to {plain(value[-1])}"
    elif value is not None and _is_time(path):
        yield path, seconds(value)
    elif value is not None and path.endswith(RATES):
        yield path, quantity_text(value, "bandwidth")
    elif value is not None:
        yield path, plain(value) if isinstance(value, (int, float)) else str(value)


def _is_time(path: str) -> bool:
    """Whether a field is seconds: a time, or a limit that is not of a slowdown."""
    return path.endswith(TIMES) or path.startswith(LIMITS)


def workloads_table(rows: list[dict[str, Any]]) -> Table:
    """The list of workloads."""
    return table(
        ("workload", "description", "kind", "arrivals", "/s", "requests"),
        (
            (
                row["name"],
                row["description"],
                row["kind"],
                row["arrivals"],
                "–" if row["rate_rps"] is None else digits(row["rate_rps"]),
                "–" if row["requests"] is None else grouped(row["requests"]),
            )
            for row in rows
        ),
        text_columns=4,
    )
