from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Command


PHASE = "--model bloom-176b --tp 8 --phase prefill --batch 2 --prompt 1024"


@pytest.mark.parametrize(
    ("sides", "by"),
    [
        ("spad-h100 spad-prefill", "operator"),
        ("llmcompass-tables spad-figures --chip spad-h100", "operator"),
        ("spad-h100 spad-h100 --execution-b ideal", "group"),
        ("spad-h100 author-tables", "group"),
    ],
)
def test_rows_add_up_to_both_totals(chipsim: Command, sides: str, by: str) -> None:
    found = chipsim(f"compare {sides} {PHASE} --json").json
    assert found["by"] == by
    for side in ("a", "b"):
        total = sum(row[f"latency_{side}_s"] for row in found["rows"])
        assert math.isclose(total, found[f"latency_{side}_s"])
    assert all(row["why"] for row in found["rows"])
    text = chipsim(f"compare {sides} {PHASE}")
    assert text.code == 0
    assert max(map(len, text.out.splitlines())) <= 100


def test_a_run_of_the_author_is_his_own_figure(chipsim: Command) -> None:
    found = chipsim(f"compare spad-h100 author-tables {PHASE} --json").json
    # the paper: 0.2118 s of 70 layers
    assert math.isclose(found["latency_b_s"], 0.2118 / 70, rel_tol=2e-3)


def test_a_file_of_llmcompass_is_a_run(chipsim: Command, tmp_path: Path) -> None:
    path = tmp_path / "transformer.csv"
    columns = (
        "system,tp,d_model,n_heads,phase,batch,seq_or_ctx,latency_s,Q_K_V_s,Q_mul_K_s,"
        "A_mul_V_s,Wo_proj_s,W1_proj_s,W2_proj_s,Softmax_s,LayerNorm_MHA_s,LayerNorm_FFN_s,"
        "GeLU_s,AllReduce_MHA_s,AllReduce_FFN_s"
    )
    row = "A100_4_fp16,4,12288,96,prefill,8,2048," + ",".join(["0.012"] + ["0.001"] * 12)
    path.write_text(f"{columns}\n{row}\n")
    phase = "--model gpt3-175b --tp 4 --phase prefill --batch 8 --prompt 2048"
    ran = chipsim(f"compare llmcompass-a100 {path} {phase} --json")
    assert ran.code == 0, ran.err
    assert math.isclose(ran.json["latency_b_s"], 0.012)


def test_a_waterfall_is_written(chipsim: Command, tmp_path: Path) -> None:
    path = tmp_path / "waterfall.html"
    ran = chipsim(f"compare spad-h100 spad-prefill {PHASE} --out {path}")
    assert ran.code == 0
    assert "waterfall" in path.read_text()


def test_validate_has_the_columns_of_the_design(chipsim: Command, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    ran = chipsim(f"validate paper-curves --json --out {path}")
    for row in ran.json["rows"]:
        assert list(row) == [
            "suite", "chip", "operator", "dtype", "regime",
            "n", "mape", "median_ape", "p90_ape", "bias",
        ]  # fmt: skip
    assert "paper-curves: mean error" in path.read_text()
    assert "MAPE" in chipsim("validate paper-curves").out


def test_validate_names_what_it_skips(chipsim: Command, tmp_path: Path) -> None:
    (tmp_path / "gelu.csv").write_text(
        "device,M,N,dtype_bytes,sim_latency_s,overhead_s\nA100_80GB_fp16,4096,1024,2,1e-5,0\n"
    )
    (tmp_path / "poem.txt").write_text("a tiger")
    ran = chipsim(f"validate llmcompass --data {tmp_path} --json")
    assert [each["name"] for each in ran.json["skipped"]] == ["poem.txt"]
    assert "skipped poem.txt" in chipsim(f"validate llmcompass --data {tmp_path}").out


def test_a_chip_of_llmcompass_is_imported(chipsim: Command, tmp_path: Path) -> None:
    core = {
        "sublane_count": 4, "SRAM_KB": 192,
        "systolic_array": {
            "array_width": 16, "array_height": 16, "data_type": "fp16", "mac_per_cycle": 1,
        },
        "vector_unit": {"vector_width": 32, "flop_per_cycle": 4, "data_type": "fp16"},
    }  # fmt: skip
    device = {
        "frequency_Hz": 1.41e9, "compute_chiplet_count": 1,
        "compute_chiplet": {"core_count": 108, "core": core},
        "io": {
            "global_buffer_MB": 40, "global_buffer_bandwidth_per_cycle_byte": 5120,
            "memory_channel_active_count": 5, "pin_count_per_channel": 1024,
            "bandwidth_per_pin_bit": 3.2e9,
        },
        "memory": {"total_capacity_GB": 80}, "colour": "green",
    }  # fmt: skip
    path, out = tmp_path / "mine.json", tmp_path / "mine.yaml"
    path.write_text(json.dumps({"name": "mine", "device_count": 1, "device": device}))
    found = chipsim(f"import llmcompass {path} --out {out} --json").json
    assert found["name"] == "mine"
    assert any("colour" in warning for warning in found["warnings"])
    assert found["chip"]["memory"]["bandwidth_bytes_per_s"] == 2048e9
    assert chipsim("show", str(out), "--json").json["cores"] == 108
    assert "warning: " in chipsim(f"import llmcompass {path}").out
