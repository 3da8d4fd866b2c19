"""How SPAD's machine counts, and what it saves, move with what the paper leaves open.

assumption -> the same searches on a short trace -> Shift; missed rows -> what comes nearest
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from chipsim.cost import chip_cost
from chipsim.validation.references import reference_table
from chipsim.validation.reproduce import Shift
from chipsim.validation.spad_author import author_table
from chipsim.validation.spad_clusters import A100, SYSTEMS, TRACES, Assumptions
from chipsim.validation.spad_search import SHORT_S, Cell, middle, provisioned

if TYPE_CHECKING:
    from chipsim.validation.reproduce import Figure, Request

Changes = tuple[tuple[str, str, dict[str, Any]], ...]

CHANGES: Changes = (
    ("rule", "fixed pools", {"rule": "fixed"}),
    ("prompt_limit", "2048", {"prompt_limit": 2048}),
    ("prompt_limit", "8192, the published simulator's", {"prompt_limit": 8192}),
    ("least", "cost alone", {"least": "own"}),
    ("kv_capacity", "90 % of GiB, the paper's appendix", {"capacity": "binary"}),
    ("kv_link", "100 GB/s", {"link": 100e9}),
    ("max_tokens", "4096", {"max_tokens": 4096}),
    ("max_batch", "64", {"max_batch": 64}),
    ("warm_up", "20 s", {"warm_up_s": 20.0}),
    ("seed", "1", {"seeds": (1,)}),
    ("execution", "llmcompass-tables", {"execution": "llmcompass-tables"}),
)
"""Name, value in words, and fields of `Assumptions`."""

APART: Changes = (
    ("rule", "fixed pools", {"rule": "fixed"}),
    ("least", "cost or TDP alone", {"least": "own"}),
    ("rule, least", "fixed pools, cost or TDP alone", {"rule": "fixed", "least": "own"}),
    ("rule, kv_capacity", "fixed pools, 90 % of GiB", {"rule": "fixed", "capacity": "binary"}),
    ("prompt_limit", "8192, the published simulator's", {"prompt_limit": 8192}),
    ("reference", "the request alone on an A100 machine", {"reference": A100}),
)
"""Of clusters whose pools are of two kinds of H100 or A100 machines."""

COLOCATED: Changes = (
    ("chunk", "256", {"chunk": 256}),
    ("chunk", "512", {"chunk": 512}),
    ("chunk", "1024", {"chunk": 1024}),
    ("colocated_routing", "round_robin", {"colocated_routing": "round_robin"}),
    ("chunk, colocated_routing", "512, round_robin",
     {"chunk": 512, "colocated_routing": "round_robin"}),
    ("warm_up", "20 s", {"warm_up_s": 20.0}),
)  # fmt: skip
"""Of the colocated cluster, whose rule is its own."""

MOVED = {
    "h100": CHANGES,
    "spad": CHANGES,
    "h100+a100": APART,
    "h100+capped": APART,
    "colocated": COLOCATED,
}
"""What is moved of each system."""


def shifts_of(
    request: Request, given: Assumptions, cells: Mapping[tuple[str, str], Cell]
) -> list[Shift]:
    """Machines, and savings, on a short trace with one assumption moved."""
    made = _Short(request, replace(given, trace_s=SHORT_S, seeds=given.seeds[:1]), cells)
    measured = author_table(request.data)
    tables: Changes = ()
    if measured is not None:
        tables = (("steps", "the author's tables", {"steps": str(measured)}),)
    request.each(lambda key: made.cell(key[0], key[1], {}), list(product(TRACES, MOVED)))
    found = request.each(
        lambda moved: made.machines(*moved),
        [
            (trace, name, change)
            for trace, name in product(TRACES, MOVED)
            for change in (*MOVED[name], *tables)
        ],
    )
    for row in reference_table("spad_savings").rows:
        key = row.text("trace"), row.text("against"), row.text("of")
        found += [made.saving(*key, change) for change in (*MOVED[key[1]], *tables)]
    return [*found, *_lengths(cells, made), *_hbm(cells)]


class _Short:
    """Searches on a short trace, each made once, from near what the long one needs."""

    def __init__(
        self, request: Request, base: Assumptions, long: Mapping[tuple[str, str], Cell]
    ) -> None:
        self.request, self.base, self.long = request, base, long
        self.known: dict[tuple[str, str, Assumptions], Cell] = {}

    def cell(self, trace: str, name: str, fields: Mapping[str, Any]) -> Cell:
        """One system with fields moved, searched from near what it needs without."""
        given = replace(self.base, **fields)
        key = trace, name, given
        if key not in self.known:
            alike = self.cell(trace, name, {}) if fields else self.long[trace, name]
            request = self.request
            self.known[key] = provisioned(
                trace,
                SYSTEMS[name],
                given,
                workers=request.workers,
                journal=request.journal,
                near=alike.instances,
                told=request.told,
            )
        return self.known[key]

    def machines(
        self, trace: str, name: str, change: tuple[str, str, Mapping[str, Any]]
    ) -> Shift:
        """How the machines of a system move."""
        what, value, fields = change
        moved = self.cell(trace, name, fields)
        note = f"{self.words}: {', '.join(moved.splits) or moved.answer.reason}"
        base = _middle(self.cell(trace, name, {}), "machines")
        return Shift(
            what, value, f"{trace}, {name}: machines", base, _middle(moved, "machines"), note
        )

    def saving(
        self, trace: str, against: str, of: str, change: tuple[str, str, Mapping[str, Any]]
    ) -> Shift:
        """How what SPAD saves moves, both systems under the same assumptions."""
        what, value, fields = change
        base, moved = (
            _saved(*(_middle(self.cell(trace, name, f), of) for name in ("spad", against)))
            for f in ({}, fields)
        )
        figure = f"{trace}: {of} saved against {against}"
        return Shift(what, value, figure, base, moved, self.words)

    @property
    def words(self) -> str:
        """What is short about it."""
        return f"trace of {self.base.trace_s:g} s, one seed"


def _middle(cell: Cell, of: str) -> float | None:
    values = cell.figure(of)
    return middle(values) if values else None


def _saved(ours: float | None, other: float | None) -> float | None:
    return None if ours is None or other is None else 1.0 - ours / other


def _lengths(cells: Mapping[tuple[str, str], Cell], made: _Short) -> Iterator[Shift]:
    """The length of the trace: what the table has, against the short one."""
    for (trace, name), cell in cells.items():
        short = _middle(made.cell(trace, name, {}), "machines")
        figure, base = f"{trace}, {name}: machines", _middle(cell, "machines")
        yield Shift("trace_s", f"{SHORT_S:g}, one seed", figure, base, short)


def _hbm(cells: Mapping[tuple[str, str], Cell]) -> Iterator[Shift]:
    """What SPAD saves against H100 machines with HBM at the ends of its price range."""
    for trace in TRACES:
        pair = [cells[trace, name] for name in ("spad", "h100") if (trace, name) in cells]
        if len(pair) < 2 or not all(cell.found for cell in pair):
            continue
        low, usual, high = (_saved(*(_price(cell, at) for cell in pair))
                            for at in ("low", "mid", "high"))  # fmt: skip
        for price, saved in (("6 $/GB", low), ("12 $/GB", high)):
            yield Shift("hbm_price", price, f"{trace}: cost saved against h100", usual, saved,
                        "9 $/GB is the base; the first seed's counts")  # fmt: skip


def _price(cell: Cell, at: str) -> float:
    """Of the chips of one machine of each that the first seed needs, US dollars."""
    return sum(
        count * float(getattr(chip_cost(cell.system.pools[name].chip).total, at))
        for name, count in cell.found[0].instances.items()
    )


def remarks_on_missed(rows: Sequence[Figure], shifts: Sequence[Shift]) -> Iterator[str]:
    """Of every judged row that is missed: the moved assumptions that come nearest to it."""
    for row in rows:
        moves = [each for each in shifts if each.figure == row.figure]
        if row.within is not False or not moves:
            continue
        off = abs(row.difference or 0.0)
        near = sorted(
            (each for each in moves if each.shift),
            key=lambda each: abs((each.changed or 0.0) - row.published),
        )
        nearer = [e for e in near if abs((e.changed or 0.0) - row.published) < off][:3]
        said = "; ".join(map(_moved_words, nearer)) or "no assumption that was moved"
        ours = f"{row.figure} {_number(row.simulated)} for {row.published:g}"
        yield f"Missed: {ours}. Nearer with {said}."


def _moved_words(shift: Shift) -> str:
    """``rule = fixed pools: 37 (+13)``."""
    words = f"{shift.assumption} = {shift.value}: {_number(shift.changed)}"
    splits = shift.note.partition(": ")[2]
    return f"{words} (moved by {shift.shift:+.2g}{', ' + splits if splits else ''})"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"
