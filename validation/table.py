"""Tables of reference figures: CSV files read strictly, bad cells named by their place."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from chipsim.errors import ConfigError

LARGEST = 10**12
"""Whole numbers above this are no shape of a tensor."""

SHORTEST, LONGEST = 1e-12, 1e6
"""Seconds outside of these are no latency of an operator or a model."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table; cells are text until they are asked for.

    Attributes
    ----------
    where : str
        File and line, for messages.
    """

    where: str
    cells: dict[str, str]

    def has(self, column: str) -> bool:
        """Whether the table has the column and this row a value in it."""
        return bool(self.cells.get(column))

    def text(self, column: str) -> str:
        """A cell as it stands; `ConfigError` if it is empty."""
        if not self.has(column):
            raise self.refuse(column, "a value")
        return self.cells[column]

    def positive(self, column: str) -> float:
        """A cell as a number above 0; `ConfigError` if it is none, infinite or NaN."""
        try:
            value = float(self.text(column))
        except ValueError:
            value = math.nan
        if not 0.0 < value < math.inf:
            raise self.refuse(column, "a number above 0")
        return value

    def number(self, column: str) -> float:
        """A cell as a number from 0; `ConfigError` if it is none, infinite or NaN."""
        try:
            value = float(self.text(column))
        except ValueError:
            value = math.nan
        if not 0.0 <= value < math.inf:
            raise self.refuse(column, "a number from 0")
        return value

    def seconds(self, column: str) -> float:
        """A cell as a latency; `ConfigError` if it is none that can be."""
        value = self.positive(column)
        if not SHORTEST <= value <= LONGEST:
            raise self.refuse(column, f"seconds from {SHORTEST:.0e} to {LONGEST:.0e}")
        return value

    def whole(self, column: str, default: int | None = None, least: int = 1) -> int:
        """A cell as a whole number (``64.0`` is one), or the default if empty."""
        if default is not None and not self.has(column):
            return default
        text = self.text(column)
        value = 0.0 if least == 0 and text in ("0", "0.0") else self.positive(column)
        if value != int(value) or not least <= value <= LARGEST:
            raise self.refuse(column, f"a whole number from {least} to {LARGEST:.0e}")
        return int(value)

    def choice(self, column: str, allowed: Iterable[str]) -> str:
        """A cell that must be one of a few words."""
        value = self.text(column)
        if value not in allowed:
            raise self.refuse(column, ", ".join(allowed))
        return value

    def refuse(self, column: str, allowed: str) -> ConfigError:
        """The error that names this row and one of its cells."""
        return ConfigError(self.where, column, self.cells.get(column, ""), allowed)


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV file: its name, the comment lines at its head, its columns and rows."""

    name: str
    head: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def stem(self) -> str:
        """Name of the file without its ending, in lower case."""
        return Path(self.name).stem.lower()

    def lacks(self, needed: Iterable[str]) -> str:
        """Why the table cannot be read without the columns it needs; empty: it has them."""
        if not self.columns:
            return "empty file"
        missing = [column for column in needed if column not in self.columns]
        if not missing:
            return ""
        doubt = "; is the separator a comma?" if len(self.columns) == 1 else ""
        return f"no column {', '.join(missing)}{doubt}"


def read_header(path: Path) -> Table:
    """Columns of a CSV file, without its rows: enough to tell what the file is.

    Raises
    ------
    ConfigError
        Not readable as UTF-8 text.
    """
    text = _text(path)
    _, columns = next(_records(path.name, text), (0, []))
    return Table(path.name, _head(text), tuple(columns), ())


def read_table(path: Path) -> Table:
    """Read a CSV file; lines at its head that begin with ``#`` are comments.

    A line break in a quoted cell is read as a space; the row is named by its first line.

    Raises
    ------
    ConfigError
        Not readable as UTF-8 text, a column named twice, or a row whose number of
        cells is not that of the columns.
    """
    text = _text(path)
    records = _records(path.name, text)
    columns = tuple(next(records, (0, []))[1])
    for column in columns:
        if columns.count(column) > 1:
            raise ConfigError(path.name, "header", column, "each column once")
    rows = tuple(
        Row(f"{path.name}: line {number}", _named(path.name, number, columns, values))
        for number, values in records
    )
    return Table(path.name, _head(text), columns, rows)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (UnicodeDecodeError, OSError) as error:
        raise ConfigError(path.name, "", str(error)[:60], "a CSV file in UTF-8") from None


def _head(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.splitlines() if line.startswith("#"))


def _is_data(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _records(name: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """Records with the number of the line that each begins on; a cell may span lines."""
    lines = enumerate(io.StringIO(text), 1)
    for number, first in lines:
        if not _is_data(first):
            continue
        record = itertools.chain([first], (line for _, line in lines))
        try:
            values = next(csv.reader(record, strict=True))
        except csv.Error as error:
            where = f"{name}: line {number}"
            raise ConfigError(where, "", str(error), "comma-separated values") from None
        yield number, [" ".join(value.split()) for value in values]


def _named(
    name: str, number: int, columns: tuple[str, ...], values: list[str]
) -> dict[str, str]:
    if len(values) != len(columns):
        where = f"{name}: line {number}"
        raise ConfigError(where, "", f"{len(values)} cells", f"{len(columns)} cells")
    return dict(zip(columns, values, strict=True))
