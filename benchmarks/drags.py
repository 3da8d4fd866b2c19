"""Speed of the dashboard: from a drag to its picture."""

from __future__ import annotations

import shutil
import statistics
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.figures import Figure, median_seconds
from chipsim.present.dashboard import page_cuts, serve
from chipsim.present.dashboard.state import defaults

TARGET_S = 0.15

MEASURE = """() => {
  window.moved = 0; window.took = [];
  addEventListener('pointermove', () => { window.moved = performance.now(); }, true);
  document.querySelector('#cuts-curve-graph .js-plotly-plot').on('plotly_afterplot',
    () => window.took.push(performance.now() - window.moved));
}"""


def drags() -> Iterator[Figure]:
    """What the server computes, and what a reader waits for."""
    state = defaults(page_cuts.FIELDS)
    state["axis"] = "cores"
    page_cuts.answer(state, state, "cores")
    places = [{**state, "cores": 100.0 - i / 4} for i in range(1, 160)]
    calls = [partial(page_cuts.answer, place, place, "cores") for place in places]
    yield Figure("dashboard, answer to a drag", median_seconds(calls), target=TARGET_S / 3)
    seconds = _in_a_browser()
    if seconds is not None:
        yield Figure("dashboard, drag to picture", seconds, target=TARGET_S)


def _in_a_browser() -> float | None:
    """Median seconds from a move of the pointer to the curve; None without a browser."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        return None
    from playwright.sync_api import sync_playwright

    bound = serve.server({})
    threading.Thread(target=bound.serve_forever, daemon=True).start()
    try:
        with sync_playwright() as playwright:
            page = playwright.chromium.launch(executable_path=found).new_page()
            page.goto(f"http://127.0.0.1:{bound.server_port}/")
            page.wait_for_function("document.querySelector('#cuts-power-command')?.textContent")
            return _dragged(page)
    finally:
        bound.shutdown()
        bound.server_close()


def _dragged(page: Any) -> float:
    page.wait_for_timeout(2000)
    page.evaluate(MEASURE)
    thumb = page.locator("#cuts-cores [role=slider]")
    thumb.scroll_into_view_if_needed()
    box = thumb.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 25):
        page.mouse.move(x - 3 * step, y)
        page.wait_for_timeout(400)  # one picture for each move
    page.mouse.up()
    took: list[float] = page.evaluate("window.took")
    return statistics.median(took) / 1e3
