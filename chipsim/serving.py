"""What a serving engine adds to the steps of its model: time of the host, not of the chip.

    step = max(device, host) + sequences * t_sequence
    device = operators / libraries + collectives * exchange
    host   = kernels * t_kernel (+ t_prompts, where the step has prompts)

An engine that launches kernel by kernel has a host that runs ahead of the device or holds it
up; what it does for each sequence between two steps (sampling, detokenising, scheduling)
nothing hides. Its libraries may be older than those that a chip's block was fitted to, and
its collectives slower: ``exchange``, and ``long_exchange`` from a size on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field

from chipsim.arch_configs import load
from chipsim.errors import ConfigError
from chipsim.execution import Fitted
from chipsim.spec import Spec
from chipsim.units import Capacity, Seconds

if TYPE_CHECKING:
    from chipsim.estimates import OperatorRow, PhaseEstimate

Time = Annotated[Seconds, Field(ge=0, le=1e3)]
Share = Annotated[float, Field(gt=0, le=1, strict=True)]
Slowdown = Annotated[float, Field(ge=1, le=100, strict=True)]


UNITS = {"kernel": "time", "prompts": "time", "sequence": "time", "long_from": "capacity"}
"""Fields of an engine that carry a unit, by name."""


class Host(Spec):
    """An engine on the machine of one chip."""

    kernel: Time = 0.0
    """Time of the host to issue one kernel."""
    libraries: Share = 1.0
    """Part of what the chip's block sustains that the engine's kernels reach."""


class ServingEngine(Spec):
    """Named factors of a serving engine; one that is not named is neutral."""

    name: str
    source: str
    fitted: Fitted | None = None
    machines: dict[str, Host] = Field(default={})
    """By chip."""
    prompts: Time = 0.0
    """Time of the host beside its kernels, of a step with prompts."""
    sequence: Time = 0.0
    """Time of the host for each sequence of a step."""
    exchange: Slowdown = 1.0
    """Time of a collective over what the chip's block gives."""
    long_exchange: Slowdown = 1.0
    """As ``exchange``, on top of it, from ``long_from`` on."""
    long_from: Annotated[Capacity, Field(gt=0)] = 2.0**26

    @classmethod
    def load(cls, name: str) -> ServingEngine:
        """Read an engine by library name or path (`ConfigError`, `UnknownNameError`)."""
        data, path = load("engines", name)
        return cls.read(data, path)


class EngineStep(NamedTuple):
    """One step of an engine, seconds."""

    device: float
    host: float
    sequences: float

    @property
    def latency_s(self) -> float:
        """Device and host side by side, then the sequences."""
        return max(self.device, self.host) + self.sequences


def engine_step(engine: ServingEngine, phase: PhaseEstimate) -> EngineStep:
    """A phase as an engine runs it.

    Raises
    ------
    ConfigError
        The engine does not know the machine of the chip, or the plan has several stages.
    """
    if phase.chip not in engine.machines:
        raise ConfigError(engine.name, "machines", phase.chip, ", ".join(engine.machines))
    if len(phase.stage_layers) > 1:
        raise ConfigError(engine.name, "plan", phase.plan, "one pipeline stage")
    host = engine.machines[phase.chip]
    device = sum(_device_seconds(engine, host, row) for row in phase.rows)
    kernels = sum(row.count for row in phase.rows)
    issue = kernels * host.kernel
    if phase.phase.kind != "decode":
        issue += engine.prompts
    sequences = phase.phase.batch + phase.phase.decodes
    return EngineStep(device, issue, sequences * engine.sequence)


def _device_seconds(engine: ServingEngine, host: Host, row: OperatorRow) -> float:
    operator = row.estimate.operator
    if operator.kind != "collective":
        return row.latency_s / host.libraries
    longer = engine.long_exchange if operator.bytes >= engine.long_from else 1.0
    return row.latency_s * engine.exchange * longer
