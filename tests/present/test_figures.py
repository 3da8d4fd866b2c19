"""Figures say what the frames say."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from chipsim import ModelSpec, Phase, validate
from chipsim.explore.compare import Reference, compare
from chipsim.ops.graph import phase_graph
from chipsim.phases import estimate
from chipsim.present.compare import compare_figure
from chipsim.present.cost import money_line
from chipsim.present.cuts import cuts_figure
from chipsim.present.headline import compare_headline, headline
from chipsim.present.theme import GROUPS, group_name
from chipsim.present.validation import validation_figure
from chipsim.validation.spad import reference_points

if TYPE_CHECKING:
    from chipsim.explore.cuts import CutsResult


def named(figure: Any, name: str) -> Any:
    """The one trace of a name."""
    (trace,) = [each for each in figure.data if each.name == name]
    return trace


def test_the_curve_is_the_frame(curve: CutsResult) -> None:
    line = named(cuts_figure(curve), "chipsim, llmcompass-tables")
    rows = curve.frame().sort_values("value")
    assert list(line.x) == (rows["value"] / 1e9).tolist()
    assert list(line.y) == rows["slowdown"].tolist()


def test_the_bars_are_the_operators(curve: CutsResult) -> None:
    figure = cuts_figure(curve)
    rows = curve.operators_frame()
    for group, of_group in rows.groupby("group"):
        bars = named(figure, group_name(str(group)))
        sums = of_group.groupby("value")["latency_s"].sum().sort_index()
        assert list(bars.y) == pytest.approx((1e3 * sums).tolist())
    heights = [sum(b.y[i] for b in figure.data if b.type == "bar") for i in range(3)]
    latency = curve.frame().sort_values("value")["latency_s"]
    assert heights == pytest.approx((1e3 * latency).tolist())


def test_the_uncut_chip_is_marked_and_named(curve: CutsResult) -> None:
    (uncut,) = [t for t in cuts_figure(curve).data if str(t.name).startswith("uncut")]
    assert (uncut.x[0], uncut.y[0]) == (pytest.approx(3352), 1.0)
    assert "spad-h100: 3352 GB/s" in uncut.name


def test_references_are_drawn_with_their_source(curve: CutsResult) -> None:
    references = reference_points("bloom-176b", "spad-h100", "prefill", "memory_bandwidth")
    figure = cuts_figure(curve, references)
    paper = named(figure, "SPAD paper")
    assert dict(zip(paper.x, paper.y, strict=True))[2000] == 1.17  # the paper's Figure 2
    assert all("slowdown" in text for text in paper.customdata)
    drawn = [t for t in figure.data if t.type == "scatter" and t.mode == "markers"]
    points = sum(len(t.x) for t in drawn) - 1  # the uncut chip
    assert points == len(references)
    shown = [t.name.split(" (")[0] for t in drawn if t.visible is True]
    assert len(shown) == len(set(shown))  # one phase of each source, others on demand


def test_the_title_is_the_conclusion(curve: CutsResult) -> None:
    slowdown = curve.points[0].slowdown
    assert headline(curve) == f"Prefill is {slowdown:.2f}× slower at 2011 GB/s (60 %)"
    subtitle = cuts_figure(curve).layout.title.subtitle.text
    for part in ("bloom-176b", "spad-h100", "prompt 1024", "tp=8", "llmcompass-tables", "0.1"):
        assert part in subtitle


def test_the_heat_map_is_the_grid(grid: CutsResult) -> None:
    (cells,) = cuts_figure(grid).data
    frame = grid.frame().sort_values(["value_2", "value"])
    flat = [value for line in cells.z for value in line]
    expected = [None if math.isnan(v) else v for v in frame["slowdown"]]
    assert flat == expected
    assert None in flat
    texts = [text for line in cells.text for text in line]
    assert texts.count("–") == flat.count(None)
    assert texts[-1] == "1.00"


def test_the_largest_batch_shows_tokens_and_what_ends_it(largest: CutsResult) -> None:
    figure = cuts_figure(largest)
    line = named(figure, "chipsim, llmcompass-tables")
    rows = largest.frame().sort_values("value")
    assert [y or 0.0 for y in line.y] == rows["tokens_per_s"].tolist()
    assert list(line.text) == [f"{batch}<br> " for batch in rows["batch"]]
    assert "batch limited by" in line.customdata[-1]
    assert len(named(figure, "cannot run it").x) == 1
    assert headline(largest).startswith("Decode keeps ")


def test_two_blocks_are_two_lines(curve: CutsResult) -> None:
    figure = cuts_figure([curve, curve])
    lines = [t for t in figure.data if t.type == "scatter" and t.line.width]
    assert len({line.line.color for line in lines}) == len(lines) == 2
    assert "llmcompass-tables, beside llmcompass-tables" in figure.layout.title.subtitle.text
    assert figure.layout.yaxis2.title.text == "Latency (ms), llmcompass-tables"


@pytest.mark.parametrize("model", ["bloom-176b", "llama-3.1-8b"])
@pytest.mark.parametrize("attention", ["fused", "unfused"])
def test_every_group_has_a_colour_of_its_own(model: str, attention: Any) -> None:
    graph = phase_graph(ModelSpec.load(model), Phase.decode(1, 8), attention=attention)
    assert {group for _, group in graph.nodes(data="group")} <= GROUPS.keys()
    assert len({colour for _, colour in GROUPS.values()}) == len(GROUPS)


def test_the_waterfall_leads_from_a_to_b() -> None:
    a, b = (
        estimate(chip, "bloom-176b", Phase.prefill(2, 1024), "tp=8")
        for chip in ("spad-h100", "spad-prefill")
    )
    found = compare(a, b)
    (bars,) = compare_figure(found).data
    first, *steps, last = bars.x
    assert first + sum(steps) == pytest.approx(last)
    assert last == pytest.approx(1e3 * found.total_b_s)
    assert compare_headline(found).startswith("spad-prefill takes ")


def test_a_reference_is_compared_too() -> None:
    step = estimate("spad-h100", "bloom-176b", Phase.decode(1, 64), "tp=8", layers_only=True)
    found = compare(step, Reference("mine", {"mlp": 0.01, "qkv": 0.02}))
    assert compare_figure(found).data[0].y[-1] == "mine"


def test_ratios_of_validation_are_those_of_the_frame() -> None:
    result = validate("silicon-eager")
    figure = validation_figure(result)
    points = result.points
    for trace in figure.data:
        suite = trace.name.split(" (")[0]
        rows = points[points["suite"] == suite]
        ratio = (rows["estimate"] / rows["reference"]).clip(0.4, 2.5)
        assert list(trace.y) == pytest.approx(ratio.tolist())
        assert trace.visible == ("legendonly" if suite.endswith("-llmcompass") else True)


def test_a_point_tells_its_cost_and_power_on_hover(curve: CutsResult) -> None:
    line = named(cuts_figure(curve), "chipsim, llmcompass-tables")
    rows = curve.frame().sort_values("value").to_dict("records")
    for text, row in zip(line.customdata, rows, strict=True):
        assert f"${row['cost_usd']:.0f}, TDP {row['tdp_w']:.0f} W" in text
    assert money_line(curve).startswith("uncut: $1035, TDP 700 W, ")
