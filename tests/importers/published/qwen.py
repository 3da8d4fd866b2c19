"""Qwen: published configurations with their published sizes."""

from __future__ import annotations

from tests.importers.published.forms import TIED, Published, kv, sizes

QWEN_NEXT = {
    "head_dim": 256,
    "full_attention_interval": 4,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
}

QWEN = {
    # Qwen2 and Qwen2.5 reports (arXiv 2407.10671, 2412.15115) and checkpoints.
    "qwen2.5-0.5b": Published(
        sizes("qwen2", 24, 896, 14, 4864, 151936, **kv(2), **TIED), 0.494, None, 12288
    ),
    "qwen2.5-7b": Published(sizes("qwen2", 28, 3584, 28, 18944, 152064, **kv(4)), 7.616),
    "qwen2.5-72b": Published(sizes("qwen2", 80, 8192, 64, 29568, 152064, **kv(8)), 72.706),
    "qwen2-57b-a14b": Published(
        sizes("qwen2_moe", 28, 3584, 28, 18944, 151936, **kv(4))
        | {
            "num_experts": 64,
            "num_experts_per_tok": 8,
            "moe_intermediate_size": 2560,
            "shared_expert_intermediate_size": 20480,
        },
        57.41,
        14.2,
    ),
    # Qwen3 report (arXiv 2505.09388), Table 1 and 2; checkpoints.
    "qwen3-4b": Published(
        sizes("qwen3", 36, 2560, 32, 9728, 151936, **kv(8, head_dim=128), **TIED), 4.022
    ),
    "qwen3-32b": Published(
        sizes("qwen3", 64, 5120, 64, 25600, 151936, **kv(8, head_dim=128)),
        32.762,
        None,
        262144,
    ),
    "qwen3-30b-a3b": Published(
        sizes("qwen3_moe", 48, 2048, 32, 6144, 151936, **kv(4, head_dim=128))
        | {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768},
        30.532,
        3.3,
        98304,
    ),
    "qwen3-coder-480b-a35b": Published(
        sizes("qwen3_moe", 62, 6144, 96, 8192, 151936, **kv(8, head_dim=128))
        | {"num_experts": 160, "num_experts_per_tok": 8, "moe_intermediate_size": 2560},
        480.15,
        35.0,
    ),
    # Qwen3-Next card: 80 B, 3 B active (79 and 3.9 with its embeddings).
    "qwen3-next-80b-a3b": Published(
        sizes("qwen3_next", 48, 2048, 16, 5120, 151936, **kv(2))
        | QWEN_NEXT
        | {
            "linear_num_value_heads": 32,
            "num_experts": 512,
            "num_experts_per_tok": 10,
            "moe_intermediate_size": 512,
            "shared_expert_intermediate_size": 512,
        },
        79.67,
        None,
        24576,
    ),
    "qwen3.5-397b-a17b": Published(
        {
            "architectures": ["Qwen3_5MoeForConditionalGeneration"],
            "model_type": "qwen3_5_moe",
            "tie_word_embeddings": False,
            "text_config": sizes("qwen3_5_moe_text", 60, 4096, 32, 1024, 248320, **kv(2))
            | QWEN_NEXT
            | {
                "linear_num_value_heads": 64,
                "num_experts": 512,
                "num_experts_per_tok": 10,
                "moe_intermediate_size": 1024,
                "shared_expert_intermediate_size": 1024,
            },
        },
        397.0,
        17.0,
        30720,
    ),
}
