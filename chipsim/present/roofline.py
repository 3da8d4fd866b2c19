"""The roofline of a chip with the operators of a phase as points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chipsim.present.describe import half_precision_flops
from chipsim.present.quantities import digits, format_si, percent, seconds
from chipsim.present.sketch import Sketch, axis, legend_above, sketch
from chipsim.present.theme import INK, MUTED, group_colour, group_name, in_order

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.estimates import OperatorRow, PhaseEstimate

SMALLEST, LARGEST = 7.0, 30.0
"""Pixels of a point, whose area is the operator's share of the time."""

DASHES = ("solid", "dash", "dot")


@dataclass(frozen=True, slots=True)
class Side:
    """A chip and what it makes of a phase.

    Attributes
    ----------
    name : str
        As the legend has it.
    format_name : str
        Format whose matrix peak is drawn; the chip's 16-bit one where it lacks that.
    """

    name: str
    chip: Chip
    estimate: PhaseEstimate
    format_name: str = ""

    @property
    def peak(self) -> tuple[str, float]:
        """Format and matrix peak, FLOP/s."""
        array = self.chip.core.systolic_array
        if array is not None and self.format_name in array.macs_per_cycle:
            return self.format_name, self.chip.tensor_flops(self.format_name)
        return half_precision_flops(self.chip)

    @property
    def ridge(self) -> float:
        """FLOP/byte from which the matrix units are the roof."""
        return self.peak[1] / self.chip.memory.bandwidth


def memory_share(side: Side) -> float:
    """Part of the phase's time in operators left of the ridge, 0 ... 1."""
    left = sum(row.latency_s for row in drawn(side.estimate) if _intensity(row) < side.ridge)
    return left / sum(row.latency_s for row in side.estimate.rows)


def drawn(estimate: PhaseEstimate) -> list[OperatorRow]:
    """Operators that have arithmetic and bytes of memory: collectives have links instead."""
    return [
        row
        for row in estimate.rows
        if row.estimate.operator.kind != "collective"
        and row.estimate.flops > 0
        and row.estimate.memory_bytes > 0
        and row.latency_s > 0
    ]


def roofline_figure(sides: Sequence[Side], subtitle: str = "") -> Sketch:
    """Draw operators by FLOP per byte and FLOP/s reached, under the roofs of their chips.

    Parameters
    ----------
    sides : sequence of Side
        One, or several to compare: the first is filled, the others hollow.
    """
    places = [_intensity(row) for side in sides for row in drawn(side.estimate)]
    low = 10.0 ** math.floor(math.log10(min([*places, 1.0])) - 0.3)
    high = 10.0 ** math.ceil(math.log10(max([*places, *(s.ridge for s in sides)])) + 0.3)
    high *= 30.0  # names stand right of their points, clear of the roof
    data = [trace for i, side in enumerate(sides) for trace in _roofs(side, i, low, high)]
    data += [trace for i, side in enumerate(sides) for trace in _operators(side, i)]
    lowest = min(_reached(row) for side in sides for row in drawn(side.estimate))
    top = max(side.peak[1] for side in sides)
    return sketch(
        data,
        _headline(sides),
        subtitle or "a point is an operator, its area its share of the time",
        height=480,
        xaxis=axis(
            "FLOP per byte of memory",
            type="log", range=[math.log10(low), math.log10(high)], dtick=1,
        ),
        yaxis=axis(
            "Reached (FLOP/s)",
            type="log", range=[math.log10(lowest) - 0.4, math.log10(top) + 0.35],
            tickformat="~s", dtick=1,
        ),
        legend=legend_above(),
    )  # fmt: skip


def _headline(sides: Sequence[Side]) -> str:
    first = sides[0]
    share = memory_share(first)
    kind = first.estimate.phase.kind.capitalize()
    told = f"{kind} spends {percent(share)} of its time left of the ridge"
    if len(sides) > 1:
        others = [f"{percent(memory_share(side))} on {side.name}" for side in sides[1:]]
        return f"{told} on {first.name}, {', '.join(others)}"
    return f"{told}, where memory is the roof"


def _roofs(side: Side, index: int, low: float, high: float) -> list[dict[str, Any]]:
    format_name, peak = side.peak
    slope, ridge = side.chip.memory.bandwidth, side.ridge
    dash, ink = DASHES[index % len(DASHES)], INK if index == 0 else MUTED
    told = f"{side.name}: {format_name} {format_si(peak, 'FLOP/s')}, {format_si(slope, 'B/s')}"
    vector = side.chip.vector_peak(16)
    return [
        {
            "type": "scatter", "mode": "lines", "name": told,
            "x": [low, ridge, high], "y": [low * slope, peak, peak],
            "line": {"color": ink, "width": 2, "dash": dash},
            "hovertemplate": f"<b>{side.name}</b><br>ridge at {digits(ridge)} FLOP/B"
            "<extra></extra>",
        },
        {
            "type": "scatter", "mode": "lines", "showlegend": index == 0,
            "name": "vector units, 16 bit",
            "x": [vector / slope, high], "y": [vector, vector],
            "line": {"color": MUTED, "width": 1, "dash": "dot" if index == 0 else "dashdot"},
            "hovertemplate": f"<b>{side.name}</b>, vector units<br>"
            f"{format_si(vector, 'FLOP/s')}<extra></extra>",
        },
    ]  # fmt: skip


def _operators(side: Side, index: int) -> list[dict[str, Any]]:
    rows, total = drawn(side.estimate), side.estimate.latency_s
    by_group: dict[str, list[OperatorRow]] = {}
    for row in rows:
        by_group.setdefault(row.group, []).append(row)
    told = _labelled(rows, total) if index == 0 else set()
    return [
        {
            "type": "scatter", "mode": "markers+text", "name": group_name(group),
            "showlegend": False,
            "x": [_intensity(row) for row in by_group[group]],
            "y": [_reached(row) for row in by_group[group]],
            "text": [_beside(row) if row.name in told else "" for row in by_group[group]],
            "textposition": "bottom right",
            "textfont": {"size": 12},
            "marker": {
                "color": group_colour(group),
                "symbol": "circle" if index == 0 else "circle-open",
                "opacity": 0.85,
                "size": [_size(row.latency_s / total) for row in by_group[group]],
                "line": {"width": 1.5, "color": INK if index == 0 else group_colour(group)},
            },
            "customdata": [_hover(row, side, total) for row in by_group[group]],
            "hovertemplate": "%{customdata}<extra></extra>",
        }
        for group in in_order(set(by_group))
    ]  # fmt: skip


def _beside(row: OperatorRow) -> str:
    """A name at a distance from its point."""
    return f"\N{EN SPACE}{group_name(row.group)}"


def _labelled(rows: Sequence[OperatorRow], total: float) -> set[str]:
    """Operators to name beside their points: the largest, where there is room."""
    told: list[tuple[float, float, str]] = []
    for row in sorted(rows, key=lambda row: -row.latency_s):
        x, y = math.log10(_intensity(row)), math.log10(_reached(row))
        if row.latency_s < 0.01 * total:
            break
        if all(abs(y - b) > 0.22 or abs(x - a) > 1.2 for a, b, _ in told):
            told.append((x, y, row.name))
    return {name for _, _, name in told}


def _hover(row: OperatorRow, side: Side, total: float) -> str:
    runs = f" × {row.count}" if row.count > 1 else ""
    roof = min(side.peak[1], _intensity(row) * side.chip.memory.bandwidth)
    return "<br>".join(
        [
            f"<b>{row.name}</b>{runs} on {side.name}",
            f"{seconds(row.latency_s)}, {percent(row.latency_s / total)} of the phase",
            f"{digits(_intensity(row))} FLOP/B, {format_si(_reached(row), 'FLOP/s')}",
            f"{percent(_reached(row) / roof)} of the roof, bound by {row.estimate.bound}",
        ]
    )


def _intensity(row: OperatorRow) -> float:
    return row.estimate.flops / row.estimate.memory_bytes


def _reached(row: OperatorRow) -> float:
    return row.estimate.flops / row.estimate.latency_s


def _size(share: float) -> float:
    return max(SMALLEST, LARGEST * math.sqrt(share))
