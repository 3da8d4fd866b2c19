"""Joules of an operator or a phase: arithmetic, SRAM, L2, memory, links, and what idles.

estimate -> work of each level (FLOP, bytes) -> x energy per unit -> parts -> joules
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chipsim.cost.energies import DEFAULT, Energies, energies_of
from chipsim.cost.power import Power, clock_and_supply, power
from chipsim.cost.work import work
from chipsim.estimates import Estimate, PhaseEstimate

if TYPE_CHECKING:
    from chipsim.chip import Chip

PARTS = ("arithmetic", "sram", "l2", "memory", "link", "overhead", "idle")
"""Where joules go; ``overhead`` is the loss of the chip's supply."""

DIE = ("arithmetic", "sram", "l2")
"""Parts on the die: they fall with the square of the supply."""


@dataclass(frozen=True, slots=True)
class Energy:
    """Joules of one chip.

    Attributes
    ----------
    latency_s : float
        Time that they are spent in, seconds.
    parts : dict of str to float
        Joules by `PARTS`.
    """

    latency_s: float
    parts: dict[str, float]

    @property
    def total_j(self) -> float:
        """All parts, joules."""
        return sum(self.parts.values())

    @property
    def power_w(self) -> float:
        """Mean power, watts (0 of nothing)."""
        return self.total_j / self.latency_s if self.latency_s > 0 else 0.0

    @property
    def die_j(self) -> float:
        """What falls with the supply of the die, joules."""
        return sum(self.parts[name] for name in DIE)


class EnergyModel:
    """Energy of operators on one chip.

    Parameters
    ----------
    chip : Chip
    energies : Energies or str
        Constants, or the name of their file.
    base : Chip, optional
        The uncut chip of a cut one, as in `chipsim.cost.power.power`: what happens on the
        die takes the square of the supply that the cut clock needs.

    Raises
    ------
    ConfigError, UnknownNameError
        No area, process or memory technology to take energies from.
    """

    def __init__(
        self, chip: Chip, energies: Energies | str = DEFAULT, *, base: Chip | None = None
    ) -> None:
        self.chip, self.energies = chip, energies_of(energies)
        self.power: Power = power(chip, self.energies, base=base)
        area, process = self.power.largest_die_mm2, chip.process
        self.rates = {
            "vector_j_per_flop": self.energies.vector_joules(process),
            "sram_j_per_byte": self.energies.sram_joules(chip.core.sram, process),
            "l2_j_per_byte": self.energies.l2_joules(area, process),
            "memory_j_per_byte": self.power.memory_j_per_byte,
            "link_j_per_byte": self.energies.link,
        }
        self._macs: dict[str, float] = {}
        self._known: dict[tuple[int, float], tuple[Estimate, Energy]] = {}
        _, supply = clock_and_supply(chip, base, self.energies)
        self._square = supply**2

    def mac_joules(self, format_name: str) -> float:
        """One multiply-accumulate of operands of a format, joules (`UnknownNameError`)."""
        known = self._macs.get(format_name)
        if known is None:
            known = self.energies.mac_joules(format_name, self.chip.process)
            self._macs[format_name] = known
        return known

    def operator(self, estimate: Estimate) -> Energy:
        """Joules of one run of an operator on one chip; remembered for its shape."""
        # Estimates of one shape share the parts that were found once (`Estimate.of`), and
        # what is remembered keeps them alive: no others take their identity.
        key = id(estimate.parts), estimate.latency_s
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = (estimate, self._operator(estimate))
        return known[1]

    def _operator(self, estimate: Estimate) -> Energy:
        asked = work(estimate, self.chip)
        rates = self.rates
        parts = {
            "arithmetic": asked.vector_flops * rates["vector_j_per_flop"],
            "sram": asked.sram_bytes * rates["sram_j_per_byte"],
            "l2": asked.l2_bytes * rates["l2_j_per_byte"],
            "memory": asked.memory_bytes * rates["memory_j_per_byte"],
            "link": asked.link_bytes * rates["link_j_per_byte"],
        }
        if asked.macs:
            parts["arithmetic"] += asked.macs * self.mac_joules(asked.format)
        if self._square != 1.0:
            parts |= {name: parts[name] * self._square for name in DIE}
        return self.drawn(parts, estimate.latency_s)

    def drawn(self, parts: dict[str, float], latency_s: float) -> Energy:
        """Joules with the loss of the supply and what idles for a time."""
        lost = sum(parts.values()) * (1.0 / self.energies.tdp.efficiency - 1.0)
        idle = self.power.idle_w * latency_s
        return Energy(latency_s, parts | {"overhead": lost, "idle": idle})

    def phase(self, estimate: PhaseEstimate) -> Energy:
        """Joules of a phase on one chip of its plan."""
        return phase_energy(estimate, self.operator)

    def record(self) -> dict[str, Any]:
        """Energies as plain values: pJ per FLOP by format, pJ per byte by level."""
        array = self.chip.core.systolic_array
        flops = {
            f"{name}_pj_per_flop": self.mac_joules(name) / 2 * 1e12
            for name in (array.macs_per_cycle if array else ())
            if name in self.energies.mac
        }
        flops["vector_pj_per_flop"] = self.rates["vector_j_per_flop"] * 1e12
        levels = ("sram", "l2", "memory", "link")
        return flops | {
            f"{name}_pj_per_byte": self.rates[f"{name}_j_per_byte"] * 1e12 for name in levels
        }


def phase_energy(estimate: PhaseEstimate, of: Callable[[Estimate], Energy]) -> Energy:
    """Joules of a phase on one chip, from those of one run of each operator.

    With pipeline stages the operators are those of one part on its way through all stages,
    and a stage works for all parts: each chip does (1 - bubble) x step / way of their work,
    and idles for the whole step.
    """
    total = dict.fromkeys(PARTS, 0.0)
    for row in estimate.rows:
        for name, joules in of(row.estimate).parts.items():
            total[name] += row.count * joules
    way = sum(row.latency_s for row in estimate.rows)
    if way > 0.0:
        steps = estimate.latency_s / way
        working = (1.0 - estimate.bubble) * steps
        shares = {name: steps if name == "idle" else working for name in PARTS}
        total = {name: joules * shares[name] for name, joules in total.items()}
    return Energy(estimate.latency_s, total)


def energy(
    estimate: Estimate | PhaseEstimate,
    chip: Chip | str,
    energies: Energies | str = DEFAULT,
) -> Energy:
    """Joules of an operator or a phase on one chip.

    Raises
    ------
    ConfigError, UnknownNameError
        As `EnergyModel`; no energy for a format.

    Examples
    --------
    >>> from chipsim import Phase, estimate
    >>> step = estimate("spad-h100", "bloom-176b", Phase.decode(64, 1024), "tp=8")
    >>> drawn = energy(step, "spad-h100")
    >>> round(drawn.power_w), round(drawn.total_j, 1)
    (232, 10.2)
    """
    from chipsim.chip import Chip

    model = EnergyModel(Chip.load(chip) if isinstance(chip, str) else chip, energies)
    if isinstance(estimate, PhaseEstimate):
        return model.phase(estimate)
    return model.operator(estimate)
