"""``plans``: every way to split a model over a number of chips, ranked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipsim.cli.options import (
    AsJson,
    ChipName,
    Context,
    Draft,
    ExecutionName,
    LayersOnly,
    Load,
    MaybeFormats,
    ModelName,
    Out,
    PhaseKind,
    Price,
    Prices,
    Prompt,
    read_book,
    read_load,
    read_phase,
)
from chipsim.cli.output import emit, remark, show
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.explore.plans import PlanSearch

ENDINGS = (".csv", ".parquet", ".json")


def plans(
    chip: ChipName,
    model: ModelName,
    chips: Annotated[int, typer.Option("--chips", metavar="N", help="Chips of a plan.")],
    phase: PhaseKind,
    batch: Annotated[
        int, typer.Option("--batch", metavar="N", help="Sequences on all chips together.")
    ] = 1,
    prompt: Prompt = None,
    context: Context = None,
    draft: Draft = 0,
    load: Load = None,
    formats: MaybeFormats = None,
    execution: ExecutionName = None,
    share: Annotated[
        float, typer.Option("--share", metavar="X", help="Part of memory for weights and KV.")
    ] = 0.9,
    top: Annotated[
        int, typer.Option("--top", metavar="N", help="Plans that the table shows.", min=1)
    ] = 20,
    layers_only: LayersOnly = False,
    prices: Prices = "spad-2025",
    price: Price = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Ways to split a model over chips, the fastest first.

    Plans that do not fit the memory come last.
    """
    from chipsim.explore.plans import search_plans

    if out is not None and Path(out).suffix not in ENDINGS:
        raise ConfigError("--out", "", Path(out).name, f"a name ending in {', '.join(ENDINGS)}")
    found = search_plans(
        chip,
        model,
        chips,
        read_phase(phase, batch, prompt, context, draft),
        execution=execution,
        precision=formats,
        load=read_load(load),
        layers_only=layers_only,
        memory_share=share,
        prices=read_book(prices, price),
    )
    if out is not None:
        from chipsim.explore.store import save

        save(found, out)
        remark(f"wrote {out}")
    if as_json:
        from chipsim.present.plans import plans_record

        emit(plans_record(found))
    else:
        _show(found, top)


def _show(found: PlanSearch, top: int) -> None:
    from chipsim.present.cost import plans_money
    from chipsim.present.plans import plans_table, plans_title
    from chipsim.present.provenance import footer
    from chipsim.present.tables import footer_line, heading

    performance = found.model.performance
    show(heading(plans_title(found)), plans_table(found, top))
    if len(found.plans) > top:
        show(footer_line(f"{len(found.plans) - top} more: --top N, --json or --out FILE"))
    show(footer_line(plans_money(found)))
    show(footer_line(footer(performance.chip.name, performance.execution)))
