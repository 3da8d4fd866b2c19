"""The store: what comes back is what went in, and a row can be computed again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import chipsim
from chipsim.errors import ChipsimError
from chipsim.explore.compare import compare_phases
from chipsim.explore.cuts import CutsResult, cuts
from chipsim.explore.store import load, save, sidecar, write_whole
from chipsim.ops.phase import Phase

ENDINGS = (".csv", ".json", ".parquet")


def curve(**options: object) -> CutsResult:
    return cuts(
        "spad-h100", "bloom-176b", Phase.decode(64, 1024),
        {"memory_capacity": [1, 0.7, 0.31], "cores": [1, 0.334]},
        plan="tp=8", execution="ideal", **options,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("options", [{}, {"batch": "max", "itl_s": 0.02}])
def test_round_trip_and_every_row_again(
    tmp_path: Path, ending: str, options: dict[str, object]
) -> None:
    result = curve(**options)
    path = save(result, tmp_path / f"curve{ending}", seed=7)
    stored = load(path)
    pd.testing.assert_frame_equal(stored.table, result.frame(), check_exact=True)
    assert (stored.version, stored.seed) == (chipsim.__version__, 7)
    for row, point in enumerate(result.points):
        assert stored.rerun(row).record() == point.record()
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name, sidecar(path).name]


@pytest.mark.parametrize("ending", ENDINGS)
def test_comparison_is_stored_too(tmp_path: Path, ending: str) -> None:
    both = compare_phases(
        "bloom-176b", Phase.decode(64, 1024), "tp=8", "spad-h100", "ideal", "spad-decode",
        "ideal",
    )  # fmt: skip
    stored = load(save(both, tmp_path / f"both{ending}"))
    pd.testing.assert_frame_equal(stored.table, both.frame(), check_exact=True)
    assert [run["chip"]["name"] for run in stored.configuration["runs"]] == [
        "spad-h100",
        "spad-decode",
    ]
    with pytest.raises(ChipsimError, match="allowed: cuts"):
        stored.rerun(0)


def test_sidecar_holds_everything_by_value(tmp_path: Path) -> None:
    path = save(curve(), tmp_path / "curve.csv")
    content = json.loads(sidecar(path).read_text())
    configuration = content["configuration"]
    assert configuration["chip"]["memory"]["bandwidth"] == 3.352e12
    assert configuration["model"]["layers"] == 70
    assert configuration["execution"]["name"] == "ideal"
    assert configuration["points"][1] == {"memory_capacity": 1.0, "cores": 0.334}
    assert content["seed"] is None


def test_saving_again_replaces(tmp_path: Path) -> None:
    path = save(curve(), tmp_path / "curve.csv")
    again = curve(batch="max")
    save(again, path)
    pd.testing.assert_frame_equal(load(path).table, again.frame(), check_exact=True)


@pytest.mark.parametrize("name", ["curve.xlsx", "curve", ".csv", "curve.CSV.gz"])
def test_unknown_ending_is_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(ChipsimError, match=r"--out: .*\.parquet, \.csv, \.json"):
        save(curve(), tmp_path / name)
    with pytest.raises(ChipsimError, match="name ending in"):
        load(tmp_path / name)


def test_places_that_cannot_be_written_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ChipsimError, match="is a folder"):
        save(curve(), tmp_path / "folder.csv")
    with pytest.raises(ChipsimError, match="cannot be written: No such file"):
        save(curve(), tmp_path / "none" / "curve.csv")
    (tmp_path / "file").write_text("")
    with pytest.raises(ChipsimError, match="cannot be written: Not a directory"):
        save(curve(), tmp_path / "file" / "curve.csv")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_folder_without_permission_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ChipsimError, match="cannot be written: Permission denied"):
        save(curve(), tmp_path / "curve.csv")


def changed(path: Path, **keys: object) -> None:
    content = json.loads(sidecar(path).read_text()) | keys
    sidecar(path).write_text(json.dumps(content))


def test_changed_or_broken_files_are_refused(tmp_path: Path) -> None:
    path = save(curve(), tmp_path / "curve.csv")
    good = sidecar(path).read_text()
    path.write_text(path.read_text().replace("cores", "kores"))
    with pytest.raises(ChipsimError, match="not the rows that"):
        load(path)
    save(curve(), path)
    for text in ("{", "[]", "{}"):
        sidecar(path).write_text(text)
        with pytest.raises(ChipsimError, match=r"curve\.csv\.config\.json"):
            load(path)
    sidecar(path).write_text(good)
    changed(path, format=99)
    with pytest.raises(ChipsimError, match="format: 99"):
        load(path)
    sidecar(path).unlink()
    with pytest.raises(ChipsimError, match="cannot be read: No such file"):
        load(path)


def test_configuration_that_is_not_valid_is_named(tmp_path: Path) -> None:
    path = save(curve(), tmp_path / "curve.csv")
    configuration = load(path).configuration
    changed(path, configuration=configuration | {"chip": {"name": "x"}})
    with pytest.raises(ChipsimError, match=r"curve\.csv\.config\.json: source"):
        load(path).rerun(0)
    configuration.pop("model")
    changed(path, configuration=configuration)
    with pytest.raises(ChipsimError, match=r"configuration: .*model"):
        load(path).rerun(0)
    with pytest.raises(ChipsimError, match="row: 6 is not allowed; allowed: 0 to 5"):
        load(path).rerun(6)


def test_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.csv"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(ChipsimError, match="No space left on device"):
        write_whole(path, b"new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


KILLED = """
import os, signal, sys
from pathlib import Path
from chipsim.explore import store
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
store.write_whole(Path(sys.argv[1]), b"new" * 100000)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a signal that kills at once")
def test_killed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "kept.csv"
    path.write_text("old")
    killed = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert killed.returncode == -9
    assert path.read_text() == "old"
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"


def test_file_has_the_usual_permissions(tmp_path: Path) -> None:
    path, plain = tmp_path / "a.csv", tmp_path / "b.csv"
    write_whole(path, b"")
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode
