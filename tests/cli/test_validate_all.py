"""``validate all`` on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pytest

from chipsim.validation.overview import measured, recorded
from tests.validation.measured import folder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command


def test_a_record_is_written_and_read(chipsim: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    folder(data)
    out = tmp_path / "record.csv"
    ran = chipsim(f"validate all --data {data} --out {out}")
    assert ran.code == 0, ran.err
    known, fresh = recorded(out), measured(data)
    assert known.notes == fresh.notes
    columns = list(known.errors.columns)
    pd.testing.assert_frame_equal(known.errors, fresh.errors[columns], rtol=0, atol=1e-6)
    page = tmp_path / "page.md"
    assert chipsim(f"validate all --data {data} --out {page}").code == 0
    assert "{{" not in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--chip h100-sxm", "no --chip"),
        ("--folds 5", "with --data"),
        ("--out page.html", "ending in .md or .csv"),
        ("--data nowhere", "no such folder"),
    ],
)
def test_one_line_says_what_is_wrong(chipsim: Command, arguments: str, told: str) -> None:
    ran = chipsim(f"validate all {arguments}")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert told in ran.err
