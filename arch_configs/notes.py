"""The comments of a description: where each of its numbers comes from."""

from __future__ import annotations

import re
from pathlib import Path

_LINE = re.compile(r"^(?P<indent> *)(?:(?P<key>[\w.-]+):(?=\s|$))?(?P<rest>.*)$")
_COMMENT = re.compile(r"(?:^|\s)#\s?(?P<text>.*)$")


def notes(path: str | Path) -> dict[str, str]:
    """Comments of a YAML file by the dotted path of the key that they stand at.

    A comment behind a value belongs to its key; one on a line of its own to the section
    that it stands in (``""``: the whole file).

    Parameters
    ----------
    path : str or Path
        A file as those of the library: nested mappings, one key a line.
    """
    found: dict[str, list[str]] = {}
    sections: list[tuple[int, str]] = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        match = _LINE.match(line)
        if match is None or not line.strip():
            continue
        indent = len(match["indent"])
        sections = [(depth, key) for depth, key in sections if depth < indent]
        if match["key"]:
            sections.append((indent, match["key"]))
        comment = _COMMENT.search(match["rest"])
        if comment:
            at = ".".join(key for _, key in sections)
            found.setdefault(at, []).append(comment["text"].strip())
    return {at: " ".join(texts) for at, texts in found.items()}
