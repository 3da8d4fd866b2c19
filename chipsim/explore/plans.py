"""Every way to split a model over a number of chips, ranked.

chip + model + chips + phase → all valid plans → estimate and memory of each → ranked table
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chipsim.cost.energies import Energies
from chipsim.cost.prices import book_of
from chipsim.errors import ConfigError, InfeasibleError
from chipsim.explore.money import Pricing
from chipsim.memory import memory_plan
from chipsim.ops.checks import whole
from chipsim.ops.parallelism import valid_plans
from chipsim.ops.plan import Parallelism
from chipsim.phases import PhaseModel, check_machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from chipsim.chip import Chip
    from chipsim.cost.prices import PriceBook
    from chipsim.estimates import PhaseEstimate
    from chipsim.execution import Execution
    from chipsim.explore.money import Money
    from chipsim.memory import MemoryPlan
    from chipsim.ops.loads import ExpertLoad
    from chipsim.ops.model import ModelSpec
    from chipsim.ops.phase import Phase
    from chipsim.ops.precision import Precision
    from chipsim.performance import PerformanceModel

MOST_CHIPS = 4096
"""Chips that a search takes."""


@dataclass(frozen=True, slots=True)
class RankedPlan:
    """A plan with its estimate and its memory."""

    plan: Parallelism
    estimate: PhaseEstimate
    memory: MemoryPlan

    @property
    def missing_bytes(self) -> float:
        """What the fullest chip lacks for the phase (0 where it fits)."""
        phase = self.estimate.phase
        held = [(segment.batch, segment.context) for segment in phase.segments]
        return max(0.0, self.memory.missing_bytes(held))

    @property
    def tokens_per_s(self) -> float:
        """New tokens of all sequences per second, on all chips together."""
        return self.estimate.phase.tokens / self.estimate.latency_s

    @property
    def exchange_share(self) -> float:
        """Part of the operators' time that chips exchange data."""
        rows = self.estimate.rows
        total = sum(row.latency_s for row in rows)
        return (
            sum(r.latency_s for r in rows if r.estimate.operator.kind == "collective") / total
        )

    def record(self) -> dict[str, Any]:
        """The plan as a row of `PlanSearch.frame`."""
        degrees = {key: getattr(self.plan, key) for key in Parallelism.model_fields}
        missing, memory = self.missing_bytes, self.memory
        return {
            "plan": self.plan.text,
            **degrees,
            "latency_s": self.estimate.latency_s,
            "tokens_per_s": self.tokens_per_s,
            "tokens_per_s_per_chip": self.tokens_per_s / self.plan.chips,
            "bound": self.estimate.bound,
            "exchange_share": self.exchange_share,
            "bubble": self.estimate.bubble,
            "stage_layers": ",".join(map(str, self.estimate.stage_layers)),
            "fits": missing == 0.0,
            "shortfall_bytes": missing,
            "weights_bytes_per_chip": memory.weights_bytes_per_chip,
            "kv_bytes_per_token": memory.kv_bytes_per_token,
            "largest_batch": memory.largest_batch(self.estimate.phase.context),
        }


@dataclass(frozen=True)
class PlanSearch:
    """All valid plans of a number of chips, the best first.

    Attributes
    ----------
    chips : int
        Chips of every plan.
    plans : tuple of RankedPlan
        Those that fit the memory by latency, then those that do not.
    prices : PriceBook
        What the chips cost.
    """

    model: PhaseModel
    phase: Phase
    chips: int
    memory_share: float
    plans: tuple[RankedPlan, ...]
    prices: PriceBook

    @functools.cached_property
    def pricing(self) -> Pricing:
        """What one chip costs and draws, found when first asked."""
        chip = self.model.performance.chip
        return Pricing.of(chip, self.prices, Energies.load(), chip)

    def records(self) -> list[dict[str, Any]]:
        """One dict per plan, as `frame` has columns."""
        return [
            {"rank": rank} | plan.record() | self._money(plan).record()
            for rank, plan in enumerate(self.plans, start=1)
        ]

    def _money(self, plan: RankedPlan) -> Money:
        return self.pricing.money(plan.estimate, self.chips)

    def frame(self) -> pd.DataFrame:
        """Plans as a table.

        Returns
        -------
        pandas.DataFrame
            ``rank, plan, tp, pp, ep, dp, cp, dcp, latency_s``, ``tokens_per_s`` (all chips),
            ``tokens_per_s_per_chip, bound, exchange_share, bubble``, ``stage_layers`` (of each
            pipeline stage, commas between), ``fits``,
            ``shortfall_bytes`` (of the fullest chip), ``weights_bytes_per_chip,
            kv_bytes_per_token``, ``largest_batch`` (at the phase's context), ``cost_usd,
            tdp_w, energy_j`` (of one chip; all chips cost and draw as many times as much),
            ``tokens_per_s_per_usd, energy_j_per_token`` (of all chips), ``counterfactual,
            unpriced``.
        """
        import pandas as pd

        return pd.DataFrame(self.records())

    def configuration(self) -> dict[str, Any]:
        """Everything that the rows follow from, as plain JSON values."""
        performance = self.model.performance
        return {
            "kind": "plans",
            "chip": performance.chip.model_dump(),
            "execution": performance.execution.model_dump(),
            "model": self.model.model.model_dump(),
            "precision": self.model.precision_of(self.phase).model_dump(),
            "load": self.model.load.model_dump(),
            "phase": {name: getattr(self.phase, name) for name in type(self.phase).__slots__},
            "chips": self.chips,
            "memory_share": self.memory_share,
            "layers_only": self.model.layers_only,
            "prices": self.prices.model_dump(by_alias=True),
        }


def search_plans(
    chip: Chip | str | PerformanceModel,
    model: ModelSpec | str,
    chips: int,
    phase: Phase,
    *,
    execution: Execution | str | None = None,
    precision: Precision | str | None = None,
    load: ExpertLoad | str | None = None,
    layers_only: bool = False,
    memory_share: float = 0.9,
    prices: PriceBook | str = "spad-2025",
) -> PlanSearch:
    """Estimate a phase under every plan of a number of chips.

    Parameters
    ----------
    chip, model, execution, precision, load, layers_only
        As `PhaseModel`.
    chips : int
        Chips of each plan; beyond one machine the chip needs a ``scale_out``.
    phase : Phase
        Its sequences are those of all chips together, so every plan does the same work.
    memory_share : float
        Part of the memory for weights and KV.
    prices : PriceBook or str
        What the chips cost; a chip that it does not price has no cost.

    Raises
    ------
    ConfigError, InfeasibleError
        ``chips`` outside 1 to `MOST_CHIPS`, more than the machine has, or a number that
        no plan splits the model over.
    """
    if whole("plans", "chips", chips) > MOST_CHIPS:
        raise ConfigError("plans", "chips", chips, f"a whole number from 1 to {MOST_CHIPS}")
    if phase.kind == "encode":
        raise ConfigError("plans", "phase", phase.kind, "prefill, decode, mixed")
    book = book_of(prices)
    first = PhaseModel(
        chip,
        model,
        execution=execution,
        precision=precision,
        load=load,
        layers_only=layers_only,
    )
    first.model = _kept(first.model)
    check_machine(first.performance.chip, Parallelism(dp=chips))
    found = [
        _ranked(first, plan, phase, memory_share)
        for plan in valid_plans(first.model, chips, _kind(phase))
    ]
    if not found:
        near = _nearest(first.model, chips, phase)
        allowed = f"a number that some plan splits {first.model.name} over, such as {near}"
        raise InfeasibleError(f"plans: chips: {chips} is not allowed; allowed: {allowed}")
    found.sort(key=lambda each: (each.missing_bytes > 0.0, each.estimate.latency_s))
    return PlanSearch(first, phase, chips, memory_share, tuple(found), book)


def plans(
    chip: Chip | str,
    model: ModelSpec | str,
    chips: int,
    phase: Phase,
    **options: Any,
) -> pd.DataFrame:
    """`search_plans` as a table; the best plan comes first.

    Examples
    --------
    >>> from chipsim import Phase, plans
    >>> table = plans("h100-sxm", "llama-3.1-70b", 8, Phase.decode(64, 4096))
    >>> table.loc[0, "plan"], bool(table.loc[0, "fits"])
    ('tp=8', True)
    """
    return search_plans(chip, model, chips, phase, **options).frame()


@functools.lru_cache(maxsize=64)
def _kept(model: ModelSpec) -> ModelSpec:
    """The first of equal models: what is remembered of it is found at once."""
    return model


def _kind(phase: Phase) -> Any:
    return "prefill" if phase.kind == "prefill" else "decode"


def _ranked(
    first: PhaseModel, plan: Parallelism, phase: Phase, memory_share: float
) -> RankedPlan:
    precision = first.precision_of(phase)
    model = PhaseModel(
        first.performance,
        first.model,
        plan,
        precision=precision,
        load=first.load,
        layers_only=first.layers_only,
        check_memory=False,
    )
    memory = memory_plan(first.performance.chip, first.model, plan, precision, memory_share)
    return RankedPlan(plan, model.estimate(phase), memory)


def _nearest(model: ModelSpec, chips: int, phase: Phase) -> str:
    """The next numbers of chips, down and up, that some plan splits a model over."""

    def splits(number: int) -> bool:
        return next(valid_plans(model, number, _kind(phase)), None) is not None

    sides: Sequence[range] = (range(chips - 1, 0, -1), range(chips + 1, 2 * chips + 1))
    found = (next((number for number in side if splits(number)), None) for side in sides)
    return ", ".join(str(number) for number in found if number is not None)
