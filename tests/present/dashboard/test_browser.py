"""The dashboard as its readers meet it, in a real browser."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from chipsim import Chip, Phase, estimate
from chipsim.explore.front import pareto_front
from chipsim.explore.store import save, sidecar

if TYPE_CHECKING:
    from chipsim.explore.cuts import CutsResult
    from tests.present.dashboard.conftest import Reader

pytestmark = pytest.mark.slow

FIRST = {
    "/": "cuts-curve",
    "/roofline": "roofline-prefill",
    "/chip": "chip-floor",
    "/cluster?requests=300&rate=20&count=2": "cluster-waits",
    "/explorer": "explorer-front",
    "/validation?suite=silicon-layer": "validation-points",
}
"""Pages and the card that each is read by first."""

SETTLED = """() => {
  const slider = document.querySelector('#cuts-cores [role=slider]');
  const part = slider.getAttribute('aria-valuenow');
  const told = ['curve', 'power'].map(c => document.querySelector(`#cuts-${c}-link`).href);
  return told.every(link => new URL(link).searchParams.get('cores') === part)
    && new URL(location).searchParams.get('cores') === part;
}"""
"""The pictures, and the address, are those of the place where the slider was left."""


@pytest.mark.parametrize("path", FIRST)
def test_each_page_opens(path: str, reader: Reader, stranger: Reader) -> None:
    name = re.split(r"[/?]", path)[1] or "cuts"
    for who, look in ((reader, "light"), (stranger, "dark-phone")):
        page = who.open(path, FIRST[path])
        page.wait_for_timeout(1500)  # the other cards of the page
        size = page.viewport_size
        assert size is not None
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert page.locator("header a.current").count() == 1
        who.keep(f"{name}-{look}")
        for card in page.locator(".card footer code").all():
            assert card.inner_text().startswith("chipsim ") or not card.inner_text()
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(255, 255, 255)" if look == "light" else "rgb(20, 24, 29)")


def test_a_drag_moves_every_picture(reader: Reader) -> None:
    page = reader.open("/", "cuts-curve")
    before = [reader.text(f"#cuts-{card}-title") for card in ("curve", "cost", "power")]
    thumb = page.locator("#cuts-cores [role=slider]").bounding_box()
    assert thumb is not None
    x, y = thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 15):
        page.mouse.move(x - 5 * step, y)
        page.wait_for_timeout(120)
    page.mouse.up()
    page.wait_for_function(SETTLED)  # a busy machine draws the last move late, never not at all
    after = [reader.text(f"#cuts-{card}-title") for card in ("curve", "cost", "power")]
    assert all(old != new for old, new in zip(before, after, strict=True))
    # What is read at the end is what the model says of that chip.
    part = int(page.locator("#cuts-cores [role=slider]").get_attribute("aria-valuenow") or 0)
    asked = ("bloom-176b", Phase.decode(64, 1024), "tp=8")
    cut = estimate(Chip.load("spad-h100").scaled(cores=part / 100), *asked).latency_s
    slowdown = cut / estimate("spad-h100", *asked).latency_s
    assert f"{slowdown:.2f}× slower with {part} % of the cores" in after[0]
    assert f"cores={part}" in page.url
    reader.keep("cuts-dragged")


def test_a_move_that_meets_an_answer_is_not_lost(reader: Reader) -> None:
    """Dash calls once for both, and names the control that the answer has set."""
    page = reader.open("/", "cuts-curve")
    page.evaluate(
        """() => {
          const ask = chipsim.ask;
          chipsim.ask = (...given) => { window.asked = given; return ask(...given); };
        }"""
    )
    page.locator("#cuts-cores [role=slider]").press("ArrowLeft")
    page.wait_for_function(SETTLED)
    page.evaluate(
        """() => {
          const [page, names, values] = window.asked;
          dash_clientside.callback_context =
            { triggered: [{ prop_id: 'cuts-axis.value' }], triggered_id: 'cuts-axis' };
          chipsim.ask(page, names, values.map((v, i) => names[i] === 'cores' ? 37 : v));
        }"""
    )
    page.wait_for_function(
        "document.querySelector('#cuts-curve-link').href.includes('cores=37')"
    )
    assert "with 37 % of the cores" in reader.text("#cuts-curve-title")


def test_an_address_brings_the_page_back(reader: Reader) -> None:
    page = reader.open("/?memory_bandwidth=45&cores=50&batch=8", "cuts-curve")
    told = reader.text("#cuts-curve-title")
    assert "45 % of the memory bandwidth" in told
    assert "50 % of the cores" in told
    page.reload()
    reader.drawn("cuts-curve")
    assert reader.text("#cuts-curve-title") == told
    page.get_by_role("button", name="Uncut").click()
    page.wait_for_function(
        "!document.querySelector('#cuts-curve-title').textContent.includes('45')"
    )
    assert "on the whole chip" in reader.text("#cuts-curve-title")


def test_pages_can_be_left_and_entered_again(reader: Reader) -> None:
    page = reader.open("/?cores=50", "cuts-curve")
    for name, card in (("Roofline", "roofline-prefill"), ("Cuts", "cuts-power")):
        page.get_by_role("link", name=name, exact=True).click()
        reader.drawn(card)
    assert "on the whole chip" in reader.text("#cuts-curve-title")


def test_the_theme_is_kept(reader: Reader) -> None:
    page = reader.open("/roofline", "roofline-prefill")
    page.locator("#theme-button").click()
    page.wait_for_function(
        "document.querySelector('#roofline-prefill-graph .js-plotly-plot')"
        ".layout.template.layout.font.color === '#e9ecef'"
    )
    page.reload()
    reader.drawn("roofline-prefill")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_field_of_a_chip_is_edited(reader: Reader) -> None:
    page = reader.open("/chip", "chip-floor")
    field = page.locator("""[id='{"path":"cores","type":"chip-field"}']""")
    field.fill("66")
    field.press("Enter")
    page.wait_for_function(
        "document.querySelector('#chip-floor-title').textContent.includes('edited')"
    )
    assert "no longer hold" in reader.text("#chip-remarks")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download YAML").click()
    text = Path(saved.value.path()).read_text(encoding="utf-8")
    assert "cores: 66" in text
    field.fill("lots")
    field.press("Enter")
    page.wait_for_function("document.querySelector('#chip-remarks').innerText.includes('lots')")
    assert "cores" in reader.text("#chip-remarks")


def upload(who: Reader, files: list[tuple[str, bytes]]) -> None:
    """Drop files on the explorer."""
    payload: Any = [
        {"name": name, "mimeType": "application/octet-stream", "buffer": content}
        for name, content in files
    ]
    who.page.locator("#explorer-upload input[type=file]").set_input_files(payload)


@pytest.fixture(scope="module")
def result(
    curve: CutsResult, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[str, bytes]]:
    path = save(curve, tmp_path_factory.mktemp("upload") / "mine.csv")
    return [(each.name, each.read_bytes()) for each in (path, sidecar(path))]


def test_an_uploaded_result_is_its_readers_alone(
    reader: Reader, stranger: Reader, result: list[tuple[str, bytes]]
) -> None:
    page = reader.open("/explorer", "explorer-front")
    stranger.open("/explorer", "explorer-front")
    upload(reader, result)
    page.wait_for_function(
        "document.querySelector('#explorer-told').innerText.includes('mine.csv')"
    )
    reader.drawn("explorer-front")
    assert reader.text("#explorer-told") == "3 of 3 rows of mine.csv"
    stranger.page.reload()
    stranger.drawn("explorer-front")
    assert "mine.csv" not in stranger.page.content()
    assert "mine" not in page.url
    held = page.evaluate("document.querySelector('#explorer-told').innerText")
    assert held != stranger.text("#explorer-told")


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ([("bad.parquet", b"PAR1 and then nothing PAR1")], "bad.parquet: is damaged"),
        ([("bad.json", b'{"rows": [{"a": NaN}]}')], "NaN is no number"),
        ([("bad.csv", b"a,b\n"), ("two.csv", b"a,b\n")], "upload one file of rows"),
    ],
)
def test_a_damaged_upload_is_told(
    reader: Reader, files: list[tuple[str, bytes]], says: str
) -> None:
    page = reader.open("/explorer", "explorer-front")
    upload(reader, files)
    page.wait_for_selector("#explorer-remarks .remark")
    assert says in reader.text("#explorer-remarks")
    assert "42 of 42 rows" in reader.text("#explorer-told")  # what was there still is


def test_rows_of_another_result_are_told(
    reader: Reader, result: list[tuple[str, bytes]]
) -> None:
    page = reader.open("/explorer", "explorer-front")
    (name, rows), side = result
    upload(reader, [(name, rows.replace(b"memory", b"compute")), side])
    page.wait_for_selector("#explorer-remarks .remark")
    assert "not the rows that" in reader.text("#explorer-remarks")


def test_a_hundred_thousand_rows(reader: Reader) -> None:
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "cost_usd": rng.lognormal(7, 0.4, 100_000),
            "latency_s": rng.lognormal(-3, 0.5, 100_000),
            "tdp_w": rng.uniform(200, 900, 100_000),
            "bound": rng.choice(["memory", "compute"], 100_000),
        }
    )
    buffer = io.BytesIO()
    table.to_parquet(buffer)
    page = reader.open("/explorer", "explorer-front")
    upload(reader, [("many.parquet", buffer.getvalue())])
    page.wait_for_function(
        "document.querySelector('#explorer-told').innerText.includes('100,000 rows')"
    )
    reader.drawn("explorer-front")
    front = pareto_front(table["cost_usd"].to_numpy(), table["latency_s"].to_numpy())
    assert reader.text("#explorer-front-title").startswith(
        f"{len(front)} rows are on the front"
    )
    page.locator("#explorer-filter").fill("bound = memory and tdp_w < 300")
    page.locator("#explorer-filter").press("Enter")
    left = int(((table["bound"] == "memory") & (table["tdp_w"] < 300)).sum())
    page.wait_for_function(
        f"document.querySelector('#explorer-told').innerText.startsWith('{left:,} of')"
    )
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download CSV").click()
    assert len(pd.read_csv(saved.value.path())) == left
    reader.keep("explorer-many")


def test_a_click_shows_the_whole_row(reader: Reader) -> None:
    page = reader.open("/explorer?result=grid.parquet", "explorer-front")
    page.wait_for_timeout(1000)
    place = page.evaluate(
        """() => {
          const plot = document.querySelector('#explorer-front-graph .js-plotly-plot');
          plot.scrollIntoView();
          const front = plot.data.find(t => t.name === 'front');
          const box = plot.getBoundingClientRect(), {xaxis, yaxis} = plot._fullLayout;
          return {row: front.customdata[0],
            x: box.left + xaxis._offset + xaxis.d2p(front.x[0]),
            y: box.top + yaxis._offset + yaxis.d2p(front.y[0])};
        }"""
    )
    page.mouse.move(place["x"] - 3, place["y"] - 3)
    page.mouse.move(place["x"], place["y"])
    page.wait_for_timeout(300)
    page.mouse.click(place["x"], place["y"])
    page.wait_for_selector("#explorer-detail table")
    assert f"Row {place['row']}" in reader.text("#explorer-detail")
    assert "the same" in reader.text("#explorer-detail")
    page.locator("#explorer-detail summary").click()
    assert '"memory_bandwidth"' in reader.text("#explorer-detail pre")
    page.wait_for_url(re.compile(rf"row={place['row']}"))


def test_a_report_opens_by_itself(browser: object, curve: CutsResult, tmp_path: Path) -> None:
    from playwright.sync_api import Browser

    from chipsim.explore.opened import open_result
    from chipsim.present.report import report, write_report

    assert isinstance(browser, Browser)
    path = write_report(
        report(open_result(save(curve, tmp_path / "a.csv"))), tmp_path / "a.html"
    )
    context = browser.new_context(offline=True)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request", lambda asked: wrong.append(asked.url) if "file:" not in asked.url else None
    )
    page.goto(path.as_uri())
    page.wait_for_selector("[data-figure] .main-svg")
    assert page.locator("[data-figure] .main-svg").count() >= 3
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "document.querySelector('[data-figure]').layout.template.layout.font.color"
        " === '#e9ecef'"
    )
    context.close()
    assert [each for each in wrong if not each.startswith(("blob:", "file:"))] == []
