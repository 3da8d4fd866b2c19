"""What came of a run: a row per request, percentiles, objectives, utilisation, cost.

Outcome (arrays) -> Simulation -> DataFrame, summary
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from chipsim.cluster.engine import codes
from chipsim.cluster.objectives import Objective, meets, objectives
from chipsim.cluster.percentiles import spread
from chipsim.cluster.spending import Spending, spending

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.cluster.engine import Outcome
    from chipsim.cluster.simulate import Cluster
    from chipsim.cluster.workload import Workload

Floats = npt.NDArray[np.float64]

TIERS = ("dram", "ssd", "store")
"""Below the memory of a rank."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """A run of a scenario.

    Attributes
    ----------
    cluster : Cluster
        Scenario, tables and memory.
    workload : Workload
        What was served.
    instances : dict of str to int
        Instances of each pool.
    outcome : Outcome
        The engine's arrays.
    wall_s : float
        Seconds that the run took here.
    """

    cluster: Cluster
    workload: Workload
    instances: dict[str, int]
    outcome: Outcome
    wall_s: float

    @property
    def counts(self) -> dict[str, int]:
        """``requests, finished, rejected, unfinished``; the last three sum to the first."""
        status = self.outcome.requests["status"]
        kinds = ("finished", "rejected", "unfinished")
        found = {kind: int((status == codes.STATUS.index(kind)).sum()) for kind in kinds}
        return {"requests": len(status), **found}

    @property
    def rejections(self) -> dict[str, int]:
        """How many requests were refused, by reason."""
        rows = self.outcome.requests
        reasons = rows["reason"][rows["status"] == codes.REJECTED]
        counts = np.bincount(reasons, minlength=len(codes.REASON))
        return {name: int(n) for name, n in zip(codes.REASON, counts, strict=True) if n}

    @functools.cached_property
    def finished(self) -> npt.NDArray[np.bool_]:
        """Which requests were served to the end."""
        served: npt.NDArray[np.bool_] = self.outcome.requests["status"] == codes.FINISHED
        return served

    @functools.cached_property
    def times(self) -> dict[str, Floats]:
        """Seconds of every request, NaN where it did not get so far.

        ``queue_s`` (until its first step), ``ttft_s``, ``e2e_s``, ``transfer_s`` (0: none),
        ``tpot_s`` (mean gap between its tokens; NaN with one), ``tbt_s``: (E2E - TTFT) /
        output tokens, as Splitwise and SPAD have it.
        """
        rows, output = self.outcome.requests, self.workload.output_tokens
        arrival = rows["arrival_s"]
        decoding = rows["finish_s"] - rows["first_token_s"]
        with np.errstate(divide="ignore", invalid="ignore"):
            tpot = np.where(output > 1, decoding / (output - 1), np.nan)
        moved = rows["transfer_end_s"] - rows["transfer_start_s"]
        return {
            "queue_s": rows["prefill_start_s"] - arrival,
            "ttft_s": rows["first_token_s"] - arrival,
            "tpot_s": tpot,
            "tbt_s": decoding / output,
            "e2e_s": rows["finish_s"] - arrival,
            "transfer_s": np.where(np.isnan(moved), 0.0, moved),
        }

    def frame(self) -> pd.DataFrame:
        """Requests as a table, in order of arrival.

        Returns
        -------
        pandas.DataFrame
            ``arrival_s, prompt_tokens, output_tokens, status, reason, prefill_instance,
            decode_instance``, the columns of `times`, ``cached_tokens, loaded_tokens,
            preemptions, retries`` and, with a reference, ``ttft_slowdown, tbt_slowdown,
            e2e_slowdown``.
        """
        import pandas as pd

        rows, names = self.outcome.requests, np.array([*self.instance_names, ""])
        status, reason = np.array(codes.STATUS), np.array(codes.REASON)
        return pd.DataFrame(
            {
                "arrival_s": rows["arrival_s"],
                "prompt_tokens": self.workload.prompt_tokens,
                "output_tokens": self.workload.output_tokens,
                "status": status[rows["status"]],
                "reason": reason[rows["reason"]],
                "prefill_instance": names[rows["prefill_instance"]],
                "decode_instance": names[rows["decode_instance"]],
                **self.times,
                "cached_tokens": rows["cached"],
                "loaded_tokens": rows["loaded"],
                "preemptions": rows["preemptions"],
                "retries": rows["retries"],
                **self.slowdowns,
            }
        )

    @functools.cached_property
    def instance_names(self) -> list[str]:
        """``pool-0``, ``pool-1`` … in the engine's order."""
        return [f"{name}-{i}" for name, count in self.instances.items() for i in range(count)]

    @functools.cached_property
    def slowdowns(self) -> dict[str, Floats]:
        """Each request over itself alone on the reference; empty without one."""
        alone = self.cluster.alone(self.workload)
        if alone is None:
            return {}
        prefill, decode = alone
        rest = self.workload.output_tokens - 1
        return {
            "ttft_slowdown": self.times["ttft_s"] / prefill,
            "tbt_slowdown": self.times["tbt_s"] / decode,
            "e2e_slowdown": self.times["e2e_s"] / (prefill + rest * decode),
        }

    @functools.cached_property
    def objectives(self) -> list[Objective]:
        """Every limit of the scenario with what was reached."""
        return objectives(self)

    @property
    def holds(self) -> bool:
        """Whether every request was served and every limit holds."""
        return bool(self.finished.all()) and all(each.holds for each in self.objectives)

    @property
    def duration_s(self) -> float:
        """From the first arrival to the last event, seconds."""
        return self.outcome.end_s - float(self.workload.arrival_s[0])

    @functools.cached_property
    def goodput_rps(self) -> float | None:
        """Requests/s that meet the goodput objective; None without one."""
        wanted = self.cluster.scenario.goodput
        if wanted is None:
            return None
        good = int(meets(self, wanted).sum())
        return good / self.duration_s if self.duration_s > 0.0 else float(good)

    @functools.cached_property
    def spending(self) -> Spending:
        """Dollars, watts and joules of the cluster."""
        return spending(self)

    @functools.cached_property
    def prefix(self) -> dict[str, Any]:
        """What the prefix caches saved, in tokens of prompts; empty without one.

        ``found_tokens, loaded_tokens, computed_tokens`` of all prefills (those after a
        preemption or a failure too), ``hit_rate`` (the first two of the sum), what was loaded
        from other ranks of the pool and by tier (``loaded``), tokens that ranks and tiers
        forgot (``forgotten``), and output written for next turns (``returned_tokens``).
        """
        if not self.cluster.caching:
            return {}
        rows, caches = self.outcome.instances, self.outcome.caches
        found, loaded, computed, returned = (
            int(rows[name].sum())
            for name in ("found_tokens", "loaded_tokens", "prompt_tokens", "returned_tokens")
        )
        ranks = len(caches) // 3
        levels = np.split(caches, [ranks, 2 * ranks, 3 * ranks])
        return {
            "found_tokens": found,
            "loaded_tokens": loaded,
            "computed_tokens": computed,
            "hit_rate": (found + loaded) / max(1, found + loaded + computed),
            "loaded": {
                name: int(level["loaded"].sum())
                for name, level in zip(("pool", *TIERS), levels, strict=True)
            },
            "forgotten": {
                name: int(level["dropped"].sum())
                for name, level in zip(("rank", *TIERS), levels, strict=True)
            },
            "returned_tokens": returned,
        }

    def pool_records(self) -> list[dict[str, Any]]:
        """A dict per pool: instances, chips, busy shares, KV occupancy."""
        rows, found, start = self.outcome.instances, [], 0
        total = max(self.outcome.end_s, 1e-300)
        for name, count in self.instances.items():
            of = rows[start : start + count]
            start += count
            setup = self.cluster.capacity(name)
            time = max(1, count) * total
            held = max(1, count) * setup.kv_blocks * setup.ranks * total
            found.append(
                {
                    "pool": name,
                    "instances": count,
                    "chips": count * setup.chips,
                    "kv_tokens": setup.kv_blocks * setup.block,
                    "prefill_share": float(of["prefill_s"].sum()) / time,
                    "decode_share": float(of["decode_s"].sum()) / time,
                    "mixed_share": float(of["mixed_s"].sum()) / time,
                    "kv_share": float(of["used_seconds"].sum()) / held,
                    "steps": int(of["steps"].sum()),
                }
            )
        return found

    def configuration(self) -> dict[str, Any]:
        """What the rows follow from, and the summary, as plain JSON values."""
        return {
            "kind": "simulation",
            "scenario": self.cluster.scenario.plain(),
            "instances": dict(self.instances),
            "summary": {key: value for key, value in self.summary().items() if key != "wall_s"},
        }

    def summary(self) -> dict[str, Any]:
        """Everything in plain values, as ``simulate --json`` gives it."""
        times = {name: array[self.finished] for name, array in self.times.items()}
        gaps, counts = self.outcome.gaps, self.outcome.gap_counts
        tokens = self.workload
        done = self.finished
        span = max(self.duration_s, 1e-300)
        slowdown = {
            name.removesuffix("_slowdown"): spread(array[done])
            for name, array in self.slowdowns.items()
        }
        return {
            "scenario": self.cluster.scenario.name,
            "model": self.cluster.model.name,
            "workload": tokens.name,
            "seed": tokens.seed,
            "instances": dict(self.instances),
            **self.counts,
            "rejections": self.rejections,
            "stopped": self.outcome.stopped,
            "duration_s": self.duration_s,
            "throughput_rps": int(done.sum()) / span,
            "output_tokens_per_s": self.outcome.emitted / span,
            "queue_s": spread(times["queue_s"]),
            "ttft_s": spread(times["ttft_s"]),
            "itl_s": spread(gaps, counts),
            "tpot_s": spread(times["tpot_s"][~np.isnan(times["tpot_s"])]),
            "tbt_s": spread(times["tbt_s"]),
            "e2e_s": spread(times["e2e_s"]),
            "transfer_s": spread(times["transfer_s"]),
            "slowdown": slowdown,
            "slo": [each.record() for each in self.objectives],
            "holds": self.holds,
            "goodput_rps": self.goodput_rps,
            "cached_tokens": int(self.outcome.requests["cached"].sum()),
            "prefix": self.prefix,
            "preemptions": int(self.outcome.requests["preemptions"].sum()),
            "retries": int(self.outcome.requests["retries"].sum()),
            **self.spending.record(),
            "rows": self.pool_records(),
            "events": self.outcome.events,
            "wall_s": self.wall_s,
        }
