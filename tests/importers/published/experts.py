"""Models of experts: published configurations with their published sizes."""

from __future__ import annotations

from tests.importers.published.forms import TIED, Published, kv, sizes

V3 = sizes("deepseek_v3", 61, 7168, 128, 18432, 129280, **kv(128)) | {
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
    "topk_method": "noaux_tc",
    "num_nextn_predict_layers": 1,
}
V2 = sizes("deepseek_v2", 60, 5120, 128, 12288, 102400, **kv(128)) | {
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 160,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 1536,
    "first_k_dense_replace": 1,
}

EXPERTS = {
    # gpt-oss card (arXiv 2508.10925), Table 1: 116.83 B with 5.13 B, 20.91 B with 3.61 B.
    "gpt-oss-120b": Published(
        sizes("gpt_oss", 36, 2880, 64, 2880, 201088, **kv(8, head_dim=64))
        | {"num_local_experts": 128, "num_experts_per_tok": 4, "sliding_window": 128}
        | {"attention_bias": True},
        116.83,
        5.13,
        73728,
    ),
    # DeepSeek-V2 (arXiv 2405.04434), V2-Lite card, V3 (2412.19437).
    "deepseek-v2": Published(V2, 235.74, 21.0, 69120),
    "deepseek-v2-lite": Published(
        V2
        | {
            "num_hidden_layers": 27,
            "hidden_size": 2048,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "intermediate_size": 10944,
            "q_lora_rank": None,
            "n_routed_experts": 64,
            "moe_intermediate_size": 1408,
        },
        15.706,
        2.66,
        31104,
    ),
    "deepseek-v3": Published(V3, 671.03, 37.0, 70272),
    # Kimi K2 report (arXiv 2507.20534): 1.04 T with 32.6 B.
    "kimi-k2": Published(
        V3
        | {
            "model_type": "kimi_k2",
            "num_attention_heads": 64,
            "num_key_value_heads": 64,
            "n_routed_experts": 384,
            "first_k_dense_replace": 1,
            "vocab_size": 163840,
            "num_nextn_predict_layers": 0,
        },
        1026.4,
        32.6,
        70272,
    ),
    # Kimi Linear (arXiv 2510.26692): named 48B-A3B; its checkpoint holds 49.1 B.
    "kimi-linear": Published(
        sizes("kimi_linear", 27, 2304, 32, 9216, 163840, **kv(32))
        | {
            "linear_attn_config": {
                "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
                "kda_layers": [1, 2, 3],
                "head_dim": 128,
                "num_heads": 32,
                "short_conv_kernel_size": 4,
            },
            "kv_lora_rank": 512,
            "q_lora_rank": None,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "num_experts": 256,
            "num_experts_per_token": 8,
            "num_shared_experts": 1,
            "moe_intermediate_size": 1024,
            "first_k_dense_replace": 1,
            "moe_layer_freq": 1,
        },
        49.1,
        None,
        8064,
    ),
    # GLM-4.5 report (arXiv 2508.06471), Table 1: 355 B with 32 B, 106 B with 12 B.
    "glm-4.5": Published(
        sizes("glm4_moe", 92, 5120, 96, 12288, 151552, **kv(8, head_dim=128))
        | {
            "n_routed_experts": 160,
            "n_shared_experts": 1,
            "num_experts_per_tok": 8,
            "moe_intermediate_size": 1536,
            "first_k_dense_replace": 3,
            "use_qk_norm": True,
            "attention_bias": True,
        },
        355.0,
        32.0,
    ),
    "glm-4.5-air": Published(
        sizes("glm4_moe", 46, 4096, 96, 10944, 151552, **kv(8, head_dim=128))
        | {
            "n_routed_experts": 128,
            "n_shared_experts": 1,
            "num_experts_per_tok": 8,
            "moe_intermediate_size": 1408,
            "first_k_dense_replace": 1,
            "attention_bias": True,
        },
        106.0,
        12.0,
    ),
    # MiniMax-01 report (arXiv 2501.08313): 456 B with 45.9 B.
    "minimax-text-01": Published(
        sizes("minimax_text_01", 80, 6144, 64, 9216, 200064, **kv(8, head_dim=128))
        | {
            "attn_type_list": [0, 0, 0, 0, 0, 0, 0, 1] * 10,
            "num_local_experts": 32,
            "num_experts_per_tok": 2,
            "shared_intermediate_size": 0,
        },
        456.0,
        45.9,
        40960,
    ),
    # OLMoE (arXiv 2409.02060): 6.9 B with 1.3 B. DBRX card: 132 B with 36 B.
    "olmoe-1b-7b": Published(
        sizes("olmoe", 16, 2048, 16, 1024, 50304, **kv(16))
        | {"num_experts": 64, "num_experts_per_tok": 8},
        6.92,
        1.28,
    ),
    "dbrx": Published(
        {
            "architectures": ["DbrxForCausalLM"],
            "model_type": "dbrx",
            "d_model": 6144,
            "n_heads": 48,
            "n_layers": 40,
            "max_seq_len": 32768,
            "vocab_size": 100352,
            "torch_dtype": "bfloat16",
            "tie_word_embeddings": False,
            "attn_config": {"kv_n_heads": 8},
            "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
        },
        131.6,
        36.5,
        163840,
    ),
    # ERNIE 4.5 report: 300 B with 47 B. Hunyuan-A13B card: 80 B with 13 B.
    "ernie-4.5-300b-a47b": Published(
        sizes("ernie4_5_moe", 54, 8192, 64, 28672, 103424, **kv(8))
        | {
            "moe_num_experts": 64,
            "moe_k": 8,
            "moe_intermediate_size": 3584,
            "moe_layer_start_index": 3,
            "moe_layer_end_index": 53,
            "moe_layer_interval": 1,
            "moe_num_shared_experts": 0,
            "tie_word_embeddings": False,
        },
        300.0,
        47.0,
    ),
    "hunyuan-a13b": Published(
        sizes("hunyuan_v1_moe", 32, 4096, 32, 3072, 128167, **kv(8, head_dim=128), **TIED)
        | {
            "num_experts": 64,
            "moe_topk": [8] * 32,
            "moe_intermediate_size": [3072] * 32,
            "num_shared_expert": [1] * 32,
        },
        80.4,
        13.0,
    ),
    # dots.llm1 report (arXiv 2506.05767): 142 B with 14 B.
    "dots.llm1": Published(
        sizes("dots1", 62, 4096, 32, 10944, 152064, **kv(32, head_dim=128))
        | {
            "n_routed_experts": 128,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
            "moe_intermediate_size": 1408,
            "first_k_dense_replace": 1,
        },
        142.8,
        14.0,
    ),
}
