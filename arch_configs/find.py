"""Find and read a YAML description by name (``a100-sxm``) or by path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from chipsim.errors import ChipsimError, ConfigError, UnknownNameError

LIBRARY = Path(__file__).parent

KINDS = {"prices": "price book", "energies": "energies", "memories": "memory"}
"""One of a folder, where that is not the folder's name without its last letter."""


def names(kind: str) -> list[str]:
    """Names in one folder of the library, sorted.

    Parameters
    ----------
    kind : str
        Folder: ``chips``, ``executions``, ``models``, …
    """
    return sorted(path.stem for path in (LIBRARY / kind).glob("*.yaml"))


def locate(kind: str, name: str) -> Path:
    """Path of a description given as a library name or as a path to a file.

    Raises
    ------
    UnknownNameError
        No such name in the library (near misses are suggested).
    ChipsimError
        It looks like a path, and no file is there.
    """
    if name.endswith((".yaml", ".yml")) or "/" in name:
        path = Path(name)
        if not path.is_file():
            raise ChipsimError(f"{name}: no such file")
        return path
    path = LIBRARY / kind / f"{name}.yaml"
    if name not in names(kind):
        raise UnknownNameError(KINDS.get(kind, kind.removesuffix("s")), name, names(kind))
    return path


def load(kind: str, name: str) -> tuple[dict[str, Any], Path]:
    """Read a description: its content and the file it came from.

    Raises
    ------
    UnknownNameError, ChipsimError
        As `locate`.
    ConfigError
        The file is not YAML, or not a mapping.
    """
    path = locate(kind, name)
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)  # noqa: S506 - safe
    except _RepeatedKeyError as error:
        again = f"again in line {error.line}"
        raise ConfigError(path.name, error.key, again, "a key that stands once") from None
    except (yaml.YAMLError, ValueError, OSError) as error:  # a date without such a day, too
        line = " ".join(str(error).split())[:120]
        raise ConfigError(path.name, "", line, "a YAML mapping") from None
    if not isinstance(data, dict):
        raise ConfigError(path.name, "", data, "a YAML mapping")
    return data, path


class _RepeatedKeyError(yaml.YAMLError):
    """A key stands twice in one mapping."""

    def __init__(self, key: str, line: int) -> None:
        super().__init__(key)
        self.key, self.line = key, line


_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _UniqueKeys(_SAFE):  # type: ignore[misc]  # the C loader where there is one
    """A safe loader for which a key that stands twice is an error, not the last one's."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping, its keys checked first."""
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(getattr(key, "value", ""))
            if name in seen and name != "<<":
                raise _RepeatedKeyError(name, key.start_mark.line + 1)
            seen.add(name)
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found
