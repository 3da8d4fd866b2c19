"""The cost of a design (NRE): how many chips pay for a second one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipsim.errors import ConfigError
from chipsim.ops.checks import positive

if TYPE_CHECKING:
    from chipsim.cost.chip_cost import Cost
    from chipsim.cost.ranges import Range


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Chips of the second design that pay for it; infinite where it saves nothing.

    Attributes
    ----------
    low, mid, high : float
        Least, middle and most, as the prices range.
    saving_usd : float
        Of one chip of the second design, the middle of the range.
    """

    low: float
    mid: float
    high: float
    saving_usd: float


def break_even(second: Cost, first: Cost, design: Range, replaces: float = 1.0) -> BreakEven:
    """Volume from which a second chip is cheaper than more of the first.

    Parameters
    ----------
    second, first : Cost
        Of one chip each, without a share of the design (``volume=None``).
    design : Range
        Masks and design of the second, US dollars: `DesignPrice.total`.
    replaces : float
        Chips of the first that one of the second replaces.

    Raises
    ------
    ConfigError
        The two are priced by different books or on different bases, or with a share of
        their design; `replaces` is not above 0.

    Examples
    --------
    SPAD's Prefill chip instead of 1.08 H100 in its place:

    >>> from chipsim.cost import Range, chip_cost
    >>> found = break_even(chip_cost("spad-prefill"), chip_cost("spad-h100"),
    ...                    Range.of(500e6), replaces=1.08)
    >>> round(found.mid, -3), round(found.saving_usd)
    (801000.0, 624)
    """
    positive("break-even", "replaces", replaces)
    if second.basis != first.basis:
        raise ConfigError(
            "break-even", "basis", f"{second.basis}, {first.basis}", "one basis for both chips"
        )
    books = [f"{cost.prices} of {cost.date}" for cost in (second, first)]
    if books[0] != books[1]:
        raise ConfigError("break-even", "prices", ", ".join(books), "one book for both chips")
    for cost in (second, first):
        if cost.volume is not None:
            where = f"break-even: {cost.chip}"
            raise ConfigError(where, "volume", cost.volume, "none: the design is told apart")
    # One book prices both: its low, mid and high hold for both at once.
    savings = sorted(
        replaces * paid - instead
        for paid, instead in zip(
            (first.total.low, first.total.mid, first.total.high),
            (second.total.low, second.total.mid, second.total.high),
            strict=True,
        )
    )
    middle = replaces * first.total.mid - second.total.mid
    return BreakEven(
        _units(design.low, savings[-1]),
        _units(design.mid, middle),
        _units(design.high, savings[0]),
        middle,
    )


def _units(design: float, saving: float) -> float:
    return design / saving if saving > 0.0 else math.inf
