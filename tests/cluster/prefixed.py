"""Requests with prefixes, and machines that keep them, for several tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from chipsim.cluster.engine import Outcome, Requests, flat_steps, instances, pools, run

# 1 ms per prompt token, 10 ms per decode step.
STEPS = flat_steps(np.arange(1001) / 1000, 0.01, 1000, 64)


def given(chains: list[list[int]], prompt: Any, output: Any, **fields: Any) -> Requests:
    """Requests with ids of blocks of 10 tokens."""
    blocks = [name for chain in chains for name in chain]
    start = np.cumsum([0, *map(len, chains)])
    every: dict[str, Any] = {
        "arrival_s": np.arange(len(chains)) * 1e3,
        "prefix_block": 10,
    } | fields
    return Requests.of(
        prompt=np.broadcast_to(prompt, len(chains)),
        output=np.broadcast_to(output, len(chains)),
        block_start=start,
        blocks=blocks,
        **every,
    )


def served(requests: Requests, machines: int = 1, **fields: Any) -> Outcome:
    """By machines of one rank with a cache."""
    given = {"prefix_cache": 1, "block": 10, "kv_blocks": 1000, "max_tokens": 1000}
    own = {
        name: fields.pop(name)
        for name in list(fields)
        if name in set(pools().dtype.names or ())
    }
    every: dict[str, Any] = {"instances": instances([0] * machines)} | fields
    return run(requests, STEPS, pools(1, **given | own), **every)
