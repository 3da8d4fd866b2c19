"""Dollars, watts and joules beside the latency of a point.

cut chip -> cost under a price book, TDP -> joules of its estimate
"""

from __future__ import annotations

from dataclasses import dataclass
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
    """What one chip of a point costs and draws.

    Attributes
    ----------
    cost_usd : float or None
        US dollars, the middle of the book's range; None where the book does not price it.
    tdp_w : float or None
        Watts; None where area, process or memory technology are not known.
    energy_j : float or None
        Joules of the phase on one chip; None where it does not run.
    counterfactual : str
        Why no such chip can be built of whole memory packages; else empty.
    unpriced : str
        Why there is no cost or no TDP; else empty.
    """

    cost_usd: float | None = None
    tdp_w: float | None = None
    energy_j: float | None = None
    counterfactual: str = ""
    unpriced: str = ""

    def record(self) -> dict[str, Any]:
        """``cost_usd, tdp_w, energy_j, counterfactual, unpriced``."""
        return {
            "cost_usd": self.cost_usd,
            "tdp_w": self.tdp_w,
            "energy_j": self.energy_j,
            "counterfactual": self.counterfactual,
            "unpriced": self.unpriced,
        }


def money(
    chip: Chip,
    estimate: PhaseEstimate | None,
    prices: PriceBook,
    energies: Energies,
    base: Chip,
) -> Money:
    """Cost, TDP and energy of one chip; what cannot be known is None, and said why.

    Parameters
    ----------
    estimate : PhaseEstimate or None
        Of the phase on the chip.
    base : Chip
        The uncut chip, whose stated die area the cut scales.
    """
    priced = _try(lambda: chip_cost(chip, prices, base=base))
    drawn = _try(lambda: EnergyModel(chip, energies, base=base))
    cost: Cost | None = None if isinstance(priced, str) else priced
    model: EnergyModel | None = None if isinstance(drawn, str) else drawn
    joules = _try(lambda: model.phase(estimate).total_j) if model and estimate else None
    reasons = [reason for reason in (priced, drawn, joules) if isinstance(reason, str)]
    return Money(
        cost.total_usd if cost else None,
        model.power.tdp_w if model else None,
        joules if isinstance(joules, float) else None,
        cost.counterfactual if cost else "",
        "; ".join(dict.fromkeys(reasons)),
    )


def _try(make: Any) -> Any:
    """A value, or why there is none."""
    try:
        return make()
    except ChipsimError as error:
        return str(error)
