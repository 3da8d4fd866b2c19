"""Vector operators: norms, softmax, activations, residuals, copies.

    T = M + C - H,    M = bytes / bw,    C = FLOP / vector rate + bytes / L2 rate

H is the share of the shorter that runs behind the longer (``overlap.vector``). All cores
take part. Plain streams (residual adds, copies, lookups) wait for nothing between loads, so
they are held by the memory alone; what reduces or computes is held by the draw of the cores
too. Source of the serial form (overlap 0): LLMCompass (ISCA 2024), whose vector
operators load, pass through L2 and compute one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from chipsim.kernels.jit import kernel
from chipsim.kernels.memory import joined_bandwidth

if TYPE_CHECKING:
    from chipsim.kernels.machine import Record


class VectorCost(NamedTuple):
    """Seconds of a vector operator; ``latency`` leaves launch out."""

    latency: float
    core: float
    memory: float
    hidden: float
    bandwidth: float  # joined, bytes/s


@kernel
def vector_cost(
    machine: Record, traffic: float, flops: float, half: bool, stream: bool
) -> VectorCost:
    """Cost of a vector operator.

    Parameters
    ----------
    machine : record of `MACHINE`
    traffic : float
        Bytes read and written.
    flops : float
        Vector FLOP, exponentials already counted at the chip's price.
    half : bool
        Elements are 16 bit or less, so the 16-bit rate holds.
    stream : bool
        A plain stream: no limit of what one core can draw.

    Returns
    -------
    VectorCost
    """
    bandwidth = machine.memory_bandwidth
    if not stream:
        bandwidth = joined_bandwidth(machine, machine.cores)
    bandwidth *= machine.stream_ratio
    rate = machine.half_flops if half else machine.vector_flops
    memory = traffic / bandwidth
    core = flops / rate + traffic / machine.l2_bandwidth
    hidden = machine.overlap_vector * min(memory, core)
    return VectorCost(memory + core - hidden, core, memory, hidden, bandwidth)
