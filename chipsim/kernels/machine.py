"""What kernels know of a chip and its execution block: one record of plain numbers."""

from __future__ import annotations

import numpy as np

MACHINE = np.dtype(
    [
        # chip
        ("cores", "f8"),
        ("lanes", "f8"),  # systolic arrays per core
        ("rows", "f8"),  # cells; 0 where the chip has no arrays
        ("columns", "f8"),
        ("tensor_clock", "f8"),  # Hz
        ("sram", "f8"),  # bytes per core
        ("l2_capacity", "f8"),  # bytes
        ("l2_share", "f8"),  # part of it that may hold resident panels
        # sustained rates: the chip's peak times the block's fraction
        ("vector_flops", "f8"),  # fp32 FLOP/s of the chip
        ("half_flops", "f8"),  # 16-bit vector FLOP/s of the chip
        ("l2_bandwidth", "f8"),  # bytes/s over all cores; inf where unpublished
        ("memory_bandwidth", "f8"),  # bytes/s
        ("core_draw", "f8"),  # bytes/s of one core; inf where unlimited
        ("tensor_share", "f8"),  # fraction of tensor peak
        # links of one chip, one direction
        ("link_bandwidth", "f8"),  # bytes/s; 0 without links
        ("link_latency", "f8"),  # seconds
        ("link_header", "f8"),  # bytes per packet
        ("link_payload", "f8"),  # bytes per packet
        # shares of traffic that run behind compute, 0 ... 1
        ("overlap_weights", "f8"),
        ("overlap_activations", "f8"),
        ("overlap_stores", "f8"),
        ("overlap_vector", "f8"),
        ("square_tiles", "f8"),  # 1: the mapper tries square powers of two only
        ("exp_flops", "f8"),  # vector FLOP of one exponential
    ]
)
"""One element per chip; every number is finite or +inf, and SI."""
