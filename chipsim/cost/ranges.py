"""A price that is known as a range: low, mid and high, kept apart through every sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from chipsim.spec import Spec
from chipsim.units import DIMENSIONS, parse

Amount = Annotated[float, Field(ge=0, le=1e24)]


class Range(Spec):
    """Three values of one amount, in order; equal where the source gives one figure.

    >>> Range.of(2.0) + Range(low=1, mid=2, high=4)
    Range(low=3.0, mid=4.0, high=6.0)
    """

    low: Amount
    mid: Amount
    high: Amount

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low <= self.mid <= self.high:
            raise ValueError("low, mid and high in ascending order")
        return self

    @classmethod
    def of(cls, value: float) -> Range:
        """A range of one value."""
        return cls(low=value, mid=value, high=value)

    @property
    def known(self) -> bool:
        """True where low, mid and high are one figure."""
        return self.low == self.high

    def __add__(self, other: Range) -> Range:
        return Range(
            low=self.low + other.low, mid=self.mid + other.mid, high=self.high + other.high
        )

    def __mul__(self, factor: float) -> Range:
        """Scaled by a number that is not negative."""
        return Range(low=self.low * factor, mid=self.mid * factor, high=self.high * factor)

    def __repr__(self) -> str:
        return f"Range(low={self.low!r}, mid={self.mid!r}, high={self.high!r})"


ZERO = Range.of(0.0)
"""Nothing to pay."""


def ranged(kind: str) -> BeforeValidator:
    """Pydantic validator of a `Range` in a unit of `chipsim.units.DIMENSIONS`.

    ``9 USD/GiB``, or ``{low: …, high: …}`` with or without ``mid`` (else their mean).
    """

    def read(value: object, info: Any) -> object:
        from_file = bool(info.context and info.context.get("file"))
        if isinstance(value, Mapping):
            return _parts({key: _single(item, kind, from_file) for key, item in value.items()})
        if isinstance(value, Range):
            return value
        single = _single(value, kind, from_file)
        return {"low": single, "mid": single, "high": single}

    return BeforeValidator(read)


def _single(value: object, kind: str, from_file: bool) -> object:
    if isinstance(value, str):
        return parse(value, kind)
    if from_file:
        raise ValueError(f"an amount with its unit, e.g. {DIMENSIONS[kind][1]!r}, or a range")
    return value


def _parts(parts: dict[Any, Any]) -> dict[Any, Any]:
    low, high = parts.get("low"), parts.get("high")
    if "mid" not in parts and isinstance(low, float) and isinstance(high, float):
        return {**parts, "mid": (low + high) / 2}
    return parts


Money = Annotated[Range, ranged("money")]
"""US dollars."""
HourlyPrice = Annotated[Range, ranged("price_per_hour")]
"""US dollars per hour."""
BytePrice = Annotated[Range, ranged("price_per_byte")]
"""US dollars per byte."""
AreaPrice = Annotated[Range, ranged("price_per_area")]
"""US dollars per mm2."""
