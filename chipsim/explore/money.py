"""Dollars, watts and joules beside the latency of a point.

cut chip -> cost under a price book, TDP -> joules of its estimate
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from chipsim.cost.chip_cost import chip_cost
from chipsim.cost.energy import EnergyModel
from chipsim.errors import ChipsimError

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.cost.chip_cost import Cost
    from chipsim.cost.energies import Energies
    from chipsim.cost.prices import PriceBook
    from chipsim.estimates import PhaseEstimate


@dataclass(frozen=True, slots=True)
class Money:
    """What one chip of a point costs and draws, and what its work costs.

    Attributes
    ----------
    cost_usd : float or None
        US dollars, the middle of the book's range; None where the book does not price it.
    tdp_w : float or None
        Watts, the stated TDP where there is one; None where area, process or memory
        technology are not known.
    energy_j : float or None
        Joules of the phase on one chip; None where it does not run.
    tokens_per_s_per_usd : float or None
        New tokens of all sequences per second and per US dollar of all chips of the plan.
    energy_j_per_token : float or None
        Joules of all chips of the plan per new token.
    counterfactual : str
        Why no such chip can be built of whole memory packages; else empty.
    unpriced : str
        Why there is no cost or no TDP; else empty.
    """

    cost_usd: float | None = None
    tdp_w: float | None = None
    energy_j: float | None = None
    tokens_per_s_per_usd: float | None = None
    energy_j_per_token: float | None = None
    counterfactual: str = ""
    unpriced: str = ""

    def record(self) -> dict[str, Any]:
        """The attributes by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class Pricing:
    """What one chip costs and what says its energy, found once for many phases.

    Attributes
    ----------
    cost, model : Cost, EnergyModel or None
        None where they cannot be told, as ``reasons`` say.
    stated_tdp_w : float or None
        TDP that the chip states, for one that is not described enough for ``model``.
    """

    cost: Cost | None
    model: EnergyModel | None
    stated_tdp_w: float | None
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, chip: Chip, prices: PriceBook, energies: Energies, base: Chip) -> Pricing:
        """Of a chip, cut from a base or itself."""
        priced = _try(lambda: chip_cost(chip, prices, base=base))
        drawn = _try(lambda: EnergyModel(chip, energies, base=base))
        return cls(
            None if isinstance(priced, str) else priced,
            None if isinstance(drawn, str) else drawn,
            chip.tdp,
            tuple(reason for reason in (priced, drawn) if isinstance(reason, str)),
        )

    def money(self, estimate: PhaseEstimate | None, chips: int = 1) -> Money:
        """Dollars, watts and joules of a phase on the chips of one plan."""
        cost, model = self.cost, self.model
        joules = _try(lambda: model.phase(estimate).total_j) if model and estimate else None
        reasons = [*self.reasons, *([joules] if isinstance(joules, str) else [])]
        energy_j = joules if isinstance(joules, float) else None
        return Money(
            cost.total_usd if cost else None,
            model.power.tdp_w if model else self.stated_tdp_w,
            energy_j,
            _per_usd(estimate, cost, chips),
            _per_token(estimate, energy_j, chips),
            cost.counterfactual if cost else "",
            "; ".join(dict.fromkeys(reasons)),
        )


def _per_usd(estimate: PhaseEstimate | None, cost: Cost | None, chips: int) -> float | None:
    if estimate is None or cost is None or not estimate.latency_s or not cost.total_usd:
        return None
    return estimate.phase.tokens / estimate.latency_s / (chips * cost.total_usd)


def _per_token(
    estimate: PhaseEstimate | None, energy_j: float | None, chips: int
) -> float | None:
    if estimate is None or energy_j is None:
        return None
    return energy_j * chips / estimate.phase.tokens


def money(
    chip: Chip,
    estimate: PhaseEstimate | None,
    prices: PriceBook,
    energies: Energies,
    base: Chip,
    chips: int = 1,
) -> Money:
    """Cost, TDP and energy of one chip; what cannot be known is None, and said why.

    Parameters
    ----------
    estimate : PhaseEstimate or None
        Of the phase on the chip.
    base : Chip
        The uncut chip, whose stated die area the cut scales.
    chips : int
        Of the plan that the phase runs on.
    """
    return Pricing.of(chip, prices, energies, base).money(estimate, chips)


def _try(make: Any) -> Any:
    """A value, or why there is none."""
    try:
        return make()
    except ChipsimError as error:
        return str(error)
