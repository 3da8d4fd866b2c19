"""Other sizes and cousins of the families: one line each.

Few state a total beyond what their name rounds; `tests.importers.counted` has what another
program counts, and `test_published` works their cache out from the same numbers.
"""

from __future__ import annotations

from typing import Any

from tests.importers.published.forms import TIED, Published, kv, sizes


def _opt(layers: int, hidden: int, heads: int) -> Published:
    config = sizes("opt", layers, hidden, heads, 0, 50272, max_position_embeddings=2048)
    del config["intermediate_size"]
    config |= {"ffn_dim": 4 * hidden, "word_embed_proj_dim": hidden}
    return Published(config | {"activation_function": "relu"})


def _bloom(layers: int, hidden: int, heads: int) -> Published:
    shape = {"n_layer": layers, "n_embed": hidden, "num_attention_heads": heads}
    return Published(
        {"model_type": "bloom", **shape, "vocab_size": 250880, "torch_dtype": "float16"}
    )


def _gpt2(layers: int, hidden: int, heads: int) -> Published:
    shape = {"n_layer": layers, "n_embd": hidden, "n_head": heads, "n_positions": 1024}
    return Published(
        {"model_type": "gpt2", **shape, "vocab_size": 50257, "torch_dtype": "float16"}
    )


def _pythia(layers: int, hidden: int, heads: int, vocabulary: int = 50304) -> Published:
    return Published(
        sizes("gpt_neox", layers, hidden, heads, 4 * hidden, vocabulary, hidden_act="gelu")
    )


def _falcon(layers: int, hidden: int, heads: int, **more: Any) -> Published:
    config = sizes("falcon", layers, hidden, heads, 0, 65024, bias=False, **more)
    del config["intermediate_size"]
    return Published(config)


_H128 = {"head_dim": 128}
_NEW_FALCON = {"new_decoder_architecture": True, "multi_query": True, "parallel_attn": True}

SIZES = {
    # Llama and what has its shape
    "llama-2-13b": Published(sizes("llama", 40, 5120, 40, 13824, 32000), 13.02),
    "llama-3.2-3b": Published(
        sizes("llama", 28, 3072, 24, 8192, 128256, **kv(8), **_H128, **TIED), 3.21
    ),
    "codellama-34b": Published(sizes("llama", 48, 8192, 64, 22016, 32000, **kv(8)), 33.7),
    "yi-34b": Published(sizes("llama", 60, 7168, 56, 20480, 64000, **kv(8)), 34.4),
    "deepseek-llm-67b": Published(sizes("llama", 95, 8192, 64, 22016, 102400, **kv(8)), 67.4),
    "falcon3-7b": Published(
        sizes("llama", 28, 3072, 12, 23040, 131072, **kv(4, head_dim=256)), 7.46
    ),
    "mistral-small-24b": Published(
        sizes("mistral", 40, 5120, 32, 32768, 131072, **kv(8), **_H128, sliding_window=None),
        23.6,
    ),
    "mistral-large-123b": Published(
        sizes("mistral", 88, 12288, 96, 28672, 32768, **kv(8), **_H128, sliding_window=None),
        122.6,
    ),
    "ministral-8b": Published(
        sizes("mistral", 36, 4096, 32, 12288, 131072, **kv(8), **_H128, sliding_window=32768),
        8.02,
    ),
    "smollm3-3b": Published(sizes("smollm3", 36, 2048, 16, 11008, 128256, **kv(4)), 3.08),
    "granite-3-8b": Published(
        sizes("granite", 40, 4096, 32, 12800, 49155, **kv(8), **TIED), 8.17
    ),
    "internlm3-8b": Published(
        sizes("internlm3", 48, 4096, 32, 10240, 128512, **kv(2), **_H128)
    ),
    "internlm2-7b": Published(
        sizes("internlm2", 32, 4096, 32, 14336, 92544, **kv(8), bias=False), 7.74
    ),
    "baichuan-7b": Published(sizes("baichuan", 32, 4096, 32, 11008, 64000), 7.0),
    "baichuan2-13b": Published(sizes("baichuan", 40, 5120, 40, 13696, 125696), 13.9),
    # Phi, Gemma, Qwen
    "phi-1": Published(sizes("phi", 24, 2048, 32, 8192, 51200, hidden_act="gelu_new")),
    "phi-3-medium": Published(sizes("phi3", 40, 5120, 40, 17920, 32064, **kv(10)), 13.96),
    "phi-4-mini": Published(sizes("phi3", 32, 3072, 24, 8192, 200064, **kv(8), **TIED), 3.84),
    "gemma-2b": Published(sizes("gemma", 18, 2048, 8, 16384, 256000, **kv(1)), 2.506),
    "gemma-2-2b": Published(
        sizes("gemma2", 26, 2304, 8, 9216, 256000, **kv(4, head_dim=256)), 2.614
    ),
    "gemma-2-9b": Published(
        sizes("gemma2", 42, 3584, 16, 14336, 256000, **kv(8, head_dim=256)), 9.242
    ),
    "qwen1.5-moe-a2.7b": Published(
        sizes("qwen2_moe", 24, 2048, 16, 5632, 151936, **kv(16))
        | {
            "num_experts": 60,
            "num_experts_per_tok": 4,
            "moe_intermediate_size": 1408,
            "shared_expert_intermediate_size": 5632,
        },
        14.3,
        2.7,
    ),
    "qwen3-0.6b": Published(
        sizes("qwen3", 28, 1024, 16, 3072, 151936, **kv(8), **_H128, **TIED), 0.596
    ),
    # Falcon, OPT, BLOOM, GPT-2, Pythia, MPT, StarCoder
    "falcon-180b": _falcon(80, 14848, 232, num_kv_heads=8, **_NEW_FALCON),
    "falcon-11b": _falcon(
        60, 4096, 32, num_kv_heads=8, num_ln_in_parallel_attn=1, **_NEW_FALCON
    ),
    "falcon-rw-1b": Published(
        _falcon(24, 2048, 32, multi_query=False, parallel_attn=False).config
        | {"new_decoder_architecture": False, "bias": True, "alibi": True, "vocab_size": 50304}
    ),
    "opt-125m": _opt(12, 768, 12),
    "opt-1.3b": _opt(24, 2048, 32),
    "opt-2.7b": _opt(32, 2560, 32),
    "opt-13b": _opt(40, 5120, 40),
    "opt-30b": _opt(48, 7168, 56),
    "opt-66b": _opt(64, 9216, 72),
    "bloom-560m": _bloom(24, 1024, 16),
    "bloom-1b1": _bloom(24, 1536, 16),
    "bloom-1b7": _bloom(24, 2048, 16),
    "bloom-3b": _bloom(30, 2560, 32),
    "gpt2-medium": _gpt2(24, 1024, 16),
    "gpt2-large": _gpt2(36, 1280, 20),
    "pythia-70m": _pythia(6, 512, 8),
    "pythia-410m": _pythia(24, 1024, 16),
    "pythia-1b": _pythia(16, 2048, 8),
    "pythia-2.8b": _pythia(32, 2560, 32),
    "pythia-6.9b": _pythia(32, 4096, 32, 50432),
    "pythia-12b": _pythia(36, 5120, 40, 50688),
    "gpt-neo-2.7b": Published(
        {
            "model_type": "gpt_neo",
            "hidden_size": 2560,
            "num_layers": 32,
            "num_heads": 20,
            "attention_types": [[["global", "local"], 16]],
            "window_size": 256,
            "intermediate_size": None,
            "vocab_size": 50257,
            "max_position_embeddings": 2048,
            "torch_dtype": "float32",
        }
    ),
    "mpt-30b": Published(
        {
            "model_type": "mpt",
            "d_model": 7168,
            "n_heads": 64,
            "n_layers": 48,
            "expansion_ratio": 4,
            "max_seq_len": 8192,
            "vocab_size": 50432,
            "attn_config": {"alibi": True},
            "torch_dtype": "bfloat16",
        },
        29.96,
    ),
    "starcoder2-3b": Published(sizes("starcoder2", 30, 3072, 24, 12288, 49152, **kv(2)), 3.03),
    "starcoder2-7b": Published(sizes("starcoder2", 32, 4608, 36, 18432, 49152, **kv(4)), 7.17),
    "stablelm-3b": Published(sizes("stablelm", 32, 2560, 32, 6912, 50304, **kv(32)), 2.795),
    "stablelm-2-12b": Published(
        sizes("stablelm", 40, 5120, 32, 13824, 100352, **kv(8))
        | {"use_parallel_residual": True, "qk_layernorm": True},
        12.14,
    ),
    # Cohere, OLMo, GLM, EXAONE, Nemotron, MiniCPM
    "command-r-plus": Published(
        sizes("cohere", 64, 12288, 96, 33792, 256000, **kv(8), use_qk_norm=True), 103.8
    ),
    "command-r7b": Published(
        sizes("cohere2", 32, 4096, 32, 14336, 256000, **kv(8), **_H128), 8.03
    ),
    "command-a": Published(
        sizes("cohere2", 64, 12288, 96, 36864, 256000, **kv(8), **_H128), 111.06
    ),
    "olmo-2-13b": Published(sizes("olmo2", 40, 5120, 40, 13824, 100352, **kv(40)), 13.7),
    "olmo-2-32b": Published(sizes("olmo2", 64, 5120, 40, 27648, 100352, **kv(8)), 32.2),
    "glm-4-32b-0414": Published(sizes("glm4", 61, 6144, 48, 23040, 151552, **kv(2), **_H128)),
    "exaone-3.5-7.8b": Published(
        sizes("exaone", 32, 4096, 32, 14336, 102400, **kv(8), activation_function="silu"), 7.82
    ),
    "exaone-4-32b": Published(
        sizes("exaone4", 64, 5120, 40, 27392, 102400, **kv(8), **_H128)
        | {"sliding_window": 4096, "sliding_window_pattern": "LLLG"},
        32.0,
    ),
    "nemotron-4-340b": Published(
        sizes("nemotron", 96, 18432, 96, 73728, 256000, **kv(8), hidden_act="relu2"), 341.0
    ),
    "minitron-8b": Published(
        sizes("nemotron", 32, 4096, 48, 16384, 256000, **kv(8), **_H128, hidden_act="relu2"),
        8.27,
    ),
    "minicpm3-4b": Published(
        sizes("minicpm3", 62, 2560, 40, 6400, 73448, **kv(40))
        | {
            "q_lora_rank": 768,
            "kv_lora_rank": 256,
            "qk_nope_head_dim": 64,
            "qk_rope_head_dim": 32,
            "v_head_dim": 64,
        },
        4.07,
        None,
        62 * (256 + 32) * 2,
    ),
    # Experts
    "ernie-4.5-21b-a3b": Published(
        sizes("ernie4_5_moe", 28, 2560, 20, 12288, 103424, **kv(4), **_H128, **TIED)
        | {
            "moe_num_experts": 64,
            "moe_k": 6,
            "moe_intermediate_size": 1536,
            "moe_layer_start_index": 1,
            "moe_layer_end_index": 27,
            "moe_layer_interval": 1,
            "moe_num_shared_experts": 2,
        },
        21.8,
    ),
    "granite-3-3b-a800m": Published(
        sizes("granitemoe", 32, 1536, 24, 512, 49155, **kv(8), **TIED)
        | {"num_local_experts": 40, "num_experts_per_tok": 8},
        3.3,
        0.88,
    ),
    # DeepSeekMoE (arXiv 2401.06066): 16.4 B with 2.8 B. Moonlight (2502.16982): 16 B, 3 B.
    "deepseek-moe-16b": Published(
        sizes("deepseek", 28, 2048, 16, 10944, 102400, **kv(16))
        | {
            "n_routed_experts": 64,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
            "moe_intermediate_size": 1408,
            "first_k_dense_replace": 1,
            "moe_layer_freq": 1,
        },
        16.4,
        2.8,
    ),
    "moonlight-16b-a3b": Published(
        sizes("deepseek_v3", 27, 2048, 16, 11264, 163840, **kv(16))
        | {
            "q_lora_rank": None,
            "kv_lora_rank": 512,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "n_routed_experts": 64,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
            "moe_intermediate_size": 1408,
            "first_k_dense_replace": 1,
            "topk_method": "noaux_tc",
        },
        15.96,
        None,
        27 * 576 * 2,
    ),
}
