"""Gemma: published configurations with their published sizes."""

from __future__ import annotations

from tests.importers.published.forms import Published, kv, sizes

GEMMA = {
    # Gemma 2 report (arXiv 2408.00118), Gemma 3 report (2503.19786) Table 1, checkpoints.
    "gemma-7b": Published(
        sizes("gemma", 28, 3072, 16, 24576, 256000, **kv(16, head_dim=256)), 8.538
    ),
    "gemma-2-27b": Published(
        sizes("gemma2", 46, 4608, 32, 36864, 256000, **kv(16, head_dim=128))
        | {"sliding_window": 4096},
        27.227,
        None,
        376832,
    ),
    "gemma-3-1b": Published(
        sizes("gemma3_text", 26, 1152, 4, 6912, 262144, **kv(1, head_dim=256))
        | {"sliding_window": 512, "sliding_window_pattern": 6},
        1.000,
    ),
    # Its text_config leaves out heads, key and value heads, head size and vocabulary.
    "gemma-3-4b": Published(
        {
            "architectures": ["Gemma3ForConditionalGeneration"],
            "model_type": "gemma3",
            "torch_dtype": "bfloat16",
            "vision_config": {"hidden_size": 1152},
            "text_config": {
                "model_type": "gemma3_text",
                "hidden_size": 2560,
                "intermediate_size": 10240,
                "num_hidden_layers": 34,
                "sliding_window": 1024,
            },
        },
        3.880,
        None,
        139264,
    ),
    "gemma-3-27b": Published(
        {
            "model_type": "gemma3",
            "torch_dtype": "bfloat16",
            "text_config": {
                "model_type": "gemma3_text",
                "head_dim": 128,
                "hidden_size": 5376,
                "intermediate_size": 21504,
                "num_attention_heads": 32,
                "num_key_value_heads": 16,
                "num_hidden_layers": 62,
                "sliding_window": 1024,
            },
        },
        27.009,
        None,
        507904,
    ),
}
