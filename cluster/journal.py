"""Verdicts kept on disk, so that a search goes on where it was stopped.

One line of JSON for each, written at once and to the end of the file: a search that is killed
loses at most the line it was writing. Keys are checksums of everything that a verdict follows
from; a file may serve many searches.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from chipsim.errors import ChipsimError

if TYPE_CHECKING:
    from chipsim.cluster.simulate import Cluster
    from chipsim.cluster.workload import Workload


HEAD = b'{"key": "'
"""How every record begins: a line that does and is no record was cut short by a kill."""


class Journal:
    """Records by key, in memory and in a file where one is given.

    Parameters
    ----------
    path : str or Path, optional
        A file of JSON lines, made where there is none.

    Raises
    ------
    ChipsimError
        A place that cannot be read or written, or a file of another kind.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, Any]] = {}
        self._torn = False
        if self.path is not None:
            self._read(self.path)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> dict[str, Any] | None:
        """What was recorded, or None."""
        return self._known.get(key)

    def put(self, key: str, record: dict[str, Any]) -> None:
        """Record, on disk before this returns (`ChipsimError`)."""
        with self._lock:
            self._known[key] = record
            if self.path is None:
                return
            line = json.dumps({"key": key, **record}, allow_nan=False) + "\n"
            try:
                with self.path.open("ab") as file:
                    file.write(b"\n" * self._torn + line.encode())
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise ChipsimError(
                    f"{self.path}: cannot be written: {error.strerror}"
                ) from None
            self._torn = False

    def _read(self, path: Path) -> None:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise ChipsimError(f"{path}: cannot be read: {error.strerror}") from None
        self._torn = bool(content) and not content.endswith(b"\n")
        for number, line in enumerate(content.split(b"\n"), 1):
            record = _record(line)
            if record is not None:
                self._known[record.pop("key")] = record
            elif not (line.startswith(HEAD) or HEAD.startswith(line)):
                raise ChipsimError(f"{path}: line {number} is not a record of a search")


def _record(line: bytes) -> dict[str, Any] | None:
    """What a line holds; None where it is no record."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    known = isinstance(found, dict) and isinstance(found.get("key"), str)
    return found if known else None


def fingerprint(cluster: Cluster, workload: Workload) -> str:
    """Checksum of all that a run follows from but the counts: rules, tables, requests."""
    digest = hashlib.sha256(version("chipsim").encode())
    scenario = cluster.scenario.model_dump(
        mode="json", exclude={"name", "description", "source"}
    )
    for pool in scenario["pools"].values():
        del pool["instances"]
    kinds = [*scenario["pools"].values(), (scenario["slo"]["slowdown"] or {}).get("reference")]
    for kind in kinds:
        if kind and kind["steps"]:
            kind["steps"] = "measured"  # wherever the file lies: its steps are in the tables
    del scenario["workload"]
    digest.update(json.dumps(scenario, sort_keys=True).encode())
    alone = cluster.alone(workload) or ()
    arrays = (
        *cluster.arrays,
        workload.arrival_s, workload.prompt_tokens, workload.output_tokens, workload.parent,
        workload.think_s, workload.priority, workload.block_offsets, workload.block_ids,
        *alone,
    )  # fmt: skip
    for array in arrays:
        digest.update(str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
