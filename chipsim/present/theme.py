"""One look for all figures: a colour-blind-safe palette, plain axes, readable type.

The palette is that of Okabe and Ito (Color Universal Design, 2008).
"""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

INK, MUTED, GRID, PAPER = "#1b1f24", "#5b6470", "#e6e8eb", "#ffffff"
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE, BLACK = "#0072B2", "#D55E00", "#CC79A7", "#000000"

LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
"""Colours of our own curves, one per execution block."""

MARKERS = ((BLACK, "x"), (ORANGE, "square"), (PURPLE, "triangle-up"), (SKY, "pentagon"))
"""Colours and symbols of references, one per source."""

GROUPS: dict[str, tuple[str, str]] = {
    # group of operators: its name in a legend, its colour
    "mlp": ("MLP GEMMs", BLUE),
    "qkv": ("QKV GEMM", SKY),
    "output": ("output GEMM", "#A6D8F5"),
    "attention": ("attention", ORANGE),
    "softmax": ("softmax", YELLOW),
    "norm": ("norms", GREEN),
    "activation": ("activation", "#8FD3BF"),
    "elementwise": ("residuals, rotary", "#A0A6AD"),
    "all_reduce": ("all-reduce", VERMILION),
    "embedding": ("embedding", PURPLE),
    "lm_head": ("LM head", "#7B3F6B"),
}
"""Groups of operators in the order they are stacked, the largest GEMMs at the bottom."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def group_name(group: str) -> str:
    """A group of operators as a legend writes it."""
    return GROUPS[group][0] if group in GROUPS else group.replace("_", " ")


def group_colour(group: str) -> str:
    """Colour of a group of operators, the same in every figure."""
    return GROUPS[group][1] if group in GROUPS else MUTED


def in_order(groups: set[str]) -> list[str]:
    """Groups in the order they are stacked; unknown ones last."""
    known = list(GROUPS)
    return sorted(groups, key=lambda g: (known.index(g) if g in known else len(known), g))


def template() -> go.layout.Template:
    """The plotly template of every figure."""
    axis: dict[str, Any] = {
        "gridcolor": GRID,
        "zeroline": False,
        "linecolor": MUTED,
        "ticks": "outside",
        "tickcolor": MUTED,
        "ticklen": 4,
        "automargin": True,
        "title": {"font": {"size": 14}, "standoff": 8},
    }
    legend = {
        "orientation": "h",
        "font": {"size": 13},
        "bgcolor": "rgba(255,255,255,0)",
        "itemsizing": "constant",
    }
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 13, "color": INK},
            "title": {"font": {"size": 19}, "x": 0.0, "xref": "paper", "xanchor": "left"},
            "paper_bgcolor": PAPER,
            "plot_bgcolor": PAPER,
            "colorway": list(LINES),
            "xaxis": axis | {"showgrid": False, "showline": True},
            "yaxis": axis,
            "legend": legend,
            "hoverlabel": {"align": "left", "bgcolor": PAPER, "font": {"size": 13}},
            "margin": {"l": 56, "r": 16, "t": 24, "b": 48},
        }
    )


DARK = {
    PAPER: "#14181d",
    INK: "#e9ecef",
    MUTED: "#98a3ae",
    GRID: "#2a313a",
    BLACK: "#f2f4f5",
    BLUE: "#4BA3E3",
    "#7B3F6B": "#B876A4",
    "#A6D8F5": "#2E6F95",
    "#8FD3BF": "#3E7F6C",
}
"""Colours of a dark page in place of those of a light one; the others serve both."""


def darkened(value: Any) -> Any:
    """A figure as plain JSON values, its colours those of a dark page."""
    if isinstance(value, str):
        return DARK.get(value, value)
    if isinstance(value, dict):
        return {key: darkened(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [darkened(item) for item in value]
    return value
