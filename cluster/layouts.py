"""Every way to put owned chips to use: which instances of which kind, in which role.

kinds of every chip -> roles -> counts that leave no room for another instance -> Layouts
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.cluster.inventory import Kind, Owned
    from chipsim.cluster.scenario import Role

MOST_LAYOUTS = 500_000
"""Layouts that a search takes."""


class Column(NamedTuple):
    """Instances of one kind in one role: a pool that layouts may have."""

    kind: Kind
    role: Role

    @property
    def name(self) -> str:
        """As ``prefill-h200-sxm-tp4``."""
        short = self.kind.plan.replace("=", "").replace(",", "-")
        chip = self.kind.chip.rpartition("/")[2].removesuffix(".yaml")
        return f"{self.role}-{chip}-{short}"


@dataclass(frozen=True)
class Layouts:
    """Counts of every column, a row for each layout.

    Attributes
    ----------
    columns : tuple of Column
    counts : array of int, shape (layouts, columns)
    """

    columns: tuple[Column, ...]
    counts: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.counts)

    def text(self, row: int) -> str:
        """As ``6 x tp=4 prefill + 10 x tp=4 decode on h200-sxm``."""
        parts: dict[str, list[str]] = {}
        for column, count in self.pools(row):
            said = f"{count} x {column.kind.plan} {column.role}"
            parts.setdefault(column.kind.chip, []).append(said)
        return "; ".join(f"{' + '.join(said)} on {chip}" for chip, said in parts.items())

    def pools(self, row: int) -> list[tuple[Column, int]]:
        """Columns that a layout has, with their counts."""
        return [
            (column, int(count))
            for column, count in zip(self.columns, self.counts[row], strict=True)
            if count
        ]


def layouts(inventory: Sequence[Owned], kinds: Mapping[str, Sequence[Kind]]) -> Layouts:
    """All layouts of an inventory: mixed throughout, or prefill and decode apart.

    Each chip has one kind of instance per role; all splits of its chips between prefill and
    decode are there, those that leave it to one role too where another chip has the other.

    Raises
    ------
    ConfigError
        More than `MOST_LAYOUTS`.

    Examples
    --------
    >>> from chipsim.cluster.inventory import Kind, Owned
    >>> found = layouts([Owned("h200-sxm", 8)], {"h200-sxm": [Kind("h200-sxm", "tp=4", 4)]})
    >>> [found.text(row) for row in range(len(found))]
    ['2 x tp=4 mixed on h200-sxm', '1 x tp=4 prefill + 1 x tp=4 decode on h200-sxm']
    """
    columns = tuple(
        Column(kind, role)
        for role in ("mixed", "prefill", "decode")
        for owned in inventory
        for kind in kinds[owned.chip]
    )
    place = {column: number for number, column in enumerate(columns)}
    ways = [
        [list(_mixed(owned, kinds[owned.chip])) for owned in inventory],
        [list(_apart(owned, kinds[owned.chip])) for owned in inventory],
    ]
    size = sum(int(np.prod([float(len(each)) for each in way])) for way in ways)
    if size > MOST_LAYOUTS:
        allowed = f"at most {MOST_LAYOUTS:,}: fewer chips, or --plan"
        raise ConfigError("--inventory", "", f"{size:,} layouts", allowed)
    rows = []
    for chosen in itertools.chain.from_iterable(itertools.product(*way) for way in ways):
        counts = np.zeros(len(columns), np.int64)
        roles = set()
        for column, count in itertools.chain.from_iterable(chosen):
            counts[place[column]] += count
            roles.add(column.role)
        if roles not in ({"prefill"}, {"decode"}):
            rows.append(counts)
    return Layouts(columns, np.array(rows, np.int64).reshape(-1, len(columns)))


Way = tuple[tuple[Column, int], ...]


def _mixed(owned: Owned, kinds: Sequence[Kind]) -> Iterator[Way]:
    for kind in kinds:
        yield ((Column(kind, "mixed"), owned.chips // kind.chips),)


def _apart(owned: Owned, kinds: Sequence[Kind]) -> Iterator[Way]:
    for kind in kinds:
        for role in ("prefill", "decode"):
            yield ((Column(kind, role), owned.chips // kind.chips),)
    for first, second in itertools.product(kinds, kinds):
        for count in range(1, owned.chips // first.chips + 1):
            left = (owned.chips - count * first.chips) // second.chips
            if left and _full(owned, first, second, count, left):
                yield ((Column(first, "prefill"), count), (Column(second, "decode"), left))


def _full(owned: Owned, first: Kind, second: Kind, count: int, left: int) -> bool:
    """Whether no chips are left idle on which another prefill instance would fit."""
    return owned.chips - count * first.chips - left * second.chips < first.chips
