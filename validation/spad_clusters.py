"""SPAD's clusters, provisioned: which counts of machines hold its objective, under which rule.

trace + system + assumptions -> scenario; `chipsim.validation.spad_search` finds the counts

Nothing here reads a figure that the paper published of a cluster: what is sought is what the
objective asks for. Comparison is `chipsim.validation.reproduce_spad`'s.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Literal

from chipsim.chip import Chip
from chipsim.cluster.scenario import Scenario
from chipsim.cost import chip_cost

TRACES = ("code", "conversation")

H100, PREFILL, DECODE, A100 = "spad-h100", "spad-prefill", "spad-decode", "a100-sxm"

SHARE_OF_H100 = {A100: 0.5}
"""TDP of chips that the paper takes as a share of the H100's instead of modelling them."""

CAP_W = 450.0
"""Of a power-capped H100 in the paper; it costs as much as any other."""

WEIGHTS_BYTES, KV_BYTES = 329e9, 4_014_080
"""BLOOM-176B as the author's simulator counts it: weights, and KV of a token."""

Rule = Literal["mixed", "fixed"]


@dataclass(frozen=True)
class Served:
    """A model on a machine of eight chips: ``instances`` of it, plan and formats of each."""

    model: str
    plan: str
    precision: str
    instances: int = 1


BLOOM = Served("bloom-176b", "tp=8", "fp16")


@dataclass(frozen=True)
class Assumptions:
    """What the paper leaves open or takes from its simulator; each is a field of the scenario.

    Attributes
    ----------
    trace_s : float
        Seconds of arrivals; a chosen one.
    seeds : tuple of int
        Of arrivals and lengths.
    rate_rps : float
    rule : str
        ``mixed``: machines of either pool are lent (`prompt_limit`); ``fixed``: they stay.
    prompt_limit : int
        Pending tokens beyond which a prompt machine refuses.
    link : str
        Of the KV hand-off, per machine.
    max_tokens, max_batch : int
        Of one step of a machine.
    capacity : str
        ``decimal``: 8 x 80e9 B less 329e9 B of weights, as the author's simulator has it;
        ``binary``: 90 % of GiB less the weights, as the paper's appendix counts.
    execution : str
        Block of the performance model.
    steps : str or None
        A CSV file of measured H100 steps instead of the model's; other chips by their
        published mean performance.
    chunk : int
        Tokens of a step of the colocated cluster.
    colocated_routing : str
    served : Served
    least : str
        ``machines``: the fewest, of those the least of the system's own; ``own``: that alone.
    warm_up_s : float
        Requests that arrive before are served and not judged.
    reference : str
        Chip of the machine that a slowdown is measured against.
    """

    trace_s: float = 600.0
    seeds: tuple[int, ...] = (0, 1, 2)
    rate_rps: float = 70.0
    rule: Rule = "mixed"
    prompt_limit: int = 1024
    link: float = 200 * 2**30
    max_tokens: int = 2048
    max_batch: int = 512
    capacity: Literal["decimal", "binary"] = "decimal"
    execution: str = "spad-figures"
    steps: str | None = None
    chunk: int = 2048
    colocated_routing: str = "least_tokens"
    served: Served = BLOOM
    least: Literal["machines", "own"] = "machines"
    warm_up_s: float = 0.0
    reference: str = H100

    @property
    def words(self) -> str:
        """The rule beside a count."""
        if self.rule == "fixed":
            return "fixed pools"
        return f"mixed pool, prompt limit {self.prompt_limit}"

    def rule_of(self, system: System) -> str:
        """The rule beside a count of a system."""
        if system.colocated:
            return f"chunks of {self.chunk} tokens, {self.colocated_routing}"
        return self.words


RULES: dict[str, dict[str, Any]] = {
    "published simulator's prompt limit": {"prompt_limit": 8192},
    "fixed pools": {"rule": "fixed"},
}
"""Fields of the rules that stand beside the default one."""


@dataclass(frozen=True)
class Machine:
    """Eight chips of a kind, in units of an H100 machine.

    Attributes
    ----------
    chip : str
    cap_w : float or None
        Power cap of a chip.
    """

    chip: str
    cap_w: float | None = None

    @property
    def cost(self) -> float:
        """Price over that of an H100, book ``spad-2025``."""
        return chip_cost(self.chip).total_usd / chip_cost(H100).total_usd

    @property
    def tdp(self) -> float:
        """TDP over that of an H100."""
        full = _tdp_w(H100)
        share = SHARE_OF_H100.get(self.chip)
        watts = full * share if share is not None else _tdp_w(self.chip)
        return (watts if self.cap_w is None else min(watts, self.cap_w)) / full


@functools.cache
def _tdp_w(chip: str) -> float:
    from chipsim.cost.power import power

    return power(Chip.load(chip)).tdp_w


@dataclass(frozen=True)
class System:
    """A way to build the cluster: machines by pool, and what is made least."""

    name: str
    pools: dict[str, Machine]
    least: Literal["cost", "tdp"] = "cost"

    @property
    def colocated(self) -> bool:
        """Whether prefill and decode share the machines."""
        return "mixed" in self.pools

    def weights(self, of: str) -> dict[str, float]:
        """Cost or TDP of a machine of each pool."""
        return {name: getattr(each, of) for name, each in self.pools.items()}


SYSTEMS = {
    each.name: each
    for each in (
        System("colocated", {"mixed": Machine(H100)}),
        System("h100", {"prefill": Machine(H100), "decode": Machine(H100)}),
        System("h100+a100", {"prefill": Machine(H100), "decode": Machine(A100)}),
        System(
            "h100+capped", {"prefill": Machine(H100), "decode": Machine(H100, CAP_W)}, "tdp"
        ),
        System("spad", {"prefill": Machine(PREFILL), "decode": Machine(DECODE)}),
    )
}
"""By name, in the order of the paper's table."""


def scenario(trace: str, system: System, given: Assumptions) -> Scenario:
    """The bundled scenario of a trace with a system's machines and other assumptions."""
    base = Scenario.load(f"spad-{trace}").changed(rate=given.rate_rps, duration=given.trace_s)
    data = base.model_dump(exclude_unset=True)
    alone = Machine(given.reference)
    reference = {"chip": alone.chip, "plan": given.served.plan, **_steps(alone, given)}
    data |= {"model": given.served.model, "precision": given.served.precision}
    data["slo"]["slowdown"]["reference"] = reference
    data["slo"]["warm_up"] = given.warm_up_s
    data["name"] = f"{trace} {system.name}"
    data["pools"] = {
        name: pool(name, machine, system, given) for name, machine in system.pools.items()
    }
    data["handoff"]["bandwidth"] = given.link
    data |= {"prompt_limit": given.prompt_limit}
    if system.colocated:
        data["routing"] = given.colocated_routing
    elif given.rule == "fixed":
        # Machines stay what they are, and a hand-off waits for memory where it is.
        data |= {"routing": "least_tokens", "decode_routing": "least_kv"}
        data["handoff"] |= {"at": "prefill_end", "retry": 0.0}
    return Scenario.build(data["name"], **data)


def pool(role: str, machine: Machine, system: System, given: Assumptions) -> dict[str, Any]:
    """A pool of a scenario: machines of a kind in a role."""
    found: dict[str, Any] = {
        "role": role,
        "chip": machine.chip,
        "plan": given.served.plan,
        "instances": 1,
        "max_batch": given.max_batch,
        "max_tokens": given.max_tokens,
        "block": 1,
        **({"kv_tokens": kv_tokens(machine.chip, given)} if given.served == BLOOM else {}),
        **_steps(machine, given),
    }
    if machine.cap_w is not None and given.steps is None:
        found["power_cap"] = machine.cap_w
    if system.colocated:
        batch = min(128, given.chunk)
        return found | {"batching": "chunked", "max_tokens": given.chunk, "max_batch": batch}
    if given.rule == "fixed":
        return found | {"batching": "prefill_first", "reserve": "final"}
    return found | {"batching": "splitwise", "reserve": "prompt"}


def kv_tokens(chip: str, given: Assumptions) -> int:
    """Tokens of KV that a machine holds."""
    capacity = 8 * Chip.load(chip).memory.capacity  # printed GB, binary
    if given.capacity == "binary":
        return int((0.9 * capacity - 352e9) / KV_BYTES)
    return int((capacity / 2**30 * 1e9 - WEIGHTS_BYTES) / KV_BYTES)


def _steps(machine: Machine, given: Assumptions) -> dict[str, Any]:
    """Where the seconds of a machine's steps come from."""
    if given.steps is None:
        return {"execution": given.execution}
    # Only the H100 was measured: other chips are as far from it as the model has them.
    prefill, decode = mean_performance(machine, given.execution)
    return {"steps": given.steps, "prefill_factor": 1 / prefill, "decode_factor": 1 / decode}


@functools.cache
def mean_performance(machine: Machine, execution: str) -> tuple[float, float]:
    """Mean performance of a chip over the paper's grid in prefill and decode, modelled."""
    from chipsim.cost.cap import CappedModel
    from chipsim.validation.spad import chip_performance, mean_ratio

    chip, cap = machine.chip, machine.cap_w
    if cap is not None:
        capped = CappedModel(chip, cap, execution)
        return (
            mean_ratio(chip, "prefill", capped, execution),
            mean_ratio(chip, "decode", capped, execution),
        )
    if chip == H100:
        return 1.0, 1.0
    found = {
        (each.chip, each.phase): each.mean for each in chip_performance(execution, (chip,))
    }
    return found[chip, "prefill"], found[chip, "decode"]
