"""Timelines against Chrome's Trace Event Format, and series that add up to the run."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from chipsim.cluster.simulate import Cluster
from chipsim.cluster.timeline import chrome_json, series
from chipsim.present.dashboard.cluster_pictures import timeline_figure
from chipsim.present.simulation import simulation_figure
from chipsim.present.sketch import graph
from tests.cluster.test_simulate import description, scenario

if TYPE_CHECKING:
    from pathlib import Path

    from chipsim.cluster.results import Simulation

REQUIRED = {
    "M": {"name", "pid", "tid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
    "s": {"name", "cat", "pid", "tid", "ts", "id"},
    "f": {"name", "cat", "pid", "tid", "ts", "id", "bp"},
}
"""Fields of the kinds of events that there are, by the format's own list."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Simulation:
    """Two senders whose transfers overlap, and prompts that begin alike."""
    folder = tmp_path_factory.mktemp("timeline")
    pools = description()["pools"]
    pools["prefill"] |= {"instances": 2, "prefix_cache": "rank"}
    handoff = {"bandwidth": "100 MB/s", "contention": "none"}
    made = scenario(folder, pools=pools, handoff=handoff)
    rows = "".join(f"{0.05 * i},100,4,1 2 3\n" for i in range(40))
    columns = "arrival_s,prompt_tokens,output_tokens,blocks_of_16\n"
    (folder / "trace.csv").write_text(columns + rows)
    return Cluster(made).run(log_steps=True)


@pytest.fixture(scope="module")
def events(run: Simulation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(chrome_json(run))["traceEvents"]
    return found


def test_every_event_has_the_fields_of_its_kind(events: list[dict[str, Any]]) -> None:
    assert {event["ph"] for event in events} == set(REQUIRED)
    for event in events:
        assert set(event) == REQUIRED[event["ph"]] | {"ph"}
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event.get("ts", 0.0) >= 0.0
        assert event.get("dur", 0.0) >= 0.0


def test_every_row_has_a_name(run: Simulation, events: list[dict[str, Any]]) -> None:
    named = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in events
        if event["name"] == "thread_name"
    }
    assert {(e["pid"], e["tid"]) for e in events if e["ph"] != "M"} <= set(named)
    assert {name for (_, tid), name in named.items() if tid == 0} == {"steps"}
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert processes == dict(enumerate(run.instance_names))


def test_slices_of_one_row_do_not_overlap(events: list[dict[str, Any]]) -> None:
    rows = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            rows[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for slices in rows.values():
        ordered = np.array(sorted(slices))
        assert (ordered[1:, 0] >= ordered[:-1, 1] - 1e-6).all()
    assert max(tid for _, tid in rows) > 1  # some transfers did overlap


def test_arrows_lead_from_transfers_to_decode_steps(
    run: Simulation, events: list[dict[str, Any]]
) -> None:
    begins = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    rows = run.outcome.requests
    assert set(begins) == set(ends) == set(np.flatnonzero(rows["transfer_end_s"] > 0))
    slices = [event for event in events if event["ph"] == "X"]

    def around(flow: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            each
            for each in slices
            if (each["pid"], each["tid"]) == (flow["pid"], flow["tid"])
            and each["ts"] <= flow["ts"] < each["ts"] + each["dur"]
        ]

    for request, flow in begins.items():
        assert [each["name"] for each in around(flow)] == [f"request {request}"]
        (step,) = around(ends[request])
        assert step["name"] == "decode"
        assert flow["ts"] <= ends[request]["ts"]


def test_steps_and_transfers_are_all_there(
    run: Simulation, events: list[dict[str, Any]]
) -> None:
    kinds = Counter(event["cat"] for event in events if event["ph"] == "X")
    assert kinds["step"] == len(run.outcome.steps)
    assert kinds["transfer"] == 40


def test_prompts_and_what_was_found_of_them_over_time(run: Simulation) -> None:
    over_time = series(run, bins=50)
    width = run.outcome.end_s / 50
    of = over_time[over_time["pool"] == "prefill"]
    assert of["prompts"].sum() * width == pytest.approx(40 * 100)
    assert of["found"].sum() * width == pytest.approx(run.prefix["found_tokens"])
    assert run.prefix["found_tokens"] > 30 * 48
    assert not over_time[over_time["pool"] == "decode"][["prompts", "found"]].to_numpy().any()


def test_a_trace_of_one_step_is_a_trace(tmp_path: Path) -> None:
    made = scenario(tmp_path)
    (tmp_path / "trace.csv").write_text("arrival_s,prompt_tokens,output_tokens\n0,100,1\n")
    told = json.loads(chrome_json(Cluster(made).run(log_steps=True)))
    assert [event["ph"] for event in told["traceEvents"]].count("X") == 1


def test_the_figure_tells_what_was_found_of_prompts(run: Simulation) -> None:
    figure = simulation_figure(run, series(run, bins=20))
    drawn = {trace.name: np.asarray(trace.y, dtype=float) for trace in figure.data}
    share = drawn["prefill: prompts found in caches"]
    assert 0.4 < np.nanmax(share) <= 0.48  # 48 of 100 tokens are whole blocks
    assert "decode: prompts found in caches" not in drawn
    assert {trace.name for trace in graph(timeline_figure(run)).data} == {
        name for name in drawn if name.startswith(("prefill: ", "decode: "))
    }
