"""``doctor``: what this installation consists of, and what it lacks."""

from __future__ import annotations

from chipsim.cli.options import AsJson
from chipsim.cli.output import emit, show


def doctor(as_json: AsJson = False) -> None:
    """Versions, compiled kernels, threads, pictures."""
    from chipsim.present.installation import installation

    found = installation()
    if as_json:
        emit(found)
        return
    from chipsim.present.tables import table

    flat = [(key, _text(value)) for key, value in found.items()]
    show(table(("", ""), flat, text_columns=2))


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {version}" for name, version in value.items())
    return str(value)
