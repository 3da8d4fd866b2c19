"""Attention over latent rows, and the indexer that picks the rows it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chipsim.ops.base import Kind, Operator
from chipsim.ops.checks import whole
from chipsim.ops.formats import get_format
from chipsim.ops.pairs import attention_pairs, strided_pairs

SCORE_BYTES = 4.0
"""Scores of the indexer leave it in fp32 (DeepSeek's DeepGEMM `fp8_mqa_logits`)."""


@dataclass(frozen=True, slots=True)
class LatentAttention(Operator):
    """Absorbed latent attention: one row per token serves as key and value of all heads.

    Causal over the last ``query`` of ``context`` tokens. A row is ``latent`` elements and
    ``rotary`` ones; the scores use both, the values are the latent part: it is read once.

    Attributes
    ----------
    batch : int
        Sequences.
    rotary : int
        Elements of a row that only the scores use (0: the whole row is key and value).
    top_k : int
        Rows that a query reads (0: all that it sees).
    window : int
        Tokens that a query sees, itself included (0: all before it).
    stride : int
        Tokens that one row stands for; a query sees the rows whose tokens are all past.
    rotary_format : str
        Format of the rotary part (empty: as the latent).
    accumulate : str
        Format of the sums.
    """

    name: str
    batch: int
    heads: int
    latent: int
    rotary: int
    query: int = 1
    context: int = 1
    top_k: int = 0
    q_format: str = "fp16"
    kv_format: str = "fp16"
    rotary_format: str = ""
    accumulate: str = "fp32"
    window: int = 0
    stride: int = 1
    _sizes: ClassVar[tuple[str, ...]] = (
        "batch",
        "heads",
        "latent",
        "query",
        "context",
        "stride",
    )
    _formats: ClassVar[tuple[str, ...]] = (
        "q_format",
        "kv_format",
        "rotary_format",
        "accumulate",
    )

    def __post_init__(self) -> None:
        if not self.rotary_format:
            object.__setattr__(self, "rotary_format", self.kv_format)
        Operator.__post_init__(self)
        for field in ("rotary", "top_k", "window"):
            value = whole(self._label(), field, getattr(self, field), least=0)
            object.__setattr__(self, field, value)
        if self.query > self.context:
            self._refuse("query", self.query, f"at most the context {self.context}")

    @property
    def kind(self) -> Kind:
        """``"attention"``."""
        return "attention"

    @property
    def pairs(self) -> int:
        """Pairs of a query and a row that it reads, of one sequence and head."""
        if self.stride > 1:
            return strided_pairs(self.query, self.context, self.stride, self.top_k)
        return attention_pairs(self.query, self.context, window=self.window or self.top_k)

    @property
    def keys(self) -> int:
        """Rows of one sequence that are read at least: each query may pick others."""
        if self.window:
            return min(self.context, self.window + self.query - 1)
        rows = self.context // self.stride
        return min(rows, self.query * self.top_k) if self.top_k else rows

    @property
    def row_bytes(self) -> float:
        """Bytes of one cached row, scales included."""
        latent = self.latent * get_format(self.kv_format).bytes
        return latent + self.rotary * get_format(self.rotary_format).bytes

    @property
    def flops(self) -> float:
        """Scores over latent and rotary, values over the latent, per head and pair."""
        width = 2 * self.latent + self.rotary
        return 2.0 * self.batch * self.heads * width * self.pairs

    @property
    def exponentials(self) -> float:
        """One per head and pair; the softmax inside is not part of `flops`."""
        return float(self.batch * self.heads * self.pairs)

    @property
    def bytes(self) -> float:
        """Queries and rows once in, the latent results once out."""
        width = 2 * self.latent + self.rotary
        q = self.query * self.heads * width * get_format(self.q_format).bytes
        return self.batch * (q + self.keys * self.row_bytes)


@dataclass(frozen=True, slots=True)
class Indexer(Operator):
    """Scores of every token that a query sees: what sparse attention picks its rows by.

    Per head a product with the token's one indexer key, a ReLU and a weight, summed over
    the heads (DeepSeek-V3.2, 2025). It reads all keys, whatever attention reads later.
    """

    name: str
    batch: int
    heads: int
    head_dim: int
    query: int = 1
    context: int = 1
    q_format: str = "fp16"
    key_format: str = "fp16"
    accumulate: str = "fp32"
    stride: int = 1
    """Tokens that one key stands for."""
    _sizes: ClassVar[tuple[str, ...]] = (
        "batch",
        "heads",
        "head_dim",
        "query",
        "context",
        "stride",
    )
    _formats: ClassVar[tuple[str, ...]] = ("q_format", "key_format", "accumulate")

    def __post_init__(self) -> None:
        Operator.__post_init__(self)
        if self.query > self.context:
            self._refuse("query", self.query, f"at most the context {self.context}")

    @property
    def kind(self) -> Kind:
        """``"attention"``."""
        return "attention"

    @property
    def pairs(self) -> int:
        """Pairs of a query and a key that it sees, of one sequence."""
        if self.stride > 1:
            return strided_pairs(self.query, self.context, self.stride)
        return attention_pairs(self.query, self.context)

    @property
    def keys(self) -> int:
        """Keys of one sequence."""
        return self.context // self.stride

    @property
    def flops(self) -> float:
        """2 head_dim per head and pair; ReLU, weight and sum are not counted."""
        return 2.0 * self.batch * self.heads * self.head_dim * self.pairs

    @property
    def stores(self) -> float:
        """Bytes of `bytes` that are written: one score per pair."""
        return self.batch * self.pairs * SCORE_BYTES

    @property
    def bytes(self) -> float:
        """Queries and all keys once in, the scores once out."""
        q = self.query * self.heads * self.head_dim * get_format(self.q_format).bytes
        keys = self.keys * self.head_dim * get_format(self.key_format).bytes
        return self.batch * (q + keys) + self.stores
