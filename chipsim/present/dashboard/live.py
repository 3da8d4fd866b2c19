"""The model behind a page that is dragged: every answer is computed once.

What is kept follows from what was asked alone, so that it is the same for every reader.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipsim.cost.chip_cost import chip_cost
from chipsim.cost.power import power
from chipsim.cost.prices import PriceBook, book_of
from chipsim.errors import ChipsimError, InfeasibleError
from chipsim.explore.cuts import CutPoint, CutsResult
from chipsim.explore.resources import Cut
from chipsim.explore.setup import Answer, Setup, resolve
from chipsim.ops.phase import Phase

if TYPE_CHECKING:
    from chipsim.chip import Chip

KEPT = 4096
"""Answers that are remembered."""

Parts = tuple[tuple[str, float], ...]
"""Resources and what is left of them, as parts of the uncut chip."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A phase of a model on a chip, by names."""

    chip: str
    model: str
    phase: str
    batch: int
    length: int
    plan: str = ""
    precision: str = ""
    execution: str = ""
    prices: str = "spad-2025"
    layers_only: bool = False

    def as_phase(self) -> Phase:
        """The phase with its sizes."""
        make = Phase.prefill if self.phase == "prefill" else Phase.decode
        return make(self.batch, self.length)


@functools.lru_cache(maxsize=256)
def setup_of(asked: Asked, held: Parts = ()) -> Setup:
    """Names resolved (`ChipsimError`)."""
    return resolve(
        asked.chip,
        asked.model,
        asked.as_phase(),
        plan=asked.plan or None,
        execution=asked.execution or None,
        precision=asked.precision or None,
        layers_only=asked.layers_only,
        prices=book_of(asked.prices),
        held=dict(held),
    )


@functools.lru_cache(maxsize=KEPT)
def answer(asked: Asked, parts: Parts = ()) -> Answer:
    """The phase on the chip with what is left of it."""
    setup = setup_of(asked)
    return setup.answer(chip_of(asked, parts))


@functools.lru_cache(maxsize=KEPT)
def chip_of(asked: Asked, parts: Parts = ()) -> Chip:
    """The chip with what is left of it."""
    return setup_of(asked).chip.scaled(**dict(parts))


def curve(asked: Asked, held: Parts, resource: str, parts: tuple[float, ...]) -> CutsResult:
    """A cut of one resource while others are held: `chipsim.cuts` from remembered answers.

    Raises
    ------
    InfeasibleError
        The uncut chip cannot run the phase.
    """
    setup, uncut = setup_of(asked, held), answer(asked)
    if uncut.estimate is None:
        raise InfeasibleError(f"{asked.model} on {asked.chip}: {uncut.reason}")
    points = tuple(_point(asked, held, resource, part) for part in parts)
    return CutsResult(setup, (resource,), uncut, points)


@functools.lru_cache(maxsize=KEPT)
def _point(asked: Asked, held: Parts, resource: str, part: float) -> CutPoint:
    setup, step = setup_of(asked, held), Cut(resource, fractions=[part]).steps(chip_of(asked))
    reached = answer(asked, tuple(sorted({**dict(held), resource: part}.items())))
    return CutPoint(setup, tuple(step), reached, answer(asked))


@functools.lru_cache(maxsize=KEPT)
def dollars(asked: Asked, parts: Parts = ()) -> tuple[dict[str, float], str]:
    """Cost of one chip by part, USD; where it cannot be told, empty and why."""
    setup = setup_of(asked)
    return cost_parts(chip_of(asked, parts), setup.prices, setup.chip)


@functools.lru_cache(maxsize=KEPT)
def watts(asked: Asked, parts: Parts = ()) -> tuple[dict[str, float], str]:
    """TDP of one chip by part, watts; where it cannot be told, empty and why."""
    return power_parts(chip_of(asked, parts), setup_of(asked).chip)


def cost_parts(
    chip: Chip, prices: PriceBook | str | None, base: Chip | None = None
) -> tuple[dict[str, float], str]:
    """Cost by part, USD, and what else is to be known of it."""
    if prices is None:
        return {}, "no price book"
    try:
        cost = chip_cost(chip, prices, base=base)
    except ChipsimError as error:
        return {}, str(error)
    if not cost.dies:
        return {"whole chip": cost.total_usd}, f"{cost.prices} prices the whole chip"
    parts = {
        "die": cost.die_cost_usd,
        "memory": cost.memory_cost_usd,
        "packaging": cost.packaging_cost_usd,
    }
    return {name: usd for name, usd in parts.items() if usd > 0.0}, cost.counterfactual


def power_parts(chip: Chip, base: Chip | None = None) -> tuple[dict[str, float], str]:
    """TDP by part, watts, and what else is to be known of it."""
    try:
        found = power(chip, base=base)
    except ChipsimError as error:
        return ({"stated": chip.tdp}, "") if chip.tdp else ({}, str(error))
    return dict(found.parts), ""
