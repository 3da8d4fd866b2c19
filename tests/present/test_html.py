"""Files that need nothing but themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from plotly.offline import get_plotlyjs

from chipsim import ChipsimError
from chipsim.present.cuts import cuts_figure
from chipsim.present.html import page, write_figure
from chipsim.present.records import cuts_rows
from chipsim.present.tables import cuts_cells

if TYPE_CHECKING:
    from chipsim.explore.cuts import CutsResult


def own_text(html: str) -> str:
    """A page without the library inside it."""
    library = get_plotlyjs()
    assert library in html
    return html.replace(library, "")


def test_a_page_stands_alone(curve: CutsResult) -> None:
    html = page(cuts_figure(curve))
    assert len(html.encode()) < 5e6
    own = own_text(html)
    assert not re.search(r"<(?:script|img|iframe)[^>]*\ssrc=|<link|@import|url\(", own)
    assert not re.findall(r"https?://(?!plot\.ly)[\w.]+", own)
    assert "width=device-width" in own


def test_a_page_holds_no_nan(grid: CutsResult, largest: CutsResult) -> None:
    for run in (grid, largest):
        assert not re.search(r"\b(NaN|Infinity)\b", own_text(page(cuts_figure(run))))


def test_a_page_is_the_same_each_time(curve: CutsResult) -> None:
    assert page(cuts_figure(curve)) == page(cuts_figure(curve))


def test_text_is_escaped(curve: CutsResult) -> None:
    html = page(cuts_figure(curve), [["<b>"], ["1 & 2"]], ["a < b"])
    assert "<th>&lt;b&gt;</th>" in html
    assert "<td>1 &amp; 2</td>" in html
    assert "<p>a &lt; b</p>" in html


def test_the_figures_fold_out_as_a_table(curve: CutsResult) -> None:
    html = page(cuts_figure(curve), cuts_cells(cuts_rows([curve]), largest=False))
    assert html.count("<tr>") == 1 + len(curve.points)
    assert f"<td>{curve.points[0].slowdown:.3f}</td>" in html


def test_an_unknown_ending_is_refused(curve: CutsResult, tmp_path: Path) -> None:
    with pytest.raises(ChipsimError, match=r"a\.gif.*\.html"):
        write_figure(cuts_figure(curve), tmp_path / "a.gif")


def test_no_browser_is_said(
    curve: CutsResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("kaleido")
    figure = cuts_figure(curve)

    def fail(*_: object, **__: object) -> bytes:
        raise RuntimeError("Kaleido requires Google Chrome to be installed.")

    monkeypatch.setattr(type(figure), "to_image", fail)
    with pytest.raises(ChipsimError, match="need Chromium or Chrome"):
        write_figure(figure, tmp_path / "a.png")
    assert not (tmp_path / "a.png").exists()


@pytest.mark.slow
def test_a_picture_is_written(curve: CutsResult, tmp_path: Path) -> None:
    pytest.importorskip("kaleido")
    try:
        path = write_figure(cuts_figure(curve), tmp_path / "a.png")
    except ChipsimError as error:
        pytest.skip(str(error))
    assert path.read_bytes().startswith(b"\x89PNG")
