"""Papers in one command: their figures beside ours, with what was assumed.

name -> simulations and estimates -> Reproduction (rows, assumptions, sensitivity, remarks)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from chipsim.cluster.threads import side_by_side
from chipsim.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.cluster.journal import Journal

Kind = Literal["physics", "policy", "data", "input", "anchor"]
"""What a difference would be about: chips, scheduling; or a figure that is not judged."""

JUDGED = ("physics", "policy")

REPRODUCTIONS = {
    "spad": "chipsim.validation.reproduce_spad",
    "splitwise": "chipsim.validation.reproduce_splitwise",
    "toy-queue": "chipsim.validation.reproduce_toy_queue",
}
"""By name, the module whose function ``reproduction`` makes it."""

Told = Callable[[str], None]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a paper beside ours.

    Attributes
    ----------
    figure : str
    kind : str
        `Kind`.
    published, simulated : float
        ``simulated`` is None where there is none; ``note`` says why.
    unit : str
        ``1`` of shares and ratios, else ``machines``, ``s``, ``USD``, ``W`` …
    tolerance : float or None
        Largest difference that counts as agreement; None where none was set.
    note : str
        The rule, the splits, the range over seeds.
    """

    figure: str
    kind: Kind
    published: float
    simulated: float | None
    unit: str
    tolerance: float | None = None
    note: str = ""

    @property
    def difference(self) -> float | None:
        """Simulated less published."""
        return None if self.simulated is None else self.simulated - self.published

    @property
    def within(self) -> bool | None:
        """Whether the difference is tolerated; None where it is not judged."""
        if self.kind not in JUDGED or self.tolerance is None:
            return None
        off = self.difference
        return off is not None and abs(off) <= self.tolerance * (1.0 + 1e-9)

    def record(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "figure": self.figure,
            "kind": self.kind,
            "published": self.published,
            "simulated": self.simulated,
            "unit": self.unit,
            "difference": self.difference,
            "tolerance": self.tolerance,
            "within": self.within,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Assumption:
    """A choice that figures rest on: ``origin`` is ``published`` or ``chosen``."""

    name: str
    value: Any
    origin: Literal["published", "chosen"]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Shift:
    """How a figure moves with an assumption."""

    assumption: str
    value: str
    figure: str
    base: float | None
    changed: float | None
    note: str = ""

    @property
    def shift(self) -> float | None:
        """Changed less base; None where either has no answer."""
        if self.base is None or self.changed is None:
            return None
        return self.changed - self.base


@dataclass(frozen=True)
class Reproduction:
    """What came of reproducing a paper.

    Attributes
    ----------
    name, title, source : str
    rows : tuple of Figure
    assumptions : tuple of Assumption
    sensitivity : tuple of Shift
    remarks : tuple of str
        What a reader should know before quoting a row.
    curves : dict of str to callable
        What the report draws, by name: tables that are made when they are asked for.
    quick : bool
        Whether rows were left out, or traces shortened.
    wall_s : float
    """

    name: str
    title: str
    source: str
    rows: tuple[Figure, ...]
    assumptions: tuple[Assumption, ...]
    sensitivity: tuple[Shift, ...] = ()
    remarks: tuple[str, ...] = ()
    curves: dict[str, Callable[[], pd.DataFrame]] = field(default_factory=dict)
    quick: bool = False
    wall_s: float = 0.0

    @property
    def missed(self) -> list[Figure]:
        """Judged rows whose difference is not tolerated."""
        return [row for row in self.rows if row.within is False]

    def frame(self) -> pd.DataFrame:
        """The rows as a table: keys of `Figure.record`."""
        import pandas as pd

        return pd.DataFrame([row.record() for row in self.rows])

    def record(self) -> dict[str, Any]:
        """Everything but the curves in plain values."""
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "quick": self.quick,
            "judged": sum(row.within is not None for row in self.rows),
            "missed": len(self.missed),
            "rows": [row.record() for row in self.rows],
            "assumptions": [asdict(each) for each in self.assumptions],
            "sensitivity": [asdict(each) | {"shift": each.shift} for each in self.sensitivity],
            "remarks": list(self.remarks),
            "wall_s": self.wall_s,
        }


@dataclass(frozen=True)
class Request:
    """How a reproduction is to be made.

    Attributes
    ----------
    quick : bool
        Short traces, one seed, only what a change would break first.
    data : Path or None
        Reference files of the paper's authors, where one has them.
    workers : int
        Runs at once.
    journal : Journal or None
        Verdicts of searches kept from earlier, and for later.
    told : callable
        Told what is worked on.
    """

    quick: bool
    data: Path | None
    workers: int
    journal: Journal | None
    told: Told

    def each(self, work: Callable[[T], R], given: Iterable[T]) -> list[R]:
        """What ``work`` makes of each, in order, as many at once as there are workers.

        Searches that do not wait for each other: while one makes its tables, which takes the
        interpreter, others run clusters, which does not.
        """
        return side_by_side(work, given, self.workers)


def reproduce(
    name: str,
    *,
    quick: bool = False,
    data: str | Path | None = None,
    workers: int = 1,
    journal: Journal | None = None,
    told: Told | None = None,
) -> Reproduction:
    """A paper's figures beside ours.

    Parameters
    ----------
    name : str
        Of `REPRODUCTIONS`.
    quick : bool
        Short traces, one seed, fewer rows.
    data : path, optional
        A folder with reference files of the paper's authors.
    workers : int
        Runs at once, on threads; figures do not depend on it.
    journal : Journal, optional
        Verdicts of searches kept from earlier, and for later.
    told : callable, optional
        Told what is worked on.

    Raises
    ------
    UnknownNameError
        No such reproduction.
    ConfigError
        ``data`` is no folder.
    """
    if name not in REPRODUCTIONS:
        raise UnknownNameError("reproduction", name, REPRODUCTIONS)
    folder = None if data is None else Path(data)
    if folder is not None and not folder.is_dir():
        raise ConfigError("--data", "", str(data), "a folder")
    began = time.perf_counter()
    request = Request(quick, folder, workers, journal, told or _silent)
    made: Reproduction = import_module(REPRODUCTIONS[name]).reproduction(request)
    return replace(made, quick=quick, wall_s=time.perf_counter() - began)


def _silent(text: str) -> None:
    """Nobody listens."""
    del text


def span(values: Sequence[float], digits: int = 1) -> str:
    """``24 to 26``, or one value."""
    low, high = (f"{value:.{digits}f}".rstrip("0").rstrip(".") for value in
                 (min(values), max(values)))  # fmt: skip
    return low if low == high else f"{low} to {high}"
