"""Files of measured operators: strict reading, which rows are judged, and as what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chipsim.errors import ChipsimError, ConfigError
from chipsim.ops.operators import Attention, Gemm, GroupedGemm, LatentAttention, Quantise
from chipsim.validation.silicon.chosen import chosen, is_main, label, left_out
from chipsim.validation.silicon.measured import FILES, read_measurements
from chipsim.validation.silicon.suite import PACKAGED, silicon_points
from chipsim.validation.silicon.work import work
from tests.validation.folders import SHARED, needs_shared
from tests.validation.measured import ROWS, folder, one


def test_every_file_is_read(tmp_path: Path) -> None:
    rows = read_measurements(folder(tmp_path))
    assert [row.operator for row in rows] == list(FILES)
    assert rows[0].sizes == {"m": 64, "n": 4096, "k": 4096}
    assert (rows[0].seconds, rows[0].dtype, rows[0].kernel) == (1e-5, "bf16", "torch_flow")
    assert (rows[-1].source, rows[-1].dtype) == ("nccl", "fp16")
    assert not any(left_out(row) for row in rows)


def test_one_file_stands_for_a_folder(tmp_path: Path) -> None:
    folder(tmp_path)
    assert len(read_measurements(tmp_path / "moe.csv")) == 1


GEMM = ROWS["gemm"][1]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (GEMM.replace("bfloat16", "int3"), "gemm.csv: line 2: dtype: 'int3' is not allowed"),
        (GEMM.replace("1e-5", "nan"), "gemm.csv: line 2: latency_s: 'nan'"),
        (GEMM.replace("1e-5", "-1"), "gemm.csv: line 2: latency_s: '-1'"),
        (GEMM.replace("1e-5", ""), "gemm.csv: line 2: latency_s: ''"),
        (GEMM.replace("64,", "6.5,"), "gemm.csv: line 2: m: '6.5'"),
        (GEMM.replace("64,", "0,"), "gemm.csv: line 2: m: '0'"),
        (GEMM.replace("trtllm", ""), "gemm.csv: line 2: framework: ''"),
        (GEMM + ",more", "9 cells"),
        ("", "no rows"),
    ],
)
def test_a_cell_that_cannot_be_is_named(tmp_path: Path, row: str, told: str) -> None:
    (tmp_path / "gemm.csv").write_text(f"{ROWS['gemm'][0]}\n{row}\n")
    with pytest.raises(ConfigError, match=told) as raised:
        read_measurements(tmp_path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("stem", "old", "new", "told"),
    [
        ("collectives", "all_reduce,8", "all_reduce,1", "gpus: '1'.*whole number from 2"),
        ("moe", "1024,4,32", "1024,40,32", "topk: '40'.*at most experts, 32"),
        ("moe", "32,2,4", "32,2048,4", "tp: '2048'.*at most inter, 1024"),
        ("moe", "32,2,4", "32,2,64", "ep: '64'.*at most experts, 32"),
    ],
)
def test_sizes_that_do_not_go_together(
    tmp_path: Path, stem: str, old: str, new: str, told: str
) -> None:
    with pytest.raises(ConfigError, match=f"{stem}.csv: line 2: {told}"):
        one(tmp_path, stem, ROWS[stem][1].replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [("32,8,128", "32,7,128", "kv_heads: 7"), ("8,128,0", "8,1000000,0", "core.sram")],
)
def test_operators_that_cannot_be_are_named_by_their_row(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    row = ROWS["attention_generation"][1].replace(old, new)
    folder(tmp_path, attention_generation=row)
    with pytest.raises(ChipsimError, match=f"attention_generation.csv: line 2: .*{told}"):
        silicon_points(tmp_path)


@pytest.mark.parametrize("stem", FILES)
def test_every_column_is_needed_but_the_kernels_name(tmp_path: Path, stem: str) -> None:
    head, row = ROWS[stem]
    names, cells = head.split(","), row.split(",")
    for i, name in enumerate(names):
        kept = [",".join(x for j, x in enumerate(line) if j != i) for line in (names, cells)]
        (tmp_path / f"{stem}.csv").write_text("\n".join(kept))
        if name == "kernel_source":
            assert read_measurements(tmp_path)[0].kernel == ""
        else:
            with pytest.raises(ConfigError, match=f"no column {name}"):
                read_measurements(tmp_path)


def test_folders_without_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ChipsimError, match=r"none of gemm.csv, "):
        read_measurements(tmp_path)
    with pytest.raises(ChipsimError, match="no such folder"):
        read_measurements(tmp_path / "nowhere")
    (tmp_path / "gem.csv").write_text("a\n1\n")
    with pytest.raises(ChipsimError, match=r"did you mean gemm.csv"):
        read_measurements(tmp_path / "gem.csv")


@pytest.mark.parametrize(
    ("stem", "old", "new", "why"),
    [
        ("gemm", "trtllm", "sglang", "trtllm is judged"),
        ("gemm", "trtllm,bfloat16", "vllm,fp8", "sglang is judged"),
        ("gemm", "trtllm", "my-lab", ""),
        ("attention_context", "bfloat16,bfloat16", "fp8,fp8", "fp8: not judged"),
        ("attention_generation", "bfloat16,bfloat16", "bfloat16,fp8", "kv_dtype fp8"),
        ("moe", "balanced", "power_law_1.2", "power_law_1.2"),
        ("moe", "cutlass", "min_latency", "min_latency"),
        ("moe", "h100_sxm,trtllm", "a100_sxm,trtllm", "sglang is judged"),
        ("moe", "h100_sxm,trtllm", "a100_sxm,sglang", ""),
        ("collectives", "nccl,half", "vllm_custom,bfloat16", "bf16: not judged"),
    ],
)
def test_which_rows_are_judged(tmp_path: Path, stem: str, old: str, new: str, why: str) -> None:
    row = one(tmp_path, stem, ROWS[stem][1].replace(old, new))
    kept, counted = chosen([row, row])
    assert (len(kept) == 2) == (why == "")
    assert why in left_out(row)
    assert sum(counted.values()) == (0 if why == "" else 2)


def test_fallback_kernels_stand_apart(tmp_path: Path) -> None:
    row = one(
        tmp_path, "attention_context", ROWS["attention_context"][1].replace("fa3", "triton")
    )
    assert (label(row), is_main(row)) == ("attention_context/triton", False)
    main = one(tmp_path, "attention_context")
    assert (label(main), is_main(main)) == ("attention_context", True)


def found(path: Path, stem: str, kind: type, row: str = "") -> list[Any]:
    return [op for op in work(one(path, stem, row)) if isinstance(op, kind)]


def test_products(tmp_path: Path) -> None:
    (product,) = work(one(tmp_path, "gemm"))
    assert product == Gemm("", 64, 4096, 4096, 1, "bf16", "bf16", "bf16")
    fp8 = GEMM.replace("trtllm,bfloat16", "sglang,fp8")
    cast, product = work(one(tmp_path, "gemm", fp8))
    # bf16 in, fp8 and one fp32 scale a row out
    assert cast.bytes == 64 * 4096 * 3 + 64 * 4
    assert product == Gemm("", 64, 4096, 4096, 1, "fp8", "fp8", "bf16")
    (cast,) = found(tmp_path, "gemm", Quantise, GEMM.replace("trtllm,bfloat16", "sglang,nvfp4"))
    assert cast.bytes == 64 * 4096 * (2 + 0.5 + 1 / 16)


def test_attention(tmp_path: Path) -> None:
    (prompt,) = found(tmp_path, "attention_context", Attention)
    assert prompt.flops == 2 * 2 * 2 * 32 * 128 * 512 * 513 / 2
    append = work(one(tmp_path, "attention_context"))[0]
    assert append.bytes == 2 * 2 * 2 * 512 * 8 * 2 * 128
    (step,) = found(tmp_path, "attention_generation", Attention)
    assert step.flops == 4 * 32 * 2 * 2 * 128 * 1024
    (prompt,) = found(tmp_path, "mla_context", Attention)
    assert (prompt.head_dim, prompt.value_dim, prompt.kv_heads) == (192, 128, 16)
    (step,) = found(tmp_path, "mla_generation", LatentAttention)
    assert step.flops == 4 * 16 * 2 * 1088 * 1024


def test_experts(tmp_path: Path) -> None:
    """64 tokens of 4 routes over 32 experts on 4 ranks: 8 rows for each of a rank's 8."""
    up, down = found(tmp_path, "moe", GroupedGemm)
    assert (up.experts, up.rows, up.n, up.k) == (8, 64, 2 * 512, 2048)
    assert (down.rows, down.n, down.k) == (64, 2048, 512)
    few = ROWS["moe"][1].replace("cutlass,64", "nongated,1")
    up, _ = found(tmp_path, "moe", GroupedGemm, few)
    assert (up.experts, up.rows, up.n) == (1, 1, 512)


def test_experts_of_tritons_kernels_compute_masked_routes_too(tmp_path: Path) -> None:
    """64 tokens of 4 routes on 4 ranks: each token has a route here, and all 4 are computed.

    On 32 ranks an eighth of the tokens has one.
    """
    triton = ROWS["moe"][1].replace("h100_sxm,trtllm", "a100_sxm,sglang")
    triton = triton.replace("torch_cutlass", "sglang_fused_moe_triton")
    up, _ = found(tmp_path, "moe", GroupedGemm, triton)
    assert (up.experts, up.rows) == (8, 256)
    up, _ = found(tmp_path, "moe", GroupedGemm, triton.replace("32,2,4,bal", "32,2,32,bal"))
    assert (up.experts, up.rows) == (1, 32)


def test_the_packaged_sample_holds_every_chip_and_operator() -> None:
    rows = read_measurements(PACKAGED)
    kept, why = chosen(rows)
    assert len(kept) == len(rows)
    assert not why
    chips = {"a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm"}
    assert {(row.operator, row.system) for row in rows} == {
        (stem, chip) for stem in FILES for chip in chips
    }
    for path in PACKAGED.glob("*.csv"):
        head = path.read_text().splitlines()[:3]
        assert "NVIDIA CORPORATION & AFFILIATES" in head[1]
        assert "Apache-2.0" in head[1]


@needs_shared
def test_the_public_tables_are_read_whole() -> None:
    rows = read_measurements(SHARED / "silicon")
    kept, why = chosen(rows)
    assert len(kept) + sum(why.values()) == len(rows) == 3000 + 3200 + 800 + 911 + 1960
    assert sum(row.operator == "gemm" for row in kept) == 3000
    packaged = {(row.operator, row.system, row.shape, row.seconds)
                for row in read_measurements(PACKAGED)}  # fmt: skip
    assert packaged <= {(row.operator, row.system, row.shape, row.seconds) for row in kept}
