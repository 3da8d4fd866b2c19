"""A result opened without trust: rows of a file, of a browser, of anywhere.

bytes (+ bytes of the sidecar) -> limits -> table of plain columns -> Stored

Nothing is unpickled or evaluated, and a file says how large it is before it is read.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from chipsim.errors import ChipsimError, ConfigError
from chipsim.explore.cuts import CutsResult, cuts_of
from chipsim.explore.setup import Setup
from chipsim.explore.store import Stored, read_back, sidecar

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 64 * 2**20
"""Of one file."""

MOST_ROWS, MOST_COLUMNS = 1_000_000, 300

MOST_CELL_BYTES = 2**30
"""Of a Parquet file's columns, uncompressed."""

DAMAGE = (
    *(ValueError, TypeError, LookupError, AttributeError),
    *(OSError, ArithmeticError, MemoryError, RuntimeError),
)
"""What readers of files raise over bytes that are not what they seem; RuntimeError is that of
nesting without end, and of what a reader has not learnt."""

REQUESTS = "requests.parquet"
"""Of a simulation's folder: which request waited how long."""

ENDINGS = (".parquet", ".csv", ".json")


def open_result(path: str | Path) -> Stored:
    """Read a saved result, or the rows of any table or ``--json`` output.

    Parameters
    ----------
    path : path
        A file, or the folder of a simulation: its requests.

    Raises
    ------
    ConfigError, ChipsimError
        As `opened`; a file that is missing or cannot be read.
    """
    path = Path(path)
    if path.is_dir():
        path /= REQUESTS
    side = sidecar(path)
    return opened(path, _bytes(path), _bytes(side) if side.exists() else None)


def opened(path: Path, rows: bytes, side: bytes | None) -> Stored:
    """A result from the content of its files; without a sidecar its configuration is empty.

    Parameters
    ----------
    path : Path
        Names the result; its ending says what the rows are.

    Raises
    ------
    ConfigError, ChipsimError
        An unknown ending, a file that is too large, damaged, or not what its ending says,
        rows that the sidecar was not saved with.
    """
    name = path.name
    if path.suffix not in ENDINGS:
        raise ConfigError(name, "", path.suffix, f"a name ending in {', '.join(ENDINGS)}")
    if len(rows) > MOST_BYTES:
        raise ConfigError(
            name, "", f"{len(rows) / 2**20:.0f} MiB", f"at most {MOST_BYTES >> 20} MiB"
        )
    if not rows:
        raise ChipsimError(f"{name}: is empty")
    try:
        _check_parquet(path, rows)
        stored = read_back(path, rows, side) if side is not None else _alone(path, rows)
    except DAMAGE as error:
        told = " ".join(str(error).split())[:120] or type(error).__name__
        raise ChipsimError(f"{name}: is damaged, or no {path.suffix} file: {told}") from None
    _check_size(name, *stored.table.shape)
    return stored


def cuts_again(stored: Stored) -> CutsResult:
    """Stored cuts computed again, operators included.

    Raises
    ------
    ConfigError
        Not cuts, or a configuration that is not valid.
    """
    where, configuration = sidecar(stored.path).name, stored.configuration
    if configuration.get("kind") != "cuts":
        raise ConfigError(where, "kind", configuration.get("kind"), "cuts")
    return cuts_of(Setup.from_configuration(where, configuration), configuration["points"])


def _alone(path: Path, rows: bytes) -> Stored:
    table, facts = _READERS[path.suffix](rows)
    return Stored(path, table, {}, str(facts.get("chipsim", "")), None)


def _check_parquet(path: Path, rows: bytes) -> None:
    """Refuse by its own account of its size, before anything is unpacked."""
    if path.suffix != ".parquet":
        return
    import pyarrow.parquet as pq

    about = pq.ParquetFile(io.BytesIO(rows)).metadata
    _check_size(path.name, about.num_rows, about.num_columns)
    size = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    if size > MOST_CELL_BYTES:
        allowed = f"at most {MOST_CELL_BYTES >> 20} MiB"
        raise ConfigError(path.name, "", f"{size / 2**20:.0f} MiB unpacked", allowed)


def _check_size(name: str, rows: int, columns: int) -> None:
    if not (1 <= rows <= MOST_ROWS and 1 <= columns <= MOST_COLUMNS):
        allowed = f"1 to {MOST_ROWS:,} rows of 1 to {MOST_COLUMNS} columns"
        raise ConfigError(name, "", f"{rows:,} rows of {columns} columns", allowed)


def _parquet(rows: bytes) -> tuple[pd.DataFrame, dict[str, Any]]:
    import pandas as pd

    return _plain(pd.read_parquet(io.BytesIO(rows), engine="pyarrow")), {}


def _csv(rows: bytes) -> tuple[pd.DataFrame, dict[str, Any]]:
    import pandas as pd

    return _plain(pd.read_csv(io.BytesIO(rows), nrows=MOST_ROWS + 1)), {}


def _json(rows: bytes) -> tuple[pd.DataFrame, dict[str, Any]]:
    import pandas as pd

    content = json.loads(rows, parse_constant=_no_constant)
    found = content.get("rows") if isinstance(content, dict) else content
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise ValueError("a list of objects, or an object with one under rows, is needed")
    return _plain(pd.DataFrame(found)), content if isinstance(content, dict) else {}


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers, truth values and text only; what is nested becomes JSON text."""
    import pandas as pd

    table = table.reset_index(drop=True)
    table.columns = [str(name) for name in table.columns]
    for name in table.columns:
        column = table[name]
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            table[name] = column.astype(float if column.isna().any() else column.dtype)
        elif not pd.api.types.is_bool_dtype(column):
            table[name] = [_text(cell) for cell in column]
    return table


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, dict | list):
        return json.dumps(cell, default=str)
    return "" if cell is None or cell != cell else str(cell)  # noqa: PLR0124 - NaN


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            size = f"{path.stat().st_size / 2**20:.0f} MiB"
            raise ConfigError(path.name, "", size, f"at most {MOST_BYTES >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise ChipsimError(f"{path}: cannot be read: {error.strerror}") from None


_READERS = {".parquet": _parquet, ".csv": _csv, ".json": _json}
