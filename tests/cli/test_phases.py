"""Loads, drafts, mixed steps and words of refusals on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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


def test_drafts_cost_time_in_a_step(chipsim: Command) -> None:
    plain, drafted = (chipsim(f"{DECODE} {more} --json").json for more in ("", "--draft 3"))
    assert drafted["query"] == 4
    assert drafted["latency_s"] > plain["latency_s"]
    ranked = chipsim(
        f"plans {MODEL} --chips 1 --phase decode --batch 16 --context 512 --draft 3 --json"
    )
    assert ranked.json["query"] == 4


def test_a_mixed_step(chipsim: Command) -> None:
    ran = chipsim(f"estimate mixed {MODEL} --chunk 64 --decodes 4 --context 512 --json")
    assert ran.json["phase"] == "mixed"
    assert chipsim(f"{DECODE} --precision BF16 --json").json["precision"] == "bf16"


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
