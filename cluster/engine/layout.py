"""Arrays of a run, as they stand before the first event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from chipsim.cluster.engine import codes
from chipsim.cluster.engine.heaps import tree_build
from chipsim.cluster.engine.routing import list_able
from chipsim.cluster.engine.state import (
    CACHE,
    INSTANCE_STATE,
    NODE,
    RANK,
    REQUEST,
    SIM,
    STEP,
    TIER_STATE,
    Packed,
    State,
    in_kernel,
)
from chipsim.cluster.engine.touch import rescore
from chipsim.kernels.jit import kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from chipsim.cluster.engine.inputs import Floats, Ints, Options, Records, Requests
    from chipsim.cluster.engine.steps import Steps

LOG = 1 << 20
"""Rows of a log that are kept before they are handed over."""
AHEAD = 32
"""Decode steps that an instance plans at once; between two changes there are about five."""
LISTED, CROWD = 4096, 64
"""Tasks of Splitwise's lists at first; arrivals of one instant that find room."""


def lay_out(
    requests: Requests,
    steps: Steps,
    pools: Records,
    instances: Records,
    links: Records,
    tiers: Records,
    timers: Records,
    options: Options,
    joules: Steps | None,
) -> State:
    """The state before anything happened."""
    records, order = _requests(requests)
    ranks = _ranks(pools, instances, steps)
    batch = _batch(requests, pools)
    limited = int(steps.limit.max()) > 0
    growing = bool((pools["reserve"] == codes.RESERVE_PROMPT).any())
    values, tree = _trees(len(instances))
    sim = _sim(options, pools, instances, timers)
    keeps = pools["prefix_cache"][ranks["pool"]] > 0  # of ranks: a pool may have none
    sim["caching"] = bool(keeps.any())
    shared = bool((pools["prefix_cache"] == codes.BY_POOL).any())
    sim["loads"] = shared or bool(tiers["room"].any())
    sim["unit"], sim["ids"] = requests.prefix_block, id_count(requests)
    state = State(
        requests=records,
        ranks=ranks,
        instances=_instances(pools, instances),
        pools=pools,
        links=links,
        sim=sim,
        steps=steps,
        joules=steps if joules is None else joules,
        values=values,
        tree=tree,
        finish=np.zeros((len(ranks), batch), np.int64),
        saturate=np.zeros((len(ranks), batch if limited else 1), np.int64),
        edges=np.zeros((len(ranks), int(pools["block"].max()) if growing else 1), np.int64),
        touched=np.zeros(len(instances), np.int64),
        called=np.zeros(len(instances), np.int64),
        ends=np.zeros((len(instances), AHEAD)),
        able=np.zeros((2, len(instances)), np.int64),
        **_lists(len(ranks), len(records), pools),
        order=order,
        **_caches(requests, ranks, pools, tiers, keeps),
        timers=timers,
        gaps=np.zeros(0),
        gap_counts=np.zeros(0, np.int32),
        log=np.zeros(0, STEP),
    )
    rows = min(LOG, int(requests.output.sum())) if options.log_gaps else 0
    state = state._replace(
        gaps=np.empty(rows + gap_room(state)),
        gap_counts=np.empty(rows + gap_room(state), np.int32),
        log=np.empty((LOG if options.log_steps else 0) + len(instances), STEP),
    )
    prepare(Packed(state).table)
    return state


def gap_room(state: State) -> int:
    """The most rows of gaps that one instant can write: each sequence once, and each rank."""
    ranks, batch = state.finish.shape
    return ranks * (1 + AHEAD) + 2 * min(ranks * batch, len(state.requests))


@kernel
def prepare(table: Ints) -> None:
    """Build the trees."""
    S = in_kernel(table)
    list_able(S)
    for i in range(S.instances.shape[0]):
        rescore(S, i)
    for row in range(S.tree.shape[0]):
        tree_build(S.tree[row], S.values[row])


def _requests(given: Requests) -> tuple[Records, Ints]:
    row = np.zeros((), REQUEST)
    for name in REQUEST.names or ():
        if name.endswith("_s"):
            row[name] = np.nan
    for name in ("child", "next", "prev", "below", "above", "chain", "rank", "to",
                 "first_turn", "next_turn", "prefill_instance", "prefill_rank",
                 "decode_instance", "decode_rank"):  # fmt: skip
        row[name] = -1
    # As bytes: field by field it would be most of a short run's time.
    records = np.empty(len(given.arrival_s), REQUEST)
    records.view(np.uint8).reshape(-1, REQUEST.itemsize)[:] = np.frombuffer(
        row.tobytes(), np.uint8
    )
    for name in ("prompt", "output", "priority", "parent", "think_s"):
        records[name] = getattr(given, name)
    records["arrival_s"] = np.where(given.parent < 0, given.arrival_s, np.nan)
    records["length"] = given.prompt
    turns = np.flatnonzero(given.parent >= 0)
    for turn in turns[::-1]:
        parent = given.parent[turn]
        records["next_turn"][turn] = records["first_turn"][parent]
        records["first_turn"][parent] = turn
    return records, np.flatnonzero(given.parent < 0)


def _ranks(pools: Records, instances: Records, steps: Steps) -> Records:
    owner = np.repeat(np.arange(len(instances)), instances["ranks"])
    ranks = np.zeros(len(owner), RANK)
    ranks["instance"], ranks["pool"] = owner, instances["pool"][owner]
    ranks["capacity"] = pools["kv_blocks"][ranks["pool"]]
    ranks["limit"] = steps.limit[pools["table"][ranks["pool"]]]
    for name in ("queue", "ready", "loaded", "bottom", "top", "fresh", "first", "last",
                 "prompts", "last_prompt", "blocked", "last_blocked"):  # fmt: skip
        ranks[name] = -1
    return ranks


def _instances(pools: Records, instances: Records) -> Records:  # noqa: ARG001
    records = np.zeros(len(instances), INSTANCE_STATE)
    for name in ("pool", "role", "ranks"):
        records[name] = instances[name]
    records["first"] = np.cumsum(instances["ranks"]) - instances["ranks"]
    records["up"], records["handoffs"], records["ended_s"] = 1, -1, np.nan
    records["place"] = np.arange(len(instances))
    return records


def _sim(options: Options, pools: Records, instances: Records, timers: Records) -> Records:
    sim = np.zeros(1, SIM)
    for name in options._fields:
        if name in (SIM.names or ()):
            sim[name] = getattr(options, name)
    for name in ("transfers", "retrying", "thinking", "handoffs", "outside",
                 "last_prefill", "last_decode"):  # fmt: skip
        sim[name] = -1
    tokens = pools["kv_blocks"] * pools["block"]
    sim["places"] = len(instances)
    sim["smallest"] = tokens[instances["pool"]].min()
    sim["switches"] = bool((timers["kind"] == codes.ROLE_SWITCH).any())
    sim["disaggregated"] = (
        bool((instances["role"] != codes.MIXED).any())
        or bool(sim["switches"])
        or not options.keep_mixed
    )
    sim["next_check_s"] = options.switch_every_s if options.switch_every_s > 0 else np.inf
    # A log of steps is written in order of time, and whoever asks in vain waits for steps.
    if not options.log_steps and options.retry_s == 0.0:
        sim["ahead"], sim["unseen"] = AHEAD, AHEAD * len(instances)
    sim["decode_final"] = bool((pools["reserve"] == codes.RESERVE_FINAL).all())
    return sim


def _lists(ranks: int, requests: int, pools: Records) -> dict[str, Any]:
    """Splitwise's lists, if a pool batches by its rules."""
    batch = int(pools["max_batch"].max())
    pending = min(2 * requests, LISTED) + list_room(pools)
    if not (pools["batching"] == codes.SPLITWISE).any():
        ranks, batch, pending = 1, 1, list_room(pools)
    return {
        "pending": np.zeros((ranks, pending), np.int64),
        "batch": np.zeros((ranks, batch), np.int64),
        "chosen": np.zeros(batch, np.int64),
    }


def id_count(requests: Requests) -> int:
    """A number above all ids of blocks."""
    return int(requests.blocks.max()) + 1 if len(requests.blocks) else 1


def node_count(requests: Requests, pools: Records, pool_of: Ints, tiers: Records) -> int:
    """The most blocks of chains that all prefix caches can hold at once.

    ``pool_of``: of each rank.
    """
    ids, span = id_count(requests), np.maximum(1, requests.prefix_block // pools["block"])
    own = np.minimum(pools["kv_blocks"] // span, ids) + np.minimum(
        tiers["room"][:, :-1], ids
    ).sum(axis=1)
    keeps = pools["prefix_cache"] > 0
    return int(np.where(keeps, own, 0)[pool_of].sum()) + min(ids, int(tiers["room"][0, -1]))


def _caches(
    requests: Requests,
    ranks: Records,
    pools: Records,
    tiers: Records,
    keeps: npt.NDArray[np.bool_],
) -> dict[str, Any]:
    """Prefix caches, empty; where no rank keeps one they take no memory."""
    n, caching = len(ranks), bool(keeps.any())
    count = node_count(requests, pools, ranks["pool"], tiers) if caching else 0
    of = tiers[ranks["pool"]] if caching else np.zeros((n, 3), tiers.dtype)
    there = of["room"] > 0
    there[:, :-1] &= keeps[:, None]
    rows = np.zeros((n, 3), TIER_STATE)
    numbers = np.arange(n)[:, None] + n * np.arange(1, 4)
    numbers[:, -1] = 3 * n
    rows["cache"] = np.where(there, numbers, -1)
    rows["latency_s"], rows["block_s"] = of["latency_s"], of["block_s"]
    caches = np.zeros(3 * n + 1, CACHE)
    below = np.full(n, -1)
    for level in (2, 1, 0):
        own = rows["cache"][:, level]
        caches["room"][own[own >= 0]] = of["room"][own >= 0, level]
        if level < 2:
            caches["below"][own[own >= 0]] = below[own >= 0]
        below = np.where(own >= 0, own, below)
    caches["below"][:n], caches["below"][3 * n] = below, -1
    return {
        "chain_start": requests.block_start if caching else np.zeros(1, np.int64),
        "chains": requests.blocks if caching else np.zeros(1, np.int64),
        "caches": caches,
        "nodes": np.zeros(count + 1, NODE),
        "buckets": np.zeros(1 << count.bit_length(), np.int64),
        "tiers": rows,
    }


def list_room(pools: Records) -> int:
    """The most tasks that one instant can add to a machine's list, but for a crowd."""
    return 2 * int(pools["max_batch"].max()) + CROWD


def _batch(requests: Requests, pools: Records) -> int:
    """The most sequences that decode on one rank."""
    most = np.minimum(pools["max_batch"], pools["kv_blocks"]).max()
    return int(min(most, max(1, len(requests.prompt))))


def _trees(instances: int) -> tuple[Floats, Ints]:
    leaves = max(2, 1 << (instances - 1).bit_length())
    return np.full((4, leaves), np.inf), np.zeros((4, 2 * leaves), np.int64)
