"""Layouts of owned chips, ranked: what `chipsim.cluster.planning` answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.cluster.inventory import Owned
    from chipsim.cluster.layouts import Column
    from chipsim.cluster.results import Simulation
    from chipsim.cluster.scenario import Scenario
    from chipsim.cluster.simulate import Cluster

PlanGoal = Literal["rate", "latency"]
"""Most requests/s within the objective, or the least mean E2E at the scenario's rate."""


class Tuning(NamedTuple):
    """How pools batch.

    Attributes
    ----------
    max_tokens : int
        Tokens of a step where prompts are: the chunk.
    max_batch : int
        Sequences of a rank that decodes.
    """

    max_tokens: int
    max_batch: int


@dataclass(frozen=True)
class Planned:
    """A layout with the tuning that is best for it.

    Attributes
    ----------
    text : str
        The layout in words.
    pools : tuple of (Column, int)
        Its pools and their instances.
    tuning : Tuning
    value : float
        Requests/s that it holds, or mean E2E in seconds.
    bound : float
        What no tuning of it can pass.
    breaks : str
        The limit that the next rate of the grid breaks; ``work`` where the bound does.
    run : Simulation
        At the largest rate (the scenario's, for the least latency), first seed.
    """

    text: str
    pools: tuple[tuple[Column, int], ...]
    tuning: Tuning
    value: float
    bound: float
    breaks: str
    run: Simulation

    @property
    def cluster(self) -> Cluster:
        """The layout as a cluster."""
        return self.run.cluster

    @property
    def binding(self) -> tuple[str, float | None]:
        """The limit with the least margin in `run`, and that margin."""
        worst = min(self.run.objectives, key=lambda each: each.margin)
        return worst.name, worst.margin if math.isfinite(worst.margin) else None

    def record(self) -> dict[str, Any]:
        """As plain values."""
        binding, margin = self.binding
        figures = self.run.summary()
        return {
            "layout": self.text,
            "pools": [
                {"pool": column.name, "role": column.role, "chip": column.kind.chip,
                 "plan": column.kind.plan, "instances": count,
                 "chips": count * column.kind.chips}
                for column, count in self.pools
            ],
            "max_tokens": self.tuning.max_tokens,
            "max_batch": self.tuning.max_batch,
            "bound": self.bound,
            "breaks": self.breaks,
            "binding": binding,
            "margin": margin,
            "goodput_rps": figures["goodput_rps"],
            **{f"{name}_{share}_s": figures[f"{name}_s"][share]
               for name in ("ttft", "itl", "e2e") for share in ("p50", "p99")},
        }  # fmt: skip


@dataclass(frozen=True)
class Ranking:
    """Layouts of an inventory, the best first.

    Attributes
    ----------
    scenario : Scenario
        Model, workload and objective.
    inventory : tuple of Owned
    goal : str
    seeds : tuple of int
    rows : tuple of Planned
        Empty where nothing holds the objective.
    requests : int
        Of a run.
    layouts, tried, runs : int
        Layouts that there are; that were run, the others being ruled out; and runs.
    reason : str
        Why nothing holds; empty where something does.
    wall_s : float
    """

    scenario: Scenario
    inventory: tuple[Owned, ...]
    goal: str
    seeds: tuple[int, ...]
    rows: tuple[Planned, ...]
    requests: int
    layouts: int
    tried: int
    runs: int
    reason: str
    wall_s: float

    @property
    def decided(self) -> list[str]:
        """The first layout in lines: what was decided, and why."""
        if not self.rows:
            return []
        best = self.rows[0]
        binding, margin = best.binding
        left = "" if margin is None else f" with {100.0 * margin:.3g} % to spare"
        if self.goal == "rate":
            what = f"holds {best.value:.4g} requests/s, of {best.bound:.4g} that work allows"
            after = f"the next rate breaks {best.breaks}"
        else:
            what, after = (
                f"mean E2E {best.value:.4g} s",
                f"of {best.bound:.4g} s alone at least",
            )
        tuning = f"chunk {best.tuning.max_tokens}, batch {best.tuning.max_batch}"
        return [f"{best.text}, {tuning}", f"{what}; {after}; {binding} binds{left}"]

    def records(self) -> list[dict[str, Any]]:
        """One dict per layout."""
        name = {"rate": "capacity_rps", "latency": "mean_e2e_s"}[self.goal]
        return [
            {"rank": rank, name: row.value} | row.record()
            for rank, row in enumerate(self.rows, start=1)
        ]

    def frame(self) -> pd.DataFrame:
        """Layouts as a table: the keys of `Planned.record`, pools as text."""
        import pandas as pd

        rows = [{k: v for k, v in row.items() if k != "pools"} for row in self.records()]
        return pd.DataFrame(rows)

    def configuration(self) -> dict[str, Any]:
        """What the rows follow from, as plain JSON values."""
        return {
            "kind": "plan",
            "scenario": self.scenario.model_dump(mode="json", exclude_unset=True),
            "inventory": [each.text for each in self.inventory],
            "goal": self.goal,
            "seeds": list(self.seeds),
        }
