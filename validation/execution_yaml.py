"""Write a block or an engine as YAML, factors rounded to what a fit can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from chipsim import execution, serving
from chipsim.importers.chip_yaml import quantity_text

if TYPE_CHECKING:
    from collections.abc import Collection

    from chipsim.execution import Execution
    from chipsim.serving import ServingEngine

    Described = TypeVar("Described", Execution, ServingEngine)

DIGITS = 4
"""Significant digits of a factor: the data do not carry more."""

UNITS = execution.UNITS | serving.UNITS
"""Units of fields by name."""


def written(block: Described, factors: Collection[str] | None = None) -> Described:
    """The block as its file will say it: factors rounded to `DIGITS`.

    ``factors`` are dotted fields; every number unless given.
    """
    return type(block).build(block.name, **_rounded(block.model_dump(), factors))


def to_yaml(block: Execution | ServingEngine, what: str = "Execution block") -> str:
    """A block as a YAML file; reading it gives an equal block."""
    content = _text(block.model_dump(exclude_defaults=True))
    text: str = yaml.safe_dump(content, sort_keys=False, width=92, allow_unicode=True)
    head = f"# {what} {block.name}."
    if block.fitted is not None:
        head = f"{head} Its factors come from a fit: run\n# `{block.fitted.command}` again."
    return f"{head}\n{text}"


def _rounded(value: Any, factors: Collection[str] | None, path: str = "") -> Any:
    if isinstance(value, dict):
        inner = f"{path}." if path else ""
        return {key: _rounded(item, factors, inner + key) for key, item in value.items()}
    is_factor = isinstance(value, float) and (factors is None or path in factors)
    return float(f"{value:.{DIGITS}g}") if is_factor else value


def _text(fields: dict[str, Any], parent: str = "") -> dict[str, Any]:
    """Fields as they stand in a file: units on."""
    out: dict[str, Any] = {}
    for key, value in fields.items():
        kind = execution.GROUPS.get(parent) or UNITS.get(key)
        if isinstance(value, dict):
            out[key] = _text(value, key)
        elif kind is not None and isinstance(value, float):
            out[key] = quantity_text(value, kind)
        else:
            out[key] = value
    return out
