"""Splitwise (ISCA 2024) beside ours: the largest rates of its clusters, under its rules.

machines + step times of its simulator -> largest rate within its objective -> ratios
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from chipsim.cluster.engine import Requests
from chipsim.cluster.workload_spec import load_workload
from chipsim.validation.references import DATA, reference_table
from chipsim.validation.reproduce import Assumption, Figure, Reproduction
from chipsim.validation.splitwise import MODELS, Setup, alone_s, simulate, step_times

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.cluster.workload import Workload
    from chipsim.validation.reproduce import Request

Floats = npt.NDArray[np.float64]

SOURCE = "Splitwise (Patel et al., ISCA 2024, arXiv 2311.18677), rules of its simulator"
MODEL = "bloom-176b"
H100, A100 = "h100-80gb", "a100-80gb"

COST, POWER = {H100: 4.76, A100: 2.21}, {H100: 44.0, A100: 24.8}
"""Of a machine of eight, as the paper counts."""

LIMITS = {"ttft": (2.0, 3.0, 6.0), "tbt": (1.25, 1.5, 5.0), "e2e": (1.25, 1.5, 5.0)}
"""P50, P90, P99 of the slowdown against an uncontended A100 machine."""

TOLERANCE = 0.15
"""Of a ratio, relative."""

STEP, MISSES = 0.05, 3
"""From one rate to the next, a share; and how many in a row end the search."""

REQUESTS, QUICK_REQUESTS = 8000, 3000


@dataclass(frozen=True)
class Cluster:
    """Machines of one kind; ``split``: some prefill, the others decode, best division."""

    name: str
    hardware: str
    machines: int
    split: bool

    @property
    def cost(self) -> float:
        """In the paper's units."""
        return COST[self.hardware] * self.machines

    @property
    def power(self) -> float:
        """In the paper's units."""
        return POWER[self.hardware] * self.machines

    def setups(self) -> list[Setup]:
        """Divisions that are tried: every twentieth of the machines."""
        hardware = self.hardware, self.hardware
        if not self.split:
            return [Setup(MODEL, self.machines, 0, *hardware)]
        prompts = sorted({round(self.machines * part / 20) for part in range(5, 19)})
        return [Setup(MODEL, p, self.machines - p, *hardware) for p in prompts]


CLUSTERS = {
    each.name: each
    for each in (
        Cluster("H100 only", H100, 40, split=False),
        Cluster("A100 only", A100, 70, split=False),
        Cluster("AA at equal power", A100, 70, split=True),
        Cluster("AA at equal cost", A100, 86, split=True),
    )
}


def reproduction(request: Request) -> Reproduction:
    """The paper's ratios of throughput beside ours."""
    rates = {
        trace: {name: _largest(request, trace, each) for name, each in CLUSTERS.items()}
        for trace in ("code", "conversation")
    }
    return Reproduction(
        "splitwise",
        "Splitwise: prefill and decode on machines of their own",
        SOURCE,
        (*_cost_rows(), *_ratio_rows(rates)),
        _assumptions(request),
        (),
        REMARKS,
        {"rates": partial(_frame, rates)},
    )


Rates = dict[str, dict[str, tuple[float, str]]]
"""By trace and cluster: the largest rate, and its division."""


def _ratio_rows(rates: Rates) -> Iterator[Figure]:
    for row in reference_table("splitwise_claims").rows:
        traces = list(rates) if row.text("trace") == "any" else [row.text("trace")]
        published = row.positive("value")
        for trace in traces:
            ours, base = (rates[trace][row.text(name)] for name in ("cluster", "against"))
            yield Figure(
                f"{row.text('figure')}, {trace}: {row.text('cluster')} over "
                f"{row.text('against')}",
                "policy",
                published,
                ours[0] / base[0] if base[0] else None,
                "1",
                TOLERANCE * published,
                f"{ours[0]:.1f} ({ours[1]}) over {base[0]:.1f} requests/s",
            )


def _cost_rows() -> Iterator[Figure]:
    split, base = CLUSTERS["AA at equal power"], CLUSTERS["H100 only"]
    yield Figure("cost saved: AA at equal power over H100 only", "policy", 0.20,
                 1.0 - split.cost / base.cost, "1", TOLERANCE * 0.20,
                 f"{split.machines} against {base.machines} machines, power "
                 f"{split.power:.0f} against {base.power:.0f}")  # fmt: skip


def _largest(request: Request, trace: str, cluster: Cluster) -> tuple[float, str]:
    """The largest rate of a geometric grid within the objective, and the division.

    Rates rise until `MISSES` in a row are not held by any division.
    """
    request.told(f"{trace}, {cluster.name}")
    count = QUICK_REQUESTS if request.quick else REQUESTS
    drawn = load_workload(f"azure-{trace}", rate=20.0, requests=count, seed=0)
    step = 2.0 * STEP if request.quick else STEP
    best, missed, rate = (0.0, "none"), 0, 10.0
    setups = cluster.setups()
    while missed < MISSES:
        offered = drawn.at_rate(rate)
        held = next((each for each in setups if holds(offered, each)), None)
        if held is None:
            missed += 1 if best[0] or rate > 1e3 else 0
            if rate > 1e3:
                break
        else:
            words = f"{held.prompt}+{held.token}" if held.token else f"{held.prompt}"
            best, missed = (rate, words), 0
            setups = [held, *(each for each in setups if each != held)]
        rate *= 1.0 + step
    return best


def holds(workload: Workload, setup: Setup) -> bool:
    """Whether every percentile of the objective holds."""
    return all(value <= limit for _, value, limit in slowdowns(workload, setup))


def slowdowns(workload: Workload, setup: Setup) -> Iterator[tuple[str, float, float]]:
    """Metric and percentile, slowdown, and its limit."""
    times = _times()
    rows = simulate(
        Requests.of(workload.arrival_s, workload.prompt_tokens, workload.output_tokens),
        setup,
        times,
    ).requests
    output = workload.output_tokens
    ttft = rows["first_token_s"] - workload.arrival_s
    e2e = rows["finish_s"] - workload.arrival_s
    prefill, decode = alone_s(times[MODEL, A100], workload.prompt_tokens)
    several = output > 1
    measured = {
        "ttft": ttft / prefill,
        # Seconds per gap: of requests that have one.
        "tbt": ((e2e - ttft)[several] / (output - 1)[several]) / decode,
        "e2e": e2e / (prefill + (output - 1) * decode),
    }
    for metric, limits in LIMITS.items():
        for share, limit in zip((50, 90, 99), limits, strict=True):
            name = f"p{share} {metric}"
            yield name, float(np.percentile(measured[metric], share)), limit


@functools.cache
def _times() -> dict[tuple[str, str], Floats]:
    return step_times(DATA / "splitwise")


def _frame(rates: Rates) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        [
            {"trace": trace, "cluster": name, "rate_rps": rate, "split": split,
             "cost": CLUSTERS[name].cost, "power": CLUSTERS[name].power}
            for trace, found in rates.items() for name, (rate, split) in found.items()
        ]
    )  # fmt: skip


def _assumptions(request: Request) -> tuple[Assumption, ...]:
    return (
        Assumption("model", MODEL, "chosen", "the paper has Llama-2-70B too"),
        Assumption("objective", "P50, P90, P99: TTFT 2, 3, 6; TBT and E2E 1.25, 1.5, 5",
                   "published", "slowdown against an uncontended A100 machine"),
        Assumption("steps", "the table of its simulator", "published",
                   "a decode step does not grow with its batch there"),
        Assumption("scheduler", "token_jsq (one pool), mixed_pool (split)", "published",
                   "its simulator; KV at 200 GiB/s, no contention"),
        Assumption("requests", QUICK_REQUESTS if request.quick else REQUESTS, "chosen",
                   "Azure 2023 lengths, Poisson, seed 0; every request counts"),
        Assumption("rates", f"rising by {100 * STEP:g} % until {MISSES} in a row fail",
                   "chosen", "twice that where quick"),
        Assumption("weights_bytes", MODELS[MODEL].weights, "published", "its simulator"),
    )  # fmt: skip


REMARKS = (
    (
        "The steps are those of Splitwise's own simulator, which looks decodes up by their "
        "number on an axis of prompt tokens: a decode step of 64 takes as long as one of 1, "
        "where its own measurements have 1.8 times as long. The ratios judge scheduling "
        "under that table, not chips."
    ),
    (
        "Where the paper names no trace (its abstract), both are set beside its figure: the "
        "claim is of one cluster and one trace that it does not name."
    ),
)
