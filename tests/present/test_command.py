"""The command beside a picture gives the picture's numbers."""

from __future__ import annotations

import json
import shlex

import pytest

from chipsim import Chip, Phase, cuts
from chipsim.cli.run import run
from chipsim.explore.compare import compare_phases
from chipsim.present.command import compare_command, cuts_command


def answer(line: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    words = shlex.split(line)
    assert words[0] == "chipsim"
    capsys.readouterr()
    assert run([*words[1:], "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"held": {"cores": 0.5}},
        {"execution": "ideal", "precision": "weights=fp8,activations=bf16,kv=fp8"},
        {"batch": "max", "itl_s": 0.05},
        {"layers_only": True, "prices": "analysts-2026"},
    ],
)
def test_of_cuts(options: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    made = cuts(
        "h100-sxm", "llama-3.1-70b", Phase.decode(8, 2048),
        {"memory_bandwidth": [1.0, 0.77]}, plan="tp=4", **options,  # type: ignore[arg-type]
    )  # fmt: skip
    rows = answer(cuts_command(made), capsys)["rows"]
    assert isinstance(rows, list)
    expected = [record["latency_s"] for record in made.records()]
    assert [row["latency_s"] for row in rows] == expected
    assert [row["cost_usd"] for row in rows] == [r["cost_usd"] for r in made.records()]


def test_of_a_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    both = compare_phases(
        "bloom-176b", Phase.prefill(2, 1024), "tp=8", "spad-h100", None, "spad-prefill", None
    )
    found = answer(compare_command(both.setups), capsys)
    assert found["latency_a_s"] == both.total_a_s
    assert found["latency_b_s"] == both.total_b_s


def test_cost_of_a_cut_chip(
    tmp_path: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--base`` scales what the uncut chip states, as a cut does."""
    import yaml

    from chipsim.arch_configs import load
    from chipsim.cost.chip_cost import chip_cost
    from chipsim.cost.power import power

    monkeypatch.chdir(tmp_path)  # type: ignore[arg-type]
    data = {**load("chips", "spad-h100")[0], "name": "mine", "cores": 66}
    data.pop("die_area")
    data.pop("tdp")
    with open("mine.yaml", "w", encoding="utf-8") as file:  # noqa: PTH123 - a test's own
        yaml.safe_dump(data, file)
    found = answer("chipsim cost mine.yaml --base spad-h100", capsys)
    base = Chip.load("spad-h100")
    cut = base.scaled(cores=0.5)
    assert found["total_usd"] == pytest.approx(chip_cost(cut, base=base).total_usd)
    assert found["tdp_w"] == pytest.approx(power(cut, base=base).tdp_w)
