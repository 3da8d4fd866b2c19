"""A scenario: pools of instances, what they serve, and by which rules.

``YAML -> Scenario``: strict; a key that is not known is an error that names it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from chipsim.arch_configs import load
from chipsim.errors import ConfigError
from chipsim.spec import FieldError, Spec
from chipsim.units import Bandwidth, Capacity, Seconds, Watts

Count = Annotated[int, Field(ge=1, le=10**6, strict=True)]
Tokens = Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)]
Role = Literal["prefill", "decode", "mixed"]
Side = Literal["prefill", "decode"]
Routing = Literal[
    "round_robin",
    "random",
    "least_requests",
    "least_tokens",
    "least_kv",
    "prefix",
    "token_jsq",
    "mixed_pool",
]


def _percentile(name: str) -> str:
    if not re.fullmatch(r"p(100|[1-9]?\d(\.\d+)?)", name):
        raise ValueError("p0 to p100: p50, p99.9")
    return name


Percentile = Annotated[str, AfterValidator(_percentile)]
Positive = Annotated[float, Field(gt=0, le=1e12)]
Time = Annotated[Seconds, Field(ge=0, le=1e9)]
Rate = Annotated[Bandwidth, Field(gt=0)]


SHORTEST_RETRY = 1e-6
"""Seconds: asked again sooner, time would hardly pass."""
SHORTEST_LOOK = 1e-3
"""Seconds between looks at the load: no cluster turns an instance around faster."""


class ReplicaSpec(Spec):
    """The chips of one instance, the model on them, and how long its steps take."""

    chip: str | None = None
    """A chip, by library name or path; left out where ``steps`` stand for it."""
    plan: str = "tp=1"
    """How an instance splits the model: ``tp=8``."""
    execution: str | None = None
    """Execution block; the chip's own unless given."""
    precision: str | None = None
    """Formats; the scenario's unless given."""
    power_cap: Annotated[Watts, Field(gt=0)] | None = None
    """Of each chip."""
    steps: str | None = None
    """CSV file of measured steps (`chipsim.cluster.measured`) instead of the model's."""
    mixed_factor: Positive = 1.0
    """Of measured steps: a step beside decodes over one of as many prompt tokens."""
    prefill_factor: Positive = 1.0
    """Multiplies the seconds of prefill: 1 / 1.08 of a chip that is so much faster."""
    decode_factor: Positive = 1.0
    """Multiplies the seconds of decode."""

    @model_validator(mode="after")
    def _says_how_long(self) -> Self:
        if (self.chip is None) == (self.steps is None) and self.chip is None:
            raise FieldError("chip", None, "a chip, or measured steps")
        return self


class TierSpec(Spec):
    """Memory below that of an instance, for blocks of prompts that it holds no longer."""

    capacity: Annotated[Capacity, Field(gt=0, le=1e21)]
    """Of one instance."""
    bandwidth: Rate | None = None
    """To read, of one instance; ``dram``: ``host_bandwidth`` of its chips unless given."""
    latency: Time = 0.0
    """Of each load."""


class TiersSpec(Spec):
    """What lies below the chips' memory: blocks fall from one to the next."""

    dram: TierSpec | None = None
    ssd: TierSpec | None = None

    @model_validator(mode="after")
    def _can_be_read(self) -> Self:
        if self.ssd is not None and self.ssd.bandwidth is None:
            raise FieldError("ssd.bandwidth", None, "bytes/s")
        return self


class StoreSpec(Spec):
    """One store below the tiers of all instances of all pools."""

    capacity: Annotated[Capacity, Field(gt=0, le=1e21)]
    """In all."""
    bandwidth: Rate
    """Of one instance."""
    latency: Time = 0.0


class PoolSpec(ReplicaSpec):
    """Instances that are alike."""

    role: Role = "mixed"
    """What they do; ``mixed``: both."""
    instances: Annotated[int, Field(ge=0, le=10**5, strict=True)] = 1
    batching: Literal["prefill_first", "decode_first", "chunked", "splitwise"] = "prefill_first"
    order: Literal["fcfs", "shortest_prompt", "priority"] = "fcfs"
    max_batch: Count = 256
    """Sequences running on one rank."""
    max_tokens: Tokens = 8192
    """Tokens of one step of a rank."""
    max_queue: Annotated[int, Field(ge=0, le=10**9, strict=True)] | None = None
    """Waiting requests of a rank, beyond which one is rejected; no limit unless given."""
    reserve: Literal["final", "prompt"] = "final"
    """KV taken at admission: of prompt and output, or of the prompt, growing."""
    preemption: Literal["recompute", "swap"] = "recompute"
    """Where KV that grows finds no room: thrown away, or moved to the host."""
    block: Tokens = 16
    """Tokens of a block of KV."""
    kv_tokens: Tokens | None = None
    """Of one rank; what memory leaves beside the weights unless given."""
    memory_share: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Part of the memory for weights and KV."""
    host_bandwidth: Rate = 64e9
    """To the host, of one chip: for swapping and for the ``dram`` tier."""
    prefix_cache: Literal["none", "rank", "pool"] = "none"
    """Each rank keeps blocks of prompts for later prompts where no request needs the room:
    for its own only, or those of all ranks of the pool, which it then sends."""
    tiers: TiersSpec = TiersSpec()
    """Where blocks fall that a rank has no room for."""
    max_preemptions: Annotated[int, Field(ge=0, le=10**6, strict=True)] = 4
    """Splitwise's batching only: how often a task may be passed over."""


class HandoffSpec(Spec):
    """How KV goes from prefill to decode."""

    bandwidth: Rate | None = None
    """Of one instance; all its chips' share of the network between machines unless given."""
    latency: Time = 0.0
    per_descriptor: Time = 0.0
    """Seconds of one descriptor: a contiguous piece of memory."""
    descriptors_per_block: Annotated[float, Field(ge=0, le=1e9)] | None = None
    """One for each layer unless given; times as many where tp differs."""
    format: str | None = None
    """Format on the wire; that of the cache unless given."""
    dequantise: Rate | None = None
    """Bytes/s that the receiver turns back; nothing to do unless given."""
    overlap: Literal["serial", "layerwise", "stream"] = "serial"
    """Sent after prefill, layer by layer behind it, or chunk by chunk."""
    contention: Literal["none", "nic"] = "nic"
    """Whether transfers wait for one another at either end."""
    at: Literal["prefill_end", "arrival"] = "prefill_end"
    """When the decode instance is chosen, and its memory reserved."""
    retry: Time = 0.0
    """Seconds until a transfer that found no room asks again (0: it waits in a queue)."""
    keep_mixed: bool = True
    """A mixed instance goes on with what it prefilled."""
    next_turn: Literal["recompute", "write_back", "shared"] = "recompute"
    """Output decoded elsewhere, in a conversation's next prompt: computed again, sent back to
    the rank that prefilled, or read from the ``store``."""

    @model_validator(mode="after")
    def _lets_time_pass(self) -> Self:
        if 0 < self.retry < SHORTEST_RETRY:
            raise FieldError("retry", self.retry, f"0, or {SHORTEST_RETRY:g} s or more")
        return self


class FaultSpec(Spec):
    """An instance that fails for a time; ``mtbf``: again and again, at random."""

    pool: str
    instance: Annotated[int, Field(ge=0, strict=True)] | None = None
    """Number in its pool; every one of the pool unless given (with ``mtbf``)."""
    at: Time | None = None
    duration: Annotated[Seconds, Field(gt=0, le=1e9)] = 60.0
    mtbf: Annotated[Seconds, Field(gt=0, le=1e12)] | None = None
    """Mean time between failures of one instance, exponential."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.at is None) == (self.mtbf is None):
            raise FieldError("at", self.at, "a time, or mtbf: one of them")
        if self.at is not None and self.instance is None:
            raise FieldError("instance", None, "the number of an instance, with a time")
        return self


class SwitchSpec(Spec):
    """An instance that takes another role at a time."""

    at: Time
    pool: str
    instance: Annotated[int, Field(ge=0, strict=True)]
    role: Role


class SwitchingSpec(Spec):
    """Instances that take the other role where that side is short: one at a look."""

    every: Annotated[Seconds, Field(ge=SHORTEST_LOOK, le=1e9)]
    """Between looks at the load."""
    prefill_tokens: Annotated[float, Field(ge=0, le=1e12)]
    """Pending tokens of a prefill instance, on average, beyond which prefill is short."""
    decode_kv: Annotated[float, Field(ge=0, le=1)]
    """Share of the decode instances' KV in use, beyond which decode is short."""


Limits = dict[Percentile, Annotated[Seconds, Field(gt=0)]]
Ratios = dict[Percentile, Positive]


class SlowdownSpec(Spec):
    """Limits as multiples of the same request alone on a reference instance."""

    reference: ReplicaSpec
    ttft: Ratios = Field(default_factory=dict)
    tbt: Ratios = Field(default_factory=dict)
    """(E2E - TTFT) / output tokens, hand-off included: Splitwise's and SPAD's measure."""
    e2e: Ratios = Field(default_factory=dict)


class SloSpec(Spec):
    """The objective: percentiles in seconds, or as slowdown."""

    ttft: Limits = Field(default_factory=dict)
    itl: Limits = Field(default_factory=dict)
    """Over all gaps between tokens."""
    tpot: Limits = Field(default_factory=dict)
    """Over requests: the mean gap of each."""
    e2e: Limits = Field(default_factory=dict)
    slowdown: SlowdownSpec | None = None
    warm_up: Time = 0.0
    """Requests that arrive before this time are served, and not judged."""

    @model_validator(mode="after")
    def _knows_whose_gaps(self) -> Self:
        if self.warm_up and self.itl:
            allowed = "0 with limits on itl: gaps are not known by request (tpot is)"
            raise FieldError("warm_up", self.warm_up, allowed)
        return self


class GoodputSpec(Spec):
    """What a request must meet to count."""

    ttft: Annotated[Seconds, Field(gt=0)]
    tpot: Annotated[Seconds, Field(gt=0)]
    """Its mean gap between tokens."""


class LimitsSpec(Spec):
    """Bounds of a run: what is not done by then is counted as unfinished."""

    time: Annotated[Seconds, Field(gt=0, le=1e12)] = 1e7
    events: Annotated[int, Field(ge=1, le=10**12, strict=True)] = 10**10


def _named(value: object) -> object:
    return {"base": value} if isinstance(value, str) else value


class WorkloadChoice(Spec):
    """A workload of the library or of a file, and what is changed in it."""

    base: str
    rate: Positive | None = None
    requests: Count | None = None
    duration: Annotated[Seconds, Field(gt=0)] | None = None
    seed: Seed | None = None
    arrivals: str | None = None
    format: str | None = None


class Scenario(Spec):
    """A cluster and what it serves."""

    name: str
    description: str = ""
    source: str = ""
    model: str
    precision: str | None = None
    expert_load: str | None = None
    """How tokens spread over experts: ``uniform``, ``zipf=1.1``, a histogram."""
    workload: Annotated[WorkloadChoice, BeforeValidator(_named)]
    pools: Annotated[dict[str, PoolSpec], Field(min_length=1, max_length=64)]
    routing: Routing = "least_tokens"
    decode_routing: Routing = "least_kv"
    prompt_limit: Annotated[int, Field(ge=0, le=2**62, strict=True)] = 8192
    """Pending tokens at which ``mixed_pool`` sends a prompt elsewhere."""
    handoff: HandoffSpec = HandoffSpec()
    store: StoreSpec | None = None
    first_token_from: Side = "prefill"  # noqa: S105 - no password
    faults: tuple[FaultSpec, ...] = ()
    switches: tuple[SwitchSpec, ...] = ()
    switching: SwitchingSpec | None = None
    """Roles that follow the load: of instances that prefill or decode; mixed ones stay."""
    slo: SloSpec = SloSpec()
    goodput: GoodputSpec | None = None
    limits: LimitsSpec = LimitsSpec()
    prices: str = "spad-2025"
    host: str = "hgx-bom-2023"
    seed: Seed = 0
    """Of random routing and faults."""

    @model_validator(mode="after")
    def _has_what_caches_need(self) -> Self:
        if self.handoff.next_turn == "shared" and self.store is None:
            raise FieldError("store", None, "a store, for handoff.next_turn: shared")
        for name, pool in self.pools.items():
            where, tiers = f"pools.{name}.prefix_cache", pool.tiers.dram or pool.tiers.ssd
            if tiers is not None and pool.prefix_cache == "none":
                raise FieldError(where, "none", "rank or pool, with tiers")
            if pool.prefix_cache != "none" and pool.batching == "splitwise":
                raise FieldError(where, pool.prefix_cache, "none, with splitwise")
        kept = {pool.prefix_cache for pool in self.pools.values() if pool.instances}
        if self.store is not None and kept <= {"none"}:
            raise FieldError("store", "a store", "none where no pool has a prefix_cache")
        return self

    @model_validator(mode="after")
    def _changes_under_rules_that_know_them(self) -> Self:
        theirs = any(pool.batching == "splitwise" for pool in self.pools.values())
        for name in ("faults", "switches", "switching"):
            if theirs and getattr(self, name):
                raise FieldError(name, "given", "none with batching: splitwise")
        return self

    @model_validator(mode="after")
    def _serves_both_phases(self) -> Self:
        roles = {pool.role for pool in self.pools.values() if pool.instances}
        if not roles:
            raise FieldError("pools", "0 instances in all", "at least one instance")
        for role in ("prefill", "decode"):
            if not roles & {role, "mixed"}:
                allowed = f"an instance of role {role} or mixed"
                raise FieldError("pools", ", ".join(sorted(roles)), allowed)
        changes: dict[str, Sequence[FaultSpec | SwitchSpec]]
        changes = {"faults": self.faults, "switches": self.switches}
        for kind, found in changes.items():
            for number, item in enumerate(found):
                pool = self.pools.get(item.pool)
                if pool is None:
                    known = ", ".join(self.pools)
                    raise FieldError(f"{kind}.{number}.pool", item.pool, known)
                if item.instance is not None and item.instance >= pool.instances:
                    allowed = f"below {pool.instances}"
                    raise FieldError(f"{kind}.{number}.instance", item.instance, allowed)
        return self

    @classmethod
    def load(cls, name: str | Path) -> Scenario:
        """Read a scenario by library name or path.

        Files that it names lie beside it, unless they are absolute or in the library.

        Raises
        ------
        UnknownNameError, ConfigError
            No such scenario, or not a valid one.
        """
        data, path = load("scenarios", str(name))
        return cls.read(_beside(data, path.parent), path)

    def plain(self) -> dict[str, Any]:
        """What is stated, as plain JSON values."""
        return self.model_dump(mode="json", exclude_unset=True)

    def changed(self, **fields: Any) -> Scenario:
        """The scenario with other values: ``rate``, ``seed``, ``instances`` or own fields.

        Parameters
        ----------
        rate, duration, requests, workload_seed
            Of the workload, where they are not None.
        instances : mapping of str to int
            Of pools.
        """
        data = self.model_dump(exclude_unset=True)
        workload = data["workload"]
        for name, key in WORKLOAD_KEYS.items():
            value = fields.pop(name, None)
            if value is not None:
                workload[key] = value
                if key in ("requests", "duration"):
                    workload.pop({"requests": "duration", "duration": "requests"}[key], None)
        for pool, count in (fields.pop("instances", None) or {}).items():
            if pool not in data["pools"]:
                raise ConfigError(self.name, "pools", pool, ", ".join(data["pools"]))
            data["pools"][pool]["instances"] = count
        given = {name: value for name, value in fields.items() if value is not None}
        return Scenario.build(self.name, **(data | given))


WORKLOAD_KEYS = {
    "rate": "rate",
    "duration": "duration",
    "requests": "requests",
    "workload_seed": "seed",
}
"""Keywords of `Scenario.changed` -> keys of the workload."""


def _beside(value: Any, folder: Path, key: str = "") -> Any:
    """A description whose paths lead from its own folder."""
    if isinstance(value, dict):
        return {name: _beside(inner, folder, str(name)) for name, inner in value.items()}
    named = key in FILES and isinstance(value, str) and ("/" in value or Path(value).suffix)
    return str(folder / value) if named and (folder / value).is_file() else value


FILES = frozenset(
    {"model", "prices", "host", "workload", "base", "chip", "execution", "steps", "reference"}
)
"""Keys whose values may be paths."""
