"""One instance of a cluster in dollars, watts and joules: the chips of one plan and their share
of the machines that they stand in.

chip + number of chips + price book + host -> capital, TDP, US dollars per hour; and, from the
estimate of a step, joules and watts
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipsim.cost.chip_cost import chip_cost
from chipsim.cost.energy import EnergyModel
from chipsim.cost.prices import PriceBook, book_of
from chipsim.cost.ranges import ZERO, Range
from chipsim.cost.system import Host, basis_of, capital_parts, host_of
from chipsim.cost.whole import hourly_price
from chipsim.ops.checks import positive, whole

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.cost.cap import CappedModel
    from chipsim.estimates import PhaseEstimate


@dataclass(frozen=True, slots=True)
class InstanceCost:
    """What one instance costs and draws.

    Attributes
    ----------
    chip : str
    chips : int
        Of its plan.
    prices, basis : str
        The book by name; the basis of ``capital``, or ``rental``.
    capital : Range
        Chips, and their share of host and network, US dollars; zero where they are rented.
    chip_tdp_w, idle_w : float
        Of one chip.
    host_w : float
        Share of the host's power that stands beside the chips, watts.
    rent_per_hour : Range
        Of all chips, US dollars; zero where they are bought.
    """

    chip: str
    chips: int
    prices: str
    basis: str
    capital: Range
    chip_tdp_w: float
    idle_w: float
    host_w: float
    rent_per_hour: Range
    host: Host
    energy: EnergyModel | CappedModel

    @property
    def tdp_w(self) -> float:
        """Chips at their TDP and their share of the host, watts."""
        return self.chips * self.chip_tdp_w + self.host_w

    @property
    def usd_per_hour(self) -> Range:
        """Capital and electricity at TDP, or the rent."""
        return self.per_hour(self.tdp_w)

    def per_hour(self, power_w: float) -> Range:
        """Capital and electricity, US dollars per hour; rent covers the electricity.

        Parameters
        ----------
        power_w : float
            Mean power of the instance with its share of the host, watts (`power_w`).
        """
        if self.basis == "rental":
            return self.rent_per_hour
        watts = positive("instance", "power_w", power_w)
        return self.host.spread(self.capital) + self.host.energy_price(watts)

    def step_j(self, step: PhaseEstimate) -> float:
        """Joules of all chips in one step; the host draws ``host_w`` beside them."""
        return self.chips * self.energy.phase(step).total_j

    def power_w(self, step: PhaseEstimate) -> float:
        """Mean power while such steps follow one another, the host's share included, watts."""
        return self.step_j(step) / step.latency_s + self.host_w

    @property
    def idle_power_w(self) -> float:
        """Power without work, the host's share included, watts."""
        return self.chips * self.idle_w + self.host_w


def instance_cost(
    chip: Chip | str,
    chips: int,
    prices: PriceBook | str = "spad-2025",
    host: Host | str = "hgx-bom-2023",
    *,
    base: Chip | None = None,
    rent: bool = False,
    mixed: bool = False,
    energy: EnergyModel | CappedModel | None = None,
) -> InstanceCost:
    """Capital, power and price per hour of the chips of one plan.

    Parameters
    ----------
    chips : int
        Of the plan; a part of a machine pays for its part of the host.
    base : Chip, optional
        The uncut chip of a cut one (`chip_cost`).
    rent : bool
        Rented chips, at the book's hourly price, which covers host and electricity.
    mixed : bool
        Add up prices of different bases; the result says so.
    energy : EnergyModel or CappedModel, optional
        What says the energy of a step; a `CappedModel` where the chips are capped.

    Raises
    ------
    ConfigError, UnknownNameError
        As `chip_cost`, `chipsim.cost.power.power` and `system_cost`.

    Examples
    --------
    Half of a machine of eight:

    >>> from chipsim.phases import Phase, estimate
    >>> half = instance_cost("spad-h100", 4)
    >>> round(half.capital.mid), round(half.tdp_w), round(half.usd_per_hour.mid, 2)
    (20145, 5100, 1.1)
    >>> step = estimate("spad-h100", "llama-2-70b", Phase.decode(16, 1024), "tp=4")
    >>> half.idle_power_w < half.power_w(step) < half.tdp_w
    True
    """
    from chipsim.chip import Chip

    chip = Chip.load(chip) if isinstance(chip, str) else chip
    chips, host, book = whole("instance", "chips", chips), host_of(host), book_of(prices)
    energy = energy or EnergyModel(chip, base=base)
    power = energy.power
    if rent:
        basis, capital, paid = "rental", ZERO, hourly_price(chip, book) * chips
    else:
        cost, paid = chip_cost(chip, book, base=base, mixed=mixed), ZERO
        basis = basis_of(cost, host, mixed)
        capital = sum(capital_parts(cost, host, chips).values(), ZERO)
    return InstanceCost(
        chip.name,
        chips,
        book.name,
        basis,
        capital,
        power.tdp_w,
        power.idle_w,
        host.power * chips / host.chips,
        paid,
        host,
        energy,
    )
