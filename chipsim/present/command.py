"""The command line that gives the numbers of a picture."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from chipsim.present.provenance import plan_text, precision_text
from chipsim.present.quantities import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chipsim.explore.cuts import CutsResult
    from chipsim.explore.setup import Setup
    from chipsim.ops.phase import Phase


def command(verb: str, /, *words: str, **options: object) -> str:
    """A command line, quoted for a shell; an option of None or False is left out.

    Parameters
    ----------
    verb : str
        Command and arguments.
    words : str
        Options that stand several times, behind the others.

    >>> command("cuts", chip="h100-sxm", batch=64, layers_only=True, itl=None)
    'chipsim cuts --chip h100-sxm --batch 64 --layers-only'
    """
    parts = ["chipsim", *shlex.split(verb)]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            parts.append(flag)
        elif value is not None and value is not False:
            parts += [flag, str(value)]
    return shlex.join([*parts, *words])


def phase_options(phase: Phase, batch: str = "fixed") -> dict[str, object]:
    """``--phase`` and its sizes."""
    length = "prompt" if phase.kind == "prefill" else "context"
    return {
        "phase": phase.kind,
        "batch": "max" if batch == "max" else phase.batch,
        length: phase.context,
    }


def setup_options(setup: Setup) -> dict[str, object]:
    """Chip, model, phase, plan, formats, block and prices of a setup."""
    plan = plan_text(setup.plan)
    itl = None if setup.itl_s is None else f"{plain(1e3 * setup.itl_s)}ms"
    return {
        "chip": setup.chip.name,
        "model": setup.model.name,
        **phase_options(setup.phase, setup.batch),
        "plan": None if plan == "one chip" else plan,
        "precision": precision_text(setup.precision),
        "execution": setup.execution.name,
        "layers_only": setup.layers_only,
        "itl": itl,
        "prices": setup.prices.name if setup.prices else None,
    }


def held_option(held: Mapping[str, float]) -> str | None:
    """``--held``; None where nothing is held."""
    kept = [f"{name}={plain(part)}" for name, part in held.items() if part != 1.0]
    return ",".join(kept) or None


def cuts_command(run: CutsResult) -> str:
    """The ``chipsim cuts`` of a curve or grid."""
    words = []
    for index, name in enumerate(run.resources):
        parts = dict.fromkeys(point.steps[index].asked for point in run.points)
        words += ["--resource", name, "--fractions", ",".join(plain(part) for part in parts)]
    options = setup_options(run.setup) | {"held": held_option(run.setup.held)}
    return command("cuts", *words, **options)


def compare_command(setups: tuple[Setup, ...]) -> str:
    """The ``chipsim compare`` of two setups; empty without them."""
    if len(setups) != 2:
        return ""
    a, b = setups
    options = setup_options(a)
    for name in ("chip", "execution", "itl"):
        options.pop(name)
    names = shlex.join([a.chip.name, b.chip.name])
    blocks = {"execution_a": a.execution.name, "execution_b": b.execution.name}
    return command(f"compare {names}", **options, **blocks)
