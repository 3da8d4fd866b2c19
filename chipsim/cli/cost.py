"""``cost``: what one chip costs and draws."""

from __future__ import annotations

from typing import Annotated

import typer

from chipsim.cli.options import AsJson, Prices
from chipsim.cli.output import emit, show


def cost(
    chip: Annotated[str, typer.Argument(metavar="CHIP", help="A name or a YAML file.")],
    prices: Prices = "spad-2025",
    force: Annotated[
        bool,
        typer.Option("--force", help="Add up manufacturing and street prices all the same."),
    ] = False,
    volume: Annotated[
        float | None,
        typer.Option("--volume", metavar="N", help="Chips that share masks and design."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Area, dies, memory and packaging in dollars; TDP.

    Energy of an operation and of a byte at each level too.
    """
    from chipsim.chip import Chip
    from chipsim.cost.chip_cost import chip_cost
    from chipsim.cost.energy import EnergyModel
    from chipsim.present.cost import cost_record, cost_tables

    described = Chip.load(chip)
    priced = chip_cost(described, prices, mixed=force, volume=volume)
    model = EnergyModel(described)
    if as_json:
        emit(cost_record(priced, model))
    else:
        show(*cost_tables(priced, model))
