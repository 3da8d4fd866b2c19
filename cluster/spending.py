"""What a cluster costs and draws: capital, dollars per hour and per token, watts, joules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chipsim.chip import Chip
from chipsim.cost.chip_cost import chip_cost
from chipsim.cost.instance import instance_cost
from chipsim.errors import ChipsimError

if TYPE_CHECKING:
    from chipsim.cluster.results import Simulation
    from chipsim.cluster.scenario import PoolSpec, Scenario
    from chipsim.cost.prices import PriceBook
    from chipsim.cost.system import Host

TOKENS_PER_PRICE = 1e6
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Price:
    """What instances cost and draw, the middle of a book's ranges.

    Attributes
    ----------
    chips_usd : float
        Price of the chips alone.
    capital_usd, usd_per_hour : float
        With their share of host and network; capital spread over its life, and electricity
        at TDP.
    tdp_w : float
        Of the chips alone; the cap where their power is capped.
    """

    chips_usd: float = 0.0
    capital_usd: float = 0.0
    usd_per_hour: float = 0.0
    tdp_w: float = 0.0

    def times(self, count: int) -> Price:
        """So many of them."""
        fields = (self.chips_usd, self.capital_usd, self.usd_per_hour, self.tdp_w)
        return Price(*(count * field for field in fields))

    def __add__(self, other: Price) -> Price:
        return Price(
            self.chips_usd + other.chips_usd,
            self.capital_usd + other.capital_usd,
            self.usd_per_hour + other.usd_per_hour,
            self.tdp_w + other.tdp_w,
        )


@dataclass(frozen=True, slots=True)
class Spending:
    """Of a whole cluster over a run; None where it is not known, and said why.

    Attributes
    ----------
    chips_usd, capital_usd, usd_per_hour, tdp_w : float or None
        As `Price`, over all pools.
    usd_per_million_tokens : float or None
        Of output tokens, at the rate that the run kept up.
    goodput_per_usd : float or None
        Requests within the objective per US dollar.
    energy_j : float or None
        Joules of all chips, idling included.
    unknown : str
        Why something is not known; else empty.
    """

    chips_usd: float | None
    capital_usd: float | None
    usd_per_hour: float | None
    tdp_w: float | None
    usd_per_million_tokens: float | None
    goodput_per_usd: float | None
    energy_j: float | None
    unknown: str

    def record(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "chips_usd": self.chips_usd,
            "capital_usd": self.capital_usd,
            "cost_usd_per_hour": self.usd_per_hour,
            "tdp_w": self.tdp_w,
            "usd_per_million_output_tokens": self.usd_per_million_tokens,
            "goodput_per_usd": self.goodput_per_usd,
            "energy_j": self.energy_j,
            "unpriced": self.unknown,
        }


def pool_price(
    scenario: Scenario,
    pool: PoolSpec,
    chips: int,
    prices: PriceBook | None = None,
    host: Host | None = None,
) -> Price:
    """Price of one instance of ``chips`` chips.

    Parameters
    ----------
    prices, host : PriceBook, Host, optional
        The scenario's unless given.

    Raises
    ------
    ChipsimError
        Measured steps without a chip, or a chip that the book does not price.
    """
    if pool.chip is None:
        raise ChipsimError("measured steps without a chip have no price")
    chip = Chip.load(pool.chip)
    book = prices or scenario.prices
    cost = instance_cost(chip, chips, book, host or scenario.host, mixed=True)
    watts = cost.chip_tdp_w if pool.power_cap is None else min(cost.chip_tdp_w, pool.power_cap)
    return Price(
        chips_usd=chip_cost(chip, book, mixed=True).total_usd * chips,
        capital_usd=cost.capital.mid,
        usd_per_hour=cost.per_hour(watts * chips + cost.host_w).mid,
        tdp_w=watts * chips,
    )


def cluster_price(prices: Mapping[str, Price], instances: Mapping[str, int]) -> Price:
    """Instances of pools together."""
    return sum((prices[name].times(count) for name, count in instances.items()), Price())


def spending(run: Simulation) -> Spending:
    """Of a run; nothing that is not known stops it."""
    cluster, unknown = run.cluster, ""
    price: Price | None = None
    try:
        price = cluster_price(cluster.prices, run.instances)
    except ChipsimError as error:
        unknown = str(error)
    seconds = run.duration_s
    rate = run.outcome.emitted / seconds if seconds > 0.0 else 0.0
    per_token = goodput = None
    if price is not None and rate > 0.0:
        per_token = price.usd_per_hour / (rate * SECONDS_PER_HOUR) * TOKENS_PER_PRICE
    if price is not None and run.goodput_rps is not None and price.usd_per_hour > 0.0:
        goodput = run.goodput_rps * SECONDS_PER_HOUR / price.usd_per_hour
    return Spending(
        None if price is None else price.chips_usd,
        None if price is None else price.capital_usd,
        None if price is None else price.usd_per_hour,
        None if price is None else price.tdp_w,
        per_token,
        goodput,
        _joules(run),
        unknown,
    )


def _joules(run: Simulation) -> float | None:
    """Of steps, and of chips that wait for them."""
    if not run.cluster.with_energy or run.cluster.joules is None:
        return None
    drawn = float(run.outcome.instances["joules"].sum())
    idle = sum(count * run.cluster.idle_watts(name) for name, count in run.instances.items())
    return drawn + idle * run.outcome.end_s
