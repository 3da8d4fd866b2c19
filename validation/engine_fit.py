"""Fit a serving engine to measured steps of machines: few factors of the host.

measured steps -> phases of the chip's own block, once -> fit of the engine's factors -> YAML
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chipsim.errors import ChipsimError
from chipsim.serving import ServingEngine
from chipsim.validation.execution_yaml import to_yaml, written
from chipsim.validation.fitting import Factor, Fit, fit
from chipsim.validation.machines import PACKAGED, engine_errors, estimated, read_steps

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def machine_factors(chips: list[str]) -> tuple[Factor, ...]:
    """Two factors for each machine, four of the engine."""
    each = [
        factor
        for chip in chips
        for factor in (
            Factor((f"machines.{chip}.kernel",), 3e-5, 1e-6, 3e-4),
            Factor((f"machines.{chip}.libraries",), 0.9, 0.3, 1.0),
        )
    ]
    return (
        *each,
        Factor(("prompts",), 2e-2, 1e-4, 2e-1),
        Factor(("sequence",), 3e-4, 1e-6, 1e-2),
        Factor(("exchange",), 1.5, 1.0, 10.0),
        Factor(("long_exchange",), 2.0, 1.0, 20.0),
    )


@dataclass(frozen=True, slots=True)
class EngineCalibration:
    """An engine fitted again."""

    fit: Fit[ServingEngine]
    block: ServingEngine
    rows: int

    @property
    def yaml(self) -> str:
        """The engine as a file."""
        return to_yaml(self.block, "Serving engine")

    @property
    def text(self) -> str:
        """Factors, how well each is known, and the cost before and after."""
        head = f"{self.block.name}: {self.rows} prompts and steps"
        cost = f"cost {self.fit.start_cost:.4g} -> {self.fit.cost:.4g}"
        return "\n".join([head, *self.fit.lines(), cost])


def calibrate_engine(
    engine: str, data: str | Path | None = None, out: str | Path | None = None
) -> EngineCalibration:
    """Fit an engine of the library again.

    Parameters
    ----------
    data : path, optional
        As `chipsim.validation.machines.machine_points`.
    out : path, optional
        File to write the engine to.

    Raises
    ------
    ChipsimError
        As `chipsim.validation.machines.read_steps`; nothing to fit to.
    """
    base = ServingEngine.load(engine)
    steps, _ = read_steps(Path(data or PACKAGED))
    steps, phases, _ = estimated([step for step in steps if step.chip in base.machines])
    if not steps:
        named = ", ".join(base.machines)
        raise ChipsimError(f"{data or PACKAGED.name}: no step of {named} to fit to")

    def errors(candidate: ServingEngine) -> npt.NDArray[np.float64]:
        return engine_errors(candidate, steps, phases)

    found = fit(base, machine_factors(list(base.machines)), errors, scale=0.1)
    result = EngineCalibration(found, written(found.block, found.paths), len(steps))
    if out is not None:
        Path(out).write_text(result.yaml, encoding="utf-8")
    return result
