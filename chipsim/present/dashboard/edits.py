"""A chip of the library with fields changed: by path, in text as a file has it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

from chipsim.arch_configs import load
from chipsim.chip import Chip
from chipsim.errors import ConfigError

SEPARATOR, EQUALS = ";", "="

TOLD = ("description", "source")
"""Fields that say something, and change nothing."""

STATED = ("die_area", "tdp")
"""What a file states of the chip as it is: no longer true of a changed one."""

KEEPS = ("name", "execution", "machine", *TOLD, *STATED)
"""Fields whose change leaves area and TDP as they are stated."""


def leaves(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted path and text of every field, in the order of the file."""
    for key, value in data.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from leaves(value, f"{path}.")
        else:
            yield path, written(value)


def written(value: Any) -> str:
    """A value as one types it."""
    if isinstance(value, str):
        return value
    return json.dumps(value)


def read(text: str) -> Any:
    """What one has typed: a number, true, false, null, a list; anything else is text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, str | dict) else value


def parse_edits(text: str) -> dict[str, str]:
    """``memory.bandwidth=2 TB/s;cores=100`` as paths and texts."""
    pairs = (piece.partition(EQUALS) for piece in text.split(SEPARATOR) if piece.strip())
    return {path.strip(): value.strip() for path, _, value in pairs}


def edits_text(edits: Mapping[str, str]) -> str:
    """The other way round."""
    return SEPARATOR.join(f"{path}{EQUALS}{value}" for path, value in edits.items())


def edited(name: str, edits: Mapping[str, str]) -> tuple[Chip, Chip | None, dict[str, Any]]:
    """A chip with its edits, the chip that it was, and its description.

    Parameters
    ----------
    name : str
        Of the library.

    Returns
    -------
    Chip, Chip or None, dict
        The second is None where area and TDP hold as the file states them.

    Raises
    ------
    ConfigError, UnknownNameError
        No such chip, no such field, or a value that is not allowed.
    """
    original, path = load("chips", name)
    base = Chip.read(original, path)
    if not edits:
        return base, None, original
    data = copy.deepcopy(original)
    for where, text in edits.items():
        _set(data, where, read(text), path.name)
    if "name" not in edits:
        data["name"] = f"{name}-edited"
    changed = any(where.split(".")[0] not in KEEPS for where in edits)
    if changed:
        for stated in STATED:
            if stated not in edits:
                data.pop(stated, None)
    chip = library_only(Chip.read(data, f"{data['name']}.yaml"))
    return chip, base if changed else None, data


def library_only(chip: Chip) -> Chip:
    """The chip, if all that it names is of the library: a page's reader names no files here.

    Raises
    ------
    ConfigError
        It names a path.
    """
    plan = chip.floorplan
    named = {"execution": chip.execution, "process": chip.process}
    named |= {"memory.technology": chip.memory.technology}
    if plan is not None:
        named |= {"floorplan.constants": plan.constants, "floorplan.links": plan.links}
        named |= {f"floorplan.dies.{name}": die.process for name, die in plan.dies.items()}
    for where, name in named.items():
        if name and ("/" in name or "\\" in name or name.endswith((".yaml", ".yml"))):
            raise ConfigError(chip.name, where, name, "a name of the library, no path")
    return chip


def _set(data: dict[str, Any], where: str, value: Any, file: str) -> None:
    *sections, key = where.split(".")
    for section in sections:
        data = data.setdefault(section, {})
        if not isinstance(data, dict):
            raise ConfigError(file, where, value, "a field of the file")
    data[key] = value
