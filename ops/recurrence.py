"""The recurrence of linear attention and state-space layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from chipsim.ops.base import Kind, Operator
from chipsim.ops.formats import get_format

STEP_FLOPS = {
    "decay": 5,  # decay 1, outer product 2, readout 2 per element of the state
    "ssm": 5,
    "delta": 7,  # the old value of the key is read first: 2 more
    "kda": 7,
    "scan": 7,  # as ssm, and the decay of every element: step size by A, its exponential
}
"""FLOP per element of a state and token, one token at a time."""


@dataclass(frozen=True, slots=True)
class Recurrence(Operator):
    """``query`` tokens of each sequence through ``heads`` states of key_dim x value_dim.

    One token (decode) updates the states in place. More (prefill) go ``chunk`` at a time:
    products inside a chunk, and one update of the state for each.

    Attributes
    ----------
    key_heads : int
        Heads of keys and queries: a divisor of ``heads``.
    rule : str
        ``ssm``, ``delta``, ``kda`` or ``decay``, as `chipsim.ops.parts.LinearPart`;
        ``scan``: Mamba-1, a head per channel, with ``chunk`` 1.
    chunk : int
        1: token by token in prefill too (where every element of a state decays by its
        own number, no product of matrices forms a chunk).
    """

    name: str
    batch: int
    heads: int
    key_heads: int
    key_dim: int
    value_dim: int
    query: int = 1
    chunk: int = 64
    rule: Literal["ssm", "delta", "kda", "decay", "scan"] = "ssm"
    format: str = "fp16"
    state_format: str = "fp32"
    _sizes: ClassVar[tuple[str, ...]] = (
        "batch",
        "heads",
        "key_heads",
        "key_dim",
        "value_dim",
        "query",
        "chunk",
    )
    _formats: ClassVar[tuple[str, ...]] = ("format", "state_format")

    def __post_init__(self) -> None:
        Operator.__post_init__(self)
        if self.rule not in STEP_FLOPS:
            self._refuse("rule", self.rule, ", ".join(STEP_FLOPS))
        if self.heads % self.key_heads:
            self._refuse("key_heads", self.key_heads, f"a divisor of heads {self.heads}")

    @property
    def kind(self) -> Kind:
        """``"attention"``."""
        return "attention"

    @property
    def is_delta(self) -> bool:
        """Whether the rule reads the old value of a key before it writes."""
        return self.rule in ("delta", "kda")

    @property
    def chunks(self) -> int:
        """Chunks of one sequence."""
        return -(-self.query // self.chunk)

    @property
    def state(self) -> int:
        """Elements of the states of one sequence."""
        return self.heads * self.key_dim * self.value_dim

    @property
    def flops(self) -> float:
        """Of the cheaper form: token by token, or in chunks.

        In chunks a token and head costs ``2 c (dk + dv)`` for scores and values inside the
        chunk (c its length) and ``4 dk dv`` for the state; a delta rule as much again for
        the products that undo overlapping keys, ``2 c (2 dk + dv)``.
        """
        tokens = self.batch * self.query
        steps = float(STEP_FLOPS[self.rule]) * tokens * self.state
        if 1 in (self.query, self.chunk):
            return steps
        return min(steps, self.chunked_flops)

    @property
    def chunked_flops(self) -> float:
        """FLOP in chunks."""
        dk, dv, c = self.key_dim, self.value_dim, min(self.chunk, self.query)
        per_token = 2 * c * (dk + dv) + 4 * dk * dv
        if self.is_delta:
            per_token += 2 * c * (2 * dk + dv)
        return float(self.batch * self.query * self.heads * per_token)

    @property
    def bytes(self) -> float:
        """Queries, keys and values once in, results once out, states once in and out.

        A scan reads a step size for every channel beside.
        """
        per_token = 2 * self.key_heads * self.key_dim + 2 * self.heads * self.value_dim
        if self.rule == "scan":
            per_token += self.heads
        rows = self.query * per_token * get_format(self.format).bytes
        return self.batch * (rows + 2 * self.state * get_format(self.state_format).bytes)
