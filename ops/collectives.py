"""Collectives: what chips of a group exchange, as bytes and a group; no link is known here.

A group is ``chips`` chips that stand ``stride`` apart in the plan's order of ranks
(`chipsim.ops.parallelism.Parallelism.group`), so a machine knows which of them share a node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from chipsim.ops.base import Kind, Operator
from chipsim.ops.checks import positive

Pattern = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"]


@dataclass(frozen=True, slots=True)
class Collective(Operator):
    """An exchange of one group; use the subclasses.

    Attributes
    ----------
    bytes : float
        The tensor, as each subclass says.
    chips : int
        Chips that take part; one exchanges nothing.
    stride : int
        Distance of neighbours of the group in the order of ranks; 1: side by side.
    """

    name: str
    bytes: float = field()  # without it the inherited property would be its default
    chips: int
    stride: int = 1
    _sizes: ClassVar[tuple[str, ...]] = ("chips", "stride")
    _formats: ClassVar[tuple[str, ...]] = ()
    pattern: ClassVar[Pattern]

    def __post_init__(self) -> None:
        Operator.__post_init__(self)
        object.__setattr__(self, "bytes", positive(self._label(), "bytes", self.bytes))

    @property
    def kind(self) -> Kind:
        """``"collective"``."""
        return "collective"

    @property
    def flops(self) -> float:
        """0: the sums hide behind the transfer."""
        return 0.0

    @property
    def sent(self) -> float:
        """Least bytes that one chip sends: all but the share that stays."""
        return (self.chips - 1) / self.chips * self.bytes


@dataclass(frozen=True, slots=True)
class AllReduce(Collective):
    """Sum of a tensor of ``bytes`` over the group, the result on each chip."""

    pattern: ClassVar[Pattern] = "all_reduce"

    @property
    def sent(self) -> float:
        """Each share travels twice: to where it is summed, and back."""
        return 2.0 * (self.chips - 1) / self.chips * self.bytes


@dataclass(frozen=True, slots=True)
class AllGather(Collective):
    """Every chip's share of a tensor of ``bytes``, the whole on each chip."""

    pattern: ClassVar[Pattern] = "all_gather"


@dataclass(frozen=True, slots=True)
class ReduceScatter(Collective):
    """Sum of a tensor of ``bytes`` on each chip, a share of the result on each."""

    pattern: ClassVar[Pattern] = "reduce_scatter"


@dataclass(frozen=True, slots=True)
class AllToAll(Collective):
    """Each chip sends ``bytes`` in equal shares to all, its own share included."""

    pattern: ClassVar[Pattern] = "all_to_all"


@dataclass(frozen=True, slots=True)
class SendRecv(Collective):
    """Each chip sends ``bytes`` to the one that stands ``stride`` further on."""

    chips: int = 2
    pattern: ClassVar[Pattern] = "send_recv"

    @property
    def sent(self) -> float:
        """All of it."""
        return self.bytes if self.chips > 1 else 0.0


def expert_copies(experts: int, top_k: int, ranks: int, others: int = 0) -> float:
    """Ranks that a token is sent to, on average, when its experts are drawn evenly.

    A token that picks several experts of a rank travels there once.

    Parameters
    ----------
    experts, top_k : int
        Routed experts, and those that a token picks.
    ranks : int
        Expert-parallel ranks; each holds ``experts / ranks`` experts.
    others : int
        Choices beside the experts that send a token nowhere (identity experts).

    Examples
    --------
    >>> expert_copies(256, 8, 256), round(expert_copies(256, 8, 8), 2)
    (8.0, 5.29)
    """
    choices = experts + others
    missed = math.comb(choices - experts // ranks, top_k) / math.comb(choices, top_k)
    return ranks * (1.0 - missed)
