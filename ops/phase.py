"""Phases: what one step of serving computes, as numbers of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from chipsim.errors import ConfigError
from chipsim.ops.checks import LARGEST, whole

KINDS = ("prefill", "decode", "mixed", "encode")


class Segment(NamedTuple):
    """Equal sequences of a step: ``query`` new tokens each, the last of ``context``."""

    kind: Literal["prefill", "decode", "encode"]
    batch: int
    query: int
    context: int


LEAST = (("batch", 1), ("query", 1), ("context", 1), ("draft", 0), ("decodes", 0),
         ("decode_context", 0))  # fmt: skip
LEAST_MIXED = (*LEAST[:4], ("decodes", 1), ("decode_context", 1))
"""Fields of a phase that are whole numbers, and the least of each."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One step of ``batch`` equal sequences, or of a prefill chunk beside a decode batch.

    Use `Phase.prefill`, `Phase.decode`, `Phase.mixed` or `Phase.encode`.

    Attributes
    ----------
    query : int
        New tokens of each sequence: its prompt or a chunk of it, or in decode 1 and its
        draft.
    context : int
        Tokens that the last new token attends to, itself included.
    draft : int
        Drafted tokens that a decode step checks beside the next one.
    decodes : int
        Sequences of the decode batch of a mixed step.
    decode_context : int
        Their context.
    """

    kind: Literal["prefill", "decode", "mixed", "encode"]
    batch: int
    query: int
    context: int
    draft: int = 0
    decodes: int = 0
    decode_context: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError("phase", "kind", self.kind, ", ".join(KINDS))
        mixed = self.kind == "mixed"
        # Tables make thousands: the common case must cost no call.
        for field, least in LEAST_MIXED if mixed else LEAST:
            value = getattr(self, field)
            if type(value) is not int or not least <= value <= LARGEST:
                object.__setattr__(self, field, whole(self.kind, field, value, least=least))
        if self.query > self.context:
            raise ConfigError(
                self.kind, "query", self.query, f"at most the context {self.context}"
            )
        if self.kind == "decode" and self.query != 1 + self.draft:
            raise ConfigError("decode", "query", self.query, str(1 + self.draft))
        for field in ("decodes", "decode_context") if not mixed else ():
            if getattr(self, field):
                raise ConfigError(self.kind, field, getattr(self, field), "0")
        if self.draft and self.kind != "decode":
            raise ConfigError(self.kind, "draft", self.draft, "0")

    @classmethod
    def prefill(cls, batch: int, prompt: int, prefix: int = 0) -> Phase:
        """Prefill of ``prompt`` new tokens after ``prefix`` cached ones.

        A chunk of a longer prompt is the same: its tokens after those before it.

        Raises
        ------
        ConfigError
            ``batch`` or ``prompt`` below 1, ``prefix`` below 0, or not whole.
        """
        prompt = whole("prefill", "prompt", prompt)
        prefix = whole("prefill", "prefix", prefix, least=0)
        return cls("prefill", batch, prompt, prefix + prompt)

    @classmethod
    def chunks(cls, batch: int, prompt: int, chunk: int, prefix: int = 0) -> list[Phase]:
        """A prompt in steps of ``chunk`` tokens, the last one shorter.

        Raises
        ------
        ConfigError
            As `prefill`, and a ``chunk`` below 1.
        """
        prompt, chunk = whole("prefill", "prompt", prompt), whole("prefill", "chunk", chunk)
        return [
            cls.prefill(batch, min(chunk, prompt - done), prefix + done)
            for done in range(0, prompt, chunk)
        ]

    @classmethod
    def decode(cls, batch: int, context: int, draft: int = 0) -> Phase:
        """One token for each sequence, attending to ``context`` tokens.

        With a draft, ``draft`` tokens more of each are checked; the last attends to
        ``context``.

        Raises
        ------
        ConfigError
            ``batch`` or ``context`` below 1, ``draft`` below 0, or not whole.
        """
        draft = whole("decode", "draft", draft, least=0)
        return cls("decode", batch, 1 + draft, context, draft)

    @classmethod
    def mixed(
        cls, chunk: int, prefix: int, decodes: int, decode_context: int, batch: int = 1
    ) -> Phase:
        """A prefill chunk of ``batch`` prompts beside one token of ``decodes`` sequences.

        Raises
        ------
        ConfigError
            A number below 1 (``prefix`` below 0), or not whole.
        """
        chunk = whole("mixed", "chunk", chunk)
        prefix = whole("mixed", "prefix", prefix, least=0)
        return cls("mixed", batch, chunk, prefix + chunk, 0, decodes, decode_context)

    @classmethod
    def encode(cls, batch: int, tokens: int) -> Phase:
        """``batch`` inputs of ``tokens`` tokens each through the model's encoder.

        Raises
        ------
        ConfigError
            A number below 1, or not whole.
        """
        return cls("encode", batch, tokens, tokens)

    @property
    def tokens(self) -> int:
        """New tokens of all sequences."""
        return self.batch * self.query + self.decodes

    @property
    def sequences(self) -> int:
        """Sequences of the step."""
        return self.batch + self.decodes

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Equal sequences together: one segment, two in a mixed step."""
        if self.kind != "mixed":
            return (Segment(self.kind, self.batch, self.query, self.context),)
        return (
            Segment("prefill", self.batch, self.query, self.context),
            Segment("decode", self.decodes, 1, self.decode_context),
        )
