"""Generated workloads: an arrival process × lengths × a seed.

Arrivals and lengths draw from streams of their own: another rate leaves every length as it
was, and a longer run begins with the requests of a shorter one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from chipsim.cluster.arrivals import Arrivals, arrival_times
from chipsim.cluster.distributions import Length, correlated
from chipsim.cluster.workload import Workload
from chipsim.errors import ConfigError
from chipsim.ops.checks import whole
from chipsim.spec import FieldError, Spec

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Pair = tuple[NDArray[np.int64], NDArray[np.int64]]


class LengthClass(Spec):
    """A share of the requests, with their own prompts and outputs."""

    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    prompt: Length
    output: Length
    correlation: Annotated[float, Field(ge=-1, le=1)] = 0.0
    """Of prompt and output inside the class: that of the normal scores of a Gaussian
    copula (`correlated`)."""


class Lengths(Spec):
    """Prompt and output tokens, as a mixture of classes."""

    classes: tuple[LengthClass, ...] = Field(min_length=1, max_length=10_000)
    joint: bool = True
    """Prompt and output of one class go together; false: each class is drawn for itself,
    which keeps both distributions and makes the two independent."""

    @model_validator(mode="after")
    def _shares_add_up(self) -> Self:
        total = sum(each.share for each in self.classes)
        if abs(total - 1.0) > 1e-6:
            raise FieldError("classes", total, "shares that add up to 1")
        return self

    @classmethod
    def of(cls, prompt: Length, output: Length, correlation: float = 0.0) -> Lengths:
        """Lengths of one class."""
        one = LengthClass.build(
            "lengths", prompt=prompt, output=output, correlation=correlation
        )
        return cls(classes=(one,))

    def draw(self, count: int, rng: Generator) -> Pair:
        """Prompt and output tokens of ``count`` requests (int64, rank 1)."""
        u = rng.random((count, 4))  # row by row: a longer run begins as a shorter one
        edges = np.cumsum([each.share for each in self.classes])[:-1]
        first = np.searchsorted(edges, u[:, 0], side="right")
        second = first if self.joint else np.searchsorted(edges, u[:, 1], side="right")
        prompt, output = np.empty(count, np.int64), np.empty(count, np.int64)
        for index, each in enumerate(self.classes):
            ours, theirs = first == index, second == index
            prompt[ours] = each.prompt.tokens_of(u[ours, 2])
            rho = each.correlation if self.joint else 0.0
            output[theirs] = each.output.tokens_of(correlated(u[theirs, 2], u[theirs, 3], rho))
        return prompt, output


def generate(
    rate: float,
    lengths: Lengths,
    arrivals: Arrivals | str = "poisson",
    *,
    requests: int | None = None,
    duration_s: float | None = None,
    seed: int = 0,
    name: str = "generated",
) -> Workload:
    """Draw a workload of an open loop.

    Parameters
    ----------
    rate : float
        Mean requests/s.
    lengths : Lengths
        Prompt and output tokens.
    arrivals : Arrivals or str
        The process, or the kind of one that needs no parameter.
    requests, duration_s : int, float
        How many, or until when: one of the two.
    seed : int
        Of numpy's PCG64, from 0.

    Raises
    ------
    ConfigError
        A number out of its range, or a duration in which nothing arrives.
    """  # fmt: skip
    process = process_of(arrivals)
    times, sizes = streams(seed, 2)
    at = arrival_times(process, rate, times, requests, duration_s)
    if len(at) == 0:
        raise ConfigError(name, "duration", duration_s, "long enough for one request")
    prompt, output = lengths.draw(len(at), sizes)
    return Workload(
        arrival_s=at, prompt_tokens=prompt, output_tokens=output, name=name,
        source=f"generated, {process.kind} arrivals", seed=seed,
    )  # fmt: skip


def resample(
    workload: Workload,
    rate: float,
    arrivals: Arrivals | str = "poisson",
    *,
    requests: int | None = None,
    duration_s: float | None = None,
    seed: int = 0,
    joint: bool = True,
) -> Workload:
    """Draw requests of a trace again, with replacement, at another rate (bootstrap).

    Parameters
    ----------
    workload : Workload
        Whose lengths are drawn; its arrivals, sessions, turns and blocks are not kept.
    joint : bool
        Prompt and output of one request go together; false: each is drawn by itself.
    rate, arrivals, requests, duration_s, seed
        As `generate`.

    Raises
    ------
    ConfigError
        As `generate`.
    """  # fmt: skip
    name = f"{workload.name}, resampled"
    times, sizes = streams(seed, 2)
    at = arrival_times(process_of(arrivals), rate, times, requests, duration_s)
    if len(at) == 0:
        raise ConfigError(name, "duration", duration_s, "long enough for one request")
    which = np.floor(sizes.random((len(at), 2)) * len(workload)).astype(np.int64)
    return Workload(
        arrival_s=at,
        prompt_tokens=workload.prompt_tokens[which[:, 0]],
        output_tokens=workload.output_tokens[which[:, 0 if joint else 1]],
        name=name,
        source=workload.source,
        dropped=workload.dropped,
        seed=seed,
    )


def rearranged(
    workload: Workload, rate: float, arrivals: Arrivals | str, seed: int
) -> Workload:
    """The same requests in their order, with arrivals drawn anew (`ConfigError`)."""
    if workload.closed_loop:
        raise ConfigError(
            workload.name, "arrivals", "new ones", "none: its turns wait for turns"
        )
    times, _ = streams(seed, 2)
    at = arrival_times(process_of(arrivals), rate, times, len(workload))
    return replace(workload, arrival_s=at, seed=seed)


def process_of(arrivals: Arrivals | str) -> Arrivals:
    """An arrival process, or that of a kind (`ConfigError`)."""
    return (
        arrivals
        if isinstance(arrivals, Arrivals)
        else Arrivals.build("arrivals", kind=arrivals)
    )


def streams(seed: int, count: int) -> list[Generator]:
    """Independent generators of one seed (`ConfigError`: not a whole number from 0)."""
    first = whole("seed", "", seed, 0)
    return [
        np.random.Generator(np.random.PCG64(s))
        for s in np.random.SeedSequence(first).spawn(count)
    ]
