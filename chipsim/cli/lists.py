"""``chips``, ``models``, … and ``show``: what the library holds."""

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


def prices(as_json: AsJson = False) -> None:
    """List the price books with their basis and date."""
    from chipsim.present.library import price_rows, prices_table

    _listed(price_rows(), prices_table, as_json)


def workloads(as_json: AsJson = False) -> None:
    """List the workloads with their rate and source."""
    from chipsim.present.workload import workload_rows, workloads_table

    _listed(workload_rows(), workloads_table, as_json)


def scenarios(as_json: AsJson = False) -> None:
    """List the scenarios of clusters."""
    from chipsim.present.simulation import scenario_rows, scenarios_table

    _listed(scenario_rows(), scenarios_table, as_json)


def _listed(rows: list[dict[str, Any]], table: Any, as_json: bool) -> None:
    if as_json:
        output.emit({"rows": rows})
    else:
        output.show(table(rows))


def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name or a YAML file.")],
    as_json: AsJson = False,
) -> None:
    """Show a chip, model, block, engine, price book, workload or scenario."""
    from chipsim.present.library import look_up, shown

    found = look_up(name)
    if as_json:
        output.emit(found.record)
    else:
        output.show(*shown(found))
