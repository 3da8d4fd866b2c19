"""Names of number formats in Hugging Face configurations, and ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipsim.importers.hf_fields import Fields

DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "float32": "fp32",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "half": "fp16",
    "float": "fp32",
    "bf16": "bf16",
    "fp16": "fp16",
    "fp32": "fp32",
}
"""Names of a dtype in configurations, and ours."""


def format_of(fields: Fields, name: str) -> str | None:
    """A dtype as one of our formats; None where it is left out, null or ``auto``.

    Raises
    ------
    ConfigError
        A dtype that is not known.
    """
    text = fields.text(name)
    if text is None or text == "auto":
        return None
    short = text.removeprefix("torch.")
    if short not in DTYPES:
        raise fields.wrong(fields.find(name)[0], text, ", ".join(DTYPES))
    return DTYPES[short]
