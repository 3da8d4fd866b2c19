"""What a run of cuts is asked, resolved: it answers for one chip, and can be stored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from chipsim.chip import Chip
from chipsim.cost.energies import Energies
from chipsim.cost.prices import PriceBook
from chipsim.errors import ConfigError, InfeasibleError
from chipsim.execution import Execution
from chipsim.explore.largest import largest_within
from chipsim.explore.money import Money, money
from chipsim.memory import check_phase, memory_plan
from chipsim.ops.checks import positive
from chipsim.ops.model import ModelSpec
from chipsim.ops.parallelism import Parallelism
from chipsim.ops.phase import Phase
from chipsim.ops.precision import Precision
from chipsim.performance import PerformanceModel
from chipsim.phases import PhaseModel

if TYPE_CHECKING:
    from chipsim.estimates import PhaseEstimate

Batch = Literal["fixed", "max"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one chip makes of the phase.

    Attributes
    ----------
    estimate : PhaseEstimate or None
        None where the chip cannot run it.
    batch : int
        Sequences; 0 where not even one is possible.
    fits : bool
        The memory, and a core's SRAM, hold what they must.
    shortfall_bytes : float
        What the memory of each chip lacks.
    limit : str
        What bounds a largest batch: ``"memory"`` or ``"itl"``; else empty.
    reason : str
        Why there is no estimate; else empty.
    """

    estimate: PhaseEstimate | None
    batch: int
    fits: bool = True
    shortfall_bytes: float = 0.0
    limit: str = ""
    reason: str = ""

    @property
    def latency_s(self) -> float | None:
        """Seconds of the phase."""
        return self.estimate.latency_s if self.estimate else None

    @property
    def tokens_per_s(self) -> float:
        """New tokens of all sequences per second, on the chips of one plan together."""
        if self.estimate is None or self.estimate.latency_s == 0.0:
            return 0.0
        return self.estimate.phase.tokens / self.estimate.latency_s


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything that the points of a run share.

    Attributes
    ----------
    batch : str
        ``"fixed"``: that of the phase; ``"max"``: the largest at each point.
    itl_s : float or None
        Longest decode step, seconds; only with ``batch="max"``.
    memory_share : float
        Part of the memory that a largest batch may fill.
    check_memory : bool
        With a fixed batch: note where the memory does not hold weights and KV.
    prices : PriceBook or None
        What chips cost; None: nothing is priced.
    held : mapping of str to float
        Resource -> what every point keeps of it, as a part of the uncut chip.
    """

    chip: Chip
    execution: Execution
    model: ModelSpec
    phase: Phase
    plan: Parallelism
    precision: Precision
    layers_only: bool = False
    batch: Batch = "fixed"
    itl_s: float | None = None
    memory_share: float = 0.9
    check_memory: bool = True
    prices: PriceBook | None = None
    energies: Energies = field(default_factory=Energies.load)
    held: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.batch not in ("fixed", "max"):
            raise ConfigError("cuts", "batch", self.batch, "fixed, max")
        if self.itl_s is None:
            return
        positive("cuts", "itl", self.itl_s)
        if self.batch != "max" or self.phase.kind != "decode":
            raise ConfigError("cuts", "itl", self.itl_s, "with the largest batch of decode")

    def cut(self, fractions: Mapping[str, float]) -> Chip:
        """The chip with what is held and what a point leaves of it."""
        return self.chip.scaled(**{**self.held, **fractions})

    def answer(self, chip: Chip) -> Answer:
        """The phase on one chip.

        A chip that is too small is an answer; a plan that splits nothing is an error.
        """
        model = self._model(chip)
        try:
            if self.batch == "max":
                return self._largest(chip, model)
            return self._fixed(chip, model)
        except InfeasibleError as error:
            batch = self.phase.batch if self.batch == "fixed" else 0
            return Answer(None, batch, fits=False, reason=str(error))

    def money(self, chip: Chip, estimate: PhaseEstimate | None) -> Money:
        """Cost, TDP and energy of one chip, cut from that of the setup."""
        if self.prices is None:
            return Money(unpriced="no price book")
        return money(chip, estimate, self.prices, self.energies, self.chip, self.plan.chips)

    def estimate(self) -> PhaseEstimate:
        """The phase as asked, on the chip itself.

        Raises
        ------
        InfeasibleError
            The plan does not split the model, or, where it is checked, the memory is
            too small.
        """
        if self.check_memory:
            check_phase(self.chip, self.model, self.plan, self.precision, self.phase)
        return self._model(self.chip).estimate(self.phase)

    def _model(self, chip: Chip) -> PhaseModel:
        return PhaseModel(
            PerformanceModel(chip, self.execution),
            self.model,
            self.plan,
            precision=self.precision,
            layers_only=self.layers_only,
            check_memory=False,
        )

    def _fixed(self, chip: Chip, model: PhaseModel) -> Answer:
        batch = self.phase.batch
        if self.check_memory:
            missing = self._missing(chip, batch)
            if missing > 0.0:
                return Answer(None, batch, False, missing, reason=_lacks(missing))
        return Answer(model.estimate(self.phase), batch)

    def _missing(self, chip: Chip, batch: int, share: float = 1.0) -> float:
        """Bytes that each chip lacks for weights and the KV of a batch (or below 0)."""
        memory = memory_plan(chip, self.model, self.plan, self.precision, share)
        return memory.missing_bytes([(batch, self.phase.context)])

    def _largest(self, chip: Chip, model: PhaseModel) -> Answer:
        memory = memory_plan(chip, self.model, self.plan, self.precision, self.memory_share)
        most = memory.largest_batch(self.phase.context)
        if most == 0:
            missing = self._missing(chip, 1, self.memory_share)
            return Answer(None, 0, False, missing, "memory", _lacks(missing))

        def latency_s(batch: int) -> float:
            return model.estimate(replace(self.phase, batch=batch)).latency_s

        limit_s = math.inf if self.itl_s is None else self.itl_s
        batch = largest_within(latency_s, limit_s, most)
        if batch == 0:
            reason = (
                f"a batch of 1 takes {latency_s(1):.3g} s, over the {limit_s:.3g} s allowed"
            )
            return Answer(None, 0, limit="itl", reason=reason)
        limit = "memory" if batch == most else "itl"
        return Answer(model.estimate(replace(self.phase, batch=batch)), batch, limit=limit)

    def configuration(self) -> dict[str, Any]:
        """All of it as plain JSON values."""
        specs = {name: getattr(self, name).model_dump() for name in _SPECS}
        prices = self.prices and self.prices.model_dump(by_alias=True)
        phase = {name: getattr(self.phase, name) for name in _PHASE}
        return (
            specs
            | {"prices": prices}
            | {"phase": phase}
            | {name: getattr(self, name) for name in _OPTIONS}
            | {"held": dict(self.held)}
        )

    @classmethod
    def from_configuration(cls, where: str, data: Mapping[str, Any]) -> Setup:
        """Build again from `configuration`.

        Raises
        ------
        ConfigError
            Names ``where`` and what is missing or not allowed.
        """
        try:
            specs = {name: kind.build(where, **data[name]) for name, kind in _SPECS.items()}
            phase, prices = Phase(**data["phase"]), data["prices"]
            book = prices and PriceBook.build(where, **prices)
            return cls(
                phase=phase,
                prices=book,
                held=data.get("held", {}),  # absent from what version 0.1 saved
                **specs,
                **{name: data[name] for name in _OPTIONS},
            )
        except (KeyError, TypeError) as error:
            raise ConfigError(where, "configuration", str(error), "as it was saved") from None


_SPECS: dict[str, Any] = {
    "chip": Chip,
    "execution": Execution,
    "model": ModelSpec,
    "plan": Parallelism,
    "precision": Precision,
    "energies": Energies,
}
_PHASE = ("kind", "batch", "query", "context")
_OPTIONS = ("layers_only", "batch", "itl_s", "memory_share", "check_memory")


def resolve(
    chip: Chip | str,
    model: ModelSpec | str,
    phase: Phase,
    *,
    plan: Parallelism | str | None = None,
    execution: Execution | str | None = None,
    precision: Precision | str | None = None,
    **options: Any,
) -> Setup:
    """Read names into a `Setup`; ``options`` are its other attributes."""
    resolved = PhaseModel(chip, model, plan, execution=execution, precision=precision)
    return Setup(
        resolved.performance.chip,
        resolved.performance.execution,
        resolved.model,
        phase,
        resolved.plan,
        resolved.precision_of(phase),
        **options,
    )


def _lacks(missing: float) -> str:
    return f"each chip lacks {missing / 1e9:.3g} GB of memory for weights and KV"
