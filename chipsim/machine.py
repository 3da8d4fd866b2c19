"""A chip under an execution block, flattened to the record that kernels read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from chipsim.kernels.machine import MACHINE

if TYPE_CHECKING:
    from chipsim.chip import Chip
    from chipsim.execution import Execution


def machine_record(
    chip: Chip, execution: Execution, *, arrays: bool = True, warm: bool = False
) -> npt.NDArray[np.void]:
    """One element of `chipsim.kernels.machine.MACHINE`, as an array of length 1.

    Sustained fractions are multiplied into the rates; what a chip does not publish or a
    block does not name is infinite: it never limits. Without ``arrays`` products run on the
    vector units, as those of formats that the arrays lack do. ``warm`` belongs to how a time
    is taken, not to the chip: an operator alone in a loop finds in L2 what it left there.
    """
    array = chip.core.systolic_array if arrays else None
    sustained, overlap = execution.sustained, execution.overlap
    out, fused = chip.machine.scale_out, execution.kernels.fused
    vector = chip.vector_flops * sustained.vector
    record = np.zeros(1, MACHINE)
    values = {
        "cores": chip.cores,
        "lanes": chip.core.lanes,
        "rows": array.rows if array else 0,
        "columns": array.columns if array else 0,
        "tensor_clock": chip.clock.tensor,
        "sram": chip.core.sram,
        "l2_capacity": chip.l2.capacity,
        "l2_share": execution.l2_residency,
        "vector_flops": vector,
        "half_flops": vector * chip.core.vector_unit.half_rate,
        "fma_flops": chip.vector_flops,
        "l2_bandwidth": _per_second(chip.l2.bandwidth, chip) * sustained.l2,
        "memory_bandwidth": chip.memory.bandwidth * sustained.memory,
        "stream_ratio": (sustained.stream or sustained.memory) / sustained.memory,
        "core_draw": _per_second(execution.core_draw, chip),
        "core_feed": _at_edges(execution.core_feed, chip),
        "core_store": _at_edges(execution.core_store, chip),
        "step_latency": execution.step_latency,
        "sync": execution.sync,
        "tile_draw": _at_edges(execution.tile_draw, chip),
        "tile_latency": execution.tile_latency,
        "merge_launch": execution.launch.elementwise if fused.merge == "kernel" else 0.0,
        "least_rows": fused.least_rows,
        "most_rows": fused.most_rows,
        "tile_scores": fused.scores or 0,
        "chunk_keys": fused.chunk,
        "prefetch": fused.prefetch,
        "resident_tiles": fused.resident,
        "prompt_split": fused.prompt_split,
        "latent_split": fused.latent_split,
        "packed_prompts": fused.packed_prompts,
        "join": math.inf if execution.overlap.join is None else execution.overlap.join,
        "tensor_share": sustained.tensor,
        "loaded_clock": execution.loaded.clock,
        "loaded_after": execution.loaded.after,
        "link_bandwidth": chip.link_bandwidth * sustained.link,
        "link_latency": chip.link.latency if chip.link else 0.0,
        "nccl": execution.kernels.collectives == "nccl",
        "link_hop": execution.link.hop,
        "link_start": execution.link.start,
        "link_header": chip.link.header if chip.link else 0.0,
        "link_payload": chip.link.payload if chip.link else 1.0,
        "out_bandwidth": out.bandwidth * sustained.link if out else 0.0,
        "out_latency": out.latency if out else 0.0,
        "out_header": out.header if out else 0.0,
        "out_payload": out.payload if out else 1.0,
        "overlap_weights": overlap.weights,
        "overlap_activations": overlap.activations,
        "overlap_stores": overlap.stores,
        "overlap_vector": overlap.vector,
        "square_tiles": execution.kernels.tiles == "square-powers-of-two",
        "multicast": execution.kernels.multicast,
        "merged_split": execution.kernels.merged_split,
        "exp_flops": execution.exp_flops,
        "warm": warm,
    }
    for name, value in values.items():
        record[name] = value
    return record


def _at_edges(per_cycle: float | None, chip: Chip) -> float:
    """Bytes/s of a core from those per cycle and row or column of its arrays."""
    array = chip.core.systolic_array
    if array is None:
        return math.inf
    return _per_second(per_cycle, chip) * chip.core.lanes * (array.rows + array.columns)


def _per_second(per_cycle: float | None, chip: Chip) -> float:
    return math.inf if per_cycle is None else per_cycle * chip.clock.tensor
