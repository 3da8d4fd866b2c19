"""Draws of what is not known for certain: seconds of steps, and prices.

errors by operator class + shares of a step -> factors of prefill and decode, per chip
low, mid and high of a book -> one price of each
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from chipsim.cost.ranges import Range
from chipsim.errors import ConfigError
from chipsim.ops.experts import GroupedGemm
from chipsim.ops.latent import Indexer, LatentAttention
from chipsim.ops.phase import Phase
from chipsim.phases import PhaseModel

if TYPE_CHECKING:
    from chipsim.cluster.replicas import Replica
    from chipsim.cluster.scenario import ReplicaSpec
    from chipsim.cluster.simulate import Cluster
    from chipsim.ops.base import Operator

Floats = npt.NDArray[np.float64]
Book = TypeVar("Book", bound=BaseModel)

SPREAD = math.sqrt(math.pi / 2.0)
"""Standard deviation over mean absolute deviation, of a normal distribution."""

WHOLE = "all"
"""Class of an error that is not known by operator."""

SEQUENCES = 32
"""Of a rank in the decode step whose shares are taken, at the most."""


@dataclass(frozen=True, slots=True)
class BlockError:
    """How far off the steps of a chip under its execution block may be.

    Attributes
    ----------
    chip, block : str
    classes : dict of str to float
        Mean absolute error by operator class (``gemm``, ``attention_context`` …), as shares;
        `WHOLE` for those that are not named.
    said : str
        Where it comes from.
    """

    chip: str
    block: str
    classes: Mapping[str, float]
    said: str

    def of(self, name: str) -> float:
        """Of a class."""
        return self.classes.get(name, self.classes.get(WHOLE, 0.0))


def chip_key(spec: ReplicaSpec) -> str:
    """What an error belongs to: a chip under its block, or the file that stands for it."""
    if spec.steps is not None:
        return spec.steps
    return f"{spec.chip} ({spec.execution})" if spec.execution else str(spec.chip)


class Factors(NamedTuple):
    """Seconds of steps over those of the model."""

    prefill: float
    decode: float


def operator_class(operator: Operator, phase: str) -> str:
    """The class of measured operators that an operator of a phase belongs to.

    Small operators beside the products count as these: their kernels are timed with them.
    """
    step = "context" if phase == "prefill" else "generation"
    if isinstance(operator, LatentAttention | Indexer):
        return f"mla_{step}"
    if isinstance(operator, GroupedGemm):
        return "moe"
    named = {"attention": f"attention_{step}", "collective": "collectives"}
    return named.get(operator.kind, "gemm")


def shares(
    spec: ReplicaSpec, replica: Replica, cluster: Cluster
) -> dict[str, dict[str, float]]:
    """Part of each operator class in a prefill and in a decode step of the mean request."""
    if replica.chip is None or spec.steps is not None:
        return {"prefill": {WHOLE: 1.0}, "decode": {WHOLE: 1.0}}
    served, plan = cluster.workload, replica.plan
    phases = PhaseModel(
        replica.chip,
        cluster.model,
        plan,
        execution=spec.execution,
        precision=replica.precision,
        load=cluster.scenario.expert_load,
        check_memory=False,
    )
    prompt = round(float(served.prompt_tokens.mean()))
    context = prompt + round(float(served.output_tokens.mean()))
    steps = {
        "prefill": Phase.prefill(plan.dp, prompt),
        "decode": Phase.decode(SEQUENCES * plan.dp, context),
    }
    found: dict[str, dict[str, float]] = {}
    for name, step in steps.items():
        parts: dict[str, float] = {}
        for row in phases.estimate(step).rows:
            of = operator_class(row.estimate.operator, name)
            parts[of] = parts.get(of, 0.0) + row.latency_s
        total = sum(parts.values())
        found[name] = {of: seconds / total for of, seconds in parts.items()}
    return found


class Draws:
    """Scrambled Sobol' points, a coordinate for each thing that is not known.

    Parameters
    ----------
    names : iterable of str
        What is drawn, each once.
    count : int
        Points: a power of two, as such points are balanced only then.
    seed : int
        Of the scrambling.

    Raises
    ------
    ConfigError
        A count that is no power of two from 2 to 4096.
    """

    def __init__(self, names: Iterable[str], count: int, seed: int) -> None:
        from scipy.stats import qmc

        if not 2 <= count <= 4096 or count & (count - 1):
            raise ConfigError("--uncertainty", "", count, "a power of two from 2 to 4096")
        self.places = {name: place for place, name in enumerate(dict.fromkeys(names))}
        sobol = qmc.Sobol(max(1, len(self.places)), scramble=True, rng=seed)
        self.points: Floats = sobol.random(count)

    def uniform(self, number: int, name: str) -> float:
        """0 < u < 1."""
        point = float(self.points[number, self.places[name]])
        return min(max(point, 1e-9), 1.0 - 1e-9)

    def normal(self, number: int, name: str) -> float:
        """Mean 0, deviation 1."""
        from scipy.special import ndtri

        return float(ndtri(self.uniform(number, name)))


def step_names(errors: Iterable[BlockError]) -> list[str]:
    """What is drawn about steps: of each block and of each chip, by class."""
    found = []
    for each in errors:
        for of in (*each.classes, WHOLE):
            found += [f"block {each.block} {of}", f"chip {each.chip} {of}"]
    return found


def factors(
    error: BlockError,
    of: Mapping[str, Mapping[str, float]],
    draws: Draws,
    number: int,
    correlation: float,
) -> Factors:
    """Of a chip in one draw.

    A class is off by one lognormal factor whatever its shapes; of its variance a part is common
    to all chips of the block, the rest the chip's own. Classes are independent; prefill and
    decode share those that both have, in their own shares.
    """

    def factor(name: str) -> float:
        known = name if name in error.classes else WHOLE
        normal = math.sqrt(correlation) * draws.normal(number, f"block {error.block} {known}")
        normal += math.sqrt(1.0 - correlation) * draws.normal(
            number, f"chip {error.chip} {known}"
        )
        return math.exp(SPREAD * error.of(name) * normal)

    each = {
        phase: sum(share * factor(name) for name, share in parts.items())
        for phase, parts in of.items()
    }
    return Factors(each["prefill"], each["decode"])


def quantile(price: Range, share: float) -> float:
    """Of a price: half of the weight lies evenly between low and mid, half up to high.

    >>> [quantile(Range(low=6, mid=9, high=12), u) for u in (0.0, 0.25, 0.5, 1.0)]
    [6.0, 7.5, 9.0, 12.0]
    """
    if share < 0.5:
        return price.low + 2.0 * share * (price.mid - price.low)
    return price.mid + (2.0 * share - 1.0) * (price.high - price.mid)


def price_names(book: BaseModel, where: str) -> list[str]:
    """What is drawn about prices: every range of a book; memory by family, else by entry."""
    return [name for name, price in _ranges(book, (where,)) if not price.known]


def priced(book: Book, where: str, draws: Draws, number: int) -> Book:
    """A book with one price in place of each range."""
    changed: Book = _replaced(book, (where,), draws, number)
    return changed


Path = tuple[str, ...]


def _name(path: Path) -> str:
    """Memory of one family moves together: HBM3 and HBM3e."""
    parts = list(path)
    if len(parts) > 2 and parts[1] == "memory":
        parts[2] = re.sub(r"[0-9].*$", "", parts[2])
    return " ".join(parts)


def _ranges(value: Any, path: Path) -> Iterable[tuple[str, Range]]:
    if isinstance(value, Range):
        yield _name(path), value
        return
    for key, inner in _items(value):
        yield from _ranges(inner, (*path, key))


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, BaseModel):
        return ((key, getattr(value, key)) for key in type(value).model_fields)
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, tuple):
        return ((getattr(inner, "name", str(i)), inner) for i, inner in enumerate(value))
    return ()


def _replaced(value: Any, path: Path, draws: Draws, number: int) -> Any:
    if isinstance(value, Range):
        if value.known:
            return value
        return Range.of(quantile(value, draws.uniform(number, _name(path))))
    if isinstance(value, BaseModel):
        update = {key: _replaced(inner, (*path, key), draws, number)
                  for key, inner in _items(value)}  # fmt: skip
        return value.model_copy(update=update)
    if isinstance(value, Mapping):
        return {key: _replaced(inner, (*path, str(key)), draws, number)
                for key, inner in value.items()}  # fmt: skip
    if isinstance(value, tuple):
        return tuple(
            _replaced(inner, (*path, getattr(inner, "name", str(i))), draws, number)
            for i, inner in enumerate(value)
        )
    return value
