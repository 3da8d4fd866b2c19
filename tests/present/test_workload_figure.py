"""The figure of a workload shows the workload's own numbers."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from chipsim import Workload, load_workload
from chipsim.present.html import page
from chipsim.present.workload import cells, workload_figure
from tests.present.test_html import own_text

CASES: dict[str, dict[str, Any]] = {
    "lengths": {"name": "azure-conversation", "requests": 3000},
    "sessions": {"name": "agentic", "requests": 200},
    "one": {"name": "azure-code", "requests": 1},
}


@pytest.fixture(params=CASES)
def made(request: pytest.FixtureRequest) -> Workload:
    return load_workload(**CASES[request.param])


def test_the_rate_adds_up_to_the_requests(made: Workload) -> None:
    steps = workload_figure(made, made.summary()).data[0]
    counted = sum(y * (b - a) for y, a, b in zip(steps.y, steps.x, steps.x[1:], strict=False))
    assert counted == pytest.approx(made.roots.sum())


def test_cumulative_curves_are_the_lengths_own(made: Workload) -> None:
    curves = workload_figure(made, made.summary()).data[1:3]
    for curve, values in zip(curves, (made.prompt_tokens, made.output_tokens), strict=True):
        assert curve.y[0] == 0.0
        assert curve.y[-1] == 1.0
        for x, y in zip(curve.x[1:], curve.y[1:], strict=True):
            assert y == pytest.approx((values <= x).mean())


def test_the_map_holds_every_request(made: Workload) -> None:
    shares = workload_figure(made, made.summary()).data[-1].customdata
    assert math.fsum(np.ravel(shares)) == pytest.approx(1.0)


def test_the_page_holds_no_nan_and_the_table(made: Workload) -> None:
    figures = made.summary()
    html = own_text(page(workload_figure(made, figures), cells(figures)))
    assert not re.search(r"\b(NaN|Infinity)\b", html)
    assert html.count("<tr>") == 12  # names, and eleven statistics
