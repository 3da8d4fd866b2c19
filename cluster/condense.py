"""A trace condensed into a description: tables of quantiles instead of its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from chipsim.cluster.arrivals import Arrivals, Gaps
from chipsim.cluster.distributions import Quantiles
from chipsim.cluster.generators import LengthClass, Lengths
from chipsim.cluster.workload_spec import WorkloadSpec
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from chipsim.cluster.workload import Workload

LINES = 80
"""Of a table for all requests; with classes the lines of each are fewer."""
CLASSES = 8
INDEPENDENT = 0.01
"""Share of the variance of outputs that prompts explain, below which one class will do."""


def condense(
    workload: Workload, classes: int | None = None, lines: int = LINES
) -> WorkloadSpec:
    """Describe an open-loop trace by quantiles of its lengths and gaps.

    Parameters
    ----------
    workload : Workload
        The trace; its sessions and blocks are not described.
    classes : int, optional
        Classes of about equally many requests by length of prompt, each with tables of
        its own, so that prompt and output go together as in the trace; unless given
        `CLASSES`, or one where the prompt hardly tells the output.
    lines : int
        Of a table, at most.

    Returns
    -------
    WorkloadSpec
        Poisson arrivals at the trace's rate, its gaps beside them (``--arrivals gaps``).

    Raises
    ------
    ConfigError
        A closed loop, requests that all arrive at once, or no room for a table.
    """
    if workload.closed_loop or workload.rate_rps == 0.0:
        raise ConfigError(
            workload.name, "arrivals", "none of its own", "an open loop over time"
        )
    if lines < 2 or (classes is not None and classes < 1):
        raise ConfigError(workload.name, "lines or classes", (lines, classes), "2, 1 or more")
    if classes is None:
        classes = CLASSES if explained(workload, CLASSES) > INDEPENDENT else 1
    groups = _classes(workload.prompt_tokens, classes)
    some = max(2, lines if classes == 1 else lines // 2)
    made = [
        LengthClass(
            share=round(len(members) / len(workload), 9),
            prompt=quantiles(workload.prompt_tokens[members], some),
            output=quantiles(workload.output_tokens[members], some),
        )
        for members in groups
    ]
    return WorkloadSpec(
        name=workload.name,
        source=workload.source,
        rate=float(f"{workload.rate_rps:.6g}"),
        requests=len(workload),
        arrivals=Arrivals(kind="poisson", gaps=_gaps(np.diff(workload.arrival_s), some)),
        lengths=Lengths(classes=tuple(made)),
    )


def explained(workload: Workload, classes: int) -> float:
    """Share of the variance of outputs between classes of prompts (eta squared)."""
    output = workload.output_tokens
    if output.std() == 0.0:
        return 0.0
    groups = _classes(workload.prompt_tokens, classes)
    between = sum(len(g) * (output[g].mean() - output.mean()) ** 2 for g in groups)
    return float(between / len(output) / output.var())


def _classes(prompt: NDArray[np.int64], classes: int) -> list[NDArray[np.int64]]:
    """Indices of each class; prompts of one length are never parted."""
    edges = np.quantile(prompt, np.arange(1, classes) / classes, method="lower")
    found = np.searchsorted(np.unique(edges), prompt, side="left")
    return [np.flatnonzero(found == index) for index in np.unique(found)]


def quantiles(tokens: NDArray[np.int64], lines: int) -> Quantiles:
    """A table of at most so many lines, those that keep quantiles and mean best."""
    value, count = np.unique(tokens, return_counts=True)
    share = np.cumsum(count) / len(tokens)
    # The staircase: at each value, and one below it where numbers in between are missing.
    below = np.flatnonzero(np.diff(value, prepend=value[0]) > 1)
    x = np.concatenate([value, value[below] - 1]).astype(float)
    f = np.concatenate([share, share[below - 1]])
    order = np.argsort(x, kind="stable")
    kept = _best(x[order], f[order], lines)
    return Quantiles(
        kind="quantiles",
        tokens=tuple(int(v) for v in x[order][kept]),
        share=(*(float(f"{s:.6f}") for s in f[order][kept][:-1]), 1.0),
    )


def _gaps(gaps: NDArray[np.float64], lines: int) -> Gaps:
    ordered = np.sort(gaps) / gaps.mean()
    share = np.linspace(0.0, 1.0, len(ordered)) if len(ordered) > 1 else np.array([0.0, 1.0])
    if len(ordered) == 1:
        ordered = np.repeat(ordered, 2)
    kept = _best(ordered, share, lines, mean_weight=3.0)  # few long gaps make the mean
    return Gaps(
        ratio=tuple(float(f"{v:.5g}") for v in ordered[kept]),
        share=(0.0, *(float(f"{s:.6f}") for s in share[kept][1:-1]), 1.0),
    )


def _best(
    x: NDArray[np.float64], f: NDArray[np.float64], lines: int, mean_weight: float = 0.0
) -> NDArray[np.int64]:
    """Indices of the points of a rising curve x(f) that a polyline keeps, first and last too.

    The part that errs most gets a point where it errs most, until there are enough. A
    part's error is that of x, relative, weighted by mass over the mass above it, so that
    P50 to P99.9 count alike; and, times ``mean_weight``, what it moves the mean.
    """
    mass = np.diff(f, prepend=0.0)
    tail = mass / np.maximum(1.0 - f + mass, 1.0 / max(len(f), 1000))
    curve = _Curve(x, f, tail, mean_weight * mass / float(np.sum(mass * x)))
    parts = [curve.worst(0, len(x) - 1)]
    while len(parts) + 1 < lines:
        index = max(range(len(parts)), key=lambda i: parts[i][0])
        error, low, at, high = parts[index]
        if error <= 0.0:
            break
        parts[index] = curve.worst(low, at)
        parts.append(curve.worst(at, high))
    return np.unique([point for _, low, _, high in parts for point in (low, high)])


class _Curve(NamedTuple):
    """A rising curve x(f), and how much its relative and absolute errors count."""

    x: NDArray[np.float64]
    f: NDArray[np.float64]
    relative: NDArray[np.float64]
    absolute: NDArray[np.float64]

    def worst(self, low: int, high: int) -> tuple[float, int, int, int]:
        """Error of the straight line between two points: (error, low, where, high)."""
        if high - low < 2:
            return 0.0, low, low, high
        inside = slice(low + 1, high)
        x, f = self.x, self.f
        rise = f[high] - f[low]
        part = (f[inside] - f[low]) / rise if rise > 0.0 else np.ones(high - low - 1)
        off = np.abs(x[low] + part * (x[high] - x[low]) - x[inside])
        relative = off / np.maximum(x[inside], 1e-12)
        if not self.absolute.any():
            error = float(np.sum(np.minimum(relative, 1e3) * self.relative[inside]))
            return error, low, low + 1 + int(np.argmax(relative)), high
        score = np.minimum(relative, 1.0) * self.relative[inside] + off * self.absolute[inside]
        return float(score.sum()), low, low + 1 + int(np.argmax(score)), high


def as_yaml(spec: WorkloadSpec, comment: str) -> str:
    """The text of what `condense` made, tables in lines; it reads back to the same."""
    import yaml

    class _Dumper(yaml.SafeDumper):
        """Lists of numbers in lines, everything else one key a line."""

    def listed(dumper: yaml.SafeDumper, values: tuple[Any, ...]) -> yaml.Node:
        flat = all(isinstance(value, (int, float)) for value in values)
        return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=flat)

    _Dumper.add_representer(tuple, listed)
    data = spec.model_dump(exclude_unset=True)
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=96, allow_unicode=True)
    return "".join(f"# {line}\n" for line in comment.splitlines()) + text
