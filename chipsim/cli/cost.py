"""``cost``: what one chip costs and draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipsim.cli.options import AsJson, Price, Prices, read_book
from chipsim.cli.output import emit, show
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.cost.prices import PriceBook


def cost(
    chip: Annotated[str, typer.Argument(metavar="CHIP", help="A name or a YAML file.")],
    prices: Prices = "spad-2025",
    price: Price = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Add up manufacturing and street prices all the same."),
    ] = False,
    volume: Annotated[
        float | None,
        typer.Option("--volume", metavar="N", help="Chips that share masks and design."),
    ] = None,
    versus: Annotated[
        str | None,
        typer.Option("--versus", metavar="CHIP2", help="Say from how many on CHIP pays."),
    ] = None,
    replaces: Annotated[
        float, typer.Option("--replaces", metavar="N", help="CHIP2 that one CHIP replaces.")
    ] = 1.0,
    design_cost: Annotated[
        float | None,
        typer.Option("--design-cost", metavar="USD", help="Of CHIP; the book's unless given."),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base", metavar="CHIP2", help="What CHIP was cut from: its area and TDP scale."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Area, dies, memory and packaging in dollars; TDP.

    Energy of an operation and of a byte at each level too.
    """
    from chipsim.chip import Chip
    from chipsim.cost.chip_cost import chip_cost
    from chipsim.cost.energy import EnergyModel
    from chipsim.present.cost import break_even_line, cost_record, cost_tables
    from chipsim.present.tables import footer_line

    described = Chip.load(chip)
    book = read_book(prices, price)
    uncut = None if base is None else Chip.load(base)
    priced = chip_cost(described, book, mixed=force, volume=volume, base=uncut)
    model = EnergyModel(described, base=uncut)
    record, tables = cost_record(priced, model), cost_tables(priced, model)
    if versus is not None:
        record["break_even"] = _break_even(
            described, versus, book, replaces, design_cost, mixed=force
        )
        tables.append(footer_line(break_even_line(record["break_even"])))
    elif design_cost is not None:
        raise ConfigError("--design-cost", "", design_cost, "with --versus CHIP2")
    if as_json:
        emit(record)
    else:
        show(*tables)


def _break_even(
    chip: Chip,
    versus: str,
    book: PriceBook,
    replaces: float,
    design_cost: float | None,
    *,
    mixed: bool,
) -> dict[str, Any]:
    from chipsim.cost import Range, break_even, chip_cost
    from chipsim.cost.ranges import ZERO
    from chipsim.ops.checks import positive
    from chipsim.present.cost import break_even_record

    second, first = (chip_cost(each, book, mixed=mixed) for each in (chip, versus))
    if design_cost is not None:
        design = Range.of(positive("--design-cost", "", design_cost))
    elif not second.dies:
        allowed = f"a figure: {second.prices} prices the whole {second.chip}"
        raise ConfigError("--design-cost", "", None, allowed)
    else:
        design = sum((book.design_price(die.process).total for die in second.dies), ZERO)
    found = break_even(second, first, design, replaces)
    return break_even_record(second.chip, first.chip, found)
