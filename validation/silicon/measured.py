"""Measured operators: what each file of a folder holds, read strictly.

    folder -> files whose stem is known -> one `Measurement` per row

The columns are those of NVIDIA's aiconfigurator tables with latencies in seconds; a file of
one's own takes the same columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from chipsim.errors import ChipsimError, ConfigError, UnknownNameError
from chipsim.validation.table import Row, Table, read_table


class Columns(NamedTuple):
    """Columns of one file beside system, framework, version, dtype and latency.

    Attributes
    ----------
    sizes : tuple of str
        Whole numbers from 1.
    counts : tuple of str
        Whole numbers from 0.
    words : tuple of str
        Text; each value must be one of `WORDS`.
    source : str
        Column that names who measured.
    within : tuple of (str, str)
        Sizes of which the first is at most the second.
    least : tuple of (str, int)
        Sizes that begin at another number than 1.
    """

    sizes: tuple[str, ...]
    counts: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    source: str = "framework"
    within: tuple[tuple[str, str], ...] = ()
    least: tuple[tuple[str, int], ...] = ()


ATTENTION = ("batch", "q_heads", "kv_heads", "head_dim")
FILES = {
    "gemm": Columns(("m", "n", "k")),
    "attention_context": Columns(
        (*ATTENTION, "seq_len"), ("prefix", "window_size"), ("kv_dtype",)
    ),
    "attention_generation": Columns((*ATTENTION, "kv_len"), ("window_size",), ("kv_dtype",)),
    "mla_context": Columns(("batch", "seq_len", "heads"), ("prefix",), ("kv_dtype",)),
    "mla_generation": Columns(("batch", "kv_len", "heads"), (), ("kv_dtype",)),
    "moe": Columns(
        ("tokens", "hidden", "inter", "topk", "experts", "tp", "ep"),
        (),
        ("distribution",),
        within=(("topk", "experts"), ("tp", "inter"), ("ep", "experts")),
    ),
    "collectives": Columns(("gpus", "bytes"), (), ("op",), "library", least=(("gpus", 2),)),
}
"""Files by stem; the stem names the operator."""

DTYPES = {
    "bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "half": "fp16", "fp16": "fp16",
    "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4", "int8": "int8",
}  # fmt: skip
"""Formats as files name them, and as results do."""

WORDS = {
    "kv_dtype": tuple(DTYPES),
    "op": ("all_gather", "all_reduce", "alltoall", "reduce_scatter"),
    "distribution": (),  # any: other than balanced is left out, and said
}


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured latency.

    Attributes
    ----------
    operator : str
        Stem of the file, a key of `FILES`.
    system : str
        The chip as the file names it.
    source, kernel : str
        Framework or library, and the kernel that it ran (empty: not said).
    dtype : str
        A value of `DTYPES`.
    sizes : mapping of str to int
        By column of the file.
    words : mapping of str to str
        As ``sizes``.
    seconds : float
    where : str
        File and line.
    version : str
        Of the source; empty: not said.
    """

    operator: str
    system: str
    source: str
    kernel: str
    dtype: str
    sizes: Mapping[str, int]
    words: Mapping[str, str]
    seconds: float
    where: str
    version: str = ""

    @property
    def shape(self) -> str:
        """Sizes and words, for a reader and to tell shapes apart."""
        return " ".join(f"{name}={value}" for name, value in (self.sizes | self.words).items())  # type: ignore[operator]


def read_measurements(folder: Path) -> list[Measurement]:
    """Every row of the files of `FILES` in a folder (or of one file).

    Raises
    ------
    ChipsimError
        No such folder, or none of the files in it.
    ConfigError
        A file without a column that it needs or without rows, a cell that is not what its
        column holds.
    """
    if not folder.exists():
        raise ChipsimError(f"{folder}: no such folder")
    paths = [folder / f"{stem}.csv" for stem in FILES] if folder.is_dir() else [folder]
    found = [path for path in paths if path.is_file()]
    if folder.is_file() and folder.stem not in FILES:
        raise UnknownNameError("file of measured operators", folder.name, _names())
    if not found:
        raise ChipsimError(f"{folder}: none of {', '.join(_names())} in it")
    return [row for path in found for row in _rows(read_table(path))]


def _names() -> list[str]:
    return [f"{stem}.csv" for stem in FILES]


def _rows(table: Table) -> Iterator[Measurement]:
    columns = FILES[table.stem]
    needed = (*columns.sizes, *columns.counts, *columns.words, columns.source)
    why = table.lacks(("system", "dtype", "latency_s", *needed)) or (
        "" if table.rows else "no rows"
    )
    if why:
        raise ConfigError(table.name, "header", ",".join(table.columns), f"a table; {why}")
    for row in table.rows:
        yield _measurement(table.stem, columns, row)


def _measurement(operator: str, columns: Columns, row: Row) -> Measurement:
    least = dict(columns.least)
    sizes = {name: row.whole(name, least=least.get(name, 1)) for name in columns.sizes}
    sizes |= {name: row.whole(name, least=0) for name in columns.counts}
    for name, larger in columns.within:
        if sizes[name] > sizes[larger]:
            raise row.refuse(name, f"at most {larger}, {sizes[larger]}")
    words = {
        name: row.choice(name, WORDS[name]) if WORDS[name] else row.text(name)
        for name in columns.words
    }
    if "kv_dtype" in words:
        words["kv_dtype"] = DTYPES[words["kv_dtype"]]
    return Measurement(
        operator,
        row.text("system"),
        row.text(columns.source),
        row.cells.get("kernel_source", ""),
        DTYPES[row.choice("dtype", DTYPES)],
        sizes,
        words,
        row.seconds("latency_s"),
        row.where,
        row.cells.get("version", ""),
    )
