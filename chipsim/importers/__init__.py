"""Readers of other tools' descriptions: file -> checked fields -> our own spec -> YAML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from chipsim.errors import ConfigError
from chipsim.importers.chip_yaml import to_yaml
from chipsim.importers.hf_model import Imported, import_huggingface
from chipsim.importers.llmcompass_config import import_llmcompass
from chipsim.importers.model_yaml import model_to_yaml

if TYPE_CHECKING:
    from chipsim.chip import Chip

__all__ = [
    "Imported",
    "import_chip",
    "import_huggingface",
    "import_llmcompass",
    "import_model",
    "model_to_yaml",
    "to_yaml",
]


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


def import_model(path: str | Path, out: str | Path | None = None) -> Imported:
    """Read a model from a Hugging Face ``config.json``, or from the folder that holds it.

    Parameters
    ----------
    path : str or Path
        The file or folder; nothing is fetched.
    out : str or Path, optional
        A YAML file to write, which `ModelSpec.load` reads back equal.

    Returns
    -------
    Imported
        The model, its architecture, the formats of the checkpoint, and warnings.

    Raises
    ------
    ConfigError
        Names the file, the key, its value and what is allowed.
    ChipsimError
        No such file, a folder without a configuration, or an architecture that is not
        modelled.
    """
    if out is not None and Path(out).suffix not in {".yaml", ".yml"}:
        raise ConfigError("--out", "", str(out), "a file that ends in .yaml or .yml")
    imported = import_huggingface(path)
    if out is not None:
        Path(out).write_text(model_to_yaml(imported.model), encoding="utf-8")
    return imported
