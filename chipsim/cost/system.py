"""From chips to dollars per hour and per token: machine, cluster, electricity.

chips + host + network -> capital -> per hour of its life; + power x PUE x price of energy
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self, cast

from pydantic import Field, model_validator

from chipsim.arch_configs import load
from chipsim.cost.prices import Basis, PriceBook, book_of, one_basis
from chipsim.cost.ranges import ZERO, Money, Range
from chipsim.cost.whole import hourly_price
from chipsim.errors import ConfigError
from chipsim.ops.checks import positive, whole
from chipsim.spec import Spec
from chipsim.units import EnergyPrice, Watts

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.cost.chip_cost import Cost
    from chipsim.estimates import PhaseEstimate

HOURS_PER_YEAR = 8760.0
SECONDS_PER_HOUR = 3600.0


class Host(Spec):
    """What stands around the chips of one machine, and what its site adds."""

    name: str
    date: str
    source: str
    basis: Basis
    chips: Annotated[int, Field(ge=1, le=10**6, strict=True)]
    """Chips of one machine."""
    host: Money
    """Processors, memory, storage, chassis and supplies of one machine."""
    network: Money
    """NICs and the machine's share of switches and cables."""
    power: Annotated[Watts, Field(ge=0, le=1e9)]
    """All of one machine but its chips."""
    pue: Annotated[float, Field(ge=1, le=10)]
    """Power of the site over that of its machines."""
    electricity: Annotated[EnergyPrice, Field(ge=0, le=1)]
    """US dollars per joule."""
    years: Annotated[float, Field(gt=0, le=100)]
    """Life over which capital is spread, evenly and without interest."""

    @model_validator(mode="after")
    def _sold(self) -> Self:
        if self.basis == "rental":
            raise ValueError("a basis of things that are bought: manufacturing or street")
        return self

    def spread(self, capital: Range) -> Range:
        """Capital over its life, US dollars per hour."""
        return capital * (1.0 / (self.years * HOURS_PER_YEAR))

    def energy_price(self, power_w: float) -> Range:
        """Electricity of machines that draw so much, the site's part included, USD per hour."""
        return Range.of(power_w * self.pue * SECONDS_PER_HOUR * self.electricity)

    @classmethod
    def load(cls, name: str = "hgx-bom-2023") -> Host:
        """Read a host by library name or path (`ConfigError`, `UnknownNameError`)."""
        data, path = load("hosts", name)
        return cls.read(data, path)


@dataclass(frozen=True, slots=True)
class SystemCost:
    """Machines of one or several kinds together.

    Attributes
    ----------
    machines, chips : int
        How many.
    capital : Range
        US dollars, ``parts`` by ``chips``, ``host`` and ``network``.
    power_w : float
        Of the machines, at the power that was asked; the site draws `pue` times as much.
    capital_per_hour, energy_per_hour : Range
        US dollars; the first is the rent of rented chips.
    basis : str
        Of the capital.
    """

    machines: int
    chips: int
    capital: Range
    parts: dict[str, Range]
    power_w: float
    capital_per_hour: Range
    energy_per_hour: Range
    basis: str

    @property
    def per_hour(self) -> Range:
        """Capital and electricity, US dollars per hour."""
        return self.capital_per_hour + self.energy_per_hour

    def __add__(self, other: SystemCost) -> SystemCost:
        names = sorted(self.parts | other.parts)
        parts = {n: self.parts.get(n, ZERO) + other.parts.get(n, ZERO) for n in names}
        kinds = {*_bases(self.basis), *_bases(other.basis)}
        return SystemCost(
            self.machines + other.machines,
            self.chips + other.chips,
            self.capital + other.capital,
            parts,
            self.power_w + other.power_w,
            self.capital_per_hour + other.capital_per_hour,
            self.energy_per_hour + other.energy_per_hour,
            one_basis("system", kinds, mixed=True),
        )

    def record(self) -> dict[str, Any]:
        """The middle of each range as plain values, units in the names."""
        return {
            "machines": self.machines,
            "chips": self.chips,
            "capital_usd": self.capital.mid,
            **{f"{name}_usd": part.mid for name, part in self.parts.items()},
            "power_w": self.power_w,
            "capital_usd_per_hour": self.capital_per_hour.mid,
            "energy_usd_per_hour": self.energy_per_hour.mid,
            "usd_per_hour": self.per_hour.mid,
            "basis": self.basis,
        }


def _bases(basis: str) -> list[Basis]:
    """The bases of a sum."""
    return cast(list[Basis], basis.removeprefix("mixed: ").split(", "))


def system_cost(
    chip: Cost,
    chip_power_w: float,
    host: Host | str = "hgx-bom-2023",
    machines: int = 1,
    *,
    mixed: bool = False,
) -> SystemCost:
    """Machines of one kind of chip.

    Parameters
    ----------
    chip : Cost
        Of one chip (`chipsim.cost.chip_cost`).
    chip_power_w : float
        Mean power of one chip, watts: its TDP, or what `chipsim.cost.energy` says of a phase.
    host : Host or str
        What stands around the chips, or the name of its file.
    machines : int
        From 1.
    mixed : bool
        Add up prices of different bases; the result says so.

    Raises
    ------
    ConfigError, UnknownNameError
        Bases that differ, a rented chip, no such host.

    Examples
    --------
    >>> from chipsim.cost.chip_cost import chip_cost
    >>> machine = system_cost(chip_cost("spad-h100"), 700.0)
    >>> round(machine.capital.mid), round(machine.per_hour.mid, 2)
    (40291, 2.2)
    """
    host = host_of(host)
    machines = whole("system", "machines", machines)
    watts = positive("system", "chip_power_w", chip_power_w)
    basis = basis_of(chip, host, mixed)
    parts = capital_parts(chip, host, host.chips * machines)
    capital = sum(parts.values(), ZERO)
    power_w = machines * (host.chips * watts + host.power)
    return SystemCost(
        machines,
        host.chips * machines,
        capital,
        parts,
        power_w,
        host.spread(capital),
        host.energy_price(power_w),
        basis,
    )


def host_of(host: Host | str) -> Host:
    """A host, or the one of a name (`ConfigError`, `UnknownNameError`)."""
    return Host.load(host) if isinstance(host, str) else host


def basis_of(chip: Cost, host: Host, mixed: bool) -> str:
    """The basis of chips and host together (`ConfigError` for rented chips, or two bases)."""
    bought = _bases(chip.basis)
    if "rental" in bought:
        raise ConfigError(chip.prices, "basis", chip.basis, "a price of a chip that is bought")
    kinds = {*bought, host.basis}
    return one_basis(f"{chip.prices} and {host.name}", kinds, mixed or len(bought) > 1)


def capital_parts(chip: Cost, host: Host, chips: int) -> dict[str, Range]:
    """US dollars of so many chips with their share of a host and its network."""
    machines = chips / host.chips
    return {
        "chips": chip.total * chips,
        "host": host.host * machines,
        "network": host.network * machines,
    }


def rental_cost(chip: Chip | str, prices: PriceBook | str, chips: int) -> SystemCost:
    """Rented chips: the rent covers host, network and electricity.

    Raises
    ------
    ConfigError, UnknownNameError
        The book does not rent the chip, or one of the same name that is built otherwise.

    Examples
    --------
    >>> rental_cost("h100-sxm", "street-2026", 8).per_hour
    Range(low=15.92, mid=23.6, high=40.0)
    """
    chips = whole("system", "chips", chips)
    hourly = hourly_price(chip, book_of(prices))
    return SystemCost(0, chips, ZERO, {}, 0.0, hourly * chips, ZERO, "rental")


def cluster_cost(pools: Sequence[SystemCost], *, mixed: bool = False) -> SystemCost:
    """Pools of machines together.

    Parameters
    ----------
    mixed : bool
        Add up pools of different bases; the result says so.

    Raises
    ------
    ConfigError
        No pool, or bases that differ.
    """
    if not pools:
        raise ConfigError("cluster", "pools", 0, "at least one pool")
    total = pools[0]
    for pool in pools[1:]:
        total += pool
    if total.basis not in {pool.basis for pool in pools}:
        one_basis("cluster", set(_bases(total.basis)), mixed)
    return total


def usd_per_million_tokens(cost: SystemCost, tokens_per_s: float) -> Range:
    """US dollars per million tokens at a rate of all machines together."""
    rate = positive("system", "tokens_per_s", tokens_per_s) * SECONDS_PER_HOUR
    return cost.per_hour * (1e6 / rate)


def token_price(cost: SystemCost, phase: PhaseEstimate, chips: int) -> Range:
    """US dollars per million tokens of machines that do nothing but one phase.

    Parameters
    ----------
    phase : PhaseEstimate
        Prefill gives the price of input tokens, decode that of output tokens.
    chips : int
        Chips of its plan, at most those of `cost`: the machines run as many copies as fit.

    Raises
    ------
    ConfigError
        More chips than there are, or a phase that takes no time.
    """
    copies = cost.chips // whole("system", "chips", chips)
    if copies < 1:
        raise ConfigError("system", "chips", chips, f"at most {cost.chips}")
    latency = positive("system", "latency_s", phase.latency_s)
    return usd_per_million_tokens(cost, copies * phase.phase.tokens / latency)


def goodput_per_usd(cost: SystemCost, goodput_rps: float) -> float:
    """Requests that meet their objective per US dollar, at the middle price.

    `goodput_rps` is of all machines together, requests/s.
    """
    rate = positive("system", "goodput_rps", goodput_rps) * SECONDS_PER_HOUR
    return rate / positive("system", "usd_per_hour", cost.per_hour.mid)
