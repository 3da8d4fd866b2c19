"""A workload: requests as arrays, in order of arrival.

trace file or generator -> `Workload` -> event engine, statistics, figures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from chipsim.cluster import workload_checks as checks
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Whole = NDArray[np.int64]

NO_WHOLE: Any = ()
NO_FLOATS: Any = ()
"""An optional array that is left out."""
BLOCKS_COLUMN = re.compile(r"blocks_of_(\d+)")
"""Column of a CSV file with the ids of prefix blocks of so many tokens."""


@dataclass(frozen=True, eq=False)
class Workload:
    """Requests in order of arrival; arrays of rank 1 and equal length n, read-only.

    A request with a parent is a later turn of a closed loop: it arrives ``think_s`` after
    its parent has completed, and its ``arrival_s`` is only the earliest that this can be
    (the parent's arrival and the think time, as if serving took no time). An optional
    array that is left out (empty) is filled with what stands in brackets below.

    Attributes
    ----------
    arrival_s : float64
        Seconds from the start of the run, never falling.
    prompt_tokens : int64
        Of the whole prompt, from 1, a cached prefix included.
    output_tokens : int64
        From 1; the first one comes out of prefill.
    session : int64
        Requests of one user or conversation share a number (-1: none).
    parent : int64
        Index of the request that must complete before this one (-1: none: open loop). It
        stands earlier, and leads one turn at most.
    think_s : float64
        From the parent's completion to this request's arrival (0).
    priority : int64
        Class of the request, lower goes first (0).
    block_offsets : int64
        n + 1 places: request i has the blocks ``block_ids[offsets[i]:offsets[i + 1]]``
        (all 0: no blocks).
    block_ids : int64
        Hashes of the prompt's blocks from its start, each standing for its block and all
        before it: equal leading ids are a shared prefix.
    block_tokens : int
        Tokens of a block (0: no blocks). The last block of a prompt may be partly filled.
    name, source : str
        What it is called, and where it comes from.
    dropped : dict of str to int
        Rows of the source that are no requests of this workload, by reason.
    counted : dict of str to int
        What is odd about rows that were kept, by kind.
    seed : int or None
        Of what was drawn; None where nothing was.

    Raises
    ------
    ConfigError
        One line: the array, the first entry that is wrong, and what is allowed.
    """

    arrival_s: Floats
    prompt_tokens: Whole
    output_tokens: Whole
    session: Whole = NO_WHOLE
    parent: Whole = NO_WHOLE
    think_s: Floats = NO_FLOATS
    priority: Whole = NO_WHOLE
    block_offsets: Whole = NO_WHOLE
    block_ids: Whole = NO_WHOLE
    block_tokens: int = 0
    name: str = "workload"
    source: str = ""
    dropped: dict[str, int] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)
    seed: int | None = None

    def __post_init__(self) -> None:
        where, count = self.name, len(np.atleast_1d(self.arrival_s))
        if not 0 < count <= checks.MOST_REQUESTS:
            allowed = f"1 to {checks.MOST_REQUESTS:.0e}"
            raise ConfigError(where, "requests", count, allowed)
        arrays: dict[str, NDArray[Any]] = {
            "arrival_s": checks.seconds(where, "arrival_s", self.arrival_s),
            "prompt_tokens": checks.whole(where, "prompt_tokens", self.prompt_tokens, 1),
            "output_tokens": checks.whole(where, "output_tokens", self.output_tokens, 1),
            "session": _filled(where, "session", self.session, count, -1),
            "parent": _filled(where, "parent", self.parent, count, -1),
            "priority": _filled(
                where, "priority", self.priority, count, 0, -checks.MOST_TOKENS
            ),
            "think_s": np.zeros(count)
            if len(self.think_s) == 0
            else checks.seconds(where, "think_s", self.think_s),
        }
        for name, array in arrays.items():
            if len(array) != count:
                raise ConfigError(where, name, f"{len(array)} entries", f"{count}, as arrivals")
        checks.in_order(where, arrays["arrival_s"])
        checks.earlier_parents(where, arrays["parent"])
        arrays |= self._blocks(count)
        for name, array in arrays.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def _blocks(self, count: int) -> dict[str, NDArray[Any]]:
        if len(self.block_offsets) == 0 and len(self.block_ids) == 0:
            object.__setattr__(self, "block_tokens", 0)
            return {
                "block_offsets": np.zeros(count + 1, np.int64),
                "block_ids": np.empty(0, np.int64),
            }
        ids = checks.whole(self.name, "block_ids", self.block_ids, -(2**63), 2**63 - 1)
        if len(ids) and not 0 < self.block_tokens <= checks.MOST_TOKENS:
            raise ConfigError(self.name, "block_tokens", self.block_tokens, "1 or more")
        offsets = checks.offsets_of(self.name, self.block_offsets, count, len(ids))
        return {"block_offsets": offsets, "block_ids": ids}

    def __len__(self) -> int:
        return len(self.arrival_s)

    def __repr__(self) -> str:
        return f"Workload({self.name!r}, {len(self)} requests, {self.rate_rps:.4g} /s)"

    @property
    def roots(self) -> NDArray[np.bool_]:
        """Which requests arrive by themselves: all of an open loop, first turns else."""
        found: NDArray[np.bool_] = self.parent < 0
        return found

    @property
    def closed_loop(self) -> bool:
        """Whether any request waits for another one's completion."""
        return not bool(self.roots.all())

    @property
    def span_s(self) -> float:
        """From the first to the last arrival (closed loop: of first turns), seconds."""
        at = self.arrival_s[self.roots]
        return float(at[-1] - at[0])

    @property
    def rate_rps(self) -> float:
        """Arrivals over `span_s`, 1/s (closed loop: first turns); 0 where all come at once."""
        return int(self.roots.sum()) / self.span_s if self.span_s > 0.0 else 0.0

    def head(self, requests: int) -> Workload:
        """The first requests (`ConfigError`: fewer than 1)."""
        return self.slice(0, requests)

    def slice(self, start: int, stop: int) -> Workload:
        """Requests ``start`` to ``stop`` (excluded), at the times that they had.

        A turn whose parent is left out arrives by itself, at its earliest time.
        """
        start, stop, _ = slice(start, stop).indices(len(self))
        chosen = np.arange(start, max(start, stop))
        if len(chosen) == 0:
            raise ConfigError(self.name, "slice", f"{start}:{stop}", "at least one request")
        return self._taken(chosen)

    def _taken(self, chosen: Whole, arrival_s: Floats | None = None) -> Workload:
        """The workload of some requests, in the order given, perhaps at other times."""
        at = self.arrival_s if arrival_s is None else arrival_s
        place = np.full(len(self) + 1, -1)  # the last one is where parent -1 leads
        place[chosen] = np.arange(len(chosen))
        parent = place[self.parent[chosen]]
        offsets, ids = taken_blocks(self.block_offsets, self.block_ids, chosen)
        return replace(
            self,
            arrival_s=at[chosen],
            prompt_tokens=self.prompt_tokens[chosen],
            output_tokens=self.output_tokens[chosen],
            session=self.session[chosen],
            parent=parent,
            think_s=np.where(parent < 0, 0.0, self.think_s[chosen]),
            priority=self.priority[chosen],
            block_offsets=offsets,
            block_ids=ids,
        )

    def at_rate(self, rate: float) -> Workload:
        """The same requests, `rate_rps` made ``rate``; think times stay as they are.

        Raises
        ------
        ConfigError
            A rate that is not above 0, or requests that all arrive at once.
        """
        if not 0.0 < rate < np.inf:
            raise ConfigError(self.name, "rate", rate, "a number of requests/s above 0")
        if self.rate_rps == 0.0:
            raise ConfigError(self.name, "rate", rate, "none: all requests arrive at once")
        first = float(self.arrival_s[0])
        at = first + (self.arrival_s - first) * (self.rate_rps / rate)
        if not self.closed_loop:
            return replace(self, arrival_s=at)
        at = earliest(at, self.parent, self.think_s)
        return self._taken(np.argsort(at, kind="stable"), at)

    def summary(self) -> dict[str, Any]:
        """Statistics by name (`chipsim.cluster.statistics.summary`)."""
        from chipsim.cluster.statistics import summary

        return summary(self)

    def frame(self) -> pd.DataFrame:
        """One row per request: the columns of `to_csv`."""
        import pandas as pd

        columns: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("arrival_s", "prompt_tokens", "output_tokens")
        }
        for name, absent in (("session", -1), ("parent", -1), ("think_s", 0), ("priority", 0)):
            if (getattr(self, name) != absent).any():
                columns[name] = getattr(self, name)
        if len(self.block_ids):
            parts = np.split(self.block_ids, self.block_offsets[1:-1])
            columns[f"blocks_of_{self.block_tokens}"] = [" ".join(map(str, p)) for p in parts]
        return pd.DataFrame(columns)

    def csv(self) -> str:
        """The text of a file that `read_trace` reads back to the same requests, bit for bit."""
        text: str = self.frame().to_csv(index=False, lineterminator="\n")
        return text

    def to_csv(self, path: str | Path) -> Path:
        """Write `csv` to a file, and give its path."""
        path = Path(path)
        path.write_text(self.csv(), encoding="utf-8")
        return path


def taken_blocks(offsets: Whole, ids: Whole, chosen: Whole) -> tuple[Whole, Whole]:
    """Offsets and ids of some requests' blocks, in the order given (both empty: no blocks)."""
    if len(ids) == 0:
        return NO_WHOLE, NO_WHOLE
    starts = offsets[chosen]
    counts = offsets[chosen + 1] - starts
    taken = np.concatenate([[0], np.cumsum(counts)])
    inside = np.arange(taken[-1]) + np.repeat(starts - taken[:-1], counts)
    return taken, ids[inside]


def earliest(arrival_s: Floats, parent: Whole, think_s: Floats) -> Floats:
    """When each request arrives at the earliest: its own time, or parent's and think time.

    Parameters
    ----------
    arrival_s : float64 array, rank 1
        Read where there is no parent.
    parent, think_s : arrays, rank 1
        As `Workload`: a parent stands before its turns.

    Returns
    -------
    float64 array, rank 1
    """
    at, pending = np.where(parent < 0, arrival_s, 0.0), np.flatnonzero(parent >= 0)
    known = parent < 0
    while len(pending):  # one round for each depth of the loops
        ready = known[parent[pending]]
        now = pending[ready]
        at[now] = at[parent[now]] + think_s[now]
        known[now] = True
        pending = pending[~ready]
    return at


def _filled(
    where: str, name: str, values: Any, count: int, absent: int, least: int = -1
) -> Whole:
    if len(values) == 0:
        return np.full(count, absent, np.int64)
    return checks.whole(where, name, values, least, checks.MOST_TOKENS * 2**20)
