"""Where a model's configuration is: file, folder, nested language model, architecture."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from chipsim.errors import ChipsimError, ConfigError
from chipsim.importers.document import Document, is_file
from chipsim.importers.hf_architectures import FALLBACK, Architecture, architecture, known
from chipsim.importers.hf_fields import Fields

if TYPE_CHECKING:
    from pathlib import Path

NESTED = (
    "text_config",
    "llm_config",
    "language_config",
    "thinker_config.text_config",
    "text_model_config",
    "language_model_config.text_config",
    "language_model_config",
    "thinker_config",
)
"""Where a configuration of several towers keeps its language model."""


def located(path: Path) -> Path:
    """The configuration itself, where a path is the folder that holds it."""
    try:
        if not path.is_dir():
            return path
    except OSError:  # a name that no file system takes; `Document` says so
        return path
    file = path / "config.json"
    if not is_file(file):
        raise ChipsimError(f"{path}: no config.json in this folder")
    return file


def model_name(file: Path) -> str:
    """A name in our style: of the repository where the path tells it, else of the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> model_name(Path("Qwen--Qwen3-8B.json")), model_name(Path("Mixtral_8x7B/config.json"))
    ('qwen3-8b', 'mixtral-8x7b')
    """
    stem = file.stem
    if stem == "config":
        folders = [folder.name for folder in file.resolve().parents]
        cached = [name for name in folders if name.startswith("models--")]
        stem = cached[0] if cached else folders[0]
    name = re.sub(r"[^a-z0-9.]+", "-", stem.split("--")[-1].lower().removesuffix("_config"))
    return name.strip("-.") or "model"


def language_model(document: Document) -> str:
    """Path of the language model inside a file (empty: the file itself)."""
    for path in NESTED:
        if document.has(path) and document.get(path) is not None:
            if not isinstance(document.get(path), dict):
                raise ConfigError(document.name, path, document.get(path), "a JSON object")
            return path
    return ""


def find_architecture(document: Document, prefix: str) -> tuple[str, Architecture, bool]:
    """The architecture's name, its traits, and whether it is unknown."""
    inside = Fields(document, prefix)
    outside = Fields(document)
    classes = [*_classes(outside), *_classes(inside)]
    types = [kind for kind in (inside.text("model_type"), outside.text("model_type")) if kind]
    if not classes and not types:
        raise inside.wrong("model_type", None, "the key is required (or architectures)")
    name = classes[0] if classes else types[0]
    for candidate in [*types, *(_type_of_class(known_class) for known_class in classes)]:
        traits = architecture(candidate)
        if traits is not None:
            return name, traits, False
    return name, architecture(FALLBACK) or Architecture(), True


def _classes(fields: Fields) -> list[str]:
    classes = fields.items("architectures") or []
    for value in classes:
        if not isinstance(value, str):
            raise fields.wrong("architectures", value, "a list of texts")
    return classes


def _type_of_class(name: str) -> str:
    """The ``model_type`` whose letters a class's name has."""
    short = re.sub(r"(ForCausalLM|ForConditionalGeneration|LMHeadModel|Model)$", "", name)
    letters = {re.sub(r"[_-]", "", kind.lower()): kind for kind in known()}
    return letters.get(short.lower(), short)


def quantization_beside(file: Path) -> dict[str, Any] | None:
    """The quantization of ``hf_quant_config.json`` beside the file."""
    if not file.name.endswith("config.json"):
        return None
    beside = file.with_name(file.name.removesuffix("config.json") + "hf_quant_config.json")
    if not is_file(beside):
        return None
    return Fields(Document(beside)).mapping("quantization")
