"""What the engine is given: requests, step tables, pools, instances, links, timers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from chipsim.cluster.engine import codes
from chipsim.cluster.engine.steps import Steps

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Records = NDArray[np.void]


class Requests(NamedTuple):
    """Requests, one entry each, in order of arrival; a turn's parent stands before it.

    Attributes
    ----------
    arrival_s : (n,) float64
        Non-decreasing over the requests without parent; not read for one with a parent.
    prompt, output : (n,) int64
        Tokens, at least 1. The prompt includes the prefix that a cache may hold.
    priority : (n,) int64
        Class; the lowest is served first under ``order: priority``.
    parent : (n,) int64
        Request whose completion releases this one, or -1.
    think_s : (n,) float64
        Seconds from that completion to this arrival.
    block_start : (n + 1,) int64
        Where each request's block ids start in ``blocks`` (all 0: no ids).
    blocks : (m,) int64
        Chained ids of blocks of ``prefix_block`` prompt tokens: equal ids mean that
        everything up to and including the block is equal. They may go on into the output
        (then the decode side can cache them). At least 0.
    prefix_block : int
        Tokens of one block id.
    """

    arrival_s: Floats
    prompt: Ints
    output: Ints
    priority: Ints
    parent: Ints
    think_s: Floats
    block_start: Ints
    blocks: Ints
    prefix_block: int

    @classmethod
    def of(
        cls,
        arrival_s: ArrayLike,
        prompt: ArrayLike,
        output: ArrayLike,
        *,
        priority: ArrayLike | None = None,
        parent: ArrayLike | None = None,
        think_s: ArrayLike | None = None,
        block_start: ArrayLike | None = None,
        blocks: ArrayLike | None = None,
        prefix_block: int = 512,
    ) -> Requests:
        """From lists or arrays; what is left out is zero, or none."""
        arrival = np.array(arrival_s, dtype=np.float64)
        n = len(arrival)

        def whole(values: ArrayLike | None, default: int, size: int) -> Ints:
            if values is None:
                return np.full(size, default, dtype=np.int64)
            return np.array(values, dtype=np.int64)

        think = np.zeros(n) if think_s is None else np.array(think_s, dtype=np.float64)
        return cls(
            arrival,
            whole(prompt, 1, n),
            whole(output, 1, n),
            whole(priority, 0, n),
            whole(parent, -1, n),
            think,
            whole(block_start, 0, n + 1),
            whole(blocks, 0, 0),
            prefix_block,
        )


def flat_steps(
    prefill_s: float | ArrayLike,
    decode_s: float | ArrayLike,
    tokens: int,
    batch: int,
    *,
    mixed_s: float | ArrayLike | None = None,
    context_s: float = 0.0,
    limited_s: float = 0.0,
    limit: int = 0,
) -> Steps:
    """One table of simple form, for tests and for what has no chip behind it.

    Parameters
    ----------
    prefill_s, mixed_s : float or (tokens + 1,) array
        Seconds by tokens (``mixed_s`` as ``prefill_s`` unless given).
    decode_s : float or (batch + 1,) array
        Seconds by decodes.
    context_s, limited_s : float
        Seconds per token of Σc, and of Σmin(c, limit), in a decode.
    """
    prefill = np.broadcast_to(np.asarray(prefill_s, dtype=np.float64), tokens + 1)
    mixed = prefill if mixed_s is None else np.broadcast_to(mixed_s, tokens + 1)
    decode = np.broadcast_to(np.asarray(decode_s, dtype=np.float64), batch + 1)
    n, axis = np.arange(batch + 1)[:, None], np.array([0.0, 1.0])
    return Steps(
        prefill=np.array(prefill[None]),
        mixed=np.array(mixed[None], dtype=np.float64),
        decode=np.array(decode[None]),
        head=np.zeros((1, 2)),
        batches=np.array([[1.0, 2.0]]),
        queries=np.array([[1.0, 2.0]]),
        prefixes=np.array([[0.0, 1.0]]),
        prompts=np.zeros((1, 2, 2, 2)),
        contexts=np.stack([context_s * n * axis, limited_s * n * axis])[None],
        limit=np.array([limit]),
    )


POOL = np.dtype(
    [
        ("table", "i8"),  # number of its step table
        ("batching", "i8"),  # codes.BATCHING
        ("order", "i8"),  # codes.ORDER
        ("reserve", "i8"),  # codes.RESERVE
        ("preemption", "i8"),  # codes.PREEMPTION
        ("block", "i8"),  # tokens of a block of KV
        ("kv_blocks", "i8"),  # blocks of one rank
        ("max_batch", "i8"),  # sequences running on one rank
        ("max_tokens", "i8"),  # budget of one rank's step
        ("max_queue", "i8"),  # waiting requests of one rank; -1: no limit
        ("host_bytes_per_s", "f8"),  # of one rank, for swapping
        ("kv_bytes_per_token", "f8"),  # of one rank, for swapping
        ("max_preemptions", "i8"),  # Splitwise only
        ("prefix_cache", "i8"),  # codes.PREFIX_CACHE
    ],
    align=True,
)
"""A pool: what its instances have in common."""

TIER = np.dtype(
    [
        ("room", "i8"),  # blocks of chains: of one rank, of all in the last level; 0: none
        ("latency_s", "f8"),
        ("block_s", "f8"),  # to read such a block, over a rank's own link
    ],
    align=True,
)
"""Memory below that of a pool's ranks: a (pools, 3) array; the last level all ranks share."""

INSTANCE = np.dtype([("pool", "i8"), ("role", "i8"), ("ranks", "i8")], align=True)
"""An instance: number of its pool, `codes.ROLE`, data-parallel ranks."""

LINK = np.dtype(
    [
        ("latency_s", "f8"),
        ("bytes_per_s", "f8"),
        ("bytes_per_token", "f8"),  # as sent
        ("descriptors", "f8"),  # of a transfer
        ("descriptors_per_token", "f8"),
        ("descriptor_s", "f8"),
        ("dequant_bytes_per_s", "f8"),  # infinite: none
        ("layers", "i8"),
        ("overlap", "i8"),  # codes.OVERLAP
        ("contention", "i8"),  # codes.CONTENTION
    ],
    align=True,
)
"""The way from one pool to another: a (pools, pools) array of these."""

TIMER = np.dtype(
    [("time_s", "f8"), ("kind", "i8"), ("instance", "i8"), ("value", "i8")], align=True
)
"""Something that happens at a time: `codes.TIMER`; ``value`` is the new role of a switch."""


class Options(NamedTuple):
    """What belongs to the whole run.

    Attributes
    ----------
    routing, decode_routing : int
        `codes.ROUTING`, for arrivals and for hand-offs.
    decode_at : int
        `codes.CHOSEN_AT`: when the decode instance is chosen.
    keep_mixed : bool
        A mixed instance that prefilled goes on with the request.
    retry_s : float
        Seconds until a hand-off that found no room asks again; 0: it waits in a queue.
    first_token_from : int
        `codes.FIRST_TOKEN_FROM`.
    seed : int
        Of random routing.
    max_time_s, max_events : float, int
        Nothing later than this is processed; no instant begins after this many events.
    log_gaps, log_steps, energy : bool
        Keep gaps between tokens; a row per step; integrate joules.
    prompt_limit : int
        Splitwise's mixed_pool: pending tokens beyond which a prompt machine refuses.
    next_turn : int
        `codes.NEXT_TURN`: what becomes of output that another rank decoded.
    switch_every_s : float
        Seconds between looks at the load, at each of which an instance may change its
        role; 0: none.
    switch_tokens, switch_kv : float
        Pending tokens of a prefill instance, and share of the decode side's KV, beyond
        which that side is short.
    """

    routing: int = codes.LEAST_TOKENS
    decode_routing: int = codes.LEAST_KV
    decode_at: int = codes.AT_PREFILL_END
    keep_mixed: bool = True
    retry_s: float = 0.0
    first_token_from: int = codes.BY_PREFILL
    seed: int = 0
    max_time_s: float = np.inf
    max_events: int = 2**62
    log_gaps: bool = True
    log_steps: bool = False
    energy: bool = False
    prompt_limit: int = 8192
    next_turn: int = codes.RECOMPUTE_OUTPUT
    switch_every_s: float = 0.0
    switch_tokens: float = np.inf
    switch_kv: float = np.inf


def _filled(dtype: np.dtype[Any], size: int, defaults: dict[str, Any]) -> Records:
    rows = np.zeros(size, dtype)
    for name, value in defaults.items():
        rows[name] = value
    return rows


def pools(size: int = 1, **fields: ArrayLike) -> Records:
    """`POOL` rows; what is not given has a plain default (see the source)."""
    defaults: dict[str, Any] = {
        "block": 16, "kv_blocks": 2**40, "max_batch": 256, "max_tokens": 2048,
        "max_queue": -1, "host_bytes_per_s": np.inf, "max_preemptions": 4,
    }  # fmt: skip
    return _filled(POOL, size, defaults | fields)


def instances(pool: ArrayLike, **fields: ArrayLike) -> Records:
    """`INSTANCE` rows: mixed, of one rank, unless said otherwise."""
    of = np.atleast_1d(np.asarray(pool, dtype=np.int64))
    return _filled(INSTANCE, len(of), {"role": codes.MIXED, "ranks": 1} | fields | {"pool": of})


def links(size: int = 1, **fields: ArrayLike) -> Records:
    """`LINK` rows of ``size`` pools to each other: infinitely fast unless said otherwise."""
    defaults: dict[str, Any] = {
        "bytes_per_s": np.inf, "dequant_bytes_per_s": np.inf, "layers": 1,
    }  # fmt: skip
    return _filled(LINK, size * size, defaults | fields).reshape(size, size)


def tiers(size: int = 1, **fields: ArrayLike) -> Records:
    """`TIER` rows of ``size`` pools: none unless given, three of each pool."""
    return _filled(TIER, 3 * size, fields).reshape(size, 3)


def timers(rows: list[tuple[float, int, int, int]] | None = None) -> Records:
    """`TIMER` rows in order of time; those of one time stay as given."""
    found = np.array(rows or [], dtype=TIMER)
    return found[np.argsort(found["time_s"], kind="stable")]
