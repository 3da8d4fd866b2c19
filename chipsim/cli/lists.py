"""``chips``, ``models``, ``executions`` and ``show``: what the library holds."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from chipsim.cli import output
from chipsim.cli.options import AsJson


def chips(as_json: AsJson = False) -> None:
    """List the chips."""
    from chipsim.present.library import chip_rows, chips_table

    _listed(chip_rows(), chips_table, as_json)


def models(as_json: AsJson = False) -> None:
    """List the models."""
    from chipsim.present.library import model_rows, models_table

    _listed(model_rows(), models_table, as_json)


def executions(as_json: AsJson = False) -> None:
    """List the execution blocks and what each was fitted to."""
    from chipsim.present.library import execution_rows, executions_table

    _listed(execution_rows(), executions_table, as_json)


def _listed(rows: list[dict[str, Any]], table: Any, as_json: bool) -> None:
    if as_json:
        output.emit({"rows": rows})
    else:
        output.show(table(rows))


def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name or a YAML file.")],
    as_json: AsJson = False,
) -> None:
    """Show a chip, a model or a block, with sources."""
    from chipsim.present.library import look_up, shown

    found = look_up(name)
    if as_json:
        output.emit(found.record)
    else:
        output.show(*shown(found))
