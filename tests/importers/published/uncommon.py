"""Models of which each has a part that no other family has."""

from __future__ import annotations

from typing import Any

from tests.importers.published.forms import TIED, Published, kv, sizes

_GEMMA4: dict[str, Any] = {
    "head_dim": 256,
    "global_head_dim": 512,
    "vocab_size_per_layer_input": 262144,
    "sliding_window": 512,
    "enable_moe_block": False,
    "attention_k_eq_v": False,
    "num_global_key_value_heads": None,
}
_PATTERN = ["sliding_attention"] * 5 + ["full_attention"]

UNCOMMON = {
    # DeepSeek-V4-Flash card: 284 B with 13 B (13.8 with its tables, as V3's 37 is 37.6).
    "deepseek-v4-flash": Published(
        {
            "model_type": "deepseek_v4",
            "num_hidden_layers": 43,
            "hidden_size": 4096,
            "num_attention_heads": 64,
            "num_key_value_heads": 1,
            "head_dim": 512,
            "vocab_size": 129280,
            "torch_dtype": "bfloat16",
            "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],
            "num_nextn_predict_layers": 1,
            "q_lora_rank": 1024,
            "o_lora_rank": 1024,
            "o_groups": 8,
            "qk_rope_head_dim": 64,
            "sliding_window": 128,
            "index_head_dim": 128,
            "index_n_heads": 64,
            "index_topk": 512,
            "hc_mult": 4,
            "n_routed_experts": 256,
            "n_shared_experts": 1,
            "num_experts_per_tok": 6,
            "moe_intermediate_size": 2048,
            "num_hash_layers": 3,
            "topk_method": "noaux_tc",
        },
        284.0,
        None,
        # Windows hold a row of 512 in every layer; a compressed one adds 1/4 or 1/128 of it
        # to a token, an indexer 1/4 of 128.
        2 * (43 * 512 + 21 * (128 + 32) + 20 * 4),
    ),
    # LongCat-Flash (arXiv 2509.01322): 560 B; 18.6 to 31.3 B active, 27 B on average.
    "longcat-flash": Published(
        {
            "model_type": "longcat_flash",
            "num_layers": 28,
            "hidden_size": 6144,
            "num_attention_heads": 64,
            "ffn_hidden_size": 12288,
            "expert_ffn_hidden_size": 2048,
            "q_lora_rank": 1536,
            "kv_lora_rank": 512,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "moe_topk": 12,
            "n_routed_experts": 512,
            "zero_expert_num": 256,
            "zero_expert_type": "identity",
            "vocab_size": 131072,
            "attention_bias": False,
            "torch_dtype": "bfloat16",
        },
        560.0,
        None,
        64512,
    ),
    # Snowflake Arctic card: 480 B with 17 B.
    "arctic": Published(
        sizes("arctic", 35, 7168, 56, 4864, 32000, **kv(8))
        | {
            "num_local_experts": 128,
            "num_experts_per_tok": 2,
            "moe_layer_frequency": 1,
            "parallel_attn_mlp_res": True,
            "use_residual": True,
        },
        480.0,
        17.3,
        143360,
    ),
    # Hunyuan-Large (arXiv 2411.02265): 389 B with 52 B; two layers share a cache.
    "hunyuan-large": Published(
        sizes("hunyuan", 64, 6400, 80, 18304, 128512, **kv(8), **TIED)
        | {
            "num_experts": 16,
            "moe_topk": 1,
            "num_shared_expert": 1,
            "use_cla": True,
            "cla_share_factor": 2,
            "use_qk_norm": True,
        },
        389.0,
        52.0,
        81920,
    ),
    # Gemma 4 cards: E2B 2.3 B beside its tables of inputs, E4B 4.5 B; 31 B.
    "gemma-4-e2b": Published(
        {
            "model_type": "gemma4",
            "torch_dtype": "bfloat16",
            "text_config": sizes("gemma4_text", 35, 1536, 8, 6144, 262144, **kv(1))
            | _GEMMA4
            | {
                "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7,
                "hidden_size_per_layer_input": 256,
                "num_kv_shared_layers": 20,
                "use_double_wide_mlp": True,
            },
        },
        None,
        2.3,
        2 * 2 * (12 * 256 + 3 * 512),
    ),
    "gemma-4-e4b": Published(
        {
            "model_type": "gemma4",
            "torch_dtype": "bfloat16",
            "text_config": sizes("gemma4_text", 42, 2560, 8, 10240, 262144, **kv(2))
            | _GEMMA4
            | {
                "layer_types": _PATTERN * 7,
                "hidden_size_per_layer_input": 256,
                "num_kv_shared_layers": 18,
            },
        },
        None,
        None,
        2 * 2 * 2 * (20 * 256 + 4 * 512),
    ),
    "gemma-4-31b": Published(
        {
            "model_type": "gemma4",
            "torch_dtype": "bfloat16",
            "text_config": sizes("gemma4_text", 60, 5376, 32, 21504, 262144, **kv(16))
            | _GEMMA4
            | {
                "layer_types": _PATTERN * 10,
                "hidden_size_per_layer_input": 0,
                "num_global_key_value_heads": 4,
                "attention_k_eq_v": True,
                "sliding_window": 1024,
            },
        },
        30.7,
        None,
        2 * 2 * (50 * 16 * 256 + 10 * 4 * 512),
    ),
    # Llama 3.2 Vision: its text without an image is Llama 3.1's.
    "llama-3.2-11b-vision": Published(
        {
            "architectures": ["MllamaForConditionalGeneration"],
            "model_type": "mllama",
            "torch_dtype": "bfloat16",
            "vision_config": {"model_type": "mllama_vision_model"},
            "text_config": sizes("mllama_text_model", 40, 4096, 32, 14336, 128256, **kv(8))
            | {"cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38]},
        },
        8.030,
        None,
        131072,
    ),
    # Grok-1's release: 314 B.
    "grok-1": Published(
        sizes("grok-1", 64, 6144, 48, 32768, 131072, **kv(8), **TIED)
        | {"num_experts": 8, "num_experts_per_tok": 2, "hidden_act": "gelu"},
        314.0,
        None,
        262144,
    ),
}
