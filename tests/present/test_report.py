"""Reports: whole, small, alone, and right about what was saved."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from plotly.offline import get_plotlyjs

from chipsim.cluster.scenario import Scenario
from chipsim.cluster.simulate import Cluster
from chipsim.errors import ChipsimError
from chipsim.explore.compare import compare_phases
from chipsim.explore.opened import open_result
from chipsim.explore.store import Stored, save
from chipsim.ops.phase import Phase
from chipsim.present.report import report, write_report
from chipsim.present.requests import run_command
from chipsim.present.rows import front_figure
from chipsim.present.simulation import facts, headline

if TYPE_CHECKING:
    from chipsim.explore.cuts import CutsResult


def figures(html: str) -> list[dict[str, object]]:
    found = re.findall(r'<script type="application/json" id="figure-\d+">(.*?)</script>', html)
    return [json.loads(text) for text in found]


@pytest.fixture
def page(curve: CutsResult, tmp_path: Path) -> str:
    return report(open_result(save(curve, tmp_path / "curve.csv"))).html()


def test_a_file_stands_alone(page: str) -> None:
    assert len(page.encode()) < 5e6
    library = re.search(r'id="plotly">([^<]*)<', page)
    assert library is not None
    assert gzip.decompress(b64decode(library[1])).decode() == get_plotlyjs()
    own = page.replace(library[1], "")
    assert not re.search(r"<(?:script|img|iframe)[^>]*\ssrc=|<link|@import|url\(", own)
    assert not re.findall(r"https?://(?!plot\.ly)[\w.]+", own)
    assert "width=device-width" in own
    assert not re.search(r"\b(NaN|Infinity)\b", own)


def test_a_file_is_the_same_each_time(curve: CutsResult, tmp_path: Path) -> None:
    stored = open_result(save(curve, tmp_path / "curve.csv"))
    assert report(stored).html() == report(stored).html()


def test_cuts_say_their_conclusion_and_command(page: str, curve: CutsResult) -> None:
    assert "<h1>Prefill is" in page
    assert "chipsim cuts --chip spad-h100" in page
    assert f"Computed again: the {len(curve.points)} saved latencies to the last digit." in page
    lines = figures(page)[0]["data"]
    assert isinstance(lines, list)
    drawn = sorted(p.slowdown for p in curve.points if p.slowdown is not None)
    assert sorted(lines[0]["y"]) == drawn


def test_another_version_is_told(curve: CutsResult, tmp_path: Path) -> None:
    stored = open_result(save(curve, tmp_path / "curve.csv"))
    table = stored.table.assign(latency_s=stored.table["latency_s"] * 1.01)
    moved = Stored(stored.path, table, stored.configuration, "0.0.1", None)
    assert (
        "Saved by chipsim 0.0.1; this version differs by up to 0.990 %" in report(moved).html()
    )


def test_a_comparison_keeps_its_totals(tmp_path: Path) -> None:
    both = compare_phases(
        "bloom-176b", Phase.decode(64, 1024), "tp=8", "spad-h100", None, "spad-decode", None
    )
    found = report(open_result(save(both, tmp_path / "both.json")))
    bars = found.figure["data"][0]
    assert bars["x"][0] == pytest.approx(1e3 * both.total_a_s)
    assert bars["x"][-1] == pytest.approx(1e3 * both.total_b_s)
    assert found.command.startswith("chipsim compare spad-h100 spad-decode")


def test_rows_of_any_kind(tmp_path: Path) -> None:
    path = tmp_path / "any.csv"
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"cost_usd": rng.random(9), "latency_s": rng.random(9), "who": "<b>"})
    table.to_csv(path, index=False)
    html = report(open_result(path)).html()
    assert "no configuration was saved" in html
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert len(figures(html)) == 2


def test_text_cannot_end_a_script(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    table = pd.DataFrame({"x": [1.0, 2.0], "y": [2.0, 1.0], "z": ["</script><b>", "k"]})
    table.to_csv(path, index=False)
    html = report(open_result(path)).html()
    assert "</script><b>" not in html


def test_a_hundred_thousand_requests_are_below_the_limit(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    count = 100_000
    ttft = rng.exponential(0.2, count)
    table = pd.DataFrame(
        {
            "arrival_s": np.arange(count) * 0.01,
            "prompt_tokens": rng.integers(1, 4000, count),
            "output_tokens": rng.integers(1, 400, count),
            "status": np.where(np.arange(count) % 50 == 0, "rejected", "finished"),
            "queue_s": ttft / 3,
            "ttft_s": ttft,
            "e2e_s": ttft * 9,
        }
    )
    told = {
        "kind": "simulation",
        "scenario": {"name": "many", "model": "llama-3.1-8b"},
        "instances": {"mixed": 4},
    }
    found = report(Stored(tmp_path / "many.parquet", table, told, "0.1.0", 1))
    path = write_report(found, tmp_path / "many.html")
    assert path.stat().st_size < 5e6
    served = table[table["status"] == "finished"]["ttft_s"]
    assert found.title.startswith("98,000 of 100,000 requests served; first token within")
    assert f"{1e3 * served.quantile(0.9):.0f} ms for 90 %" in found.title


def test_a_run_is_told_as_its_command_told_it(tmp_path: Path) -> None:
    """Saved, read back, and the same figures and headline as `simulate` prints."""
    cluster = Cluster(Scenario.load("chat-8b").changed(requests=60))
    run = cluster.run()
    found = report(open_result(save(run, tmp_path / "requests.parquet")))
    figures = run.summary()
    assert found.title == headline(figures)
    told = [cell for section in found.sections for row in section.rows for cell in row]
    assert all(value in told for _, value in facts(figures))
    assert found.command == ""  # 60 requests are not the library's scenario
    whole = {"kind": "simulation", "scenario": Scenario.load("chat-8b").plain()}
    assert run_command(whole) == "chipsim simulate chat-8b --json"


@pytest.mark.parametrize("more", [{}, {"arrival_s": False}])
def test_no_front_over_a_place_unless_asked(more: dict[str, bool]) -> None:
    table = pd.DataFrame({"arrival_s": [0.0, 1.0, 2.0], "ttft_s": [0.3, 0.2, 0.4]})
    drawn = front_figure(table, "arrival_s", "ttft_s", more=more)
    fronts = [trace["y"] for trace in drawn["data"] if trace["name"] == "front"]
    assert fronts == ([[0.3, 0.2]] if more else [])


def test_an_unknown_ending(curve: CutsResult, tmp_path: Path) -> None:
    found = report(open_result(save(curve, tmp_path / "curve.csv")))
    with pytest.raises(ChipsimError, match=r"a\.gif.*\.html"):
        write_report(found, tmp_path / "a.gif")


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "starts"), [(".png", b"\x89PNG"), (".svg", b"<svg")])
def test_a_picture_is_written(
    curve: CutsResult, tmp_path: Path, ending: str, starts: bytes
) -> None:
    pytest.importorskip("kaleido")
    found = report(open_result(save(curve, tmp_path / "curve.csv")))
    try:
        path = write_report(found, tmp_path / f"a{ending}")
    except ChipsimError as error:
        pytest.skip(str(error))
    assert path.read_bytes().startswith(starts)
