"""Results as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from chipsim.present.axes import AXES
from chipsim.present.provenance import IDEAL, phase_text
from chipsim.present.quantities import binary, digits, format_si, percent, seconds

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.explore.compare import Comparison
    from chipsim.ops.phase import Phase
    from chipsim.present.describe import Line

BOUND_STYLES = {
    "compute": "cyan",
    "memory": "yellow",
    "core draw": "magenta",
    "link": "blue",
    "overhead": "red",
}


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    text_columns: int = 1,
    total: bool = False,
) -> Table:
    """A plain table: the first columns are text, the others are numbers to the right.

    Parameters
    ----------
    text_columns : int
        How many columns from the left hold text.
    total : bool
        The last row is a sum, set apart by a line.
    """
    made = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        show_header=any(columns),
        header_style="bold",
    )
    for index, name in enumerate(columns):
        left = index < text_columns
        made.add_column(name, justify="left" if left else "right", overflow="fold")
    listed = list(rows)
    for index, row in enumerate(listed):
        made.add_row(*row, end_section=total and index == len(listed) - 2)
    return made


def heading(text: str) -> Text:
    """The line above a table."""
    return Text(text, style="bold")


def bound_cell(bound: str) -> Text:
    """A bound in its colour."""
    return Text(bound, style=BOUND_STYLES.get(bound, ""))


def footer_line(text: str) -> Text:
    """The line below a result; the ideal machine stands out."""
    line = Text(text, style="dim")
    if IDEAL in text:
        line.highlight_words([IDEAL], "bold yellow")
    return line


def conversion_lines(record: dict[str, Any]) -> list[Text]:
    """Formats that the matrix units lack, and what is done about them (often none)."""
    told = record["conversions"]
    converted = ", ".join(note for note in told if "->" in note)
    computed = [f"computed: {note}" for note in told if "->" not in note]
    lines = [f"converted on the vector units: {converted}"] * bool(converted) + computed
    return [Text(line, style="yellow") for line in lines]


def lines_table(lines: Iterable[Line]) -> Table:
    """Fields with their values and sources."""
    made = table(
        ("field", "value", "source"),
        ((line.field, line.value, line.note) for line in lines),
        text_columns=3,
    )
    made.columns[0].no_wrap = True
    return made


def operator_table(record: dict[str, Any]) -> Table:
    """The answer for one operator, one figure a line."""
    latency = record["latency_s"]
    rows: list[tuple[str, str | Text]] = [
        ("latency", seconds(latency)),
        ("bound", bound_cell(record["bound"])),
        ("lower bound", f"{seconds(record['lower_bound_s'])}{_reached(record)}"),
    ]
    for name, key, unit in (("arithmetic", "flops", "FLOP"), ("traffic", "memory_bytes", "B")):
        if record[key]:
            rate = format_si(record[key] / latency, f"{unit}/s")
            rows.append((name, f"{format_si(record[key], unit)} at {rate}"))
    if record.get("energy_j") is not None:
        rows.append(("energy", _energy(record)))
    parts = [f"{k} {seconds(v)}" for k, v in record.get("parts", {}).items() if v > 0]
    rows += [("parts", ", ".join(parts))] if parts else []
    rows += _mapping(record.get("mapping") or {})
    return table(("", ""), rows, text_columns=2)


OVER_TDP = 1.005
"""Power over TDP below which it is rounding."""


def over_tdp(record: dict[str, Any]) -> str:
    """Says so where the chip draws more than its TDP: its clock would fall.

    >>> over_tdp({"power_w": 1415.0, "tdp_w": 1000.0})
    ', over its TDP of 1000 W (--power-cap tdp lowers the clock)'
    """
    tdp_w = record.get("tdp_w")
    if tdp_w is None or record["power_w"] <= OVER_TDP * tdp_w:
        return ""
    return f", over its TDP of {tdp_w:.0f} W (--power-cap tdp lowers the clock)"


def _energy(record: dict[str, Any]) -> str:
    """Joules of one chip, mean power, and what a cap leaves of the clock."""
    text = format_si(record["energy_j"], "J")
    if record.get("power_w"):
        text += f" at {format_si(record['power_w'], 'W')}{over_tdp(record)}"
    if "clock_fraction" in record:
        text += f", clock {percent(record['clock_fraction'])} under the cap"
    return f"{text}, of one chip"


def _reached(record: dict[str, Any]) -> str:
    if not record["latency_s"]:
        return ""
    share = record["lower_bound_s"] / record["latency_s"]
    return f" ({percent(share)} of the latency)"


def _mapping(mapping: dict[str, Any]) -> list[tuple[str, str | Text]]:
    """The choices of a mapping in one line, and how many were compared."""
    chosen = [f"{k} {v}" for k, v in mapping.items() if k != "mappings" and k[0] != "_"]
    if not chosen or any(isinstance(value, dict) for value in mapping.values()):
        return []
    rows: list[tuple[str, str | Text]] = [("mapping", ", ".join(chosen))]
    if "mappings" in mapping:
        rows.append(("compared", f"{round(mapping['mappings']):,} mappings"))
    return rows


def operator_parts(record: dict[str, Any]) -> list[Table]:
    """The answer for an operator, and a table of its steps where it has several."""
    parts = [operator_table(record)]
    if "operators" in record:
        parts.append(phase_table([row | {"count": 1} for row in record["operators"]]))
    return parts


def stages_text(layers: Sequence[int]) -> str:
    """Layers of pipeline stages in words.

    >>> stages_text([15, 15, 16, 15]), stages_text([8, 8])
    ('stages of 15 or 16 layers', 'stages of 8 layers')
    """
    return f"stages of {' or '.join(map(str, sorted(set(layers))))} layers"


def phase_title(record: dict[str, Any], phase: Phase) -> str:
    """What was asked, and the latency."""
    asked = f"{record['model']} {phase_text(phase)}, {record['plan']}, {record['precision']}"
    layers = ", layers only" if record["layers_only"] else ""
    rate = format_si(record["tokens_per_s"], "tokens/s")
    said = f"{seconds(record['latency_s'])}, {rate}, mostly {record['bound']}"
    if record.get("energy_j") is not None:
        said += f", {format_si(record['energy_j'], 'J')} a chip at {record['power_w']:.0f} W"
        said += over_tdp(record)
    if "power_cap_w" in record:
        said += f" under a cap of {record['power_cap_w']:g} W"
    stages = record["pipeline"]
    if stages["stage_s"] < record["latency_s"]:
        waits = f"{stages['parts']} parts in flight, bubble {percent(stages['bubble'])}"
        said += f"\nslowest pipeline stage {seconds(stages['stage_s'])}, {waits}"
        if len(stages["stage_layers"]) > 1:
            said += f", {stages_text(stages['stage_layers'])}"
    return f"{asked}{layers}\n{said}"


PHASE_COLUMNS = (
    "operator",
    "bound",
    "count",
    "latency",
    "share",
    "FLOP",
    "traffic",
    "of bound",
)


def phase_table(operators: Sequence[dict[str, Any]]) -> Table:
    """Operators of a phase in the order they run, and their sum."""
    capped = "clock_fraction" in operators[0]
    rows: list[tuple[str | Text, ...]] = [
        (
            row["name"],
            bound_cell(row["bound"]),
            str(row["count"]),
            seconds(row["latency_s"]),
            f"{100 * row['share']:.1f} %",
            format_si(row["flops"], "") if row["flops"] else "–",
            format_si(row["memory_bytes"], "B"),
            percent(row["utilisation"], 2),
            *([percent(row["clock_fraction"], 2)] if capped else []),
        )
        for row in operators
    ]
    total = sum(row["latency_s"] for row in operators)
    flops = sum(row["flops"] for row in operators)
    rows.append(("total", "", "", seconds(total), "100.0 %", format_si(flops, ""), "", ""))
    columns = (*PHASE_COLUMNS, "clock") if capped else PHASE_COLUMNS
    return table(columns, rows, text_columns=2, total=True)


def cuts_table(rows: Sequence[dict[str, Any]], *, largest: bool) -> Table:
    """The points of a cut, one a line; with the largest batch, what it is worth."""
    head, *body = cuts_cells(rows, largest=largest)
    made = table(head, body, text_columns=head.index("latency"))
    made.columns[-1].justify = "left"
    return made


def cuts_cells(rows: Sequence[dict[str, Any]], *, largest: bool) -> list[list[str]]:
    """The points of a cut as text, the names of the columns first."""
    several = len({row["execution"] for row in rows}) > 1
    suffixes = ("", "_2") if "resource_2" in rows[0] else ("",)
    head = ["block"] if several else []
    head += [AXES[rows[0][f"resource{suffix}"]].name for suffix in suffixes]
    head += ["latency", *(["batch"] if largest else ["slowdown"]), "tokens/s"]
    head += [*(["of uncut"] if largest else []), "mostly", "remark"]
    cells = []
    for row in rows:
        places = [row["execution"]] if several else []
        places += [_place(row, suffix) for suffix in suffixes]
        cells.append(places + _cut_cells(row, largest=largest))
    return [head, *cells]


def _place(row: dict[str, Any], suffix: str) -> str:
    text = AXES[row[f"resource{suffix}"]].text(row[f"value{suffix}"])
    return f"{text} ({percent(row[f'fraction{suffix}'])})"


def _cut_cells(row: dict[str, Any], *, largest: bool) -> list[str]:
    latency, slowdown = row["latency_s"], row["slowdown"]
    limit = {"memory": "memory full", "itl": "at the ITL"}.get(row["limit"], "")
    worth = percent(row["relative_throughput"]) if latency else "–"
    middle = "–" if slowdown is None else f"{slowdown:.3f}"
    return [
        "–" if latency is None else seconds(latency),
        str(row["batch"]) if largest else middle,
        format_si(row["tokens_per_s"], "") if row["tokens_per_s"] else "–",
        *([worth] if largest else []),
        row["bound"],
        row["reason"] or limit,
    ]


def compare_table(comparison: Comparison) -> Table:
    """Two runs side by side, with a sum."""
    head, *body = compare_cells(comparison)
    made = table(head, body, total=True)
    made.columns[-1].justify = "left"
    return made


def compare_cells(comparison: Comparison) -> list[list[str]]:
    """Two runs as text, the names of the columns first, their totals last."""
    head = [comparison.by, comparison.name_a, comparison.name_b, "b - a", "b / a", "why"]
    cells = [
        [
            row.name,
            seconds(row.a.latency_s),
            seconds(row.b.latency_s),
            _signed(row.difference_s),
            "–" if row.ratio is None else digits(row.ratio),
            row.why,
        ]
        for row in comparison.rows
    ]
    a, b = comparison.total_a_s, comparison.total_b_s
    ratio_text = digits(b / a) if a else "–"
    return [head, *cells, ["total", seconds(a), seconds(b), _signed(b - a), ratio_text, ""]]


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{seconds(value)}"


def validation_table(frame: pd.DataFrame) -> Table:
    """Errors by suite and chip, of one suite by operator too; the rest is in ``--json``."""
    ours = {suite for suite in frame["suite"] if not suite.endswith("-llmcompass")}
    cells, text_columns = validation_cells(frame), 3
    if len(ours) > 1:
        cells = [row[:2] + row[3:] for row in cells if row[2] in ("operator", "all")]
        text_columns = 2
    head, *body = cells
    made = table(head, body, text_columns=text_columns)
    for column in made.columns:
        column.no_wrap = True
    return made


def silicon_tables(
    frame: pd.DataFrame, blocks: Mapping[str, str] | None = None
) -> list[Text | Table]:
    """Errors on measured operators, chip by chip: by regime, and those of plain models.

    Parameters
    ----------
    blocks : mapping of str to str, optional
        Names of execution blocks by chip, for the headings.
    """
    parts: list[Text | Table] = []
    for chip, rows in frame[frame["chip"] != "all"].groupby("chip", sort=False):
        under = f" under {blocks[str(chip)]}" if blocks else ""
        parts += [heading(f"{chip}{under}: mean absolute error, %"), _silicon_table(rows)]
    return parts


def _silicon_table(frame: pd.DataFrame) -> Table:
    """One chip's: MAPE, median, p90, bias; MAPE by regime; MAPE of plain models."""
    keys = ["operator", "dtype"]
    split = frame[frame["regime"] != "all"].set_index([*keys, "regime"])["mape"].to_dict()
    whole = frame[(frame["regime"] == "all") & (frame["dtype"] != "all")]
    beside = [name for name in BESIDE if name in frame.columns and name != "scaled_mape"]
    regimes = [name for name in REGIMES if (frame["regime"] == name).any()]
    head = ["operator", "n", "MAPE", "med.", "p90", "bias", *(REGIMES[r] for r in regimes)]
    head += [BESIDE[name] for name in beside]
    body = []
    for row in whole.sort_values(keys, kind="stable").to_dict("records"):
        name = (str(row["operator"]), str(row["dtype"]))
        by_regime = [split.get((*name, regime)) for regime in regimes]
        errors = [_error_cell(row[number], 1) for number in ("mape", "median_ape")]
        errors += [_error_cell(row[number]) for number in ("p90_ape", "bias")]
        errors += [_error_cell(error) for error in by_regime]
        errors += [_error_cell(row[model]) for model in beside]
        body.append([" ".join(name).replace("/", "/ "), str(row["n"]), *errors])
    made = table(head, body)
    for column in made.columns[1:]:
        column.no_wrap = True
    return made


BESIDE = {
    "held_out_mape": "held out", "donor_mape": "as is",
    "roofline_mape": "roof", "scaled_mape": "0.8 bw", "four_factor_mape": "4-fact",
    "chip_alone_mape": "chip alone", "llmcompass_mape": "LLMCompass",
}  # fmt: skip
"""Other models in the head of a table."""
REGIMES = {
    "compute": "comp", "memory": "mem", "link": "link", "small": "small",
    "device": "device", "host": "host",
}  # fmt: skip
"""Regimes in the order of a table, and their heads."""


def _error_cell(error: float | None, decimals: int = 0) -> str:
    """A fraction in %, nothing where there is none."""
    return "" if error is None or math.isnan(error) else f"{100 * error:.{decimals}f}"


def differences_table(frame: pd.DataFrame) -> Table:
    """The largest differences of requests by run, in seconds."""
    rows = [
        [row["run"], row["operator"], str(row["n"]), f"{row['max_difference_s']:.2g} s"]
        for row in frame.to_dict("records")
    ]
    return table(["run", "figure", "n", "largest difference"], rows, text_columns=2)


def validation_cells(frame: pd.DataFrame) -> list[list[str]]:
    """Errors as text, the names of the columns first; pooled over type and regime."""
    pooled = frame[(frame["dtype"] == "all") & (frame["regime"] == "all")]
    ordered = pooled.sort_values(["suite", "chip", "operator"], kind="stable")
    numbers = ("mape", "median_ape", "p90_ape", "bias")
    head = ["suite", "chip", "operator", "n", "MAPE", "median", "p90", "bias"]
    rows = [
        [
            str(row["suite"]),
            str(row["chip"]),
            str(row["operator"]),
            str(row["n"]),
            *(f"{100 * row[name]:.1f} %" for name in numbers),
        ]
        for row in ordered.to_dict("records")
    ]
    return [head, *rows]


def memory_table(record: dict[str, Any]) -> Table:
    """What one chip's memory holds."""
    batch = f"{record['largest_batch']} sequences of {record['context']} tokens"
    rows: list[tuple[str, str | Text]] = [
        ("memory", binary(record["capacity_bytes"])),
        ("usable", binary(record["usable_bytes"])),
        ("weights", format_si(record["weights_bytes_per_chip"], "B")),
        ("left for KV", format_si(record["free_bytes"], "B")),
        ("KV of a token", format_si(record["kv_bytes_per_token"], "B")),
        *_state_rows(record),
        ("KV tokens", _tokens(record["kv_tokens_at_context"])),
        ("largest batch", batch),
        ("fits", Text("yes") if record["fits"] else Text("no", style="bold red")),
    ]
    if not record["fits"]:
        rows.append(("short of", Text(format_si(record["shortfall_bytes"], "B"), "bold red")))
    return table(("each chip", ""), rows, text_columns=2)


def _state_rows(record: dict[str, Any]) -> list[tuple[str, str | Text]]:
    """Rows of what does not grow with a sequence, and of what stops growing."""
    rows: list[tuple[str, str | Text]] = []
    state, context = record["state_bytes_per_sequence"], record["context"]
    if state:
        rows.append(("state of a sequence", format_si(state, "B")))
    if record["sequence_bytes"] != state + context * record["kv_bytes_per_token"]:
        rows.append((f"KV of {context} tokens", format_si(record["sequence_bytes"], "B")))
    return rows


def _tokens(count: int | None) -> str:
    return "no limit" if count is None else f"{count:,}"


def ratio(value: float) -> str:
    """A slowdown or speed-up.

    >>> ratio(1.1432), ratio(0.98)
    ('1.14×', '0.980×')
    """
    return f"{digits(value)}×"
