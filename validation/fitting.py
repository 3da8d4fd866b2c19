"""Fits of few named factors: robust least squares on log error.

What is fitted is a description with a name: an execution block, or a serving engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from typing import Self


class Named(Protocol):
    """A description that can be taken apart and built again."""

    @property
    def name(self) -> str:
        """What errors call it."""

    def model_dump(self) -> dict[str, Any]:
        """Its fields."""

    @classmethod
    def build(cls, where: str, **fields: Any) -> Self:
        """One of the same kind from fields."""


Block = TypeVar("Block", bound=Named)
Residuals = Callable[[Block], npt.NDArray[np.float64]]
"""Weighted log errors of a block against the data."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor to fit.

    Attributes
    ----------
    paths : tuple of str
        Dotted fields of what is fitted that share the value.
    start, low, high : float
        SI. A fit that ends at ``low`` or ``high`` is reported: a term is missing.
    """

    paths: tuple[str, ...]
    start: float
    low: float
    high: float

    @property
    def name(self) -> str:
        """The first field names the factor."""
        return self.paths[0]


@dataclass(frozen=True, slots=True)
class Fit(Generic[Block]):
    """A fitted block, and how well its factors are known."""

    block: Block
    factors: tuple[Factor, ...]
    values: tuple[float, ...]
    spread: tuple[float, ...]
    """Relative standard error of each factor (infinite: not identified)."""
    cost: float
    start_cost: float
    singular: tuple[float, ...] = ()
    """Singular values of the errors' derivatives by relative change of the factors, largest
    first: a small one is a combination of factors that the data do not tell apart."""
    loosest: str = ""
    """That combination, in words."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Every field that was fitted."""
        return tuple(path for factor in self.factors for path in factor.paths)

    @property
    def at_bounds(self) -> tuple[str, ...]:
        """Factors that stand at a bound: a term is missing, or the data do not show them."""
        return tuple(
            factor.name
            for factor, value in zip(self.factors, self.values, strict=True)
            if _at_bound(factor, value)
        )

    def lines(self) -> list[str]:
        """One line per factor: value, spread, and whether it stands at a bound."""
        out = []
        for factor, value, spread in zip(self.factors, self.values, self.spread, strict=True):
            note = "  at its bound" if _at_bound(factor, value) else ""
            out.append(f"{factor.name:22s} {value:12.5g}  +- {100 * spread:5.1f} %{note}")
        return out


def _at_bound(factor: Factor, value: float) -> bool:
    near = 1e-3 * (factor.high - factor.low)
    return min(value - factor.low, factor.high - value) <= near


def with_factors(block: Block, factors: Sequence[Factor], values: Sequence[float]) -> Block:
    """The block with some of its fields replaced (`ConfigError` where not allowed)."""
    fields: dict[str, Any] = block.model_dump()
    for factor, value in zip(factors, values, strict=True):
        for path in factor.paths:
            *parents, leaf = path.split(".")
            place = fields
            for parent in parents:
                place = place[parent]
            place[leaf] = float(value)
    return type(block).build(block.name, **fields)


def fit(
    block: Block,
    factors: Sequence[Factor],
    residuals: Residuals[Block],
    *,
    scale: float = 0.05,
    step: float = 0.01,
    starts: int = 1,
    tolerance: float = 1e-8,
) -> Fit[Block]:
    """Robust least squares (soft L1 on log error), then a polish along each factor.

    Latency is a minimum over discrete mappings, so it is only piecewise smooth: finite
    differences take a wide ``step``, and the polish needs no derivative.

    Parameters
    ----------
    scale : float
        Log error beyond which a row counts less.
    step : float
        Relative step of the finite differences.
    starts : int
        Places to start from: the factors' own, and others within a factor of 2 of them
        (the same ones every time); the best end counts.
    tolerance : float
        Relative fall of the cost, and change of the factors, below which the least squares
        end; the polish goes on from there.
    """
    from scipy.optimize import least_squares

    low = np.array([factor.low for factor in factors])
    high = np.array([factor.high for factor in factors])
    start = np.array([factor.start for factor in factors])

    def errors(unit: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return residuals(with_factors(block, factors, unit * start))

    solution = min(
        (
            least_squares(
                errors,
                first,
                bounds=(low / start, high / start),
                diff_step=step,
                loss="soft_l1",
                f_scale=scale,
                max_nfev=40,
                ftol=tolerance,
                xtol=tolerance,
            )
            for first in _starts(starts, low / start, high / start)
        ),
        key=lambda found: found.cost,
    )
    best, cost = _polish(errors, solution.x, low / start, high / start, scale)
    relative = solution.jac * solution.x
    singular, loosest = _identified(relative, factors)
    return Fit(
        block=with_factors(block, factors, best * start),
        factors=tuple(factors),
        values=tuple((best * start).tolist()),
        spread=tuple(_spread(relative, solution.fun).tolist()),
        cost=cost,
        start_cost=_cost(errors(np.ones(len(factors))), scale),
        singular=singular,
        loosest=loosest,
    )


def _starts(
    count: int, low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]
) -> list[npt.NDArray[np.float64]]:
    """Where to start from: ones, then draws of a fixed seed."""
    draws = np.random.default_rng(0).uniform(-1.0, 1.0, (count - 1, len(low)))
    inside = (np.clip(2.0**draw, low, high) for draw in draws)
    return [np.ones(len(low)), *inside]


def _identified(
    relative: npt.NDArray[np.float64], factors: Sequence[Factor]
) -> tuple[tuple[float, ...], str]:
    """Singular values of the relative derivatives, and what the smallest is made of."""
    _, values, directions = np.linalg.svd(relative, full_matrices=False)
    last = directions[-1]
    parts = sorted(zip(last, factors, strict=True), key=lambda part: -abs(part[0]))
    words = [f"{weight:+.2f} {factor.name}" for weight, factor in parts if abs(weight) > 0.2]
    return tuple(values.tolist()), " ".join(words)


def _cost(errors: npt.NDArray[np.float64], scale: float) -> float:
    """Soft L1 as scipy defines it."""
    return float(np.sum(scale**2 * (np.sqrt(1.0 + (errors / scale) ** 2) - 1.0)))


def _polish(
    errors: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]],
    start: npt.NDArray[np.float64],
    low: npt.NDArray[np.float64],
    high: npt.NDArray[np.float64],
    scale: float,
) -> tuple[npt.NDArray[np.float64], float]:
    """Walk along each factor with shrinking steps while the cost falls."""
    best, cost = start.copy(), _cost(errors(start), scale)
    for step in (0.04, 0.01, 0.0025):
        for i in range(len(best)):
            for sign in (1.0, -1.0):
                while True:
                    trial = best.copy()
                    trial[i] = np.clip(trial[i] * (1.0 + sign * step), low[i], high[i])
                    found = _cost(errors(trial), scale)
                    if found >= cost * (1.0 - 1e-6):
                        break
                    best, cost = trial, found
    return best, cost


def _spread(
    jacobian: npt.NDArray[np.float64], errors: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Relative standard errors from the curvature at the solution."""
    freedom = max(1, len(errors) - jacobian.shape[1])
    variance = float(errors @ errors) / freedom
    normal = jacobian.T @ jacobian
    spread = np.full(len(normal), np.inf)
    if np.linalg.matrix_rank(normal) == len(normal):
        spread = np.sqrt(np.diag(np.linalg.inv(normal)) * variance)
    return spread
