"""What the chips of an instance make of it: its latency table, its memory, its price.

``ReplicaSpec -> Replica``: everything about one kind of instance that the engine does not know.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from chipsim.chip import Chip
from chipsim.cluster.latency_build import Sizes, Steps, latency_table
from chipsim.cluster.latency_table import LatencyTable, StepArrays
from chipsim.cluster.measured import measured_table
from chipsim.errors import ConfigError, InfeasibleError
from chipsim.memory import kv_bytes_per_chip, memory_plan
from chipsim.ops.cache import row_bytes
from chipsim.ops.plan import Parallelism
from chipsim.ops.precision import Precision

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chipsim.cluster.scenario import PoolSpec, ReplicaSpec, Scenario
    from chipsim.ops.model import ModelSpec
    from chipsim.performance import PerformanceModel


@dataclass(frozen=True, slots=True)
class Need:
    """What a table has to know.

    Attributes
    ----------
    steps : str
        ``prefill``, ``decode`` or ``both``.
    sizes : Sizes
        The largest steps.
    whole_prompts : bool
        No step computes part of a prompt behind another part.
    """

    steps: Steps
    sizes: Sizes
    whole_prompts: bool = False

    def __or__(self, other: Need) -> Need:
        steps = self.steps if self.steps == other.steps else "both"
        whole = self.whole_prompts and other.whole_prompts
        return Need(steps, Sizes(*map(max, self.sizes, other.sizes)), whole)

    @property
    def rounded(self) -> Sizes:
        """Sizes up to powers of two, so that runs of alike workloads share a table."""
        return Sizes(*(1 << max(4, (size - 1).bit_length()) for size in self.sizes))


@dataclass(frozen=True, eq=False)
class Replica:
    """One kind of instance.

    Attributes
    ----------
    table : LatencyTable
    chip : Chip or None
        None where measured steps stand for it.
    plan : Parallelism
    precision : Precision
    """

    table: LatencyTable
    chip: Chip | None
    plan: Parallelism
    precision: Precision

    def kv_tokens(self, model: ModelSpec, pool: PoolSpec, where: str, context: int) -> int:
        """Tokens that the KV memory of one rank holds in sequences of ``context`` tokens.

        Windows that are full and recurrent states make it depend on the context: the engine
        counts tokens, so it is that of the workload's mean sequence.

        Raises
        ------
        InfeasibleError
            The weights do not fit, or leave no room for a token.
        ConfigError
            Measured steps without ``kv_tokens``.
        """
        if pool.kv_tokens is not None:
            return pool.kv_tokens
        if self.chip is None:
            raise ConfigError(where, "kv_tokens", None, "tokens, with measured steps")
        memory = memory_plan(self.chip, model, self.plan, self.precision, pool.memory_share)
        if not memory.fits:
            short = f"{memory.shortfall_bytes / 1e9:.1f} GB of weights too much"
            raise InfeasibleError(
                f"{where}: {model.name} at {self.plan.text} does not fit {self.chip.name}: "
                f"{short}"
            )
        tokens = memory.kv_tokens_at(context)
        if tokens == 0:
            raise InfeasibleError(f"{where}: the weights leave no room for KV")
        return 2**40 if tokens is None else tokens

    def rank_bytes(self, model: ModelSpec) -> float:
        """KV of one token on all chips of a rank, bytes."""
        ranks = max(1, self.plan.chips // self.plan.dp)
        return kv_bytes_per_chip(model, self.plan, self.precision) * ranks

    @property
    def link_bytes_per_s(self) -> float | None:
        """Of one instance to others: what its chips have between machines; None if none."""
        if self.chip is None or self.chip.machine.scale_out is None:
            return None
        return self.chip.machine.scale_out.bandwidth * self.plan.chips


def replicas(
    wanted: Mapping[str, tuple[ReplicaSpec, Need]],
    scenario: Scenario,
    model: ModelSpec,
    with_energy: bool = False,
) -> dict[str, Replica]:
    """Build the table of every kind of instance; alike ones share it.

    Parameters
    ----------
    wanted : mapping of str to (ReplicaSpec, Need)
        By pool.

    Raises
    ------
    ConfigError, InfeasibleError, UnknownNameError
        As `chipsim.cluster.latency_build.latency_table`, or of measured steps.
    """
    # Large tables of whole prompts and small ones of chunks do not make one that is both.
    needs: dict[tuple[Chips, bool], Need] = {}
    keys = {
        name: (_chips(spec, scenario), need.whole_prompts)
        for name, (spec, need) in wanted.items()
    }
    for name, (_, need) in wanted.items():
        key = keys[name]
        needs[key] = needs[key] | need if key in needs else need
    return {
        name: _replica(spec, scenario, model, needs[keys[name]], with_energy)
        for name, (spec, _) in wanted.items()
    }


class Chips(NamedTuple):
    """What decides a table, but for its sizes."""

    chip: str | None
    power_cap: float | None
    execution: str | None
    model: str
    plan: str
    precision: str | None
    load: str | None
    steps: str | None
    mixed_factor: float

    @property
    def from_files(self) -> bool:
        """A file of the user's, which may change, decides too."""
        names = (self.chip, self.execution, self.model)
        return any(name and ("/" in name or name.endswith(".yaml")) for name in names)


def _chips(spec: ReplicaSpec, scenario: Scenario) -> Chips:
    return Chips(
        spec.chip,
        spec.power_cap,
        spec.execution,
        scenario.model,
        spec.plan,
        spec.precision or scenario.precision,
        scenario.expert_load,
        spec.steps,
        spec.mixed_factor,
    )


def _replica(
    spec: ReplicaSpec, scenario: Scenario, model: ModelSpec, need: Need, with_energy: bool
) -> Replica:
    formats = spec.precision or scenario.precision
    own = Precision.parse(formats) if formats else None
    plan = Parallelism.parse(spec.plan)
    precision = own or model.precision.decode or Precision()
    chip = None if spec.chip is None else Chip.load(spec.chip)
    if spec.steps is not None:
        tokens, sequences, context = need.sizes
        table = measured_table(
            spec.steps,
            mixed_factor=spec.mixed_factor,
            chips=plan.chips,
            most_tokens=tokens,
            most_sequences=sequences,
            most_context=context,
        )
    else:
        chips = _chips(spec, scenario)
        build = _build if chips.from_files else _once
        table = build(chips, need.steps, need.rounded, need.whole_prompts, with_energy)
    table = scaled(table, spec.prefill_factor, spec.decode_factor)
    return Replica(table, chip, plan, precision)


def scaled(table: LatencyTable, prefill: float, decode: float) -> LatencyTable:
    """A table with a factor for the seconds of each phase."""
    if prefill == decode == 1.0:
        return table
    s = table.seconds
    return replace(
        table,
        seconds=StepArrays(
            prefill=s.prefill * prefill,
            mixed=s.mixed * prefill,
            decode=s.decode * decode,
            head=s.head * prefill,
            prompts=s.prompts * prefill,
            contexts=s.contexts * decode,
        ),
    )


def _build(
    chips: Chips, steps: Steps, sizes: Sizes, whole_prompts: bool, with_energy: bool
) -> LatencyTable:
    on: str | PerformanceModel = str(chips.chip)
    if chips.power_cap is not None:
        from chipsim.cost.cap import CappedModel

        on = CappedModel(str(chips.chip), chips.power_cap, chips.execution)
    return latency_table(
        on,
        chips.model,
        chips.plan,
        most_tokens=sizes.tokens,
        most_sequences=sizes.sequences,
        most_context=sizes.context,
        execution=chips.execution,
        precision=chips.precision,
        load=chips.load,
        steps=steps,
        whole_prompts=whole_prompts,
        with_energy=with_energy,
    )


_kept = functools.lru_cache(maxsize=32)(_build)
"""Tables of library chips and models, kept for the next run."""

_LOCKS: dict[tuple[Any, ...], threading.Lock] = {}


def _once(*key: Any) -> LatencyTable:
    """As `_kept`; of several threads that want a table one makes it, and the others wait."""
    with _LOCKS.setdefault(key, threading.Lock()):
        return _kept(*key)


def wire_bytes(model: ModelSpec, precision: Precision, form: str | None) -> float:
    """Bytes of one token's KV on the wire: each row once, however many chips hold it.

    Parameters
    ----------
    form : str, optional
        ``"fp8"``, or by part: ``"kv=nvfp4,kv_rotary=fp8"``; the cache's own unless given.

    Examples
    --------
    >>> from chipsim import ModelSpec
    >>> mla = ModelSpec.load("deepseek-v3")
    >>> rows = [wire_bytes(mla, Precision(), form) / mla.layers
    ...         for form in ("fp8", "kv=nvfp4,kv_rotary=fp8")]
    >>> [round(row) for row in rows]
    [576, 352]
    """
    if form is None:
        return row_bytes(model, precision)
    return row_bytes(model, Precision.parse(form if "=" in form else f"kv={form}"))
