"""``validate silicon``: measured operators of chips beside our estimates and plain models.

measurements -> those judged -> estimates under a block -> points -> table of errors
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chipsim.arch_configs import names
from chipsim.chip import Chip
from chipsim.errors import ChipsimError
from chipsim.execution import Execution
from chipsim.validation.cases import point
from chipsim.validation.llmcompass import Skipped
from chipsim.validation.silicon import baselines
from chipsim.validation.silicon.chosen import chosen, is_main, label
from chipsim.validation.silicon.judged import Workload, regime
from chipsim.validation.silicon.machines import DONORS, chip_name, donor_block, own_block
from chipsim.validation.silicon.measured import Measurement, read_measurements

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.validation.silicon.baselines import Floats, Ideal

SUITE = "silicon"
PACKAGED = Path(__file__).parent.parent / "data" / "silicon"
"""A small sample of the public measurements."""
BESIDE = ("roofline", "scaled", "four_factor")
"""Plain models whose errors stand beside ours; see `chipsim.validation.silicon.baselines`."""


def silicon_points(
    data: str | Path | None = None,
    chip: str | None = None,
    execution: str | None = None,
    *,
    transfer: bool = False,
) -> tuple[pd.DataFrame, list[Skipped]]:
    """Every judged measurement beside our estimate.

    Parameters
    ----------
    data : path, optional
        Folder with files of `chipsim.validation.silicon.measured.FILES`, or one of them;
        the packaged sample unless given.
    chip : str, optional
        One chip, by library name or path; every chip of the library that was measured
        unless given.
    execution : str, optional
        Block for all; unless given each chip's ``-graph`` block, or its own.
    transfer : bool
        Take each chip's block from the chip that came before it, without a refit; chips
        with no predecessor are left out.

    Returns
    -------
    points : pandas.DataFrame
        Columns of `chipsim.validation.cases.Point`, and the seconds of `BESIDE` (NaN where
        too few rows were measured to fit anything).
    skipped : list of Skipped
        What was left out and why, counted.

    Raises
    ------
    ChipsimError, ConfigError, UnknownNameError
        As `read_measurements`; no such chip; nothing left to judge.
    """
    import pandas as pd

    rows, why = chosen(read_measurements(Path(data or PACKAGED)))
    skipped = [Skipped(what, f"{count} rows") for what, count in why.items()]
    frames = []
    for subject, members in _by_chip(rows, chip, skipped):
        if transfer and subject.name not in DONORS:
            skipped.append(Skipped(subject.name, "nothing came before it to take over"))
            continue
        block = donor_block(subject.name) if transfer else execution or own_block(subject)
        frames.append(judged_points(Workload.of(subject, members), Execution.load(block)))
    if not frames:
        reasons = "; ".join(f"{each.name}: {each.why}" for each in skipped)
        raise ChipsimError(f"{data or SUITE}: nothing to judge ({reasons})")
    return pd.concat(frames, ignore_index=True), skipped


def _by_chip(
    rows: list[Measurement], chip: str | None, skipped: list[Skipped]
) -> Iterator[tuple[Chip, list[Measurement]]]:
    """Chips with their measurements, in the order of the files."""
    groups: dict[str, list[Measurement]] = {}
    for row in rows:
        groups.setdefault(chip_name(row.system), []).append(row)
    wanted = None if chip is None else Chip.load(chip)
    if wanted is not None:
        groups = {wanted.name: groups[wanted.name]} if wanted.name in groups else {}
    for name, members in groups.items():
        if wanted is not None:
            yield wanted, members
        elif name in names("chips"):
            yield Chip.load(name), members
        else:
            skipped.append(Skipped(name, f"{len(members)} rows: no such chip in the library"))


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
    return frame.assign(**_beside(frame, ideals))


def _beside(frame: pd.DataFrame, ideals: Sequence[Ideal]) -> dict[str, Floats]:
    """Seconds of the plain models, fitted by operator and format."""
    columns = {name: np.full(len(frame), np.nan) for name in BESIDE}
    columns["roofline"][:] = [each.roofline for each in ideals]
    fold = baselines.folds(frame["shape"].tolist())
    measured = frame["reference"].to_numpy()
    for members in frame.groupby(["operator", "dtype"], sort=False).indices.values():
        group = [ideals[i] for i in members]
        for name, model in (
            ("scaled", baselines.scaled),
            ("four_factor", baselines.four_factor),
        ):
            columns[name][members] = model(group, measured[members], fold[members])
    return columns
