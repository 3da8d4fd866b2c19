"""Operators as pure shapes, with closed forms of their FLOPs and bytes.

Matrix products and attention are here; the vector units' come from `chipsim.ops.vector`,
exchanges between chips from `chipsim.ops.collectives`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chipsim.ops.base import Kind, Operator
from chipsim.ops.checks import whole
from chipsim.ops.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Collective,
    ReduceScatter,
    SendRecv,
)
from chipsim.ops.experts import GroupedGemm
from chipsim.ops.formats import get_format
from chipsim.ops.latent import Indexer, LatentAttention
from chipsim.ops.pairs import attention_pairs
from chipsim.ops.recurrence import Recurrence
from chipsim.ops.vector import Activation, Elementwise, Norm, Quantise, Softmax

__all__ = [
    "Activation",
    "AllGather",
    "AllReduce",
    "AllToAll",
    "Attention",
    "Collective",
    "Elementwise",
    "Gemm",
    "GroupedGemm",
    "Indexer",
    "Kind",
    "LatentAttention",
    "Norm",
    "Operator",
    "Quantise",
    "Recurrence",
    "ReduceScatter",
    "SendRecv",
    "Softmax",
    "attention_pairs",
]


@dataclass(frozen=True, slots=True)
class Gemm(Operator):
    """``batch`` products C (m x n) = A (m x k) B (k x n).

    Attributes
    ----------
    b_is_weight : bool
        B is known before the step and can be fetched ahead; without it the operator is
        a ``batched_gemm`` of activations or of cached keys and values.
    accumulate : str
        Format of the sums.
    """

    name: str
    m: int
    n: int
    k: int
    batch: int = 1
    a_format: str = "fp16"
    b_format: str = "fp16"
    c_format: str = "fp16"
    b_is_weight: bool = True
    accumulate: str = "fp32"
    _sizes: ClassVar[tuple[str, ...]] = ("m", "n", "k", "batch")
    _formats: ClassVar[tuple[str, ...]] = ("a_format", "b_format", "c_format", "accumulate")

    @property
    def kind(self) -> Kind:
        """``"gemm"`` with weights, else ``"batched_gemm"``."""
        return "gemm" if self.b_is_weight else "batched_gemm"

    @property
    def flops(self) -> float:
        """2 batch m n k."""
        return 2.0 * self.batch * self.m * self.n * self.k

    @property
    def bytes(self) -> float:
        """A and B once in, C once out."""
        a = self.m * self.k * get_format(self.a_format).bytes
        b = self.k * self.n * get_format(self.b_format).bytes
        c = self.m * self.n * get_format(self.c_format).bytes
        return self.batch * (a + b + c)


@dataclass(frozen=True, slots=True)
class Attention(Operator):
    """Fused attention: the scores never leave the chip.

    The queries are the last ``query`` of ``context`` tokens. Causal, each sees itself
    and the tokens before it; with a window, at most the last ``window`` of those.

    Attributes
    ----------
    batch : int
        Sequences.
    kv_heads : int
        Key and value heads: a divisor of ``q_heads``.
    head_dim, value_dim : int
        Width of a query or key, and of a value (0: the same).
    window : int
        Tokens that a query sees (0: all).
    accumulate : str
        Format of the sums.
    """

    name: str
    batch: int
    q_heads: int
    kv_heads: int
    head_dim: int
    value_dim: int = 0
    query: int = 1
    context: int = 1
    causal: bool = True
    window: int = 0
    q_format: str = "fp16"
    kv_format: str = "fp16"
    accumulate: str = "fp32"
    _sizes: ClassVar[tuple[str, ...]] = (
        "batch",
        "q_heads",
        "kv_heads",
        "head_dim",
        "value_dim",
        "query",
        "context",
    )
    _formats: ClassVar[tuple[str, ...]] = ("q_format", "kv_format", "accumulate")

    def __post_init__(self) -> None:
        if type(self.value_dim) is int and self.value_dim == 0:
            object.__setattr__(self, "value_dim", self.head_dim)
        Operator.__post_init__(self)
        if type(self.window) is not int or self.window < 0:
            window = whole(self._label(), "window", self.window, least=0)
            object.__setattr__(self, "window", window)
        if self.q_heads % self.kv_heads:
            self._refuse("kv_heads", self.kv_heads, f"a divisor of q_heads {self.q_heads}")
        if self.causal and self.query > self.context:
            self._refuse("query", self.query, f"at most the context {self.context}")
        if self.window and not self.causal:
            self._refuse("window", self.window, "0, unless attention is causal")

    @property
    def kind(self) -> Kind:
        """``"attention"``."""
        return "attention"

    @property
    def pairs(self) -> int:
        """Pairs of a query and a token that it sees, of one sequence and head."""
        return attention_pairs(self.query, self.context, self.causal, self.window)

    @property
    def keys(self) -> int:
        """Tokens of one sequence that any query sees."""
        if not self.window:
            return self.context
        return min(self.context, self.window + self.query - 1)

    @property
    def flops(self) -> float:
        """Scores and values: 2 (head_dim + value_dim) per head and pair."""
        width = self.head_dim + self.value_dim
        return 2.0 * self.batch * self.q_heads * width * self.pairs

    @property
    def exponentials(self) -> float:
        """One per head and pair; the softmax inside is not part of `flops`."""
        return float(self.batch * self.q_heads * self.pairs)

    @property
    def bytes(self) -> float:
        """Queries, keys and values that are seen once in; the result once out."""
        width = self.head_dim + self.value_dim
        q = self.query * self.q_heads * width * get_format(self.q_format).bytes
        kv = self.keys * self.kv_heads * width * get_format(self.kv_format).bytes
        return self.batch * (q + kv)
