"""Configurations as their authors publish them, cut to the keys that shape the model.

Each with the parameters that its card, report or checkpoint states, in billions: all, and
those that one token passes (None: dense, or not stated).
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Published(NamedTuple):
    """A configuration, and what is published of it."""

    config: dict[str, Any]
    total_b: float
    active_b: float | None = None
    kv_bytes: int | None = None
    """Bytes per token in the configuration's dtype, worked out by hand."""


def _sizes(
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


def _kv(heads: int, **more: Any) -> dict[str, Any]:
    return {"num_key_value_heads": heads, **more}


_TIED = {"tie_word_embeddings": True}
_V3 = _sizes("deepseek_v3", 61, 7168, 128, 18432, 129280, **_kv(128)) | {
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
_V2 = _sizes("deepseek_v2", 60, 5120, 128, 12288, 102400, **_kv(128)) | {
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
_QWEN_NEXT = {
    "head_dim": 256,
    "full_attention_interval": 4,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
}

LLAMA = {
    # Llama 2 and 3 papers (arXiv 2307.09288, 2407.21783); sizes of the checkpoints.
    "llama-2-7b": Published(_sizes("llama", 32, 4096, 32, 11008, 32000), 6.738, None, 524288),
    "llama-2-70b": Published(
        _sizes("llama", 80, 8192, 64, 28672, 32000, **_kv(8)), 68.977, None, 327680
    ),
    "llama-3.1-8b": Published(
        _sizes("llama", 32, 4096, 32, 14336, 128256, **_kv(8)), 8.030, None, 131072
    ),
    "llama-3.1-70b": Published(
        _sizes("llama", 80, 8192, 64, 28672, 128256, **_kv(8)), 70.554, None, 327680
    ),
    "llama-3.1-405b": Published(
        _sizes("llama", 126, 16384, 128, 53248, 128256, **_kv(8)), 405.85, None, 516096
    ),
    "llama-3.2-1b": Published(
        _sizes("llama", 16, 2048, 32, 8192, 128256, **_kv(8, head_dim=64), **_TIED), 1.236
    ),
    # Mistral's cards and checkpoints.
    "mistral-7b-v0.3": Published(
        _sizes("mistral", 32, 4096, 32, 14336, 32768, **_kv(8), sliding_window=None), 7.248
    ),
    "mistral-nemo": Published(
        _sizes(
            "mistral", 40, 5120, 32, 14336, 131072, **_kv(8, head_dim=128), sliding_window=None
        ),
        12.248,
        None,
        163840,
    ),
    "mixtral-8x7b": Published(
        _sizes("mixtral", 32, 4096, 32, 14336, 32000, **_kv(8))
        | {"num_local_experts": 8, "num_experts_per_tok": 2},
        46.703,
        12.880,
        131072,
    ),
    "mixtral-8x22b": Published(
        _sizes("mixtral", 56, 6144, 48, 16384, 32768, **_kv(8))
        | {"num_local_experts": 8, "num_experts_per_tok": 2},
        140.63,
        39.1,
    ),
    # Phi-3 report (arXiv 2404.14219), Phi-4 report (2412.08905), Phi-3.5 card.
    "phi-3-mini": Published(_sizes("phi3", 32, 3072, 32, 8192, 32064, **_kv(32)), 3.821),
    "phi-4": Published(_sizes("phi3", 40, 5120, 40, 17920, 100352, **_kv(10)), 14.660),
    "phi-3.5-moe": Published(
        _sizes("phimoe", 32, 4096, 32, 6400, 32064, **_kv(8), attention_bias=True)
        | {"num_local_experts": 16, "num_experts_per_tok": 2},
        41.873,
        6.6,
    ),
    # Llama 4 cards: 17 B active; the whole checkpoints hold a vision tower beside it.
    "llama-4-maverick": Published(
        {
            "architectures": ["Llama4ForConditionalGeneration"],
            "model_type": "llama4",
            "vision_config": {"hidden_size": 1408},
            "text_config": _sizes("llama4_text", 48, 5120, 40, 8192, 202048, **_kv(8))
            | {
                "head_dim": 128,
                "intermediate_size_mlp": 16384,
                "num_local_experts": 128,
                "num_experts_per_tok": 1,
                "interleave_moe_layer_step": 2,
                "attention_chunk_size": 8192,
                "use_qk_norm": False,
            },
        },
        400.7,
        17.0,
        196608,
    ),
}

QWEN = {
    # Qwen2 and Qwen2.5 reports (arXiv 2407.10671, 2412.15115) and checkpoints.
    "qwen2.5-0.5b": Published(
        _sizes("qwen2", 24, 896, 14, 4864, 151936, **_kv(2), **_TIED), 0.494, None, 12288
    ),
    "qwen2.5-7b": Published(_sizes("qwen2", 28, 3584, 28, 18944, 152064, **_kv(4)), 7.616),
    "qwen2.5-72b": Published(_sizes("qwen2", 80, 8192, 64, 29568, 152064, **_kv(8)), 72.706),
    "qwen2-57b-a14b": Published(
        _sizes("qwen2_moe", 28, 3584, 28, 18944, 151936, **_kv(4))
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
        _sizes("qwen3", 36, 2560, 32, 9728, 151936, **_kv(8, head_dim=128), **_TIED), 4.022
    ),
    "qwen3-32b": Published(
        _sizes("qwen3", 64, 5120, 64, 25600, 151936, **_kv(8, head_dim=128)),
        32.762,
        None,
        262144,
    ),
    "qwen3-30b-a3b": Published(
        _sizes("qwen3_moe", 48, 2048, 32, 6144, 151936, **_kv(4, head_dim=128))
        | {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768},
        30.532,
        3.3,
        98304,
    ),
    "qwen3-coder-480b-a35b": Published(
        _sizes("qwen3_moe", 62, 6144, 96, 8192, 151936, **_kv(8, head_dim=128))
        | {"num_experts": 160, "num_experts_per_tok": 8, "moe_intermediate_size": 2560},
        480.15,
        35.0,
    ),
    # Qwen3-Next card: 80 B, 3 B active (79 and 3.9 with its embeddings).
    "qwen3-next-80b-a3b": Published(
        _sizes("qwen3_next", 48, 2048, 16, 5120, 151936, **_kv(2))
        | _QWEN_NEXT
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
            "text_config": _sizes("qwen3_5_moe_text", 60, 4096, 32, 1024, 248320, **_kv(2))
            | _QWEN_NEXT
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

GEMMA = {
    # Gemma 2 report (arXiv 2408.00118), Gemma 3 report (2503.19786) Table 1, checkpoints.
    "gemma-7b": Published(
        _sizes("gemma", 28, 3072, 16, 24576, 256000, **_kv(16, head_dim=256)), 8.538
    ),
    "gemma-2-27b": Published(
        _sizes("gemma2", 46, 4608, 32, 36864, 256000, **_kv(16, head_dim=128))
        | {"sliding_window": 4096},
        27.227,
        None,
        376832,
    ),
    "gemma-3-1b": Published(
        _sizes("gemma3_text", 26, 1152, 4, 6912, 262144, **_kv(1, head_dim=256))
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

EXPERTS = {
    # gpt-oss card (arXiv 2508.10925), Table 1: 116.83 B with 5.13 B, 20.91 B with 3.61 B.
    "gpt-oss-120b": Published(
        _sizes("gpt_oss", 36, 2880, 64, 2880, 201088, **_kv(8, head_dim=64))
        | {"num_local_experts": 128, "num_experts_per_tok": 4, "sliding_window": 128}
        | {"attention_bias": True},
        116.83,
        5.13,
        73728,
    ),
    # DeepSeek-V2 (arXiv 2405.04434), V2-Lite card, V3 (2412.19437).
    "deepseek-v2": Published(_V2, 235.74, 21.0, 69120),
    "deepseek-v2-lite": Published(
        _V2
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
    "deepseek-v3": Published(_V3, 671.03, 37.0, 70272),
    # Kimi K2 report (arXiv 2507.20534): 1.04 T with 32.6 B.
    "kimi-k2": Published(
        _V3
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
        _sizes("kimi_linear", 27, 2304, 32, 9216, 163840, **_kv(32))
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
        _sizes("glm4_moe", 92, 5120, 96, 12288, 151552, **_kv(8, head_dim=128))
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
        _sizes("glm4_moe", 46, 4096, 96, 10944, 151552, **_kv(8, head_dim=128))
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
        _sizes("minimax_text_01", 80, 6144, 64, 9216, 200064, **_kv(8, head_dim=128))
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
        _sizes("olmoe", 16, 2048, 16, 1024, 50304, **_kv(16))
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
        _sizes("ernie4_5_moe", 54, 8192, 64, 28672, 103424, **_kv(8))
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
        _sizes("hunyuan_v1_moe", 32, 4096, 32, 3072, 128167, **_kv(8, head_dim=128), **_TIED)
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
        _sizes("dots1", 62, 4096, 32, 10944, 152064, **_kv(32, head_dim=128))
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

DENSE = {
    # Radford et al. 2019 as checkpoints count: 124 M and 1558 M.
    "gpt2": Published(
        {
            "architectures": ["GPT2LMHeadModel"],
            "model_type": "gpt2",
            "n_embd": 768,
            "n_layer": 12,
            "n_head": 12,
            "n_positions": 1024,
            "n_ctx": 1024,
            "vocab_size": 50257,
            "torch_dtype": "float16",
        },
        0.12444,
        None,
        36864,
    ),
    "gpt2-xl": Published(
        {
            "model_type": "gpt2",
            "n_embd": 1600,
            "n_layer": 48,
            "n_head": 25,
            "n_positions": 1024,
            "vocab_size": 50257,
            "torch_dtype": "float16",
        },
        1.5576,
    ),
    # OPT (arXiv 2205.01068), BLOOM (2211.05100: 176,247 M and 7,069 M).
    "opt-6.7b": Published(
        {
            "model_type": "opt",
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "ffn_dim": 16384,
            "word_embed_proj_dim": 4096,
            "max_position_embeddings": 2048,
            "vocab_size": 50272,
            "torch_dtype": "float16",
            "activation_function": "relu",
        },
        6.658,
        None,
        524288,
    ),
    "bloom": Published(
        {
            "architectures": ["BloomForCausalLM"],
            "model_type": "bloom",
            "n_embed": 14336,
            "n_layer": 70,
            "num_attention_heads": 112,
            "vocab_size": 250880,
            "torch_dtype": "bfloat16",
        },
        176.247,
        None,
        4014080,
    ),
    "bloom-7b1": Published(
        {
            "model_type": "bloom",
            "n_embed": 4096,
            "n_layer": 30,
            "n_head": 32,
            "vocab_size": 250880,
            "torch_dtype": "float16",
        },
        7.069,
    ),
    # Falcon (arXiv 2311.16867); a tied head is counted once.
    "falcon-7b": Published(
        {
            "architectures": ["FalconForCausalLM"],
            "model_type": "falcon",
            "hidden_size": 4544,
            "num_hidden_layers": 32,
            "num_attention_heads": 71,
            "multi_query": True,
            "new_decoder_architecture": False,
            "parallel_attn": True,
            "bias": False,
            "alibi": False,
            "vocab_size": 65024,
            "torch_dtype": "bfloat16",
        },
        6.922,
        None,
        8192,
    ),
    "falcon-40b": Published(
        {
            "model_type": "falcon",
            "hidden_size": 8192,
            "num_hidden_layers": 60,
            "num_attention_heads": 128,
            "num_kv_heads": 8,
            "new_decoder_architecture": True,
            "multi_query": True,
            "parallel_attn": True,
            "bias": False,
            "vocab_size": 65024,
            "torch_dtype": "bfloat16",
        },
        41.303,
        None,
        122880,
    ),
    # Phi-2 card: 2.7 B (2.78 in the checkpoint).
    "phi-2": Published(_sizes("phi", 32, 2560, 32, 10240, 51200, hidden_act="gelu_new"), 2.780),
    # GPT-J card 6.05 B; GPT-NeoX (arXiv 2204.06745) 20.55 B; MPT card 6.7 B.
    "gpt-j-6b": Published(
        {
            "model_type": "gptj",
            "n_embd": 4096,
            "n_layer": 28,
            "n_head": 16,
            "n_positions": 2048,
            "vocab_size": 50400,
            "torch_dtype": "float16",
        },
        6.051,
    ),
    "gpt-neox-20b": Published(
        _sizes("gpt_neox", 44, 6144, 64, 24576, 50432, hidden_act="gelu_fast"), 20.555
    ),
    "mpt-7b": Published(
        {
            "model_type": "mpt",
            "d_model": 4096,
            "n_heads": 32,
            "n_layers": 32,
            "expansion_ratio": 4,
            "max_seq_len": 2048,
            "vocab_size": 50432,
            "attn_config": {"alibi": True},
            "torch_dtype": "bfloat16",
        },
        6.649,
    ),
    # Cards and checkpoints.
    "starcoder2-15b": Published(
        _sizes("starcoder2", 40, 6144, 48, 24576, 49152, **_kv(4), tie_word_embeddings=False)
        | {"hidden_act": "gelu_pytorch_tanh", "use_bias": True},
        15.958,
    ),
    "starcoder": Published(
        {
            "model_type": "gpt_bigcode",
            "n_embd": 6144,
            "n_layer": 40,
            "n_head": 48,
            "n_inner": 24576,
            "n_positions": 8192,
            "vocab_size": 49152,
            "multi_query": True,
            "torch_dtype": "float16",
        },
        15.518,
        None,
        20480,
    ),
    "command-r-v01": Published(
        _sizes("cohere", 40, 8192, 64, 22528, 256000, **_kv(64)), 34.981
    ),
    "olmo-2-7b": Published(_sizes("olmo2", 32, 4096, 32, 11008, 100352, **_kv(32)), 7.299),
    "glm-4-9b": Published(
        _sizes("glm", 40, 4096, 32, 13696, 151552, **_kv(2, head_dim=128)), 9.400, None, 40960
    ),
    "chatglm3-6b": Published(
        {
            "architectures": ["ChatGLMModel"],
            "model_type": "chatglm",
            "num_layers": 28,
            "hidden_size": 4096,
            "num_attention_heads": 32,
            "kv_channels": 128,
            "multi_query_attention": True,
            "multi_query_group_num": 2,
            "ffn_hidden_size": 13696,
            "padded_vocab_size": 65024,
            "seq_length": 8192,
            "add_qkv_bias": True,
            "add_bias_linear": False,
            "torch_dtype": "float16",
        },
        6.244,
        None,
        28672,
    ),
    "internlm2-20b": Published(
        _sizes("internlm2", 48, 6144, 48, 16384, 92544, **_kv(8), bias=False), 19.861
    ),
    "seed-oss-36b": Published(
        _sizes("seed_oss", 64, 5120, 80, 27648, 155136, **_kv(8, head_dim=128)), 36.151
    ),
}

HYBRID = {
    # Nemotron-H (arXiv 2504.03624): 8 B and 56 B; Nemotron 3 report: 31.6 B with 3.6 B,
    # embeddings counted; 120 B with 12 B.
    "nemotron-h-8b": Published(
        _sizes("nemotron_h", 52, 4096, 32, 21504, 131072, **_kv(8, attention_head_dim=128))
        | {
            "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
            "mlp_hidden_act": "relu2",
            "mamba_num_heads": 128,
            "mamba_head_dim": 64,
            "ssm_state_size": 128,
            "n_groups": 8,
            "conv_kernel": 4,
            "use_conv_bias": True,
        },
        8.10,
        None,
        16384,
    ),
    "nemotron-3-super-120b-a12b": Published(
        _sizes("nemotron_h", 88, 4096, 32, 5376, 131072, **_kv(2, head_dim=128))
        | {
            "hybrid_override_pattern": (
                "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*"
                "EMEMEMEM*EMEMEMEME"
            ),
            "mlp_hidden_act": "relu2",
            "mamba_num_heads": 128,
            "mamba_head_dim": 64,
            "ssm_state_size": 128,
            "n_groups": 8,
            "n_routed_experts": 512,
            "n_shared_experts": 1,
            "num_experts_per_tok": 22,
            "moe_intermediate_size": 2688,
            "moe_shared_expert_intermediate_size": 5376,
            "moe_latent_size": 1024,
        },
        120.6,
        12.7,
        8192,
    ),
    # Granite 4.0 card: H-Small 32 B with 9 B.
    "granite-4.0-h-small": Published(
        _sizes("granitemoehybrid", 40, 4096, 32, 768, 100352, **_kv(8), **_TIED)
        | {
            "layer_types": (["mamba"] * 5 + ["attention"] + ["mamba"] * 4) * 4,
            "mamba_n_heads": 128,
            "mamba_d_head": 64,
            "mamba_d_state": 128,
            "mamba_n_groups": 1,
            "mamba_d_conv": 4,
            "mamba_expand": 2,
            "num_local_experts": 72,
            "num_experts_per_tok": 10,
            "shared_intermediate_size": 1536,
        },
        32.2,
        9.0,
        16384,
    ),
    # Bamba card: 9 B (9.78 in the checkpoint).
    "bamba-9b": Published(
        _sizes("bamba", 32, 4096, 32, 14336, 128256, **_kv(8))
        | {
            "attn_layer_indices": [9, 18, 27],
            "mamba_n_heads": 128,
            "mamba_d_head": "auto",
            "mamba_d_state": 128,
            "mamba_n_groups": 1,
            "mamba_d_conv": 4,
            "mamba_expand": 2,
        },
        9.78,
        None,
        12288,
    ),
}

PUBLISHED = LLAMA | QWEN | GEMMA | EXPERTS | DENSE | HYBRID
