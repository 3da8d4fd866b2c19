"""How far off a chip's steps may be, as its execution block was validated.

chip + block -> operators measured on it, or transfers between chips that were measured -> error
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import pandas as pd

from chipsim.chip import Chip
from chipsim.cluster.draws import WHOLE, BlockError, chip_key
from chipsim.validation.silicon.machines import DONORS, block_name
from chipsim.validation.suites import validate

if TYPE_CHECKING:
    from chipsim.cluster.scenario import ReplicaSpec

MEASURED = {*DONORS, *DONORS.values()}
"""Chips with measured operators and blocks of their own."""


FORMATS = {"fp16": "bf16", "bf16": "bf16", "fp8": "fp8", "fp8-block": "fp8_block",
           "nvfp4": "nvfp4"}  # fmt: skip
"""Format of weights -> format of measured products that stand for it."""


def block_error(spec: ReplicaSpec, weights: str, default: float) -> BlockError:
    """The error of the steps of one kind of instance.

    - A chip that was measured: mean absolute error of each class of operators under the block,
      on the packaged measurements.
    - Another chip under the block of a measured one: that of a transfer, each measured chip
      under the block of the one before; the median of the chips.
    - Every other block states no error against silicon: ``default`` for all.

    Parameters
    ----------
    weights : str
        Format of the weights: products are judged in it where it was measured.
    default : float
        Mean absolute error of the steps of a block that states none.

    Raises
    ------
    ConfigError, UnknownNameError
        No such chip.
    """
    if spec.steps is not None or spec.chip is None:
        said = "measured steps state no error: the default"
        return BlockError(chip_key(spec), "steps", {WHOLE: default}, said)
    chip = Chip.load(spec.chip)
    block = spec.execution or chip.execution
    if chip.name in MEASURED:
        frame = validate("silicon", chip=chip.name, execution=block).frame()
        said = f"measured operators of {chip.name} under {block}, the packaged sample"
        return BlockError(chip_key(spec), block, _classes(frame, chip.name, weights), said)
    if block in {block_name(name) for name in MEASURED}:
        frame = validate("silicon", transfer=True).frame()
        each = [_classes(frame, name, weights) for name in DONORS]
        classes = {
            name: statistics.median(of[name] for of in each if name in of)
            for name in sorted({name for of in each for name in of})
        }
        said = f"a transfer of {block} to a chip that was not measured: median of {len(each)}"
        return BlockError(chip_key(spec), block, classes, said)
    said = f"{block} states no error against silicon: the default"
    return BlockError(chip_key(spec), block, {WHOLE: default}, said)


def _classes(frame: pd.DataFrame, chip: str, weights: str) -> dict[str, float]:
    """Mean absolute error by class, and of all together; fallback kernels left out."""
    rows = frame[(frame.chip == chip) & (frame.regime == "all")]
    whole = rows[(rows.dtype == "all") & ~rows.operator.str.contains("/")]
    own = rows[(rows.operator == "gemm") & (rows.dtype == FORMATS.get(weights))]
    found = pd.concat([whole, own])
    return {str(name): float(e) for name, e in zip(found.operator, found.mape, strict=True)}
