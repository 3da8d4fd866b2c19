"""Everything that a run knows at one instant: records of requests, ranks and instances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from chipsim.cluster.engine.inputs import LINK, POOL, TIMER
from chipsim.cluster.engine.view import ViewType, array_type, cells_type, table_of, view_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from chipsim.cluster.engine.steps import Steps

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Records = NDArray[np.void]

Record: TypeAlias = Any
"""One row of a structured array, whose fields a kernel reads and writes as attributes."""

REQUEST_OUT = [
    ("arrival_s", "f8"),  # of a turn: its parent's completion and its think time
    ("prompt", "i8"),
    ("output", "i8"),
    ("status", "i8"),  # codes.STATUS
    ("reason", "i8"),  # codes.REASON
    ("emitted", "i8"),  # output tokens so far
    ("cached", "i8"),  # prompt tokens found in its rank's prefix cache
    ("loaded", "i8"),  # and in memory below that
    ("preemptions", "i8"),
    ("retries", "i8"),
    ("prefill_instance", "i8"),  # the last one, -1: none
    ("prefill_rank", "i8"),  # counted over all instances
    ("decode_instance", "i8"),
    ("decode_rank", "i8"),
    ("queue_start_s", "f8"),  # into the queue where it was last prefilled
    ("prefill_start_s", "f8"),  # start of the first step that computed some of it
    ("prefill_end_s", "f8"),
    ("first_token_s", "f8"),
    ("transfer_start_s", "f8"),
    ("transfer_end_s", "f8"),
    ("decode_start_s", "f8"),  # start of its first decode step
    ("finish_s", "f8"),
]
"""What is told about a request; times are NaN until they come to pass."""

REQUEST = np.dtype(
    [
        *REQUEST_OUT,
        ("k0", "f8"),  # keys and links of the queue that it waits in
        ("k1", "f8"),
        ("child", "i8"),
        ("next", "i8"),
        ("prev", "i8"),
        ("below", "i8"),  # neighbours in the running list of its rank
        ("above", "i8"),
        ("chain", "i8"),  # next in a step's prompts, or among those that just joined
        ("first_turn", "i8"),  # turns that wait on it
        ("next_turn", "i8"),
        ("parent", "i8"),
        ("priority", "i8"),
        ("phase", "i8"),  # codes.WAITING ...
        ("rank", "i8"),  # where its KV is, or its place in a queue
        ("to", "i8"),  # rank that the KV is on its way to
        ("length", "i8"),  # tokens to prefill: prompt, and what was generated before
        ("done", "i8"),  # of them computed, or found
        ("chunk", "i8"),  # computed by the running step
        ("blocks", "i8"),  # taken when admitted, at `rank` and at `to`
        ("to_blocks", "i8"),
        ("promised", "i8"),  # blocks that `to` will give
        ("shared", "i8"),  # blocks of its chain that it holds in the cache of `rank`
        ("to_shared", "i8"),  # and of `to`
        ("base", "i8"),  # tokens that `to` had
        ("loads", "i8"),  # blocks of its chain that are being read or written
        ("source", "i8"),  # cache that they are read from
        ("stays", "i8"),  # it will be decoded on the rank that prefills it
        ("sent", "i8"),  # tokens on their way, or there
        ("draws", "i8"),  # random numbers used
        ("context", "i8"),  # of its next decode when it joined
        ("joined", "i8"),  # decode steps of the rank when it joined
        ("admitted_s", "f8"),
        ("last_s", "f8"),  # its last token
        ("step_start_s", "f8"),  # of the step that ended its prefill
        ("think_s", "f8"),
        ("passed_prompt", "i8"),  # Splitwise: batches formed without it
        ("passed_decode", "i8"),
        ("chosen", "i8"),
    ],
    align=True,
)

RANK = np.dtype(
    [
        ("instance", "i8"),
        ("pool", "i8"),
        ("capacity", "i8"),  # blocks
        ("used", "i8"),
        ("idle", "i8"),  # blocks of the prefix cache that no request uses
        ("used_since_s", "f8"),
        ("used_seconds", "f8"),  # blocks x seconds
        ("queue", "i8"),  # waiting requests, and how many
        ("waiting", "i8"),
        ("ready", "i8"),  # requests whose KV came from elsewhere
        ("loaded", "i8"),  # prompts of which some was loaded
        ("bottom", "i8"),  # the running list, in order of admission
        ("top", "i8"),
        ("running", "i8"),
        ("decoding", "i8"),
        ("steps", "i8"),  # decode steps done
        ("context", "i8"),  # of the next decode step, summed
        ("bounded", "i8"),  # the same up to the limit
        ("growing", "i8"),  # decodes whose context is below the limit
        ("saturations", "i8"),  # entries of its heap in State.saturate
        ("fresh", "i8"),  # decodes that have not stepped since they joined
        ("fresh_on_edge", "i8"),  # of them: have the block that their step opens
        ("last_s", "f8"),  # end of the last decode step
        ("requests", "i8"),  # all that were sent here and have not left
        ("pending", "i8"),  # prompt tokens not computed, and decodes
        ("first", "i8"),  # prompts of this step, or the one that goes on
        ("last", "i8"),
        ("tokens", "i8"),  # features of this step
        ("squares", "f8"),
        ("earlier", "f8"),
        ("ending", "i8"),
        ("decodes", "i8"),
        ("limit", "i8"),  # of bounded attention, 0: none
        ("iterations", "i8"),  # decode steps in this one
        ("cut", "i8"),
        ("listed", "i8"),  # Splitwise: entries of State.pending and State.batch
        ("batched", "i8"),
        ("prompts", "i8"),  # first and last of lists: waiting prompts, preempted decodes
        ("last_prompt", "i8"),
        ("blocked", "i8"),
        ("last_blocked", "i8"),
        ("added_s", "f8"),  # swaps and loads, for the next step
        ("preempted", "i8"),  # in this formation
    ],
    align=True,
)

INSTANCE_STATE = np.dtype(
    [
        ("pool", "i8"),
        ("role", "i8"),
        ("up", "i8"),
        ("faults", "i8"),  # that it has not recovered from
        ("first", "i8"),  # rank
        ("ranks", "i8"),
        ("step", "i8"),  # codes.IDLE ...: what runs
        ("start_s", "f8"),
        ("iteration_s", "f8"),
        ("ended_s", "f8"),  # end of the last step
        ("planned", "i8"),  # steps of State.ends behind the first, and those that are over
        ("passed", "i8"),
        ("waiting", "i8"),  # requests and blocks when the step started, for the log
        ("blocks", "i8"),
        ("touched", "i8"),
        ("called", "i8"),
        ("requests", "i8"),  # sums over ranks
        ("pending", "i8"),
        ("used", "i8"),
        ("promised", "i8"),  # blocks of requests that are bound for it
        ("lent", "i8"),  # Splitwise: in the mixed pool
        ("place", "i8"),  # Splitwise: order in its pool
        ("next_rank", "i8"),
        ("handoffs", "i8"),  # queue of hand-offs to this one
        ("send_free_s", "f8"),
        ("receive_free_s", "f8"),
        ("prefill_s", "f8"),  # busy seconds
        ("decode_s", "f8"),
        ("mixed_s", "f8"),
        ("steps", "i8"),
        ("prompt_tokens", "i8"),
        ("found_tokens", "i8"),  # of prompts, in the prefix cache
        ("loaded_tokens", "i8"),  # from below it
        ("returned_tokens", "i8"),  # written for the next turn of a conversation
        ("decode_tokens", "i8"),
        ("used_seconds", "f8"),
        ("joules", "f8"),
    ],
    align=True,
)

SIM = np.dtype(
    [
        ("now_s", "f8"),
        ("again", "i8"),  # what happens now follows from steps that began now
        ("ahead", "i8"),  # decode steps that an instance may plan at once
        ("unseen", "i8"),  # the most events that are over and not counted yet
        ("stopped", "i8"),  # codes.STOPPED
        ("events", "i8"),
        ("max_events", "i8"),
        ("max_time_s", "f8"),
        ("arrived", "i8"),  # cursor over State.order
        ("timed", "i8"),  # cursor over State.timers
        ("sequence", "i8"),
        ("touched", "i8"),  # entries of State.touched
        ("called", "i8"),  # entries of State.called
        ("transfers", "i8"),  # queues
        ("retrying", "i8"),
        ("thinking", "i8"),
        ("handoffs", "i8"),
        ("outside", "i8"),
        ("released", "i8"),  # KV was freed since a hand-off last found no room
        ("retriers", "i8"),  # requests in `retrying`
        ("in_vain", "i8"),  # asks for room since KV was freed or a role or health changed
        ("looked", "i8"),  # a look at the load since then, which changed nothing
        ("oldest", "i8"),  # no request before this one, or after that one, is under way
        ("newest", "i8"),
        ("routing", "i8"),
        ("decode_routing", "i8"),
        ("decode_at", "i8"),
        ("keep_mixed", "i8"),
        ("retry_s", "f8"),
        ("first_token_from", "i8"),
        ("seed", "u8"),
        ("prompt_limit", "i8"),
        ("switch_every_s", "f8"),
        ("switch_tokens", "f8"),
        ("switch_kv", "f8"),
        ("next_check_s", "f8"),
        ("log_gaps", "i8"),
        ("log_steps", "i8"),
        ("energy", "i8"),
        ("last_prefill", "i8"),  # round robin: instance, and place of the next to ask
        ("last_decode", "i8"),
        ("turn_prefill", "i8"),
        ("turn_decode", "i8"),
        ("switches", "i8"),  # some timer changes a role
        ("able_prefill", "i8"),  # entries of State.able
        ("able_decode", "i8"),
        ("largest_decode", "i8"),  # tokens that the largest rank holds that may yet decode
        ("smallest", "i8"),  # tokens that the smallest rank holds
        ("places", "i8"),
        ("most_listed", "i8"),
        ("gaps", "i8"),  # entries of the logs
        ("steps", "i8"),
        ("disaggregated", "i8"),  # some instance may only prefill, or hands off
        ("decode_final", "i8"),  # every pool takes all blocks at admission
        ("finished", "i8"),
        ("rejected", "i8"),
        ("emitted", "i8"),
        ("caching", "i8"),  # some pool keeps prefixes
        ("loads", "i8"),  # and prompts may load what their rank lacks of them
        ("next_turn", "i8"),
        ("unit", "i8"),  # tokens of a block of a chain
        ("ids", "i8"),  # above all ids of blocks
        ("nodes", "i8"),  # entries of State.nodes used so far
        ("spare", "i8"),  # first of those that are free again
    ],
    align=True,
)

CACHE = np.dtype(
    [
        ("oldest", "i8"),  # its idle blocks
        ("newest", "i8"),
        ("size", "i8"),  # blocks of chains in it
        ("room", "i8"),  # for so many; a rank's own memory has room for what is free there
        ("below", "i8"),  # the cache that what is forgotten falls to, -1: none
        ("dropped", "i8"),  # tokens that fell
        ("loaded", "i8"),  # tokens read from it
    ],
    align=True,
)
"""A prefix cache: of every rank one, of its tiers, and the one of all."""

TIER_STATE = np.dtype(
    [
        ("cache", "i8"),  # -1: there is no such tier
        ("latency_s", "f8"),
        ("block_s", "f8"),  # to read a block of a chain
        ("free_s", "f8"),  # when the rank's link to it is free
    ],
    align=True,
)
"""Memory below a rank's own."""

NODE = np.dtype(
    [
        ("key", "i8"),  # cache and id
        ("next", "i8"),  # in its bucket, or the next spare one
        ("pins", "i8"),  # requests that use it
        ("older", "i8"),  # idle ones beside it
        ("newer", "i8"),
    ],
    align=True,
)
"""A block of a chain in a cache."""

STEP = np.dtype(
    [
        ("start_s", "f8"),
        ("end_s", "f8"),
        ("instance", "i4"),
        ("kind", "i4"),  # codes.PREFILL_STEP ...
        ("prompt_tokens", "i4"),
        ("prompts", "i4"),
        ("decodes", "i4"),
        ("waiting", "i4"),
        ("kv_blocks", "i8"),
    ],
    align=True,
)
"""A row of the log of steps: an instance's, its ranks summed."""


class State(NamedTuple):
    """Arrays that the loop works on; (…) their shapes.

    Attributes
    ----------
    requests, ranks, instances, pools : (requests,), (ranks,), (instances,), (pools,)
    links : (pools, pools)
    sim : (1,)
        Numbers of the whole run.
    values, tree : (4, leaves), (4, 2 * leaves)
        The winner trees `codes.CLOCK`, ``TO_PREFILL``, ``TO_DECODE``, ``ROOM``.
    finish, saturate : (ranks, batch)
        Heaps of ``decode step << 32 | request``: a decode's last step, and the one after
        which its context has reached the limit.
    edges : (ranks, block)
        Decodes by the residue of the step that opens a new block for them.
    touched, called : (instances,)
        Heaps of the instances to look at before time goes on: may form a batch; may have
        room for a hand-off.
    ends : (instances, ahead)
        When the decode steps end that an instance planned, see `ahead`.
    able : (2, instances)
        Instances that may prefill, and that may decode.
    pending, batch, chosen : (ranks, ·), (ranks, batch), (batch,)
        Splitwise's lists: tasks that wait, decodes of the batch, tasks of the next one.
    order : (roots,)
        Requests without parent in order of arrival.
    chain_start, chains : (requests + 1,), (·,)
        Ids of the blocks of each request's prompt, and of output behind it.
    caches, nodes, buckets : (·,), (·,), (power of 2,)
        Prefix caches, first those of the ranks; their blocks; first of each hash value.
    tiers : (ranks, levels)
    timers, gaps, gap_counts, log
        See `inputs.TIMER`, `Outcome`, `STEP`.
    """

    requests: Records
    ranks: Records
    instances: Records
    pools: Records
    links: Records
    sim: Records
    steps: Steps
    joules: Steps
    values: Floats
    tree: Ints
    finish: Ints
    saturate: Ints
    edges: Ints
    touched: Ints
    called: Ints
    ends: Floats
    able: Ints
    pending: Ints
    batch: Ints
    chosen: Ints
    order: Ints
    chain_start: Ints
    chains: Ints
    caches: Records
    nodes: Records
    buckets: Ints
    tiers: Records
    timers: Records
    gaps: Floats
    gap_counts: Ints
    log: Records


_STEPS = ViewType(
    tuple(
        (name, array_type("i8" if name == "limit" else "f8", axes))
        for name, axes in (
            ("prefill", 2), ("mixed", 2), ("decode", 2), ("head", 2), ("batches", 2),
            ("queries", 2), ("prefixes", 2), ("prompts", 4), ("contexts", 4), ("limit", 1),
        )
    )
)  # fmt: skip
_STATE = ViewType(
    (
        ("requests", cells_type(REQUEST, 1)),
        ("ranks", cells_type(RANK, 1)),
        ("instances", cells_type(INSTANCE_STATE, 1)),
        ("pools", cells_type(POOL, 1)),
        ("links", cells_type(LINK, 2)),
        ("sim", cells_type(SIM, 1)),
        ("steps", _STEPS),
        ("joules", _STEPS),
        ("values", cells_type("f8", 2)),
        ("tree", cells_type("i8", 2)),
        ("finish", cells_type("i8", 2)),
        ("saturate", cells_type("i8", 2)),
        ("edges", cells_type("i8", 2)),
        ("touched", cells_type("i8", 1)),
        ("called", cells_type("i8", 1)),
        ("ends", cells_type("f8", 2)),
        ("able", cells_type("i8", 2)),
        ("pending", cells_type("i8", 2)),
        ("batch", cells_type("i8", 2)),
        ("chosen", cells_type("i8", 1)),
        ("order", cells_type("i8", 1)),
        ("chain_start", cells_type("i8", 1)),
        ("chains", cells_type("i8", 1)),
        ("caches", cells_type(CACHE, 1)),
        ("nodes", cells_type(NODE, 1)),
        ("buckets", cells_type("i8", 1)),
        ("tiers", cells_type(TIER_STATE, 2)),
        ("timers", cells_type(TIMER, 1)),
        ("gaps", cells_type("f8", 1)),
        ("gap_counts", cells_type("i4", 1)),
        ("log", cells_type(STEP, 1)),
    )
)
in_kernel = view_of(_STATE)
"""``S = in_kernel(table)``, first thing in a kernel that Python calls."""


class Packed:
    """A state's table, and all that it points to."""

    def __init__(self, state: State) -> None:
        fixed = [f if isinstance(f, np.ndarray) else table_of(f) for f in state]
        self.kept = (state, fixed)
        self.table = table_of(fixed)
