"""Measured machines under an engine: reading, judging, and fitting the engine again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chipsim.errors import ChipsimError, ConfigError
from chipsim.serving import ServingEngine, engine_step
from chipsim.validation.engine_fit import calibrate_engine
from chipsim.validation.execution_yaml import to_yaml
from chipsim.validation.machines import COLUMNS, machine_points, read_steps, step_phase
from chipsim.validation.suites import validate
from tests.validation.folders import SHARED, needs_shared

if TYPE_CHECKING:
    from pathlib import Path

ROW = "llama2-70b,h100-80gb,8,512,1,128,54.0,30.0"
HEAD = ",".join(COLUMNS)


def table(path: Path, *rows: str) -> Path:
    file = path / "steps.csv"
    file.write_text("\n".join([HEAD, *rows]))
    return file


def test_a_row_is_a_prompt_and_a_step(tmp_path: Path) -> None:
    (prompt, step), why = read_steps(table(tmp_path, ROW))
    assert (prompt.phase.kind, prompt.phase.batch, prompt.phase.query) == ("prefill", 1, 512)
    assert (step.phase.kind, step.phase.context) == ("decode", 512 + 64)
    assert (prompt.seconds, step.seconds) == pytest.approx((0.054, 0.030))
    assert (prompt.chip, prompt.model, prompt.tp) == ("h100-sxm", "llama-2-70b", 8)
    assert not why


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    rows = [ROW, ROW.replace("80gb", "80gb-pcap"), ROW.replace("h100-80gb", "cray-1")]
    fast = ROW.replace("54.0", "1.0")
    file = table(tmp_path, *rows, fast)
    points, skipped = machine_points(file)
    assert len(points) == 3
    assert dict(skipped) == {
        "h100-80gb-pcap: multiples of other rows, not measured": "1 rows",
        "cray-1: no such chip in the library": "1 rows",
        "h100-sxm: faster than the chips' peaks allow": "1 rows",
    }


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (ROW.replace("54.0", "nan"), "steps.csv: line 2: prompt_ms: 'nan'"),
        (ROW.replace(",8,", ",none,"), "steps.csv: line 2: tensor_parallel: 'none'"),
        (ROW.replace("llama2-70b", "lama-2-70b"), "did you mean llama-2-70b"),
    ],
)
def test_a_cell_that_cannot_be_is_named(tmp_path: Path, row: str, told: str) -> None:
    with pytest.raises(ChipsimError, match=told):
        machine_points(table(tmp_path, row))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ChipsimError, match="no such file"):
        read_steps(tmp_path / "nowhere.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ConfigError, match="no column model"):
        read_steps(tmp_path / "other.csv")
    with pytest.raises(ChipsimError, match="nothing to judge"):
        machine_points(tmp_path)


def test_the_packaged_rows_are_met_by_the_engine() -> None:
    frame = validate("machines").frame()
    whole = frame[(frame["regime"] == "all") & (frame["chip"] != "all")]
    medians = whole[whole["operator"] != "all"].set_index(["chip", "operator"])["median_ape"]
    assert set(medians.index) == {
        (chip, phase) for chip in ("a100-sxm", "h100-sxm") for phase in ("prefill", "decode")
    }
    assert medians.max() < 0.10
    assert (whole["mape"] < whole["chip_alone_mape"]).all()


@needs_shared
def test_all_published_rows() -> None:
    frame = validate("machines", SHARED / "splitwise" / "dgx_measured.csv").frame()
    whole = frame[(frame["regime"] == "all") & (frame["chip"] != "all")]
    assert whole["median_ape"].max() <= 0.08


def test_a_fit_finds_the_engine_that_made_the_times(tmp_path: Path) -> None:
    known = ServingEngine.load("vllm-2023")
    rows = []
    for tp in (4, 8):
        for batch in (1, 8, 32):
            for prompt in (128, 1024, 4096):
                row = f"llama-2-70b,h100-sxm,{tp},{prompt},{batch},128"
                prefill, step = read_steps(table(tmp_path, f"{row},1,1"))[0]
                times = [
                    1e3 * engine_step(known, step_phase(each)).latency_s
                    for each in (prefill, step)
                ]
                rows.append(f"{row},{times[0]!r},{times[1]!r}")
    out = tmp_path / "engine.yaml"
    result = calibrate_engine("vllm-2023", table(tmp_path, *rows), out)
    found = ServingEngine.load(str(out))
    assert found == result.block
    host, true = found.machines["h100-sxm"], known.machines["h100-sxm"]
    assert host.kernel == pytest.approx(true.kernel, rel=0.02)
    assert host.libraries == pytest.approx(true.libraries, rel=0.02)
    assert found.sequence == pytest.approx(known.sequence, rel=0.05)
    assert found.long_from == known.long_from
    assert "machines.h100-sxm.kernel" in result.text


def test_an_engine_is_fitted_to_steps_of_its_machines_alone(tmp_path: Path) -> None:
    with pytest.raises(ChipsimError, match="no step of a100-sxm, h100-sxm to fit to"):
        calibrate_engine("vllm-2023", table(tmp_path, ROW.replace("h100-80gb", "mi300x")))


def test_an_engine_is_written_and_read_back(tmp_path: Path) -> None:
    known = ServingEngine.load("vllm-2023")
    path = tmp_path / "engine.yaml"
    path.write_text(to_yaml(known, "Serving engine"))
    assert ServingEngine.load(str(path)) == known
