"""The performance model: an operator on a chip -> its best mapping and latency.

operator -> shape of a kernel -> exhaustive search -> Estimate
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from chipsim.chip import Chip
from chipsim.conversion import Conversion, exposed_seconds, product_conversion
from chipsim.errors import ConfigError, InfeasibleError
from chipsim.estimates import Bound, Estimate, OperatorRow
from chipsim.execution import Execution, Narrow
from chipsim.kernels.attention import attention_search
from chipsim.kernels.attention_tiles import AttentionShape, folded
from chipsim.kernels.gemm import RESIDENT, Cost, Shape, evaluate
from chipsim.kernels.gemm_search import search
from chipsim.kernels.grouped import GroupedShape, grouped_search
from chipsim.kernels.recurrence import RecurrenceShape, recurrence_search
from chipsim.kernels.vector import vector_cost
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

Parts = dict[str, float]

MOST_QUERIES = 2**24
"""New tokens of a sequence: a kernel walks their tiles one by one."""

PASSES = {"softmax": 2, "norm": 3}
"""Reads of a row that does not stay on chip: online maximum and sum, then the quotient
(Milakov and Gimelshein 2018); mean, variance, then the scaling."""


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
        self._record = machine_record(self.chip, self.execution, warm=warm)[0]
        self._plain = machine_record(self.chip, self.execution, arrays=False, warm=warm)[0]
        self._known: dict[Operator, Estimate] = {}
        self._named: dict[Operator, Estimate] = {}

    def estimate(self, operator: Operator) -> Estimate:
        """Latency, bound and mapping of one operator.

        Raises
        ------
        ConfigError
            The chip has no links, or a sequence more tokens than a kernel walks.
        InfeasibleError
            No tile fits a core's SRAM, or the machine has too few chips.
        """
        named = self._named.get(operator)
        if named is None:
            key = operator.unnamed()
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = self._estimate(key)
            named = self._named[operator] = known.of(operator)
        return named

    def rows(self, nodes: Mapping[str, Mapping[str, Any]]) -> tuple[OperatorRow, ...]:
        """Estimates of the nodes of a phase graph, in its order."""
        return tuple(
            OperatorRow(name, node["group"], node["count"], self.estimate(node["operator"]))
            for name, node in nodes.items()
        )

    def _estimate(self, operator: Operator) -> Estimate:
        if isinstance(operator, Collective):
            return collective_estimate(operator, self.chip, self.execution, self._record)
        estimators: dict[type[Operator], Callable[[Any], Estimate]] = {
            Gemm: self._gemm,
            GroupedGemm: self._grouped,
            Attention: self._attention,
            LatentAttention: self._latent,
            Indexer: self._indexer,
            Recurrence: self._recurrence,
        }
        return estimators.get(type(operator), self._vector)(operator)

    def _gemm(self, op: Gemm) -> Estimate:
        how = product_conversion(self.chip, op)
        a, b, c = (get_format(f).bytes for f in (op.a_format, op.b_format, op.c_format))
        sums, narrow = get_format(op.accumulate).bytes, self._narrow(op.a_format, op.b_format)
        sizes, ahead = (op.m, op.n, op.k, op.batch), op.b_is_weight
        kernel = (*narrow.tiles, narrow.raster == "lines")
        shape = Shape(*sizes, a, b, c, how.macs, ahead, sums, *kernel)
        mapping, latency, covered, _ = search(self._units(how), shape)
        if not math.isfinite(latency):
            raise self._no_tile()
        cost = evaluate(self._units(how), shape, mapping)
        parts = self._parts(op, cost.core, cost.memory, cost.hidden, cost.reduction)
        chosen = mapping._asdict() | {
            "resident": RESIDENT[mapping.resident],
            "active_cores": int(cost.active),
            "mappings": int(covered),
        }
        parts["launch"] += narrow.column * op.n
        limit = _core_bound(cost)
        return self._result(op, parts, cost.traffic, chosen, how, cost.active, limit)

    def _attention(self, op: Attention) -> Estimate:
        how = product_conversion(self.chip, op)
        shape = AttentionShape(
            op.batch,
            op.q_heads,
            op.kv_heads,
            op.head_dim,
            op.value_dim,
            op.query,
            op.context,
            op.causal,
            op.window,
            get_format(op.q_format).bytes,
            get_format(op.kv_format).bytes,
            how.macs,
            sum_bytes=get_format(op.accumulate).bytes,
        )
        return self._searched(op, (shape,), how)

    def _latent(self, op: LatentAttention) -> Estimate:
        """One row per token for all heads: multi-query attention that reads a row once.

        Sparse, the faster of two kernels: each query gathers its rows, or all rows are
        read in order and those not picked are masked (DeepSeek-V3.2 does so where short).
        """
        how = product_conversion(self.chip, op)
        shape = AttentionShape(
            op.batch,
            op.heads,
            1,
            op.latent + op.rotary,
            op.latent,
            op.query,
            op.context,
            True,
            op.window,
            get_format(op.q_format).bytes,
            get_format(op.kv_format).bytes,
            how.macs,
            op.row_bytes,
            op.top_k,
            sum_bytes=get_format(op.accumulate).bytes,
        )
        dense = folded(shape._replace(top_k=0), op.stride)
        shapes = (folded(shape, op.stride), dense) if op.top_k else (dense,)
        return self._searched(op, shapes, how)

    def _indexer(self, op: Indexer) -> Estimate:
        """Scores alone, every one written."""
        keys = get_format(op.key_format).bytes
        how = product_conversion(self.chip, op)
        shape = AttentionShape(
            op.batch,
            op.heads,
            1,
            op.head_dim,
            0,
            op.query,
            op.context,
            True,
            0,
            get_format(op.q_format).bytes,
            keys,
            how.macs,
            op.head_dim * keys,
            0,
            False,
            op.stores,
        )
        return self._searched(op, (folded(shape, op.stride),), how)

    def _searched(
        self,
        op: Attention | LatentAttention | Indexer,
        shapes: tuple[AttentionShape, ...],
        how: Conversion,
    ) -> Estimate:
        """The fastest of the kernels that compute the same."""
        if op.query > MOST_QUERIES:
            raise ConfigError(op.name or op.kind, "query", op.query, f"at most {MOST_QUERIES}")
        costs = [attention_search(self._units(how), shape) for shape in shapes]
        cost = min(costs, key=lambda cost: cost.latency)
        if not math.isfinite(cost.latency):
            raise self._no_tile("a query of attention, its keys and the sums of values")
        parts = self._parts(op, cost.core, cost.memory, cost.hidden, cost.reduction)
        chosen = {"rows": cost.rows, "split": cost.split, "active_cores": int(cost.active)}
        return self._result(op, parts, cost.traffic, chosen, how, cost.active)

    def _grouped(self, op: GroupedGemm) -> Estimate:
        """The slowest of the chips that the experts are spread over."""
        chips = [self._chip_experts(replace(op, loads=(load,))) for load in op.loads]
        return max(chips, key=lambda estimate: estimate.latency_s)

    def _chip_experts(self, op: GroupedGemm) -> Estimate:
        how = product_conversion(self.chip, op)
        a, b, c = (get_format(f).bytes for f in (op.a_format, op.b_format, op.c_format))
        experts, rows = np.array(op.loads[0], np.float64).T.copy()
        sums, narrow = get_format(op.accumulate).bytes, self._narrow(op.a_format, op.b_format)
        shape = GroupedShape(op.n, op.k, a, b, c, how.macs, sums, *narrow.tiles)
        mapping, cost = grouped_search(self._units(how), shape, experts, rows)
        if not math.isfinite(cost.latency):
            raise self._no_tile()
        parts = self._parts(op, cost.core, cost.memory, cost.hidden, cost.reduction)
        chosen = mapping._asdict() | {"experts": op.experts, "active_cores": int(cost.active)}
        limit = _core_bound(cost)
        return self._result(op, parts, cost.traffic, chosen, how, cost.active, limit)

    def _recurrence(self, op: Recurrence) -> Estimate:
        how = product_conversion(self.chip, op)
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
        cost = recurrence_search(self._units(how), shape)
        parts = self._parts(op, cost.core, cost.memory, cost.hidden)
        chosen = {"chunked": bool(cost.chunked), "active_cores": int(cost.active)}
        # Token by token the vector units do it: the arrays' peak bounds neither form.
        return self._result(op, parts, cost.traffic, chosen, how, cost.active)

    def _vector(self, op: Any) -> Estimate:
        flops = op.flops + (self.execution.exp_flops - 1.0) * op.exponentials
        half = get_format(op.format).bits <= 16
        traffic = (op.bytes - op.stores) * self._passes(op) + op.stores
        slower = self.execution.scatter if getattr(op, "scattered", False) else 1.0
        moved = traffic * slower
        cost = vector_cost(self._record, moved, flops, half, op.kind == "elementwise")
        parts = self._parts(op, cost.core, cost.memory, cost.hidden)
        if isinstance(op, Quantise):
            parts["launch"] *= self._narrow(op.to, op.to).quantisers
        return self._result(op, parts, traffic, {}, None, float(self.chip.cores))

    def _passes(self, op: Any) -> int:
        """Times that a row is read: once where the kernel can keep it."""
        if isinstance(op, Quantise):
            return self._narrow(op.to, op.to).reads
        if op.kind not in PASSES:
            return 1
        kept = getattr(self.execution.kernels.row_buffer, op.kind)
        row = op.columns * get_format(op.format).bytes
        return 1 if kept is None or row <= kept else PASSES[op.kind]

    def _narrow(self, a_format: str, b_format: str) -> Narrow:
        """The block's kernels for activations and weights of these formats."""
        named = self.execution.kernels.narrow
        return named.get(b_format, WIDE) if get_format(a_format).bits <= 8 else WIDE

    def _units(self, how: Conversion) -> Any:
        """The machine with the units that compute a product."""
        return self._record if how.arrays else self._plain

    def _no_tile(
        self,
        what: str = "the smallest tile with its accumulators (2 KiB and some of the operands)",
    ) -> InfeasibleError:
        held = f"core.sram of {self.chip.core.sram:g} bytes holds not even"
        return InfeasibleError(f"{self.chip.where}: {held} {what}")

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
            "launch": getattr(self.execution.launch, op.kind),
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
                parts["conversion"] = exposed_seconds(self._record, how, product, op.flops)
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
        drawn = active * self._record["core_draw"] < self._record["memory_bandwidth"]
        return "core draw" if drawn else "memory"


def _core_bound(cost: Cost) -> Bound:
    """What holds the busiest core of a product, where that is what holds the product."""
    if cost.steps > max(cost.arithmetic, cost.l2):
        return "overhead"
    return "core draw" if cost.l2 > cost.arithmetic else "compute"
