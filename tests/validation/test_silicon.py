"""Measured operators judged, plain models beside them, and blocks fitted to them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from chipsim.chip import Chip
from chipsim.errors import ChipsimError, ConfigError, UnknownNameError
from chipsim.execution import Execution
from chipsim.performance import PerformanceModel
from chipsim.present.silicon import silicon_figure
from chipsim.validation.silicon import baselines
from chipsim.validation.silicon.baselines import Ideal, folds, four_factor, ideal, scaled
from chipsim.validation.silicon.calibration import calibrate_chip
from chipsim.validation.silicon.machines import transferred
from chipsim.validation.silicon.measured import read_measurements
from chipsim.validation.silicon.stages import DEPENDENT, LINKS, STAGES, Stage
from chipsim.validation.silicon.suite import PACKAGED
from chipsim.validation.silicon.work import work
from chipsim.validation.suites import ValidationResult, validate
from tests.validation.measured import ROWS, folder, one

if TYPE_CHECKING:
    from chipsim.validation.silicon.baselines import Floats


@cache
def packaged() -> ValidationResult:
    """The packaged sample of one chip, judged."""
    return validate("silicon", chip="h100-sxm")


def test_an_estimate_is_the_sum_of_its_operators_with_caches_warm() -> None:
    rows = {row.where: row for row in read_measurements(PACKAGED) if row.system == "h100_sxm"}
    model = PerformanceModel("h100-sxm", "h100-graph", warm=True)
    points = packaged().points
    assert len(points) == len(rows)
    for point in points.iloc[::17].to_dict("records"):
        expected = sum(model.estimate(op).latency_s for op in work(rows[point["source"]]))
        assert point["estimate"] == pytest.approx(expected, rel=1e-12)
        assert point["error"] == pytest.approx(point["estimate"] / point["reference"] - 1)
        assert point["execution"] == "h100-graph"


def test_groups_of_errors() -> None:
    frame = packaged().frame()
    row = frame[(frame.operator == "gemm") & (frame.dtype == "fp8") & (frame.regime == "all")]
    assert int(row.n.iloc[0]) == 40
    parts = frame[
        (frame.chip == "h100-sxm") & (frame.operator == "gemm") & (frame.dtype == "fp8")
        & (frame.regime != "all")
    ]  # fmt: skip
    assert set(parts.regime) == {"compute", "memory", "small"}
    assert (parts.n * parts.mape).sum() / 40 == pytest.approx(float(row.mape.iloc[0]))
    for name in ("roofline", "scaled", "four_factor"):
        assert float(row[f"{name}_mape"].iloc[0]) > 0
    assert set(frame.suite) == {"silicon"}


def test_another_folder_another_block_another_chip(tmp_path: Path) -> None:
    folder(tmp_path)
    result = validate("silicon", tmp_path, "ideal")
    assert len(result.points) == len(ROWS)
    assert set(result.points.execution) == {"ideal"}
    assert result.points["scaled"].isna().all()  # nothing to fit a plain model to
    path = tmp_path / "mine.yaml"
    path.write_text(
        (Path(__file__).parents[2] / "arch_configs/chips/h100-sxm.yaml").read_text()
    )
    assert len(validate("silicon", tmp_path, chip=str(path)).points) == len(ROWS)
    with pytest.raises(ChipsimError, match="nothing to judge"):
        validate("silicon", tmp_path, chip="b200-sxm")
    with pytest.raises(UnknownNameError, match="did you mean h100-sxm"):
        validate("silicon", tmp_path, chip="h100-sx")


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    row = ROWS["gemm"][1]
    other = row.replace("h100_sxm", "cray_1"), row.replace("trtllm", "vllm")
    folder(tmp_path, gemm="\n".join([row, *other]))
    result = validate("silicon", tmp_path)
    assert len(result.points) == 1
    assert dict(result.skipped) == {
        "gemm: bf16 of vllm: trtllm is judged": "1 rows",
        "cray-1": "1 rows: no such chip in the library",
    }


def test_a_transfer_takes_the_block_of_the_chip_before() -> None:
    result = validate("silicon", chip="h200-sxm", transfer=True)
    assert set(result.points.execution) == {"h100-graph"}
    # Of H100 all but the kernels, of which H200 has the same.
    assert result.points.estimate.tolist() == result.points.donor.tolist()
    with pytest.raises(ChipsimError, match="nothing came before it"):
        validate("silicon", chip="a100-sxm", transfer=True)


# ------------------------------------------------------------------ plain models


def test_a_roofline_of_a_product(tmp_path: Path) -> None:
    chip = Chip.load("h100-sxm")
    found = ideal(chip, work(one(tmp_path, "gemm")))
    peak = 2 * 132 * 4 * 512 * 1.83e9
    assert found.arithmetic == pytest.approx(2 * 64 * 4096**2 / peak)
    # 32 tiles of 128 x 128 are one wave of 132
    assert found.padded == pytest.approx(132 * 2 * 128 * 128 * 4096 / peak)
    assert found.memory == pytest.approx(2 * (4096**2 + 2 * 64 * 4096) / 3.35e12)


def made(factors: tuple[float, float, float, float]) -> tuple[list[Ideal], Floats]:
    """Rows, and times that follow the 4-factor formula."""
    start, compute, bandwidth, tiles = factors
    draw = np.random.default_rng(1)
    work, memory = 10 ** draw.uniform(-7, -3, (2, 60))
    padded = work * draw.uniform(1, 3, 60)
    busy = (work + tiles * (padded - work)) / compute
    rows = [Ideal(*row) for row in zip(work, padded, memory, strict=True)]
    return rows, start + np.maximum(busy, memory / bandwidth)


def test_plain_models_find_what_made_the_times() -> None:
    fold = np.arange(60) % 5
    rows, times = made((3e-6, 0.7, 0.6, 0.5))
    assert four_factor(rows, times, fold) == pytest.approx(times, rel=1e-2)
    rows, times = made((3e-6, 1.0, baselines.SUSTAINED, 0.0))
    assert scaled(rows, times, fold) == pytest.approx(times, rel=1e-3)


def test_each_row_is_judged_by_a_fit_that_has_not_seen_it() -> None:
    rows, times = made((3e-6, 0.7, 0.6, 0.5))
    fold = np.arange(60) % 5
    before = four_factor(rows, times, fold)
    changed = times.copy()
    changed[fold == 0] *= 7
    assert four_factor(rows, changed, fold)[fold == 0] == pytest.approx(before[fold == 0])


def test_folds_hang_on_the_shape_alone() -> None:
    shapes = [f"m={m} n=64 k=64" for m in range(500)]
    found = folds(shapes)
    assert (found == folds(shapes[::-1])[::-1]).all()
    assert np.bincount(found).min() > 60
    assert set(folds(["a"] * 3)) == {int(folds(["a"])[0])}


# ------------------------------------------------------------------ calibration


def timed_by(block: Execution, path: Path, system: str = "h100_sxm") -> Path:
    """The packaged shapes of a chip with the times that a block gives them."""
    chip = system.replace("_", "-")
    model = PerformanceModel(chip, block, warm=True)
    rows = [row for row in read_measurements(PACKAGED) if row.system == system]
    seconds = {row.where: sum(model.estimate(op).latency_s for op in work(row)) for row in rows}
    for source in PACKAGED.glob("*.csv"):
        frame = pd.read_csv(source, comment="#")
        lines = [f"{source.name}: line {i + 5}" for i in range(len(frame))]
        frame["latency_s"] = [seconds.get(line, 0.0) for line in lines]
        frame[frame["latency_s"] > 0].to_csv(path / source.name, index=False)
    return path


CLOSED = (
    next(stage for stage in STAGES if stage.name == "links"),
    Stage("dependent kernels", DEPENDENT, {"moe": 1.0}),
)
"""Stages whose factors enter in a smooth way, so that a fit must find them exactly."""


def test_a_fit_finds_the_block_that_made_the_times(tmp_path: Path) -> None:
    known = Execution.load("h100-graph")
    result = calibrate_chip(
        "h100-sxm", timed_by(known, tmp_path), tmp_path / "block.yaml", stages=CLOSED
    )
    found = Execution.load(str(tmp_path / "block.yaml"))
    assert found == result.block
    assert found.launch.collective == pytest.approx(known.launch.collective, rel=0.01)
    assert found.launch.activation == pytest.approx(known.launch.activation, rel=0.01)
    assert found.sustained.link == pytest.approx(known.sustained.link, rel=0.01)
    assert found.link.hop == pytest.approx(known.link.hop, rel=0.02)
    assert found.link.start == pytest.approx(known.link.start, rel=0.02)
    for told in ("least known", "MAPE", "+-", "collectives           fp16         20"):
        assert told in result.text
    assert not any(each.fit.at_bounds for each in result.fits)


def test_held_out_rows_are_judged_by_fits_to_the_rest(tmp_path: Path) -> None:
    known = Execution.load("h100-graph")
    data = timed_by(known, tmp_path)
    result = calibrate_chip("h100-sxm", data, stages=CLOSED[:1], folds=2)
    assert result.held is not None
    linked = [row.operator == "collectives" for row in result.workload.rows]
    measured = result.workload.measured[linked]
    assert result.held[linked] == pytest.approx(measured, rel=0.02)
    assert "held out" in result.text


def test_folds_are_judged_beside_the_block(tmp_path: Path) -> None:
    data = timed_by(Execution.load("h100-graph"), tmp_path)
    result = validate("silicon", data, folds=2)
    assert result.beside[0] == "held_out"
    linked = result.points[result.points.operator == "collectives"]
    assert linked.held_out.tolist() == pytest.approx(linked.reference.tolist(), rel=0.02)
    frame = result.frame()
    told = frame[(frame.operator == "collectives") & (frame.regime == "all")]
    assert (told.held_out_mape < 0.02).all()


def test_a_transfer_keeps_the_kernels_of_the_chip() -> None:
    chip, donor = Chip.load("b200-sxm"), Execution.load("h200-graph")
    block = transferred(chip)
    assert block.kernels == Execution.load("b200-graph").kernels != donor.kernels
    assert block.model_copy(update={"kernels": donor.kernels}) == donor


def test_a_wait_that_the_factors_do_not_know_is_not_charged() -> None:
    """A100's kernels prefetch the keys of a tile, and those of H100 and H200 do not."""
    assert not Execution.load("h100-graph").kernels.fused.prefetch
    assert transferred(Chip.load("h100-sxm")).kernels.fused.prefetch
    assert not transferred(Chip.load("h200-sxm")).kernels.fused.prefetch


def test_every_factor_has_one_line_and_there_are_few() -> None:
    factors = [factor for stage in STAGES for factor in stage.factors]
    paths = [path for factor in factors for path in factor.paths]
    assert len(set(paths)) == len(paths)
    assert len(LINKS) <= 4
    assert len(factors) - len(LINKS) <= 12
    for factor in factors:
        assert factor.low < factor.start < factor.high


def test_a_chip_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChipsimError, match="no judged row of b200-sxm"):
        calibrate_chip("b200-sxm", folder(tmp_path))


def test_too_few_rows_for_folds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ChipsimError, match="1 rows leave nothing to fit to"):
        calibrate_chip("h100-sxm", folder(tmp_path, gemm=ROWS["gemm"][1]), folds=2)
    with pytest.raises(ConfigError, match="from 2 to 20"):
        calibrate_chip("h100-sxm", tmp_path, folds=1)


@pytest.mark.parametrize("milli", [1e3, 1e-3])
def test_another_unit_than_seconds_is_refused(tmp_path: Path, milli: float) -> None:
    row = ROWS["gemm"][1].replace("1e-5", f"{1.5e-5 * milli:g}")
    folder(tmp_path, gemm=row)
    for judge, what in ((validate, "silicon"), (calibrate_chip, "h100-sxm")):
        with pytest.raises(ConfigError, match=r"h100-sxm: latency_s: .*allowed: seconds"):
            judge(what, tmp_path)
    # A machine without fixed times says nothing of small operators.
    assert len(validate("silicon", tmp_path, "ideal").points) == 1


# ------------------------------------------------------------------ figure


def test_the_figure_holds_every_point() -> None:
    result = packaged()
    figure = silicon_figure(result)
    marked = [trace for trace in figure.data if trace.mode == "markers"]
    shown = [trace for trace in marked if trace.customdata is not None]
    named = {trace.name.split(" (")[0] for trace in marked if trace.customdata is None}
    assert set(result.points.chip) < named
    assert "GEMM" in named
    assert sum(len(trace.x) for trace in shown) == len(result.points)
    assert sum(trace.x[0] in set(result.points.reference) for trace in shown) == len(shown)
    hovers = [text for trace in shown for text in trace.customdata if " gemm " in text]
    assert hovers
    assert all("m=" in text for text in hovers)
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    apart = int(result.points.operator.str.contains("/").sum())
    counted, drawn = f"over {len(result.points) - apart} measurements", f"{apart} more"
    assert counted in figure.layout.title.text
    assert drawn in figure.layout.title.subtitle.text
