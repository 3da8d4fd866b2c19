"""Tables of reference figures: CSV files read strictly, bad cells named by their place."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from chipsim.errors import ConfigError

LARGEST = 10**12
"""Whole numbers above this are no shape of a tensor."""


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

    def whole(self, column: str, default: int | None = None) -> int:
        """A cell as a whole number from 1 (``64.0`` is one), or the default if empty."""
        if default is not None and not self.has(column):
            return default
        value = self.positive(column)
        if value != int(value) or value > LARGEST:
            raise self.refuse(column, f"a whole number from 1 to {LARGEST:.0e}")
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
        """Name of the file without its ending."""
        return Path(self.name).stem

    def require(self, columns: Iterable[str]) -> None:
        """Refuse a table that lacks a column.

        Raises
        ------
        ConfigError
            Names the file and the first column that is missing.
        """
        for column in columns:
            if column not in self.columns:
                raise ConfigError(self.name, column, None, "a column of this name")


def read_table(path: Path) -> Table:
    """Read a CSV file; lines at its head that begin with ``#`` are comments.

    Raises
    ------
    ConfigError
        Not readable as UTF-8 text, a column named twice, or a row whose number of
        cells is not that of the columns.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (UnicodeDecodeError, OSError) as error:
        raise ConfigError(path.name, "", str(error)[:60], "a CSV file in UTF-8") from None
    head = tuple(line for line in lines if line.startswith("#"))
    body = [(number, line) for number, line in enumerate(lines, 1) if _is_data(line)]
    if not body:
        return Table(path.name, head, (), ())
    cells = _split(path.name, [line for _, line in body])
    columns = tuple(next(cells))
    for column in columns:
        if columns.count(column) > 1:
            raise ConfigError(path.name, "header", column, "each column once")
    rows = tuple(
        Row(f"{path.name}: line {number}", _named(path.name, number, columns, values))
        for (number, _), values in zip(body[1:], cells, strict=True)
    )
    return Table(path.name, head, columns, rows)


def _is_data(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _split(name: str, lines: list[str]) -> Iterator[list[str]]:
    try:
        for values in csv.reader(lines, strict=True):
            yield [value.strip() for value in values]
    except csv.Error as error:
        raise ConfigError(name, "", str(error), "comma-separated values") from None


def _named(
    name: str, number: int, columns: tuple[str, ...], values: list[str]
) -> dict[str, str]:
    if len(values) != len(columns):
        where = f"{name}: line {number}"
        raise ConfigError(where, "", f"{len(values)} cells", f"{len(columns)} cells")
    return dict(zip(columns, values, strict=True))
