from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from chipsim import Phase, cuts

if TYPE_CHECKING:
    from tests.cli.conftest import Command

CHIP = ("cuts", "--chip", "spad-h100", "--model", "bloom-176b", "--tp", "8")
PREFILL = (*CHIP, "--phase", "prefill", "--batch", "2", "--prompt", "1024")
DECODE = (*CHIP, "--phase", "decode", "--batch", "64", "--context", "1024")
BANDWIDTH = ("--resource", "memory_bandwidth", "--values", "1000 GB/s, 2000 GB/s, 3352 GB/s")


def test_rows_are_those_of_python(chipsim: Command) -> None:
    rows = chipsim(*PREFILL, *BANDWIDTH, "--json").json["rows"]
    same = cuts(
        "spad-h100", "bloom-176b", Phase.prefill(2, 1024),
        {"memory_bandwidth": "1000 GB/s, 2000 GB/s, 3352 GB/s"}, plan="tp=8",
    )  # fmt: skip
    assert [row["latency_s"] for row in rows] == same.frame()["latency_s"].tolist()
    for row in rows:
        keys = {"resource", "value", "fraction", "latency_s", "slowdown", "operators"}
        assert row.keys() >= keys
        assert math.isclose(
            sum(operator["latency_s"] for operator in row["operators"]), row["latency_s"]
        )
    assert rows[-1]["slowdown"] == 1.0


def test_the_conclusion_is_said_in_words(chipsim: Command) -> None:
    ran = chipsim(*PREFILL, *BANDWIDTH)
    first = ran.out.splitlines()[0]
    slowdown = chipsim(*PREFILL, *BANDWIDTH, "--json").json["rows"][1]["slowdown"]
    assert first == f"Prefill is {slowdown:.2f}× slower at 2000 GB/s (60 %)"
    assert max(map(len, ran.out.splitlines())) <= 100
    assert ran.err == ""  # no progress bar into a pipe


def test_two_resources_make_a_grid(chipsim: Command) -> None:
    both = ("--resource", "cores", "--resource", "memory_bandwidth")
    rows = chipsim(
        *DECODE, *both, "--fractions", "1,0.5", "--fractions", "1,0.8,0.6", "--json"
    ).json["rows"]
    assert len(rows) == 6
    assert {row["resource_2"] for row in rows} == {"memory_bandwidth"}
    assert rows[0]["slowdown"] == 1.0


def test_the_largest_batch_is_solved_again_at_each_point(chipsim: Command) -> None:
    command = (
        *CHIP, "--phase", "decode", "--batch", "max", "--itl", "50ms", "--context", "1024",
        "--resource", "memory_capacity", "--fractions", "1,0.8,0.5",
    )  # fmt: skip
    full, less, none = chipsim(*command, "--json").json["rows"]
    assert full["batch"] > less["batch"] > none["batch"] == 0
    assert full["latency_s"] <= 0.05
    assert none["latency_s"] is None
    assert not none["fits"]
    assert "memory full" in chipsim(*command).out


def test_two_blocks_make_two_curves(chipsim: Command, tmp_path: Path) -> None:
    blocks = ("--execution", "llmcompass-tables", "--execution", "spad-figures")
    path = tmp_path / "both.html"
    ran = chipsim(*PREFILL, *BANDWIDTH, *blocks, "--out", str(path), "--json")
    assert {row["execution"] for row in ran.json["rows"]} == {blocks[1], blocks[3]}
    text = path.read_text()
    assert "chipsim, llmcompass-tables" in text
    assert "chipsim, spad-figures" in text


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_a_table_is_written(chipsim: Command, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"curve.{ending}"
    rows = chipsim(*PREFILL, *BANDWIDTH, "--out", str(path), "--json").json["rows"]
    if ending == "json":
        table = pd.DataFrame(json.loads(path.read_text())["rows"])
    else:
        table = pd.read_csv(path) if ending == "csv" else pd.read_parquet(path)
    assert table["slowdown"].tolist() == [row["slowdown"] for row in rows]


def test_json_stays_alone_on_stdout(chipsim: Command, tmp_path: Path) -> None:
    ran = chipsim(*PREFILL, *BANDWIDTH, "--out", str(tmp_path / "a.html"), "--json")
    assert ran.json["chip"] == "spad-h100"
    assert "wrote" in ran.err


def test_a_picture_or_what_it_needs(
    chipsim: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "kaleido", None)
    ran = chipsim(*PREFILL, *BANDWIDTH, "--out", str(tmp_path / "a.png"))
    assert ran.code == 2
    assert "needs kaleido" in ran.err.replace("pictures need", "needs")
    assert ran.err.count("\n") == 1
