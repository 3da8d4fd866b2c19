"""The engine's entry: check what is given, lay out the state, run the loop, hand back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.engine import codes
from chipsim.cluster.engine.check import check
from chipsim.cluster.engine.inputs import Options, Requests, links, tiers, timers
from chipsim.cluster.engine.layout import gap_room, lay_out, list_room
from chipsim.cluster.engine.loop import advance
from chipsim.cluster.engine.state import REQUEST_OUT, Packed

if TYPE_CHECKING:
    from chipsim.cluster.engine.inputs import Floats, Ints, Records
    from chipsim.cluster.engine.state import State
    from chipsim.cluster.engine.steps import Steps


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run.

    Attributes
    ----------
    requests : (n,) structured
        One row per request: `state.REQUEST_OUT`; times NaN where they did not come to pass.
    gaps, gap_counts : (m,) float64, int32
        Seconds between a token and the one before it of the same request, and how many
        tokens share that row; in no order.
    instances : (instances,) structured
        ``prefill_s, decode_s, mixed_s`` (busy), ``steps, prompt_tokens, decode_tokens,
        used_seconds`` (blocks x seconds), ``joules``, ...
    caches : (c,) structured
        `state.CACHE` rows: of every rank, of the three levels of tiers below.
    steps : (s,) structured
        `state.STEP` rows, if asked for.
    stopped : str
        ``done``, ``max_time`` or ``max_events``.
    end_s : float
        Time of the last event.
    events, emitted : int
        Events processed; output tokens emitted.
    """

    requests: Records
    gaps: Floats
    gap_counts: Ints
    instances: Records
    caches: Records
    steps: Records
    stopped: str
    end_s: float
    events: int
    emitted: int


def run(
    requests: Requests,
    steps: Steps,
    pools: Records,
    instances: Records,
    *,
    links: Records | None = None,
    tiers: Records | None = None,
    timers: Records | None = None,
    options: Options | None = None,
    joules: Steps | None = None,
    looks: Sequence[float] = (),
    enough: Callable[[Records, float], bool] | None = None,
) -> Outcome:
    """Simulate a cluster serving requests.

    Parameters
    ----------
    requests : Requests
    steps : Steps
        Seconds of steps; row k belongs to the pools whose ``table`` is k.
    pools, instances, links, tiers, timers : structured arrays
        See `inputs`; links are infinitely fast, and there are no tiers and no timers, unless
        given.
    joules : Steps, optional
        Joules of steps, per rank; needed for ``options.energy``.
    looks : sequence of float
        Growing times at which ``enough`` is asked; the run is the same for it.
    enough : callable, optional
        Told the requests' rows and the time; whether the run ends there.

    Raises
    ------
    ConfigError
        What is given contradicts itself; the message names the array and the field.
    """
    options = Options() if options is None else options
    links = _links(len(pools)) if links is None else links
    timers = _no_timers() if timers is None else timers
    tiers = _no_tiers(len(pools)) if tiers is None else tiers
    check(requests, steps, pools, instances, links, tiers, timers, options, joules)
    state = lay_out(requests, steps, pools, instances, links, tiers, timers, options, joules)
    packed, logs = Packed(state), []
    ends = [*(at for at in looks if enough and at < options.max_time_s), options.max_time_s]
    state.sim[0]["max_time_s"] = ends[0]
    while True:
        stopped = advance(packed.table, gap_room(state), len(instances), list_room(pools))
        if stopped == codes.NO_ROOM:
            logs.append(_logged(state))
            state = _with_room(state, list_room(pools))
            packed = Packed(state)
            continue
        at = ends.pop(0)
        if stopped != codes.TIME_BOUND or not ends:
            break
        if enough is not None and enough(state.requests, at):
            break
        state.sim[0]["max_time_s"] = ends[0]
    _close(state)
    logs.append(_logged(state))
    # One log is most of a short run's memory: it is handed on as it is.
    gaps, counts, rows = (
        parts[0] if len(parts) == 1 else np.concatenate(parts)
        for parts in zip(*logs, strict=True)
    )
    return Outcome(
        requests=state.requests[[name for name, _ in REQUEST_OUT]],
        gaps=gaps,
        gap_counts=counts,
        instances=state.instances,
        caches=state.caches,
        steps=rows,
        stopped=codes.STOPPED[stopped],
        end_s=float(state.sim[0]["now_s"]),
        events=int(state.sim[0]["events"]),
        emitted=int(state.requests["emitted"].sum()),
    )


_links, _no_tiers, _no_timers = links, tiers, timers


def _logged(state: State) -> tuple[Floats, Ints, Records]:
    """What the logs hold: gaps, their counts, steps."""
    gaps, steps = state.sim[0]["gaps"], state.sim[0]["steps"]
    return state.gaps[:gaps], state.gap_counts[:gaps], state.log[:steps]


def _with_room(state: State, listed: int) -> State:
    """The same with new logs, and longer lists of tasks where so many do not fit any more."""
    sim, pending = state.sim[0], state.pending
    sim["gaps"], sim["steps"] = 0, 0
    if sim["most_listed"] + listed > pending.shape[1]:
        pending = np.concatenate([pending, np.zeros_like(pending)], axis=1)
    return state._replace(
        gaps=np.empty_like(state.gaps),
        gap_counts=np.empty_like(state.gap_counts),
        log=np.empty_like(state.log),
        pending=pending,
    )


def _close(state: State) -> None:
    """Bring to the books what still runs: tokens of unfinished requests, blocks held."""
    requests, ranks, now = state.requests, state.ranks, state.sim[0]["now_s"]
    decoding = np.flatnonzero(requests["phase"] == codes.DECODING)
    rank = ranks[requests["rank"][decoding]]
    requests["emitted"][decoding] += rank["steps"] - requests["joined"][decoding]
    requests["status"][requests["status"] == codes.PENDING] = codes.UNFINISHED
    ranks["used_seconds"] += ranks["used"] * (now - ranks["used_since_s"])
    np.add.at(state.instances["used_seconds"], ranks["instance"], ranks["used_seconds"])
