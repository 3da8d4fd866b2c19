"""Many GEMMs on many chips at once, on all cores of the machine.

chips x shapes -> slices -> threads (the kernel releases the interpreter lock) -> seconds
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from chipsim.conversion import Operand, conversion
from chipsim.errors import ConfigError, InfeasibleError
from chipsim.kernels.gemm_batch import Floats, gemm_product
from chipsim.kernels.machine import MACHINE
from chipsim.machine import machine_record
from chipsim.ops.checks import LARGEST, whole
from chipsim.ops.formats import get_format
from chipsim.ops.operators import Gemm
from chipsim.performance import PerformanceModel

if TYPE_CHECKING:
    import pandas as pd

    from chipsim.chip import Chip
    from chipsim.execution import Execution

Formats = str | tuple[str, str, str]
SIZES = ("m", "n", "k", "batch")

_SLICES_PER_THREAD = 8
"""Slices are taken as threads get free: searches differ in length."""


def gemm_latencies(
    chips: Sequence[Chip | str | PerformanceModel],
    shapes: npt.ArrayLike,
    *,
    execution: Execution | str | None = None,
    formats: Formats = "fp16",
    b_is_weight: bool = True,
    threads: int | None = None,
) -> Floats:
    """Latency of every shape on every chip.

    Each is what `PerformanceModel.estimate` gives for the same `Gemm`, bit for bit, for
    any number of threads.

    Parameters
    ----------
    chips : sequence of Chip, str or PerformanceModel
        Chips, or their library names or paths.
    shapes : array (shapes, 3 or 4) of int
        Rows of m, n, k and, if there are four, batch.
    execution : Execution or str, optional
        Block of all chips; each one's own unless given.
    formats : str or tuple of three str
        Formats of A, B and C, or one for all.
    b_is_weight : bool
        B is known before the step and can be fetched ahead.
    threads : int, optional
        All cores unless given.

    Returns
    -------
    array (chips, shapes) of float64
        Seconds, launch included.

    Raises
    ------
    ConfigError, UnknownNameError
        Shapes of another form, or no such chip.
    InfeasibleError
        Not even the smallest tile fits a chip's SRAM.

    Examples
    --------
    >>> seconds = gemm_latencies(["a100-sxm", "h100-sxm"], [[2048, 12288, 12288]],
    ...                          execution="ideal")
    >>> (seconds * 1e3).round(2).tolist()
    [[2.02], [0.66]]
    """
    models = _models(chips, execution)
    a, b, c = _three(formats)
    runs = [conversion(m.chip, Operand("A", a, 1.0), Operand("B", b, 1.0)) for m in models]
    kind = "gemm" if b_is_weight else "batched_gemm"
    found = machine_latencies(
        np.concatenate(
            [
                machine_record(model.chip, model.execution, arrays=run.arrays)
                for model, run in zip(models, runs, strict=True)
            ]
        ),
        shapes,
        macs_per_cycle=[run.macs for run in runs],
        launch_s=[getattr(model.execution.launch, kind) for model in models],
        element_bytes=(get_format(a).bytes, get_format(b).bytes, get_format(c).bytes),
        b_is_weight=b_is_weight,
        threads=threads,
        names=[model.chip.where for model in models],
    )
    for row, run in enumerate(runs):
        # Conversions go with the size of a product, and narrow kernels have tiles of their own.
        if run.flops or b in models[row].execution.kernels.narrow:
            found[row] = [
                models[row].estimate(Gemm("", m, n, k, batch, a, b, c, b_is_weight)).latency_s
                for m, n, k, batch in _sizes(shapes).tolist()
            ]
    return found


def machine_latencies(
    machines: npt.NDArray[np.void],
    shapes: npt.ArrayLike,
    *,
    macs_per_cycle: npt.ArrayLike = 1.0,
    launch_s: npt.ArrayLike = 0.0,
    element_bytes: tuple[float, float, float] = (2.0, 2.0, 2.0),
    b_is_weight: bool = True,
    threads: int | None = None,
    names: Sequence[str] = (),
) -> Floats:
    """As `gemm_latencies`, for chips given as records of numbers.

    Parameters
    ----------
    machines : array (chips) of `chipsim.kernels.machine.MACHINE`
        Chips under their execution blocks; see `chipsim.machine.machine_record`.
    macs_per_cycle, launch_s : float or array (chips)
        Multiply-accumulates of an array cell per cycle, and launch seconds.
    element_bytes : tuple of three float
        Bytes per element of A, B and C.
    names : sequence of str, optional
        Names of the chips, for messages.
    """
    if machines.ndim != 1 or machines.dtype != MACHINE or not len(machines):
        raise ConfigError("machines", "", machines.dtype.kind, "records of MACHINE, one row")
    sizes = _sizes(shapes)
    out = np.empty((len(machines), len(sizes)))
    fill = partial(
        gemm_product,
        machines,
        _per_chip("launch_s", launch_s, len(machines)),
        _per_chip("macs_per_cycle", macs_per_cycle, len(machines)),
        sizes,
        element_bytes,
        b_is_weight,
    )
    _run(fill, out, _cores() if threads is None else whole("batch", "threads", threads))
    if not np.isfinite(out).all():
        row = int(np.argmin(np.isfinite(out).all(axis=1)))
        name = names[row] if names else f"machines[{row}]"
        raise InfeasibleError(f"{name}: the SRAM of a core holds not even the smallest tile")
    return out


def gemm_frame(
    chips: Sequence[Chip | str | PerformanceModel],
    shapes: npt.ArrayLike,
    *,
    execution: Execution | str | None = None,
    formats: Formats = "fp16",
    b_is_weight: bool = True,
    threads: int | None = None,
) -> pd.DataFrame:
    """`gemm_latencies` as a table.

    Returns
    -------
    pandas.DataFrame
        One row per chip and shape: ``chip, execution, m, n, k, batch, latency_s``.
    """
    import pandas as pd

    models = _models(chips, execution)
    seconds = gemm_latencies(
        models, shapes, formats=formats, b_is_weight=b_is_weight, threads=threads
    )
    sizes = np.tile(_sizes(shapes), (len(models), 1))
    each = seconds.shape[1]
    return pd.DataFrame(
        {
            "chip": np.repeat([model.chip.name for model in models], each),
            "execution": np.repeat([model.execution.name for model in models], each),
            **{name: sizes[:, column] for column, name in enumerate(SIZES)},
            "latency_s": seconds.ravel(),
        }
    )


def _run(fill: Callable[[int, int, Floats], None], out: Floats, threads: int) -> None:
    """Fill ``out``; every pair is written once, by whichever thread."""
    if threads == 1:
        fill(0, out.size, out)
        return
    step = math.ceil(out.size / (threads * _SLICES_PER_THREAD))
    starts = range(0, out.size, step)
    with ThreadPoolExecutor(threads) as pool:
        slices = [
            pool.submit(fill, start, min(start + step, out.size), out) for start in starts
        ]
        for done in slices:
            done.result()


def _models(
    chips: Sequence[Chip | str | PerformanceModel], execution: Execution | str | None
) -> list[PerformanceModel]:
    if isinstance(chips, str) or not chips:
        raise ConfigError("batch", "chips", chips, "a list of at least one chip")
    return [
        chip if isinstance(chip, PerformanceModel) else PerformanceModel(chip, execution)
        for chip in chips
    ]


def _three(formats: Formats) -> tuple[str, str, str]:
    return (formats, formats, formats) if isinstance(formats, str) else formats


def _sizes(shapes: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Shapes as (shapes, 4) of int64 from 1."""
    try:
        array = np.asarray(shapes)
    except ValueError:  # rows of different length
        array = np.empty(0)
    if array.ndim != 2 or array.shape[1] not in (3, 4) or not len(array):
        raise ConfigError("shapes", "", f"shape {array.shape}", "rows of m, n, k[, batch]")
    bad = array if array.dtype.kind not in "iu" else array[(array < 1) | (array > LARGEST)]
    if bad.size:
        allowed = f"whole numbers from 1 to {LARGEST:.0e}"
        raise ConfigError("shapes", "", bad.flat[0].item(), allowed)
    sizes = np.ones((len(array), 4), np.int64)
    sizes[:, : array.shape[1]] = array
    return sizes


def _per_chip(name: str, values: npt.ArrayLike, chips: int) -> Floats:
    try:
        return np.ascontiguousarray(np.broadcast_to(np.asarray(values, float), chips))
    except ValueError:
        raise ConfigError("batch", name, str(values), f"a number, or {chips} of them") from None


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
