"""``validate silicon``: measured operators of chips beside our estimates and plain models.

measurements -> those judged -> estimates under a block -> points -> table of errors
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from chipsim.arch_configs import names
from chipsim.chip import Chip
from chipsim.errors import ChipsimError
from chipsim.execution import Execution
from chipsim.validation.llmcompass import Skipped
from chipsim.validation.silicon.calibration import held_out, start_of
from chipsim.validation.silicon.chosen import chosen
from chipsim.validation.silicon.judged import Workload, check_units
from chipsim.validation.silicon.machines import (
    DONORS,
    chip_name,
    donor_block,
    own_block,
    transferred,
)
from chipsim.validation.silicon.measured import Measurement, read_measurements
from chipsim.validation.silicon.points import BESIDE, SUITE, judged_points

if TYPE_CHECKING:
    import pandas as pd

PACKAGED = Path(__file__).parent.parent / "data" / "silicon"
"""A small sample of the public measurements."""
HELD, DONOR = "held_out", "donor"
"""Columns beside those of `BESIDE`: estimates of each fold by a fit to the others, and those
under the block of the chip before as it is, its kernels too."""


def beside(*, transfer: bool, folds: int) -> tuple[str, ...]:
    """Columns of other models in the points that were asked for."""
    return (*((HELD,) * (folds > 1)), *((DONOR,) * transfer), *BESIDE)


def silicon_points(
    data: str | Path | None = None,
    chip: str | None = None,
    execution: str | None = None,
    *,
    transfer: bool = False,
    folds: int = 0,
    progress: Callable[[str], None] = lambda _: None,
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
        Take each chip's factors from the chip that came before it, without a refit; which
        kernels run (switches, no measured numbers) stays its own. Chips with no predecessor
        are left out.
    folds : int
        Fit each chip again without each of so many parts of the shapes, and judge that fit
        on that part (column `HELD`); 0 for none.

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
        As `read_measurements`; no such chip; nothing left to judge; latencies that are no
        seconds; too few rows for so many folds.
    """
    import pandas as pd

    rows, why = chosen(read_measurements(Path(data or PACKAGED)))
    skipped = [Skipped(what, f"{count} rows") for what, count in why.items()]
    frames = []
    for workload in workloads(rows, chip, skipped):
        subject = workload.chip
        if transfer and subject.name not in DONORS:
            skipped.append(Skipped(subject.name, "nothing came before it to take over"))
            continue
        block = Execution.load(execution or own_block(subject))
        frame = judged_points(workload, transferred(subject) if transfer else block)
        measured, estimate = (frame[name].to_numpy() for name in ("reference", "estimate"))
        check_units(block, measured, estimate, f"{data or SUITE}: {subject.name}")
        if transfer:
            donor = Execution.load(donor_block(subject.name))
            frame = frame.assign(**{DONOR: workload.estimates(donor)})
        if folds > 1:
            progress(f"{subject.name}: {folds} folds")
            held = held_out(start_of(subject), workload, folds, progress=progress)
            frame = frame.assign(**{HELD: held})
        frames.append(frame)
    if not frames:
        reasons = "; ".join(f"{each.name}: {each.why}" for each in skipped)
        raise ChipsimError(f"{data or SUITE}: nothing to judge ({reasons})")
    return pd.concat(frames, ignore_index=True), skipped


def workloads(
    rows: list[Measurement], chip: str | None, skipped: list[Skipped]
) -> Iterator[Workload]:
    """Measurements chip by chip, in the order of the files; all, or those of one chip."""
    groups: dict[str, list[Measurement]] = {}
    for row in rows:
        groups.setdefault(chip_name(row.system), []).append(row)
    wanted = None if chip is None else Chip.load(chip)
    if wanted is not None:
        groups = {wanted.name: groups[wanted.name]} if wanted.name in groups else {}
        skipped += [Skipped(wanted.name, "no judged row")] if not groups else []
    for name, members in groups.items():
        if wanted is not None:
            yield Workload.of(wanted, members)
        elif name in names("chips"):
            yield Workload.of(Chip.load(name), members)
        else:
            skipped.append(Skipped(name, f"{len(members)} rows: no such chip in the library"))
