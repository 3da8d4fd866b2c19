"""How SPAD's machine counts move with what the paper leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chipsim.cost import chip_cost
from chipsim.validation.reproduce import Shift
from chipsim.validation.spad_author import author_table
from chipsim.validation.spad_clusters import (
    SHORT_S,
    SYSTEMS,
    TRACES,
    Assumptions,
    Cell,
    middle,
    provisioned,
)

if TYPE_CHECKING:
    from chipsim.validation.reproduce import Request

Changes = tuple[tuple[str, str, dict[str, Any]], ...]

CHANGES: Changes = (
    ("rule", "fixed pools", {"rule": "fixed"}),
    ("prompt_limit", "2048", {"prompt_limit": 2048}),
    ("prompt_limit", "8192, the published simulator's", {"prompt_limit": 8192}),
    ("least", "cost alone", {"least": "own"}),
    ("kv_capacity", "90 % of GiB, the paper's appendix", {"capacity": "binary"}),
    ("kv_link", "50 GB/s", {"link": 50e9}),
    ("max_tokens", "4096", {"max_tokens": 4096}),
    ("max_batch", "64", {"max_batch": 64}),
    ("seed", "1", {"seeds": (1,)}),
    ("execution", "llmcompass-tables", {"execution": "llmcompass-tables"}),
)
"""Name, value in words, and fields of `Assumptions`."""

COLOCATED: Changes = (
    ("chunk", "256", {"chunk": 256}),
    ("chunk", "1024", {"chunk": 1024}),
    ("chunk", "2048", {"chunk": 2048}),
    ("colocated_routing", "round_robin", {"colocated_routing": "round_robin"}),
    ("chunk and routing", "1024, round_robin",
     {"chunk": 1024, "colocated_routing": "round_robin"}),
)  # fmt: skip
"""Of the colocated cluster, whose rule is its own."""


def shifts_of(
    request: Request, given: Assumptions, cells: Mapping[tuple[str, str], Cell]
) -> list[Shift]:
    """Machines of clusters on a short trace, one assumption moved."""
    base = replace(given, trace_s=SHORT_S, seeds=given.seeds[:1])
    measured = author_table(request.data)
    tables: Changes = ()
    if measured is not None:
        tables = (("steps", "the author's tables", {"steps": str(measured)}),)
    found = []
    for trace in TRACES:
        for name, changes in (("h100", CHANGES), ("spad", CHANGES), ("colocated", COLOCATED)):
            start = _machines(request, trace, name, base)
            for what, value, fields in (*changes, *tables):
                moved = _machines(request, trace, name, replace(base, **fields))
                found.append(
                    Shift(what, value, f"{trace}, {name}: machines", start, moved,
                          f"trace of {SHORT_S:g} s, one seed")
                )  # fmt: skip
    return [*found, *_lengths(cells, request, base), *_hbm(cells)]


def _machines(request: Request, trace: str, name: str, given: Assumptions) -> float | None:
    cell = provisioned(
        trace,
        SYSTEMS[name],
        given,
        workers=request.workers,
        journal=request.journal,
        told=request.told,
    )
    values = cell.figure("machines")
    return middle(values) if values else None


def _lengths(
    cells: Mapping[tuple[str, str], Cell], request: Request, base: Assumptions
) -> Iterator[Shift]:
    """The length of the trace: what the table has, against the short one."""
    for (trace, name), cell in cells.items():
        if name in ("h100", "spad") and cell.found:
            yield Shift(
                "trace_s", f"{SHORT_S:g}", f"{trace}, {name}: machines",
                middle(cell.figure("machines")), _machines(request, trace, name, base),
            )  # fmt: skip


def _hbm(cells: Mapping[tuple[str, str], Cell]) -> Iterator[Shift]:
    """What SPAD saves against H100 machines with HBM at the ends of its price range."""
    for trace in TRACES:
        pair = cells.get((trace, "spad")), cells.get((trace, "h100"))
        if any(cell is None or not cell.found for cell in pair):
            continue
        low, usual, high = (_saved(*pair, at) for at in ("low", "mid", "high"))
        for price, saved in (("6 $/GB", low), ("12 $/GB", high)):
            yield Shift("hbm_price", price, f"{trace}: cost saved against h100", usual, saved,
                        "9 $/GB is the base; the same counts")  # fmt: skip


def _saved(ours: Cell | None, other: Cell | None, at: str) -> float:
    spent = [
        sum(n * getattr(chip_cost(cell.system.pools[p].chip).total, at) for p, n in
            cell.found[0].instances.items())
        for cell in (ours, other) if cell is not None
    ]  # fmt: skip
    return float(1.0 - spent[0] / spent[1])
