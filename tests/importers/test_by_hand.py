"""Parameters of uncommon models, every matrix of their published code written down once more.

Nothing of the product is used here but the import; where another program counts the same
model (`tests.importers.counted`), it agrees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chipsim.importers import import_huggingface
from tests.importers.files import write
from tests.importers.published import PUBLISHED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def mlp(hidden: int, width: int) -> int:
    return 3 * hidden * width


def attention(hidden: int, heads: int, kv_heads: int, width: int) -> int:
    return 2 * hidden * heads * width + 2 * hidden * kv_heads * width


def scan(hidden: int, inner: int, state: int, rank: int, *, norms: bool) -> int:
    """In (twice), taps of 4 with bias, x to rank and B and C, rank to step, A, D, out."""
    count = 2 * hidden * inner + 5 * inner + inner * (rank + 2 * state)
    count += rank * inner + inner + inner * state + inner + inner * hidden
    return count + (rank + 2 * state if norms else 0)


def mamba2(hidden: int, heads: int, width: int, state: int, groups: int, *, norm: bool) -> int:
    """In (z, x, B, C, dt), taps of 4 with bias, A, D, bias of dt, norm, out."""
    inner, bc = heads * width, 2 * groups * state
    count = hidden * (2 * inner + bc + heads) + 5 * (inner + bc) + 3 * heads
    return count + (inner if norm else 0) + inner * hidden


def mla(hidden: int, heads: int, q: int, kv: int, nope: int, rope: int, value: int) -> int:
    count = hidden * q + q + q * heads * (nope + rope) + hidden * (kv + rope) + kv
    return count + kv * heads * (nope + value) + heads * value * hidden


def falcon_mamba_7b() -> int:
    layer = scan(4096, 8192, 16, 256, norms=False) + 4096
    return 2 * 65024 * 4096 + 64 * layer + 4096


def mamba_codestral_7b() -> int:
    layer = mamba2(4096, 128, 64, 128, 8, norm=True) + 4096
    return 2 * 32768 * 4096 + 64 * layer + 4096


def jamba(layers: int, hidden: int, heads: int, width: int, rank: int) -> int:
    attends = attention(hidden, heads, 8, hidden // heads)
    scans = scan(hidden, 2 * hidden, 16, rank, norms=True)
    experts = 16 * mlp(hidden, width) + 16 * hidden
    total = 2 * 65536 * hidden + hidden + 2 * hidden * layers
    total += layers // 8 * attends + (layers - layers // 8) * scans
    return total + layers // 2 * (experts + mlp(hidden, width))


def lfm2_1_2b() -> int:
    conv = 2048 * 3 * 2048 + 3 * 2048 + 2048 * 2048
    attends = attention(2048, 32, 8, 64) + 2 * 64
    layers = 10 * conv + 6 * attends + 16 * (mlp(2048, 8192) + 2 * 2048)
    return 65536 * 2048 + layers + 2048


def lfm2_8b_a1b() -> int:
    conv = 2048 * 3 * 2048 + 3 * 2048 + 2048 * 2048
    attends = attention(2048, 32, 8, 64) + 2 * 64
    experts = 32 * mlp(2048, 1792) + 32 * 2048 + 32  # router, its balance
    layers = 18 * conv + 6 * attends + 24 * 2 * 2048
    return 65536 * 2048 + layers + 2 * mlp(2048, 7168) + 22 * experts + 2048


def falcon_h1_34b() -> int:
    mixers = attention(5120, 20, 4, 128) + mamba2(5120, 32, 128, 256, 2, norm=False)
    return 2 * 261120 * 5120 + 72 * (mixers + mlp(5120, 21504) + 2 * 5120) + 5120


def longcat_flash() -> int:
    latent = mla(6144, 64, 1536, 512, 128, 64, 128)
    experts = 512 * mlp(6144, 2048) + (512 + 256) * (6144 + 1)
    layer = 2 * (latent + mlp(6144, 12288) + 2 * 6144) + experts
    return 2 * 131072 * 6144 + 28 * layer + 6144


def arctic() -> int:
    experts = 128 * mlp(7168, 4864) + 128 * 7168
    layer = attention(7168, 56, 8, 128) + mlp(7168, 7168) + experts
    return 2 * 32000 * 7168 + 35 * (layer + 2 * 7168) + 7168


def hunyuan_large() -> int:
    whole = attention(6400, 80, 8, 80) + 2 * 80
    reads = 2 * 6400 * 80 * 80 + 80
    experts = 17 * mlp(6400, 18304) + 16 * 6400
    return 128512 * 6400 + 32 * (whole + reads) + 64 * (experts + 2 * 6400) + 6400


def gemma4(hidden: int, width: int, layers: int, kv: int, shared: tuple[int, int]) -> int:
    """Queries of 8 heads, of 256 within windows and 512 beside; the last layers read the
    keys and values of others: ``shared`` are their window and full layers, of all layers
    the other ones' numbers follow."""
    every = {35: 5, 42: 6}[layers]
    full = layers // every
    window = layers - full
    last_window, last_full = shared
    count = 0
    for size, number, reading in ((256, window, last_window), (512, full, last_full)):
        count += number * (2 * hidden * 8 * size + size)  # queries, their norm, output
        count += (number - reading) * (2 * hidden * kv * size + size)
    wide = 2 if layers == 35 else 1  # E2B's last layers have an MLP twice as wide
    reading = last_window + last_full
    count += (layers - reading + wide * reading) * mlp(hidden, width) + layers * 4 * hidden
    count += layers * (2 * hidden * 256 + hidden)  # gate and projection of a layer's input
    count += hidden * layers * 256 + 256 + 262144 * layers * 256  # of all layers, and table
    return count + 262144 * hidden + hidden


def deepseek_v4_flash() -> int:
    hidden, width, rank = 4096, 512, 1024
    attends = hidden * rank + rank + rank * 64 * width + hidden * width + width + 64
    attends += 64 * width * 1024 + 8 * 1024 * hidden
    heavy = 2 * hidden * width + 128 * width + width
    sparse = 2 * hidden * 2 * width + 4 * 2 * width + width
    picks = 2 * hidden * 2 * 128 + 4 * 2 * 128 + 128 + rank * 64 * 128 + hidden * 64
    streams = 24 * 4 * hidden + 24 + 3
    experts = 257 * mlp(hidden, 2048) + 256 * hidden
    layers = 43 * (attends + 2 * streams + experts + 2 * hidden) + 40 * 256
    layers += 20 * heavy + 21 * (sparse + picks)
    head = 4 * 4 * hidden + 4 + 1
    return 2 * 129280 * hidden + layers + head + hidden


BY_HAND: dict[str, Callable[[], int]] = {
    "falcon-mamba-7b": falcon_mamba_7b,
    "mamba-codestral-7b": mamba_codestral_7b,
    "jamba-v0.1": lambda: jamba(32, 4096, 32, 14336, 256),
    "jamba-1.5-large": lambda: jamba(72, 8192, 64, 24576, 512),
    "lfm2-1.2b": lfm2_1_2b,
    "lfm2-8b-a1b": lfm2_8b_a1b,
    "falcon-h1-34b": falcon_h1_34b,
    "longcat-flash": longcat_flash,
    "arctic": arctic,
    "hunyuan-large": hunyuan_large,
    "gemma-4-e2b": lambda: gemma4(1536, 6144, 35, 1, (16, 4)),
    "gemma-4-e4b": lambda: gemma4(2560, 10240, 42, 2, (15, 3)),
    "deepseek-v4-flash": deepseek_v4_flash,
}
ACTIVE: dict[str, int] = {
    # All but the experts that a token does not pass, and Gemma's tables of inputs.
    "jamba-v0.1": 16 * 14 * mlp(4096, 14336),
    "jamba-1.5-large": 36 * 14 * mlp(8192, 24576),
    "lfm2-8b-a1b": 22 * 28 * mlp(2048, 1792),
    # Of its 12 choices 512 in 768 are experts: 8 on average.
    "longcat-flash": 28 * (512 - 8) * mlp(6144, 2048),
    "arctic": 35 * 126 * mlp(7168, 4864),
    "hunyuan-large": 64 * 15 * mlp(6400, 18304),
    "gemma-4-e2b": 262144 * 35 * 256,
    "gemma-4-e4b": 262144 * 42 * 256,
    "deepseek-v4-flash": 43 * 250 * mlp(4096, 2048),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_every_matrix_is_counted_once(tmp_path: Path, name: str) -> None:
    config: dict[str, Any] = PUBLISHED[name].config
    model = import_huggingface(write(tmp_path, config)).model
    total = BY_HAND[name]()
    assert model.parameters == total
    assert model.active_parameters == total - ACTIVE.get(name, 0)
