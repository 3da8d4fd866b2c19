"""Small clusters of every kind, for hypothesis: what the engine's `run` takes, drawn at random.

Times are whole multiples of 1/64 s and rates powers of two, so that all sums are exact and
much happens at one instant; or (``exact=False``) any number, with tables of attention.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from chipsim.cluster.engine import (
    Options,
    Requests,
    Steps,
    codes,
    instances,
    links,
    pools,
    tiers,
    timers,
)

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

TICK = 1 / 64
TOKENS, BATCH = 96, 8
UNIT = 4
"""Tokens of a block of a chain."""


@dataclass(frozen=True)
class Scenario:
    """What `run` takes."""

    requests: Requests
    steps: Steps
    pools: Any
    instances: Any
    links: Any
    timers: Any
    options: Options
    joules: Steps
    tiers: Any

    def given(self) -> dict[str, Any]:
        """As keywords."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __repr__(self) -> str:
        """What it takes to see what is going on: the requests, and what is not as usual."""
        fields = ("arrival_s", "prompt", "output", "priority", "parent", "think_s")
        rows = {name: getattr(self.requests, name).tolist() for name in fields}
        lines = [f"{name}={values}" for name, values in rows.items()]
        for name in ("pools", "instances", "links", "tiers", "timers"):
            table = getattr(self, name)
            lines += [f"{name}: {dict(zip(table.dtype.names, row, strict=True))}"
                      for row in table.ravel().tolist()]  # fmt: skip
        return "\n".join(["", *lines, str(self.options)])


@dataclass(frozen=True)
class Family:
    """What a set of scenarios is about: the choices that are left open."""

    batching: tuple[str, ...] = ("prefill_first", "decode_first", "chunked")
    reserve: tuple[str, ...] = ("final", "prompt")
    preemption: tuple[str, ...] = ("recompute", "swap")
    roles: tuple[str, ...] = ("mixed",)
    batch: int = 6  # at most
    tokens: int = 64  # at most
    room: tuple[int, int] = (25, 80)  # tokens of KV of a rank, from and to
    ranks: int = 1
    overlap: tuple[str, ...] = ("serial",)
    decode_at: tuple[str, ...] = ("prefill_end",)
    keep_mixed: tuple[bool, ...] = (True,)
    retry: tuple[float, ...] = (0.0,)
    turns: bool = False
    bounds: bool = False
    faults: bool = False
    switches: bool = False  # of roles, at given times
    load: bool = False  # the same, by looks at the load
    prefixes: bool = False  # prompts have beginnings in common, and pools keep them
    pooled: bool = False  # for all of their ranks
    tiers: bool = False
    far: bool = False  # tiers take long to answer
    next_turn: tuple[str, ...] = ("recompute",)
    rates: tuple[float, ...] = (np.inf, 256.0, 64.0)  # of links, bytes/s
    exact: bool = True

    def but(self, **changes: Any) -> Family:
        """The same with other choices."""
        return replace(self, **changes)


@st.composite
def scenarios(draw: DrawFn, family: Family) -> Scenario:
    """One of a family."""
    rows = draw(st.integers(1, 2))
    machines = draw(_instances(family, rows))
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    steps = _steps(random, rows, family.exact)
    if family.tiers or family.pooled:  # so that loading pays
        scale = 1.0 if family.pooled else 0.25
        steps = steps._replace(prefill=steps.prefill.cumsum(axis=-1) * scale)
    requests = draw(_requests(family))
    return Scenario(
        requests=requests,
        steps=steps,
        pools=np.concatenate([draw(_pool(family, i)) for i in range(rows)]),
        instances=machines,
        links=draw(_links(family, rows)),
        timers=draw(_changes(family, requests, len(machines))),
        options=draw(_options(family)),
        joules=_steps(random, rows, family.exact)._replace(limit=steps.limit),
        tiers=draw(_tiers(family, rows)),
    )


def _ticks(most: int) -> SearchStrategy[float]:
    return st.integers(0, most).map(lambda ticks: ticks * TICK)


@st.composite
def _requests(draw: DrawFn, family: Family) -> Requests:
    size = draw(st.integers(10 if family.tiers else 1, 16))

    def each(values: SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=size, max_size=size))

    # What falls into a tier was let go before.
    gaps = each(st.sampled_from([0, 9, 40, 150] if family.tiers else [0, 0, 1, 2, 3, 9, 40]))
    parents = [-1] * size
    if family.turns:
        parents = [draw(st.integers(-1, i - 1)) if draw(st.booleans()) else -1
                   for i in range(size)]  # fmt: skip
    scale = TICK if family.exact else TICK * 1.0371
    prompt, output = each(st.integers(8 if family.tiers else 1, 30)), each(st.integers(1, 20))
    chains = draw(_chains(prompt, output)) if family.prefixes else [[] for _ in prompt]
    return Requests.of(
        np.cumsum(gaps) * scale,
        prompt,
        output,
        block_start=np.cumsum([0, *map(len, chains)]),
        blocks=[i for chain in chains for i in chain],
        prefix_block=UNIT,
        priority=each(st.integers(0, 2)),
        parent=parents,
        think_s=each(_ticks(20)),
    )


@st.composite
def _chains(draw: DrawFn, prompt: list[int], output: list[int]) -> list[list[int]]:
    """Ids of blocks: a request's begin as an earlier one's; some go on over its output."""
    chains: list[list[int]] = []
    for own, more in zip(prompt, output, strict=True):
        length = (own + draw(st.sampled_from([0, more]))) // UNIT
        like = draw(st.sampled_from(chains)) if chains else []
        common = like[: min(length, draw(st.sampled_from([0, 1, 2, 9, 9])))]
        new = 1 + max((i for chain in chains for i in chain), default=-1)
        chains.append([*common, *range(new, new + length - len(common))])
    return chains


@st.composite
def _instances(draw: DrawFn, family: Family, rows: int) -> Any:
    size = draw(st.integers(1, 4))
    roles = [draw(st.sampled_from(family.roles)) for _ in range(size)]
    if "prefill" in family.roles and draw(st.integers(0, 3)):  # else some may lack one side
        roles = ["prefill", "decode", *roles[2:]]
    size = len(roles)
    return instances(
        draw(st.lists(st.integers(0, rows - 1), min_size=size, max_size=size)),
        role=[codes.ROLE[role] for role in roles],
        ranks=draw(st.lists(st.integers(1, family.ranks), min_size=size, max_size=size)),
    )


@st.composite
def _changes(draw: DrawFn, family: Family, requests: Requests, machines: int) -> Any:
    """Failures, most of which end, and new roles."""
    rows: list[tuple[float, int, int, int]] = []
    which = st.integers(0, machines - 1)
    arrivals = st.sampled_from(requests.arrival_s.tolist())

    def soon() -> float:
        """After a request arrived: later on nothing may be left to do."""
        return float(draw(arrivals) + draw(st.sampled_from([1, 3, 8, 20, 60])) * TICK)

    for _ in range(draw(st.integers(1, 4)) if family.faults else 0):
        at, machine = soon(), draw(which)
        rows.append((at, codes.FAULT, machine, 0))
        if draw(st.integers(0, 3)):
            rows.append((at + draw(_ticks(60)), codes.RECOVERY, machine, 0))
    for _ in range(draw(st.integers(1, 4)) if family.switches else 0):
        role = draw(st.sampled_from(sorted(codes.ROLE.values())))
        rows.append((soon(), codes.ROLE_SWITCH, draw(which), role))
    return timers(rows)


@st.composite
def _pool(draw: DrawFn, family: Family, table: int) -> Any:
    batching = draw(st.sampled_from(family.batching))
    batch = draw(st.integers(1, family.batch))
    block = draw(st.sampled_from([1, 2, UNIT] if family.prefixes else [1, 2, 4, 16]))
    room = draw(st.integers(*family.room))
    least = batch if batching == "chunked" else 1
    caches = [codes.BY_POOL] if family.pooled else [codes.NO_PREFIXES] + 2 * [codes.BY_RANK]
    return pools(
        1,
        table=table,
        batching=codes.BATCHING[batching],
        order=draw(st.sampled_from(sorted(codes.ORDER.values()))),
        reserve=codes.RESERVE[draw(st.sampled_from(family.reserve))],
        preemption=codes.PREEMPTION[draw(st.sampled_from(family.preemption))],
        block=block,
        kv_blocks=max(1, room // block),
        max_batch=batch,
        max_tokens=draw(st.integers(least, family.tokens)),
        prefix_cache=draw(st.sampled_from(caches)) if family.prefixes else 0,
        max_queue=draw(st.sampled_from([-1, -1, -1, 0, 1, 3])),
        host_bytes_per_s=draw(st.sampled_from([np.inf, 512.0, 128.0])),
        kv_bytes_per_token=draw(st.sampled_from([0.0, 1.0, 4.0])),
    )


@st.composite
def _tiers(draw: DrawFn, family: Family, rows: int) -> Any:
    """Memory below the ranks' own; there is a store where conversations need it."""
    if not family.tiers:
        return tiers(rows)
    rooms = st.sampled_from([0, 2, 5, 100])
    room = [draw(rooms) for _ in range(3 * rows)]
    stores = st.sampled_from([3, 100] if "shared" in family.next_turn else [0, 3, 100])
    room[2::3] = [draw(stores)] * rows
    # The slowest take about as long as computing a block does.
    block_s = st.sampled_from([0.0, TICK / 4, TICK / 2, 8 * TICK])
    return tiers(
        rows,
        room=room,
        latency_s=[draw(_ticks(24) if family.far else _ticks(1)) for _ in room],
        block_s=[draw(block_s) for _ in room],
    )


@st.composite
def _links(draw: DrawFn, family: Family, rows: int) -> Any:
    """Two sorts of links, between any two pools one of them."""
    sorts = [draw(_link(family)), draw(_link(family))]
    which = draw(st.lists(st.integers(0, 1), min_size=rows**2, max_size=rows**2))
    return np.concatenate([sorts[i] for i in which]).reshape(rows, rows)


@st.composite
def _link(draw: DrawFn, family: Family) -> Any:
    return links(
        1,
        latency_s=draw(_ticks(3)),
        bytes_per_s=draw(st.sampled_from(family.rates)),
        bytes_per_token=draw(st.sampled_from([1.0, 2.0])),
        descriptors=draw(st.integers(0, 2)),
        descriptors_per_token=draw(st.sampled_from([0.0, 0.5])),
        descriptor_s=draw(st.sampled_from([0.0, TICK / 4])),
        dequant_bytes_per_s=draw(st.sampled_from([np.inf, np.inf, 256.0])),
        layers=draw(st.sampled_from([1, 2, 8])),
        overlap=codes.OVERLAP[draw(st.sampled_from(family.overlap))],
        contention=draw(st.sampled_from(sorted(codes.CONTENTION.values()))),
    )


@st.composite
def _options(draw: DrawFn, family: Family) -> Options:
    routing = st.sampled_from(
        [
            codes.ROUND_ROBIN,
            codes.RANDOM,
            codes.LEAST_REQUESTS,
            codes.LEAST_TOKENS,
            codes.LEAST_KV,
            *[codes.LONGEST_PREFIX] * (3 * family.prefixes),
        ]
    )
    looks: dict[str, Any] = draw(_LOOKS) if family.load else {}
    never = st.just(2**62)
    return Options(
        routing=draw(routing),
        decode_routing=draw(routing),
        decode_at=codes.CHOSEN_AT[draw(st.sampled_from(family.decode_at))],
        keep_mixed=draw(st.sampled_from(family.keep_mixed)),
        retry_s=draw(st.sampled_from(family.retry)),
        first_token_from=draw(st.sampled_from([codes.BY_PREFILL, codes.BY_DECODE])),
        seed=draw(st.integers(0, 2**40)),
        max_time_s=draw(st.just(np.inf) | _ticks(300)) if family.bounds else np.inf,
        max_events=draw(never | st.integers(0, 60)) if family.bounds else 2**62,
        log_steps=True,
        energy=True,
        next_turn=codes.NEXT_TURN[draw(st.sampled_from(family.next_turn))],
        **looks,
    )


_LOOKS: SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "switch_every_s": st.sampled_from([1, 3, 16]).map(lambda ticks: ticks * TICK),
        "switch_tokens": st.sampled_from([0.0, 5.0, 20.0, 60.0]),
        "switch_kv": st.sampled_from([0.0, 0.25, 0.5, 0.875]),
    }
)
"""At the load: how often, and what is too much of it."""


def _steps(random: np.random.Generator, kinds: int, exact: bool) -> Steps:
    """Tables without rhyme or reason, so that a wrong look-up shows."""

    def table(*shape: int, least: int = 0, most: int = 16) -> Any:
        if exact:
            return random.integers(least, most, size=(kinds, *shape)) * TICK
        return random.uniform(least, most, size=(kinds, *shape)) * TICK

    none = 0 if exact else 1
    batches, queries, prefixes = [1.0, 2.0, 5.0], [1.0, 4.0, 30.0], [0.0, 3.0, 20.0]

    def axis(points: list[float]) -> Any:
        return np.array([[*points, np.inf]] * kinds)

    return Steps(
        prefill=table(TOKENS + 1, least=1),
        mixed=table(TOKENS + 1, least=1),
        decode=table(BATCH + 1, least=1),
        head=table(BATCH + 1, most=3),
        batches=axis(batches),
        queries=axis(queries),
        prefixes=axis(prefixes),
        prompts=none * table(3, 3, 3, most=4),
        contexts=none * table(2, BATCH + 1, 16, most=2).cumsum(axis=-1),
        limit=random.integers(0, 2, size=kinds) * 11,
    )
