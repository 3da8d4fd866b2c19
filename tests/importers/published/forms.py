"""How published configurations are written down here: cut to the keys that shape the model."""

from __future__ import annotations

from typing import Any, NamedTuple


class Published(NamedTuple):
    """A configuration, and what is published of it."""

    config: dict[str, Any]
    total_b: float | None = None
    """Billions of parameters, as card, report or checkpoint states them; None: only counted
    (`tests.importers.counted`)."""
    active_b: float | None = None
    """Those that one token passes (None: dense, or not stated)."""
    kv_bytes: int | None = None
    """Bytes per token in the configuration's dtype, worked out by hand."""


def sizes(
    kind: str, layers: int, hidden: int, heads: int, intermediate: int, vocab: int, **more: Any
) -> dict[str, Any]:
    return {
        "model_type": kind,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "intermediate_size": intermediate,
        "vocab_size": vocab,
        "torch_dtype": "bfloat16",
        "max_position_embeddings": 32768,
        **more,
    }


def kv(heads: int, **more: Any) -> dict[str, Any]:
    return {"num_key_value_heads": heads, **more}


TIED = {"tie_word_embeddings": True}
