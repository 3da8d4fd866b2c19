"""The commands by name. Nothing heavy is imported before a command runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import typer

from chipsim.cli import (
    compare,
    cost,
    cuts,
    dashboard,
    doctor,
    estimate,
    imports,
    lists,
    memory,
    plan,
    plans,
    provision,
    report,
    reproduce,
    simulate,
    system,
    validate,
    workload,
)

SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,  # loading rich would take longer than everything else
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}

FIRST = (
    *("chips", "models", "executions", "prices", "workloads", "scenarios", "show"),
    *("estimate", "memory", "plans", "cuts", "cost", "system", "compare", "workload"),
    *("simulate", "provision", "plan"),
)
"""Commands in the order of help; the others follow."""


def command() -> Callable[..., Any]:
    """The whole command line, ready to be called with arguments."""
    app = typer.Typer(help="Performance of language models on accelerators.", **SETTINGS)
    app.callback()(_version)
    for name in FIRST[:7]:
        app.command(name)(getattr(lists, name))
    app.add_typer(_estimates(), name="estimate")
    app.command("memory")(memory.memory)
    app.command("plans")(plans.plans)
    app.command("cuts")(cuts.cuts)
    app.command("cost")(cost.cost)
    app.command("system")(system.system)
    app.command("compare")(compare.compare)
    app.command("workload")(workload.workload)
    app.command("simulate")(simulate.simulate)
    app.command("provision")(provision.provision)
    app.command("plan")(plan.plan)
    app.command("reproduce")(reproduce.reproduce)
    app.command("validate")(validate.validate)
    app.command("calibrate")(validate.calibrate)
    app.add_typer(_imports(), name="import")
    app.command("report")(report.report)
    app.command("dashboard")(dashboard.dashboard)
    app.command("doctor")(doctor.doctor)
    group = typer.main.get_command(app)
    known: dict[str, Any] = getattr(group, "commands")  # noqa: B009 - a group has it
    in_order = {name: known.pop(name) for name in FIRST}
    known.update(in_order | {name: known.pop(name) for name in list(known)})
    return cast(Callable[..., Any], group)


def _estimates() -> typer.Typer:
    app = typer.Typer(help="Latency of an operator or of a phase.", **SETTINGS)
    for name, function in estimate.COMMANDS.items():
        app.command(name)(function)
    return app


def _imports() -> typer.Typer:
    app = typer.Typer(help="Read another tool's description, write our YAML.", **SETTINGS)
    app.callback()(_nothing)
    app.command("llmcompass")(imports.llmcompass)
    app.command("hf")(imports.huggingface)
    return app


def _nothing() -> None:
    """Read another tool's description, write our YAML."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"chipsim {version('chipsim')}")
        raise typer.Exit


def _version(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    pass
