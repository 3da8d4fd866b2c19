"""A latency table from measured steps.

rows of prefill and decode steps -> lines between them -> LatencyTable
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from chipsim.cluster.latency_table import LatencyTable, StepArrays
from chipsim.cluster.sampling import octave_axis
from chipsim.errors import ConfigError
from chipsim.ops.checks import positive, whole

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]

COLUMNS = ("phase", "batch", "tokens", "latency_s")
"""Of a file of measured steps: ``tokens`` of each prompt, or in decode of each context."""

MOST = 1e9
"""Of a number in such a file: no step has so many tokens, or lasts so long."""


def measured_table(
    steps: pd.DataFrame | str | Path,
    *,
    mixed_factor: float = 1.0,
    most_tokens: int = 8192,
    most_sequences: int = 256,
    most_context: int = 32768,
    chips: int = 1,
    name: str = "",
) -> LatencyTable:
    """A table that stands in for the performance model.

    Prefill goes with the tokens of a step in all (of several rows with as many, the one of
    fewest prompts), decode with sequences and their mean context: straight lines between
    rows, and on beyond the last two. A step of prompts beside ``n`` decodes takes
    ``mixed_factor`` times a prefill of n more tokens, and what their contexts add.

    Parameters
    ----------
    steps : DataFrame or path of a CSV file
        Columns ``phase`` (prefill or decode), ``batch``, ``tokens`` (of each prompt, or of
        each context), ``latency_s``.
    chips : int
        Chips of the instance that was measured.

    Raises
    ------
    ConfigError
        A column that lacks, a value out of range, or fewer than two prefill steps.
    """
    frame, name = _read(steps, name)
    positive(name, "mixed_factor", mixed_factor)
    prefill, decode = (frame[frame["phase"] == phase] for phase in ("prefill", "decode"))
    if prefill["batch"].mul(prefill["tokens"]).nunique() < 2 or decode.empty:
        raise ConfigError(
            name, "phase", "", "two prefill steps of different tokens, and a decode step"
        )
    by_tokens = _prefill(prefill, most_tokens + most_sequences)
    _check_above(name, "prefill", by_tokens)
    bases, contexts = _decode(decode, most_sequences, octave_axis(most_context))
    _check_above(name, "decode", bases[1:, None] + contexts[1:])
    return LatencyTable(
        name=name,
        ranks=1,
        chips=whole(name, "chips", chips),
        batches=np.array([1.0, 2.0]),
        queries=np.array([1.0, 2.0]),
        prefixes=np.array([0.0, 1.0]),
        limit=0,
        seconds=StepArrays(
            prefill=by_tokens[: most_tokens + 1],
            mixed=mixed_factor * by_tokens,
            decode=bases,
            head=np.zeros(most_sequences + 1),
            prompts=np.zeros((2, 2, 2)),
            contexts=np.stack([contexts, np.zeros_like(contexts)]),
        ),
    )


def _read(steps: pd.DataFrame | str | Path, name: str) -> tuple[pd.DataFrame, str]:
    import pandas as pd

    if isinstance(steps, pd.DataFrame):
        frame, name = steps, name or "measured steps"
    else:
        name = name or str(steps)
        try:
            frame = pd.read_csv(steps)
        except (OSError, ValueError) as error:
            raise ConfigError(name, "", str(error), "a readable CSV file") from None
    for column in COLUMNS:
        if column not in frame.columns:
            raise ConfigError(name, column, "missing", f"columns {', '.join(COLUMNS)}")
    unknown = set(frame["phase"]) - {"prefill", "decode"}
    if unknown:
        raise ConfigError(name, "phase", min(map(str, unknown)), "prefill, decode")
    for column in COLUMNS[1:]:
        values = pd.to_numeric(frame[column], errors="coerce").to_numpy(np.float64)
        least = 0.0 if column == "latency_s" else 1.0
        bad = ~(values <= MOST) | (values < least) | (values == 0.0)
        if bad.any():
            row = int(np.argmax(bad))
            raise ConfigError(
                name,
                f"row {row + 2}.{column}",
                frame[column].iloc[row],
                f"a number above 0, at most {MOST:g}",
            )
    return frame, name


def _check_above(name: str, phase: str, seconds: Floats) -> None:
    """Refuse lines that go below 0 before the first row or behind the last."""
    if seconds.min() < 0.0:
        allowed = "rows whose lines go on above 0: a step of few tokens, and one of many"
        raise ConfigError(name, phase, f"{seconds.min():.3g} s", allowed)


def _prefill(rows: pd.DataFrame, most: int) -> Floats:
    """Seconds at 0 ... ``most`` tokens."""
    rows = rows.assign(total=rows["batch"] * rows["tokens"]).sort_values(["total", "batch"])
    rows = rows.drop_duplicates("total")
    seconds = _line(np.arange(most + 1), rows["total"], rows["latency_s"])
    seconds[0] = 0.0
    return seconds


def _decode(rows: pd.DataFrame, most: int, points: Floats) -> tuple[Floats, Floats]:
    """Seconds without context by sequences, and what contexts of each point add."""
    batches = np.sort(rows["batch"].unique())
    lines = []
    for batch in batches:
        of = rows[rows["batch"] == batch].groupby("tokens")["latency_s"].median()
        lines.append(_line(points, of.index, of))
    wide = np.array(lines)
    whole_numbers = np.arange(most + 1)
    full = np.stack([_line(whole_numbers, batches, column) for column in wide.T], axis=1)
    full[0] = 0.0
    bases = full[:, 0].copy()
    return bases, full - bases[:, None]


def _line(at: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Straight between points, beyond them as the two at the end; flat with one point."""
    at, x, y = (np.asarray(values, np.float64) for values in (at, x, y))
    found = np.interp(at, x, y)
    if len(x) > 1:
        first, last = (y[1] - y[0]) / (x[1] - x[0]), (y[-1] - y[-2]) / (x[-1] - x[-2])
        found = np.where(at < x[0], y[0] + (at - x[0]) * first, found)
        found = np.where(at > x[-1], y[-1] + (at - x[-1]) * last, found)
    return found
