"""A power cap: each operator at the fastest clock whose power is at most the cap.

    idle + memory at the achieved traffic + die at (V / V0)^2 <= cap

operator -> estimate at a clock -> power at that clock -> the next lower clock, until it fits

Where even the lowest clock does not fit, because the memory alone draws more, the chip works
a part of the time and idles in between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from chipsim.cost.energies import DEFAULT, Energies
from chipsim.cost.energy import DIE, Energy, EnergyModel, phase_energy
from chipsim.errors import InfeasibleError
from chipsim.ops.checks import positive
from chipsim.performance import PerformanceModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chipsim.chip import Chip
    from chipsim.cost.power import Power
    from chipsim.estimates import Estimate, PhaseEstimate
    from chipsim.execution import Execution
    from chipsim.latencies import Floats
    from chipsim.ops.operators import Operator

STEPS = 128
"""Clocks that are tried, evenly spaced: an H100 has steps of 15 MHz below 1.98 GHz."""

LOWEST = 13
"""Step of the lowest clock: 0.1 of the full one, 210 MHz of 1.98 GHz on an H100."""


@dataclass(frozen=True, slots=True)
class CappedEstimate:
    """One operator under a cap.

    Attributes
    ----------
    estimate : Estimate
        At the clock that the cap leaves.
    clock : float
        Over the full clock, 0.1 ... 1.
    energy : Energy
        Joules at that clock and its supply.
    """

    estimate: Estimate
    clock: float
    energy: Energy

    @property
    def power_w(self) -> float:
        """Mean power, watts."""
        return self.energy.power_w


class CappedModel(PerformanceModel):
    """Estimates operators on a chip whose power is capped; usable as any performance model.

    Parameters
    ----------
    chip, execution
        As `PerformanceModel`.
    cap_w : float
        Most power of the chip, watts.
    energies : Energies or str
        Constants, or the name of their file.

    Raises
    ------
    ConfigError, UnknownNameError
        As `PerformanceModel` and `EnergyModel`; a cap that is not above 0.

    Examples
    --------
    >>> from chipsim.phases import PhaseModel
    >>> from chipsim.ops.phase import Phase
    >>> model = PhaseModel(CappedModel("spad-h100", 450), "bloom-176b", "tp=8")
    >>> round(model.estimate(Phase.decode(64, 1024)).latency_s, 3)
    0.044
    """

    def __init__(
        self,
        chip: Chip | str,
        cap_w: float,
        execution: Execution | str | None = None,
        *,
        energies: Energies | str = DEFAULT,
    ) -> None:
        super().__init__(chip, execution)
        self.cap_w = positive("power cap", "cap_w", cap_w)
        self.energy = EnergyModel(self.chip, energies)
        self._clocked: dict[int, tuple[PerformanceModel, float]] = {}
        self._solved: dict[Operator, CappedEstimate] = {}

    def estimate(self, operator: Operator) -> Estimate:
        """Latency, bound and mapping of one operator at the clock that the cap leaves.

        Raises
        ------
        InfeasibleError
            The idle chip draws more than the cap; else as `PerformanceModel.estimate`.
        """
        return replace(self.capped(operator).estimate, operator=operator)

    def latencies(self, operators: Sequence[Operator]) -> Floats:
        """Seconds of operators, each at the clock that the cap leaves it."""
        return np.array([self.capped(operator).estimate.latency_s for operator in operators])

    def capped(self, operator: Operator) -> CappedEstimate:
        """An operator's estimate with its clock and energy (raises as `estimate`)."""
        key = operator.unnamed()
        known = self._solved.get(key)
        if known is None:
            known = self._solved[key] = self._solve(key)
        return known

    @property
    def power(self) -> Power:
        """TDP at most the cap, and idle power."""
        full = self.energy.power
        share = min(1.0, self.cap_w / full.tdp_w)
        return replace(full, parts={name: share * watts for name, watts in full.parts.items()})

    def operator(self, estimate: Estimate) -> Energy:
        """Joules of one run of an operator that this model estimated."""
        return self.capped(estimate.operator).energy

    def phase(self, estimate: PhaseEstimate) -> Energy:
        """Joules of a phase that this model estimated, on one chip of its plan."""
        return phase_energy(estimate, self.operator)

    def clock(self, operator: Operator) -> float:
        """Clock that the cap leaves an operator, over the full one."""
        return self.capped(operator).clock

    def _solve(self, operator: Operator) -> CappedEstimate:
        # From the top: what fits one cap fits every larger one, though another mapping may
        # make power rise when the clock falls.
        for step in range(STEPS, LOWEST - 1, -1):
            tried = self._at(step, operator)
            if tried.power_w <= self.cap_w:
                return tried
        return self._pausing(tried)

    def _pausing(self, slowest: CappedEstimate) -> CappedEstimate:
        """Memory alone draws more than the cap: the chip works a part of the time."""
        idle_w, found = self.energy.power.idle_w, slowest.estimate
        if self.cap_w <= idle_w:
            raise InfeasibleError(
                f"{self.chip.where}: a cap of {self.cap_w:g} W; it draws {idle_w:.1f} W idle"
            )
        active_j = slowest.energy.total_j - slowest.energy.parts["idle"]
        latency_s = active_j / (self.cap_w - idle_w)
        longer = latency_s / found.latency_s
        parts = {name: longer * seconds for name, seconds in found.parts.items()}
        energy = Energy(latency_s, slowest.energy.parts | {"idle": idle_w * latency_s})
        stretched = replace(found, latency_s=latency_s, parts=parts)
        return CappedEstimate(stretched, slowest.clock, energy)

    def _at(self, step: int, operator: Operator) -> CappedEstimate:
        model, square = self._clock(step)
        found = model.estimate(operator)
        full = self.energy.operator(found)
        parts = {
            name: full.parts[name] * (square if name in DIE else 1.0)
            for name in (*DIE, "memory", "link")
        }
        return CappedEstimate(found, step / STEPS, self.energy.drawn(parts, found.latency_s))

    def _clock(self, step: int) -> tuple[PerformanceModel, float]:
        """The chip at a clock, and the square of its supply over the full one."""
        known = self._clocked.get(step)
        if known is None:
            clock = step / STEPS
            chip = self.chip if step == STEPS else self.chip.scaled(clock=clock)
            square = self.energy.energies.voltage.supply(clock) ** 2
            known = self._clocked[step] = PerformanceModel(chip, self.execution), square
        return known


def capped(
    chip: Chip | str,
    cap_w: float,
    execution: Execution | str | None = None,
    *,
    energies: Energies | str = DEFAULT,
) -> CappedModel:
    """A chip under a power cap in watts: a performance model (`CappedModel`)."""
    return CappedModel(chip, cap_w, execution, energies=energies)
