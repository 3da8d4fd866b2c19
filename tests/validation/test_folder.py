"""Folders of LLMCompass's outputs: what is read, and what is named and passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipsim.errors import ChipsimError, UnknownNameError
from chipsim.ops.operators import Gemm
from chipsim.performance import PerformanceModel
from chipsim.validation.suites import validate
from tests.validation.folders import A_MATMUL, MATMUL, SHARED, needs_shared, write

LAYER = "system,tp,d_model,n_heads,phase,batch,seq_or_ctx,latency_s,Softmax_s\n"


def test_unknown_things_are_named_and_passed_over(tmp_path: Path) -> None:
    header = MATMUL.replace("device", "mood,device")
    write(
        tmp_path,
        matmul=header + f"good,{A_MATMUL}bad,Cray-1,1,8,8,8,2,1e-6\n",
        recipes="flour,eggs\n1,2\n",
        silicon_x="operator,device,M,K,N,real_s\nfft,A100,8,8,8,1e-6\n",
    )
    (tmp_path / "notes.md").write_text("words")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "more").mkdir()
    result = validate(data=tmp_path, execution="ideal")
    assert len(result.points) == 1
    assert dict(result.skipped) == {
        "empty.csv": "empty file",
        "matmul.csv: mood": "not a known column",
        "matmul.csv: Cray-1": "not a known device",
        "more": "not a CSV file",
        "notes.md": "not a CSV file",
        "recipes.csv": "neither stem nor columns are known",
        "silicon_x.csv: fft": "not a known operator",
    }


def test_files_that_lack_what_they_need_are_named_and_passed_over(tmp_path: Path) -> None:
    layers = LAYER.replace("tp,", "")
    write(
        tmp_path,
        allreduce="",
        gelu="a,b\n1,2\n",
        layernorm="# nothing but a comment\n",
        matmul=MATMUL + A_MATMUL,
        matmul_more=(MATMUL + A_MATMUL).replace(",", ";").replace("9.5e-5", "0,000095"),
        recipes="flour,eggs\n1,2,3\n",
        silicon_x="operator,device,M,N,real_s\n",
        softmax="device,M,N,sim_latency_s\n",
        transformer=layers + "GA100.json,12288,96,decode,8,3072,1e-3,2e-5\n",
    )
    result = validate(data=tmp_path, execution="ideal")
    assert list(result.points["source"]) == ["matmul.csv: line 2"]
    assert dict(result.skipped) == {
        "allreduce.csv": "empty file",
        "gelu.csv": "no column device, M, N, sim_latency_s",
        "layernorm.csv": "empty file",
        "matmul_more.csv": (
            "no column device, M, K, N, sim_latency_s; is the separator a comma?"
        ),
        "recipes.csv": "neither stem nor columns are known",
        "silicon_x.csv": "no column K",
        "softmax.csv": "no rows",
        "transformer.csv": "no column tp",
    }


def test_error_names_tables_before_other_files(tmp_path: Path) -> None:
    for index in range(10):
        (tmp_path / f"a{index}.md").write_text("words")
    with pytest.raises(ChipsimError, match=r"\(matmul\.csv: empty file; a0\.md: .* 3 more"):
        validate(data=write(tmp_path, matmul=""))


def test_stem_in_upper_case_is_read(tmp_path: Path) -> None:
    (tmp_path / "MATMUL.CSV").write_text(MATMUL + A_MATMUL)
    assert len(validate(data=tmp_path, execution="ideal").points) == 1


def test_format_that_the_arrays_lack_runs_on_the_vector_units(tmp_path: Path) -> None:
    write(tmp_path, matmul=MATMUL + A_MATMUL + A_MATMUL.replace(",2,", ",4,"))
    result = validate(data=tmp_path, execution="ideal")
    assert len(result.points) == 2
    assert not result.skipped


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "the folder is empty"),
        ({"recipes": "flour\n1\n"}, r"nothing to judge \(recipes\.csv: neither stem"),
        ({"matmul": MATMUL}, r"nothing to judge \(matmul\.csv: no rows\)$"),
        (
            {"matmul": "", "gelu": "a,b\n1,2\n"},
            r"judge \(gelu\.csv: no column device, M, N, sim_latency_s; matmul\.csv: empty",
        ),
    ],
)
def test_nothing_to_judge_is_an_error(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    with pytest.raises(ChipsimError, match=message):
        validate(data=write(tmp_path, **files), execution="ideal")


def test_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ChipsimError, match="no such folder"):
        validate(data=tmp_path / "nowhere")


def test_unknown_suite_and_block_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean silicon"):
        validate("silicone")
    write(tmp_path, matmul=MATMUL + A_MATMUL)
    with pytest.raises(UnknownNameError, match="did you mean ideal"):
        validate(data=tmp_path, execution="ideel")


def test_one_file_stands_for_a_folder(tmp_path: Path) -> None:
    write(tmp_path, matmul_more=MATMUL + A_MATMUL, softmax="nonsense\n")
    assert len(validate(data=tmp_path / "matmul_more.csv", execution="ideal").points) == 1


def test_launch_is_left_out_where_the_reference_has_none(tmp_path: Path) -> None:
    slow = tmp_path / "slow.yaml"
    slow.write_text("name: slow\nsource: test\nlaunch: {gemm: 1 ms}\n")
    write(tmp_path, matmul=MATMUL + A_MATMUL)
    (estimate,) = validate(data=tmp_path / "matmul.csv", execution=str(slow)).points["estimate"]
    ideal = PerformanceModel("llmcompass-a100", "ideal").estimate(Gemm("g", 8192, 1024, 1024))
    assert estimate == pytest.approx(ideal.latency_s, rel=1e-9)


def test_launch_is_put_in_where_the_reference_has_it(tmp_path: Path) -> None:
    write(tmp_path, transformer=LAYER + "A100_4_fp16,4,12288,96,decode,8,3072,1e-3,2e-5\n")
    block = "name: trial\nsource: test\nkernels: {qkv: separate}\n"
    silent, own = tmp_path / "silent.yaml", tmp_path / "own.yaml"
    silent.write_text(block)
    own.write_text(block + "launch: {elementwise: 1 us}\n")  # a block's own times stand
    path = tmp_path / "transformer.csv"
    with_overheads, without = (
        validate(data=path, execution=str(block)).points.set_index("operator")
        for block in (silent, own)
    )
    extra = with_overheads["estimate"] - without["estimate"]
    # 8 products of 21 us, a softmax of 12, two norms and a GELU of 45.
    assert extra["layer"] == pytest.approx(315e-6)
    assert extra["softmax"] == pytest.approx(12e-6)
    assert list(with_overheads["whole"]) == [False, True]


def test_decode_of_a_layer_attends_to_the_new_token_too(tmp_path: Path) -> None:
    write(tmp_path, transformer=LAYER + "GA100.json,4,12288,96,decode,8,3072,1e-3,2e-5\n")
    shapes = validate(data=tmp_path, execution="ideal").points["shape"]
    assert set(shapes) == {"batch 8, context 3073, tp 4"}


def test_cut_of_a_sweep_reaches_the_chip(tmp_path: Path) -> None:
    header = LAYER.replace("system", "cores,mem_bw_Bps,system")
    row = "H100_made_x8,8,14336,112,prefill,1,2048,3.4e-3,1.3e-4\n"
    write(tmp_path, sweep_x=f"{header}132,3.35e12,{row}66,1.675e12,{row}")
    points = validate(data=tmp_path, execution="ideal").points
    layers = points[points["operator"] == "layer"]["estimate"].tolist()
    assert 1.5 < layers[1] / layers[0] < 2.1  # half of both; links and launches stay


@pytest.mark.parametrize(
    ("columns", "cells", "unread"),
    [
        ("l2_MB", ("40", "10"), "l2_MB"),
        ("l2_MB", ("40", ""), "l2_MB"),
        ("core_frac,channels", ("1,8", "0.5,6"), "core_frac, channels"),
    ],
)
def test_sweep_of_what_is_not_read_is_passed_over(
    tmp_path: Path, columns: str, cells: tuple[str, str], unread: str
) -> None:
    row = "GA100.json,4,12288,96,decode,8,3072,1e-3,2e-5\n"
    text = f"{columns},{LAYER}" + "".join(f"{cell},{row}" for cell in cells)
    write(tmp_path, matmul=MATMUL + A_MATMUL, sweep_x=text)
    result = validate(data=tmp_path, execution="ideal")
    assert list(result.points["source"]) == ["matmul.csv: line 2"]
    why = f"a sweep of {unread}, which is not read: what ran is not known"
    assert dict(result.skipped) == {"sweep_x.csv": why}


def test_sweep_with_one_value_of_what_is_not_read_is_judged(tmp_path: Path) -> None:
    row = "GA100.json,4,12288,96,decode,8,3072,1e-3,2e-5\n"
    write(tmp_path, sweep_x=f"l2_MB,took_s,{LAYER}40,1,{row}40,2,{row}")
    result = validate(data=tmp_path, execution="ideal")
    assert set(result.points["source"]) == {"sweep_x.csv: line 2", "sweep_x.csv: line 3"}
    assert dict(result.skipped) == {
        "sweep_x.csv: l2_MB": "not a known column",
        "sweep_x.csv: took_s": "not a known column",
    }


def test_machine_without_arrays_is_slower(tmp_path: Path) -> None:
    header = "hardware,phase,batch,context,total_s,matmul_s\n"
    row = ",decode,128,257,0.1,1e-3\n"
    names = ("Decoding_66corex8", "Decoding_66corex8_no_Tensor_Core")
    write(tmp_path, more_tables=header + "".join(name + row for name in names))
    points = validate(data=tmp_path, execution="ideal").points
    assert list(points["chip"].unique()) == [
        "spad-early-decode",
        "spad-early-decode, no arrays",
    ]
    fast, slow = points[points["operator"] == "matmul"]["estimate"]
    # 128 tokens x 14336 x 14336 x 12 / 8 products on 66 x 128 units x 2 x 2 at 1.98 GHz.
    ideal = 2 * 128 * 14336**2 * 12 / 8 / (66 * 128 * 4 * 1.98e9)
    assert slow >= ideal > fast


@needs_shared
def test_every_file_of_the_public_tool_is_known_or_named() -> None:
    result = validate(data=SHARED / "llmcompass", execution="ideal")
    counts = result.points.groupby("suite").size().to_dict()
    assert counts["public"] == 238 + 46 + 46 + 42 + 64
    assert counts["silicon-eager"] == counts["silicon-eager-llmcompass"] == 226 - 24
    assert counts["public-layer"] == 7 * (57 + 16 + 114)
    assert {name.split(":")[0] for name, _ in result.skipped} == {
        "README.md",
        "allreduce.csv",
        "area_vs_die_photo.csv",
        "cost_area.csv",
        "errors.csv",
    }


@needs_shared
def test_llmcompass_own_errors_are_those_it_reports() -> None:
    frame = validate("silicon-eager", SHARED / "llmcompass", "ideal").frame()
    own = frame[(frame["suite"] == "silicon-eager-llmcompass") & (frame["dtype"] == "all")]
    found = own.set_index(["chip", "operator"])["mape"].to_dict()
    # errors.csv of the same folder
    for chip, operator, percent in (
        ("a100-sxm", "matmul", 6.524),
        ("mi210", "matmul", 10.142),
        ("a100-sxm", "softmax", 9.443),
        ("mi210", "layernorm", 34.122),
        ("mi210", "gelu", 1.321),
    ):
        assert found[chip, operator] == pytest.approx(percent / 100, abs=1e-5)


@needs_shared
def test_every_row_of_the_authors_tables_is_judged() -> None:
    points = validate(data=SHARED / "spad", execution="ideal").points
    assert (points["operator"] == "total").sum() == 1533
