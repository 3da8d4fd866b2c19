"""Arrival processes: times from a rate, a kind and a stream of random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from chipsim.cluster.distributions import Share
from chipsim.cluster.workload_checks import MOST_REQUESTS
from chipsim.errors import ConfigError
from chipsim.spec import FieldError, Spec
from chipsim.units import Seconds

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Kind = Literal["poisson", "gamma", "deterministic", "gaps", "diurnal"]
KINDS: tuple[Kind, ...] = ("poisson", "gamma", "deterministic", "gaps", "diurnal")
Table = Annotated[tuple[Annotated[float, Field(ge=0, le=1e9)], ...], Field(max_length=100_000)]
"""Numbers from 0."""
SMALLEST_CV, LARGEST_CV = 0.01, 100.0


class Gaps(Spec):
    """Measured gaps over their mean: ``share`` of all are at most ``ratio``."""

    ratio: Annotated[Table, Field(min_length=2)]
    share: Annotated[tuple[Share, ...], Field(min_length=2, max_length=100_000)]

    @model_validator(mode="after")
    def _is_a_distribution(self) -> Self:
        if len(self.ratio) != len(self.share):
            raise FieldError(
                "share", f"{len(self.share)} entries", f"{len(self.ratio)}, as ratio"
            )
        for name in ("ratio", "share"):
            if (np.diff(getattr(self, name)) < 0.0).any():
                raise FieldError(name, "a number that falls", "numbers that never fall")
        if (self.share[0], self.share[-1]) != (0.0, 1.0) or self.ratio[-1] <= 0.0:
            raise FieldError("share", (self.share[0], self.share[-1]), "from 0 to 1")
        return self

    def draw(self, u: Floats) -> Floats:
        """Gaps at the shares ``u``, their mean exactly 1 (linear between lines)."""
        ratio, share = np.array(self.ratio), np.array(self.share)
        mean = float(np.sum(np.diff(share) * (ratio[1:] + ratio[:-1]) / 2.0))
        return np.asarray(np.interp(u, share, ratio) / mean)


class Arrivals(Spec):
    """How requests arrive at a mean rate."""

    kind: Kind = "poisson"
    """Exponential gaps; gamma gaps of ``cv``; equal gaps; gaps drawn from the table
    ``gaps``, each by itself; Poisson whose rate follows the time of day."""
    cv: Annotated[float, Field(ge=SMALLEST_CV, le=LARGEST_CV)] | None = None
    """Standard deviation of gamma gaps over their mean: 1 is Poisson, above 1 bursts."""
    gaps: Gaps | None = None
    swing: Annotated[float, Field(ge=0, le=1)] | None = None
    """Diurnal: rate(t) = rate (1 + swing sin(2 pi t / period))."""
    hourly: Annotated[Table, Field(min_length=1)] | None = None
    """Diurnal: rates of equal parts of the period, up to a factor: their mean is ``rate``."""
    period: Annotated[Seconds, Field(gt=0, le=1e9)] = 86400.0

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> Self:
        if self.kind == "gamma" and self.cv is None:
            raise FieldError("cv", None, "a number above 0, for kind gamma")
        if self.kind == "gaps" and self.gaps is None:
            raise FieldError("gaps", None, "a table of ratio and share, for kind gaps")
        if self.kind == "diurnal" and (self.swing is None) == (self.hourly is None):
            raise FieldError("swing", self.swing, "swing or hourly, for kind diurnal")
        if self.hourly is not None and max(self.hourly) <= 0.0:
            raise FieldError("hourly", 0, "at least one rate above 0")
        return self


def arrival_times(
    arrivals: Arrivals,
    rate: float,
    rng: Generator,
    requests: int | None = None,
    duration_s: float | None = None,
) -> Floats:
    """Arrival times in order, seconds.

    Parameters
    ----------
    arrivals : Arrivals
        The process.
    rate : float
        Mean rate, 1/s.
    rng : numpy.random.Generator
        Gives the same times for the same state; a longer run begins as a shorter one.
    requests, duration_s : int, float
        How many, or until when (excluded): one of the two.

    Returns
    -------
    float64 array, rank 1
        May be empty where a duration is given.

    Raises
    ------
    ConfigError
        A rate or a size that is not above 0, or more than `MOST_REQUESTS`.
    """  # fmt: skip
    _check(rate, requests, duration_s)
    if arrivals.kind == "diurnal":
        return _thinned(arrivals, rate, rng, requests, duration_s)
    if arrivals.kind == "deterministic":
        count = requests if requests is not None else math.ceil((duration_s or 0.0) * rate)
        return np.arange(count) / rate
    return _summed(_draws(arrivals, rng), rate, requests, duration_s)


def _check(rate: float, requests: int | None, duration_s: float | None) -> None:
    if not 0.0 < rate <= 1e9:
        raise ConfigError("arrivals", "rate", rate, "requests/s above 0, at most 1e9")
    if (requests is None) == (duration_s is None):
        both = f"requests {requests}, duration {duration_s}"
        raise ConfigError("arrivals", "", both, "either requests or a duration")
    if requests is not None and not 1 <= requests <= MOST_REQUESTS:
        raise ConfigError("arrivals", "requests", requests, f"1 to {MOST_REQUESTS:.0e}")
    if duration_s is not None and not (duration_s > 0.0 and duration_s * rate <= MOST_REQUESTS):
        allowed = f"above 0 s, at most {MOST_REQUESTS:.0e} requests"
        raise ConfigError("arrivals", "duration", duration_s, allowed)


def _draws(arrivals: Arrivals, rng: Generator) -> Callable[[int], Floats]:
    """A function that draws so many gaps of mean 1."""
    if arrivals.kind == "gamma":
        shape = float(arrivals.cv or 1.0) ** -2
        return lambda count: rng.standard_gamma(shape, count) / shape
    if arrivals.kind == "gaps":
        table = arrivals.gaps or Gaps(ratio=(1.0, 1.0), share=(0.0, 1.0))
        return lambda count: table.draw(rng.random(count))
    return lambda count: -np.log1p(-rng.random(count))


def _summed(
    draw: Callable[[int], Floats], rate: float, requests: int | None, duration_s: float | None
) -> Floats:
    """Sums of gaps, the first one before the first arrival."""
    if requests is not None:
        return np.cumsum(draw(requests) / rate)
    until, parts, last, drawn = duration_s or 0.0, [np.empty(0)], 0.0, 0
    while last < until:
        gaps = draw(CHUNK) / rate
        gaps[0] += last
        parts.append(np.cumsum(gaps))
        last, drawn = float(parts[-1][-1]), drawn + CHUNK
        if drawn > 2 * MOST_REQUESTS:
            raise ConfigError(
                "arrivals", "duration", duration_s, f"{MOST_REQUESTS:.0e} requests"
            )
    at = np.concatenate(parts)
    return at[at < until]


CHUNK = 4096
"""Gaps drawn at once where it is not known how many will be needed."""


def _thinned(
    arrivals: Arrivals, rate: float, rng: Generator, requests: int | None,
    duration_s: float | None,
) -> Floats:  # fmt: skip
    """A Poisson process of changing rate, by thinning one of its highest rate.

    P. A. W. Lewis and G. S. Shedler, "Simulation of nonhomogeneous Poisson processes by
    thinning", Naval Research Logistics Quarterly 26 (1979).
    """
    shape, peak = _rates(arrivals)
    if peak > MOST_PEAK:
        raise ConfigError(
            "arrivals", "hourly", peak, f"a peak of at most {MOST_PEAK} × the mean"
        )
    parts: list[Floats] = []
    last, found = 0.0, 0
    while (found < requests) if requests is not None else (last < (duration_s or 0.0)):
        gaps = -np.log1p(-rng.random(CHUNK)) / (rate * peak)
        gaps[0] += last
        at = np.cumsum(gaps)
        last = float(at[-1])
        kept = at[rng.random(CHUNK) * peak < shape(at)]
        parts.append(kept)
        found += len(kept)
    at = np.concatenate(parts) if parts else np.empty(0)
    return at[:requests] if requests is not None else at[at < (duration_s or 0.0)]


MOST_PEAK = 1000.0
"""Highest rate over the mean one: each arrival costs so many draws."""


def _rates(arrivals: Arrivals) -> tuple[Callable[[Floats], Floats], float]:
    """The rate over its mean as a function of time, and its highest value."""
    period = arrivals.period
    if arrivals.hourly is None:
        swing = arrivals.swing or 0.0
        return lambda t: 1.0 + swing * np.sin(2.0 * np.pi * t / period), 1.0 + swing
    table = np.array(arrivals.hourly) / np.mean(arrivals.hourly)
    parts = len(table)
    return lambda t: table[(t / period * parts).astype(np.int64) % parts], float(table.max())
