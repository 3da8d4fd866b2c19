"""Phases: what one step of serving computes, as numbers of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chipsim.errors import ConfigError
from chipsim.ops.checks import whole


@dataclass(frozen=True, slots=True)
class Phase:
    """One step of ``batch`` equal sequences.

    Use `Phase.prefill` or `Phase.decode`.

    Attributes
    ----------
    query : int
        New tokens of each sequence: its prompt, or 1 in decode.
    context : int
        Tokens that the last new token attends to, itself included.
    """

    kind: Literal["prefill", "decode"]
    batch: int
    query: int
    context: int

    def __post_init__(self) -> None:
        if self.kind not in ("prefill", "decode"):
            raise ConfigError("phase", "kind", self.kind, "prefill, decode")
        for field in ("batch", "query", "context"):
            object.__setattr__(self, field, whole(self.kind, field, getattr(self, field)))
        if self.query > self.context:
            raise ConfigError(
                self.kind, "query", self.query, f"at most the context {self.context}"
            )
        if self.kind == "decode" and self.query != 1:
            raise ConfigError("decode", "query", self.query, "1")

    @classmethod
    def prefill(cls, batch: int, prompt: int, prefix: int = 0) -> Phase:
        """Prefill of ``prompt`` new tokens after ``prefix`` cached ones.

        Raises
        ------
        ConfigError
            ``batch`` or ``prompt`` below 1, ``prefix`` below 0, or not whole.
        """
        prompt = whole("prefill", "prompt", prompt)
        prefix = whole("prefill", "prefix", prefix, least=0)
        return cls("prefill", batch, prompt, prefix + prompt)

    @classmethod
    def decode(cls, batch: int, context: int) -> Phase:
        """One token for each sequence, attending to ``context`` tokens.

        Raises
        ------
        ConfigError
            ``batch`` or ``context`` below 1, or not whole.
        """
        return cls("decode", batch, 1, context)

    @property
    def tokens(self) -> int:
        """New tokens of all sequences."""
        return self.batch * self.query
