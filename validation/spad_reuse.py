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
from chipsim.validation.spad_search import SHORT_S, middle, provisioned

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

FALL = 0.025
"""Share of the published rate from one rate that is tried to the next."""


def reuse_rows(request: Request, given: Assumptions) -> Iterator[Figure]:
    """Savings of every reuse that the paper has, at its rate; and the rate that we hold."""
    for row in reference_table("spad_reuse").rows:
        used = replace(
            given,
            trace_s=min(SHORT_S, given.trace_s),
            seeds=given.seeds[:1],
            rate_rps=row.positive("rate_rps"),
            served=SERVED[row.text("model")],
        )
        yield from _rows_of(request, row, used)


def _rows_of(request: Request, row: Row, used: Assumptions) -> Iterator[Figure]:
    built = {"prefill": row.whole("prefill"), "decode": row.whole("decode")}
    trace = row.text("trace")
    name = f"{built['prefill']}+{built['decode']} serves {used.served.model} {trace}"
    rule = f"{used.words}, {SHORT_S:g} s, seed {used.seeds[0]}"
    rate, moved = held(request, trace, built, used)
    yield Figure(
        f"{name}: rate",
        "policy",
        used.rate_rps,
        rate,
        "requests/s",
        None,
        f"{rule}; {moved}; rates up to the published one were tried",
    )
    cell = provisioned(
        trace, SYSTEMS["h100"], used, workers=request.workers, journal=request.journal,
        told=request.told,
    )  # fmt: skip
    found = cell.figure("machines")
    needed = math.ceil(middle(found)) if found else None
    note = f"{rule}: {', '.join(cell.splits) or cell.answer.reason}"
    yield Figure(
        f"{name}: H100 machines instead", "policy", row.positive("h100"), needed, "machines",
        None, note,
    )  # fmt: skip
    for of in ("cost", "tdp"):
        each = SYSTEMS["spad"].weights(of)
        own = sum(count * each[of_pool] for of_pool, count in built.items())
        saved = None if needed is None else 1.0 - own / needed
        yield Figure(
            f"{name}: {of} saved", "policy", float(row.text(of)), saved, "1", REUSE,
            "" if rate == used.rate_rps else "at the published rate, which ours does not hold",
        )  # fmt: skip


def held(
    request: Request, trace: str, built: dict[str, int], used: Assumptions
) -> tuple[float | None, str]:
    """The largest rate, up to the published one, that a built cluster holds; and by whom.

    Machines of one kind may change role, as the paper's do. All of that is tried at each
    rate, from the published one down.
    """
    search = Search(_reused(trace, used), used.seeds, journal=request.journal)
    request.told(f"{used.served.model} {trace} on {built['prefill']}+{built['decode']}")
    per = used.served.instances
    ways = [(count, 0) for count in range(built["prefill"])]
    ways += [(0, count) for count in range(1, built["decode"])]
    offered = search.workloads[0]
    for step in range(round(0.5 / FALL)):
        rate = used.rate_rps * (1.0 - step * FALL)
        scaled = offered if step == 0 else offered.at_rate(offered.rate_rps * (1 - step * FALL))
        there = search if step == 0 else Search(
            search.scenario, used.seeds, workloads=[scaled], journal=request.journal
        )  # fmt: skip
        for away, back in ways:
            counts = (built["prefill"] - away, away, built["decode"] - back, back)
            if there.verdict([per * n for n in counts], 0).holds:
                return rate, _words(away, back)
    return None, "nothing above half the rate holds"


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
