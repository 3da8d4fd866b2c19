"""Rows of a trace as a reader finds them, and how they become a workload."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from chipsim.cluster.workload import NO_WHOLE, Workload, taken_blocks
from chipsim.errors import ChipsimError, ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Spread = Literal["even", "random"]
SPREADS: tuple[Spread, ...] = ("even", "random")
ZERO, UNSORTED, TWICE, BINNED = (
    "rows with 0 tokens",
    "rows out of order, sorted",
    "rows that stand twice, kept",
    "rows at the time stamp of the one before",
)
"""What is counted."""


@dataclass(frozen=True)
class Rows:
    """Columns of a file, each value checked by itself, rows in the file's order.

    Attributes
    ----------
    file, format : str
        Where they stand, and how.
    arrival_s : float64 array or None
        None: the file holds lengths only.
    prompt_tokens, output_tokens : int64 arrays
        From 0.
    others : dict of str to array
        Optional arrays of `Workload` by name.
    block_offsets, block_ids, block_tokens
        As `Workload`.
    relative : bool
        Arrivals count from the first request, whatever clock the file has.
    """

    file: str
    format: str
    arrival_s: NDArray[np.float64] | None
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    others: dict[str, NDArray[Any]] = field(default_factory=dict)
    block_offsets: NDArray[np.int64] = NO_WHOLE
    block_ids: NDArray[np.int64] = NO_WHOLE
    block_tokens: int = 0
    relative: bool = True

    def some(self) -> NDArray[np.int64]:
        """Indices of rows with tokens to compute (`ConfigError`: there are none)."""
        found = np.flatnonzero((self.prompt_tokens > 0) & (self.output_tokens > 0))
        if len(found) == 0:
            count = f"{len(self.prompt_tokens)} rows"
            raise ConfigError(
                self.file, "", count, "at least one with prompt and output tokens"
            )
        return found

    def lengths(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Prompt and output tokens of the rows that have both."""
        some = self.some()
        return self.prompt_tokens[some], self.output_tokens[some]

    def workload(
        self,
        arrival_s: NDArray[np.float64] | None = None,
        spread: Spread | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Workload:
        """The requests in order of arrival.

        Parameters
        ----------
        arrival_s : float64 array, optional
            Of the rows that have tokens, for a file of lengths only.
        spread : {"even", "random"}, optional
            Requests of one time stamp are spread over the time until the next one.
        seed : int, optional
            Of what is drawn.

        Raises
        ------
        ChipsimError
            No arrivals; as `some` and `Workload`.
        """  # fmt: skip
        some = self.some()
        at = arrival_s if self.arrival_s is None else self.arrival_s[some]
        if at is None:
            raise ChipsimError(f"{self.file}: holds lengths without arrival times: give a rate")
        order = np.argsort(at, kind="stable")
        at, chosen = at[order], some[order]
        counted = {
            UNSORTED: int((np.diff(order) < 0).sum()),
            TWICE: self._twice(chosen),
            BINNED: int((np.diff(at) == 0.0).sum()),
        }
        if spread is not None:
            at = spread_out(at, spread, seed or 0)
        dropped = len(self.prompt_tokens) - len(some)
        offsets, ids = taken_blocks(self.block_offsets, self.block_ids, chosen)
        return Workload(
            arrival_s=at - at[0] if self.relative else at,
            prompt_tokens=self.prompt_tokens[chosen],
            output_tokens=self.output_tokens[chosen],
            **self._others(chosen),
            block_offsets=offsets,
            block_ids=ids,
            block_tokens=self.block_tokens,
            name=name or self.file,
            source=f"{self.file}, format {self.format}",
            dropped={ZERO: dropped} if dropped else {},
            counted={kind: count for kind, count in counted.items() if count},
            seed=seed if spread == "random" or arrival_s is not None else None,
        )

    def _others(self, chosen: NDArray[np.int64]) -> dict[str, Any]:
        """Optional arrays in the new order; parents point to the new places."""
        found = {name: array[chosen] for name, array in self.others.items()}
        if "parent" in found:
            place = np.full(len(self.prompt_tokens) + 1, -1)
            place[chosen] = np.arange(len(chosen))
            found["parent"] = place[found["parent"]]
        return found

    def _twice(self, chosen: NDArray[np.int64]) -> int:
        import pandas as pd

        columns = {"prompt": self.prompt_tokens[chosen], "output": self.output_tokens[chosen]}
        if self.arrival_s is None:
            return 0
        columns["session"] = self.others.get("session", self.prompt_tokens)[chosen]
        return int(pd.DataFrame({"at": self.arrival_s[chosen], **columns}).duplicated().sum())


def spread_out(
    arrival_s: NDArray[np.float64], spread: Spread, seed: int = 0
) -> NDArray[np.float64]:
    """Arrivals of one time stamp spread over the bin that it stands for.

    A bin lasts until the next time stamp, and no longer than the median bin: a pause
    between two bins stays one.

    Parameters
    ----------
    arrival_s : float64 array, rank 1
        In order, seconds.
    spread : {"even", "random"}
        The j-th of k at j/k of the bin, or k uniform draws in order.

    Returns
    -------
    float64 array, rank 1
        In order.

    Raises
    ------
    ConfigError
        An unknown way, or one time stamp only.
    """
    if spread not in SPREADS:
        raise ConfigError("spread", "", spread, ", ".join(SPREADS))
    stamps, first, counts = np.unique(arrival_s, return_index=True, return_counts=True)
    if len(stamps) < 2:
        raise ConfigError("spread", "", spread, "none: the trace has one time stamp only")
    typical = float(np.median(np.diff(stamps)))
    width = np.minimum(np.append(np.diff(stamps), typical), typical)
    if spread == "even":
        part = (np.arange(len(arrival_s)) - np.repeat(first, counts)) / np.repeat(
            counts, counts
        )
    else:
        part = np.random.default_rng(seed).random(len(arrival_s))
    return np.sort(np.repeat(stamps, counts) + part * np.repeat(width, counts), kind="stable")
