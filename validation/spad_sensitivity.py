"""How SPAD's machine counts move with what the paper leaves open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chipsim.validation.reproduce import Shift
from chipsim.validation.reproduce_spad import author_table
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

CHANGES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("rule", "fixed pools", {"rule": "fixed"}),
    ("prompt_limit", "8192, the published simulator's", {"prompt_limit": 8192}),
    ("kv_capacity", "90 % of GiB, the paper's appendix", {"capacity": "binary"}),
    ("kv_link", "50 GB/s", {"link": 50e9}),
    ("max_tokens", "4096", {"max_tokens": 4096}),
    ("max_batch", "64", {"max_batch": 64}),
    ("seed", "1", {"seeds": (1,)}),
    ("execution", "llmcompass-tables", {"execution": "llmcompass-tables"}),
)
"""Name, value in words, and fields of `Assumptions`."""


def shifts_of(
    request: Request, given: Assumptions, cells: dict[tuple[str, str], Cell]
) -> list[Shift]:
    """Machines of H100-only and SPAD's clusters on a short trace, one assumption moved."""
    base = replace(given, trace_s=SHORT_S, seeds=(0,))
    changes = list(CHANGES)
    measured = author_table(request)
    if measured is not None:
        changes.append(("steps", "the author's tables", {"steps": str(measured)}))
    found = []
    for trace in TRACES:
        for name in ("h100", "spad"):
            start = _machines(request, trace, name, base)
            for what, value, fields in changes:
                moved = _machines(request, trace, name, replace(base, **fields))
                found.append(
                    Shift(what, value, f"{trace}, {name}: machines", start, moved,
                          f"trace of {SHORT_S:g} s, one seed")
                )  # fmt: skip
    return [*found, *_lengths(cells, request, base)]


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
    cells: dict[tuple[str, str], Cell], request: Request, base: Assumptions
) -> Iterator[Shift]:
    """The length of the trace: what the table has, against the short one."""
    for (trace, name), cell in cells.items():
        if name in ("h100", "spad") and cell.found:
            yield Shift(
                "trace_s", f"{SHORT_S:g}", f"{trace}, {name}: machines",
                middle(cell.figure("machines")), _machines(request, trace, name, base),
            )  # fmt: skip
