"""SPAD's cluster table and savings beside ours; the rule stands beside every count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from chipsim.validation.references import reference_table
from chipsim.validation.reproduce import Figure, span
from chipsim.validation.spad_author import author_table
from chipsim.validation.spad_clusters import RULES, SYSTEMS, TRACES, Assumptions
from chipsim.validation.spad_search import Cell, middle, provisioned

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.validation.reproduce import Request

Cells = Mapping[tuple[str, str], Cell]
"""By trace and system."""

MACHINES, SAVING = 2.0, 0.08
"""Tolerances: machines (or H100 machines in cost and TDP), and shares."""

DEFAULT, MEASURED = "default rule", "author's latency tables"


def table_of(
    request: Request,
    given: Assumptions,
    systems: tuple[str, ...],
    alike: Cells | None = None,
) -> dict[tuple[str, str], Cell]:
    """The cluster table under one rule.

    Searches start near what ``alike`` has, another table, or near the H100 cluster's count.
    """
    found: dict[tuple[str, str], Cell] = {}

    def near(trace: str, name: str) -> int | None:
        other = (alike or {}).get((trace, name))
        if other is None and not SYSTEMS[name].colocated:
            other = found.get((trace, "h100"))
        return None if other is None else other.instances

    def cell(key: tuple[str, str]) -> Cell:
        return provisioned(
            key[0],
            SYSTEMS[key[1]],
            given,
            workers=request.workers,
            journal=request.journal,
            near=near(*key),
            told=request.told,
        )

    every = [(trace, name) for trace in TRACES for name in systems]
    leading = [key for key in every if key[1] == "h100" and key not in (alike or {})]
    for keys in (leading, [key for key in every if key not in leading]):
        found |= dict(zip(keys, request.each(cell, keys), strict=True))
    return {key: found[key] for key in every}


def tables(
    request: Request, given: Assumptions, systems: tuple[str, ...]
) -> dict[str, dict[tuple[str, str], Cell]]:
    """The cluster table by rule: the default under all seeds, others under the first.

    With the author's tables at hand, what they give in place of the model's steps as well.
    """
    cells = table_of(request, given, systems)
    found = {DEFAULT: cells}
    if request.quick:
        return found
    once = replace(given, seeds=given.seeds[:1])
    split = tuple(name for name in systems if not SYSTEMS[name].colocated)
    for rule, fields in RULES.items():
        found[rule] = table_of(request, replace(once, **fields), split, cells)
    measured = author_table(request.data)
    if measured is not None:
        own = replace(once, steps=str(measured))
        found[MEASURED] = table_of(request, own, systems, cells)
    return found


def cluster_rows(found: Mapping[str, Cells]) -> Iterator[Figure]:
    """Machines, cost and TDP of every cell, and its machines under the other rules."""
    for row in reference_table("spad_clusters").rows:
        key = row.text("trace"), row.text("system")
        split = f"{row.whole('prefill')}+{row.whole('decode')}" if row.has("prefill") else ""
        for rule, cells in found.items():
            if key not in cells:
                continue
            for of in ("machines", "cost", "tdp") if rule == DEFAULT else ("machines",):
                yield _cell_row(cells[key], of, row.positive(of), rule, split)


def _cell_row(cell: Cell, of: str, published: float, rule: str, split: str) -> Figure:
    values, judged = cell.figure(of), rule == DEFAULT
    note = cell.given.rule_of(cell.system)
    if values:
        note += f": {', '.join(cell.splits)}; {span(values)} over {_seeds(cell)}"
    else:
        note += f": {cell.answer.reason}"
    if split:
        note += f"; published {split}"
    return Figure(
        f"{cell.trace}, {cell.system.name}: {of}" + ("" if judged else f", {rule}"),
        "policy",
        published,
        middle(values) if values else None,
        "machines" if of == "machines" else "H100 machines",
        MACHINES if judged else None,
        note,
    )


def _seeds(cell: Cell) -> str:
    count = len(cell.given.seeds)
    return f"{count} seeds" if count > 1 else f"seed {cell.given.seeds[0]}"


def saving_rows(cells: Cells) -> Iterator[Figure]:
    """What SPAD's cluster saves against others, seed by seed."""
    for row in reference_table("spad_savings").rows:
        trace, against, of = (row.text(name) for name in ("trace", "against", "of"))
        ours, other = cells.get((trace, "spad")), cells.get((trace, against))
        if ours is None or other is None:
            continue
        pairs = zip(ours.figure(of), other.figure(of), strict=False)
        saved = [1.0 - a / b for a, b in pairs]
        low_to_high = f"{span([100 * s for s in saved])} % over {_seeds(ours)}" if saved else ""
        yield Figure(
            f"{trace}: {of} saved against {against}",
            "policy",
            row.positive("saving"),
            middle(saved) if saved else None,
            "1",
            SAVING,
            f"{ours.given.words}; {low_to_high or 'no cluster holds it'}",
        )


def cell_frame(found: Mapping[str, Cells]) -> pd.DataFrame:
    """The cluster table by rule: what the report draws and prints."""
    import pandas as pd

    published = {
        (row.text("trace"), row.text("system")): row
        for row in reference_table("spad_clusters").rows
    }
    rows = [
        {
            "trace": trace,
            "system": name,
            "rule": rule,
            "words": cell.given.rule_of(cell.system),
            "published": published[trace, name].positive("machines"),
            "machines": middle(cell.figure("machines")) if cell.found else None,
            "least": min(cell.figure("machines"), default=None),
            "most": max(cell.figure("machines"), default=None),
            "splits": ", ".join(dict.fromkeys(cell.splits)),
        }
        for rule, cells in found.items()
        for (trace, name), cell in cells.items()
    ]
    return pd.DataFrame(rows)


def tried_frame(cells: Cells) -> pd.DataFrame:
    """Counts that were run under the default rule, by the first seed."""
    import pandas as pd

    rows = [
        {
            "trace": trace,
            "system": name,
            "prefill": each.instances.get("prefill", each.instances.get("mixed", 0)),
            "decode": each.instances.get("decode", 0),
            "holds": each.verdicts[0] is not None and each.verdicts[0].holds,
            "binding": each.worst.binding,
        }
        for (trace, name), cell in cells.items()
        for each in cell.answer.tried
    ]
    return pd.DataFrame(rows)
