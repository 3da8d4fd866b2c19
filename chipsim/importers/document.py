"""A foreign JSON file whose fields are read one by one, each checked by its path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipsim.errors import ChipsimError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LARGEST = 1e30
"""No field of a chip is larger; products of a few fields stay finite below it."""
LARGEST_COUNT = 10**9
"""No count of anything on a chip is larger."""


class Document:
    """The content of a JSON file, read by dotted paths.

    Parameters
    ----------
    path : str or Path
        The file; its name stands at the front of every error.

    Raises
    ------
    ChipsimError
        There is no such file.
    ConfigError
        The file is not JSON, not an object, or says two things of one key.
    """

    def __init__(self, path: str | Path) -> None:
        file = Path(path)
        if not is_file(file):
            raise ChipsimError(f"{path}: no such file")
        self.name, self.stem = file.name, file.stem
        self.content: dict[str, Any] = self._parsed(file)

    def _parsed(self, file: Path) -> dict[str, Any]:
        try:
            text = file.read_text(encoding="utf-8-sig")
            data = json.loads(text, object_pairs_hook=self._once)
        except ConfigError:
            raise
        except (ValueError, RecursionError, OSError) as error:
            raise ConfigError(self.name, "", str(error), "a JSON object") from None
        if not isinstance(data, dict):
            raise ConfigError(self.name, "", data, "a JSON object")
        return data

    def _once(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """An object whose keys each have one value, however often they are written."""
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found and found[key] != value:
                raise ConfigError(
                    self.name, key, value, "one value, and an earlier one differs"
                )
            found[key] = value
        return found

    def has(self, path: str) -> bool:
        """Whether a value stands at a path."""
        return self._find(path)[1]

    def _find(self, path: str) -> tuple[Any, bool]:
        value: Any = self.content
        for key in path.split("."):
            if not isinstance(value, dict) or key not in value:
                return None, False
            value = value[key]
        return value, True

    def get(self, path: str) -> Any:
        """The value at a path; its absence is an error that names the missing key."""
        value: Any = self.content
        keys = path.split(".")
        for depth, key in enumerate(keys):
            if not isinstance(value, dict):
                raise ConfigError(self.name, ".".join(keys[:depth]), value, "a JSON object")
            if key not in value:
                raise ConfigError(
                    self.name, ".".join(keys[: depth + 1]), None, "the key is required"
                )
            value = value[key]
        return value

    def number(self, path: str, least: float | None = None) -> float:
        """A finite number above 0, or at least ``least`` where that is given."""
        value = self.get(path)
        allowed = "a number above 0" if least is None else f"a number, {least:g} or more"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(self.name, path, value, allowed)
        small = value <= 0 if least is None else value < least
        if value != value or small or value > LARGEST:  # noqa: PLR0124 - also of huge ints
            raise ConfigError(self.name, path, value, f"{allowed}, at most {LARGEST:g}")
        return float(value)

    def whole(self, path: str) -> int:
        """A whole number from 1."""
        value = self.number(path)
        if value != int(value) or value > LARGEST_COUNT:
            allowed = f"a whole number from 1 to {LARGEST_COUNT}"
            raise ConfigError(self.name, path, value, allowed)
        return int(value)

    def text(self, path: str, default: str) -> str:
        """A text, or ``default`` where the key is absent."""
        value, present = self._find(path)
        if not present:
            return default
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(self.name, path, value, "a text")
        return value

    def choice(self, path: str, options: Iterable[str]) -> str:
        """One of a few texts."""
        value = self.get(path)
        if not isinstance(value, str) or value not in options:
            raise ConfigError(self.name, path, value, ", ".join(options))
        return value

    def leaves(self) -> list[str]:
        """Paths of all values that are not objects, in the file's order."""
        return list(_leaves(self.content, ""))


def is_file(path: Path) -> bool:
    """Whether a file can be there; False too for a name that no file system takes."""
    try:
        return path.is_file()
    except OSError:
        return False


def _leaves(value: dict[str, Any], prefix: str) -> Iterator[str]:
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield from _leaves(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
