"""The commands that show: what they refuse, and what they write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chipsim import Phase, cuts
from chipsim.explore.store import save

if TYPE_CHECKING:
    from tests.cli.conftest import Command

CUTS = (
    "cuts --chip spad-h100 --model bloom-176b --tp 8 --phase decode --context 64 "
    "--resource cores --fractions 1"
)


def test_report_writes_one_file(
    chipsim: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = cuts(
        "spad-h100", "bloom-176b", Phase.decode(64, 1024), {"cores": [1, 0.5]}, plan="tp=8"
    )
    save(run, "curve.csv")
    ran = chipsim("report curve.csv --out a.html --json")
    assert ran.code == 0
    assert ran.json["file_bytes"] == Path("a.html").stat().st_size
    assert ran.json["title"].startswith("Decode is")
    assert ran.json["rows"][0]["drawn"] is True


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("report nonesuch.csv", "nonesuch.csv: cannot be read"),
        ("report a.csv --out a.gif", "a name ending in .html"),
        ("dashboard nonesuch.csv --port 0", "nonesuch.csv: cannot be read"),
        ("dashboard --host 0.0.0.0 --port 0", "no password; --expose"),
        (f"{CUTS} --held l2=half", "cores=0.5,l2=0.8"),
    ],
)
def test_one_line_of_why(chipsim: Command, line: str, says: str) -> None:
    ran = chipsim(line)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert ran.err.count("\n") == 1
