"""Results from anywhere: what is read, what is refused, and that nothing is run."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chipsim.errors import ChipsimError
from chipsim.explore import opened as module
from chipsim.explore.cuts import CutsResult, cuts
from chipsim.explore.opened import REQUESTS, cuts_again, open_result, opened
from chipsim.explore.store import save, sidecar
from chipsim.ops.phase import Phase


@pytest.fixture(scope="module")
def grid() -> CutsResult:
    return cuts(
        "spad-h100", "bloom-176b", Phase.decode(64, 1024),
        {"cores": [1, 0.5], "memory_capacity": [1, 0.3]}, plan="tp=8", execution="ideal",
        held={"l2": 0.5},
    )  # fmt: skip


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
def test_a_saved_result_comes_back(grid: CutsResult, tmp_path: Path, ending: str) -> None:
    path = save(grid, tmp_path / f"grid{ending}", seed=3)
    stored = open_result(path)
    pd.testing.assert_frame_equal(stored.table, grid.frame(), check_exact=True)
    assert stored.seed == 3
    again = cuts_again(stored)
    assert again.records() == grid.records()
    assert stored.rerun(1).record() == grid.points[1].record()


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
def test_rows_alone_do_too(grid: CutsResult, tmp_path: Path, ending: str) -> None:
    path = save(grid, tmp_path / f"grid{ending}")
    sidecar(path).unlink()
    stored = open_result(path)
    assert stored.configuration == {}
    assert stored.table["cores" if "cores" in stored.table else "value"].tolist() == (
        grid.frame()["value"].tolist()
    )
    with pytest.raises(ChipsimError, match="allowed: cuts"):
        cuts_again(stored)


def test_json_of_a_command(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    rows = [{"name": "a", "parts": {"x": 1}, "n": 1}, {"name": "b", "n": None}]
    path.write_text(json.dumps({"chip": "x", "rows": rows}))
    table = open_result(path).table
    assert table["parts"].tolist() == ['{"x": 1}', ""]
    assert np.isnan(table["n"][1])


def parquet(table: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.to_parquet(buffer)
    return buffer.getvalue()


GOOD = parquet(pd.DataFrame({"a": [1.0, 2.0]}))


class Trap:
    """Leaves a trace if anybody unpickles it."""

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (pytest.fail, ("something was unpickled",))


def test_a_folder_stands_for_its_requests(grid: CutsResult, tmp_path: Path) -> None:
    save(grid, tmp_path / REQUESTS)
    assert open_result(tmp_path).table.equals(open_result(tmp_path / REQUESTS).table)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ChipsimError, match=r"empty/requests\.parquet: cannot be read"):
        open_result(tmp_path / "empty")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.parquet", GOOD[:-20], "damaged"),
        ("a.parquet", GOOD[:40] + b"\0" * 40 + GOOD[80:], "damaged"),
        ("a.parquet", b"PAR1", "damaged"),
        ("a.parquet", pickle.dumps(Trap()), "damaged"),
        ("a.csv", pickle.dumps(Trap()), "damaged"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"a,b\n1,2,3\n4,5,6,7,8\n", "damaged"),
        ("a.csv", b"a,b\n", "rows"),
        ("a.json", b'{"rows": [{"a": NaN}]}', "NaN is no number"),
        ("a.json", b'{"rows": [1, 2]}', "list of objects"),
        ("a.json", b'{"rows": [', "damaged"),
        ("a.json", b"[" * 100_000, "damaged"),
        ("a.pkl", pickle.dumps(Trap()), "a name ending in"),
    ],
)
def test_what_is_refused(name: str, content: bytes, says: str) -> None:
    with pytest.raises(ChipsimError, match=says) as error:
        opened(Path(name), content, None)
    assert "\n" not in str(error.value)
    assert name in str(error.value)


def test_rows_of_another_sidecar(grid: CutsResult, tmp_path: Path) -> None:
    path = save(grid, tmp_path / "grid.csv")
    changed = path.read_bytes().replace(b"132", b"133")
    with pytest.raises(ChipsimError, match="not the rows"):
        opened(path, changed, sidecar(path).read_bytes())
    with pytest.raises(ChipsimError, match="broken text"):
        opened(path, path.read_bytes(), b"{")


def test_a_small_file_that_unpacks_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten million zeros compress to little; the file's own account is believed first."""
    buffer = io.BytesIO()
    zeros = pa.table({"a": pa.array(np.zeros(1_000_001))})
    pq.write_table(zeros, buffer, compression="zstd")
    assert len(buffer.getvalue()) < 100_000
    with pytest.raises(ChipsimError, match="1,000,001 rows"):
        opened(Path("a.parquet"), buffer.getvalue(), None)
    monkeypatch.setattr(module, "MOST_CELL_BYTES", 10)
    with pytest.raises(ChipsimError, match="unpacked"):
        opened(Path("a.parquet"), GOOD, None)


def test_a_file_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    path = tmp_path / "a.csv"
    path.write_text("a\n" + "1\n" * 20)
    with pytest.raises(ChipsimError, match="at most 0 MiB"):
        open_result(path)
    with pytest.raises(ChipsimError, match="at most 0 MiB"):
        opened(path, path.read_bytes(), None)


def test_a_hundred_thousand_rows(tmp_path: Path) -> None:
    path = tmp_path / "many.parquet"
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.random((100_000, 12))).rename(columns=str).to_parquet(path)
    assert open_result(path).table.shape == (100_000, 12)
