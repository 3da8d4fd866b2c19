"""Measured rows of one chip as points: our estimate, and plain models beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from chipsim.validation.cases import point
from chipsim.validation.silicon import baselines
from chipsim.validation.silicon.chosen import is_main, label
from chipsim.validation.silicon.judged import Workload, regime

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.execution import Execution
    from chipsim.validation.silicon.baselines import Floats, Ideal

SUITE = "silicon"
BESIDE = ("roofline", "scaled", "four_factor")
"""Plain models whose errors stand beside ours; see `chipsim.validation.silicon.baselines`."""
GROUP = ["suite", "chip", "operator", "dtype"]
"""What a plain model is fitted to."""


def judged_points(workload: Workload, block: Execution) -> pd.DataFrame:
    """Points of one chip under a block, as `silicon_points` has them."""
    import pandas as pd

    estimates, bounds = workload.bound(block)
    ideals = [baselines.ideal(workload.chip, work) for work in workload.works]
    points = []
    for row, exact, seconds, bound in zip(
        workload.rows, ideals, estimates, bounds, strict=True
    ):
        points.append(
            point(
                SUITE,
                workload.chip.name,
                label(row),
                row.dtype,
                regime(exact.roofline, exact.arithmetic, row.operator == "collectives"),
                row.shape,
                row.seconds,
                float(seconds),
                bound=bound,
                execution=block.name,
                source=row.where,
                whole=is_main(row),
            )
        )
    frame = pd.DataFrame(points)
    return frame.assign(**plain_models(frame, ideals))


def plain_models(frame: pd.DataFrame, ideals: Sequence[Ideal]) -> dict[str, Floats]:
    """Seconds of the plain models `BESIDE`, fitted by suite, chip, operator and format.

    Parameters
    ----------
    frame : pandas.DataFrame
        Points.
    ideals : sequence of Ideal
        Of every point.
    """
    columns = {name: np.full(len(frame), np.nan) for name in BESIDE}
    columns["roofline"][:] = [each.roofline for each in ideals]
    fold = baselines.folds(frame["shape"].tolist())
    measured = frame["reference"].to_numpy()
    for members in frame.groupby(GROUP, sort=False).indices.values():
        group = [ideals[i] for i in members]
        for name, model in (
            ("scaled", baselines.scaled),
            ("four_factor", baselines.four_factor),
        ):
            columns[name][members] = model(group, measured[members], fold[members])
    return columns
