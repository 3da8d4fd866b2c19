"""SPAD (arXiv 2510.08544) beside ours: chips, curves, clusters, price of HBM."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipsim.chip import Chip
from chipsim.cost import chip_cost
from chipsim.validation.references import reference_table
from chipsim.validation.reproduce import Assumption, Figure, Reproduction, Shift, span
from chipsim.validation.spad import BLOCKS, chip_performance, paper_curves, slowdown
from chipsim.validation.spad_clusters import (
    SYSTEMS,
    TRACES,
    Assumptions,
    Cell,
    author_steps,
    middle,
    provisioned,
)

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.validation.reproduce import Request

BLOCK = "spad-figures"
"""The execution block of the comparison: fitted to one point of each of the two curves."""

MACHINES, SAVING, PERFORMANCE = 2.0, 0.08, 0.04
"""Tolerances: machines, and shares."""

SOURCE = "SPAD (Zhang, Patel, Ning, Wentzlaff, arXiv 2510.08544, 2025)"

AUTHOR_TABLES = "llmcompass_bloom_tp8.csv"

QUICK_S = 60.0
"""Seconds of the trace where time is short; one seed then."""

REMARKS = (
    (
        "The paper's claim is an upper bound from simulation: its chips were never built, no "
        "price is a quote, and dies count neither yield nor packaging, masks or design."
    ),
    (
        f"Figures use the block {BLOCK}, which was fitted to one point of each curve (1.17 at "
        "2000 GB/s, 1.22 at 66 cores); those two rows agree by construction."
    ),
    (
        "Where it fails by physics: absorbed latent attention in bf16 with 128 local heads "
        "needs about 242 FLOP/B, above the Decode chip's ridge of 161 FLOP/B: decode of such "
        "a model is bound by the compute that the chip gave up."
    ),
    (
        "A mixed pool lends machines in both directions, so the pools dissolve under load: "
        "many splits of a total hold, and the split is no prediction. Each count has its rule "
        "beside it."
    ),
    (
        "What the search makes least is not published. Fewest machines (of those the "
        "cheapest) is the default; it was chosen after least cost had been seen to take many "
        "cheap Prefill machines and let them decode, so it is no independent evidence."
    ),
    (
        "The limit of a prompt machine's queue, 1024 tokens, is known from a scan against "
        "these very counts; the published simulator has 8192."
    ),
)
"""What a reader should know before quoting a row."""


def reproduction(request: Request) -> Reproduction:
    """Everything the paper's tables and figures say, beside ours."""
    given = Assumptions(execution=BLOCK)
    if request.quick:
        given = replace(given, trace_s=QUICK_S, seeds=(0,))
    rows = [*chip_rows(), *curve_rows(), *performance_rows()]
    systems = ("h100", "spad") if request.quick else tuple(SYSTEMS)
    cells = cluster_cells(request, given, systems)
    rows += [*cluster_rows(cells), *saving_rows(cells)]
    shifts: list[Shift] = []
    if not request.quick:
        from chipsim.validation.spad_sensitivity import shifts_of

        shifts = shifts_of(request, given, cells)
    return Reproduction(
        "spad",
        "SPAD: chips for prefill and for decode",
        SOURCE,
        tuple(rows),
        assumptions(given),
        tuple(shifts),
        REMARKS,
        {"curves": curve_frame(), "clusters": cell_frame(cells)},
    )


def chip_rows() -> Iterator[Figure]:
    """Price and TDP of the chips; the price of HBM moved."""
    for row in reference_table("spad_chips").rows:
        chip = row.text("chip")
        cost = chip_cost(chip)
        ours = {
            "die_usd": cost.die_cost_usd,
            "memory_usd": cost.memory_cost_usd,
            "total_usd": cost.total_usd,
            "cost_hbm6_usd": cost.total.low,
            "cost_hbm12_usd": cost.total.high,
        }
        for column, value in ours.items():
            if row.has(column):
                name = column.removesuffix("_usd").replace("cost_hbm", "total at HBM of $")
                published = row.positive(column)
                yield Figure(f"{chip}: {name}", "physics", published, value, "USD", 2.0)
        area = Chip.load(chip).die_area
        if area is not None:
            yield Figure(f"{chip}: die", "input", row.positive("die_mm2"), area, "mm2")
        watts = _modelled_tdp_w(chip)
        yield Figure(f"{chip}: TDP", "physics", row.positive("tdp_w"), watts, "W", 10.0,
                     "by the paper's formula, not the stated one")  # fmt: skip


def _modelled_tdp_w(chip: str) -> float:
    from chipsim.cost.power import power

    return power(Chip.load(chip)).modelled_tdp_w


def curve_rows() -> Iterator[Figure]:
    """The two slowdown curves."""
    for ref in paper_curves():
        if ref.series != "paper" or ref.slowdown == 1.0:
            continue
        cut = (
            f"{ref.value / 1e9:g} GB/s"
            if ref.phase.kind == "prefill"
            else f"{ref.value:g} cores"
        )
        note = "read off a picture" if ref.mark == "fig" else ""
        yield Figure(
            f"{ref.phase.kind} slowdown at {cut}",
            "physics",
            ref.slowdown,
            slowdown(ref, BLOCK),
            "1",
            0.08 if ref.mark == "fig" else 0.03,
            note,
        )


def curve_frame() -> pd.DataFrame:
    """Both curves, published and under each block: what the report draws."""
    import pandas as pd

    rows = [
        {
            "phase": ref.phase.kind,
            "value": ref.value,
            "published": ref.slowdown,
            **{block: slowdown(ref, block) for block in BLOCKS},
        }
        for ref in paper_curves()
        if ref.series == "paper"
    ]
    return pd.DataFrame(rows)


def performance_rows() -> Iterator[Figure]:
    """Mean performance of the chips over the paper's grid."""
    published = {
        (row.text("chip"), row.text("phase")): row.positive("mean_performance")
        for row in reference_table("spad_performance").rows
    }
    for block in BLOCKS:
        judged = block == BLOCK
        for chip, phase, mean, count in chip_performance(block):
            yield Figure(
                f"{chip}: mean {phase} performance",
                "physics",
                published[chip, phase],
                mean,
                "1",
                PERFORMANCE if judged else None,
                f"{block}, {count} points",
            )


def cluster_cells(
    request: Request, given: Assumptions, systems: tuple[str, ...]
) -> dict[tuple[str, str], Cell]:
    """The cluster table: cells by trace and system."""
    return {
        (trace, name): provisioned(
            trace,
            SYSTEMS[name],
            given,
            workers=request.workers,
            journal=request.journal,
            told=request.told,
        )
        for trace in TRACES
        for name in systems
    }


def cluster_rows(cells: dict[tuple[str, str], Cell]) -> Iterator[Figure]:
    """Machines, cost and TDP of every cell."""
    for row in reference_table("spad_clusters").rows:
        cell = cells.get((row.text("trace"), row.text("system")))
        if cell is None:
            continue
        where = f"{cell.trace}, {cell.system.name}"
        published = ""
        if row.has("prefill"):
            published = f"; published {row.whole('prefill')}+{row.whole('decode')}"
        for of, unit in (("machines", "machines"), ("cost", "H100 machines"),
                         ("tdp", "H100 machines")):  # fmt: skip
            values = cell.figure(of)
            note = cell.answer.reason
            if values:
                note = f"{cell.given.words}: {', '.join(cell.splits)}{published}"
                note += f"; {span(values)} over seeds"
            yield Figure(
                f"{where}: {of}",
                "policy",
                row.positive(of),
                middle(values) if values else None,
                unit,
                MACHINES,
                note,
            )


def saving_rows(cells: dict[tuple[str, str], Cell]) -> Iterator[Figure]:
    """What SPAD's cluster saves against others, seed by seed."""
    for row in reference_table("spad_savings").rows:
        trace, against, of = (row.text(name) for name in ("trace", "against", "of"))
        ours, other = cells.get((trace, "spad")), cells.get((trace, against))
        if ours is None or other is None:
            continue
        pairs = zip(ours.figure(of), other.figure(of), strict=False)
        saved = [1.0 - a / b for a, b in pairs]
        yield Figure(
            f"{trace}: {of} saved against {against}",
            "policy",
            row.positive("saving"),
            middle(saved) if saved else None,
            "1",
            SAVING,
            f"{span([100 * s for s in saved])} % over seeds"
            if saved
            else "no cluster holds it",
        )


def cell_frame(cells: dict[tuple[str, str], Cell]) -> pd.DataFrame:
    """Counts that were run for each cell: what the report draws."""
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


def assumptions(given: Assumptions) -> tuple[Assumption, ...]:
    """What the figures of the clusters rest on."""
    return (
        Assumption("rate_rps", given.rate_rps, "published"),
        Assumption("objective", "P90 TBT 2, P90 TTFT 3, P99 TBT 5, P99 TTFT 6", "published",
                   "slowdown against the request alone on an H100 machine"),
        Assumption("tbt", "(E2E - TTFT) / output tokens, hand-off included", "published",
                   "the author's simulator"),
        Assumption("kv_link", "200 GiB/s, no contention", "published",
                   "the author's simulator"),
        Assumption("max_tokens", given.max_tokens, "published", "the author's simulator"),
        Assumption("max_batch", given.max_batch, "published", "the author's simulator"),
        Assumption("kv_capacity", "(8 x decimal GB - 329e9 B) / 4,014,080 B", "published",
                   "the author's simulator; the paper's appendix counts 90 % of GiB"),
        Assumption("a100", "half an H100 in cost and TDP", "published"),
        Assumption("capped_w", 450, "published"),
        Assumption("lengths", "Azure 2023, prompt and output drawn independently", "published"),
        Assumption("trace_s", given.trace_s, "chosen", "not published"),
        Assumption("seeds", list(given.seeds), "chosen", "not published"),
        Assumption("rule", given.words, "chosen",
                   "prompt limit 8192 in the published simulator"),
        Assumption("least", "machines, of those cost (h100+capped: TDP)", "chosen",
                   "not published"),
        Assumption("execution", given.execution, "chosen"),
        Assumption("chunk", given.chunk, "chosen", "not published"),
        Assumption("colocated_routing", given.colocated_routing, "chosen", "not published"),
        Assumption("warm_up", "none: every request counts", "published",
                   "the author's simulator"),
    )  # fmt: skip


def author_table(request: Request) -> Path | None:
    """The author's tables as a measured table of H100 steps, where they were given."""
    if request.data is None:
        return None
    for folder in (request.data, request.data / "spad"):
        if (folder / AUTHOR_TABLES).is_file():
            out = Path(tempfile.mkdtemp(prefix="chipsim-"))
            return author_steps(folder / AUTHOR_TABLES, out)
    return None
