"""Price books: what closes with their sources, what they refuse, and how ranges add up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from chipsim.arch_configs import load, names
from chipsim.chip import Chip
from chipsim.cost import PriceBook, Range, break_even, chip_cost
from chipsim.cost.prices import one_basis
from chipsim.errors import ChipsimError, ConfigError, UnknownNameError
from tests.cost.chips import H100, changed, resources, with_memory, with_plan

if TYPE_CHECKING:
    from pathlib import Path

GIB = 2.0**30
SPAD = PriceBook.load("spad-2025")
CLOSING = {
    # SPAD, Table 3 and its sensitivity: die, memory, total; total with HBM at $6 and $12
    "spad-prefill": (301, 192, 493, 493, 493),
    "spad-decode": (187, 720, 907, 667, 1147),
    "spad-h100": (315, 720, 1035, 795, 1275),
}


@pytest.mark.parametrize("chip", CLOSING)
def test_spad_s_table_closes_to_the_dollar(chip: str) -> None:
    die, memory, total, low, high = CLOSING[chip]
    cost = chip_cost(chip, "spad-2025")
    assert (round(cost.die_cost_usd), round(cost.memory_cost_usd)) == (die, memory)
    assert (round(cost.total_usd), cost.basis) == (total, "manufacturing")
    assert (round(cost.total.low), round(cost.total.high)) == (low, high)
    assert cost.packaging_cost_usd == 0.0
    assert (cost.prices, cost.date) == ("spad-2025", "2025-10")


@pytest.mark.parametrize(("price", "totals"), [(6, (667, 795)), (12, (1147, 1275))])
def test_spad_s_sensitivity_to_the_price_of_hbm(price: float, totals: tuple[int, int]) -> None:
    book = SPAD.with_memory_price("HBM3", price / GIB)
    chips = ("spad-decode", "spad-h100")
    assert tuple(round(chip_cost(chip, book).total_usd) for chip in chips) == totals


def test_spad_s_modelled_die_stands_beside_the_stated_one() -> None:
    cost = chip_cost("spad-decode")
    assert cost.stated_area_mm2 == cost.die_area_mm2 == 520.0
    assert cost.modelled_area_mm2 == pytest.approx(sum(cost.blocks.values()))
    assert cost.modelled is not None
    assert cost.modelled.mid == pytest.approx(cost.die_cost_usd, rel=0.03)


@pytest.mark.parametrize(
    ("chip", "die", "memory"),
    [
        # LLMCompass's paper
        ("llmcompass-latency", 80, 560),
        ("llmcompass-ga100", 151, 560),
        ("llmcompass-throughput", 142, 154),
    ],
)
def test_llmcompass_s_designs_close_to_the_dollar(chip: str, die: int, memory: int) -> None:
    cost = chip_cost(chip, "llmcompass-2023")
    assert (round(cost.die_cost_usd), round(cost.memory_cost_usd)) == (die, memory)


def test_llmcompass_s_good_die_with_its_yield() -> None:
    # made by running the parts of its supply chain model: wafer over (dies x yield), alpha 3
    book = PriceBook.load("llmcompass-2023")
    model = changed(book.die_yield, model="negative-binomial", harvest=False)
    book = book.model_copy(
        update={"die_yield": model, "gross_dies": changed(book.gross_dies, whole=False)}
    )
    ga100 = changed(Chip.load("llmcompass-ga100"), die_area=None)
    assert chip_cost(ga100, book).die_cost_usd == pytest.approx(423.428027, rel=1e-5)


@pytest.mark.parametrize(
    ("chip", "total", "share"),
    [
        # Epoch AI: a B200 $6400 (5700 to 7300), 45 % memory; Raymond James: an H100 $3320, 41 %
        ("b200-sxm", (5700, 7300), (0.43, 0.47)),
        ("h100-sxm", (2988, 3652), (0.37, 0.45)),
    ],
)
def test_analysts_totals_and_the_share_of_memory(
    chip: str, total: tuple[float, float], share: tuple[float, float]
) -> None:
    cost = chip_cost(chip, "analysts-2026")
    assert total[0] <= cost.total_usd <= total[1]
    assert share[0] <= cost.memory_cost_usd / cost.total_usd <= share[1]


def test_the_memory_of_an_a100_of_40_gb_is_near_18_percent() -> None:
    # of the first A100, 5 stacks of 8 GiB of HBM2; that of 80 GB is near 27 % (docs/cost.md)
    a100 = Chip.load("a100-sxm")
    first = with_memory(a100, "HBM2", 1555e9, 40 * GIB)
    shares = [chip_cost(c, "analysts-2026") for c in (first, a100)]
    small, large = (cost.memory_cost_usd / cost.total_usd for cost in shares)
    assert small == pytest.approx(0.16, abs=0.02)
    assert large == pytest.approx(0.27, abs=0.01)


@pytest.mark.parametrize("name", names("prices"))
def test_a_book_names_its_source_date_and_basis(name: str) -> None:
    book = PriceBook.load(name)
    assert book.name == name
    assert len(book.source) > 10
    assert book.date[:2] == "20"
    assert book.basis in ("manufacturing", "street")
    first, second, *_ = (load("prices", name)[1]).read_text(encoding="utf-8").splitlines()
    assert first.startswith("# ")
    assert second.startswith(("#", "name:"))


# ------------------------------------------------------------- properties


@given(resource=resources, less=st.floats(0.3, 1.0), more=st.floats(1.0, 1.3))
def test_cost_never_falls_with_area(resource: str, less: float, more: float) -> None:
    fractions = (less, min(1.0, less * more))
    small, large = (chip_cost(H100.scaled(**{resource: f}), base=H100) for f in fractions)
    assert large.die_area_mm2 >= small.die_area_mm2 * (1 - 1e-12)
    assert large.total_usd >= small.total_usd * (1 - 1e-12)


@given(share=st.floats(0.05, 1.0), more=st.floats(1.0, 3.0))
def test_more_memory_never_costs_less(share: float, more: float) -> None:
    for resource in ("memory_capacity", "memory_bandwidth"):
        small = chip_cost(H100.scaled(**{resource: share}), base=H100)
        large = chip_cost(H100.scaled(**{resource: min(1.2, share * more)}), base=H100)
        if share * more <= 1.2:
            assert large.total_usd >= small.total_usd * (1 - 1e-9)


@given(
    model=st.sampled_from(["poisson", "murphy", "seeds", "negative-binomial"]),
    defects=st.floats(1e-6, 0.004),
    more=st.floats(1.0, 3.0),
    spare=st.integers(0, 12),
)
def test_cost_rises_as_yield_falls(model: str, defects: float, more: float, spare: int) -> None:
    chip = with_plan(H100, cores=132.0 + spare)
    costs = [chip_cost(chip, with_yield(model, each)) for each in (defects, defects * more)]
    assert costs[1].yield_ <= costs[0].yield_ * (1 + 1e-9)
    assert costs[1].total_usd >= costs[0].total_usd * (1 - 1e-9)
    assert costs[0].total_usd >= chip_cost(chip).total_usd * (1 - 1e-9)


def with_yield(model: str, defects: float, **fields: Any) -> PriceBook:
    wafers = {"4 nm": changed(SPAD.wafers["4 nm"], defects=defects)}
    chosen = changed(SPAD.die_yield, model=model, **fields)
    return SPAD.model_copy(update={"wafers": wafers, "die_yield": chosen})


def test_selling_132_of_144_cores_is_cheaper_than_selling_all() -> None:
    chip = Chip.load("h100-sxm")
    book = with_yield("poisson", 0.001)
    harvested = chip_cost(chip, book)
    whole = chip_cost(chip, with_yield("poisson", 0.001, harvest=False))
    assert whole.yield_ == pytest.approx(math.exp(-0.814))
    assert whole.yield_ < harvested.yield_ < 1.0
    assert harvested.die_cost_usd < whole.die_cost_usd


def test_two_dies_of_a_package_are_two_dies() -> None:
    cost = chip_cost("b200-sxm", "spad-2025")
    (die,) = cost.dies
    assert (die.count, die.area_mm2) == (2, 800.0)
    assert cost.die_cost_usd == pytest.approx(2 * die.cost.mid)
    assert die.gross_dies == pytest.approx(math.pi * 150**2 / 800 - math.pi * 300 / 40)


def test_each_die_of_a_package_has_its_share_of_the_cores() -> None:
    # a B200's two dies, each with half of the cores and of the spare ones, by the binomial sum
    book = with_yield("poisson", 0.01)
    chip = Chip.load("b200-sxm")
    cost = chip_cost(chip, book)
    assert chip.floorplan is not None
    assert chip.floorplan.cores is not None
    cores, needed = round(chip.floorplan.cores / 2), chip.cores // 2
    assert cores > needed
    core = cost.blocks["cores"] / sum(cost.blocks.values()) * 800.0 / cores
    good = math.exp(-core * 0.01)
    enough = sum(
        math.comb(cores, n) * good**n * (1 - good) ** (cores - n)
        for n in range(needed, cores + 1)
    )
    assert cost.yield_ == pytest.approx(math.exp(-(800 - core * cores) * 0.01) * enough)


def test_chiplets_of_two_processes_are_priced_apart() -> None:
    compute, io = chip_cost("mi300x", "analysts-2026").dies
    assert (compute.count, compute.process, io.count, io.process) == (8, "5 nm", 4, "6 nm")
    assert (compute.area_mm2, io.area_mm2) == pytest.approx((115.0, 370.0))
    assert compute.yield_ > io.yield_


# --------------------------------------------------------- bases and cuts


def test_a_whole_chip_s_price_is_the_street_s() -> None:
    cost = chip_cost("h100-sxm", "street-2026")
    assert (cost.basis, cost.total.low, cost.total.high) == ("street", 22000, 40000)
    with pytest.raises(UnknownNameError, match="chip in price book street-2026 'spad-prefill'"):
        chip_cost("spad-prefill", "street-2026")
    h100 = Chip.load("h100-sxm")
    with pytest.raises(ConfigError, match="prices whole chips"):
        chip_cost(h100.scaled(cores=0.5), "street-2026", base=h100)


@pytest.mark.parametrize(
    ("chip", "told"),
    [
        (
            Chip.load("a100-sxm").scaled(cores=0.5),
            "a chip with other cores, die_area, floorplan",
        ),
        (changed(Chip.load("a100-sxm"), cores=100), "a chip with other cores'"),
        (changed(Chip.load("a100-sxm"), die_area=400.0), "a chip with other die_area'"),
        (Chip.load("a100-sxm").scaled(memory_capacity=0.5), "a chip with other memory'"),
    ],
)
def test_a_price_is_of_the_chip_and_not_of_its_name(chip: Chip, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        chip_cost(chip)
    assert told in str(caught.value)
    assert "the uncut a100-sxm: spad-2025 prices whole chips" in str(caught.value)


def test_another_block_or_source_leaves_a_chip_the_same() -> None:
    chip = changed(Chip.load("a100-sxm"), execution="ideal", source="mine")
    assert chip_cost(chip).total == chip_cost("a100-sxm").total


def test_a_chip_that_is_listed_keeps_its_area() -> None:
    whole = chip_cost("h100-sxm", "street-2026").record()
    parts = chip_cost("h100-sxm", "spad-2025").record()
    for name in ("die_area_mm2", "blocks", "stated_area_mm2", "modelled_area_mm2"):
        assert whole[name] == parts[name] != {}
    for name in ("memory_packages", "edge_mm", "edge_available_mm"):
        assert whole[name] == parts[name] > 0
    assert whole["die_area_mm2"] == 814


def test_ranges_stay_in_the_record() -> None:
    cost = chip_cost("b200-sxm", "analysts-2026")
    found = cost.record()
    for name, part in (
        ("die", cost.die),
        ("memory", cost.memory),
        ("packaging", cost.packaging),
    ):
        ends = found[f"{name}_cost_low_usd"], found[f"{name}_cost_high_usd"]
        assert ends == (part.low, part.high)
        assert ends[0] < found[f"{name}_cost_usd"] < ends[1]
    assert found["memory_packages"] == 8


def test_an_a100_counts_as_half_an_h100_for_spad() -> None:
    half = chip_cost("a100-sxm").total_usd
    assert half == pytest.approx(chip_cost("spad-h100").total_usd / 2, rel=1e-4)


def test_prices_of_two_bases_are_added_up_only_when_asked() -> None:
    street = changed(SPAD.memory["HBM3"], basis="street")
    book = SPAD.model_copy(update={"memory": {"HBM3": street}})
    with pytest.raises(ConfigError, match="basis: 'manufacturing, street' is not allowed"):
        chip_cost("spad-h100", book)
    cost = chip_cost("spad-h100", book, mixed=True)
    assert cost.basis == "mixed: manufacturing, street"
    assert any("different bases" in note for note in cost.notes)


def test_one_basis_of_nothing_is_nothing() -> None:
    assert one_basis("x", set()) == ""
    assert one_basis("x", {"rental"}) == "rental"


def test_a_cut_chip_scales_what_its_base_states() -> None:
    cut = H100.scaled(cores=0.5)
    assert (cut.die_area, cut.tdp) == (None, None)
    alone, beside = chip_cost(cut), chip_cost(cut, base=H100)
    whole = sum(chip_cost(H100).blocks.values())
    assert alone.stated_area_mm2 is None
    assert beside.die_area_mm2 == pytest.approx(alone.die_area_mm2 * 814 / whole)
    assert chip_cost(H100, base=H100).total == chip_cost(H100).total


def test_a_design_is_shared_by_its_volume() -> None:
    book = PriceBook.load("analysts-2026")
    spad = [chip_cost("spad-decode", book, volume=v) for v in (None, 1e5, 1e6)]
    none, few, many = (cost.total_usd for cost in spad)
    assert spad[0].design == Range.of(0.0)
    assert few - none == pytest.approx(10 * (many - none), rel=1e-9)
    assert many - none == pytest.approx((18.1e6 + 488e6) / 1e6, rel=1e-9)
    with pytest.raises(ConfigError, match="volume"):
        chip_cost("spad-decode", book, volume=0)


def test_the_second_chip_pays_from_its_break_even_volume_on() -> None:
    decode, h100 = chip_cost("spad-decode"), chip_cost("spad-h100")
    design = Range(low=100e6, mid=300e6, high=500e6)
    found = break_even(decode, h100, design)
    assert found.mid == pytest.approx(300e6 / (1035.064 - 907.425), rel=1e-5)
    assert found.low < found.mid < found.high
    volume = found.mid
    assert volume * h100.total_usd == pytest.approx(volume * decode.total_usd + 300e6)


def test_a_second_chip_that_saves_nothing_never_pays() -> None:
    decode, prefill = chip_cost("spad-decode"), chip_cost("spad-prefill")
    assert break_even(decode, prefill, Range.of(1e6)).mid == math.inf
    street = chip_cost("h100-sxm", "street-2026")
    with pytest.raises(ConfigError, match="one basis for both chips"):
        break_even(prefill, street, Range.of(1e6))


def test_break_even_is_of_one_book_and_without_design() -> None:
    h100, other = chip_cost("h100-sxm"), chip_cost("h100-sxm", "analysts-2026")
    with pytest.raises(ConfigError, match=r"prices: 'analysts-2026 of .*one book for both"):
        break_even(other, h100, Range.of(1e6))
    shared = chip_cost("h100-sxm", "analysts-2026", volume=1e6)
    for pair in ((shared, other), (other, shared)):
        with pytest.raises(
            ConfigError, match=r"volume: 1000000.0 is not allowed; allowed: none"
        ):
            break_even(*pair, Range.of(1e6))


@pytest.mark.parametrize("volume", [-1.0, 0.0, math.nan, math.inf])
@pytest.mark.parametrize("chip", ["a100-sxm", "spad-h100"])  # listed, and added up
def test_a_volume_is_a_number_above_nothing(chip: str, volume: float) -> None:
    with pytest.raises(ConfigError, match=r"cost: volume: .* is not allowed"):
        chip_cost(chip, volume=volume)


def test_a_book_without_designs_has_none_to_name() -> None:
    with pytest.raises(UnknownNameError, match=r"'4 nm'; known: none$"):
        chip_cost("spad-h100", volume=1e6)


def test_what_is_lost_in_packaging_takes_dies_and_memory_along() -> None:
    cost = chip_cost("b200-sxm", "analysts-2026")
    inside = cost.die.mid + cost.memory.mid + sum(
        part.mid for name, part in cost.packaging_items.items() if name != "assembly loss"
    )  # fmt: skip
    assert cost.total_usd == pytest.approx(inside / 0.83)


# ------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"basis": "wholesale"}, "basis: "),
        ({"basis": ...}, "basis: None is not allowed; allowed: the key is required"),
        ({"colour": "green"}, "colour: "),
        ({"yield": {"model": "fixed", "value": 0}}, "yield.value: 0 is not allowed"),
        ({"yield": {"model": "bose-einstein"}}, "yield.model: "),
        ({"yield": {"model": "negative-binomial", "alpha": 0}}, "yield.alpha: 0 "),
        ({"wafers": {"4 nm": {"price": 20000}}}, "wafers.4 nm.price: 20000 is not allowed"),
        ({"wafers": {"4 nm": {"price": "-1 USD"}}}, "wafers.4 nm.price.low: "),
        ({"wafers": {"4 nm": {"price": "9 USD/GiB"}}}, "wafers.4 nm.price: "),
        ({"basis": "rental"}, "a basis of things that are bought, for wafers.4 nm; not rental"),
        (
            {"memory": {"HBM3": {"price": "9 USD/GiB", "basis": "rental"}}},
            "things that are bought, for memory.HBM3; not rental",
        ),
        (
            {"basis": "rental", "wafers": {}, "memory": {}},
            "things that are bought, for chips.a100-sxm.price; not rental",
        ),
        ({"wafers": {"4 nm": {"price": "0 USD"}}}, "wafers.4 nm: "),
        ({"wafers": {"4 nm": {"price": "0 USD"}}}, "a price above 0 USD"),
        ({"wafers": {}, "chips": {}}, "prices of wafers or of chips"),
        ({"memory": {"HBM3": {"price": {"low": "9 USD/GiB"}}}}, "memory.HBM3.price.mid: "),
        (
            {"memory": {"HBM3": {"price": {"low": "9 USD/GiB", "high": "6 USD/GiB"}}}},
            "low, mid and high in ascending order",
        ),
        ({"gross_dies": {"formula": "square"}}, "gross_dies.formula: "),
        ({"gross_dies": {"diameter": "0 mm"}}, "gross_dies.diameter: "),
    ],
)
def test_a_bad_book_is_one_line_with_its_field(
    tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    data = load("prices", "spad-2025")[0] | change
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in data.items() if v is not ...}))
    with pytest.raises(ConfigError) as caught:
        PriceBook.load(str(path))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("chip", "book", "told"),
    [
        (changed(H100, die_area=900.0), SPAD, "die area: '900 mm2' is not allowed"),
        (changed(H100, process="7 nm"), SPAD, "unknown process in price book spad-2025 '7 nm'"),
        (changed(H100, die_area=None, floorplan=None), SPAD, "die_area: None is not allowed"),
        (changed(H100, die_area=None, process="16 nm"), SPAD, "unknown process '16 nm'"),
        (H100, "spad-2024", "unknown price book 'spad-2024'; did you mean spad-2025"),
        (H100, with_yield("poisson", 1.0, harvest=False), "no die works"),
        (
            H100,
            SPAD.model_copy(update={"gross_dies": changed(SPAD.gross_dies, diameter=25.0)}),
            "a 25 mm wafer holds a die",
        ),
        (with_memory(H100, "DDR5", 1e9, 1e9), SPAD, "unknown memory in price book spad-2025"),
    ],
)
def test_a_cost_that_cannot_be_told_is_refused_in_one_line(
    chip: Chip, book: PriceBook | str, told: str
) -> None:
    with pytest.raises(ChipsimError) as caught:
        chip_cost(chip, book)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e3))
def test_ranges_add_and_scale_end_by_end(first: float, second: float, factor: float) -> None:
    low, high = sorted((first, second))
    one = Range(low=low, mid=(low + high) / 2, high=high)
    both = (one + one) * factor
    assert both.low == pytest.approx(2 * low * factor)
    assert both.high == pytest.approx(2 * high * factor)
    assert Range.of(first).known
