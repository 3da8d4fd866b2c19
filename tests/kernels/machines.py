"""Random and handmade machines for the kernels."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from chipsim.kernels.gemm import Shape
from chipsim.kernels.machine import MACHINE

PLAIN: dict[str, float] = {
    "cores": 8,
    "lanes": 4,
    "rows": 16,
    "columns": 16,
    "tensor_clock": 1e9,
    "sram": 128 * 1024,
    "l2_capacity": 2**22,
    "l2_share": 0.5,
    "vector_flops": 1e12,
    "half_flops": 2e12,
    "fma_flops": 1e12,
    "l2_bandwidth": 2e12,
    "memory_bandwidth": 3e11,
    "stream_ratio": 1.0,
    "core_draw": math.inf,
    "core_feed": math.inf,
    "core_store": math.inf,
    "step_latency": 0.0,
    "sync": 0.0,
    "tile_draw": math.inf,
    "tile_latency": 0.0,
    "merge_launch": 0.0,
    "least_rows": 16,
    "most_rows": 256,
    "tile_scores": 0.0,
    "chunk_keys": 1.0,
    "prefetch": 1.0,
    "resident_tiles": 1.0,
    "prompt_split": 1.0,
    "latent_split": 1.0,
    "packed_prompts": 1.0,
    "join": math.inf,
    "tensor_share": 1.0,
    "loaded_clock": 1.0,
    "loaded_after": 1e-2,
    "link_bandwidth": 1e11,
    "link_latency": 1e-6,
    "nccl": 0.0,
    "link_hop": 0.0,
    "link_start": 0.0,
    "link_header": 16,
    "link_payload": 256,
    "out_bandwidth": 1e10,
    "out_latency": 5e-6,
    "out_header": 32,
    "out_payload": 4096,
    "overlap_weights": 1.0,
    "overlap_activations": 1.0,
    "overlap_stores": 1.0,
    "overlap_vector": 1.0,
    "square_tiles": 0.0,
    "multicast": 0.0,
    "merged_split": 0.0,
    "exp_flops": 4.0,
    "warm": 0.0,
}
"""A small machine with neutral factors."""


def plain(**fields: float) -> SimpleNamespace:
    """`PLAIN` with some fields replaced, readable by name in Python."""
    return SimpleNamespace(**(PLAIN | fields))


MEASURED: dict[str, float] = {
    "core_feed": 4e10,
    "core_store": 1.2e10,
    "step_latency": 3e-9,
    "sync": 2e-8,
    "join": 4.0,
    "loaded_clock": 0.8,
    "loaded_after": 1e-6,
    "warm": 1.0,
}
"""Every factor of measured silicon, each large enough to matter for small products."""


TILES: dict[str, float] = {
    "tile_latency": 4e-7, "tile_draw": 2e11, "core_feed": 4e10, "core_store": 1.2e10,
    "sync": 2e-8, "least_rows": 64.0, "most_rows": 128.0, "tile_scores": 8192.0,
    "chunk_keys": 64.0, "prompt_split": 0.0,
}  # fmt: skip
"""Tiles as measured GPUs have them."""


def machine(**fields: float) -> Any:
    """The same as a record of `MACHINE`, as kernels take it."""
    record = np.zeros(1, MACHINE)
    for name, value in (PLAIN | fields).items():
        record[name] = value
    return record[0]


shares = st.sampled_from([0.0, 0.3, 0.8, 1.0])
flags = st.sampled_from([0.0, 1.0])

machines = st.fixed_dictionaries(
    {
        "cores": st.integers(1, 200).map(float),
        "lanes": st.sampled_from([1.0, 2.0, 3.0, 4.0, 8.0]),
        "rows": st.sampled_from([0.0, 4.0, 16.0, 24.0, 128.0]),
        "columns": st.sampled_from([4.0, 16.0, 32.0, 100.0]),
        "tensor_clock": st.floats(1e8, 3e9),
        "sram": st.floats(8e3, 2e6),
        "l2_capacity": st.floats(1e5, 1e8),
        "l2_share": shares,
        "l2_bandwidth": st.one_of(st.just(math.inf), st.floats(1e12, 2e13)),
        "memory_bandwidth": st.floats(1e10, 1e13),
        "stream_ratio": st.sampled_from([1.0, 1.0, 1.2, 0.8]),
        "core_draw": st.one_of(st.just(math.inf), st.floats(1e9, 1e12)),
        "core_feed": st.one_of(st.just(math.inf), st.floats(1e9, 1e12)),
        "core_store": st.one_of(st.just(math.inf), st.floats(1e8, 1e11)),
        "step_latency": st.sampled_from([0.0, 0.0, 1e-8, 3e-7]),
        "sync": st.sampled_from([0.0, 0.0, 3e-6]),
        "tile_draw": st.one_of(st.just(math.inf), st.floats(1e9, 1e12)),
        "tile_latency": st.sampled_from([0.0, 0.0, 1e-7, 3e-6]),
        "merge_launch": st.sampled_from([0.0, 3e-6]),
        "least_rows": st.sampled_from([16, 16, 64]),
        "most_rows": st.sampled_from([64, 128, 256, 256]),
        "tile_scores": st.sampled_from([0.0, 0.0, 1000.0, 8192.0]),
        "chunk_keys": st.sampled_from([1.0, 50.0, 128.0]),
        "prefetch": flags,
        "resident_tiles": st.sampled_from([1.0, 1.0, 2.0, 8.0]),
        "prompt_split": flags,
        "latent_split": flags,
        "packed_prompts": flags,
        "join": st.sampled_from([math.inf, math.inf, 1.0, 1.5, 4.0]),
        "tensor_share": st.floats(0.3, 1.0),
        "loaded_clock": st.sampled_from([1.0, 1.0, 0.7]),
        "loaded_after": st.sampled_from([1e-6, 1e-3, 1e-2]),
        "overlap_weights": shares,
        "overlap_activations": shares,
        "overlap_stores": shares,
        "overlap_vector": shares,
        "square_tiles": flags,
        "multicast": flags,
        "merged_split": flags,
        "warm": flags,
    }
)
"""Fields of a random machine."""

sizes = st.one_of(
    st.integers(1, 40), st.integers(1, 5000), st.sampled_from([1, 127, 131, 4096])
)

shapes = st.builds(
    Shape,
    m=sizes,
    n=sizes,
    k=sizes,
    batch=st.sampled_from([1, 1, 1, 3, 14, 896]),
    a_bytes=st.sampled_from([0.5625, 1.0, 2.0, 4.0]),
    b_bytes=st.sampled_from([0.5625, 1.0, 2.0, 4.0]),
    c_bytes=st.sampled_from([2.0, 4.0]),
    macs=st.sampled_from([0.5, 1.0, 2.0]),
    weights=st.booleans(),
    sum_bytes=st.sampled_from([2.0, 4.0]),
    blocks=st.sampled_from([False, False, False, True]),
    step_scale=st.sampled_from([1.0, 1.0, 2.0]),
    sum_flops=st.sampled_from([0.0, 0.0, 2.0]),
    lines=st.sampled_from([False, False, True]),
)
"""Products, small, skewed, prime and large."""
