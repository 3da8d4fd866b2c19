"""Traces as JSON: Mooncake's lines, results of serving benchmarks, lists of lengths."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from chipsim.cluster import workload_checks as checks
from chipsim.cluster.read_csv import OUTPUT, PROMPT
from chipsim.cluster.rows import Rows
from chipsim.errors import ChipsimError, ConfigError

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

MOONCAKE_BLOCK = 512
"""Tokens of a block that one of ``hash_ids`` stands for (Mooncake, FAST'25, traces)."""
STARTS = ("start_times", "request_timestamps", "arrival_times")
"""Keys of a benchmark's result that hold when each request was sent, seconds."""


def detect(data: bytes) -> str | None:
    """Format of a JSON file; None: not one of ours."""
    start = data.lstrip()
    if start.startswith(b"["):
        return "lengths"
    first = start[: 1 << 20].split(b"\n", 1)[0]
    if b'"input_length"' in first and b'"timestamp"' in first:
        return "mooncake"
    return "vllm" if b'"input_lens"' in data else None


def mooncake(data: bytes, file: str) -> Rows:
    """Mooncake's JSON lines; blocks of 512 tokens where ``hash_ids`` are given."""
    table = _lines(data, file)
    at = checks.seconds(file, "timestamp", _plain(table, file, "timestamp") / 1e3)
    prompt, output = (
        checks.whole(file, name, _plain(table, file, name), 0)
        for name in ("input_length", "output_length")
    )
    return Rows(file, "mooncake", at, prompt, output, {}, *_hashes(table, file, prompt))


def _lines(data: bytes, file: str) -> pa.Table:
    import pyarrow as pa
    from pyarrow import json as lines

    options = lines.ReadOptions(block_size=max(1 << 24, min(len(data), 1 << 28)))
    try:
        return lines.read_json(io.BytesIO(data), read_options=options)
    except (pa.ArrowException, ValueError) as error:
        told = " ".join(str(error).split())[:120]
        raise ConfigError(file, "", told, "JSON objects, one per line") from None


def _plain(table: pa.Table, file: str, name: str) -> NDArray[Any]:
    """A column of numbers (`ConfigError`: missing, or a row without)."""
    import pyarrow as pa

    if name not in table.column_names:
        raise ConfigError(file, name, None, "the key is required")
    column = table.column(name)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise ConfigError(file, name, str(column.type), "a number in every line")
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise ConfigError(file, f"{name}[{row}]", None, "a number in every line")
    return np.asarray(column.to_numpy())


def _hashes(
    table: pa.Table, file: str, prompt: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Offsets and ids; each prompt must have one id per (partly filled) block."""
    import pyarrow as pa

    none = np.empty(0, np.int64)
    if "hash_ids" not in table.column_names:
        return none, none, 0
    column = table.column("hash_ids").combine_chunks()
    if not (pa.types.is_list(column.type) and pa.types.is_integer(column.type.value_type)):
        raise ConfigError(file, "hash_ids", str(column.type), "a list of whole numbers")
    counts = np.asarray(column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False))
    ids = column.flatten()
    if ids.null_count:
        raise ConfigError(file, "hash_ids", None, "whole numbers")
    wanted = -(-prompt // MOONCAKE_BLOCK)
    if (counts != wanted).any():
        row = int(np.argmax(counts != wanted))
        allowed = f"{wanted[row]}, one per {MOONCAKE_BLOCK} of the {prompt[row]} tokens"
        raise ConfigError(file, f"hash_ids[{row}]", f"{counts[row]} ids", allowed)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return offsets, np.asarray(ids.to_numpy(zero_copy_only=False), np.int64), MOONCAKE_BLOCK


def vllm(data: bytes, file: str) -> Rows:
    """Result of vLLM's or SGLang's serving benchmark, saved with its details."""
    result = _json(data, file, first_line=True)
    if not isinstance(result, dict):
        raise ConfigError(file, "", result, "a JSON object with input_lens and output_lens")
    prompt, output = (_lens(result, file, key) for key in ("input_lens", "output_lens"))
    if len(prompt) != len(output):
        allowed = f"{len(prompt)}, as input_lens"
        raise ConfigError(file, "output_lens", f"{len(output)} entries", allowed)
    key = next((key for key in STARTS if result.get(key)), None)
    if key is None:
        return Rows(file, "vllm", None, prompt, output)
    at = checks.seconds(file, key, _array(result[key], file, key))
    if len(at) != len(prompt):
        raise ConfigError(file, key, f"{len(at)} entries", f"{len(prompt)}, as input_lens")
    return Rows(file, "vllm", at, prompt, output)


def _lens(result: dict[str, Any], file: str, key: str) -> NDArray[np.int64]:
    if key not in result:
        allowed = "the key is required: run the benchmark with its detailed results saved"
        raise ConfigError(file, key, None, allowed)
    return checks.whole(file, key, _array(result[key], file, key), 0)


def _array(values: Any, file: str, key: str) -> NDArray[Any]:
    good = isinstance(values, list) and values
    kinds = set(map(type, values)) if good else set()
    if not good or not kinds <= {int, float}:
        raise ConfigError(file, key, values, "a list of numbers, at least one")
    try:
        return np.array(values, dtype=np.int64 if kinds == {int} else np.float64)
    except OverflowError:
        raise ConfigError(file, key, max(values, key=abs), "a number below 2**63") from None


def lengths(data: bytes, file: str) -> Rows:
    """A list of pairs ``[prompt, output]``, or of objects with both under a known name."""
    listed = _json(data, file)
    if not isinstance(listed, list) or not listed:
        raise ConfigError(file, "", listed, "a list of lengths, at least one")
    if isinstance(listed[0], dict):
        if "conversations" in listed[0]:
            raise ChipsimError(
                f"{file}: holds texts, not lengths: count their tokens with the model's "
                "tokenizer, and give a list of [prompt_tokens, output_tokens]"
            )
        pairs = [_key(listed[0], file, known) for known in (PROMPT, OUTPUT)]
        columns = [[_get(row, key, file, i) for i, row in enumerate(listed)] for key in pairs]
    else:
        bad = next((i for i, row in enumerate(listed) if not _is_pair(row)), None)
        if bad is not None:
            raise ConfigError(file, f"[{bad}]", listed[bad], "[prompt_tokens, output_tokens]")
        columns = [[row[0] for row in listed], [row[1] for row in listed]]
    prompt, output = (
        checks.whole(file, name, _array(column, file, name), 0)
        for name, column in zip(("prompt_tokens", "output_tokens"), columns, strict=True)
    )
    return Rows(file, "lengths", None, prompt, output)


def _is_pair(row: Any) -> bool:
    return isinstance(row, list) and len(row) == 2


def _key(row: dict[str, Any], file: str, known: tuple[str, ...]) -> str:
    for key in known:
        if key in row:
            return key
    raise ConfigError(file, "[0]", ", ".join(row), f"a key {' or '.join(known)}")


def _get(row: Any, key: str, file: str, index: int) -> Any:
    if not isinstance(row, dict) or key not in row:
        raise ConfigError(file, f"[{index}].{key}", None, "the key is required")
    return row[key]


def _json(data: bytes, file: str, *, first_line: bool = False) -> Any:
    """Content of a JSON file, or of the first line where each is one (SGLang)."""
    try:
        text = data.decode("utf-8")
        found, _ = (
            json.JSONDecoder().raw_decode(text.lstrip())
            if first_line
            else (json.loads(text), 0)
        )
    except (ValueError, RecursionError) as error:
        raise ConfigError(file, "", str(error)[:100], "JSON") from None
    return found
