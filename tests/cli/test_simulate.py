from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from chipsim.explore.store import load

if TYPE_CHECKING:
    from tests.cli.conftest import Command

STEPS = (
    "phase,batch,tokens,latency_s\nprefill,1,100,0.1\nprefill,1,200,0.2\ndecode,1,100,0.01\n"
)
SCENARIO = """\
name: small
model: llama-3.1-8b
workload: {base: trace.csv}
pools:
  all: {steps: steps.csv, kv_tokens: 4096, max_batch: 8, max_tokens: 512}
slo:
  ttft: {p90: 1 s}
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "steps.csv").write_text(STEPS)
    rows = "".join(f"{0.05 * i},100,5\n" for i in range(40))
    (tmp_path / "trace.csv").write_text("arrival_s,prompt_tokens,output_tokens\n" + rows)
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return path


def test_json_is_one_object_with_pools_under_rows(chipsim: Command, small: Path) -> None:
    figures = chipsim("simulate", str(small), "--json").json
    assert figures["requests"] == figures["finished"] == 40
    assert [row["pool"] for row in figures["rows"]] == ["all"]
    assert figures["slo"][0]["metric"] == "ttft_s"
    assert not figures["holds"]  # twice as many prompts arrive as it can take


def test_what_is_changed_on_the_line(chipsim: Command, small: Path) -> None:
    more = chipsim("simulate", str(small), "--instances", "all=4", "--rate", "2", "--json").json
    assert more["instances"] == {"all": 4}
    assert more["holds"]


def test_the_table_says_what_was_reached(chipsim: Command, small: Path) -> None:
    out = chipsim("simulate", str(small)).out
    assert "1 all: the objective fails, P90 TTFT ≤ 1.00 s reached" in out


def test_a_folder_holds_everything(chipsim: Command, small: Path, tmp_path: Path) -> None:
    folder, trace = tmp_path / "out", tmp_path / "trace.json"
    chipsim("simulate", str(small), "--out", str(folder), "--timeline", str(trace))
    assert len(load(folder / "requests.parquet").table) == 40
    assert json.loads((folder / "summary.json").read_text())["finished"] == 40
    assert set(pd.read_parquet(folder / "series.parquet")["pool"]) == {"all"}
    assert "<h1>1 all: the objective fails" in (folder / "simulation.html").read_text()
    assert json.loads(trace.read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--instances", "some=2"), "some"),
        (("--instances", "all=x"), "a whole number"),
        (("--duration", "60"), "a time with its unit"),
        (("--rate", "0"), "workload.rate"),
    ],
)
def test_mistakes_cost_a_line(
    chipsim: Command, small: Path, options: tuple[str, str], said: str
) -> None:
    ran = chipsim("simulate", str(small), *options)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_the_library_lists_its_scenarios(chipsim: Command) -> None:
    assert {"chat-8b", "bloom-conversation"} <= {
        row["name"] for row in chipsim("scenarios --json").json["rows"]
    }
    assert re.search(r"handoff.bandwidth +\d+ Gi?B/s", chipsim("show bloom-conversation").out)
    assert re.search(r"slo.ttft.p90 +500 ms", chipsim("show chat-8b").out)
