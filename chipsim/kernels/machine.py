"""What kernels know of a chip and its execution block: one record of plain numbers."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Record(Protocol):
    """One chip under one block; every number is a float, SI, finite or +inf."""

    cores: float
    lanes: float
    """Systolic arrays of a core."""
    rows: float
    """Cells of an array; 0 where the chip has none."""
    columns: float
    tensor_clock: float
    sram: float
    """Bytes of a core."""
    l2_capacity: float
    l2_share: float
    """Part of L2 that may hold resident panels."""
    vector_flops: float
    """Sustained fp32 FLOP/s of all vector units; `half_flops` for 16 bit."""
    half_flops: float
    fma_flops: float
    """Peak fp32 FLOP/s of all vector units: multiply-adds alone reach it."""
    l2_bandwidth: float
    """Sustained bytes/s over all cores; inf where unpublished."""
    memory_bandwidth: float
    """Sustained bytes/s."""
    stream_ratio: float
    """Rate of what is read or written in the order of addresses, over `memory_bandwidth`."""
    core_draw: float
    """Bytes/s that one core can draw from memory; inf where unlimited."""
    core_feed: float
    """Bytes/s that one core takes in from L2; inf where unlimited, as `core_store`."""
    core_store: float
    """Bytes/s of results that one core gives out."""
    step_latency: float
    """Least seconds of a core for 128 bytes of k."""
    tile_draw: float
    """Bytes/s in which a tile of fused attention takes its keys; inf where unlimited."""
    tile_latency: float
    """Seconds of a tile of fused attention beside its blocks of keys."""
    merge_launch: float
    """Fixed time of the kernel that merges split keys; 0: the same kernel does it."""
    least_rows: float
    """Query rows of a tile of fused attention, at least and at most."""
    most_rows: float
    tile_scores: float
    """Scores of a tile and a block of keys; 0: any."""
    chunk_keys: float
    """Keys that a tile draws at a time, whether they are there or not."""
    prefetch: float
    """1: a tile's first keys come behind other work of its core; 0: it waits for them."""
    resident_tiles: float
    """Tiles of one query each that a core works on at once, where its SRAM has room."""
    prompt_split: float
    """1: keys are split over cores also where a KV head has several tiles of a prompt."""
    latent_split: float
    """1: keys of latent attention are split over cores."""
    packed_prompts: float
    """1: a tile packs the rows of all query heads of a KV head; 0: of single queries only."""
    sync: float
    """Seconds until all cores have met: before the parts of a split k are added up."""
    join: float
    """Exponent that joins compute with memory, and memory with the draw; inf: the longer of
    the first two, and 2 for the others."""
    tensor_share: float
    """Sustained fraction of tensor peak."""
    loaded_clock: float
    """Part of the clock that is left after long load, and the seconds that bring half of
    the way there."""
    loaded_after: float
    link_bandwidth: float
    """Sustained bytes/s of all links of the chip in one direction; 0 without links."""
    link_latency: float
    nccl: float
    """1: NCCL's protocols run inside a node; 0: the links' own latency and rate."""
    link_hop: float
    """Seconds of one step around the chips of a node; with NCCL only."""
    link_start: float
    """Seconds before the protocol that moves much is under way; with NCCL only."""
    link_header: float
    """Bytes per packet, as `link_payload`."""
    link_payload: float
    out_bandwidth: float
    """Sustained bytes/s of one chip to other machines, one direction; 0 where it has none."""
    out_latency: float
    out_header: float
    """Bytes per packet, as `out_payload`."""
    out_payload: float
    overlap_weights: float
    """Shares of traffic that run behind compute, 0 ... 1."""
    overlap_activations: float
    overlap_stores: float
    overlap_vector: float
    square_tiles: float
    """1: the mapper tries square powers of two only."""
    multicast: float
    """1: cores that run together share one read of a panel from L2."""
    merged_split: float
    """1: partial sums of a split k merge without traffic; 0: through L2, or memory where the
    rate of L2 is not published."""
    exp_flops: float
    """Vector FLOP of one exponential."""
    warm: float
    """1: an operator is timed over and over, so what it reads and L2 holds is still there
    from the call before (weights are not: such loops change them)."""


MACHINE = np.dtype([(name, "f8") for name in Record.__annotations__])
"""Elements of an array of chips: the fields of `Record`."""
