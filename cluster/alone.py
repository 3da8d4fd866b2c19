"""Requests alone on an instance: what slowdown is measured against."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chipsim.cluster.engine.steps import Steps, decode_seconds, prefill_seconds
from chipsim.kernels.jit import kernel

Floats = npt.NDArray[np.float64]


@kernel
def alone_seconds(
    steps: Steps, kind: int, prompts: npt.NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Each prompt alone: its prefill, and a decode step right behind it."""
    prefill, decode = np.empty(len(prompts)), np.empty(len(prompts))
    limit = steps.limit[kind]
    for i, tokens in enumerate(prompts):
        prefill[i] = prefill_seconds(steps, kind, tokens, float(tokens) ** 2, 0.0, 1)
        decode[i] = decode_seconds(steps, kind, 1, float(tokens), float(min(tokens, limit)))
    return prefill, decode
