"""Loads, drafts, mixed steps and words of refusals on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chipsim.importers.model_yaml import model_to_yaml
from tests.ops.models import llama

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

MODEL = "--chip h200-sxm --model qwen3-30b-a3b"
DECODE = f"estimate decode {MODEL} --batch 16 --context 512"


def test_a_load_from_words_or_a_file(chipsim: Command, tmp_path: Path) -> None:
    even = chipsim(f"{DECODE} --json").json["latency_s"]
    assert chipsim(f"{DECODE} --load uniform --json").json["latency_s"] == even
    assert chipsim(f"{DECODE} --load zipf=2 --json").json["latency_s"] < even
    file = tmp_path / "tokens.csv"
    file.write_text("\n".join(["5"] * 8 + ["0"] * 120))
    assert chipsim(f"{DECODE} --load {file} --json").json["latency_s"] < even


def test_a_load_and_its_words_reach_the_plans(chipsim: Command) -> None:
    asked = f"plans {MODEL} --chips 4 --phase decode --batch 64 --context 512 --json"
    even, skewed = (chipsim(f"{asked} {more}").json for more in ("", "--load zipf=1"))
    assert (even["load"], skewed["load"]) == ("uniform", "zipf=1")
    seconds = [{row["plan"]: row["latency_s"] for row in ran["rows"]} for ran in (even, skewed)]
    # on one rank of experts fewer are read; spread over four, the most wanted wait for one
    assert seconds[1]["tp=4"] < seconds[0]["tp=4"]
    assert seconds[0] != seconds[1]
    bad = chipsim(f"{asked} --load zipf=99")
    assert bad.code == 2
    assert "at most 10" in bad.err


def test_drafts_cost_time_in_a_step(chipsim: Command) -> None:
    plain, drafted = (chipsim(f"{DECODE} {more} --json").json for more in ("", "--draft 3"))
    assert (drafted["query"], drafted["draft"]) == (4, 3)
    assert drafted["latency_s"] > plain["latency_s"]
    ranked = chipsim(
        f"plans {MODEL} --chips 1 --phase decode --batch 16 --context 512 --draft 3 --json"
    )
    assert ranked.json["query"] == 4


def test_a_mixed_step(chipsim: Command) -> None:
    ran = chipsim(f"estimate mixed {MODEL} --chunk 64 --decodes 4 --context 512 --json")
    asked = {"phase": "mixed", "batch": 1, "query": 64, "decodes": 4, "decode_context": 512}
    assert {key: ran.json[key] for key in asked} == asked
    assert "decodes" not in chipsim(f"{DECODE} --json").json
    assert chipsim(f"{DECODE} --precision BF16 --json").json["precision"] == "bf16"


def test_an_encoder_encodes(chipsim: Command, tmp_path: Path) -> None:
    tower = {"layers": 2, "hidden": 512, "heads": 8, "intermediate": 2048}
    model = llama(
        4, 1024, 16, intermediate=4096, encoder=tower | {"tokens": 256, "outputs": 64}
    )
    file = tmp_path / "seeing.yaml"
    file.write_text(model_to_yaml(model))
    command = f"estimate encode --chip h100-sxm --model {file}"
    own, short, many = (
        chipsim(f"{command} --json {more}").json for more in ("", "--tokens 128", "--batch 64")
    )
    assert (own["phase"], own["batch"], own["query"]) == ("encode", 1, 256)
    # per token 2 (4 h^2 + 2 h f) of the two layers, and 4 h per pair of tokens
    products = 2 * 256 * 2 * (4 * 512**2 + 2 * 512 * 2048)
    gemms = sum(row["flops"] for row in own["operators"] if row["kind"] == "gemm")
    assert gemms == pytest.approx(products)
    assert short["query"] == 128
    assert short["latency_s"] <= own["latency_s"] < many["latency_s"]
    assert "encode, batch 64" in chipsim(f"{command} --batch 64").out


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (f"{DECODE} --plan tp=0", "plan: tp: 0 is not allowed; allowed: 1 or more"),
        (f"{DECODE} --plan ep=7,dp=7", "allowed: none; tp x cp x dp of 6 chips with ep=1|2 or"),
        (f"{DECODE} --load nowhere", "--load: 'nowhere' is not allowed"),
        (f"estimate encode {MODEL}", "allowed: a model with an encoder"),
    ],
)
def test_refusals_are_in_our_words(chipsim: Command, command: str, told: str) -> None:
    ran = chipsim(command)
    assert ran.code == 2
    assert told in ran.err
    assert "Input should" not in ran.err
