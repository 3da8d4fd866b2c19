"""Machines and clusters: closed forms by hand, and what must never happen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.cost.chip_cost import Cost, chip_cost
from chipsim.cost.ranges import Range
from chipsim.cost.system import (
    Host,
    SystemCost,
    cluster_cost,
    goodput_per_usd,
    rental_cost,
    system_cost,
    token_price,
    usd_per_million_tokens,
)
from chipsim.errors import ChipsimError
from chipsim.ops.phase import Phase
from chipsim.phases import estimate

CHIP = chip_cost("spad-h100")
HOST = Host.load()


def machines(count: int = 1, watts: float = 700.0) -> SystemCost:
    return system_cost(CHIP, watts, HOST, count)


def test_capital_and_electricity_by_hand() -> None:
    # SPAD's H100 at $1035, SemiAnalysis's parts of a DGX without its baseboard
    one = machines()
    assert one.capital.mid == pytest.approx(8 * CHIP.total.mid + 21102 + 10908)
    assert one.capital_per_hour.mid == pytest.approx(one.capital.mid / (5 * 8760))
    kilowatts = (8 * 0.7 + 4.6) * 1.56
    assert one.power_w == pytest.approx(10200)  # NVIDIA: a DGX H100 takes at most 10.2 kW
    assert one.energy_per_hour.mid == pytest.approx(kilowatts * 0.0806)
    assert one.per_hour.mid == pytest.approx(one.capital_per_hour.mid + one.energy_per_hour.mid)
    assert one.per_hour.low < one.per_hour.mid < one.per_hour.high  # HBM at $6, 9 and 12


@given(count=st.integers(1, 1000))
def test_machines_add_up(count: int) -> None:
    many, one = machines(count), machines()
    assert many.capital.mid == pytest.approx(count * one.capital.mid)
    assert many.per_hour.high == pytest.approx(count * one.per_hour.high)
    assert (many.machines, many.chips) == (count, 8 * count)


def test_a_cluster_is_the_sum_of_its_pools() -> None:
    # SPAD's cluster for the code trace: 18 prefill and 7 decode machines
    pools = [
        system_cost(chip_cost("spad-prefill"), 596.0, HOST, 18),
        system_cost(chip_cost("spad-decode"), 507.0, HOST, 7),
    ]
    both = cluster_cost(pools)
    assert both.machines == 25
    assert both.capital.mid == pytest.approx(sum(pool.capital.mid for pool in pools))
    # 14.7 H100 machines in cost and 20.4 in TDP, chips alone (SPAD's cluster table)
    assert both.parts["chips"].mid / (8 * CHIP.total.mid) == pytest.approx(14.7, abs=0.05)
    chips_w = both.power_w - 25 * HOST.power
    assert chips_w / (8 * 700) == pytest.approx(20.4, abs=0.05)


@given(rate=st.floats(1, 1e7), count=st.integers(1, 50))
def test_tokens_and_hours_agree(rate: float, count: int) -> None:
    cost = machines(count)
    price = usd_per_million_tokens(cost, rate)
    assert price.mid * rate * 3600 / 1e6 == pytest.approx(cost.per_hour.mid)


def test_prefill_prices_input_and_decode_output() -> None:
    prefill = estimate("spad-h100", "bloom-176b", Phase.prefill(2, 1024), "tp=8")
    decode = estimate("spad-h100", "bloom-176b", Phase.decode(64, 1024), "tp=8")
    cost = machines()
    given_in = token_price(cost, prefill, 8)
    given_out = token_price(cost, decode, 8)
    assert given_in.mid == pytest.approx(
        cost.per_hour.mid / 3600 * prefill.latency_s / 2048 * 1e6
    )
    assert given_in.mid < given_out.mid
    # Two copies on twice the machines cost as much a token.
    assert token_price(machines(2), decode, 8).mid == pytest.approx(given_out.mid)


def test_goodput_per_dollar() -> None:
    assert goodput_per_usd(machines(), 10.0) == pytest.approx(36000 / machines().per_hour.mid)


def test_bases_are_not_mixed_unless_asked() -> None:
    with pytest.raises(ChipsimError, match="manufacturing, street") as error:
        system_cost(CHIP, 700.0, "hgx-street-2024")
    assert "\n" not in str(error.value)
    mixed = system_cost(CHIP, 700.0, "hgx-street-2024", mixed=True)
    assert mixed.basis == "mixed: manufacturing, street"
    assert cluster_cost([mixed, machines()]).basis == "mixed: manufacturing, street"
    assert cluster_cost([machines(), machines()]).basis == "manufacturing"
    assert mixed.record()["basis"].startswith("mixed")


def test_rented_chips_cost_their_rent() -> None:
    # street-2026: an H100 rents for 1.99 to 5 dollars an hour
    rent = rental_cost("h100-sxm", "street-2026", 16)
    assert rent.per_hour.low == pytest.approx(16 * 1.99)
    assert rent.per_hour.high == pytest.approx(16 * 5)
    assert (rent.basis, rent.capital.mid) == ("rental", 0.0)
    with pytest.raises(ChipsimError, match="manufacturing, rental"):
        cluster_cost([rent, machines()])
    both = cluster_cost([rent, machines()], mixed=True)
    assert both.basis == "mixed: manufacturing, rental"


def rented() -> Cost:
    return Cost(
        "x", "x", "2026", "rental", (), Range.of(0), Range.of(0), Range.of(0), Range.of(0)
    )


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: system_cost(CHIP, 0.0), "chip_power_w"),
        (lambda: system_cost(CHIP, 700.0, machines=0), "machines: 0"),
        (lambda: system_cost(CHIP, 700.0, "hgx"), "unknown host 'hgx'"),
        (lambda: system_cost(rented(), 700.0), "rental"),
        (lambda: rental_cost("mi300x", "street-2026", 8), "chips.mi300x.hourly: None"),
        (lambda: rental_cost("mi210", "street-2026", 8), "mi210"),
        (lambda: cluster_cost([]), "at least one pool"),
        (lambda: usd_per_million_tokens(machines(), 0.0), "tokens_per_s"),
        (lambda: goodput_per_usd(machines(), -1.0), "goodput_rps"),
        (
            lambda: token_price(
                machines(), estimate("spad-h100", "bloom-176b", Phase.decode(1, 8), "tp=8"), 16
            ),
            "chips: 16",
        ),
    ],
)
def test_bad_questions_are_one_line(call: object, says: str) -> None:
    with pytest.raises(ChipsimError, match=says) as error:
        call()  # type: ignore[operator]
    assert "\n" not in str(error.value)


def test_a_rented_host_is_refused() -> None:
    with pytest.raises(ChipsimError, match="manufacturing or street"):
        Host.build("host", **(HOST.model_dump() | {"basis": "rental"}))
