"""Traces of requests in the formats that others publish, detected from their content.

file -> text or table -> `Rows`, every value checked -> `Workload`.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from chipsim.cluster import read_csv, read_json
from chipsim.errors import ChipsimError, ConfigError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Callable

    from chipsim.cluster.rows import Rows, Spread
    from chipsim.cluster.workload import Workload

FORMATS: dict[str, str] = {
    "azure": "CSV TIMESTAMP,ContextTokens,GeneratedTokens (Azure LLM inference 2023, 2024)",
    "mooncake": "JSON lines timestamp (ms), input_length, output_length, hash_ids (of 512)",
    "burstgpt": "CSV with Timestamp, Request tokens, Response tokens",
    "csv": "CSV with arrival_s, prompt_tokens, output_tokens, perhaps session, priority",
    "lengths": "CSV or JSON list of prompt and output tokens, without arrivals",
    "vllm": "JSON of a serving benchmark with input_lens and output_lens",
}
"""Formats by name, and what tells each."""

_READERS: dict[str, Callable[[bytes, str], Rows]] = {
    "azure": read_csv.azure,
    "mooncake": read_json.mooncake,
    "burstgpt": read_csv.burstgpt,
    "csv": read_csv.generic,
    "lengths": lambda data, file: (
        read_json.lengths(data, file) if data.lstrip()[:1] in (b"[", b"{") else
        read_csv.lengths(data, file)
    ),
    "vllm": read_json.vllm,
}  # fmt: skip


def read_trace(
    path: str | Path, format: str | None = None, spread: Spread | None = None, seed: int = 0  # noqa: A002 - as numpy and pandas call it
) -> Workload:  # fmt: skip
    """Read a trace.

    Parameters
    ----------
    path : str or Path
        A file, perhaps packed by gzip.
    format : str, optional
        A key of `FORMATS`; detected from the content unless given.
    spread : {"even", "random"}, optional
        Requests of one time stamp are spread over the time until the next one: published
        Mooncake traces have stamps of about 3 s.
    seed : int
        Of ``"random"``.

    Returns
    -------
    Workload
        Arrivals count from the first request (``arrival_s`` of a generic CSV stays as it
        is). Rows with 0 tokens are dropped and counted, rows out of order sorted and
        counted, rows that stand twice kept and counted.

    Raises
    ------
    ChipsimError
        One line: the file, the row and column, the value, and what is allowed.
    """
    return read_rows(path, format).workload(spread=spread, seed=seed)


def read_rows(path: str | Path, format: str | None = None) -> Rows:  # noqa: A002 - as above
    """Rows of a trace or of a file of lengths (errors as `read_trace`)."""
    if format is not None and format not in FORMATS:
        raise UnknownNameError("trace format", format, FORMATS)
    path = Path(path)
    data = _content(path)
    return _READERS[format or detect(data, path.name)](data, path.name)


def _content(path: Path) -> bytes:
    if path.is_dir():
        raise ChipsimError(f"{path}: a folder; give one file")
    if not path.is_file():
        raise ChipsimError(f"{path}: no such file")
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ConfigError(path.name, "", str(error), "a whole gzip file") from None
    return data.removeprefix(b"\xef\xbb\xbf")


def detect(data: bytes, file: str) -> str:
    """Name of the format that some content has (`ConfigError` names those that exist)."""
    start = data.lstrip()[:1]
    found = read_json.detect(data) if start in (b"{", b"[") else read_csv.detect(data)
    if found is None:
        first = data.lstrip()[:60].split(b"\n")[0].decode("utf-8", "replace")
        kinds = "; ".join(f"{name}: {what}" for name, what in FORMATS.items())
        raise ConfigError(file, "format", first, kinds)
    return found
