"""Whether what the engine is given can be run at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from chipsim.cluster.engine import codes
from chipsim.cluster.engine.inputs import TIER
from chipsim.cluster.engine.layout import node_count
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.cluster.engine.inputs import Options, Records, Requests
    from chipsim.cluster.engine.steps import Steps

LARGEST = 2**31 - 1
"""Tokens and requests are counted in 32 bits."""
LARGEST_CACHES = 2**28
"""Blocks of chains in all prefix caches together: 12 GiB, if all were filled."""
LARGEST_HEAPS = 2**27
"""Entries of the heaps of decodes, all ranks together: 1 GiB."""


def check(
    requests: Requests,
    steps: Steps,
    pools: Records,
    instances: Records,
    links: Records,
    tiers: Records,
    timers: Records,
    options: Options,
    joules: Steps | None,
) -> None:
    """Raise what `run` raises."""
    _check_requests(requests)
    _check_steps("steps", steps)
    if options.energy and joules is None:
        raise ConfigError("options", "energy", True, "joules tables are given")
    if joules is not None:
        _check_steps("joules", joules)
        same = joules.limit.tolist() == steps.limit.tolist()
        _need("joules", "limit", joules.limit.tolist(), same, "the limits of steps")
    _check_pools(pools, len(steps.prefill))
    _check_instances(instances, len(pools))
    _need("links", "shape", links, links.shape == (len(pools),) * 2, "one row per two pools")
    for name in ("latency_s", "descriptors", "descriptors_per_token", "descriptor_s",
                 "bytes_per_token"):  # fmt: skip
        _each("links", links, name, (links[name] >= 0) & (links[name] < np.inf), "0 or more")
    for name in ("bytes_per_s", "dequant_bytes_per_s", "layers"):
        _each("links", links, name, links[name] > 0, "above 0")
    known = timers["time_s"]
    _need("timers", "time_s", known, bool((np.diff(known) >= 0).all()), "in order of time")
    inside = (timers["instance"] >= 0) & (timers["instance"] < len(instances))
    _each("timers", timers, "instance", inside, "an instance")
    for name in ("switch_every_s", "switch_tokens", "switch_kv", "retry_s"):
        value = getattr(options, name)
        _need("options", name, value, value >= 0, "0 or more")
    _check_splitwise(pools, instances, timers, options)
    if pools["prefix_cache"].any():
        _check_prefixes(requests, pools, instances, tiers)
    stored = bool((tiers["room"][:, -1] > 0).any())
    fine = stored or options.next_turn != codes.WRITE_TO_STORE
    _need("options", "next_turn", "shared", fine, "recompute or write_back without a store")
    batch = int(min(pools["max_batch"].max(), max(1, len(requests.prompt))))
    ranks = int(instances["ranks"].sum())
    _need("pools", "max_batch", batch, batch * ranks <= LARGEST_HEAPS,
          f"at most {LARGEST_HEAPS // ranks} for {ranks} ranks")  # fmt: skip


def _check_requests(given: Requests) -> None:
    n = len(given.arrival_s)
    _need("requests", "arrival_s", n, 0 < n < LARGEST, "1 to 2**31 - 2 requests")
    for name in ("prompt", "output", "priority", "parent", "think_s"):
        values = getattr(given, name)
        _need("requests", name, values.shape, values.shape == (n,), f"{n} values")
    for name in ("prompt", "output"):
        values = getattr(given, name)
        _rows("requests", name, values, (values >= 1) & (values < LARGEST // 4), "1 to 2**29")
    numbers, parent = np.arange(n), given.parent
    _rows("requests", "parent", parent, (parent >= -1) & (parent < numbers), "an earlier one")
    arrival = np.where(parent < 0, given.arrival_s, 0.0)
    _rows("requests", "arrival_s", given.arrival_s, np.isfinite(arrival), "a time")
    roots = given.arrival_s[parent < 0]
    _rows("requests", "arrival_s", roots[1:], np.diff(roots) >= 0, "in order of time")
    think = given.think_s
    _rows("requests", "think_s", think, (think >= 0) & np.isfinite(think), "0 or more")


def _check_steps(name: str, steps: Steps) -> None:
    for field in ("prefill", "mixed", "decode", "head", "prompts", "contexts"):
        values = getattr(steps, field)
        if np.isfinite(values).all():  # as most, and they are large
            continue
        flat = values.reshape(len(values), -1)
        never = np.isposinf(flat).all(axis=1, keepdims=True)  # steps of a kind that it lacks
        _rows(name, field, values.ravel(), (np.isfinite(flat) | never).ravel(), "finite")
    for field in ("prefill", "mixed", "decode", "head"):
        values = getattr(steps, field).ravel()
        _rows(name, field, values, values >= 0, "0 or more")


def _check_pools(pools: Records, tables: int) -> None:
    _need("pools", "", 0, len(pools) > 0, "at least one pool")
    for name in ("block", "kv_blocks", "max_batch", "max_tokens"):
        _each("pools", pools, name, pools[name] >= 1, "1 or more")
    _each("pools", pools, "kv_blocks", pools["kv_blocks"] <= 2**45, "at most 2**45")
    _each("pools", pools, "block", pools["block"] <= 2**16, "at most 65536")
    _each("pools", pools, "table", (pools["table"] >= 0) & (pools["table"] < tables),
          f"a table below {tables}")  # fmt: skip
    small = (pools["batching"] == codes.CHUNKED) & (pools["max_tokens"] < pools["max_batch"])
    _each("pools", pools, "max_tokens", ~small, "max_batch or more with chunked prefill")


def _check_splitwise(
    pools: Records, instances: Records, timers: Records, options: Options
) -> None:
    """Splitwise's batching and its routing know each other, and nothing else."""
    theirs = pools["batching"] == codes.SPLITWISE
    routed = options.routing in (codes.TOKEN_JSQ, codes.MIXED_POOL)
    allowed = "splitwise with the routing token_jsq or mixed_pool, and only with it"
    _each("pools", pools, "batching", theirs == routed, allowed)
    if not routed:
        return
    at = options.decode_at
    _need("options", "decode_at", at, at == codes.AT_ARRIVAL, "arrival, with splitwise")
    _need("timers", "kind", len(timers), len(timers) == 0, "no timers with splitwise")
    every = options.switch_every_s
    _need("options", "switch_every_s", every, every == 0, "0 with splitwise")
    _each("pools", pools, "block", pools["block"] == 1, "1 with splitwise")
    prompt = pools["reserve"] == codes.RESERVE_PROMPT
    _each("pools", pools, "reserve", prompt, "prompt with splitwise")
    _each("instances", instances, "ranks", instances["ranks"] == 1, "1 with splitwise")


def _check_prefixes(
    requests: Requests, pools: Records, instances: Records, tiers: Records
) -> None:
    """Chains are trees of blocks that pools can keep."""
    n, unit = len(requests.prompt), requests.prefix_block
    theirs = (pools["batching"] == codes.SPLITWISE) & (pools["prefix_cache"] > 0)
    _each("pools", pools, "prefix_cache", ~theirs, "none with splitwise")
    _need("requests", "prefix_block", unit, unit >= 1, "1 or more")
    whole = (pools["prefix_cache"] == 0) | (unit % pools["block"] == 0)
    _each("pools", pools, "block", whole, f"a divisor of prefix_block, {unit}")
    start, ids = requests.block_start, requests.blocks
    fine = len(start) == n + 1 and start[0] == 0 and start[-1] == len(ids)
    fine = fine and bool((np.diff(start) >= 0).all())
    _need("requests", "block_start", len(start), fine, f"{n + 1} places from 0 to all blocks")
    _rows("requests", "blocks", ids, ids >= 0, "0 or more")
    if len(ids):
        before = np.append(-1, ids[:-1])
        before[start[:-1][np.diff(start) > 0]] = -1
        first = np.unique(ids, return_index=True, return_inverse=True)
        same = before == before[first[1]][first[2]]
        _rows("requests", "blocks", ids, same, "an id that always has the same one before it")
    _need("tiers", "shape", tiers.shape, tiers.shape == (len(pools), 3), "three for each pool")
    for name in TIER.names or ():
        fine = (tiers[name] >= 0) & (tiers[name] < np.inf)
        _each("tiers", tiers, name, fine, "0 or more")
    store = tiers["room"][:, -1]
    _need("tiers", "room", store.tolist(), len(set(store)) == 1, "one store for all pools")
    ranks = np.repeat(instances["pool"], instances["ranks"])
    held = node_count(requests, pools, ranks, tiers)
    _need("pools", "prefix_cache", held, held <= LARGEST_CACHES,
          f"at most {LARGEST_CACHES} blocks of chains that all caches may hold")  # fmt: skip


def _check_instances(instances: Records, pools: int) -> None:
    _need("instances", "", 0, len(instances) > 0, "at least one instance")
    inside = (instances["pool"] >= 0) & (instances["pool"] < pools)
    _each("instances", instances, "pool", inside, f"a pool below {pools}")
    _each("instances", instances, "ranks", instances["ranks"] >= 1, "1 or more")
    known = np.isin(instances["role"], list(codes.ROLE.values()))
    _each("instances", instances, "role", known, "prefill, decode or mixed")


def _each(where: str, rows: Records, field: str, fine: Any, allowed: str) -> None:
    _rows(where, field, rows[field].ravel(), np.asarray(fine).ravel(), allowed)


def _rows(where: str, field: str, values: Any, fine: Any, allowed: str) -> None:
    wrong = np.flatnonzero(~fine)
    if len(wrong):
        at = int(wrong[0])
        raise ConfigError(where, f"{field}[{at}]", values[at].item(), allowed)


def _need(where: str, field: str, value: object, fine: bool, allowed: str) -> None:
    if not fine:
        raise ConfigError(where, field, value, allowed)
