"""Small clusters of every kind, drawn at random: what the engine's `run` takes.

Times are whole multiples of 1/64 s and rates powers of two, so that all sums are exact and
much happens at one instant; or (``exact=False``) any number, with tables of attention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

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
    from hypothesis.strategies import DrawFn

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


Pick: TypeAlias = Callable[[Sequence[Any]], Any]
"""One of so many, by whatever means."""


def seeded(family: Family, seed: int) -> Scenario:
    """One of a family, the same on every machine and beside every version of a library."""
    random = Random(seed).random  # noqa: S311 - not for cryptography
    return _made(family, lambda options: options[int(random() * len(options))])


@st.composite
def scenarios(draw: DrawFn, family: Family) -> Scenario:
    """One of a family, by hypothesis."""
    return _made(family, lambda options: draw(st.sampled_from(options)))


def _made(family: Family, pick: Pick) -> Scenario:
    rows = pick([1, 2])
    machines = _instances(family, pick, rows)
    random = np.random.default_rng(pick(range(2**16)))
    steps = _steps(random, rows, family.exact)
    if family.tiers or family.pooled:  # so that loading pays
        scale = 1.0 if family.pooled else 0.25
        steps = steps._replace(prefill=steps.prefill.cumsum(axis=-1) * scale)
    requests = _requests(family, pick)
    return Scenario(
        requests=requests,
        steps=steps,
        pools=np.concatenate([_pool(family, pick, i) for i in range(rows)]),
        instances=machines,
        links=_links(family, pick, rows),
        timers=_changes(family, pick, requests, len(machines)),
        options=_options(family, pick),
        joules=_steps(random, rows, family.exact)._replace(limit=steps.limit),
        tiers=_tiers(family, pick, rows),
    )


def _ticks(pick: Pick, most: int) -> float:
    return float(pick(range(most + 1)) * TICK)


def _requests(family: Family, pick: Pick) -> Requests:
    size = pick(range(10 if family.tiers else 1, 17))

    def each(options: Sequence[Any]) -> list[Any]:
        return [pick(options) for _ in range(size)]

    # What falls into a tier was let go before.
    gaps = each([0, 0, 2, 40, 150] if family.tiers else [0, 0, 1, 2, 3, 9, 40])
    parents = [-1] * size
    if family.turns:
        parents = [pick(range(-1, i)) if pick([False, True]) else -1 for i in range(size)]
    scale = TICK if family.exact else TICK * 1.0371
    prompt = each(range(8 if family.tiers else 1, 31))
    output = each(range(1, 8 if family.tiers else 21))
    chains: list[list[int]] = [[] for _ in prompt]
    if family.prefixes:
        chains = _chains(pick, prompt, output, alike=family.tiers)
    return Requests.of(
        np.cumsum(gaps) * scale,
        prompt,
        output,
        block_start=np.cumsum([0, *map(len, chains)]),
        blocks=[i for chain in chains for i in chain],
        prefix_block=UNIT,
        priority=each(range(3)),
        parent=parents,
        think_s=[_ticks(pick, 20) for _ in range(size)],
    )


def _chains(
    pick: Pick, prompt: list[int], output: list[int], *, alike: bool
) -> list[list[int]]:
    """Ids of blocks: a request's begin as an earlier one's; some go on over its output."""
    chains: list[list[int]] = []
    for own, more in zip(prompt, output, strict=True):
        length = (own + pick([0, more])) // UNIT
        like = pick(chains) if chains else []
        common = like[: min(length, pick([1, 9, 9, 9] if alike else [0, 1, 2, 9, 9]))]
        new = 1 + max((i for chain in chains for i in chain), default=-1)
        chains.append([*common, *range(new, new + length - len(common))])
    return chains


def _instances(family: Family, pick: Pick, rows: int) -> Any:
    size = pick(range(1, 3 if family.tiers else 5))  # who returns, comes to the same rank
    roles = [pick(family.roles) for _ in range(size)]
    if "prefill" in family.roles and pick(range(4)):  # else some may lack one side
        roles = ["prefill", "decode", *roles[2:]]
    return instances(
        [pick(range(rows)) for _ in roles],
        role=[codes.ROLE[role] for role in roles],
        ranks=[pick(range(1, family.ranks + 1)) for _ in roles],
    )


def _changes(family: Family, pick: Pick, requests: Requests, machines: int) -> Any:
    """Failures, most of which end, and new roles."""
    rows: list[tuple[float, int, int, int]] = []
    arrivals = requests.arrival_s.tolist()

    def soon() -> float:
        """After a request arrived: later on nothing may be left to do."""
        return float(pick(arrivals) + pick([1, 3, 8, 20, 60]) * TICK)

    for _ in range(pick(range(1, 5)) if family.faults else 0):
        at, machine = soon(), pick(range(machines))
        rows.append((at, codes.FAULT, machine, 0))
        if pick(range(4)):
            rows.append((at + _ticks(pick, 60), codes.RECOVERY, machine, 0))
    for _ in range(pick(range(1, 5)) if family.switches else 0):
        role = pick(sorted(codes.ROLE.values()))
        rows.append((soon(), codes.ROLE_SWITCH, pick(range(machines)), role))
    return timers(rows)


def _pool(family: Family, pick: Pick, table: int) -> Any:
    batching = pick(family.batching)
    batch = pick(range(1, family.batch + 1))
    block = pick([1, 2, UNIT] if family.prefixes else [1, 2, 4, 16])
    least_room, most_room = family.room
    room = pick(range(least_room, most_room + 1))
    least = batch if batching == "chunked" else 1
    caches = [codes.BY_POOL] if family.pooled else [codes.BY_RANK]
    if not (family.pooled or family.tiers):
        caches = [codes.NO_PREFIXES, codes.BY_RANK, codes.BY_RANK]
    return pools(
        1,
        table=table,
        batching=codes.BATCHING[batching],
        order=pick(sorted(codes.ORDER.values())),
        reserve=codes.RESERVE[pick(family.reserve)],
        preemption=codes.PREEMPTION[pick(family.preemption)],
        block=block,
        kv_blocks=max(1, room // block),
        max_batch=batch,
        max_tokens=pick(range(least, family.tokens + 1)),
        prefix_cache=pick(caches) if family.prefixes else 0,
        max_queue=pick([-1, -1, -1, 0, 1, 3]),
        host_bytes_per_s=pick([np.inf, 512.0, 128.0]),
        kv_bytes_per_token=pick([0.0, 1.0, 4.0]),
    )


def _tiers(family: Family, pick: Pick, rows: int) -> Any:
    """Memory below the ranks' own; there is a store where conversations need it."""
    if not family.tiers:
        return tiers(rows)
    room = [pick([0, 2, 5, 100, 100]) for _ in range(3 * rows)]
    room[2::3] = [pick([3, 100] if "shared" in family.next_turn else [0, 3, 100])] * rows
    return tiers(
        rows,
        room=room,
        latency_s=[_ticks(pick, 24 if family.far else 1) for _ in room],
        # The slowest take about as long as computing a block does.
        block_s=[pick([0.0, TICK / 4, TICK / 2, 8 * TICK]) for _ in room],
    )


def _links(family: Family, pick: Pick, rows: int) -> Any:
    """Two sorts of links, between any two pools one of them."""
    sorts = [_link(family, pick), _link(family, pick)]
    return np.concatenate([pick(sorts) for _ in range(rows**2)]).reshape(rows, rows)


def _link(family: Family, pick: Pick) -> Any:
    return links(
        1,
        latency_s=_ticks(pick, 3),
        bytes_per_s=pick(family.rates),
        bytes_per_token=pick([1.0, 2.0]),
        descriptors=pick(range(3)),
        descriptors_per_token=pick([0.0, 0.5]),
        descriptor_s=pick([0.0, TICK / 4]),
        dequant_bytes_per_s=pick([np.inf, np.inf, 256.0]),
        layers=pick([1, 2, 8]),
        overlap=codes.OVERLAP[pick(family.overlap)],
        contention=pick(sorted(codes.CONTENTION.values())),
    )


def _options(family: Family, pick: Pick) -> Options:
    routing = [
        codes.ROUND_ROBIN,
        codes.RANDOM,
        codes.LEAST_REQUESTS,
        codes.LEAST_TOKENS,
        codes.LEAST_KV,
        *[codes.LONGEST_PREFIX] * (3 * family.prefixes),
    ]
    bounded = [family.bounds and pick([False, True]) for _ in range(2)]
    return Options(
        routing=pick(routing),
        decode_routing=pick(routing),
        decode_at=codes.CHOSEN_AT[pick(family.decode_at)],
        keep_mixed=pick(family.keep_mixed),
        retry_s=pick(family.retry),
        first_token_from=pick([codes.BY_PREFILL, codes.BY_DECODE]),
        seed=pick(range(2**40)),
        max_time_s=_ticks(pick, 300) if bounded[0] else np.inf,
        max_events=pick(range(61)) if bounded[1] else 2**62,
        log_steps=True,
        energy=True,
        next_turn=codes.NEXT_TURN[pick(family.next_turn)],
        **(_looks(pick) if family.load else {}),
    )


def _looks(pick: Pick) -> dict[str, Any]:
    """At the load: how often, and what is too much of it."""
    return {
        "switch_every_s": pick([1, 3, 16]) * TICK,
        "switch_tokens": pick([0.0, 5.0, 20.0, 60.0]),
        "switch_kv": pick([0.0, 0.25, 0.5, 0.875]),
    }


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
