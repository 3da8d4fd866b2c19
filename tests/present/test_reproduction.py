"""A paper beside ours as one file."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from chipsim.present.reproduction import write_report
from chipsim.present.standalone import MOST_BYTES
from chipsim.validation.reproduce import Assumption, Figure, Reproduction, Shift

CLUSTERS = [
    {"trace": "code", "system": "h100", "rule": rule, "words": words, "published": 25.0,
     "machines": machines, "least": machines, "most": machines, "splits": "18+9"}
    for rule, words, machines in (("default rule", "mixed pool, prompt limit 1024", 27.0),
                                  ("fixed pools", "fixed pools", None))
]  # fmt: skip


def made() -> Reproduction:
    return Reproduction(
        "spad",
        "SPAD",
        "a paper",
        (
            Figure("code, h100: machines", "policy", 25, 27, "machines", 2, "rule"),
            Figure("code: saved", "policy", 0.4, None, "1", 0.08, "none holds"),
        ),
        (Assumption("chunk", 512, "chosen", "not published"),),
        (Shift("chunk", "256", "code, colocated: machines", 28.0, None),),
        ("An upper bound.",),
        {"clusters": lambda: pd.DataFrame(CLUSTERS)},
    )


def test_a_page_says_the_rule_the_misses_and_the_claim(tmp_path: Path) -> None:
    path = tmp_path / "spad.html"
    write_report(made(), path)
    text = path.read_text()
    assert len(text) < MOST_BYTES
    for said in ("An upper bound.", "Outside the tolerance", "none holds",
                 "27: 18+9; mixed pool, prompt limit 1024", "none; fixed pools",
                 "1 of 2 judged figures", "prefers-color-scheme: dark"):  # fmt: skip
        assert said in text
    assert "http" not in text.split('id="plotly"')[0]


def test_files_for_machines_have_every_row(tmp_path: Path) -> None:
    write_report(made(), tmp_path / "spad.json")
    write_report(made(), tmp_path / "spad.csv")
    record = json.loads((tmp_path / "spad.json").read_text())
    assert [row["within"] for row in record["rows"]] == [True, False]
    assert record["sensitivity"][0]["shift"] is None
    assert list(pd.read_csv(tmp_path / "spad.csv")["difference"].isna()) == [False, True]
