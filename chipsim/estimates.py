"""What an estimate says of one operator and of a whole phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.ops.operators import Operator
    from chipsim.ops.phase import Phase

Bound = Literal["compute", "memory", "core draw", "link", "overhead"]
"""What an operator waits for most: arithmetic, the memory interface, what its cores can
draw (from memory or L2), the links, or the fixed time of a kernel."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Latency of one operator on one chip, and why.

    Attributes
    ----------
    latency_s : float
        Seconds, launch included.
    bound : str
        What it waits for most.
    flops : float
        Arithmetic, FLOP.
    memory_bytes : float
        Bytes over the memory interface (over the links for a collective).
    lower_bound_s : float
        ``max(FLOP / peak, compulsory bytes / peak bandwidth)``: no estimate is below it.
    parts : dict of str to float
        Seconds: ``launch``, ``core`` (busiest core), ``memory``, ``hidden`` (memory
        behind core), ``reduction``, ``link``, ``conversion`` (beyond what hides behind the
        rest); latency = launch + core + memory - hidden + reduction + link + conversion.
    mapping : dict
        Best mapping found (empty where nothing is mapped).
    conversion : str
        Operands that run in another format than their own, since the matrix units lack
        it: ``weights nvfp4 -> bf16``; a format that no array holds: ``fp32 on the vector
        units``; empty where the arrays have all.
    """

    operator: Operator
    latency_s: float
    bound: Bound
    flops: float
    memory_bytes: float
    lower_bound_s: float
    parts: dict[str, float]
    mapping: dict[str, Any]
    conversion: str = ""

    def of(self, operator: Operator) -> Estimate:
        """The same estimate for an operator of the same shape."""
        return Estimate(
            operator,
            self.latency_s,
            self.bound,
            self.flops,
            self.memory_bytes,
            self.lower_bound_s,
            self.parts,
            self.mapping,
            self.conversion,
        )

    @property
    def utilisation(self) -> float:
        """Lower bound over latency, 0 ... 1."""
        # Both are sums of the same parts: rounding alone may put one above the other.
        return min(1.0, self.lower_bound_s / self.latency_s) if self.latency_s > 0 else 1.0


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """One operator of a phase: its estimate, and how often it runs."""

    name: str
    group: str
    count: int
    estimate: Estimate

    @property
    def latency_s(self) -> float:
        """All runs of the operator, seconds."""
        return self.count * self.estimate.latency_s


@dataclass(frozen=True, slots=True)
class PhaseEstimate:
    """Latency of a phase: its operators one after the other.

    Attributes
    ----------
    latency_s : float
        One step, seconds.
    layers : int
        Layers of the model; operators of a layer have this count.
    rows : tuple of OperatorRow
        Operators that one chip runs; with pipeline stages those that one part of the
        sequences meets on its way through all of them.
    parts : int
        Parts that pipeline stages work on side by side.
    stage_s : float
        Seconds of a part in the slowest stage (without stages: of the step).
    bubble : float
        Share of the stages' time without work, 0 ... 1.
    stage_layers : tuple of int
        Layers of each pipeline stage, in their order (empty: an encoder's are not counted).
    """

    chip: str
    execution: str
    model: str
    phase: Phase
    plan: str
    layers: int
    latency_s: float
    rows: tuple[OperatorRow, ...]
    parts: int = 1
    stage_s: float = 0.0
    bubble: float = 0.0
    stage_layers: tuple[int, ...] = ()

    @property
    def bound(self) -> Bound:
        """Bound of the largest share of the latency."""
        shares: dict[Bound, float] = {}
        for row in self.rows:
            bound = row.estimate.bound
            shares[bound] = shares.get(bound, 0.0) + row.latency_s
        return max(shares, key=lambda bound: shares[bound])

    @property
    def conversions(self) -> tuple[str, ...]:
        """What operators convert on the vector units, each once."""
        notes = (row.estimate.conversion for row in self.rows)
        parts = (part for note in notes if note for part in note.split(", "))
        return tuple(dict.fromkeys(parts))

    @property
    def flops(self) -> float:
        """FLOP of one chip."""
        return sum(row.count * row.estimate.flops for row in self.rows)

    @property
    def memory_bytes(self) -> float:
        """Bytes over one chip's memory interface."""
        return sum(
            row.count * row.estimate.memory_bytes
            for row in self.rows
            if row.estimate.operator.kind != "collective"
        )

    def records(self) -> list[dict[str, Any]]:
        """One dict per operator, as `frame` has columns."""
        return [
            {
                "name": row.name,
                "group": row.group,
                "kind": row.estimate.operator.kind,
                "count": row.count,
                "latency_s": row.latency_s,
                "share": row.latency_s / self.latency_s,
                "bound": row.estimate.bound,
                "flops": row.count * row.estimate.flops,
                "memory_bytes": row.count * row.estimate.memory_bytes,
                "utilisation": row.estimate.utilisation,
                "conversion": row.estimate.conversion,
            }
            for row in self.rows
        ]

    def frame(self) -> pd.DataFrame:
        """Operators as a table.

        Returns
        -------
        pandas.DataFrame
            ``name, group, kind, count, latency_s`` (all runs), ``share`` of the phase,
            ``bound, flops, memory_bytes, utilisation``, ``conversion`` (formats that the
            matrix units lack).
        """
        import pandas as pd

        return pd.DataFrame(self.records())
