"""``--emit``: an answer as a deployment sketch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.cluster.deployment import Deployment

TARGETS = ("dynamo", "llm-d", "vllm")

EmitOption = Annotated[
    str | None,
    typer.Option("--emit", metavar="|".join(TARGETS), help="A deployment sketch, as YAML."),
]


def read_target(target: str | None) -> str | None:
    """The target of ``--emit`` (`ConfigError`)."""
    if target is not None and target not in TARGETS:
        raise ConfigError("--emit", "", target, ", ".join(TARGETS))
    return target


def write_sketch(deployment: Deployment, target: str) -> None:
    """Write the YAML on stdout."""
    from chipsim.present.deployment import sketch

    sys.stdout.write(sketch(deployment, target))
