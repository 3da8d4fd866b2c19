"""Write an execution block as YAML, factors rounded to what a fit can tell."""

from __future__ import annotations

from typing import Any

import yaml

from chipsim.execution import Execution
from chipsim.importers.chip_yaml import quantity_text

DIGITS = 4
"""Significant digits of a factor: the data do not carry more."""


def written(block: Execution) -> Execution:
    """The block as its file will say it: every factor rounded to `DIGITS`."""
    return Execution.build(block.name, **_rounded(block.model_dump()))


def to_yaml(block: Execution) -> str:
    """A block as a YAML file; `Execution.load` of it gives an equal block."""
    content = _text(block.model_dump(exclude_defaults=True))
    text: str = yaml.safe_dump(content, sort_keys=False, width=92, allow_unicode=True)
    head = f"# Execution block {block.name}."
    if block.fitted is not None:
        head = f"{head} Its factors come from a fit: run\n# `{block.fitted.command}` again."
    return f"{head}\n{text}"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _text(fields: dict[str, Any], parent: str = "") -> dict[str, Any]:
    """Fields as they stand in a file: units on."""
    out: dict[str, Any] = {}
    for key, value in fields.items():
        if isinstance(value, dict):
            out[key] = _text(value, key)
        elif parent in ("launch", "link"):
            out[key] = quantity_text(value, "time")
        elif parent == "row_buffer" and value is not None:
            out[key] = quantity_text(value, "capacity")
        elif key == "core_draw" and value is not None:
            out[key] = quantity_text(value, "bytes_per_cycle")
        else:
            out[key] = value
    return out
