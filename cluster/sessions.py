"""Sessions of many turns: a closed loop in which each prompt holds all that went before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from chipsim.cluster.arrivals import arrival_times
from chipsim.cluster.distributions import Length, Think, Tokens
from chipsim.cluster.generators import process_of, streams
from chipsim.cluster.workload import Workload, earliest
from chipsim.cluster.workload_checks import MOST_REQUESTS, MOST_TOKENS
from chipsim.errors import ConfigError
from chipsim.spec import Spec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from chipsim.cluster.arrivals import Arrivals

    Whole = NDArray[np.int64]

MOST_BLOCKS = 2 * 10**8
"""Ids of a generated workload: 1.6 GB."""


class Sessions(Spec):
    """Agents or conversations: turn k + 1 arrives when turn k has completed, and a think time.

    prompt(1) = shared + first; prompt(k + 1) = prompt(k) + output(k) + new(k + 1).
    """

    turns: Length
    """Of a session."""
    first: Length
    """Prompt tokens of the first turn after the shared ones."""
    new: Length
    """Prompt tokens that each later turn adds: uncached, whatever the cache."""
    output: Length
    think: Think
    shared: Annotated[int, Field(ge=0, le=MOST_TOKENS)] = 0
    """Tokens at the start of every session's prompt: system prompt and tools."""
    most_context: Tokens = MOST_TOKENS
    """A session ends before the turn whose prompt and output would be longer."""
    block_tokens: Annotated[int, Field(ge=0, le=MOST_TOKENS)] = 512
    """Of a prefix block; 0: no block ids are made."""


def sessions(
    rate: float, kind: Sessions, arrivals: Arrivals | str = "poisson", *,
    requests: int | None = None, duration_s: float | None = None, seed: int = 0,
    name: str = "sessions",
) -> Workload:
    """Draw sessions.

    Parameters
    ----------
    rate : float
        Mean sessions/s that begin.
    kind : Sessions
        Turns, tokens and think times.
    arrivals : Arrivals or str
        Of first turns.
    requests : int
        Turns in all: sessions begin until there are so many, the last one is cut short.
    duration_s : float
        Until when sessions begin: this or ``requests``.
    seed : int
        As `generate`.

    Raises
    ------
    ConfigError
        A number out of its range, or no turn that fits ``most_context``.
    """  # fmt: skip
    times, counts, sizes = streams(seed, 3)
    process = process_of(arrivals)
    if requests is not None:
        turns = _enough(kind, requests, counts)
        begin = arrival_times(process, rate, times, len(turns))
    else:
        begin = arrival_times(process, rate, times, None, duration_s)
        turns = kind.turns.tokens_of(counts.random(len(begin)))
    if turns.sum() > MOST_REQUESTS:
        raise ConfigError(name, "requests", int(turns.sum()), f"at most {MOST_REQUESTS:.0e}")
    if len(turns) == 0:
        raise ConfigError(name, "duration", duration_s, "long enough for one session")
    return _built(kind, begin, turns, sizes, name, process.kind, seed)


def _enough(kind: Sessions, requests: int, rng: np.random.Generator) -> Whole:
    """Turns of as many sessions as hold so many requests, the last one cut short."""
    if not 1 <= requests <= MOST_REQUESTS:
        raise ConfigError("sessions", "requests", requests, f"1 to {MOST_REQUESTS:.0e}")
    turns = np.empty(0, np.int64)
    while turns.sum() < requests:
        turns = np.append(turns, kind.turns.tokens_of(rng.random(1024)))
    ends = np.cumsum(turns)
    turns = turns[: int(np.searchsorted(ends, requests)) + 1]
    turns[-1] -= turns.sum() - requests
    return turns


def _built(
    kind: Sessions, begin: NDArray[np.float64], turns: Whole, rng: np.random.Generator,
    name: str, process: str, seed: int,
) -> Workload:  # fmt: skip
    """Turns of one session behind each other, then all in order of earliest arrival."""
    count = int(turns.sum())
    session = np.repeat(np.arange(len(turns)), turns)
    start = np.repeat(np.cumsum(turns) - turns, turns)
    turn = np.arange(count) - start
    u = rng.random((count, 3))
    output = kind.output.tokens_of(u[:, 1])
    added = np.where(
        turn == 0, kind.shared + kind.first.tokens_of(u[:, 0]), kind.new.tokens_of(u[:, 0])
    )
    prompt = _grown(added, output, start)
    parent = np.where(turn == 0, -1, np.arange(count) - 1)
    think = np.where(turn == 0, 0.0, kind.think.seconds_of(u[:, 2]))
    kept = _until_full(prompt + output > kind.most_context, start)
    if not kept.any():
        shortest = int((prompt + output).min())
        allowed = f"{shortest} or more, to hold a first turn"
        raise ConfigError(name, "most_context", kind.most_context, allowed)
    at = earliest(begin[session], parent, think)
    order = np.flatnonzero(kept)[np.argsort(at[kept], kind="stable")]
    place = np.full(count + 1, -1)
    place[order] = np.arange(len(order))
    offsets, ids = _blocks(kind, prompt[order], session[order])
    lost = count - len(order)
    return Workload(
        arrival_s=at[order],
        prompt_tokens=prompt[order],
        output_tokens=output[order],
        session=session[order],
        parent=place[parent[order]],
        think_s=think[order],
        block_offsets=offsets,
        block_ids=ids,
        block_tokens=kind.block_tokens,
        name=name,
        source=f"generated, {process} arrivals of sessions",
        dropped={"turns beyond the longest context": lost} if lost else {},
        seed=seed,
    )


def _grown(added: Whole, output: Whole, start: Whole) -> Whole:
    """Prompt of each turn: what was added up to it, and all outputs before it.

    ``start`` is the index of the first turn of each one's session.
    """
    total = np.cumsum(added + output)
    before = total[start] - added[start] - output[start]
    return np.asarray(total - before - output)


def _until_full(full: NDArray[np.bool_], start: Whole) -> NDArray[np.bool_]:
    """Turns before the first one of their session that is too long."""
    passed = np.cumsum(full)
    before = passed[start] - full[start]
    return np.asarray(passed - before == 0)


def _blocks(kind: Sessions, prompt: Whole, session: Whole) -> tuple[Whole, Whole]:
    """Whole blocks of each prompt: shared ones first, then the session's own.

    A block at one place of a session holds the same tokens in every turn. Ids: 0.. for
    shared blocks, then one range for each session, as long as its longest prompt.
    """
    if kind.block_tokens == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    counts = prompt // kind.block_tokens
    if counts.sum() > MOST_BLOCKS:
        allowed = f"larger blocks, or 0 for none: at most {MOST_BLOCKS:.0e} ids in all"
        raise ConfigError("sessions", "block_tokens", kind.block_tokens, allowed)
    shared = kind.shared // kind.block_tokens
    longest = np.zeros(int(session.max()) + 1, np.int64)
    np.maximum.at(longest, session, counts)
    base = shared + np.cumsum(longest) - longest
    offsets = np.concatenate([[0], np.cumsum(counts)])
    index = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    own = np.repeat(base[session], counts) + index
    return offsets, np.where(index < shared, index, own)
