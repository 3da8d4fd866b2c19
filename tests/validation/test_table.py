"""Cells are read strictly, and a bad one is named by file, line, column and value."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipsim.errors import ChipsimError, ConfigError
from chipsim.validation.suites import validate
from chipsim.validation.table import Row, read_table
from tests.validation.folders import A_MATMUL, MATMUL, TABLE, write


@pytest.mark.parametrize(
    ("stem", "header", "row", "column", "value"),
    [
        ("matmul", MATMUL, "A100_80GB_fp16,1,0,1024,1024,2,9e-5", "M", "0"),
        ("matmul", MATMUL, "A100_80GB_fp16,1,8192,-1,1024,2,9e-5", "K", "-1"),
        ("matmul", MATMUL, "A100_80GB_fp16,1,8192,1024,1.5,2,9e-5", "N", "1.5"),
        ("matmul", MATMUL, "A100_80GB_fp16,1,8192,1024,wide,2,9e-5", "N", "wide"),
        ("matmul", MATMUL, "A100_80GB_fp16,1,8192,1024,1e15,2,9e-5", "N", "1e15"),
        ("matmul", MATMUL, "A100_80GB_fp16,1,8192,1024,64,3,9e-5", "dtype_bytes", "3"),
        ("matmul", MATMUL, "A100_80GB_fp16,1,8192,1024,64,2,nan", "sim_latency_s", "nan"),
        ("matmul", MATMUL, "A100_80GB_fp16,1,8192,1024,64,2,inf", "sim_latency_s", "inf"),
        ("matmul", MATMUL, "A100_80GB_fp16,1,8192,1024,64,2,", "sim_latency_s", ""),
        ("matmul", MATMUL, "A100_80GB_fp16,1,64,64,64,2,1e-320", "sim_latency_s", "1e-320"),
        ("matmul", MATMUL, "A100_80GB_fp16,1,64,64,64,2,1e300", "sim_latency_s", "1e300"),
        ("bloom", TABLE, "H100x8,prefill,2,1024,9e-13,1e-3", "total_s", "9e-13"),
        ("bloom", TABLE, "H100x8,prefill,2,1024,0.2,1.1e6", "matmul_s", "1.1e6"),
        (
            "silicon_a100",
            "operator,device,M,K,N,real_s,sim_s\n",
            "softmax,A100,4096,,64,1e-5,1e-320",
            "sim_s",
            "1e-320",
        ),
        ("bloom", TABLE, "H100x8,prefill,2,1024,-0.2,1e-3", "total_s", "-0.2"),
        ("bloom", TABLE, "H100x8,prefill,2,1024,0.2,0", "matmul_s", "0"),
        ("bloom", TABLE, "H100x8,training,2,1024,0.2,1e-3", "phase", "training"),
        (
            "silicon_a100",
            "operator,device,M,K,N,real_s,sim_s\n",
            "softmax,A100,4096.0,,none,1e-5,1e-5",
            "N",
            "none",
        ),
        (
            "sweep_x",
            "system,tp,d_model,n_heads,phase,batch,seq_or_ctx,latency_s\n",
            "GA100.json,4,12288,97,decode,8,1024,1e-3",
            "n_heads",
            "97",
        ),
    ],
)
def test_bad_cell_is_one_line(
    tmp_path: Path, stem: str, header: str, row: str, column: str, value: str
) -> None:
    write(tmp_path, **{stem: f"# a comment\n{header}{row}\n"})
    with pytest.raises(ConfigError) as caught:
        validate(data=tmp_path, execution="ideal")
    message = str(caught.value)
    assert message.startswith(f"{stem}.csv: line 3: {column}: '{value}' is not allowed")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MATMUL + "A100_80GB_fp16,1,2\n", "matmul.csv: line 2: '3 cells' is not allowed"),
        ("device,M,M,K,N,sim_latency_s\n", "matmul.csv: header: 'M' is not allowed"),
        ('device,M,K,N,sim_latency_s\nA100,"1,2,3,4\n', "matmul.csv: line 2: "),
    ],
)
def test_bad_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(data=write(tmp_path, matmul=text))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "matmul.csv").write_bytes(b"\xff\xfe\x00device")
    with pytest.raises(ConfigError, match=r"^matmul\.csv: .*CSV file in UTF-8$"):
        validate(data=tmp_path)


def test_head_blank_lines_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\ufeff# source: x\n\na, b\n1 ,64.0\n\n", encoding="utf-8")
    table = read_table(path)
    assert (table.head, table.columns) == (("# source: x",), ("a", "b"))
    (row,) = table.rows
    assert row.where == "a.csv: line 4"
    assert (row.whole("a"), row.whole("b"), row.whole("c", 7)) == (1, 64, 7)


def test_quoted_cell_may_hold_a_line_break(tmp_path: Path) -> None:
    header = MATMUL.replace("device", "best_mapping,device")
    rows = f'"L2 64,\n\n# L1 ""32""\n",{A_MATMUL}# "a comment\n"x\ny",{A_MATMUL}'
    path = write(tmp_path, matmul=header + rows) / "matmul.csv"
    table = read_table(path)
    assert [row.cells["best_mapping"] for row in table.rows] == ['L2 64, # L1 "32"', "x y"]
    assert [row.where for row in table.rows] == ["matmul.csv: line 2", "matmul.csv: line 7"]
    assert len(validate(data=tmp_path, execution="ideal").points) == 2


def test_empty_cells_are_missing() -> None:
    row = Row("x", {"a": ""})
    assert not row.has("a")
    with pytest.raises(ChipsimError, match="x: a: '' is not allowed; allowed: a value"):
        row.text("a")


def test_good_file_is_judged(tmp_path: Path) -> None:
    result = validate(data=write(tmp_path, matmul=MATMUL + A_MATMUL), execution="ideal")
    assert len(result.points) == 1
    assert result.skipped == []
