"""The performance model: an operator on a chip -> its best mapping and latency.

operator -> shape of a kernel -> exhaustive search -> Estimate
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from chipsim.chip import Chip
from chipsim.conversion import (
    Conversion,
    Formats,
    Product,
    Units,
    exposed_seconds,
    product_conversion,
)
from chipsim.errors import InfeasibleError
from chipsim.estimates import Bound, Estimate, OperatorRow
from chipsim.execution import Execution, Narrow
from chipsim.kernels.attention import attention_search
from chipsim.kernels.gemm import RESIDENT, Cost, evaluate
from chipsim.kernels.gemm_search import search
from chipsim.kernels.grouped import GroupedShape, grouped_search
from chipsim.kernels.recurrence import RecurrenceShape, recurrence_search
from chipsim.kernels.vector import vector_cost
from chipsim.latencies import Floats, latencies
from chipsim.machine import machine_record
from chipsim.network import collective_estimate
from chipsim.ops.formats import get_format
from chipsim.ops.operators import (
    Attention,
    Collective,
    Gemm,
    GroupedGemm,
    Indexer,
    LatentAttention,
    Operator,
    Quantise,
    Recurrence,
)
from chipsim.ops.recurrence import STEP_FLOPS
from chipsim.shapes import Attentions, attention_shapes, gemm_shape

Parts = dict[str, float]

PASSES = {"softmax": 2, "norm": 3}
"""Reads of a row that does not stay on chip: online maximum and sum, then the quotient
(Milakov and Gimelshein 2018); mean, variance, then the scaling."""


ATTENTION_TILE = "a query of attention, its keys and the sums of values"
"""The least that a core holds of it."""

WIDE = Narrow()
"""Kernels that a block says nothing of: any tile, any split of k."""


class PerformanceModel:
    """Estimates operators on one chip under one execution block.

    Estimates are remembered: the same shape is searched once.

    Parameters
    ----------
    chip : Chip or str
        A chip, or its library name or path.
    execution : Execution or str, optional
        The block; the chip's own unless given.
    warm : bool
        Estimate an operator that is timed alone, over and over, as benchmarks do: what
        L2 keeps from the call before is not read again.

    Raises
    ------
    ConfigError, UnknownNameError
        No such chip or block, or not a valid one.
    """

    def __init__(
        self,
        chip: Chip | str,
        execution: Execution | str | None = None,
        *,
        warm: bool = False,
    ) -> None:
        self.chip = Chip.load(chip) if isinstance(chip, str) else chip
        block = self.chip.execution if execution is None else execution
        self.execution = Execution.load(block) if isinstance(block, str) else block
        self.record = machine_record(self.chip, self.execution, warm=warm)[0]
        self._plain = machine_record(self.chip, self.execution, arrays=False, warm=warm)[0]
        self._known: dict[Operator, Estimate] = {}
        self._conversions: dict[tuple[Formats, str], Units] = {}

    def estimate(self, operator: Operator) -> Estimate:
        """Latency, bound and mapping of one operator.

        Raises
        ------
        ConfigError
            The chip has no links, or a sequence more tokens than a kernel walks.
        InfeasibleError
            No tile fits a core's SRAM, or the machine has too few chips.
        """
        key = operator.unnamed()
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._estimate(key)
        return known.of(operator)

    def latencies(self, operators: Sequence[Operator]) -> Floats:
        """Seconds of operators, as `estimate` has them, in a fraction of its time.

        Returns
        -------
        array (operators) of float64
            To the last bit what `estimate` gives; nothing is remembered.

        Raises
        ------
        ConfigError, InfeasibleError
            As `estimate`.
        """
        return latencies(self, operators)

    def rows(self, nodes: Mapping[str, Mapping[str, Any]]) -> tuple[OperatorRow, ...]:
        """Estimates of the nodes of a phase graph, in its order."""
        return tuple(
            OperatorRow(name, node["group"], node["count"], self.estimate(node["operator"]))
            for name, node in nodes.items()
        )

    def _estimate(self, operator: Operator) -> Estimate:
        if isinstance(operator, Collective):
            return collective_estimate(operator, self.chip, self.execution, self.record)
        estimator = self._ESTIMATORS.get(type(operator), PerformanceModel._vector)
        return estimator(self, operator)

    def _gemm(self, op: Gemm) -> Estimate:
        how = self.how(op)
        shape = gemm_shape(op, how, self.narrow(op.a_format, op.b_format))
        mapping, latency, covered, _ = search(self.units(how), shape)
        if not math.isfinite(latency):
            raise self.no_tile()
        cost = evaluate(self.units(how), shape, mapping)
        parts = self._parts(op, cost.core, cost.memory, cost.hidden, cost.reduction)
        chosen = mapping._asdict() | {
            "resident": RESIDENT[mapping.resident],
            "active_cores": int(cost.active),
            "mappings": int(covered),
        }
        limit = _core_bound(cost)
        return self._result(op, parts, cost.traffic, chosen, how, cost.active, limit)

    def _attention(self, op: Attentions) -> Estimate:
        """The fastest of the kernels that compute the same."""
        how = self.how(op)
        machine, shapes = self.units(how), attention_shapes(op, how)
        cost = min(
            (attention_search(machine, shape) for shape in shapes),
            key=lambda cost: cost.latency,
        )
        if not math.isfinite(cost.latency):
            raise self.no_tile(ATTENTION_TILE)
        parts = self._parts(op, cost.core, cost.memory, cost.hidden, cost.reduction)
        chosen = {"rows": cost.rows, "split": cost.split, "active_cores": int(cost.active)}
        return self._result(op, parts, cost.traffic, chosen, how, cost.active)

    def _grouped(self, op: GroupedGemm) -> Estimate:
        """The slowest of the chips that the experts are spread over."""
        chips = [self._chip_experts(replace(op, loads=(load,))) for load in op.loads]
        return max(chips, key=lambda estimate: estimate.latency_s)

    def _chip_experts(self, op: GroupedGemm) -> Estimate:
        how = self.how(op)
        a, b, c = (get_format(f).bytes for f in (op.a_format, op.b_format, op.c_format))
        experts, rows = np.array(op.loads[0], np.float64).T.copy()
        sums, narrow = get_format(op.accumulate).bytes, self.narrow(op.a_format, op.b_format)
        shape = GroupedShape(op.n, op.k, a, b, c, how.macs, sums, *narrow.tiles)
        mapping, cost = grouped_search(self.units(how), shape, experts, rows)
        if not math.isfinite(cost.latency):
            raise self.no_tile()
        parts = self._parts(op, cost.core, cost.memory, cost.hidden, cost.reduction)
        chosen = mapping._asdict() | {"experts": op.experts, "active_cores": int(cost.active)}
        limit = _core_bound(cost)
        return self._result(op, parts, cost.traffic, chosen, how, cost.active, limit)

    def _recurrence(self, op: Recurrence) -> Estimate:
        how = self.how(op)
        state = get_format(op.state_format).bytes
        results = float(op.batch) * op.query * op.heads * op.value_dim
        stores = results * get_format(op.format).bytes + op.batch * op.state * state
        shape = RecurrenceShape(
            op.batch,
            op.heads,
            op.key_dim,
            op.value_dim,
            op.query,
            op.chunk,
            op.is_delta,
            float(STEP_FLOPS[op.rule]),
            op.bytes - stores,
            stores,
            state,
            how.macs,
        )
        cost = recurrence_search(self.units(how), shape)
        parts = self._parts(op, cost.core, cost.memory, cost.hidden)
        chosen = {"chunked": bool(cost.chunked), "active_cores": int(cost.active)}
        # Token by token the vector units do it: the arrays' peak bounds neither form.
        return self._result(op, parts, cost.traffic, chosen, how, cost.active)

    def _vector(self, op: Any) -> Estimate:
        traffic, work = self.vector_work(op)
        cost = vector_cost(self.record, *work)
        parts = self._parts(op, cost.core, cost.memory, cost.hidden)
        return self._result(op, parts, traffic, {}, None, float(self.chip.cores))

    def vector_work(self, op: Any) -> tuple[float, tuple[float, float, bool, bool]]:
        """Bytes of a vector operator, and the work that `vector_cost` is asked for."""
        flops = op.flops + (self.execution.exp_flops - 1.0) * op.exponentials
        half = get_format(op.format).bits <= 16
        traffic = (op.bytes - op.stores) * self._passes(op) + op.stores
        slower = self.execution.scatter if getattr(op, "scattered", False) else 1.0
        return traffic, (traffic * slower, flops, half, op.kind == "elementwise")

    def _passes(self, op: Any) -> int:
        """Times that a row is read: once where the kernel can keep it."""
        if isinstance(op, Quantise):
            return self.narrow(op.to, op.to).reads
        if op.kind not in PASSES:
            return 1
        kept = getattr(self.execution.kernels.row_buffer, op.kind)
        row = op.columns * get_format(op.format).bytes
        return 1 if kept is None or row <= kept else PASSES[op.kind]

    def narrow(self, a_format: str, b_format: str) -> Narrow:
        """The block's kernels for activations and weights of these formats."""
        named = self.execution.kernels.narrow
        return named.get(b_format, WIDE) if get_format(a_format).bits <= 8 else WIDE

    def how(self, op: Product) -> Conversion:
        """In what format and on which units a product runs."""
        return product_conversion(self.chip, op, self._conversions)

    def units(self, how: Conversion) -> Any:
        """The machine with the units that compute a product."""
        return self.record if how.arrays else self._plain

    def no_tile(
        self,
        what: str = "the smallest tile with its accumulators (2 KiB and some of the operands)",
    ) -> InfeasibleError:
        """What is wrong where no tile fits a core's SRAM."""
        held = f"core.sram of {self.chip.core.sram:g} bytes holds not even"
        return InfeasibleError(f"{self.chip.where}: {held} {what}")

    def launch_s(self, op: Operator) -> float:
        """Launches of an operator's kernels, and what its kernels add for their formats."""
        launch = float(getattr(self.execution.launch, op.kind))
        if isinstance(op, Gemm):
            return launch + self.narrow(op.a_format, op.b_format).column * op.n
        if isinstance(op, Quantise):
            return launch * self.narrow(op.to, op.to).quantisers
        return launch

    def _parts(
        self,
        op: Operator,
        core: float,
        memory: float,
        hidden: float,
        reduction: float = 0.0,
    ) -> Parts:
        """Seconds by cause."""
        return {
            "launch": self.launch_s(op),
            "core": float(core),
            "memory": float(memory),
            "hidden": float(hidden),
            "reduction": float(reduction),
        }

    def _result(
        self,
        op: Operator,
        parts: Parts,
        traffic: float,
        mapping: dict[str, Any],
        how: Conversion | None,
        active: float,
        core_limit: Bound = "compute",
    ) -> Estimate:
        """An estimate from its parts: bound and lower bound named."""
        latency = (
            parts["launch"]
            + parts["core"]
            + parts["memory"]
            - parts["hidden"]
            + parts["reduction"]
        )
        if how is None:
            peak = self.chip.vector_peak(get_format(op.format).bits)  # type: ignore[attr-defined]
        else:
            peak = how.peak(self.chip)
            if how.flops:
                product = latency - parts["launch"]
                parts["conversion"] = exposed_seconds(self.record, how, product, op.flops)
                latency += parts["conversion"]
        # Operands that are found in L2 need not cross the memory interface.
        least = max(op.flops / peak, min(op.bytes, traffic) / self.chip.memory.bandwidth)
        return Estimate(
            op,
            latency,
            self._bound(parts, active, core_limit),
            op.flops,
            traffic,
            least,
            parts,
            mapping,
            how.note if how else "",
        )

    def _bound(self, parts: Parts, active: float, core_limit: Bound) -> Bound:
        core, memory = parts["core"] + parts.get("conversion", 0.0), parts["memory"]
        if parts["launch"] > max(core, memory):
            return "overhead"
        if core >= memory:
            return core_limit
        drawn = active * self.record["core_draw"] < self.record["memory_bandwidth"]
        return "core draw" if drawn else "memory"

    _ESTIMATORS: ClassVar[dict[type[Operator], Callable[[PerformanceModel, Any], Estimate]]] = {
        Gemm: _gemm,
        GroupedGemm: _grouped,
        Attention: _attention,
        LatentAttention: _attention,
        Indexer: _attention,
        Recurrence: _recurrence,
    }
    """Of each kind of product; the others are the vector units'."""


def _core_bound(cost: Cost) -> Bound:
    """What holds the busiest core of a product, where that is what holds the product."""
    if cost.steps > max(cost.arithmetic, cost.l2):
        return "overhead"
    return "core draw" if cost.l2 > cost.arithmetic else "compute"
