"""``chipsim import hf``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.importers.files import llama, write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

# Tables, the last norm; per layer 8 + 2 + 2 + 8 heads of 32, an MLP and two norms.
PARAMETERS = 2 * 1000 * 256 + 256 + 4 * (256 * 32 * 20 + 3 * 256 * 512 + 2 * 256)


def test_one_object_says_what_was_imported(chipsim: Command, tmp_path: Path) -> None:
    file = write(tmp_path, llama(num_nextn_predict_layers=2))
    found = chipsim("import", "hf", str(file), "--json").json
    assert found["name"] == "model"
    assert found["architecture"] == "LlamaForCausalLM"
    assert found["layers"] == 4
    assert found["parameters"] == found["active_parameters"] == PARAMETERS
    assert found["kv_bytes_per_token"] == 1024.0
    assert found["warnings"] == ["multi-token prediction is left out: 2 layers"]


def test_a_folder_becomes_a_model_that_estimates(chipsim: Command, tmp_path: Path) -> None:
    write(tmp_path, llama(), "config.json")
    out = str(tmp_path / "small.yaml")
    ran = chipsim("import", "hf", str(tmp_path), "--out", out)
    assert ran.code == 0
    assert f"wrote {out}" in ran.err
    assert f"{PARAMETERS:,}" in ran.out
    words = ["--chip", "h100-sxm", "--model", out, "--batch", "1", "--context", "512"]
    assert chipsim("estimate", "decode", *words, "--json").json["latency_s"] > 0


def test_a_bad_configuration_is_one_line(chipsim: Command, tmp_path: Path) -> None:
    ran = chipsim("import", "hf", str(write(tmp_path, llama(num_attention_heads=0))))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "chipsim: error: model.json: num_attention_heads: 0 is not allowed; "
        "allowed: a whole number from 1 to 1000000000\n"
    )
