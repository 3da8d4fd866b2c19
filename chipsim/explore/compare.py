"""Comparison of two runs: operator by operator, how much they differ, and why.

two estimates (or an estimate and another tool's seconds) -> rows -> steps of a waterfall
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from chipsim.cost.prices import book_of
from chipsim.errors import ConfigError, UnknownNameError
from chipsim.estimates import OperatorRow, PhaseEstimate
from chipsim.explore.reasons import PARTS, Side, why
from chipsim.explore.setup import Setup, resolve
from chipsim.ops.checks import positive

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.chip import Chip
    from chipsim.cost.prices import PriceBook
    from chipsim.execution import Execution
    from chipsim.explore.money import Money
    from chipsim.ops.model import ModelSpec
    from chipsim.ops.parallelism import Parallelism
    from chipsim.ops.phase import Phase
    from chipsim.ops.precision import Precision

GROUPS = (
    "embedding",
    "norm",
    "qkv",
    "attention",
    "output",
    "all_reduce",
    "mlp",
    "activation",
    "elementwise",
    "lm_head",
)
"""Groups of operators, in the order of a step; softmax counts as attention."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Seconds of another tool or a machine.

    Attributes
    ----------
    name : str
        Whose they are.
    seconds : mapping of str to float
        By operator name, or by group (`GROUPS`).
    layers : int
        Layers that the seconds span; 0: all of the estimate that they stand beside.
    """

    name: str
    seconds: Mapping[str, float]
    layers: int = 0


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One operator, or one group of operators, in both runs.

    Attributes
    ----------
    a, b : Side
        Seconds, bound and parts in each run.
    """

    name: str
    group: str
    a: Side
    b: Side

    @property
    def difference_s(self) -> float:
        """Seconds of b less those of a."""
        return self.b.latency_s - self.a.latency_s

    @property
    def ratio(self) -> float | None:
        """Seconds of b over those of a; None where a has none."""
        return self.b.latency_s / self.a.latency_s if self.a.latency_s > 0 else None

    @property
    def why(self) -> str:
        """One plain sentence."""
        return why(self.a, self.b)

    def parts(self) -> dict[str, float | None]:
        """Difference by part, seconds (None where a run does not say)."""
        known = bool(self.a.parts and self.b.parts)
        return {
            f"{part}_difference_s": self.b.parts[part] - self.a.parts[part] if known else None
            for part in PARTS
        }


@dataclass(frozen=True, slots=True)
class WaterfallStep:
    """One bar: a total, or what an operator adds to the one before."""

    label: str
    kind: Literal["total", "difference"]
    seconds: float
    reached_s: float
    """Height after this bar."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side.

    Attributes
    ----------
    name_a, name_b : str
        What was compared.
    rows : tuple of ComparisonRow
        By operator where both runs have the same ones, else by group.
    by : str
        ``"operator"`` or ``"group"``.
    setups, money : tuple
        Of a and b: what was asked, and dollars, watts and joules of one chip; empty for
        runs that are set beside another tool's.
    """

    name_a: str
    name_b: str
    rows: tuple[ComparisonRow, ...]
    by: Literal["operator", "group"]
    setups: tuple[Setup, ...] = field(default=(), repr=False)
    money: tuple[Money, ...] = ()

    @property
    def total_a_s(self) -> float:
        """Seconds of run a."""
        return sum(row.a.latency_s for row in self.rows)

    @property
    def total_b_s(self) -> float:
        """Seconds of run b."""
        return sum(row.b.latency_s for row in self.rows)

    def records(self) -> list[dict[str, Any]]:
        """One dict per row, as `frame` has columns."""
        total = self.total_b_s - self.total_a_s
        return [
            {
                "name": row.name,
                "group": row.group,
                "latency_a_s": row.a.latency_s,
                "latency_b_s": row.b.latency_s,
                "difference_s": row.difference_s,
                "ratio": row.ratio,
                "contribution": row.difference_s / total if total else 0.0,
                "bound_a": row.a.bound,
                "bound_b": row.b.bound,
                **row.parts(),
                "why": row.why,
            }
            for row in self.rows
        ]

    def frame(self) -> pd.DataFrame:
        """The comparison as a table.

        Returns
        -------
        pandas.DataFrame
            ``name, group, latency_a_s, latency_b_s, difference_s`` (b - a), ``ratio``
            (b / a), ``contribution`` (part of the whole difference), ``bound_a, bound_b``,
            the difference by part (``launch_difference_s``, ``compute…``, ``memory…``,
            ``reduction…``, ``link…``; NaN for a reference), ``why``.
        """
        import pandas as pd

        numbers = ["ratio", *(f"{part}_difference_s" for part in PARTS)]
        return pd.DataFrame(self.records()).astype(dict.fromkeys(numbers, float))

    def waterfall(self) -> list[WaterfallStep]:
        """Bars from the total of a to that of b, the largest difference first."""
        reached = self.total_a_s
        steps = [WaterfallStep(self.name_a, "total", reached, reached)]
        for row in sorted(self.rows, key=lambda row: -abs(row.difference_s)):
            reached += row.difference_s
            steps.append(WaterfallStep(row.name, "difference", row.difference_s, reached))
        return [*steps, WaterfallStep(self.name_b, "total", self.total_b_s, self.total_b_s)]

    def configuration(self) -> dict[str, Any]:
        """What was compared as plain JSON values (specs where they are known)."""
        runs = [setup.configuration() for setup in self.setups]
        return {"kind": "comparison", "a": self.name_a, "b": self.name_b, "runs": runs}


def compare(a: PhaseEstimate, b: PhaseEstimate | Reference | Mapping[str, float]) -> Comparison:
    """Set two runs side by side.

    Parameters
    ----------
    a, b : PhaseEstimate
        Two estimates; b may be a `Reference`, or bare seconds by operator or group.

    Raises
    ------
    ConfigError, UnknownNameError
        A reference with an unknown operator, or seconds that are not finite or below 0.
    """
    if not isinstance(b, PhaseEstimate):
        return _against(a, b if isinstance(b, Reference) else Reference("reference", b))
    by_operator = [row.name for row in a.rows] == [row.name for row in b.rows]
    sides_a, sides_b = (_sides(run, by_operator) for run in (a, b))
    groups = _group_names(a, by_operator) | _group_names(b, by_operator)
    rows = tuple(
        ComparisonRow(name, groups[name], sides_a.get(name, Side()), sides_b.get(name, Side()))
        for name in _ordered(groups, by_operator)
    )
    name_a, name_b = _names(a, b)
    return Comparison(name_a, name_b, rows, "operator" if by_operator else "group")


def compare_phases(
    model: ModelSpec | str,
    phase: Phase,
    plan: Parallelism | str | None,
    chip_a: Chip | str,
    execution_a: Execution | str | None,
    chip_b: Chip | str,
    execution_b: Execution | str | None,
    *,
    precision: Precision | str | None = None,
    layers_only: bool = False,
    check_memory: bool = True,
    prices: PriceBook | str = "spad-2025",
) -> Comparison:
    """Estimate a phase on two chips, or under two execution blocks, and compare.

    Parameters
    ----------
    prices : PriceBook or str
        What the chips cost; a chip that it does not price has no cost.

    Raises
    ------
    InfeasibleError, ConfigError, UnknownNameError
        As `chipsim.estimate`.

    Examples
    --------
    >>> from chipsim import Phase
    >>> both = compare_phases("llama-3.1-8b", Phase.decode(1, 4096), None,
    ...                       "h100-sxm", "ideal", "a100-sxm", "ideal")
    >>> both.rows[2].why
    'memory: 3.35 against 2.04 TB/s at the same bytes'
    """
    book = book_of(prices)
    runs = [
        resolve(
            chip,
            model,
            phase,
            plan=plan,
            execution=execution,
            precision=precision,
            layers_only=layers_only,
            check_memory=check_memory,
            prices=book,
        )
        for chip, execution in ((chip_a, execution_a), (chip_b, execution_b))
    ]
    estimates = [run.estimate() for run in runs]
    paid = [run.money(run.chip, made) for run, made in zip(runs, estimates, strict=True)]
    return replace(compare(*estimates), setups=tuple(runs), money=tuple(paid))


def _against(a: PhaseEstimate, b: Reference) -> Comparison:
    seconds = _checked_seconds(a, b)
    by_operator = not set(seconds) <= set(GROUPS)
    sides, groups = _sides(a, by_operator), _group_names(a, by_operator)
    # A group that only the reference has is still a part of its total.
    groups |= {name: name for name in seconds if name not in groups}
    rows = tuple(
        ComparisonRow(name, groups[name], sides.get(name, Side()), Side(seconds.get(name, 0.0)))
        for name in _ordered(groups, by_operator)
    )
    by: Literal["operator", "group"] = "operator" if by_operator else "group"
    return Comparison(f"{a.chip} {a.execution}", b.name, rows, by)


def _checked_seconds(a: PhaseEstimate, b: Reference) -> dict[str, float]:
    """The reference's seconds, scaled to all layers of the estimate."""
    known = {row.name for row in a.rows}
    if not set(b.seconds) <= known:
        known = set(GROUPS)
    if not b.seconds:
        raise ConfigError(b.name, "seconds", {}, "at least one operator or group")
    for name, value in b.seconds.items():
        if name not in known:
            raise UnknownNameError("operator or group", str(name), known)
        if value != 0.0:
            positive(b.name, name, value)
    scale = a.layers / b.layers if b.layers else 1.0
    return {name: float(value) * scale for name, value in b.seconds.items()}


def _sides(run: PhaseEstimate, by_operator: bool) -> dict[str, Side]:
    gathered: dict[str, list[OperatorRow]] = {}
    for row in run.rows:
        gathered.setdefault(row.name if by_operator else _group(row.group), []).append(row)
    return {name: Side.of(rows) for name, rows in gathered.items()}


def _group_names(run: PhaseEstimate, by_operator: bool) -> dict[str, str]:
    return {
        row.name if by_operator else _group(row.group): _group(row.group) for row in run.rows
    }


def _ordered(groups: dict[str, str], by_operator: bool) -> list[str]:
    if by_operator:
        return list(groups)
    return sorted(groups, key=lambda g: GROUPS.index(g) if g in GROUPS else len(GROUPS))


def _group(group: str) -> str:
    return "attention" if group == "softmax" else group


def _names(a: PhaseEstimate, b: PhaseEstimate) -> tuple[str, str]:
    """Shortest names that tell two runs apart."""
    for fields in (("chip",), ("execution",), ("chip", "execution", "model", "plan", "phase")):
        name_a, name_b = (" ".join(str(getattr(r, f)) for f in fields) for r in (a, b))
        if name_a != name_b:
            return name_a, name_b
    return f"{name_a} (a)", f"{name_b} (b)"
