"""A run over time: series of queue, batch, KV and utilisation, and a trace of instances.

steps of a run -> per bin of time and pool -> table
               -> events of the Chrome trace format, which Perfetto opens
"""

from __future__ import annotations

import json
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
        of the blocks), weighted by how long steps take; ``prompts``, tokens/s of prompts
        whose (last) prefill began, and ``found``, those of them that a prefix cache held or
        that were loaded.

    Raises
    ------
    ConfigError
        The run kept no log of steps.
    """
    import pandas as pd

    rows = run.outcome.requests
    log, edges = _log(run), np.linspace(0.0, max(run.outcome.end_s, 1e-9), bins + 1)
    width, middle = edges[1] - edges[0], (edges[1:] + edges[:-1]) / 2.0
    tables, first = [], 0
    for pool, count in run.instances.items():
        steps = log[(log["instance"] >= first) & (log["instance"] < first + count)]
        here = (rows["prefill_instance"] >= first) & (rows["prefill_instance"] < first + count)
        began = rows[here & ~np.isnan(rows["prefill_start_s"])]
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
        tokens = {"prompts": began["prompt"], "found": began["cached"] + began["loaded"]}
        for name, amount in tokens.items():
            at = began["prefill_start_s"]
            columns[name] = np.histogram(at, edges, weights=amount)[0] / width
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
    """Steps as slices of their instances, transfers as slices of the sender's rows below.

    The format is Chrome's "Trace Event Format", opened by https://ui.perfetto.dev: an
    instance is a process (``pid``), its steps a thread (``tid`` 0); transfers that overlap
    lie in threads of their own, since slices of one thread must not. An arrow (a flow) leads
    from a transfer to the first decode step of its request. Times are microseconds.

    Raises
    ------
    ConfigError
        The run kept no log of steps.
    """
    log = _log(run)
    lanes = _lanes(run)
    events = [
        event
        for number, name in enumerate(run.instance_names)
        for event in _names(number, name, 1 + max(lanes.get(number, {0: 0}).values()))
    ]
    events += [_step_slice(step) for step in log]
    for number, of in lanes.items():
        for request, lane in of.items():
            events += _transfer(run, request, number, 1 + lane)
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _lanes(run: Simulation) -> dict[int, dict[int, int]]:
    """Of each instance the requests that it sent, each in the first row that is free."""
    rows = run.outcome.requests
    sent = np.flatnonzero(rows["transfer_end_s"] > rows["transfer_start_s"])
    sent = sent[np.argsort(rows["transfer_start_s"][sent], kind="stable")]
    found: dict[int, dict[int, int]] = {}
    free: dict[int, list[float]] = {}
    for request in sent.tolist():
        row = rows[request]
        number, ends = int(row["prefill_instance"]), row["transfer_end_s"]
        until = free.setdefault(number, [])
        starts = row["transfer_start_s"]
        lane = next((i for i, end in enumerate(until) if end <= starts), len(until))
        until[lane : lane + 1] = [ends]
        found.setdefault(number, {})[request] = lane
    return found


def _names(number: int, name: str, transfers: int) -> list[dict[str, Any]]:
    """What an instance and its rows are called, and their order."""
    rows = ["steps", "transfers", *(f"transfers {i}" for i in range(2, transfers + 1))]
    told = [
        (0, "process_name", {"name": name}),
        (0, "process_sort_index", {"sort_index": number}),
    ]
    for row, what in enumerate(rows):
        told.append((row, "thread_name", {"name": what}))
        told.append((row, "thread_sort_index", {"sort_index": row}))
    return [
        {"ph": "M", "pid": number, "tid": tid, "name": kind, "args": args}
        for tid, kind, args in told
    ]


def _step_slice(step: npt.NDArray[np.void]) -> dict[str, Any]:
    told = ("prompt_tokens", "prompts", "decodes", "waiting", "kv_blocks")
    return {
        "name": KINDS.get(int(step["kind"]), "step"),
        "cat": "step",
        "ph": "X",
        "pid": int(step["instance"]),
        "tid": 0,
        **_when(float(step["start_s"]), float(step["end_s"])),
        "args": {key: int(step[key]) for key in told},
    }


def _transfer(run: Simulation, request: int, number: int, lane: int) -> list[dict[str, Any]]:
    """A transfer, and the arrow to where its request is decoded, once it is."""
    row = run.outcome.requests[request]
    when = _when(float(row["transfer_start_s"]), float(row["transfer_end_s"]))
    to = int(row["decode_instance"])
    args = {"to": run.instance_names[to]} if to >= 0 else {}
    place = {"pid": number, "tid": lane, **when}
    slices = [
        {"name": f"request {request}", "cat": "transfer", "ph": "X", **place, "args": args}
    ]
    if np.isnan(row["decode_start_s"]) or row["decode_start_s"] < row["transfer_end_s"]:
        return slices
    flow = {"name": "hand-off", "cat": "transfer", "id": request}
    ends = {"pid": to, "tid": 0, "ts": float(row["decode_start_s"]) * MICROSECONDS}
    begins = {"pid": number, "tid": lane, "ts": when["ts"]}
    return [*slices, {**flow, "ph": "s", **begins}, {**flow, "ph": "f", "bp": "e", **ends}]


def chrome_json(run: Simulation) -> bytes:
    """`chrome_trace` as a file."""
    return json.dumps(chrome_trace(run), separators=(",", ":"), allow_nan=False).encode()


def _when(start: float, end: float) -> dict[str, float]:
    return {"ts": float(start) * MICROSECONDS, "dur": float(end - start) * MICROSECONDS}


def _log(run: Simulation) -> npt.NDArray[np.void]:
    if not len(run.outcome.steps):
        raise ConfigError("simulation", "steps", 0, "a run with log_steps=True")
    return run.outcome.steps
