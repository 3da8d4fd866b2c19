"""Keys of a Hugging Face configuration under all the names that they go by.

A configuration names one thing in several ways (`num_experts`, `n_routed_experts`); a
nested one keeps the language model under `text_config`. `Fields` hides both, and falls
back on what the architecture's own configuration class holds where a key is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipsim.errors import ConfigError
from chipsim.importers.hf_names import ALIASES, OUTER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chipsim.importers.document import Document

MOST_LAYERS = 10_000
"""No transformer is deeper."""
LARGEST_COUNT = 10**9
"""No width or count of a model is larger."""


class Fields:
    """Values of one language model's configuration, checked as they are read.

    Parameters
    ----------
    document : Document
        The file.
    prefix : str
        Path of the language model inside it (``text_config``, or empty).
    defaults : mapping
        Values of the keys that published files of the architecture leave out.
    names : mapping
        What the architecture itself calls a thing, beside its other names.
    """

    def __init__(
        self,
        document: Document,
        prefix: str = "",
        defaults: Mapping[str, Any] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.file = document.name
        self._document = document
        self._prefix = prefix
        self._defaults = defaults or {}
        self._names = names or {}

    def path(self, key: str) -> str:
        """Where a key stands in the file."""
        return f"{self._prefix}.{key}" if self._prefix else key

    def find(self, name: str) -> tuple[str, Any]:
        """The key under which a thing is written, and its value (None: nowhere, or null).

        A key that is left out has its default; a null that is written is meant.

        Raises
        ------
        ConfigError
            Two of its names are there and contradict each other.
        """
        aliases = self._aliases(name)
        written = [(key, value) for key in aliases for value in self._values(key)]
        found = [(key, value) for key, value in written if value is not None]
        for key, value in found[1:]:
            if value != found[0][1] and key != found[0][0]:
                raise self.wrong(key, value, f"as {found[0][0]}: {found[0][1]!r}")
        if found or written:
            return (found or written)[0]
        return self._names.get(name, aliases[0]), self._default(name)

    def written(self, name: str) -> bool:
        """Whether one of a thing's keys is in the file, be it null."""
        return any(self._values(key) for key in self._aliases(name))

    def meaning(self, key: str) -> str:
        """The thing that a key names; the key itself where it has no other names."""
        return next((name for name, keys in ALIASES.items() if key in keys), key)

    def keys(self) -> list[str]:
        """Every key of the language model's configuration."""
        values = self._document.get(self._prefix) if self._prefix else self._document.content
        return list(values)

    def _aliases(self, name: str) -> tuple[str, ...]:
        known = ALIASES.get(name, (name,))
        own = self._names.get(name)
        return known if own is None or own in known else (*known, own)

    def _values(self, key: str) -> list[Any]:
        outer = [key] if key in OUTER else []
        return [
            self._document.get(path)
            for path in (self.path(key), *outer)
            if self._document.has(path)
        ]

    def _default(self, name: str) -> Any:
        for key in (name, *ALIASES.get(name, ())):
            if key in self._defaults:
                return self._defaults[key]
        return None

    def has(self, name: str) -> bool:
        """Whether a thing is written (or has a default) and is not null."""
        return self.find(name)[1] is not None

    def raw(self, name: str) -> Any:
        """A value as it stands, or None."""
        return self.find(name)[1]

    def whole(self, name: str, most: int = LARGEST_COUNT, least: int = 1) -> int:
        """A whole number that must be there.

        Raises
        ------
        ConfigError
            It is missing (the error names its commonest key), or no whole number in range.
        """
        key, value = self.find(name)
        if value is None:
            raise self.wrong(key, None, "the key is required")
        return self.checked(key, value, most, least)

    def maybe(self, name: str, most: int = LARGEST_COUNT, least: int = 1) -> int | None:
        """A whole number, or None where it is left out or null."""
        return self.whole(name, most, least) if self.has(name) else None

    def checked(self, key: str, value: Any, most: int = LARGEST_COUNT, least: int = 1) -> int:
        """A value as a whole number in range, or a `ConfigError` that names its key."""
        allowed = f"a whole number from {least} to {most}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, value, allowed)
        if not least <= value <= most or value != int(value):
            raise self.wrong(key, value, allowed)
        return int(value)

    def uniform(self, name: str, least: int = 1) -> int | None:
        """A whole number, or a list that says the same of every layer; None: left out."""
        key, value = self.find(name)
        if isinstance(value, list) and value:
            if any(item != value[0] for item in value):
                raise self.wrong(key, value, "the same number for every layer")
            value = value[0]
        return None if value is None else self.checked(key, value, LARGEST_COUNT, least)

    def flag(self, name: str) -> bool:
        """A true or false; false where it is left out or null."""
        key, value = self.find(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.wrong(key, value, "true or false")
        return value

    def text(self, name: str) -> str | None:
        """A text, or None where it is left out or null."""
        key, value = self.find(name)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise self.wrong(key, value, "a text")
        return value

    def items(self, name: str) -> list[Any] | None:
        """A list, or None where it is left out or null."""
        key, value = self.find(name)
        if value is not None and not isinstance(value, list):
            raise self.wrong(key, value, "a list")
        return value

    def numbers(self, name: str, most: int = MOST_LAYERS) -> list[int] | None:
        """A list of whole numbers from 0, or None where it is left out or null."""
        values = self.items(name)
        key = self.find(name)[0]
        return None if values is None else [self.checked(key, v, most, 0) for v in values]

    def mapping(self, name: str) -> dict[str, Any] | None:
        """An object, or None where it is left out or null."""
        key, value = self.find(name)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(key, value, "a JSON object")
        return value

    def wrong(self, key: str, value: Any, allowed: str) -> ConfigError:
        """The error of a value that is not allowed."""
        return ConfigError(self.file, self.path(key), value, allowed)

    def one_of(self, name: str, values: Sequence[Any], allowed: Sequence[Any]) -> None:
        """Refuse entries of a list that are none of a few words or numbers."""
        for value in values:
            if value not in allowed or isinstance(value, bool):
                key = self.find(name)[0]
                raise self.wrong(key, value, ", ".join(map(str, allowed)))
