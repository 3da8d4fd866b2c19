"""A paper beside ours as one HTML file: pictures first, then every row and what it rests on."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

from chipsim.present.quantities import digits
from chipsim.present.reproduction import COLUMNS, cells, headline, signed
from chipsim.present.sketch import Sketch, axis, legend_below, sketch
from chipsim.present.standalone import Section, standalone
from chipsim.present.theme import BLACK, BLUE, GREEN, LINES, ORANGE, VERMILION

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.present.html import Rows
    from chipsim.validation.reproduce import Reproduction


def report(made: Reproduction) -> str:
    """The file's text."""
    return standalone(headline(made), lead(made), list(sections(made)), command(made))


def command(made: Reproduction) -> str:
    """What gives the same figures."""
    return f"chipsim reproduce {made.name}" + (" --quick" if made.quick else "")


def lead(made: Reproduction) -> str:
    """Source, what the claim is, and how long it took."""
    quick = " Quick run: a short trace, one seed, fewer rows." if made.quick else ""
    return f"{made.source}.{quick} {made.wall_s:.0f} s."


def sections(made: Reproduction) -> Iterator[Section]:
    """Pictures, rows, assumptions, sensitivity."""
    yield Section("What to know before quoting a row", notes=made.remarks)
    missed = [cells(row) for row in made.missed]
    if missed:
        yield Section("Outside the tolerance", rows=[list(COLUMNS), *missed], unfolded=True)
    for name, table in made.curves.items():
        frame = table()
        if name in FIGURES and len(frame):
            yield from FIGURES[name](frame)
    if made.sensitivity:
        yield Section(
            "How the answer moves with what the paper leaves open",
            "One assumption moved at a time.",
            rows=shift_rows(made),
            unfolded=True,
        )
    yield Section("Every figure", rows=[list(COLUMNS), *map(cells, made.rows)], unfolded=True)
    yield Section("What was assumed", rows=assumption_rows(made), unfolded=True)


def shift_rows(made: Reproduction) -> Rows:
    """The sensitivity as text."""
    names = ["assumption", "value", "figure", "base", "changed", "shift", "note"]
    rows = [
        [
            each.assumption,
            each.value,
            each.figure,
            *("none" if v is None else digits(v) for v in (each.base, each.changed)),
            "" if each.shift is None else signed(each.shift),
            each.note,
        ]
        for each in made.sensitivity
    ]
    return [names, *rows]


def assumption_rows(made: Reproduction) -> Rows:
    """The assumptions as text."""
    rows = [[each.name, str(each.value), each.origin, each.why] for each in made.assumptions]
    return [["assumption", "value", "origin", "why"], *rows]


def curves(frame: pd.DataFrame) -> Iterator[Section]:
    """Slowdown against the resource that is cut, published and under each block."""
    blocks = [name for name in frame.columns if name not in ("phase", "value", "published")]
    for phase, title, unit, scale in (
        ("prefill", "Prefill against memory bandwidth", "memory bandwidth, GB/s", 1e9),
        ("decode", "Decode against cores", "cores", 1.0),
    ):
        group = frame[frame["phase"] == phase]
        x = list(group["value"] / scale)
        data: list[dict[str, Any]] = [
            {"type": "scatter", "mode": "lines", "name": name, "x": x,
             "y": list(group[name]), "line": {"color": colour}}
            for name, colour in zip(blocks, LINES, strict=False)
        ]  # fmt: skip
        data.append(
            {"type": "scatter", "mode": "markers", "name": "published", "x": x,
             "y": list(group["published"]),
             "marker": {"color": BLACK, "symbol": "x", "size": 9}}
        )  # fmt: skip
        drawn = sketch(
            data, title, height=360, xaxis=axis(unit), yaxis=axis("slowdown"),
            legend=legend_below(), margin={"l": 56, "r": 16, "t": 12, "b": 90},
        )  # fmt: skip
        yield Section(title, "BLOOM-176B, TP8, sequence 1024; 1 is the uncut H100.", drawn)


RULE_MARKS = ((BLUE, "circle"), (ORANGE, "diamond"), (GREEN, "square"), (VERMILION, "star"))
"""Colour and symbol of each rule, the default first."""


def clusters(frame: pd.DataFrame) -> Iterator[Section]:
    """Machines of every cell under each rule, and the same as a table."""
    yield Section(
        "Machines of the cluster table, by rule",
        "Bars: least to most over seeds. The grey band of each cell is the tolerance of two "
        "machines about the published count.",
        cluster_figure(frame),
        rows=cluster_table(frame),
        unfolded=True,
    )


def cluster_figure(frame: pd.DataFrame) -> Sketch:
    """Counts by cell: published, and ours under each rule."""
    named = frame.assign(cell=frame["trace"] + ", " + frame["system"])
    names = list(dict.fromkeys(named["cell"]))
    published = named.drop_duplicates("cell")
    data: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "markers", "name": "published",
            "x": list(published["published"]), "y": list(published["cell"]),
            "marker": {"color": BLACK, "symbol": "x", "size": 9},
            "error_x": {"type": "constant", "value": 2, "thickness": 9, "width": 0,
                        "color": "rgba(128,128,128,0.35)"},
        }
    ]  # fmt: skip
    for (rule, group), (colour, symbol) in zip(
        named.groupby("rule", sort=False), RULE_MARKS, strict=False
    ):
        known = group[group["machines"].notna()]
        over = (known["most"] - known["machines"], known["machines"] - known["least"])
        data.append(
            {
                "type": "scatter", "mode": "markers", "name": str(rule),
                "x": list(known["machines"]), "y": list(known["cell"]),
                "marker": {"color": colour, "symbol": symbol, "size": 9},
                "error_x": {"type": "data", "array": list(over[0]), "symmetric": False,
                            "arrayminus": list(over[1]), "color": colour},
            }
        )  # fmt: skip
    return sketch(
        data,
        "Machines by rule",
        height=160 + 30 * len(names),
        xaxis=axis("machines of eight chips", side="top"),
        yaxis={"categoryorder": "array", "categoryarray": names[::-1], "automargin": True},
        legend=legend_below(),
        margin={"l": 56, "r": 16, "t": 44, "b": 96},
    )


def cluster_table(frame: pd.DataFrame) -> Rows:
    """One line for each cell, one column for each rule."""
    rules = list(dict.fromkeys(frame["rule"]))
    rows = []
    for (trace, system), group in frame.groupby(["trace", "system"], sort=False):
        by_rule = {row["rule"]: row for row in group.to_dict("records")}
        told = [_count(by_rule[rule]) if rule in by_rule else "" for rule in rules]
        rows.append([f"{trace}, {system}", digits(group["published"].iloc[0]), *told])
    return [["cell", "published", *rules], *rows]


def _count(row: dict[Hashable, Any]) -> str:
    """``25 (24 to 26): 18+7; mixed pool, prompt limit 1024``."""
    if row["machines"] is None or row["machines"] != row["machines"]:
        return f"none; {row['words']}"
    ends = [f"{row[name]:g}" for name in ("machines", "least", "most")]
    spread = f" ({ends[1]} to {ends[2]})" if ends[1] != ends[2] else ""
    return f"{ends[0]}{spread}: {row['splits']}; {row['words']}"


def counts(frame: pd.DataFrame) -> Iterator[Section]:
    """Splits that were run of H100-only and SPAD's clusters: the set that holds is ragged."""
    for trace, group in frame[frame["system"].isin(["h100", "spad"])].groupby("trace"):
        data: list[dict[str, Any]] = []
        for system, colour in (("h100", BLUE), ("spad", VERMILION)):
            for holds, symbol in ((True, "circle"), (False, "x-thin-open")):
                some = group[(group["system"] == system) & (group["holds"] == holds)]
                words = "holds" if holds else "does not"
                data.append(
                    {"type": "scatter", "mode": "markers", "name": f"{system} {words}",
                     "x": list(some["prefill"]), "y": list(some["decode"]),
                     "marker": {"color": colour, "symbol": symbol, "size": 9 if holds else 6,
                                "opacity": 1.0 if holds else 0.5},
                     "text": list(some["binding"])}
                )  # fmt: skip
        drawn = sketch(
            data, f"Counts that were run, {trace}", height=420,
            xaxis=axis("prefill machines"), yaxis=axis("decode machines"),
            legend=legend_below(), margin={"l": 56, "r": 16, "t": 12, "b": 96},
        )  # fmt: skip
        yield Section(
            f"Counts that were run, {trace}",
            "First seed, default rule: splits of one total may hold and not hold in any order.",
            drawn,
        )


FIGURES = {"curves": curves, "clusters": clusters, "counts": counts}
