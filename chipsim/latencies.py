"""Latencies of many operators at once, for tables of thousands of steps.

operators -> rows of shapes by kernel -> `chipsim.kernels.many` -> seconds

What `PerformanceModel.estimate` also says (bound, traffic, mapping) is left out, and with it
most of the time. Kinds that come once or twice in a step are estimated one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from chipsim.conversion import Conversion, exposed_seconds
from chipsim.kernels.many import attention_seconds, gemm_seconds, vector_seconds
from chipsim.ops.operators import (
    Activation,
    Attention,
    Elementwise,
    Gemm,
    Indexer,
    LatentAttention,
    Norm,
    Operator,
    Quantise,
    Softmax,
)
from chipsim.shapes import attention_shapes, gemm_shape

if TYPE_CHECKING:
    from chipsim.performance import PerformanceModel

Floats = npt.NDArray[np.float64]
Kernel = Callable[[Any, Floats, Floats, Floats], None]

VECTOR = frozenset({Activation, Elementwise, Norm, Quantise, Softmax})
ATTENTION = frozenset({Attention, LatentAttention, Indexer})


def latencies(model: PerformanceModel, operators: Sequence[Operator]) -> Floats:
    """Seconds of operators on a chip, each as `PerformanceModel.estimate` has it.

    Raises
    ------
    ConfigError, InfeasibleError
        As `PerformanceModel.estimate`.
    """
    out = np.empty(len(operators))
    products, vectors = _Products(model), _Rows()
    for place, op in enumerate(operators):
        kind = type(op)
        if kind is Gemm or kind in ATTENTION:
            products.add(place, op)
        elif kind in VECTOR:
            vectors.add(place, model.vector_work(op)[1], model.launch_s(op))
        else:
            out[place] = model.estimate(op).latency_s
    vectors.fill(vector_seconds, model.record, out)
    products.fill(out)
    if not np.isfinite(out).all():
        # Refused in the same words.
        model.estimate(operators[int(np.argmin(np.isfinite(out)))])
    return out


class _Rows:
    """Rows of shapes for one kernel, and the places that their seconds go to."""

    def __init__(self) -> None:
        self.places: list[int] = []
        self.rows: list[tuple[float, ...]] = []
        self.launches: list[float] = []

    def add(self, place: int, row: tuple[float, ...], launch: float) -> None:
        """One more."""
        self.places.append(place)
        self.rows.append(row)
        self.launches.append(launch)

    def fill(self, kernel: Kernel, machine: Any, out: Floats) -> None:
        """Write the seconds of all; of rows with one place the least."""
        if not self.rows:
            return
        found = np.empty(len(self.rows))
        kernel(machine, np.array(self.rows, np.float64), np.array(self.launches), found)
        out[self.places] = np.inf
        np.minimum.at(out, self.places, found)


class _Products:
    """Products and attention, by kernel and by the units that compute them."""

    def __init__(self, model: PerformanceModel) -> None:
        self.model = model
        self.rows: dict[tuple[Kernel, bool], tuple[_Rows, Any]] = {}
        self.converted: list[tuple[int, float, Conversion, Operator]] = []

    def add(self, place: int, op: Any) -> None:
        """One more."""
        model = self.model
        how, launch = model.how(op), model.launch_s(op)
        if type(op) is Gemm:
            kernel: Kernel = gemm_seconds
            shapes: tuple[tuple[float, ...], ...] = (
                gemm_shape(op, how, model.narrow(op.a_format, op.b_format)),
            )
        else:
            kernel, shapes = attention_seconds, attention_shapes(op, how)
        key = kernel, how.arrays
        if key not in self.rows:
            self.rows[key] = _Rows(), model.units(how)
        for shape in shapes:
            self.rows[key][0].add(place, shape, launch)
        if how.flops:
            self.converted.append((place, launch, how, op))

    def fill(self, out: Floats) -> None:
        """Write the seconds of all, conversions included."""
        for (kernel, _), (rows, machine) in self.rows.items():
            rows.fill(kernel, machine, out)
        for place, launch, how, op in self.converted:
            product = float(out[place]) - launch
            out[place] += exposed_seconds(self.model.record, how, product, op.flops)
