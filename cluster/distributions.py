"""Distributions of lengths and times, each drawn by its inverse: `tokens` of uniforms.

A draw is a function of a number u in [0, 1): two lengths that share their u rise and fall
together, and a seed gives the same requests whatever their rate.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from chipsim.cluster.workload_checks import MOST_TOKENS
from chipsim.spec import FieldError, Spec
from chipsim.units import Seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Whole = NDArray[np.int64]

Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS)]
Mean = Annotated[float, Field(ge=1, le=MOST_TOKENS)]
Spread = Annotated[float, Field(gt=0, le=100)]
Share = Annotated[float, Field(ge=0, le=1)]


class Fixed(Spec):
    """The same length each time."""

    kind: Literal["fixed"] = "fixed"
    tokens: Tokens

    def tokens_of(self, u: Floats) -> Whole:
        """Tokens at the shares ``u`` of [0, 1) (rank 1)."""
        return np.full(len(u), self.tokens, np.int64)


class Uniform(Spec):
    """Whole numbers from ``low`` to ``high``, both included."""

    kind: Literal["uniform"] = "uniform"
    low: Tokens
    high: Tokens

    @model_validator(mode="after")
    def _rises(self) -> Self:
        if self.high < self.low:
            raise FieldError("high", self.high, f"{self.low} (low) or more")
        return self

    def tokens_of(self, u: Floats) -> Whole:
        """Tokens at the shares ``u`` of [0, 1) (rank 1)."""
        return self.low + np.floor(u * (self.high - self.low + 1)).astype(np.int64)


class Geometric(Spec):
    """Memoryless, from 1: P(k) = (1 - 1/mean)^(k - 1) / mean."""

    kind: Literal["geometric"] = "geometric"
    mean: Mean

    def tokens_of(self, u: Floats) -> Whole:
        """Tokens at the shares ``u`` of [0, 1) (rank 1)."""
        if self.mean == 1.0:
            return np.ones(len(u), np.int64)
        return _whole(np.floor(np.log1p(-u) / math.log1p(-1.0 / self.mean)) + 1.0)


class Lognormal(Spec):
    """Lognormal of a mean and a coefficient of variation, rounded, at least 1.

    sigma^2 = ln(1 + cv^2), mu = ln(mean) - sigma^2 / 2. Rounding up what is below 1 moves
    the mean of short lengths; ``most`` cuts the upper tail there.
    """

    kind: Literal["lognormal"] = "lognormal"
    mean: Mean
    cv: Spread
    most: Tokens = MOST_TOKENS
    """Longer draws become this."""

    def tokens_of(self, u: Floats) -> Whole:
        """Tokens at the shares ``u`` of [0, 1) (rank 1)."""
        return np.minimum(_whole(np.rint(lognormal(u, self.mean, self.cv))), self.most)


class Quantiles(Spec):
    """A table: ``share`` of all requests have at most ``tokens``.

    Between two lines the share rises evenly over the whole numbers; two neighbouring
    numbers are therefore drawn exactly as often as the table says. The first line's share
    is that of its very number.
    """

    kind: Literal["quantiles"] = "quantiles"
    tokens: tuple[Tokens, ...] = Field(min_length=1, max_length=100_000)
    share: tuple[Share, ...] = Field(min_length=1, max_length=100_000)

    @model_validator(mode="after")
    def _is_a_distribution(self) -> Self:
        if len(self.tokens) != len(self.share):
            raise FieldError(
                "share", f"{len(self.share)} entries", f"{len(self.tokens)}, as tokens"
            )
        if any(b <= a for a, b in zip(self.tokens, self.tokens[1:], strict=False)):
            raise FieldError("tokens", "a number that does not rise", "numbers that rise")
        if any(b < a for a, b in zip(self.share, self.share[1:], strict=False)):
            raise FieldError("share", "a share that falls", "shares that never fall")
        if self.share[-1] != 1.0:
            raise FieldError("share", self.share[-1], "1 in the last place")
        return self

    def tokens_of(self, u: Floats) -> Whole:
        """Tokens at the shares ``u`` of [0, 1) (rank 1)."""
        # u is in (F(k - 1), F(k)] where k is drawn; 1 - u has the same distribution and
        # is never 0, but would turn a correlation round: the next float above u does it.
        at = np.interp(np.nextafter(u, 1.0), self.share, self.tokens)
        return _whole(np.ceil(np.round(at, 9)))


def _kind(value: Any) -> str:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return f"<{kind}>"


Length: TypeAlias = Annotated[
    Annotated[Fixed, Tag("<fixed>")]
    | Annotated[Uniform, Tag("<uniform>")]
    | Annotated[Geometric, Tag("<geometric>")]
    | Annotated[Lognormal, Tag("<lognormal>")]
    | Annotated[Quantiles, Tag("<quantiles>")],
    Discriminator(
        _kind,
        custom_error_type="kind",
        custom_error_message="kind: fixed, uniform, geometric, lognormal or quantiles",
    ),
]
"""A distribution of tokens, told apart by ``kind``."""


class Think(Spec):
    """Time between the completion of a turn and the arrival of the next."""

    kind: Literal["fixed", "exponential", "lognormal"] = "fixed"
    mean: Annotated[Seconds, Field(ge=0, le=1e9)]
    cv: Spread = 1.0
    """Of a lognormal."""

    def seconds_of(self, u: Floats) -> Floats:
        """Seconds at the shares ``u`` of [0, 1) (rank 1)."""
        if self.kind == "exponential":
            return -self.mean * np.log1p(-u)
        if self.kind == "lognormal" and self.mean > 0.0:
            return lognormal(u, self.mean, self.cv)
        return np.full(len(u), self.mean)


def lognormal(u: Floats, mean: float, cv: float) -> Floats:
    """Lognormal quantiles at ``u`` of [0, 1), by mean and coefficient of variation."""
    from scipy.special import ndtri

    sigma = math.sqrt(math.log1p(cv * cv))
    inside = np.maximum(u, np.finfo(float).tiny)
    return np.asarray(mean * np.exp(sigma * ndtri(inside) - 0.5 * sigma * sigma))


def correlated(first: Floats, second: Floats, rho: float) -> Floats:
    """``second`` made to depend on ``first`` by a Gaussian copula.

    Parameters
    ----------
    first, second : float64 arrays, rank 1
        Independent uniforms.
    rho : float
        Correlation of their normal scores, -1 to 1.

    Returns
    -------
    float64 array, rank 1
        Uniform by itself; rank correlation with ``first`` is 6/pi asin(rho/2).
    """
    from scipy.special import ndtr, ndtri

    if rho == 0.0:
        return second
    a, b = (ndtri(np.maximum(u, np.finfo(float).tiny)) for u in (first, second))
    mixed = ndtr(rho * a + math.sqrt(1.0 - rho * rho) * b)
    return np.asarray(np.minimum(mixed, np.nextafter(1.0, 0.0)))


def _whole(values: Floats) -> Whole:
    return np.clip(values, 1.0, MOST_TOKENS).astype(np.int64)
