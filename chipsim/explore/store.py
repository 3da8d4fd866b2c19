"""The store of results: a table, and beside it all that is needed to run a row again.

``curve.parquet`` holds the rows, ``curve.parquet.config.json`` the resolved specs, the
package's version, the seed and a checksum of the rows.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from chipsim.errors import ChipsimError, ConfigError
from chipsim.explore.cuts import CutPoint, cut_point
from chipsim.explore.setup import Setup

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
"""Version of the sidecar."""


class Result(Protocol):
    """What can be saved."""

    def frame(self) -> pd.DataFrame:
        """The rows."""

    def configuration(self) -> dict[str, Any]:
        """Everything that the rows follow from, as plain JSON values."""


@dataclass(frozen=True)
class Stored:
    """A result that was read back.

    Attributes
    ----------
    path : Path
        Where it was.
    table : pandas.DataFrame
        The rows as they were saved.
    configuration : dict
        What they follow from.
    version : str
        Version of chipsim that computed them.
    seed : int or None
        Seed of what was drawn; None where nothing was.
    """

    path: Path
    table: pd.DataFrame
    configuration: dict[str, Any]
    version: str
    seed: int | None

    def rerun(self, row: int) -> CutPoint:
        """Compute a row of stored cuts again.

        Raises
        ------
        ConfigError
            No such row, not cuts, or a configuration that is not valid.
        """
        where, points = sidecar(self.path).name, self.configuration.get("points")
        if not isinstance(points, list):
            raise ConfigError(where, "kind", self.configuration.get("kind"), "cuts")
        if not 0 <= row < len(points):
            raise ConfigError(where, "row", row, f"0 to {len(points) - 1}")
        setup = Setup.from_configuration(where, self.configuration)
        return cut_point(setup, points[row])


def sidecar(path: Path) -> Path:
    """Where the configuration of a saved table is."""
    return path.with_name(path.name + ".config.json")


def save(result: Result, path: str | Path, *, seed: int | None = None) -> Path:
    """Write the rows (``.parquet``, ``.csv`` or ``.json``) and their configuration.

    Each file is replaced at once or not at all; `load` refuses rows that the
    configuration does not belong to.

    Raises
    ------
    ConfigError, ChipsimError
        Unknown ending, a folder, or a place that cannot be written.
    """
    path = Path(path)
    if path.suffix not in _WRITERS:
        raise ConfigError("--out", "", path.name, f"a name ending in {', '.join(_WRITERS)}")
    table = result.frame()
    rows = _WRITERS[path.suffix](table)
    content = {
        "format": FORMAT,
        "chipsim": version("chipsim"),
        "seed": seed,
        "sha256": hashlib.sha256(rows).hexdigest(),
        "columns": {str(name): str(kind) for name, kind in table.dtypes.items()},
        "configuration": result.configuration(),
    }
    text = json.dumps(content, indent=1, allow_nan=False)
    write_whole(path, rows)
    write_whole(sidecar(path), text.encode())
    return path


def load(path: str | Path) -> Stored:
    """Read a saved result and check that rows and configuration belong together.

    Raises
    ------
    ConfigError, ChipsimError
        A file is missing, was changed, or is not what `save` writes.
    """
    path = Path(path)
    _known_ending(path)
    return read_back(path, _read(path), _read(sidecar(path)))


def read_back(path: Path, rows: bytes, side: bytes) -> Stored:
    """What `load` does, from the content of the two files.

    Parameters
    ----------
    path : Path
        Names the result in errors, and its ending says what the rows are.

    Raises
    ------
    ConfigError, ChipsimError
        As `load`.
    """
    _known_ending(path)
    content = _content(sidecar(path), side)
    if hashlib.sha256(rows).hexdigest() != content["sha256"]:
        beside = sidecar(path).name
        raise ChipsimError(f"{path}: not the rows that {beside} was saved with; save again")
    table = _READERS[path.suffix](rows, content["columns"]).astype(content["columns"])
    return Stored(path, table, content["configuration"], content["chipsim"], content["seed"])


def _known_ending(path: Path) -> None:
    if path.suffix not in _READERS:
        raise ConfigError("load", "", path.name, f"a name ending in {', '.join(_READERS)}")


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by new content, so that it is always the old or the new one.

    Raises
    ------
    ChipsimError
        The path is a folder, or cannot be written.
    """
    if path.is_dir():
        raise ChipsimError(f"{path}: is a folder; give the name of a file")
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=".chipsim-", delete=False
        ) as f:
            temporary = Path(f.name)
            f.write(content)
            f.flush()
            os.fsync(f.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise ChipsimError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _umask() -> int:
    # A temporary file is its owner's alone; the mask can only be read by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ChipsimError(f"{path}: cannot be read: {error.strerror}") from None


def _content(path: Path, text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError:
        raise ConfigError(path.name, "", "broken text", "JSON") from None
    keys = {"format", "chipsim", "seed", "sha256", "columns", "configuration"}
    if not isinstance(content, dict) or content.keys() != keys:
        raise ConfigError(path.name, "", "other keys", ", ".join(sorted(keys)))
    if content["format"] != FORMAT:
        raise ConfigError(path.name, "format", content["format"], str(FORMAT))
    return content


def _to_parquet(table: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.to_parquet(buffer, engine="pyarrow", index=False)
    return buffer.getvalue()


def _to_csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False).encode()


def _to_json(table: pd.DataFrame) -> bytes:
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return json.dumps({"rows": rows}, indent=1, allow_nan=False).encode()


def _from_parquet(rows: bytes, columns: dict[str, str]) -> pd.DataFrame:
    import pandas as pd

    return pd.read_parquet(io.BytesIO(rows), engine="pyarrow", columns=list(columns))


def _from_csv(rows: bytes, columns: dict[str, str]) -> pd.DataFrame:
    import pandas as pd

    # Read as text and converted by Python: exact in every release of pandas.
    table = pd.read_csv(io.BytesIO(rows), dtype=str, keep_default_na=False)
    return pd.DataFrame(
        {name: [_cell(text, kind) for text in table[name]] for name, kind in columns.items()}
    )


def _cell(text: str, kind: str) -> float | bool | str:
    """A cell of a CSV file; an empty number is NaN."""
    if kind.startswith("float"):
        return float(text or "nan")
    if kind.startswith("int"):
        return int(text)
    return text == "True" if kind == "bool" else text


def _from_json(rows: bytes, columns: dict[str, str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(json.loads(rows)["rows"], columns=list(columns))


_WRITERS: dict[str, Callable[[pd.DataFrame], bytes]] = {
    ".parquet": _to_parquet,
    ".csv": _to_csv,
    ".json": _to_json,
}
_READERS: dict[str, Callable[[bytes, dict[str, str]], pd.DataFrame]] = {
    ".parquet": _from_parquet,
    ".csv": _from_csv,
    ".json": _from_json,
}
