"""``memory``: what a chip's memory holds of a model."""

from __future__ import annotations

from typing import Annotated

import typer

from chipsim.cli.options import (
    AsJson,
    ChipName,
    MaybeFormats,
    ModelName,
    Plan,
    Tp,
    read_plan,
    read_precision,
)
from chipsim.cli.output import emit, show


def memory(
    chip: ChipName,
    model: ModelName,
    tp: Tp = None,
    plan: Plan = None,
    formats: MaybeFormats = None,
    context: Annotated[
        int, typer.Option("--context", metavar="N", help="Tokens of a sequence.")
    ] = 1024,
    share: Annotated[
        float, typer.Option("--share", metavar="X", help="Part for weights and KV.")
    ] = 0.9,
    as_json: AsJson = False,
) -> None:
    """Weights and KV of a model in the memory of each chip.

    A model that does not fit is a result, not an error.
    """
    from chipsim.chip import Chip
    from chipsim.memory import memory_notes, memory_plan
    from chipsim.ops.model import ModelSpec
    from chipsim.present.provenance import plan_text, precision_text
    from chipsim.present.records import memory_record

    where, what = Chip.load(chip), ModelSpec.load(model)
    split, precision = read_plan(tp, plan), read_precision(formats, what, "decode")
    result = memory_record(memory_plan(where, what, split, precision, share), context)
    asked = {
        "chip": where.name,
        "model": what.name,
        "plan": plan_text(split),
        "precision": precision_text(precision),
        "share": share,
    }
    notes = memory_notes(what, split, precision)
    if as_json:
        emit(asked | result | {"notes": notes})
        return
    from chipsim.present.tables import footer_line, heading, memory_table

    title = "{model} on {chip}, {plan}, {precision}".format(**asked)
    show(heading(title), memory_table(result), *(footer_line(note) for note in notes))
