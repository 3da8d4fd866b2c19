"""How a model is split over chips; `chipsim.ops.parallelism` says which splits it allows.

Ranks are numbered with tensor parallelism innermost: tp, then cp, then dp, then pp. The
chips of one pipeline stage (tp x cp x dp) hold the routed experts together: over ``ep`` of
them the experts are spread, and each expert's columns over the ``expert_tp`` that are left.

A `chipsim.ops.phase.Phase` counts the sequences of the whole plan; `Parallelism.rank_batch`
are those of one data-parallel rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from chipsim.errors import ConfigError
from chipsim.ops.checks import read_pairs
from chipsim.spec import Spec

if TYPE_CHECKING:
    from chipsim.ops.parameters import Shares

Degree = Annotated[int, Field(ge=1, le=10**6, strict=True)]
Axis = Literal["tp", "dcp", "cp", "dp", "ep", "expert_tp", "stage", "pp"]


class Parallelism(Spec):
    """Degrees of parallelism of attention and MLP (tp, cp, dp), layers (pp), experts (ep)."""

    tp: Degree = 1
    """Tensor: heads, MLP columns and vocabulary rows are split."""
    pp: Degree = 1
    """Pipeline: layers are split into stages."""
    ep: Degree = 1
    """Experts are spread over so many of a stage's chips; it adds no chips."""
    dp: Degree = 1
    """Data: each rank has its own sequences and a copy of attention and dense MLPs."""
    cp: Degree = 1
    """Context, in prefill: each rank has a part of every prompt's tokens."""
    dcp: Degree = 1
    """Context, in decode: of the tp chips so many share heads and split the cached tokens
    instead; it adds no chips."""

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
    def text(self) -> str:
        """The plan without its ones; ``tp=1`` of one chip.

        >>> Parallelism(tp=8, ep=8).text, Parallelism().text
        ('tp=8,ep=8', 'tp=1')
        """
        degrees = ((key, getattr(self, key)) for key in type(self).model_fields)
        return ",".join(f"{key}={value}" for key, value in degrees if value > 1) or "tp=1"

    @property
    def stage_chips(self) -> int:
        """Chips of one pipeline stage; the experts are spread over them."""
        return self.tp * self.cp * self.dp

    @property
    def chips(self) -> int:
        """Chips of the whole plan."""
        return self.stage_chips * self.pp

    @property
    def expert_tp(self) -> int:
        """Chips that split the columns of one expert."""
        return max(1, self.stage_chips // self.ep)

    @property
    def shares(self) -> Shares:
        """Over how many chips the parameters of each part are split."""
        from chipsim.ops.parameters import Shares

        return Shares(self.tp, self.ep, self.expert_tp)

    def group(self, axis: Axis) -> tuple[int, int]:
        """Chips of a group, and how far apart they stand in the order of ranks.

        >>> plan = Parallelism(tp=2, dp=4, ep=4, pp=2)
        >>> plan.group("tp"), plan.group("dp"), plan.group("ep"), plan.group("pp")
        ((2, 1), (4, 2), (4, 2), (2, 8))
        """
        return {
            "tp": (self.tp, 1),
            "dcp": (self.dcp, 1),
            "cp": (self.cp, self.tp),
            "dp": (self.dp, self.tp * self.cp),
            "ep": (self.ep, self.expert_tp),
            "expert_tp": (self.expert_tp, 1),
            "stage": (self.stage_chips, 1),
            "pp": (self.pp, self.stage_chips),
        }[axis]

    def stage_layers(self, layers: int) -> tuple[int, ...]:
        """Layers of each pipeline stage, as even as whole layers allow.

        The layers that are left over go to the stages before the last, which has the LM
        head, and to the first, which has the embedding, only when no other is left (vLLM,
        ``distributed/utils.py``, ``get_pp_indices``).

        >>> Parallelism(pp=4).stage_layers(61), Parallelism(pp=4).stage_layers(62)
        ((15, 15, 16, 15), (15, 16, 16, 15))
        """
        each, over = divmod(layers, self.pp)
        fuller = range(self.pp - 1 - over, self.pp - 1)
        return tuple(each + (stage in fuller) for stage in range(self.pp))

    def rank_batch(self, batch: int) -> int:
        """Sequences of the data-parallel rank that has most, of ``batch`` in all."""
        return -(-batch // self.dp)

    def microbatches(self, batch: int) -> int:
        """Parts that a rank's sequences are cut into, so that stages work side by side."""
        return min(self.pp, self.rank_batch(batch))

    def stage_batch(self, batch: int) -> int:
        """Sequences that one stage of one rank works on at a time, of ``batch`` in all."""
        return -(-self.rank_batch(batch) // self.microbatches(batch))


def _whole(key: str, text: str) -> int:
    # int() would also read "1_0" and Arabic-Indic digits.
    if not (text.isascii() and text.isdecimal()):
        raise ConfigError("plan", key, text, "a whole number from 1")
    return int(text)
