"""What all operators share: a name, a kind, and counts that follow from the shape."""

from __future__ import annotations

import dataclasses
import functools
from typing import ClassVar, Literal, NoReturn, Self

from chipsim.errors import ConfigError
from chipsim.ops.checks import LARGEST, whole
from chipsim.ops.formats import FORMATS, get_format

Kind = Literal[
    "gemm",
    "batched_gemm",
    "attention",
    "softmax",
    "norm",
    "activation",
    "elementwise",
    "collective",
]


class Operator:
    """One operator as a shape: hashable, and ignorant of any chip.

    Subclasses are frozen dataclasses. Sizes are whole numbers from 1; formats are names
    of `chipsim.ops.formats.FORMATS`.
    """

    __slots__ = ()
    _sizes: ClassVar[tuple[str, ...]] = ()
    _formats: ClassVar[tuple[str, ...]] = ("format",)
    name: str

    def __post_init__(self) -> None:
        # Phases are built by the thousand: the common case must cost no call.
        for field in self._sizes:
            value = getattr(self, field)
            if type(value) is not int or not 1 <= value <= LARGEST:
                object.__setattr__(self, field, whole(self._label(), field, value))
        for field in self._formats:
            value = getattr(self, field)
            if type(value) is not str or value not in FORMATS:
                get_format(value)

    def unnamed(self) -> Self:
        """The same shape without its name; what was checked once is not checked again."""
        if not self.name:
            return self
        other = object.__new__(type(self))
        for field in _fields(type(self)):  # type: ignore[arg-type]  # classes are hashable
            object.__setattr__(other, field, getattr(self, field))
        object.__setattr__(other, "name", "")
        return other

    def _refuse(self, field: str, value: object, allowed: str) -> NoReturn:
        raise ConfigError(self._label(), field, value, allowed)

    def _label(self) -> str:
        return str(self.name or type(self).__name__)

    @property
    def kind(self) -> Kind:
        """Class of the operator, as execution blocks name it."""
        raise NotImplementedError

    @property
    def flops(self) -> float:
        """Arithmetic, FLOP: a multiply-accumulate is 2, an exponential is 1."""
        raise NotImplementedError

    @property
    def bytes(self) -> float:
        """Least bytes that must move: every input once, every output once."""
        raise NotImplementedError

    @property
    def exponentials(self) -> float:
        """Exponentials, each 1 FLOP in the `flops` of vector operators; a chip pays more."""
        return 0.0


@functools.cache
def _fields(operator: type[Operator]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(operator))  # type: ignore[arg-type]
