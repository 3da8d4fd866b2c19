"""Traces as CSV: columns found by name, every cell checked."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from chipsim.cluster import workload_checks as checks
from chipsim.cluster.rows import Rows
from chipsim.cluster.workload import BLOCKS_COLUMN
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

ARRIVAL = (
    "arrival_s", "arrived_at", "arrival_timestamp", "arrival_time", "arrival", "timestamp",
)  # fmt: skip
PROMPT = (
    "prompt_tokens", "input_tokens", "num_prefill_tokens", "input_length", "prompt_size",
    "prompt_len", "input_len", "contexttokens",
)  # fmt: skip
OUTPUT = (
    "output_tokens", "num_decode_tokens", "output_length", "token_size", "output_len",
    "completion_tokens", "generatedtokens",
)  # fmt: skip
SESSION = ("session", "session_id", "sessionid", "conversation_id")
"""Names of columns, the first one ours, the others those of published traces (Splitwise,
Vidur, ServeGen, Azure); compared in lower case, with ``_`` for a blank."""


def detect(data: bytes) -> str | None:
    """Format of a CSV file by the names in its first line; None: not one of ours."""
    names = {_plain(name) for name in _header(data)}
    if {"timestamp", "contexttokens", "generatedtokens"} <= names:
        return "azure"
    if {"timestamp", "request_tokens", "response_tokens"} <= names:
        return "burstgpt"
    if not (names & set(PROMPT) and names & set(OUTPUT)):
        return None
    return "csv" if names & set(ARRIVAL) else "lengths"


def azure(data: bytes, file: str) -> Rows:
    """Azure's traces of 2023 (7 digits of a second) and 2024 (6 digits, with a zone)."""
    table = _table(data, file)
    at = _times(table, file, _column(table, file, ("timestamp",)))
    return Rows(
        file, "azure", at, *_tokens(table, file, ("contexttokens",), ("generatedtokens",))
    )


def burstgpt(data: bytes, file: str) -> Rows:
    """BurstGPT: seconds, request and response tokens; sessions where it has them."""
    table = _table(data, file)
    at = _numbers(table, file, _column(table, file, ("timestamp",)))
    prompt, output = _tokens(table, file, ("request_tokens",), ("response_tokens",))
    return Rows(file, "burstgpt", at, prompt, output, _sessions(table, file))


def generic(data: bytes, file: str) -> Rows:
    """Seconds, prompt and output tokens; sessions, turns, priorities and blocks if any."""
    table = _table(data, file)
    name = _column(table, file, ARRIVAL)
    at = _times(table, file, name) if _is_dates(table[name]) else _numbers(table, file, name)
    others = _sessions(table, file)
    for column, least in (("parent", -1), ("priority", -checks.MOST_TOKENS)):
        if column in table:
            others[column] = _whole(table, file, column, least)
    if "think_s" in table:
        others["think_s"] = _numbers(table, file, "think_s")
    if "parent" in others and (others["parent"] >= len(table)).any():
        row = int(np.argmax(others["parent"] >= len(table)))
        allowed = f"-1 to {len(table) - 1}, a row of the file"
        raise ConfigError(file, _place(row, "parent"), int(others["parent"][row]), allowed)
    prompt, output = _tokens(table, file, PROMPT, OUTPUT)
    blocks = _blocks(table, file)
    return Rows(
        file, "csv", at, prompt, output, others, *blocks, relative=_plain(name) != "arrival_s"
    )


def lengths(data: bytes, file: str) -> Rows:
    """Prompt and output tokens, no arrivals."""
    table = _table(data, file)
    return Rows(file, "lengths", None, *_tokens(table, file, PROMPT, OUTPUT))


def _header(data: bytes) -> list[str]:
    line = data.lstrip().split(b"\n", 1)[0][:10_000].decode("utf-8", "replace")
    return [name.strip().strip('"') for name in line.split(",")]


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_")


def _table(data: bytes, file: str) -> pd.DataFrame:
    """The columns by plain name (`ConfigError`: no table, or no rows)."""
    import pandas as pd
    import pyarrow as pa

    try:
        table = _parsed(data)
    except (pa.ArrowException, ValueError) as error:
        line = " ".join(str(error).split())[:120]
        raise ConfigError(
            file, "", line, "a CSV table in UTF-8, its first line names"
        ) from None
    if len(table) == 0:
        raise ConfigError(file, "", "0 rows", "a request per row below the names")
    table.columns = pd.Index([_plain(str(name)) for name in table.columns])
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise ConfigError(file, "", f"column {twice[0]} twice", "a column that stands once")
    return table


def _parsed(data: bytes) -> pd.DataFrame:
    """A table as it stands (`pyarrow.ArrowException`, `ValueError`)."""
    import pyarrow as pa
    from pyarrow import csv

    # One block: a column's type follows from all of its cells, not from the first ones.
    options = csv.ReadOptions(block_size=min(max(len(data), 1 << 20), 1 << 30))
    texts = [name for name in _header(data) if BLOCKS_COLUMN.fullmatch(_plain(name))]
    kept = csv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string()))
    read = csv.read_csv(io.BytesIO(data), read_options=options, convert_options=kept)
    if any(pa.types.is_binary(kind) for kind in read.schema.types):
        raise ValueError("bytes that are no text")
    table: pd.DataFrame = read.to_pandas()
    return table


def _column(table: pd.DataFrame, file: str, known: Sequence[str]) -> str:
    for name in known:
        if name in table:
            return name
    raise ConfigError(
        file, "columns", ", ".join(table.columns), f"one named {' or '.join(known)}"
    )


def _tokens(
    table: pd.DataFrame, file: str, prompt: Sequence[str], output: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first, second = (_column(table, file, known) for known in (prompt, output))
    return _whole(table, file, first), _whole(table, file, second)


def _sessions(table: pd.DataFrame, file: str) -> dict[str, NDArray[Any]]:
    """Sessions as numbers; names of sessions are counted through, empty ones are none."""
    import pandas as pd

    for name in SESSION:
        if name in table:
            if table[name].isna().any() or not pd.api.types.is_numeric_dtype(table[name]):
                return {"session": pd.factorize(table[name])[0].astype(np.int64)}
            return {"session": _whole(table, file, name, -1, 2**51)}
    return {}


def _blocks(table: pd.DataFrame, file: str) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Block ids, parted by blanks, of a column ``blocks_of_512``."""
    none = np.empty(0, np.int64)
    name = next((name for name in table if BLOCKS_COLUMN.fullmatch(str(name))), None)
    if name is None:
        return none, none, 0
    cells = table[name]
    parts = [str(cell).split() for cell in cells]
    counts = np.array([len(part) for part in parts], np.int64)
    try:
        ids = np.array([block for part in parts for block in part], dtype=np.int64)
    except (ValueError, OverflowError):
        raise ConfigError(
            file, str(name), cells.iloc[0], "whole numbers, blanks between"
        ) from None
    tokens = int(str(name).rsplit("_", 1)[1])
    return np.concatenate([[0], np.cumsum(counts)]), ids, tokens


def _is_dates(column: pd.Series[Any]) -> bool:
    """Whether a column of times holds dates rather than seconds."""
    first = str(column.iloc[0])
    return column.dtype.kind == "M" or ("-" in first[1:] and ":" in first)


def _times(table: pd.DataFrame, file: str, name: str) -> NDArray[np.float64]:
    """Dates as seconds since the first row's; exact to 0.1 µs over centuries."""
    import pandas as pd

    cells = table[name]
    texts = cells if cells.dtype.kind == "M" else cells.astype(str)
    dates = pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
    if dates.isna().any():
        row = int(np.argmax(dates.isna().to_numpy()))
        allowed = "a date and time, e.g. 2023-11-16 18:17:03.9799600"
        raise ConfigError(file, _place(row, name), cells.iloc[row], allowed)
    ticks = dates.to_numpy("datetime64[ns]").astype(np.int64)
    return np.asarray((ticks - ticks.min()) / 1e9)


def _numbers(table: pd.DataFrame, file: str, name: str) -> NDArray[np.float64]:
    """Seconds, finite and from 0."""
    values = _as_numbers(table, file, name).astype(np.float64)
    most = checks.MOST_SECONDS
    bad = ~((values >= 0.0) & (values <= most))
    if bad.any():
        row = int(np.argmax(bad))
        allowed = f"a number of seconds from 0 to {most:.0e}"
        raise ConfigError(file, _place(row, name), values[row].item(), allowed)
    return values


def _whole(
    table: pd.DataFrame, file: str, name: str, least: int = 0, most: int = checks.MOST_TOKENS
) -> NDArray[np.int64]:
    """Whole numbers of a range."""
    values = _as_numbers(table, file, name)
    bad = ~((values >= least) & (values <= most) & (values == np.rint(values)))
    if bad.any():
        row = int(np.argmax(bad))
        allowed = f"a whole number from {least} to {most}"
        raise ConfigError(file, _place(row, name), values[row].item(), allowed)
    return values.astype(np.int64)


def _as_numbers(table: pd.DataFrame, file: str, name: str) -> NDArray[Any]:
    """A column of numbers; an empty or other cell is an error."""
    import pandas as pd

    cells = table[name]
    numeric = cells.dtype.kind in "iuf"
    values = cells if numeric else pd.to_numeric(cells.astype(str), errors="coerce")
    if values.isna().any():
        row = int(np.argmax(values.isna().to_numpy()))
        cell = None if pd.isna(cells.iloc[row]) else cells.iloc[row]
        raise ConfigError(file, _place(row, name), cell, "a number in every row")
    return np.asarray(values.to_numpy())


def _place(row: int, column: str) -> str:
    return f"row {row + 1}, {column}"
