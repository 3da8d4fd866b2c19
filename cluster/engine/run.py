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
        tokens share that row.
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
    packed, gaps, counts, rows = Packed(state), [], [], []
    ends = [*(at for at in looks if enough and at < options.max_time_s), options.max_time_s]
    state.sim[0]["max_time_s"] = ends[0]
    while True:
        room = gap_room(state), len(instances), list_room(pools)
        stopped = advance(packed.table, *room)
        sim = state.sim[0]
        gaps.append(state.gaps[: sim["gaps"]].copy())
        counts.append(state.gap_counts[: sim["gaps"]].copy())
        rows.append(state.log[: sim["steps"]].copy())
        sim["gaps"], sim["steps"] = 0, 0
        if sim["most_listed"] + list_room(pools) > state.pending.shape[1]:
            longer = np.zeros((state.pending.shape[0], 2 * state.pending.shape[1]), np.int64)
            longer[:, : state.pending.shape[1]] = state.pending
            state = state._replace(pending=longer)
            packed = Packed(state)
        if stopped == codes.NO_ROOM:
            continue
        at = ends.pop(0)
        if stopped != codes.TIME_BOUND or not ends:
            break
        if enough is not None and enough(state.requests, at):
            break
        state.sim[0]["max_time_s"] = ends[0]
    _close(state)
    return Outcome(
        requests=state.requests[[name for name, _ in REQUEST_OUT]],
        gaps=np.concatenate(gaps),
        gap_counts=np.concatenate(counts),
        instances=state.instances,
        caches=state.caches,
        steps=np.concatenate(rows),
        stopped=codes.STOPPED[stopped],
        end_s=float(state.sim[0]["now_s"]),
        events=int(state.sim[0]["events"]),
        emitted=int(state.requests["emitted"].sum()),
    )


_links, _no_tiers, _no_timers = links, tiers, timers


def _close(state: State) -> None:
    """Bring to the books what still runs: tokens of unfinished requests, blocks held."""
    requests, ranks, now = state.requests, state.ranks, state.sim[0]["now_s"]
    decoding = np.flatnonzero(requests["phase"] == codes.DECODING)
    rank = ranks[requests["rank"][decoding]]
    requests["emitted"][decoding] += rank["steps"] - requests["joined"][decoding]
    requests["status"][requests["status"] == codes.PENDING] = codes.UNFINISHED
    ranks["used_seconds"] += ranks["used"] * (now - ranks["used_since_s"])
    np.add.at(state.instances["used_seconds"], ranks["instance"], ranks["used_seconds"])
