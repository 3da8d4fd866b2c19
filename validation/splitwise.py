"""Splitwise's simulator, request by request: its runs replayed under its own rules.

a folder of runs -> machines and step times of each -> the event engine -> points

The rules are the policies `chipsim.cluster.engine.splitwise`; the step times are that
simulator's table, which it interpolates over tokens (and, for decodes, over their number:
wrong about hardware, and copied here only to agree with it).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from chipsim.cluster.engine import Options, Requests, codes, instances, links, pools, run
from chipsim.cluster.engine.inputs import flat_steps
from chipsim.cluster.engine.steps import Steps
from chipsim.errors import ChipsimError
from chipsim.validation.cases import Point, point
from chipsim.validation.llmcompass import Skipped
from chipsim.validation.references import DATA
from chipsim.validation.table import Table, read_header, read_table

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.cluster.engine import Outcome

Floats = npt.NDArray[np.float64]

SUITE = "splitwise"
_HARDWARE = r"(?:[ah]100(?:-?p?cap)?)?"
COUNT = re.compile(rf"(\d+)x{_HARDWARE}")
SPLIT = re.compile(rf"(\d+)x?{_HARDWARE}p[-_x+]?{_HARDWARE}[-_+]?(\d+)x?{_HARDWARE}t")
"""Machines in a file's name: ``40xH100``; ``25P15T``, ``25xH100P_26xA100T``."""
COLUMNS = ("arrival_s", "prompt_tokens", "output_tokens", "ttft_s", "e2e_s")
"""What a file of requests must have."""
TABLE, SUMMARY = "simulator_table.csv", "summary.csv"


class Served(NamedTuple):
    """A model as that simulator sees it: bytes of weights, of KV per token (no GQA)."""

    weights: float
    kv_per_token: int


MODELS = {
    "bloom-176b": Served(329e9, 2 * 14336 * 70 * 2),
    "llama2-70b": Served(135e9, 2 * 8192 * 80 * 2),
}
MEMORY_BYTES = 8 * 80 * 2**30
"""A machine: eight GPUs of 80 GiB."""
LINK_BYTES_PER_S = 200 * 2**30
MAX_BATCH, MAX_TOKENS, MAX_PREEMPTIONS, RETRY_S = 512, 2048, 4, 1.0
MIXED = 1.1
"""An iteration of prompts and decodes takes so much longer than of prompts alone."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Machines of a run; ``token`` is 0 where every machine does both.

    Attributes
    ----------
    prompt, token : int
        Machines.
    prompt_hardware, token_hardware : str
        Names in the table of step times.
    """

    model: str
    prompt: int
    token: int
    prompt_hardware: str
    token_hardware: str


@dataclass(frozen=True, slots=True)
class Replay:
    """A run of that simulator, and ours of the same requests.

    Attributes
    ----------
    ttft_s, e2e_s : array (requests)
        Ours.
    reference_ttft_s, reference_e2e_s : array (requests)
        Theirs.
    """

    name: str
    setup: Setup
    requests: Requests
    ttft_s: Floats
    e2e_s: Floats
    reference_ttft_s: Floats
    reference_e2e_s: Floats


def replay_splitwise(
    folder: str | Path | None = None, skipped: list[Skipped] | None = None
) -> list[Replay]:
    """Replay every run of a folder.

    Parameters
    ----------
    folder : path, optional
        Holds ``requests_….csv`` with the columns `COLUMNS` (and, if it likes,
        ``prompt_machine, token_machine``); ``simulator_table.csv`` (the package's unless
        there), and ``summary.csv``, from which what a file's name leaves open is taken: the
        name tells the scheduler (``baseline`` or ``splitwise``), the machines
        (``40xH100``, ``25P15T``), and the model. The package's two runs unless given.
    skipped : list, optional
        Takes the files that are passed over, with the reason.

    Raises
    ------
    ChipsimError
        No such folder, or no run in it.
    ConfigError
        A cell that is not what its column holds.

    Examples
    --------
    >>> runs = replay_splitwise()
    >>> [len(run.ttft_s) for run in runs]
    [238, 230]
    >>> max(float(abs(run.e2e_s - run.reference_e2e_s).max()) for run in runs) < 2e-9
    True
    """
    folder = DATA / "splitwise" if folder is None else Path(folder)
    skipped = [] if skipped is None else skipped
    if not folder.exists():
        raise ChipsimError(f"{folder}: no such folder")
    paths = sorted(folder.glob("*.csv")) if folder.is_dir() else [folder]
    beside = folder if folder.is_dir() else folder.parent
    times = step_times(beside)
    summary = _summary(beside)
    replays = []
    for path in paths:
        header = read_header(path)
        if path.name in (TABLE, SUMMARY) or header.lacks(COLUMNS):
            if path.name.startswith("requests"):
                skipped.append(Skipped(path.name, header.lacks(COLUMNS)))
            continue
        table = read_table(path)
        setup = _setup(table, summary)
        if isinstance(setup, str):
            skipped.append(Skipped(path.name, setup))
        else:
            replays.append(_replay(table, setup, times))
    if not replays:
        why = "; ".join(f"{name}: {reason}" for name, reason in skipped[:4])
        raise ChipsimError(
            f"{folder}: no run of Splitwise's simulator" + (f" ({why})" if why else "")
        )
    return replays


def splitwise_points(folder: str | Path | None, skipped: list[Skipped]) -> Iterator[Point]:
    """TTFT and E2E of every request, and a run's percentiles where ``summary.csv`` has it."""
    beside = DATA / "splitwise" if folder is None else Path(folder)
    summary = _summary(beside if beside.is_dir() else beside.parent)
    for replay in replay_splitwise(folder, skipped):
        for operator, ours, theirs in (
            ("ttft", replay.ttft_s, replay.reference_ttft_s),
            ("e2e", replay.e2e_s, replay.reference_e2e_s),
        ):
            for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
                yield _point(replay, operator, str(index), float(other), float(mine))
        row = _row_of(replay, summary)
        for column, value in statistics(replay).items():
            if row is not None and column in row and float(row[column]) > 0:
                yield _point(replay, "summary", column, float(row[column]), value)


def statistics(replay: Replay) -> dict[str, float]:
    """Percentiles of a replay under the names of ``summary.csv``; tbt divides by N."""
    tbt = (replay.e2e_s - replay.ttft_s) / replay.requests.output
    figures = {}
    for name, values in (("ttft", replay.ttft_s), ("tbt", tbt), ("e2e", replay.e2e_s)):
        for share in (50, 90, 99):
            figures[f"{name}_p{share}_s"] = float(np.percentile(values, share))
        figures[f"{name}_mean_s"] = float(values.mean())
    makespan = float((replay.requests.arrival_s + replay.e2e_s).max())
    return figures | {"makespan_s": makespan, "req_per_s": len(tbt) / makespan}


def differences(points: pd.DataFrame) -> pd.DataFrame:
    """The largest differences by run: ``run, operator, n, max_difference_s``.

    Parameters
    ----------
    points : pandas.DataFrame
        Points of this suite.
    """
    size = (points["estimate"] - points["reference"]).abs()
    grouped = size.groupby([points["regime"], points["operator"]], sort=False)
    frame = grouped.agg(["size", "max"]).reset_index()
    frame.columns = ["run", "operator", "n", "max_difference_s"]
    return frame


def _point(replay: Replay, operator: str, shape: str, theirs: float, ours: float) -> Point:
    return point(
        SUITE, replay.setup.prompt_hardware, operator, replay.setup.model, replay.name, shape,
        theirs, ours, source=f"{replay.name}: {shape}",
    )  # fmt: skip


# ------------------------------------------------------------------ a run


def _replay(table: Table, setup: Setup, times: dict[tuple[str, str], Floats]) -> Replay:
    column = {name: np.array([row.number(name) for row in table.rows]) for name in COLUMNS}
    requests = Requests.of(
        column["arrival_s"], column["prompt_tokens"], column["output_tokens"]
    )
    outcome = simulate(requests, setup, times)
    ttft = outcome.requests["first_token_s"] - requests.arrival_s
    e2e = outcome.requests["finish_s"] - requests.arrival_s
    name = table.stem.removeprefix("requests_")
    return Replay(name, setup, requests, ttft, e2e, column["ttft_s"], column["e2e_s"])


def simulate(requests: Requests, setup: Setup, times: dict[tuple[str, str], Floats]) -> Outcome:
    """Serve requests by that simulator's rules.

    Parameters
    ----------
    times : dict
        Step times by model and hardware: rows of batch tokens, prompt and token seconds.
    """
    hardware = [setup.prompt_hardware, setup.token_hardware]
    longest = int(requests.prompt.max()) + MAX_TOKENS + MAX_BATCH
    steps = [_steps(times[setup.model, name], longest) for name in hardware]
    served = MODELS[setup.model]
    both = setup.token == 0
    machines = instances(
        [0] * setup.prompt + [1] * setup.token,
        role=[codes.MIXED if both else codes.PREFILL] * setup.prompt
        + [codes.DECODE] * setup.token,
    )
    return run(
        requests,
        Steps(*(np.concatenate(pair) for pair in zip(*steps, strict=True))),
        pools(
            2, table=[0, 1], batching=codes.SPLITWISE, reserve=codes.RESERVE_PROMPT, block=1,
            kv_blocks=int((MEMORY_BYTES - served.weights) // served.kv_per_token),
            max_batch=MAX_BATCH, max_tokens=MAX_TOKENS, max_preemptions=MAX_PREEMPTIONS,
        ),
        machines,
        links=links(2, bytes_per_s=LINK_BYTES_PER_S, bytes_per_token=served.kv_per_token),
        options=Options(
            routing=codes.TOKEN_JSQ if both else codes.MIXED_POOL,
            decode_at=codes.AT_ARRIVAL,
            retry_s=RETRY_S,
            log_gaps=False,
        ),
    )  # fmt: skip


def _steps(rows: Floats, longest: int) -> Steps:
    prompt = _through(rows[0], rows[1], longest + 1)
    token = np.maximum(_through(rows[0], rows[2], MAX_BATCH + 1), 0.0)
    return flat_steps(prompt, token, longest, MAX_BATCH, mixed_s=MIXED * prompt)


def _through(x: Floats, y: Floats, count: int) -> Floats:
    """Straight lines through points, at 0 ... count - 1; the end pieces go on."""
    at = np.arange(count, dtype=np.float64)
    piece = np.clip(np.searchsorted(x, at) - 1, 0, len(x) - 2)
    slope = (y[piece + 1] - y[piece]) / (x[piece + 1] - x[piece])
    return y[piece] + slope * (at - x[piece])


# ------------------------------------------------------------------ what a folder tells


def alone_s(rows: Floats, prompts: npt.NDArray[np.int64]) -> tuple[Floats, float]:
    """Seconds of the prefill of prompts alone, and of a decode step alone."""
    prefill = _through(rows[0], rows[1], int(prompts.max()) + 1)[prompts]
    return prefill, float(_through(rows[0], rows[2], 2)[1])


def step_times(folder: Path) -> dict[tuple[str, str], Floats]:
    """Step times by model and hardware: rows of batch tokens, prompt and token seconds."""
    path = folder / TABLE
    table = read_table(path if path.exists() else DATA / "splitwise" / TABLE)
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for row in table.rows:
        key = row.text("model"), row.text("hardware")
        times = row.positive("prompt_ms") / 1e3, row.positive("token_ms") / 1e3
        found.setdefault(key, []).append((row.positive("batch_tokens"), *times))
    return {key: np.array(sorted(rows)).T for key, rows in found.items()}


def _summary(folder: Path) -> list[dict[str, str]]:
    path = folder / SUMMARY
    return [row.cells for row in read_table(path).rows] if path.exists() else []


def _setup(table: Table, summary: list[dict[str, str]]) -> Setup | str:
    """Machines of a run, or why they cannot be told."""
    name = table.stem
    model = next((known for known in MODELS if known.split("-")[0][:5] in name), None)
    if model is None:
        return f"no model in its name; known: {', '.join(MODELS)}"
    split, count = SPLIT.search(name), COUNT.search(name)
    if split is not None:
        machines = int(split[1]), int(split[2])
    elif count is not None:
        machines = int(count[1]), 0
    else:
        found = {_machines(row) for row in _rows_like(table, model, summary)}
        if len(found) != 1:
            return "its machines: no 40xH100 or 25P15T in its name, no one row of summary.csv"
        machines = found.pop()
    prompt, token = _hardware(table, "prompt_machine", 0), _hardware(table, "token_machine", 1)
    return Setup(model, *machines, prompt, token)


def _hardware(table: Table, column: str, place: int) -> str:
    """Name in the table of step times: from the machines' names, else from the file's."""
    names = Counter(
        _hardware_name(row.text(column).rsplit("_", 1)[0])
        for row in table.rows
        if row.has(column)
    )
    if names:
        return names.most_common(1)[0][0]
    words = re.findall(r"[ah]100(?:[a-z0-9-]*pcap)?", table.stem) or ["h100"]
    return _hardware_name(words[min(place, len(words) - 1)])


def _hardware_name(word: str) -> str:
    if "a100" in word:
        return "a100-80gb"
    return "h100-80gb-pcap" if "cap" in word else "h100-80gb"


def _rows_like(table: Table, model: str, summary: list[dict[str, str]]) -> list[dict[str, str]]:
    moved = any(row.has("kv_start_s") for row in table.rows)
    prompts = sum(row.whole("prompt_tokens") for row in table.rows)
    outputs = sum(row.whole("output_tokens") for row in table.rows)
    alike = {"prompt_tokens": prompts, "output_tokens": outputs, "requests": len(table.rows)}
    return [
        row
        for row in summary
        if row.get("model") == model
        and (not moved or row.get("scheduler") == "mixed_pool")
        and all(row.get(name) == str(value) for name, value in alike.items())
    ]


def _machines(row: dict[str, str]) -> tuple[int, int]:
    if row["scheduler"] == "mixed_pool":
        return int(row["prompt_machines"]), int(row["token_machines"])
    return int(row["prompt_machines"]), 0


def _row_of(replay: Replay, summary: list[dict[str, str]]) -> dict[str, str] | None:
    """The one row of ``summary.csv`` with the machines and requests of a replay."""
    setup, requests = replay.setup, replay.requests
    alike = [
        row
        for row in summary
        if row.get("model") == setup.model
        and _machines(row) == (setup.prompt, setup.token)
        and row.get("requests") == str(len(requests.prompt))
        and row.get("prompt_tokens") == str(requests.prompt.sum())
        and row.get("output_tokens") == str(requests.output.sum())
        and _used(row)
        == Counter({setup.prompt_hardware: setup.prompt})
        + Counter({setup.token_hardware: setup.token})
    ]
    return alike[0] if len(alike) == 1 else None


def _used(row: dict[str, str]) -> Counter[str]:
    """Machines of a row of ``summary.csv`` by hardware; none of a kind is not counted."""
    kinds = {"a100": "a100-80gb", "h100": "h100-80gb", "h100_pcap": "h100-80gb-pcap"}
    return +Counter({kinds[name]: int(row.get(name) or 0) for name in kinds})
