"""``validate silicon`` and ``calibrate --chip`` on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.validation.measured import ROWS, folder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command


def test_rows_have_the_columns_of_the_design(chipsim: Command, tmp_path: Path) -> None:
    folder(tmp_path)
    page = tmp_path / "page.html"
    ran = chipsim(f"validate silicon --data {tmp_path} --chip h100-sxm --json --out {page}")
    assert ran.code == 0, ran.err
    rows = ran.json["rows"]
    for row in rows:
        assert list(row) == [
            "suite", "chip", "operator", "dtype", "regime",
            "n", "mape", "median_ape", "p90_ape", "bias",
            "roofline_mape", "scaled_mape", "four_factor_mape",
        ]  # fmt: skip
    assert {row["operator"] for row in rows} == {*ROWS, "all"}
    assert rows[0]["scaled_mape"] is None
    assert "measurements" in page.read_text()
    assert "roof" in chipsim(f"validate silicon --data {tmp_path}").out


def test_a_block_is_fitted_and_written(chipsim: Command, tmp_path: Path) -> None:
    sizes = [(op, size) for op in ("all_gather", "all_reduce") for size in (1024, 2**20, 2**26)]
    row = ROWS["collectives"][1]
    lines = [row.replace("all_reduce", op).replace("1048576", str(size)) for op, size in sizes]
    folder(tmp_path, collectives="\n".join(lines))
    out = tmp_path / "block.yaml"
    ran = chipsim(f"calibrate --chip h100-sxm --data {tmp_path} --out {out}")
    assert ran.code == 0, ran.err
    assert "sustained.link" in ran.out
    assert out.read_text().startswith("# Execution block h100-graph.")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("calibrate", "a BLOCK, or --chip CHIP --data FOLDER"),
        ("calibrate a100-eager --chip a100-sxm", "a BLOCK, or --chip CHIP --data FOLDER"),
        ("calibrate --chip a100-sxm", "--data"),
        ("calibrate --chip a100-sx --data .", "did you mean a100-sxm"),
        ("validate silicon --data nowhere", "no such folder"),
        ("validate silicon --chip nothing", "unknown chip 'nothing'"),
        ("validate llmcompass --transfer", "the suite silicon"),
        ("validate llmcompass --folds 5", "the suite silicon"),
        ("validate silicon --folds 5 --transfer", "blocks of its own"),
        ("validate silicon --folds 1", "a number from 2 to 20"),
        ("validate paper-curves --chip a100-sxm", "one of silicon, machines"),
    ],
)
def test_one_line_says_what_is_wrong(chipsim: Command, command: str, told: str) -> None:
    ran = chipsim(command)
    assert ran.code == 2
    assert told in ran.err
    assert ran.err.count("\n") == 1


def test_an_engine_is_fitted_and_shown(chipsim: Command, tmp_path: Path) -> None:
    out = tmp_path / "engine.yaml"
    ran = chipsim(f"calibrate vllm-2023 --out {out} --json")
    assert ran.code == 0, ran.err
    assert ran.json["kind"] == "engine"
    assert ran.json["sequence_s"] > 0
    assert out.read_text().startswith("# Serving engine vllm-2023.")
    assert "host time to issue one kernel" in chipsim("show vllm-2023").out
    assert chipsim(f"show {out} --json").json["kind"] == "engine"


def test_machines_are_judged(chipsim: Command) -> None:
    out = chipsim("validate machines --chip h100-sxm").out
    assert "chip alone" in out
    assert "a100" not in out
