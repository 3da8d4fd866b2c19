"""GEMMs to time: those of real models, and awkward ones."""

from __future__ import annotations

import random

from chipsim.kernels.gemm import Shape

TOKENS = (1, 2, 8, 16, 64, 100, 256, 512, 2048, 8192)
PROJECTIONS = (  # n, k of a projection on one chip
    (5376, 14336), (14336, 1792), (7168, 14336), (14336, 7168),  # BLOOM-176B, tp = 8
    (4608, 12288), (12288, 1536), (6144, 12288), (12288, 6144),  # GPT-3 175B, tp = 8
    (1280, 8192), (8192, 1024), (7168, 8192), (8192, 3584),  # Llama 70B, tp = 8
    (6144, 4096), (28672, 4096), (4096, 14336), (128256, 4096),  # Llama 8B
)  # fmt: skip
AWKWARD = 40


def shapes() -> list[Shape]:
    """160 projections and 40 odd, prime, thin and batched products; the same each time."""
    found = [shape(m, n, k) for m in TOKENS for n, k in PROJECTIONS]
    draw = random.Random(0)  # noqa: S311 - nothing secret
    for _ in range(AWKWARD):
        m, n, k = (2 ** draw.randint(0, 13) + draw.randint(-7, 7) for _ in range(3))
        batch = draw.choice((1, 1, 3, 28, 448))
        found.append(shape(max(m, 1), max(n, 1), max(k, 1), batch))
    return found


def shape(m: int, n: int, k: int, batch: int = 1) -> Shape:
    """16-bit operands; a batched product has no weights."""
    return Shape(m, n, k, batch, 2.0, 2.0, 2.0, 1.0, batch == 1)
