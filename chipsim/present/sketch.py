"""Figures as plain JSON values: a live page draws many in a second.

A `plotly.graph_objects.Figure` checks every value that it is given, which takes longer than
the model; `graph` makes one of a sketch where it must be checked or rendered.
"""

from __future__ import annotations

import base64
import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from chipsim.present.theme import template

Sketch = dict[str, Any]
"""``data`` and ``layout`` of a figure; ``layout.meta`` has ``headline`` and ``subtitle``."""


@functools.cache
def plain_template() -> dict[str, Any]:
    """The template of every figure as JSON values."""
    found: dict[str, Any] = template().to_plotly_json()
    return found


def sketch(
    data: list[dict[str, Any]],
    headline: str,
    subtitle: str = "",
    *,
    height: int = 420,
    **layout: Any,
) -> Sketch:
    """Put traces into the house's layout."""
    return {
        "data": data,
        "layout": {
            "template": plain_template(),
            "height": height,
            "hovermode": "closest",
            "meta": {"headline": headline, "subtitle": subtitle},
            **layout,
        },
    }


def axis(title: str, **options: Any) -> dict[str, Any]:
    """An axis with its title and unit."""
    return {"title": {"text": title}, **options}


def packed(values: npt.ArrayLike) -> dict[str, str]:
    """Numbers as plotly reads them from base64: a third of their text, and quick to read."""
    array = np.ascontiguousarray(values, dtype="<f4")
    return {"dtype": "f4", "bdata": base64.b64encode(array.tobytes()).decode()}


def legend_above(**options: Any) -> dict[str, Any]:
    """A legend in a row above the plot."""
    return {"x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom", **options}


def legend_below(**options: Any) -> dict[str, Any]:
    """A legend at the foot of the figure, however many lines it takes."""
    foot = {"x": 0, "xanchor": "left", "y": 0, "yref": "container", "yanchor": "bottom"}
    return {**foot, "traceorder": "normal", **options}


def graph(figure: Sketch) -> Any:
    """A checked `plotly.graph_objects.Figure`."""
    import plotly.graph_objects as go

    checked = go.Figure(figure)
    meta = figure["layout"].get("meta", {})
    subtitle = {"text": meta.get("subtitle", "")}
    checked.update_layout(title={"text": meta.get("headline", ""), "subtitle": subtitle})
    return checked


def plain(figure: Any) -> Sketch:
    """A sketch of a `plotly.graph_objects.Figure`, its title in ``layout.meta`` alone."""
    found: Sketch = figure.to_plotly_json() if hasattr(figure, "to_plotly_json") else figure
    layout = {key: value for key, value in found["layout"].items() if key != "title"}
    return {"data": list(found["data"]), "layout": layout}
