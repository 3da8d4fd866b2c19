"""Sessions of many turns: a closed loop in which each prompt holds all that went before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

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

MOST_BLOCKS = 10**8
"""Ids of a generated workload: 0.8 GB."""


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
    rate: float,
    kind: Sessions,
    arrivals: Arrivals | str = "poisson",
    *,
    requests: int | None = None,
    duration_s: float | None = None,
    seed: int = 0,
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
    if requests is not None and not 1 <= requests <= MOST_REQUESTS:
        raise ConfigError(name, "requests", requests, f"1 to {MOST_REQUESTS:.0e}")
    process, times = process_of(arrivals), streams(seed, 3)[0]
    if requests is None:
        begin = arrival_times(process, rate, times, None, duration_s)
        if len(begin) == 0:
            raise ConfigError(name, "duration", duration_s, "long enough for one session")
        turns = _turns(kind, len(begin), seed, name)
    else:
        turns = _enough(kind, requests, seed, name)
        begin = arrival_times(process, rate, times, int(turns.session[-1]) + 1)
    return _built(kind, begin, turns, name, process.kind, seed)


class _Turns(NamedTuple):
    """Turns, session by session: those that fit the longest context, and those that do not."""

    session: Whole
    turn: Whole
    prompt: Whole
    output: Whole
    think_s: NDArray[np.float64]
    fits: NDArray[np.bool_]


def _turns(kind: Sessions, count: int, seed: int, name: str) -> _Turns:
    """All turns of so many sessions; more sessions begin as fewer do."""
    _, counts, sizes = streams(seed, 3)
    turns = kind.turns.tokens_of(counts.random(count))
    total = int(turns.sum())
    if total > MOST_REQUESTS:
        raise ConfigError(name, "requests", total, f"at most {MOST_REQUESTS:.0e}")
    start = np.repeat(np.cumsum(turns) - turns, turns)
    turn = np.arange(total) - start
    u = sizes.random((total, 3))
    first = kind.shared + kind.first.tokens_of(u[:, 0])
    added = np.where(turn == 0, first, kind.new.tokens_of(u[:, 0]))
    output = kind.output.tokens_of(u[:, 1])
    prompt = _grown(added, output, start)
    think = np.where(turn == 0, 0.0, kind.think.seconds_of(u[:, 2]))
    fits = _until_full(prompt + output > kind.most_context, start)
    if not fits.any():
        allowed = f"{int((prompt + output).min())} or more, to hold a first turn"
        raise ConfigError(name, "most_context", kind.most_context, allowed)
    return _Turns(np.repeat(np.arange(count), turns), turn, prompt, output, think, fits)


def _enough(kind: Sessions, requests: int, seed: int, name: str) -> _Turns:
    """Turns of as many sessions as hold so many that fit, the last session cut short."""
    count = 64
    while (turns := _turns(kind, count, seed, name)).fits.sum() < requests:
        count *= 2
    end = int(np.flatnonzero(turns.fits)[requests - 1]) + 1
    return _Turns(
        turns.session[:end],
        turns.turn[:end],
        turns.prompt[:end],
        turns.output[:end],
        turns.think_s[:end],
        turns.fits[:end],
    )


def _built(
    kind: Sessions,
    begin: NDArray[np.float64],
    turns: _Turns,
    name: str,
    process: str,
    seed: int,
) -> Workload:
    """The turns that fit, in order of earliest arrival."""
    count = len(turns.turn)
    parent = np.where(turns.turn == 0, -1, np.arange(count) - 1)
    at = earliest(begin[turns.session], parent, turns.think_s)
    fitting = np.flatnonzero(turns.fits)
    order = fitting[np.argsort(at[fitting], kind="stable")]
    place = np.full(count + 1, -1)
    place[order] = np.arange(len(order))
    offsets, ids = _blocks(kind, turns.prompt[order], turns.session[order])
    lost = count - len(order)
    return Workload(
        arrival_s=at[order],
        prompt_tokens=turns.prompt[order],
        output_tokens=turns.output[order],
        session=turns.session[order],
        parent=place[parent[order]],
        think_s=turns.think_s[order],
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
    return np.asarray(passed == passed[start] - full[start])


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
    ids = np.arange(offsets[-1])
    ids -= np.repeat(offsets[:-1], counts)
    np.add(ids, np.repeat(base[session], counts), out=ids, where=ids >= shared)
    return offsets, ids
