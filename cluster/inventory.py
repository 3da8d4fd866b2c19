"""Chips that are owned, and the kinds of instances that they may form.

inventory + model -> sizes and plans that fit -> the quickest of each size -> Kind
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from chipsim.chip import Chip
from chipsim.errors import ConfigError, InfeasibleError
from chipsim.memory import memory_plan
from chipsim.ops.parallelism import valid_plans
from chipsim.ops.phase import Phase
from chipsim.ops.plan import Parallelism
from chipsim.ops.precision import Precision
from chipsim.phases import PhaseModel

if TYPE_CHECKING:
    from chipsim.cluster.scenario import Scenario
    from chipsim.ops.model import ModelSpec

SIZES = 4
"""Sizes of an instance that are tried: the smallest that holds the model, and twice, ..."""

QUICKEST = 2
"""Plans of a size that are kept: so many of the quickest in prefill, and in decode."""

BATCH = 64
"""Sequences per chip, at the most, by which decode steps of plans are compared."""

MOST_CHIPS = 4096
"""Chips of an inventory."""


class Owned(NamedTuple):
    """Chips of one kind."""

    chip: str
    chips: int

    @property
    def text(self) -> str:
        """As ``h200-sxm:64``."""
        return f"{self.chip}:{self.chips}"


class Kind(NamedTuple):
    """Chips of one instance and how they split the model."""

    chip: str
    plan: str
    chips: int


class Typical(NamedTuple):
    """The mean request of a workload, by which plans are compared."""

    prompt: int
    output: int

    @property
    def tokens(self) -> int:
        """Prompt and output."""
        return self.prompt + self.output


def parse_inventory(text: str) -> tuple[Owned, ...]:
    """Read ``h200-sxm:32,h100-sxm:64``.

    Raises
    ------
    ConfigError
        Not of this form, a chip named twice, or more than `MOST_CHIPS`.

    Examples
    --------
    >>> parse_inventory("h200-sxm:32, h100-sxm:64")
    (Owned(chip='h200-sxm', chips=32), Owned(chip='h100-sxm', chips=64))
    """
    found: list[Owned] = []
    for part in text.split(","):
        chip, _, count = part.strip().rpartition(":")
        right = chip and count.isascii() and count.isdecimal() and 0 < int(count) <= MOST_CHIPS
        if not right:
            allowed = f"CHIP:N with 1 to {MOST_CHIPS} chips, e.g. h200-sxm:64"
            raise ConfigError("--inventory", "", part.strip(), allowed)
        if chip in [each.chip for each in found]:
            raise ConfigError("--inventory", "", chip, "each chip once")
        found.append(Owned(chip, int(count)))
    return tuple(found)


def kinds(
    owned: Owned,
    model: ModelSpec,
    scenario: Scenario,
    typical: Typical,
    plans: Sequence[str] = (),
) -> list[Kind]:
    """Kinds of instances of one chip.

    Sizes are powers of two from the smallest that holds weights and one request. Of the plans
    of a size the quickest are kept, by one prompt and by one decode step of the mean request:
    a choice, not a bound. Without experts, data parallelism is left to the number of instances;
    pipelines are taken where nothing else fits.

    Parameters
    ----------
    plans : sequence of str
        Take these plans and no others.

    Raises
    ------
    InfeasibleError
        No number of the chips holds the model, or the plans given do not.
    ConfigError, UnknownNameError
        No such chip, or a plan that does not split the model.
    """
    chip = Chip.load(owned.chip)
    if plans:
        found = [Parallelism.parse(text) for text in plans]
        fitting = [p for p in found if p.chips <= owned.chips
                   and _fits(chip, model, scenario, p, typical)]  # fmt: skip
    else:
        fitting = list(_quickest(chip, owned.chips, model, scenario, typical))
    if not fitting:
        which = f"in the plans {', '.join(plans)}" if plans else f"on up to {owned.chips} chips"
        raise InfeasibleError(
            f"--inventory: {owned.text} is not enough: {model.name} with a request of "
            f"{typical.tokens} tokens does not fit {which}"
        )
    return [Kind(owned.chip, plan.text, plan.chips) for plan in fitting]


def _quickest(
    chip: Chip, most: int, model: ModelSpec, scenario: Scenario, typical: Typical
) -> Iterator[Parallelism]:
    sizes = 0
    for power in range(most.bit_length()):
        size = 2**power
        plans = [plan for plan in valid_plans(model, size, "decode")
                 if _sensible(plan, model) and _reaches(chip, plan)
                 and _fits(chip, model, scenario, plan, typical)]  # fmt: skip
        plans = [plan for plan in plans if plan.pp == 1] or (plans if sizes == 0 else [])
        if plans:
            sizes += 1
            times = [_seconds(chip, model, scenario, plan, typical) for plan in plans]
            best = {
                place
                for phase in (0, 1)
                for place in sorted(range(len(plans)), key=lambda i: times[i][phase])[:QUICKEST]
            }
            yield from (plans[place] for place in sorted(best))
        if sizes == SIZES:
            return


def _sensible(plan: Parallelism, model: ModelSpec) -> bool:
    """Plans that differ from several instances of a smaller one."""
    return plan.dcp == 1 and (plan.dp == 1 or model.is_moe)


def _reaches(chip: Chip, plan: Parallelism) -> bool:
    """Whether the chips of a plan are connected; tensor parallelism stays in a machine."""
    machine = chip.machine
    return plan.chips <= machine.chips or (
        machine.scale_out is not None and plan.tp <= machine.chips
    )


def _formats(model: ModelSpec, scenario: Scenario) -> Precision:
    if scenario.precision:
        return Precision.parse(scenario.precision)
    return model.precision.decode or Precision()


def _kv_tokens(
    chip: Chip, model: ModelSpec, scenario: Scenario, plan: Parallelism, typical: Typical
) -> float:
    memory = memory_plan(chip, model, plan, _formats(model, scenario))
    if not memory.fits:
        return 0.0
    tokens = memory.kv_tokens_at(typical.tokens)
    return float("inf") if tokens is None else float(tokens)


def _fits(
    chip: Chip, model: ModelSpec, scenario: Scenario, plan: Parallelism, typical: Typical
) -> bool:
    return _kv_tokens(chip, model, scenario, plan, typical) >= typical.tokens


def _seconds(
    chip: Chip, model: ModelSpec, scenario: Scenario, plan: Parallelism, typical: Typical
) -> tuple[float, float]:
    """Chip-seconds of a prompt token, and of a decoded one."""
    phases = PhaseModel(
        chip,
        model,
        plan,
        precision=_formats(model, scenario),
        load=scenario.expert_load,
        check_memory=False,
    )
    held = _kv_tokens(chip, model, scenario, plan, typical) * plan.dp / typical.tokens
    batch = max(plan.dp, int(min(BATCH * plan.chips, held)))
    prefill = phases.estimate(Phase.prefill(plan.dp, typical.prompt)).latency_s
    decode = phases.estimate(Phase.decode(batch, typical.tokens)).latency_s
    return plan.chips * prefill / (plan.dp * typical.prompt), plan.chips * decode / batch
