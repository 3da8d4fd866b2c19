"""``validate machines``: steps of whole machines under a serving engine, beside ours.

    measured prompts and steps -> phase estimate -> engine -> points -> table of errors

The columns are those that Splitwise's authors published for DGX-A100 and DGX-H100 under vLLM.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chipsim.arch_configs import names
from chipsim.chip import Chip
from chipsim.errors import ChipsimError, ConfigError, InfeasibleError
from chipsim.execution import Execution
from chipsim.ops.graph import Phase
from chipsim.phases import PhaseModel
from chipsim.serving import ServingEngine, engine_step
from chipsim.validation.cases import point
from chipsim.validation.llmcompass import Skipped
from chipsim.validation.silicon.machines import own_block
from chipsim.validation.table import Row, read_table

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from chipsim.estimates import PhaseEstimate

SUITE = "machines"
ENGINE = "vllm-2023"
PACKAGED = Path(__file__).parent / "data" / "machine_steps.csv"
CHIPS = {"a100-80gb": "a100-sxm", "h100-80gb": "h100-sxm"}
MODELS = {"llama2-70b": "llama-2-70b"}
"""Names of the published file; others are the library's."""
DERIVED = ("h100-80gb-pcap",)
"""Rows that are multiples of others, not measurements."""
SHORT = 1e-3
"""Seconds in a millisecond: the files' unit."""
COLUMNS = ("model", "hardware", "tensor_parallel", "prompt_size", "batch_size", "token_size",
           "prompt_ms", "token_ms")  # fmt: skip


@dataclass(frozen=True, slots=True)
class MachineStep:
    """One measured step of a machine.

    Attributes
    ----------
    chip, model : str
        Library names.
    seconds : float
        Of the prompts of all sequences together, or of a step of decode.
    where : str
        File and line.
    """

    chip: str
    model: str
    tp: int
    phase: Phase
    seconds: float
    where: str

    @property
    def shape(self) -> str:
        """Model, plan and phase in words."""
        return (
            f"{self.model} tp={self.tp} batch={self.phase.batch} context={self.phase.context}"
        )


def read_steps(path: Path) -> tuple[list[MachineStep], Counter[str]]:
    """Steps of a file (or of the ``.csv`` files of a folder), and what was left out.

    Raises
    ------
    ChipsimError, ConfigError
        No such file or folder, a column that lacks, a cell that is not what its column holds.
    """
    if not path.exists():
        raise ChipsimError(f"{path}: no such file or folder")
    steps, why = dict[str, MachineStep](), Counter[str]()
    for file in sorted(path.glob("*.csv")) if path.is_dir() else [path]:
        table = read_table(file)
        lacks = table.lacks(COLUMNS)
        if lacks and path.is_dir():
            why[f"{file.name}: {lacks}"] += len(table.rows)
            continue
        if lacks:
            header = ",".join(table.columns)
            raise ConfigError(table.name, "header", header, f"a table; {lacks}")
        for row in table.rows:
            reason = _left_out(row)
            why[reason] += bool(reason)
            steps |= {} if reason else {f"{s.where} {s.phase.kind}": s for s in _steps(row)}
    return list(steps.values()), +why


def _left_out(row: Row) -> str:
    name = row.text("hardware")
    if name in DERIVED:
        return f"{name}: multiples of other rows, not measured"
    chip = CHIPS.get(name, name)
    return "" if chip in names("chips") else f"{name}: no such chip in the library"


def _steps(row: Row) -> Iterator[MachineStep]:
    batch, prompt = row.whole("batch_size"), row.whole("prompt_size")
    middle = prompt + max(1, row.whole("token_size") // 2)
    for phase, column in (
        (Phase.prefill(batch, prompt), "prompt_ms"),
        (Phase.decode(batch, middle), "token_ms"),
    ):
        yield MachineStep(
            CHIPS.get(row.text("hardware"), row.text("hardware")),
            MODELS.get(row.text("model"), row.text("model")),
            row.whole("tensor_parallel"),
            phase,
            SHORT * row.positive(column),
            row.where,
        )


@functools.cache
def phase_model(chip: str, model: str, tp: int, execution: str) -> PhaseModel:
    """Phases of a model on a machine; remembered, since a fit asks for them often."""
    return PhaseModel(chip, model, f"tp={tp}", execution=execution, precision="fp16")


def step_phase(step: MachineStep, execution: str | None = None) -> PhaseEstimate:
    """Our estimate of a step, without an engine."""
    block = execution or own_block(Chip.load(step.chip))
    return phase_model(step.chip, step.model, step.tp, block).estimate(step.phase)


def estimated(
    steps: Sequence[MachineStep], execution: str | None = None
) -> tuple[list[MachineStep], list[PhaseEstimate], Counter[str]]:
    """Steps that the machine can have run, with our estimates; the others counted.

    A machine whose memory does not hold the batch, or a time that no such chip can reach,
    tells that the engine ran something else.
    """
    kept, phases, why = [], [], Counter[str]()
    for step in steps:
        try:
            phase = step_phase(step, execution)
        except InfeasibleError:
            why[f"{step.chip}: the memory does not hold the batch"] += 1
            continue
        if sum(row.count * row.estimate.lower_bound_s for row in phase.rows) > step.seconds:
            why[f"{step.chip}: faster than the chips' peaks allow"] += 1
            continue
        kept.append(step)
        phases.append(phase)
    return kept, phases, why


def machine_points(
    data: str | Path | None = None,
    chip: str | None = None,
    execution: str | None = None,
    engine: str = ENGINE,
) -> tuple[pd.DataFrame, list[Skipped]]:
    """Every measured step beside our estimate.

    Parameters
    ----------
    data : path, optional
        File or folder of files with `COLUMNS`; a packaged part of the published rows unless
        given.
    chip, execution : str, optional
        One chip; the block (each chip's ``-graph`` block, or its own, unless given).
    engine : str
        Library name or path.

    Returns
    -------
    points : pandas.DataFrame
        Columns of `chipsim.validation.cases.Point`, and ``chip_alone``: the estimate without
        the engine, seconds. ``regime`` says which of ``device`` and ``host`` holds the step.
    skipped : list of Skipped

    Raises
    ------
    ChipsimError, ConfigError, UnknownNameError
        As `read_steps`; no such chip, block or engine; nothing left to judge.
    """
    import pandas as pd

    serving = ServingEngine.load(engine)
    if execution is not None:
        Execution.load(execution)
    steps, why = read_steps(Path(data or PACKAGED))
    wanted = None if chip is None else Chip.load(chip).name
    kept = [step for step in steps if wanted in (None, step.chip)]
    kept, phases, cannot = estimated(kept, execution)
    skipped = [Skipped(what, f"{count} rows") for what, count in (why + cannot).items()]
    if not kept:
        reasons = "; ".join(f"{each.name}: {each.why}" for each in skipped)
        raise ChipsimError(f"{data or SUITE}: nothing to judge ({reasons})")
    points = []
    for step, phase in zip(kept, phases, strict=True):
        found = engine_step(serving, phase)
        points.append(
            point(
                SUITE,
                step.chip,
                step.phase.kind,
                "fp16",
                "device" if found.device >= found.host else "host",
                step.shape,
                step.seconds,
                found.latency_s,
                bound=phase.bound,
                execution=f"{phase.execution}, {serving.name}",
                source=step.where,
            )
        )
    frame = pd.DataFrame(points)
    return frame.assign(chip_alone=[phase.latency_s for phase in phases]), skipped


def engine_errors(
    engine: ServingEngine, steps: Sequence[MachineStep], phases: Sequence[PhaseEstimate]
) -> npt.NDArray[np.float64]:
    """Log errors of an engine."""
    return np.array(
        [
            np.log(engine_step(engine, phase).latency_s / step.seconds)
            for step, phase in zip(steps, phases, strict=True)
        ]
    )
