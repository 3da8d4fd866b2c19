"""Configurations as files, and the reference ones where they lie beside the checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parents[2].parent / "shared" / "reference" / "hf_configs"
"""Published configurations that are not part of the product."""


def write(folder: Path, config: Any, name: str = "model.json") -> Path:
    """A configuration as a file."""
    file = folder / name
    file.write_text(json.dumps(config), encoding="utf-8")
    return file


def llama(**changes: Any) -> dict[str, Any]:
    """A small Llama; a change to None leaves the key out."""
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": 4,
        "hidden_size": 256,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "intermediate_size": 512,
        "vocab_size": 1000,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        **changes,
    }
    return {key: value for key, value in config.items() if value is not None}
