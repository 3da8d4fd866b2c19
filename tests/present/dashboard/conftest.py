"""A dashboard that is served, and a browser that reads it."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

SCREENSHOTS = Path(__file__).parents[3] / "results" / "screenshots"
"""Where pictures of pages go when CI keeps them."""

QUIET = ("ReadPixels", "WebGL", "GPU stall")
"""Parts of what a browser without a graphics card says of itself, not of the page."""


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a dashboard with a saved grid of cuts."""
    pytest.importorskip("dash", reason="the dashboard needs dash")
    from chipsim import Phase, cuts
    from chipsim.cluster.engine import Requests, flat_steps, instances, pools, run
    from chipsim.explore.opened import open_result
    from chipsim.explore.store import save
    from chipsim.present.dashboard import serve

    grid = cuts(
        "spad-h100", "bloom-176b", Phase.decode(64, 1024),
        {"cores": [1, 0.75, 0.5], "memory_bandwidth": [1, 0.8, 0.6]}, plan="tp=8",
    )  # fmt: skip
    # Or the first reader of the cluster's page waits until its kernels are compiled.
    run(Requests.of([0.0], [1], [2]), flat_steps(0.1, 0.1, 8, 8), pools(), instances([0]))
    path = save(grid, tmp_path_factory.mktemp("results") / "grid.parquet")
    bound = serve.server({path.name: open_result(path)})
    thread = threading.Thread(target=bound.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{bound.server_port}"
    bound.shutdown()
    thread.join(timeout=10)
    bound.server_close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """An installed Chromium; without one the test is skipped, and says why."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium or Chrome is installed")
    with sync.sync_playwright() as playwright:
        try:
            opened = playwright.chromium.launch(executable_path=found)
        except sync.Error as error:
            pytest.skip(f"{found} does not start: {str(error).splitlines()[0]}")
        yield opened
        opened.close()


class Reader:
    """Somebody who reads the dashboard: one window, and what it complains of."""

    def __init__(self, browser: Browser, address: str, *, dark: bool, width: int) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            accept_downloads=True,
        )
        self.address = address
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(90_000)
        self.complaints: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", self._miss)
        self.page.on("request", self._watch)

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning") and not any(q in message.text for q in QUIET):
            self.complaints.append(message.text)

    def _miss(self, asked: Any) -> None:
        if asked.failure != "net::ERR_ABORTED":  # a page that is left asks for no more
            self.complaints.append(f"{asked.url}: {asked.failure}")

    def _watch(self, asked: Any) -> None:
        if not asked.url.startswith((self.address, "data:", "blob:")):
            self.complaints.append(f"asked elsewhere: {asked.url}")

    def open(self, path: str, card: str) -> Page:
        """Go to a page and wait for a card's picture."""
        self.page.goto(self.address + path)
        self.drawn(card)
        return self.page

    def drawn(self, card: str) -> None:
        """Wait until a card has its command, its picture, and nothing is on its way."""
        self.page.wait_for_function(
            """card => {
              const told = document.getElementById(`${card}-title`);
              const plot = document.querySelector(`#${card}-graph .js-plotly-plot`);
              return told?.textContent && plot?.data?.length
                && !document.querySelector('[data-dash-is-loading=true]');
            }""",
            arg=card,
        )

    def text(self, selector: str) -> str:
        """What stands at a place."""
        return self.page.locator(selector).inner_text().replace("\N{NO-BREAK SPACE}", " ")

    def keep(self, name: str) -> None:
        """A picture of the page, where CI asks for them."""
        if os.environ.get("CI"):
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


@pytest.fixture
def reader(browser: Browser, address: str) -> Iterator[Reader]:
    """Somebody at a desk."""
    somebody = Reader(browser, address, dark=False, width=1440)
    yield somebody
    somebody.context.close()
    assert somebody.complaints == []


@pytest.fixture
def stranger(browser: Browser, address: str) -> Iterator[Reader]:
    """Somebody else, with a phone, at night."""
    somebody = Reader(browser, address, dark=True, width=390)
    yield somebody
    somebody.context.close()
    assert somebody.complaints == []
