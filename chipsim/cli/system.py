"""``system``: machines of a chip, dollars per hour and per token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipsim.cli.options import (
    AsJson,
    Context,
    ExecutionName,
    MaybeFormats,
    Plan,
    Price,
    Prices,
    Prompt,
    Tp,
    read_book,
    read_phase,
    read_plan,
)
from chipsim.cli.output import emit, show
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.cost.prices import PriceBook
    from chipsim.cost.system import SystemCost
    from chipsim.estimates import PhaseEstimate


def system(
    chip: Annotated[str, typer.Argument(metavar="CHIP", help="A name or a YAML file.")],
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="Host: its name or a YAML file.")
    ] = "hgx-bom-2023",
    machines: Annotated[int, typer.Option("--machines", metavar="N", help="How many.")] = 1,
    rent: Annotated[
        bool, typer.Option("--rent", help="As many rented chips, at the book's hourly price.")
    ] = False,
    prices: Prices = "spad-2025",
    price: Price = None,
    force: Annotated[
        bool, typer.Option("--force", help="Add up prices of different bases all the same.")
    ] = False,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Price its tokens.")
    ] = None,
    phase: Annotated[
        str, typer.Option("--phase", metavar="prefill|decode", help="Phase of serving.")
    ] = "decode",
    batch: Annotated[int, typer.Option("--batch", metavar="B", help="Sequences.")] = 1,
    prompt: Prompt = None,
    context: Context = None,
    tp: Tp = None,
    plan: Plan = None,
    formats: MaybeFormats = None,
    execution: ExecutionName = None,
    goodput: Annotated[
        float | None,
        typer.Option("--goodput", metavar="N", help="Requests/s within objective, all chips."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Capital, power × PUE × $/kWh, $ per hour and per million tokens, goodput per $.

    The chips draw what the phase makes them draw, or their TDP without --model.
    """
    from chipsim.chip import Chip
    from chipsim.cost.system import goodput_per_usd, token_price
    from chipsim.present.cost import system_record, system_tables

    described, step, chips = Chip.load(chip), None, 1
    if model is None and any(
        given is not None for given in (prompt, context, tp, plan, formats, execution)
    ):
        raise ConfigError("--model", "", None, "a model, with options of its phase")
    if model is not None:
        from chipsim.phases import estimate

        asked = read_phase(phase, batch, prompt, context)
        split = read_plan(tp, plan)
        chips = split.chips
        step = estimate(described, model, asked, split, execution=execution, precision=formats)
    book = read_book(prices, price)
    found = _system(described, step, host, machines, book, rent=rent, mixed=force)
    tokens = token_price(found, step, chips) if step is not None else None
    per_usd = goodput_per_usd(found, goodput) if goodput is not None else None
    record = system_record(described.name, found, tokens, phase, per_usd)
    record |= {"host": None if rent else host, "prices": book.name}
    if as_json:
        emit(record)
    else:
        show(*system_tables(described.name, found, record))


def _system(
    chip: Chip,
    step: PhaseEstimate | None,
    host: str,
    machines: int,
    book: PriceBook,
    **asked: Any,
) -> SystemCost:
    from chipsim.cost.chip_cost import chip_cost
    from chipsim.cost.energy import EnergyModel
    from chipsim.cost.system import Host, rental_cost, system_cost
    from chipsim.ops.checks import whole

    around = Host.load(host)
    count = whole("system", "machines", machines)
    if asked["rent"]:
        return rental_cost(chip, book, around.chips * count)
    drawn = EnergyModel(chip)
    watts = drawn.phase(step).power_w if step else drawn.power.tdp_w
    priced = chip_cost(chip, book, mixed=asked["mixed"])
    return system_cost(priced, watts, around, count, mixed=asked["mixed"])
