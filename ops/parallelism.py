"""Parallelism plans: over how many chips a model is split, and which splits it allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from chipsim.errors import ConfigError, InfeasibleError
from chipsim.ops.checks import read_pairs
from chipsim.spec import Spec

if TYPE_CHECKING:
    from chipsim.ops.model import ModelSpec

Degree = Annotated[int, Field(ge=1, le=10**6, strict=True)]


class Parallelism(Spec):
    """Degrees of tensor, pipeline, expert and data parallelism."""

    tp: Degree = 1
    pp: Degree = 1
    ep: Degree = 1
    dp: Degree = 1

    @classmethod
    def parse(cls, text: str) -> Parallelism:
        """Read ``"tp=8,pp=1"``; degrees left out are 1.

        Raises
        ------
        ConfigError
            An unknown degree, one named twice, or not a whole number from 1.
        """
        degrees = read_pairs("plan", text, cls.model_fields)
        return cls.build("plan", **{key: _whole(key, value) for key, value in degrees.items()})

    @property
    def chips(self) -> int:
        """Chips of the whole plan; experts are spread over the tp x dp chips."""
        return self.tp * self.pp * self.dp


def _whole(key: str, text: str) -> int:
    # int() would also read "1_0" and Arabic-Indic digits.
    if not (text.isascii() and text.isdecimal()):
        raise ConfigError("plan", key, text, "a whole number from 1")
    return int(text)


def check(model: ModelSpec, plan: Parallelism) -> None:
    """Refuse a plan that the model cannot be split by.

    Raises
    ------
    InfeasibleError
        ``tp`` does not divide heads and MLP columns, or divides its KV heads unevenly;
        or another degree than ``tp`` is not 1. The message lists what is allowed.
    """
    for key in ("pp", "ep", "dp"):
        degree = getattr(plan, key)
        if degree != 1:
            raise InfeasibleError(f"plan: {key}: {degree} is not allowed; allowed: 1")
    if not _splits(model, plan.tp):
        allowed = ", ".join(map(str, allowed_tp(model)))
        raise InfeasibleError(
            f"plan: tp: {plan.tp} is not allowed for {model.name} ({model.heads} heads, "
            f"{model.kv_heads} KV heads, intermediate {model.intermediate}); "
            f"allowed: {allowed}"
        )


def allowed_tp(model: ModelSpec) -> list[int]:
    """Tensor-parallel degrees that split a model evenly, ascending."""
    return [tp for tp in range(1, model.heads + 1) if _splits(model, tp)]


def _splits(model: ModelSpec, tp: int) -> bool:
    if model.heads % tp or model.intermediate % tp:
        return False
    # Fewer KV heads than chips: each head is replicated on tp / kv_heads chips.
    return model.kv_heads % tp == 0 or tp % model.kv_heads == 0
