"""SPAD (arXiv 2510.08544) beside ours: chips, curves, clusters, reuse, price of HBM."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from chipsim.validation.reproduce import Assumption, Reproduction, Shift
from chipsim.validation.spad_chip_rows import (
    BLOCK,
    chip_rows,
    curve_frame,
    curve_rows,
    latent_remark,
    performance_rows,
)
from chipsim.validation.spad_cluster_rows import (
    DEFAULT,
    cell_frame,
    cluster_rows,
    saving_rows,
    tables,
    tried_frame,
)
from chipsim.validation.spad_clusters import SYSTEMS, Assumptions
from chipsim.validation.spad_search import NEAR, SHORT_S

if TYPE_CHECKING:
    from chipsim.validation.reproduce import Request

SOURCE = "SPAD (Zhang, Patel, Ning, Wentzlaff, arXiv 2510.08544, 2025)"

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
    found = tables(request, given, systems)
    cells = found[DEFAULT]
    rows += [*cluster_rows(found), *saving_rows(cells)]
    shifts: list[Shift] = []
    missed: Iterable[str] = ()
    if not request.quick:
        from chipsim.validation.spad_reuse import reuse_rows
        from chipsim.validation.spad_sensitivity import remarks_on_missed, shifts_of

        rows += reuse_rows(request, given)
        shifts = shifts_of(request, given, cells)
        missed = remarks_on_missed(rows, shifts)
    return Reproduction(
        "spad",
        "SPAD: chips for prefill and for decode",
        SOURCE,
        tuple(rows),
        assumptions(given),
        tuple(shifts),
        (*REMARKS, *missed, latent_remark()),
        {
            "curves": curve_frame,
            "clusters": partial(cell_frame, found),
            "counts": partial(tried_frame, cells),
        },
    )


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
        Assumption("chunk", given.chunk, "chosen",
                   "not published: the step's budget of the other clusters"),
        Assumption("colocated_routing", given.colocated_routing, "chosen", "not published"),
        Assumption("warm_up_s", given.warm_up_s, "published",
                   "every request counts in the author's simulator"),
        Assumption("reference", given.reference, "published"),
        Assumption("searched_from", NEAR, "chosen",
                   f"share of what a trace of {SHORT_S:g} s, or the H100 cluster, needs, or "
                   "the built one has; fewer machines are run where the answer is the least "
                   "that was"),
    )  # fmt: skip
