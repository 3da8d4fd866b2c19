"""Models that tests build in code, with the shapes that their authors publish."""

from __future__ import annotations

from typing import Any

from chipsim.ops.model import ModelSpec


def model(**fields: Any) -> ModelSpec:
    return ModelSpec.build("test.yaml", **({"source": "test"} | fields))


def llama(layers: int, hidden: int, heads: int, **fields: Any) -> ModelSpec:
    shape: dict[str, Any] = {
        "name": "llama", "layers": layers, "hidden": hidden, "heads": heads,
        "vocabulary": 32000, "norm": "rmsnorm", "activation": "silu", "gated": True,
        "position": "rotary",
    }  # fmt: skip
    return model(**(shape | fields))


def opt(layers: int, hidden: int, heads: int, **fields: Any) -> ModelSpec:
    shape: dict[str, Any] = {
        "name": "opt", "layers": layers, "hidden": hidden, "heads": heads,
        "intermediate": 4 * hidden, "vocabulary": 50272, "norm": "layernorm",
        "activation": "relu", "position": "learned", "max_positions": 2048,
        "position_offset": 2, "biases": True, "tied_embeddings": True,
    }  # fmt: skip
    return model(**(shape | fields))


GPT3 = opt(
    96, 12288, 96, name="gpt3-175b", vocabulary=50257, position_offset=0, activation="gelu"
)
BLOOM = opt(
    70, 14336, 112, name="bloom-176b", vocabulary=250880, position="alibi",
    activation="gelu", embedding_norm=True, max_positions=None,
)  # fmt: skip
LLAMA2_7B = llama(32, 4096, 32, intermediate=11008)
LLAMA2_13B = llama(40, 5120, 40, intermediate=13824)
LLAMA2_70B = llama(80, 8192, 64, kv_heads=8, intermediate=28672)
LLAMA3_8B = llama(32, 4096, 32, kv_heads=8, intermediate=14336, vocabulary=128256)
LLAMA3_70B = llama(80, 8192, 64, kv_heads=8, intermediate=28672, vocabulary=128256)
LLAMA3_405B = llama(126, 16384, 128, kv_heads=8, intermediate=53248, vocabulary=128256)
