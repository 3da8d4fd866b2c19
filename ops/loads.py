"""How tokens spread over experts: which are touched, and how many rows each gets.

A token picks ``top_k`` different experts; expert i is among them with probability p_i.
Over T tokens it is touched with probability ``1 - (1 - p_i)^T`` and gets ``T p_i`` rows.
Evenly spread that is ``E (1 - (1 - k/E)^T)`` distinct experts. All figures are expected.
"""

from __future__ import annotations

import functools
import math
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, ValidationInfo, field_validator

from chipsim.errors import ConfigError
from chipsim.ops.checks import whole
from chipsim.spec import Spec


class ExpertGroup(NamedTuple):
    """Experts of one rank that get about as many rows each (expected numbers)."""

    experts: float
    rows: float


RankLoad = tuple[ExpertGroup, ...]
"""What the experts of one rank get in a step."""


class ExpertLoad(Spec):
    """The share of tokens that each expert of a layer draws.

    ``uniform``: all alike. ``zipf``: the i-th most wanted draws ``i^-exponent``; experts
    are dealt to ranks in turn. ``histogram``: measured tokens per expert, in the order of
    the experts; ranks hold neighbours, as engines place them.
    """

    kind: Literal["uniform", "zipf", "histogram"] = "uniform"
    exponent: Annotated[float, Field(ge=0, le=10)] = 0.0
    tokens: tuple[Annotated[float, Field(ge=0, le=1e15)], ...] = Field(
        default=(), validate_default=True
    )

    @field_validator("tokens")
    @classmethod
    def _some(cls, value: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        if info.data.get("kind") == "histogram" and not sum(value) > 0:
            raise ValueError("a histogram with a token per expert, not all 0")
        return value

    @classmethod
    def parse(cls, text: str) -> ExpertLoad:
        """Read ``"uniform"``, ``"zipf=1.1"`` or ``"histogram=4,0,7,1"``.

        Raises
        ------
        ConfigError
            Another word, or numbers that are none.
        """
        kind, equals, rest = (part.strip() for part in text.partition("="))
        try:
            numbers = tuple(float(part) for part in rest.split(",")) if equals else ()
        except ValueError:
            raise ConfigError("experts", kind, rest, "numbers with commas between") from None
        if kind == "zipf" and len(numbers) == 1:
            return cls.build("experts", kind=kind, exponent=numbers[0])
        if kind == "histogram":
            return cls.build("experts", kind=kind, tokens=numbers)
        if kind != "uniform" or equals:
            allowed = "uniform, zipf=EXPONENT, histogram=TOKENS,TOKENS,..."
            raise ConfigError("experts", "", text, allowed)
        return cls()

    @property
    def text(self) -> str:
        """The load in words.

        >>> ExpertLoad().text, ExpertLoad.parse("zipf=1.1").text
        ('uniform', 'zipf=1.1')
        >>> ExpertLoad.parse("histogram=4,0,7,1").text
        'histogram of 4 experts'
        """
        if self.kind == "zipf":
            return f"zipf={self.exponent:g}"
        return (
            self.kind if self.kind == "uniform" else f"histogram of {len(self.tokens)} experts"
        )


UNIFORM = ExpertLoad()


@functools.lru_cache(maxsize=4096)
def distinct_experts(experts: int, top_k: int, tokens: int) -> float:
    """Expected experts that ``tokens`` tokens touch when drawn evenly: E(1-(1-k/E)^T).

    Examples
    --------
    >>> distinct_experts(8, 2, 1), round(distinct_experts(256, 8, 64), 1)
    (2.0, 222.4)
    """
    return experts * _touched(top_k / experts, tokens)


@functools.lru_cache(maxsize=4096)
def rank_loads(
    experts: int, top_k: float, tokens: int, ranks: int = 1, load: ExpertLoad = UNIFORM
) -> tuple[RankLoad, ...]:
    """Loads of the ranks that may be the slowest: none of the rest has more of anything.

    Parameters
    ----------
    top_k : float
        Experts of a token that do work; an expected number where some pass it on.
    tokens : int
        All tokens of the step over which the experts are shared: those of every
        data-parallel rank together.
    ranks : int
        Chips that the experts are spread over.

    Returns
    -------
    tuple of RankLoad
        Most rows first; one where all ranks are alike.

    Raises
    ------
    ConfigError
        A histogram of another number of experts or of fewer than a token picks, or a
        count below 1.
    """
    tokens, ranks = whole("experts", "tokens", tokens), whole("experts", "ranks", ranks)
    if load.kind == "uniform":
        probability = top_k / experts
        touched = _touched(probability, tokens)
        held = math.ceil(experts / ranks)
        return ((ExpertGroup(held * touched, tokens * probability / touched),),)
    drawn = _probabilities(load, experts, top_k)
    if load.kind == "zipf":
        shares = [drawn[rank::ranks] for rank in range(ranks)]
    else:
        held = math.ceil(experts / ranks)
        shares = [drawn[first : first + held] for first in range(0, experts, held)]
    return _slowest([_rank(share, tokens) for share in shares])


def _touched(probability: float, tokens: int) -> float:
    """1 - (1 - p)^T, exact for small p too."""
    if probability >= 1.0 or tokens == 1:
        return min(1.0, probability)
    return -math.expm1(tokens * math.log1p(-probability))


def _probabilities(load: ExpertLoad, experts: int, top_k: float) -> list[float]:
    """How likely a token picks each expert: in proportion, none above 1, ``top_k`` in all."""
    if load.kind == "zipf":
        wanted = [(rank + 1.0) ** -load.exponent for rank in range(experts)]
    elif len(load.tokens) == experts:
        wanted = list(load.tokens)
    else:
        raise ConfigError("experts", "histogram", len(load.tokens), f"{experts} numbers")
    drawing = sum(share > 0.0 for share in wanted)
    if drawing < top_k:  # a token picks different experts
        allowed = f"tokens for at least the {top_k:g} experts that a token picks"
        raise ConfigError("experts", "histogram", f"tokens for {drawing} experts", allowed)
    drawn, full = [0.0] * experts, set[int]()
    while True:
        rest = sum(share for i, share in enumerate(wanted) if i not in full)
        left = top_k - len(full)
        scale = left / rest if rest > 0.0 else 0.0
        drawn = [1.0 if i in full else scale * share for i, share in enumerate(wanted)]
        over = {i for i, share in enumerate(drawn) if i not in full and share >= 1.0}
        if not over:
            return drawn
        full |= over


def _rank(drawn: list[float], tokens: int) -> RankLoad:
    """Experts of one rank, those drawn about as often (within a factor of 2) together.

    Who is together hangs on no count of tokens: with more of them every group has more
    experts and more rows for each.
    """
    groups: dict[int, list[float]] = {}
    for probability in drawn:
        if probability <= 0.0:
            continue
        touched, rows = _touched(probability, tokens), tokens * probability
        group = groups.setdefault(math.frexp(probability)[1], [0.0, 0.0])
        group[0] += touched
        group[1] += rows
    return tuple(
        ExpertGroup(experts, rows / experts) for _, (experts, rows) in sorted(groups.items())
    )


def _slowest(loads: list[RankLoad]) -> tuple[RankLoad, ...]:
    """Loads that no other exceeds in both rows and experts, most rows first."""
    sums = {
        (sum(g.experts * g.rows for g in load), sum(g.experts for g in load)): load
        for load in loads
    }
    kept: list[RankLoad] = []
    most = -1.0
    for rows, experts in sorted(sums, reverse=True):
        if experts > most * (1.0 + 1e-12):
            kept.append(sums[rows, experts])
            most = experts
    return tuple(kept)
