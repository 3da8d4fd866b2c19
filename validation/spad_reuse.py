"""SPAD's built clusters put to other work: what they hold, and what H100 machines would need.

row of the paper -> machines that change role -> largest rate held; H100 counts -> Figure
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chipsim.cluster.scenario import Scenario
from chipsim.cluster.search import Search
from chipsim.validation.references import reference_table
from chipsim.validation.reproduce import Figure
from chipsim.validation.spad_clusters import (
    BLOOM,
    SYSTEMS,
    Assumptions,
    Served,
    pool,
    scenario,
)
from chipsim.validation.spad_search import SHORT_S, largest, middle, provisioned

if TYPE_CHECKING:
    from chipsim.validation.reproduce import Request
    from chipsim.validation.table import Row

REUSE = 0.10
"""Tolerance of a saving, a share."""

SERVED = {
    each.model: each
    for each in (
        BLOOM,
        Served("llama-3.1-70b", "tp=4", "fp16", 2),
        Served("deepseek-v2", "tp=8,ep=8", "fp8"),
    )
}
"""How the paper's models lie on a machine: its tensor and expert parallelism.

Splitwise's batching knows machines of one rank, so DeepSeek-V2's attention is split by heads,
and every chip holds the latent rows of all sequences."""

LEAP, STEP = 0.2, 0.025
"""From one rate that is tried to the next, of the published one: up at first, and at last."""

LEAST_SHARE = 0.5
"""Of the published rate, below which none is tried."""

Roles = tuple[int, int]
"""Prefill machines that decode, Decode machines that prefill."""


def reuse_rows(request: Request, given: Assumptions) -> Iterator[Figure]:
    """Savings of every reuse that the paper has, at the largest rate that the cluster holds."""

    def figures(row: Row) -> list[Figure]:
        used = replace(
            given,
            trace_s=min(SHORT_S, given.trace_s),
            seeds=given.seeds[:1],
            rate_rps=row.positive("rate_rps"),
            served=SERVED[row.text("model")],
        )
        return list(_rows_of(request, row, used))

    for made in request.each(figures, reference_table("spad_reuse").rows):
        yield from made


def _rows_of(request: Request, row: Row, used: Assumptions) -> Iterator[Figure]:
    built = {"prefill": row.whole("prefill"), "decode": row.whole("decode")}
    trace = row.text("trace")
    name = f"{built['prefill']}+{built['decode']} serves {used.served.model} {trace}"
    rule = f"{used.words}, {SHORT_S:g} s, seed {used.seeds[0]}"
    rate, moved = held(request, trace, built, used)
    yield Figure(
        f"{name}: rate", "policy", used.rate_rps, rate, "requests/s", None, f"{rule}; {moved}"
    )
    needed, why = None, moved
    if rate is not None:
        alike = sum(built.values()) * used.served.instances
        needed, why = _instead(request, trace, replace(used, rate_rps=rate), alike)
    yield Figure(
        f"{name}: H100 machines instead", "policy", row.positive("h100"), needed, "machines",
        None, f"{rule}; {why}",
    )  # fmt: skip
    for of in ("cost", "tdp"):
        each = SYSTEMS["spad"].weights(of)
        own = sum(count * each[of_pool] for of_pool, count in built.items())
        saved = None if needed is None else 1.0 - own / needed
        yield Figure(
            f"{name}: {of} saved", "policy", float(row.text(of)), saved, "1", REUSE,
            "" if rate is None else f"where the cluster holds {used.rate_rps:g}/s, {rate:g}/s",
        )  # fmt: skip


def _instead(
    request: Request, trace: str, used: Assumptions, alike: int
) -> tuple[int | None, str]:
    """H100 machines that hold a rate, and how they are split, or why none do.

    The search starts near the ``alike`` instances of the built cluster.
    """
    cell = provisioned(
        trace, SYSTEMS["h100"], used, workers=request.workers, journal=request.journal,
        near=alike, told=request.told,
    )  # fmt: skip
    counts = cell.figure("machines")
    said = f"at {used.rate_rps:g}/s: {', '.join(cell.splits) or cell.answer.reason}"
    return math.ceil(middle(counts)) if counts else None, said


def held(
    request: Request, trace: str, built: dict[str, int], used: Assumptions
) -> tuple[float | None, str]:
    """The largest rate that a built cluster holds, and who changes role for it.

    Machines of one kind may change role, as the paper's do, and all of that is tried at each
    rate: from the published one down in steps of `STEP` of it; where that holds, up by `LEAP`
    as long as something holds, and on by `STEP`.
    """
    request.told(f"{used.served.model} {trace} on {built['prefill']}+{built['decode']}")
    ways: list[Roles] = [(count, 0) for count in range(built["prefill"])]
    ways += [(0, count) for count in range(1, built["decode"])]

    sizes = largest(SYSTEMS["spad"], used)

    def holding(share: float, *likely: Roles) -> Roles | None:
        there = _reused(trace, replace(used, rate_rps=used.rate_rps * share))
        search = Search(there, used.seeds, journal=request.journal, sizes=sizes)
        for away, back in (*likely, *ways):
            machines = (built["prefill"] - away, away, built["decode"] - back, back)
            counts = [used.served.instances * count for count in machines]
            if search.verdict(counts, 0).holds:
                return away, back
        return None

    steps = 0
    while (best := holding(1.0 - STEP * steps)) is None:
        steps += 1
        if 1.0 - STEP * steps < LEAST_SHARE:
            return None, f"nothing from {LEAST_SHARE:.0%} of the published rate on holds"
    share = 1.0 - STEP * steps
    for step in (LEAP, STEP) if steps == 0 else ():
        while (more := holding(share + step, best)) is not None:
            share, best = share + step, more
    return used.rate_rps * share, _words(*best)


def _words(away: int, back: int) -> str:
    if away:
        return f"{away} Prefill machines decode"
    return f"{back} Decode machines prefill" if back else "no machine changes role"


def _reused(trace: str, used: Assumptions) -> Scenario:
    """The built cluster with pools for machines that change role."""
    spad = SYSTEMS["spad"]
    base = scenario(trace, spad, used).model_dump(exclude_unset=True)
    first, second = spad.pools["prefill"], spad.pools["decode"]
    pools: dict[str, Any] = {
        "prefill": pool("prefill", first, spad, used),
        "prefill-decodes": pool("decode", first, spad, used),
        "decode": pool("decode", second, spad, used),
        "decode-prefills": pool("prefill", second, spad, used),
    }
    return Scenario.build(base["name"], **(base | {"pools": pools}))
