from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chipsim.arch_configs import names
from chipsim.arch_configs.find import LIBRARY

if TYPE_CHECKING:
    from tests.cli.conftest import Command

KEYS = {
    "die_area_mm2", "blocks", "gross_dies", "yield", "die_cost_usd", "memory_cost_usd",
    "packaging_cost_usd", "total_usd", "tdp_w", "tdp_parts", "energy",
}  # fmt: skip
DECODE = "--model bloom-176b --tp 8 --batch 64 --context 1024"
PREFILL = "--model bloom-176b --tp 8 --batch 2 --prompt 1024"


@pytest.mark.parametrize(
    ("chip", "die", "memory", "total", "tdp"),
    [
        ("spad-prefill", 301, 192, 493, 596),
        ("spad-decode", 187, 720, 907, 507),
        ("spad-h100", 315, 720, 1035, 700),
    ],
)
def test_the_table_of_the_paper(
    chipsim: Command, chip: str, die: int, memory: int, total: int, tdp: int
) -> None:
    # SPAD, Table 3
    found = chipsim("cost", chip, "--json").json
    assert found.keys() >= KEYS
    figures = ("die_cost_usd", "memory_cost_usd", "total_usd", "tdp_w")
    assert [round(found[name]) for name in figures] == [die, memory, total, tdp]
    assert sum(found["tdp_parts"].values()) == pytest.approx(found["tdp_w"])
    assert found["prices"] == "spad-2025"
    assert found["basis"] == "manufacturing"
    assert all(value > 0 for value in found["energy"].values())


def test_the_table_to_read_says_the_same(chipsim: Command) -> None:
    text = chipsim("cost", "spad-decode").out
    assert text.startswith("spad-decode costs $907")
    assert "draws 507 W" in text
    assert "prices spad-2025 of 2025-10, manufacturing" in text
    assert max(map(len, text.splitlines())) <= 100


def test_cuts_carry_cost_and_power(chipsim: Command) -> None:
    command = (
        *f"cuts --chip spad-h100 {PREFILL} --phase prefill --resource memory_bandwidth".split(),
        *("--fractions", "1,0.8,0.7"),
    )
    found = chipsim(*command, "--json").json
    whole, stacks, part = found["rows"]
    assert found["prices"] == "spad-2025"
    assert round(whole["cost_usd"]) == 1035
    assert round(whole["tdp_w"]) == 700
    assert math.isclose(whole["energy_j"], found["uncut"]["energy_j"])
    assert whole["tdp_w"] > stacks["tdp_w"] > part["tdp_w"]
    assert whole["counterfactual"] == ""
    assert "stacks" in part["counterfactual"]
    assert "uncut: $1035, TDP 700 W" in chipsim(*command).out.replace("\n", " ")


def test_a_chip_that_a_book_does_not_price_still_has_watts(chipsim: Command) -> None:
    found = chipsim(
        "cuts --chip mi210 --model llama-3.1-8b --phase decode --context 64 --resource cores "
        "--fractions 1 --json"
    ).json
    (row,) = found["rows"]
    assert row["cost_usd"] is None
    assert row["tdp_w"] == pytest.approx(300)  # stated
    assert row["energy_j_per_token"] == pytest.approx(row["energy_j"])
    assert row["tokens_per_s_per_usd"] is None
    assert "6 nm" in found["unpriced"]


def test_a_cut_that_is_not_priced_says_why(chipsim: Command) -> None:
    command = (
        "cuts --chip a100-sxm --model llama-3.1-8b --phase decode --context 64 "
        "--resource cores --fractions 1,0.5"
    )
    whole, half = chipsim(f"{command} --json").json["rows"]
    assert (whole["unpriced"], half["cost_usd"]) == ("", None)
    assert "spad-2025 prices whole chips" in half["unpriced"]
    assert "spad-2025 prices whole chips" in " ".join(chipsim(command).out.split())


def test_a_listed_chip_shows_area_and_stated_power(chipsim: Command) -> None:
    found = chipsim("cost a100-sxm --json").json
    assert (found["die_area_mm2"], found["stated_tdp_w"]) == (826, 400)
    assert found["modelled_area_mm2"] == pytest.approx(sum(found["blocks"].values()))
    assert "826.0 mm²" in chipsim("cost a100-sxm").out


def test_an_estimate_has_joules(chipsim: Command) -> None:
    found = chipsim(f"estimate decode --chip spad-h100 {DECODE} --json").json
    assert found["energy_j"] == pytest.approx(sum(found["energy_parts_j"].values()))
    assert found["energy_j"] == pytest.approx(found["power_w"] * found["latency_s"])
    assert sum(row["energy_j"] for row in found["operators"]) == pytest.approx(
        found["energy_j"]
    )
    assert (
        f"{found['power_w']:.0f} W" in chipsim(f"estimate decode --chip spad-h100 {DECODE}").out
    )


def test_a_cap_slows_prefill_and_not_decode(chipsim: Command) -> None:
    ratios = []
    for phase, asked in (("prefill", PREFILL), ("decode", DECODE)):
        command = f"estimate {phase} --chip spad-h100 {asked} --json"
        free = chipsim(command).json
        held = chipsim(f"{command} --power-cap 450").json
        assert held["power_cap_w"] == 450
        assert held["power_w"] <= 450
        assert all(0.1 <= row["clock_fraction"] <= 1 for row in held["operators"])
        ratios.append(held["latency_s"] / free["latency_s"])
    assert ratios[0] > 1.08
    assert ratios[1] < 1.001


def test_a_cap_may_carry_its_unit(chipsim: Command) -> None:
    gemm = "estimate gemm --chip h100-sxm -m 4096 -n 4096 -k 4096 --json"
    plain, unit = (
        chipsim(*gemm.split(), "--power-cap", text).json for text in ("450", "0.45 kW")
    )
    assert plain == unit
    assert plain["clock_fraction"] < 1
    unfused = chipsim(
        "estimate attention --chip h100-sxm --batch 4 --q-heads 32 --head-dim 128 --query 512 "
        "--context 2048 --unfused --power-cap 400 --json"
    ).json
    assert [row["power_cap_w"] for row in unfused["operators"]] == [400] * 3
    text = chipsim(*gemm.replace("--json", "").split(), "--power-cap", "450").out
    assert "under the cap" in text


def test_a_volume_shares_the_design(chipsim: Command) -> None:
    command = "cost h100-sxm --prices analysts-2026 --json"
    none, many, few = (
        chipsim(f"{command}{more}").json for more in ("", " --volume 1e6", " --volume 1e5")
    )
    assert none["design_cost_usd"] == 0
    assert few["design_cost_usd"] == pytest.approx(10 * many["design_cost_usd"])
    assert few["total_usd"] - none["total_usd"] == pytest.approx(few["design_cost_usd"])


def test_a_book_is_shown(chipsim: Command) -> None:
    assert "USD/GiB" in chipsim("show spad-2025").out
    assert chipsim("show spad-2025 --json").json["kind"] == "prices"
    path = LIBRARY / "prices" / "spad-2025.yaml"
    assert chipsim("show", str(path), "--json").json["name"] == "spad-2025"


def test_a_book_shows_rents_as_they_are_stored(chipsim: Command) -> None:
    shown = chipsim("show street-2026").out
    (rent,) = (line for line in shown.splitlines() if "h100-sxm.hourly" in line)
    assert "2.95 USD/hour (1.99 to 5)" in rent


def test_every_book_prices_a_chip(chipsim: Command) -> None:
    for book in names("prices"):
        priced = [
            chip
            for chip in names("chips")
            if chipsim("cost", chip, "--prices", book, "--json").code == 0
        ]
        assert priced, book


def test_prices_of_two_bases_need_force(chipsim: Command, tmp_path: Path) -> None:
    text = (LIBRARY / "prices" / "spad-2025.yaml").read_text()
    mixed = text.replace("  GDDR7:\n", "  GDDR7:\n    basis: street\n")
    assert mixed != text
    path = tmp_path / "mixed.yaml"
    path.write_text(mixed)
    ran = chipsim("cost", "spad-prefill", "--prices", str(path))
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "manufacturing, street" in ran.err
    forced = chipsim("cost", "spad-prefill", "--prices", str(path), "--force", "--json").json
    assert forced["basis"] == "mixed: manufacturing, street"


def test_a_system_has_dollars_per_hour_and_per_token(chipsim: Command) -> None:
    # the closed forms of docs/cost.md: 40291 USD, 1.73 USD/hour, 0.329 USD a million tokens
    command = f"system spad-h100 {DECODE} --phase decode --goodput 2"
    found = chipsim(f"{command} --json").json
    assert found["chips"] == 8
    assert round(found["capital_usd"]) == 40291
    assert found["usd_per_hour"] == pytest.approx(1.73, abs=0.005)
    assert found["usd_per_million_output_tokens"] == pytest.approx(0.329, abs=0.0005)
    assert found["usd_per_hour_low"] < found["usd_per_hour"] < found["usd_per_hour_high"]
    assert found["requests_per_usd"] == pytest.approx(2 * 3600 / found["usd_per_hour"])
    kilowatts = found["power_w"] * 1.56 / 1e3
    assert found["energy_usd_per_hour"] == pytest.approx(kilowatts * 0.0806)
    assert "a million output tokens" in chipsim(command).out
    idle = chipsim("system spad-h100 --machines 2 --json").json
    assert idle["power_w"] == pytest.approx(2 * (8 * 700 + 4600))
    first = f"system spad-h100 {PREFILL} --phase prefill --json"
    assert chipsim(first).json["usd_per_million_input_tokens"] > 0


def test_a_rented_system_costs_its_rent(chipsim: Command) -> None:
    found = chipsim("system h100-sxm --prices street-2026 --rent --json").json
    assert (found["usd_per_hour"], found["basis"]) == (pytest.approx(8 * 2.95), "rental")
    assert "rented" in chipsim("system h100-sxm --prices street-2026 --rent").out


def test_a_second_design_pays_from_some_volume_on(chipsim: Command) -> None:
    command = "cost spad-prefill --versus spad-h100 --replaces 1.08 --design-cost 500e6"
    found = chipsim(f"{command} --json").json["break_even"]
    assert round(found["mid_chips"], -3) == 801000
    assert "from 800,667 chips" in " ".join(chipsim(command).out.split())
    never = "cost spad-h100 --versus spad-prefill --design-cost 1"
    assert chipsim(f"{never} --json").json["break_even"]["mid_chips"] is None
    assert "never pays" in chipsim(never).out
    book = "cost spad-prefill --versus spad-h100 --prices analysts-2026 --json"
    assert chipsim("cost h100-sxm --versus b200-sxm --prices analysts-2026 --json").code == 0
    with_packages = chipsim(book).json["break_even"]
    assert with_packages["mid_chips"] < found["mid_chips"]  # an H100's package is dear
    assert "GDDR7" in chipsim(book.replace("analysts-2026", "llmcompass-2023")).err


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("cost nothing", "unknown chip"),
        ("cost spad-h100 --prices spad-2024", "did you mean spad-2025"),
        ("cost mi210", "6 nm"),
        ("cost spad-h100 --design-cost 5", "with --versus CHIP2"),
        ("cost spad-h100 --versus spad-prefill", "'4 nm'; known: none"),
        ("cost a100-sxm --versus spad-h100", "--design-cost: None is not allowed"),
        ("cost a100-sxm --volume -1", "cost: volume: -1.0 is not allowed"),
        ("cost a100-sxm --volume nan", "cost: volume: nan is not allowed"),
        ("system spad-h100 --host nobody", "unknown host 'nobody'"),
        ("system spad-h100 --machines 0", "machines: 0 is not allowed"),
        ("system spad-h100 --context 4", "--model: None is not allowed"),
        ("system spad-h100 --goodput -1", "goodput_rps: -1.0 is not allowed"),
        ("system h100-sxm --prices street-2026", "or --force"),
        ("system mi300x --prices street-2026 --rent", "a price per hour"),
        (f"estimate decode --chip spad-h100 {DECODE} --power-cap 4x", "--power-cap: '4x'"),
        (f"estimate decode --chip spad-h100 {DECODE} --power-cap -5", "--power-cap"),
        (f"estimate decode --chip spad-h100 {DECODE} --power-cap 0", "a power above 0"),
        (f"estimate decode --chip spad-h100 {DECODE} --power-cap 20", "80.5 W idle"),
        (f"estimate decode --chip spad-h100 {DECODE} --power-cap nan", "--power-cap: 'nan'"),
    ],
)
def test_one_line_says_what_is_wrong(chipsim: Command, command: str, told: str) -> None:
    ran = chipsim(command)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert told in ran.err


def test_a_price_of_one_s_own_goes_into_every_verb(chipsim: Command) -> None:
    given = ("--price", "memory.hbm3=12")
    asked = f"{DECODE} --phase decode".split()
    found = chipsim("cost", "spad-h100", *given, "--json").json
    assert found["prices"] == "spad-2025 with memory.HBM3=12"
    assert round(found["total_usd"]) == 1275  # SPAD
    (row,) = chipsim(
        "cuts", "--chip", "spad-h100", *asked, *given, "--resource", "cores", "--fractions",
        "1", "--json",
    ).json["rows"]  # fmt: skip
    assert row["cost_usd"] == found["total_usd"]
    both = chipsim("compare", "spad-h100", "spad-decode", *asked, *given, "--json").json
    assert both["cost_a_usd"] == found["total_usd"]
    assert both["prices"] == found["prices"]
    plans = chipsim(
        "plans", "--chip", "spad-h100", "--chips", "8", "--model", "bloom-176b", "--phase",
        "decode", "--batch", "64", "--context", "1024", *given, "--json",
    ).json  # fmt: skip
    assert {row["cost_usd"] for row in plans["rows"]} == {found["total_usd"]}
    system = chipsim("system", "spad-h100", *given, "--json").json
    assert system["chips_usd"] == pytest.approx(8 * found["total_usd"])
    assert system["prices"] == found["prices"]
    wrong = chipsim("cost", "spad-h100", "--price", "memory.hbm9=12")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)


def test_compare_carries_cost_power_and_energy(chipsim: Command) -> None:
    command = f"compare spad-h100 spad-decode {DECODE} --phase decode"
    found = chipsim(f"{command} --json").json
    for side, chip in (("a", "spad-h100"), ("b", "spad-decode")):
        alone = chipsim(f"cost {chip} --json").json
        assert found[f"cost_{side}_usd"] == alone["total_usd"]
        assert found[f"tdp_{side}_w"] == alone["tdp_w"]
        step = chipsim(f"estimate decode --chip {chip} {DECODE} --json").json
        joules = found[f"energy_{side}_j"]
        assert joules == pytest.approx(step["energy_j"])
        assert found[f"energy_j_per_token_{side}"] == pytest.approx(8 * joules / 64)
        rate = 64 / found[f"latency_{side}_s"] / (8 * alone["total_usd"])
        assert found[f"tokens_per_s_per_usd_{side}"] == pytest.approx(rate)
    text = " ".join(chipsim(command).out.split())
    assert "spad-decode: $907, TDP 507 W" in text
    assert "prices spad-2025" in text
    run = chipsim("compare a100-sxm public-layer --model gpt3-175b --phase prefill --batch 8 "
                  "--prompt 2048 --tp 4 --price memory.hbm3=1")  # fmt: skip
    assert run.code == 2


def test_plans_carry_cost_power_and_energy(chipsim: Command) -> None:
    command = (
        "plans --chip spad-h100 --model bloom-176b --chips 8 --phase decode --batch 64 "
        "--context 1024"
    )
    found = chipsim(f"{command} --json").json
    assert found["prices"] == "spad-2025"
    for row in found["rows"]:
        assert round(row["cost_usd"]) == 1035
        assert row["tdp_w"] == pytest.approx(700)
        assert row["energy_j_per_token"] == pytest.approx(8 * row["energy_j"] / 64)
        rate = row["tokens_per_s"] / (8 * row["cost_usd"])
        assert row["tokens_per_s_per_usd"] == pytest.approx(rate)
        assert 80.5 * row["latency_s"] < row["energy_j"]  # more than it idles at
    assert "first plan: $1035, TDP 700 W" in " ".join(chipsim(command).out.split())


def test_a_cap_may_be_the_tdp(chipsim: Command) -> None:
    gemm = "estimate gemm --chip b200-sxm -m 8192 -n 8192 -k 8192 --execution ideal"
    free, held = (chipsim(f"{gemm}{cap} --json").json for cap in ("", " --power-cap tdp"))
    assert (free["tdp_w"], held["power_cap_w"]) == (1000, 1000)
    assert free["power_w"] > 1000 >= held["power_w"]
    assert held["latency_s"] > free["latency_s"]
    assert "over its TDP of 1000 W" in " ".join(chipsim(gemm).out.split())
    assert "over its TDP" not in chipsim(f"{gemm} --power-cap tdp").out


def test_a_stated_tdp_has_the_modelled_one_beside(chipsim: Command) -> None:
    found = chipsim("cost mi300x --prices analysts-2026 --json").json
    assert found["tdp_w"] == found["stated_tdp_w"] == 750
    assert round(found["modelled_tdp_w"]) == 1288
    assert sum(found["tdp_parts"].values()) == pytest.approx(750)
    assert sum(found["modelled_tdp_parts"].values()) == pytest.approx(found["modelled_tdp_w"])
    assert "750 W (modelled: 1288 W)" in chipsim("cost mi300x --prices analysts-2026").out
