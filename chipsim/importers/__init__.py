"""Readers of other tools' descriptions: file -> checked fields -> our own spec -> YAML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from chipsim.importers.chip_yaml import to_yaml
from chipsim.importers.llmcompass_config import import_llmcompass

if TYPE_CHECKING:
    from chipsim.chip import Chip

__all__ = ["import_chip", "import_llmcompass", "to_yaml"]


def import_chip(path: str | Path, out: str | Path | None = None) -> tuple[Chip, list[str]]:
    """Read another tool's description of a chip (today: LLMCompass's JSON).

    Parameters
    ----------
    path : str or Path
        The description.
    out : str or Path, optional
        A YAML file to write: our own description, which `Chip.load` reads back equal.

    Returns
    -------
    chip : Chip
    warnings : list of str
        What was ignored or contradicts itself, one line each.

    Raises
    ------
    ConfigError
        Names the file, the field's path, its value and what is allowed.
    ChipsimError
        There is no such file.
    """
    chip, warnings = import_llmcompass(path)
    if out is not None:
        Path(out).write_text(to_yaml(chip), encoding="utf-8")
    return chip, warnings
