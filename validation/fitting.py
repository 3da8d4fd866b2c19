"""Fits of execution blocks: few named factors, robust least squares on log error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chipsim.execution import Execution

Residuals = Callable[[Execution], npt.NDArray[np.float64]]
"""Weighted log errors of a block against the data."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor to fit.

    Attributes
    ----------
    paths : tuple of str
        Dotted fields of `Execution` that share the value.
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
class Fit:
    """A fitted block, and how well its factors are known."""

    block: Execution
    factors: tuple[Factor, ...]
    values: tuple[float, ...]
    spread: tuple[float, ...]
    """Relative standard error of each factor (infinite: not identified)."""
    cost: float
    start_cost: float

    def lines(self) -> list[str]:
        """One line per factor: value, spread, and whether it stands at a bound."""
        out = []
        for factor, value, spread in zip(self.factors, self.values, self.spread, strict=True):
            near = 1e-3 * (factor.high - factor.low)
            at_bound = min(value - factor.low, factor.high - value) <= near
            note = "  at its bound" if at_bound else ""
            out.append(f"{factor.name:22s} {value:12.5g}  +- {100 * spread:5.1f} %{note}")
        return out


def with_factors(
    block: Execution, factors: Sequence[Factor], values: Sequence[float]
) -> Execution:
    """The block with some of its fields replaced (`ConfigError` where not allowed)."""
    fields: dict[str, Any] = block.model_dump()
    for factor, value in zip(factors, values, strict=True):
        for path in factor.paths:
            *parents, leaf = path.split(".")
            place = fields
            for parent in parents:
                place = place[parent]
            place[leaf] = float(value)
    return Execution.build(block.name, **fields)


def fit(
    block: Execution,
    factors: Sequence[Factor],
    residuals: Residuals,
    *,
    scale: float = 0.05,
    step: float = 0.01,
) -> Fit:
    """Robust least squares (soft L1 on log error), then a polish along each factor.

    Latency is a minimum over discrete mappings, so it is only piecewise smooth: finite
    differences take a wide ``step``, and the polish needs no derivative.

    Parameters
    ----------
    scale : float
        Log error beyond which a row counts less.
    step : float
        Relative step of the finite differences.
    """
    from scipy.optimize import least_squares

    low = np.array([factor.low for factor in factors])
    high = np.array([factor.high for factor in factors])
    start = np.array([factor.start for factor in factors])

    def errors(unit: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return residuals(with_factors(block, factors, unit * start))

    solution = least_squares(
        errors,
        np.ones(len(factors)),
        bounds=(low / start, high / start),
        diff_step=step,
        loss="soft_l1",
        f_scale=scale,
        max_nfev=40,
    )
    best, cost = _polish(errors, solution.x, low / start, high / start, scale)
    return Fit(
        block=with_factors(block, factors, best * start),
        factors=tuple(factors),
        values=tuple((best * start).tolist()),
        spread=tuple(_spread(solution.jac, solution.fun).tolist()),
        cost=cost,
        start_cost=_cost(errors(np.ones(len(factors))), scale),
    )


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
