"""What pages answer, against the model; links, edits, uploads, and who may ask."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("dash")

from chipsim import Chip, Phase, chip_cost, cuts, estimate
from chipsim.cli.run import run
from chipsim.cost.power import power
from chipsim.errors import ChipsimError
from chipsim.explore.opened import open_result
from chipsim.explore.store import save, sidecar
from chipsim.present.dashboard import (
    asking,
    page_chip,
    page_cluster,
    page_cuts,
    page_explorer,
    page_roofline,
    page_validation,
    parts,
    serve,
)
from chipsim.present.dashboard.app import PAGES, make_app
from chipsim.present.dashboard.brush import brushed, kept_ranges
from chipsim.present.dashboard.edits import edited, edits_text, leaves, parse_edits
from chipsim.present.dashboard.shelf import Shelf, uploaded
from chipsim.present.dashboard.state import defaults, query_of, read_state
from chipsim.present.sketch import sketch

if TYPE_CHECKING:
    from chipsim.explore.cuts import CutsResult

TITLE, LEAD, FIGURE, COMMAND, LINK = range(5)


def ask(page: Any, **changes: Any) -> dict[str, Any]:
    return defaults(page.FIELDS) | changes


def cuts_answer(**changes: Any) -> dict[str, Any]:
    state = ask(page_cuts, **changes)
    return page_cuts.answer(state, state, state["axis"])


def named(figure: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(t for t in figure["data"] if t["name"] == name)
    return found


def test_cuts_show_the_model() -> None:
    found = cuts_answer(memory_bandwidth=60, cores=50)
    chip = Chip.load("spad-h100").scaled(cores=0.5, memory_bandwidth=0.6)
    step = estimate(chip, "bloom-176b", Phase.decode(64, 1024), "tp=8")
    whole = estimate("spad-h100", "bloom-176b", Phase.decode(64, 1024), "tp=8")
    slowdown = step.latency_s / whole.latency_s
    curve, breakdown, roofline, cost, watts = (card[FIGURE] for card in found["cards"])
    assert named(curve, "this chip")["y"] == [slowdown]
    assert sum(bar["x"][1] for bar in breakdown["data"]) == pytest.approx(1e3 * step.latency_s)
    rates = [r.estimate.flops / r.estimate.latency_s for r in step.rows if r.group == "qkv"]
    assert named(roofline, "QKV GEMM")["y"] == rates
    base = Chip.load("spad-h100")
    dollars = sum(bar["x"][1] for bar in cost["data"])
    assert dollars == pytest.approx(chip_cost(chip, base=base).total_usd)
    assert sum(bar["x"][1] for bar in watts["data"]) == pytest.approx(
        power(chip, base=base).tdp_w
    )
    assert f"{slowdown:.2f}× slower" in found["cards"][0][TITLE]


def test_the_command_of_a_cut_gives_its_curve(capsys: pytest.CaptureFixture[str]) -> None:
    found = cuts_answer(axis="cores", memory_bandwidth=60)
    card = found["cards"][0]
    assert run([*shlex.split(card[COMMAND])[1:], "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert named(card[FIGURE], "chipsim")["y"] == [row["slowdown"] for row in rows]


def test_references_stand_where_only_one_resource_is_cut() -> None:
    alone = cuts_answer(axis="cores", cores=50)["cards"][0][FIGURE]
    assert named(alone, "SPAD paper")["y"]
    both = cuts_answer(axis="cores", cores=50, l2=50)["cards"][0][FIGURE]
    assert not [t for t in both["data"] if t["name"] == "SPAD paper"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": "llama-3.1-405b", "plan": "tp=1"}, "lacks"),
        ({"plan": "tp=7"}, "tp"),
        ({"plan": "nonsense"}, "nonsense"),
        ({"precision": "fp17"}, "fp17"),
        ({"chip": "rtx-4090", "plan": "tp=1", "axis": "link_bandwidth"}, ""),
    ],
)
def test_what_cannot_be_is_said(changes: dict[str, Any], says: str) -> None:
    found = cuts_answer(**changes)
    told = json.dumps(found, default=str)
    assert says in told
    assert found["remarks"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.NAME)
def test_a_link_reproduces_the_state(page: Any) -> None:
    state = defaults(page.FIELDS)
    for name, field in page.FIELDS.items():
        if hasattr(field, "names"):
            state[name] = field.names()[-1]
        elif hasattr(field, "low"):
            state[name] = type(field.default)(field.high)
        else:
            state[name] = "cost_usd <= 900;x=a&b"
    assert read_state(page.FIELDS, query_of(page.FIELDS, state)) == (state, [])


@pytest.mark.parametrize(
    "search",
    [
        "?chip=/etc/passwd",
        "?batch=-3",
        "?batch=nan",
        "?batch=x",
        "?nonesuch=1",
        "?" + "x" * 9000,
    ],
)
def test_a_bad_link_is_told_and_passed_over(search: str) -> None:
    state, told = read_state(page_cuts.FIELDS, search)
    assert state == defaults(page_cuts.FIELDS)
    assert len(told) == 1


def test_cuts_link_holds_what_was_dragged() -> None:
    link = cuts_answer(memory_bandwidth=45, batch=8)["cards"][0][LINK]
    assert parse_qs(urlsplit(link).query) == {"memory_bandwidth": ["45"], "batch": ["8"]}


def test_roofline_points_are_operators(capsys: pytest.CaptureFixture[str]) -> None:
    state = ask(page_roofline, beside="spad-prefill")
    found = page_roofline.answer(state, state, state["beside"])
    card = found["cards"][0]
    assert run(shlex.split(card[COMMAND])[1:]) == 0
    rows = json.loads(capsys.readouterr().out)["operators"]
    rates = [r["flops"] / r["latency_s"] for r in rows if r["group"] == "mlp"]
    assert named(card[FIGURE], "MLP GEMMs")["y"] == pytest.approx(rates)
    assert "spad-prefill" in card[TITLE]
    assert "lacks" in json.dumps(found["remarks"], default=str)  # decode does not fit beside


def test_a_chip_is_edited_field_by_field() -> None:
    edits = {"memory.bandwidth": "2 TB/s", "cores": "100"}
    chip, base, data = edited("spad-h100", edits)
    assert (chip.memory.bandwidth, chip.cores, chip.tdp) == (2e12, 100, None)
    assert base == Chip.load("spad-h100")
    assert parse_edits(edits_text(edits)) == edits
    assert dict(leaves(data))["memory.bandwidth"] == "2 TB/s"
    found = page_chip.answer("spad-h100", edits, ask(page_chip))
    cost = found["cards"][2][FIGURE]
    assert sum(bar["x"][0] for bar in cost["data"]) == pytest.approx(
        chip_cost(chip, base=base).total_usd
    )
    floor = found["cards"][0][FIGURE]["data"][0]
    leaf = {p for p in floor["parents"] if p}
    whole = [v for i, v in zip(floor["ids"], floor["values"], strict=True) if i not in leaf]
    assert leaf == {"cores"}
    assert min(whole) > 0


def test_an_execution_may_be_edited_without_a_new_area() -> None:
    chip, base, _ = edited("spad-h100", {"execution": "ideal"})
    assert base is None
    assert chip.die_area == 814


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        ({"cores": "many"}, "cores"),
        ({"memory.bandwidth": "2 TB"}, "memory.bandwidth"),
        ({"core.sram": "-1 KiB"}, "core.sram"),
        ({"execution": "/etc/passwd"}, "no path"),
        ({"execution": "../x.yaml"}, "no path"),
        ({"floorplan.constants": "/etc/hostname"}, "no path"),
        ({"process": "/etc/hostname"}, "no path"),
        ({"cores.x": "1"}, "a field of the file"),
        ({"nonesuch": "1"}, "nonesuch"),
    ],
)
def test_edits_that_cannot_be(edits: dict[str, str], says: str) -> None:
    with pytest.raises(ChipsimError, match=says):
        edited("spad-h100", edits)


@pytest.fixture(scope="module")
def grid() -> CutsResult:
    return cuts(
        "spad-h100", "bloom-176b", Phase.decode(64, 1024),
        {"cores": [1, 0.5], "memory_bandwidth": [1, 0.6]}, plan="tp=8",
    )  # fmt: skip


@pytest.fixture
def app(grid: CutsResult, tmp_path: Path) -> Iterator[Any]:
    made = make_app({"grid.csv": open_result(save(grid, tmp_path / "grid.csv"))})
    with made.server.test_request_context("/"):
        yield made


CHOSEN = {"x": "cost_usd", "y": "latency_s", "more_x": "", "more_y": "", "colour": ""}
HELD = {"name": "grid.csv", "title": "grid.csv"}


@pytest.mark.usefixtures("app")
def test_the_explorer_filters_and_marks(grid: CutsResult) -> None:
    found = page_explorer.answer(HELD, CHOSEN, ["fraction", "latency_s"], "fraction < 1", 2)
    front, lines = (card[FIGURE] for card in found["cards"])
    assert found["told"] == "2 of 4 rows of grid.csv"
    assert named(front, "row 2")["y"] == [grid.points[2].latency_s]
    kept = lines["data"][0]["dimensions"][0]["constraintrange"]
    assert kept == [grid.frame()["fraction"].min(), 1.0]
    assert "result=grid.csv" in found["cards"][0][LINK]


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize("kept", ["nonesuch < 1", "fraction < x", "fraction", "fraction > 9"])
def test_the_explorer_says_what_a_filter_lacks(kept: str) -> None:
    found = page_explorer.answer(HELD, CHOSEN, ["fraction"], kept, None)
    assert found["cards"][0][TITLE]
    assert found["cards"][0][FIGURE]["data"] == []


@pytest.mark.usefixtures("app")
def test_a_row_in_full_can_be_computed_again(grid: CutsResult) -> None:
    told = json.dumps(page_explorer._detail(page_explorer._result(HELD), 3), default=str)
    assert "Computed again" in told
    assert "the same" in told
    assert str(grid.points[3].answer.batch) in told


def test_brushes_become_conditions() -> None:
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]})
    axes = ["a", "b"]
    text, _ = brushed(table, axes, "b = x", {"dimensions[0].constraintrange": [[1.5, 2.5]]})
    assert text == "b = x and a >= 1.5 and a <= 2.5"
    assert kept_ranges(table, axes, text) == {"a": (1.5, 2.5)}
    assert brushed(table, axes, text, {"dimensions[0].constraintrange": None})[0] == "b = x"
    assert (
        brushed(table, axes, "", {"dimensions[1].constraintrange": [[-0.2, 0.4]]})[0] == "b = x"
    )
    moved = {"dimensions": [[{"label": "B"}, {"label": "A"}]]}
    assert brushed(table, axes, "", moved) == ("", ["b", "a"])


def data_url(content: bytes) -> str:
    return f"data:application/octet-stream;base64,{base64.b64encode(content).decode()}"


def test_an_upload_with_its_sidecar(grid: CutsResult, tmp_path: Path) -> None:
    path = save(grid, tmp_path / "mine.parquet")
    side = sidecar(path)
    names = [side.name, path.name]
    stored = uploaded(names, [data_url(side.read_bytes()), data_url(path.read_bytes())])
    assert stored.configuration["kind"] == "cuts"
    assert (
        uploaded(["../../mine.parquet"], [data_url(path.read_bytes())]).path.name == path.name
    )


@pytest.mark.parametrize(
    ("names", "contents", "says"),
    [
        ([], [], "0 given"),
        (["a.csv", "b.csv"], [data_url(b"a\n1\n")] * 2, "2 given"),
        (["a.csv"], ["data:,not base64!"], "did not arrive whole"),
        (["a.exe"], [data_url(b"MZ")], "a name ending in"),
        (["a.parquet"], [data_url(b"PAR1 no")], "damaged"),
    ],
)
def test_uploads_that_are_refused(names: list[str], contents: list[str], says: str) -> None:
    with pytest.raises(ChipsimError, match=says):
        uploaded(names, contents)


def test_a_shelf_names_nothing_and_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    from chipsim.explore.store import Stored
    from chipsim.present.dashboard import shelf as module

    monkeypatch.setattr(module, "MOST_HELD", 3000)
    shelf = Shelf({})
    results = [
        Stored(Path(f"{i}.csv"), pd.DataFrame({"x": np.zeros(120)}), {}, "", None)
        for i in range(4)
    ]
    names = [shelf.put(each) for each in results]
    assert len(set(names)) == 4
    assert all(len(name) >= 24 for name in names)
    assert shelf.get(names[-1]) is results[-1]
    with pytest.raises(ChipsimError, match="no longer held"):
        shelf.get(names[0])
    with pytest.raises(ChipsimError, match="no longer held"):
        shelf.get("guess")
    assert shelf.given == {}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "127.0.0.1:8050"}, 200),
        ({"Host": "localhost:8050"}, 200),
        ({"Host": "evil.example:8050"}, 403),
        ({"Host": "127.0.0.1:8050", "Origin": "http://evil.example"}, 403),
        ({"Host": "127.0.0.1:8050", "Origin": "http://127.0.0.1:8050"}, 200),
    ],
)
def test_who_may_ask(headers: dict[str, str], status: int) -> None:
    with make_app().server.test_client() as client:
        answer = client.get("/", headers=headers)
    assert answer.status_code == status
    assert answer.headers["X-Frame-Options"] == "DENY"


def test_a_request_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_app().server
    monkeypatch.setitem(server.config, "MAX_CONTENT_LENGTH", 1000)
    with server.test_client() as client:
        answer = client.post("/_dash-update-component", json={"x": "y" * 5000})
    assert answer.status_code == 413


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4"])  # noqa: S104 - refused
def test_other_machines_need_a_flag(host: str) -> None:
    with pytest.raises(ChipsimError, match=r"no password.*--expose"):
        serve.address(host, expose=False)
    serve.address(host, expose=True)


def test_a_port_that_is_taken() -> None:
    first = serve.server({})
    try:
        with pytest.raises(ChipsimError, match=f"--port {first.server_port}"):
            serve.server({}, port=first.server_port)
    finally:
        first.server_close()


def test_validation_shows_the_suite() -> None:
    found = page_validation.answer("silicon-layer", "")
    assert "silicon-layer" in json.dumps(found["table"], default=str)
    assert found["card"][COMMAND] == "chipsim validate silicon-layer --json"
    assert found["card"][FIGURE]["data"]


@pytest.mark.parametrize(
    ("suite", "told"),
    [
        ("silicon", "chipsim validate silicon --json"),
        ("silicon-transfer", "chipsim validate silicon --transfer --json"),
    ],
)
def test_validation_shows_measured_operators(suite: str, told: str) -> None:
    found = page_validation.answer(suite, "")
    assert "b200-sxm" in json.dumps(found["table"], default=str)
    assert found["card"][COMMAND] == told
    assert "Measured" in json.dumps(found["card"][FIGURE]["layout"], default=str)


def test_no_line_breaks_before_a_unit() -> None:
    told = parts.filled(sketch([], "11 % of 2 ms, 3 pools"), "", "?")[0]
    assert told == "11\N{NO-BREAK SPACE}% of 2\N{NO-BREAK SPACE}ms, 3 pools"


@pytest.mark.slow
@pytest.mark.parametrize("split", ["together", "apart"])
def test_a_cluster_is_what_the_command_says(
    split: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import yaml

    state = ask(page_cluster, split=split, count=2, decode_count=2, requests=300, rate=20)
    found = page_cluster.answer(state)
    file = tmp_path / "scenario.yaml"
    file.write_text(yaml.safe_dump(page_cluster.description(state)))
    assert run(["simulate", str(file), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    told = json.dumps(found["tiles"], default=str)
    assert f"{1e3 * figures['ttft_s']['p99']:.3g}"[:3] in told
    assert f"${figures['cost_usd_per_hour']:,.2f}" in told
    frontier = page_cluster.around(state)
    assert frontier[FIGURE]["data"]
    assert "instances" in frontier[COMMAND]


def test_a_cluster_that_cannot_be_is_said() -> None:
    found = page_cluster.answer(ask(page_cluster, model="llama-3.1-405b"))
    assert "does not fit" in json.dumps(found["remarks"], default=str)


def test_cleared_controls_are_as_at_the_start() -> None:
    state = ask(page_cuts) | {"batch": None, "chip": None, "length": ""}
    assert asking.asked(state) == asking.asked(ask(page_cuts))
