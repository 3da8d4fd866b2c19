"""Rows that hold a few plain conditions: ``cost_usd <= 900 and bound = memory``.

text -> clauses (column, comparison, values) -> which rows hold all of them
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from chipsim.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
"""Comparisons, those of two signs first."""

AND = re.compile(r"\s+and\s+|\s*,\s*", re.IGNORECASE)
CLAUSE = re.compile(r"\s*(?P<column>[^<>=!]+?)\s*(?P<sign><=|>=|!=|<|>|=)\s*(?P<value>.*?)\s*")
OR = "|"
MOST_CLAUSES = 40
ALLOWED = "conditions such as cost_usd <= 900 and bound = memory|compute"


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition on one column.

    Attributes
    ----------
    values : tuple of str
        Alternatives; with ``!=`` none of them.
    """

    column: str
    sign: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {OR.join(self.values)}"

    def holds(self, table: pd.DataFrame) -> npt.NDArray[np.bool_]:
        """Which rows hold it; a row that lacks the number does not.

        Raises
        ------
        ConfigError, UnknownNameError
            No such column, or a value that is no number where the column has numbers.
        """
        if self.column not in table.columns:
            raise UnknownNameError("column", self.column, table.columns)
        column, compare = table[self.column], COMPARISONS[self.sign]
        numbers = column.dtype != bool and column.dtype.kind in "fiu"
        if not numbers and self.sign not in ("=", "!="):
            raise ConfigError("filter", self.column, str(self), "= or !=: the column has text")
        cells = column.to_numpy(dtype=float) if numbers else column.astype(str).to_numpy()
        found = [compare(cells, self._value(each, numbers)) for each in self.values]
        combine = np.logical_and if self.sign == "!=" else np.logical_or
        holds = combine.reduce(found) & (np.isfinite(cells) if numbers else True)
        return np.asarray(holds, dtype=bool)

    def _value(self, text: str, numbers: bool) -> float | str:
        if not numbers:
            return text
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise ConfigError("filter", self.column, text, "a number")
        return value


def parse_filter(text: str) -> list[Clause]:
    """Conditions of a text; none for an empty one.

    Raises
    ------
    ConfigError
        A piece that is no condition, or too many.

    Examples
    --------
    >>> [str(clause) for clause in parse_filter("cost_usd<=900 and bound = memory|link")]
    ['cost_usd <= 900', 'bound = memory|link']
    """
    pieces = [piece for piece in AND.split(text.strip()) if piece]
    if len(pieces) > MOST_CLAUSES:
        raise ConfigError("filter", "", f"{len(pieces)} conditions", f"at most {MOST_CLAUSES}")
    return [_clause(piece) for piece in pieces]


def _clause(piece: str) -> Clause:
    match = CLAUSE.fullmatch(piece)
    if match is None or not match["column"]:
        raise ConfigError("filter", "", piece, ALLOWED)
    values = tuple(value.strip() for value in match["value"].split(OR))
    return Clause(match["column"], match["sign"], values)


def filtered(table: pd.DataFrame, text: str) -> pd.DataFrame:
    """Rows that hold every condition; the index stays that of the whole table.

    Raises
    ------
    ConfigError, UnknownNameError
        As `parse_filter` and `Clause.holds`.
    """
    clauses = parse_filter(text)
    if not clauses:
        return table
    return table[np.logical_and.reduce([clause.holds(table) for clause in clauses])]


def narrowed(clauses: list[Clause], column: str, ranges: list[Clause]) -> str:
    """The text with the conditions on a column replaced by others."""
    kept = [clause for clause in clauses if clause.column != column]
    return " and ".join(str(clause) for clause in [*kept, *ranges])
