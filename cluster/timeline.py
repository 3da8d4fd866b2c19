"""A run over time: series of queue, batch, KV and utilisation, and a trace of instances.

steps of a run -> per bin of time and pool -> table
               -> events of the Chrome trace format, which Perfetto opens
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from chipsim.cluster.engine import codes
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.cluster.results import Simulation

Floats = npt.NDArray[np.float64]

KINDS = {
    codes.PREFILL_STEP: "prefill",
    codes.DECODE_STEP: "decode",
    codes.MIXED_STEP: "mixed",
}
MICROSECONDS = 1e6


def series(run: Simulation, bins: int = 200) -> pd.DataFrame:
    """Means over equal bins of time, for every pool.

    Returns
    -------
    pandas.DataFrame
        ``time_s`` (middle of the bin), ``pool``, ``busy`` (share of the instances' time),
        ``decodes`` (in a step, over all instances), ``waiting`` (in queues), ``kv`` (share
        of the blocks); the last three weighted by how long steps take.

    Raises
    ------
    ConfigError
        The run kept no log of steps.
    """
    import pandas as pd

    log, edges = _log(run), np.linspace(0.0, max(run.outcome.end_s, 1e-9), bins + 1)
    width, middle = edges[1] - edges[0], (edges[1:] + edges[:-1]) / 2.0
    tables, first = [], 0
    for pool, count in run.instances.items():
        steps = log[(log["instance"] >= first) & (log["instance"] < first + count)]
        first += count
        capacity = run.cluster.capacity(pool)
        blocks = max(1, count * capacity.kv_blocks * capacity.ranks)
        weights = {
            "busy": 1.0 / max(1, count),
            "decodes": 1.0,
            "waiting": 1.0,
            "kv": 1.0 / blocks,
        }
        values = {
            "busy": np.ones(len(steps)),
            "decodes": steps["decodes"],
            "waiting": steps["waiting"],
            "kv": steps["kv_blocks"],
        }
        columns = {
            name: weight
            * _spread(steps["start_s"], steps["end_s"], values[name], edges)
            / width
            for name, weight in weights.items()
        }
        tables.append(pd.DataFrame({"time_s": middle, "pool": pool, **columns}))
    return pd.concat(tables, ignore_index=True)


def _spread(start: Floats, end: Floats, value: npt.NDArray[Any], edges: Floats) -> Floats:
    """Integral over each bin of values that hold from a start to an end."""

    def until(times: Floats, amounts: Floats) -> Floats:
        """Integral up to every edge of steps that begin at times."""
        order = np.argsort(times)
        at, steps = times[order], np.cumsum(amounts[order])
        areas = np.cumsum(amounts[order] * at)
        place = np.searchsorted(at, edges, side="right")
        total, area = np.append(0.0, steps)[place], np.append(0.0, areas)[place]
        return np.asarray(total * edges - area)

    amounts = np.asarray(value, np.float64)
    return np.diff(until(start, amounts) - until(end, amounts))


def chrome_trace(run: Simulation) -> dict[str, Any]:
    """Steps as slices of their instances, transfers as slices of the sender's link.

    The format is Chrome's "Trace Event Format": opened by https://ui.perfetto.dev.

    Raises
    ------
    ConfigError
        The run kept no log of steps.
    """
    log = _log(run)
    events = [event for name in enumerate(run.instance_names) for event in _names(*name)]
    events += [_step_slice(step) for step in log]
    return {"traceEvents": events + list(_transfers(run)), "displayTimeUnit": "ms"}


def _names(number: int, name: str) -> list[dict[str, Any]]:
    """What an instance and its two rows are called."""
    about: dict[str, Any] = {"ph": "M", "pid": number}
    rows = [
        {**about, "tid": row, "name": "thread_name", "args": {"name": what}}
        for row, what in enumerate(("steps", "transfers"))
    ]
    return [*rows, {**about, "name": "process_name", "args": {"name": name}}]


def _step_slice(step: npt.NDArray[np.void]) -> dict[str, Any]:
    told = ("prompt_tokens", "prompts", "decodes", "waiting", "kv_blocks")
    return {
        "name": KINDS.get(int(step["kind"]), "step"),
        "ph": "X",
        "pid": int(step["instance"]),
        "tid": 0,
        **_when(float(step["start_s"]), float(step["end_s"])),
        "args": {key: int(step[key]) for key in told},
    }


def _transfers(run: Simulation) -> Iterator[dict[str, Any]]:
    rows, names = run.outcome.requests, run.instance_names
    for number in np.flatnonzero(rows["transfer_end_s"] > rows["transfer_start_s"]).tolist():
        row = rows[number]
        yield {
            "name": f"request {number}",
            "ph": "X",
            "pid": int(row["prefill_instance"]),
            "tid": 1,
            **_when(row["transfer_start_s"], row["transfer_end_s"]),
            "args": {"to": names[row["decode_instance"]]},
        }


def chrome_json(run: Simulation) -> bytes:
    """`chrome_trace` as a file."""
    return json.dumps(chrome_trace(run), separators=(",", ":"), allow_nan=False).encode()


def _when(start: float, end: float) -> dict[str, float]:
    return {"ts": float(start) * MICROSECONDS, "dur": float(end - start) * MICROSECONDS}


def _log(run: Simulation) -> npt.NDArray[np.void]:
    if not len(run.outcome.steps):
        raise ConfigError("simulation", "steps", 0, "a run with log_steps=True")
    return run.outcome.steps
