"""Models of selective scans, short convolutions, and attention beside states."""

from __future__ import annotations

from tests.importers.published.forms import TIED, Published, kv, sizes

_SCAN = {"conv_kernel": 4, "expand": 2, "use_bias": False, "use_conv_bias": True}
_JAMBA = {
    "num_experts": 16,
    "num_experts_per_tok": 2,
    "attn_layer_period": 8,
    "attn_layer_offset": 4,
    "expert_layer_period": 2,
    "expert_layer_offset": 1,
    "mamba_d_state": 16,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_conv_bias": True,
    "mamba_proj_bias": False,
}
_H1 = {
    "head_dim": 128,
    "mamba_d_state": 256,
    "mamba_d_head": 128,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_rms_norm": False,
    "mamba_conv_bias": True,
    "mamba_proj_bias": False,
    "projectors_bias": False,
}

STATES = {
    # Mamba (arXiv 2312.00752): 2.8 B as its checkpoint counts. Falcon-Mamba card: 7.27 B.
    "mamba-2.8b": Published(
        {
            "model_type": "mamba",
            "hidden_size": 2560,
            "num_hidden_layers": 64,
            "state_size": 16,
            "time_step_rank": 160,
            "vocab_size": 50280,
            "torch_dtype": "float32",
            **_SCAN,
        },
        2.768,
        None,
        0,
    ),
    "falcon-mamba-7b": Published(
        {
            "model_type": "falcon_mamba",
            "hidden_size": 4096,
            "num_hidden_layers": 64,
            "state_size": 16,
            "time_step_rank": 256,
            "vocab_size": 65024,
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
            **_SCAN,
        },
        7.27,
        None,
        0,
    ),
    # Mamba-2: Mistral's Codestral Mamba card, 7,285,403,648.
    "mamba-codestral-7b": Published(
        {
            "model_type": "mamba2",
            "hidden_size": 4096,
            "num_hidden_layers": 64,
            "state_size": 128,
            "num_heads": 128,
            "head_dim": 64,
            "n_groups": 8,
            "vocab_size": 32768,
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
            **_SCAN,
        },
        7.285,
        None,
        0,
    ),
    # Jamba (arXiv 2403.19887): 52 B with 12 B; Jamba 1.5 (2408.12570): 398 B with 94 B.
    "jamba-v0.1": Published(
        sizes("jamba", 32, 4096, 32, 14336, 65536, **kv(8), mamba_dt_rank=256) | _JAMBA,
        51.6,
        12.1,
        16384,
    ),
    "jamba-1.5-large": Published(
        sizes("jamba", 72, 8192, 64, 24576, 65536, **kv(8), mamba_dt_rank=512) | _JAMBA,
        398.0,
        94.0,
        36864,
    ),
    # LFM2 cards: 1.17 B; 8.3 B with 1.5 B.
    "lfm2-1.2b": Published(
        sizes("lfm2", 16, 2048, 32, 12288, 65536, **kv(8))
        | {
            "block_auto_adjust_ff_dim": True,
            "block_ff_dim": 12288,
            "block_ffn_dim_multiplier": 1.0,
            "block_multiple_of": 256,
            "conv_L_cache": 3,
            "conv_bias": False,
            "full_attn_idxs": [2, 5, 8, 10, 12, 14],
        },
        1.17,
        None,
        12288,
    ),
    "lfm2-8b-a1b": Published(
        sizes("lfm2_moe", 24, 2048, 32, 7168, 65536, **kv(8))
        | {
            "layer_types": [
                "full_attention" if i in {2, 6, 10, 14, 18, 21} else "conv" for i in range(24)
            ],
            "num_experts": 32,
            "num_experts_per_tok": 4,
            "moe_intermediate_size": 1792,
            "num_dense_layers": 2,
            "use_expert_bias": True,
            "conv_L_cache": 3,
            "conv_bias": False,
        },
        8.34,
        1.56,
        12288,
    ),
    # Falcon-H1 (arXiv 2507.22448): 7.59 B and 33.6 B.
    "falcon-h1-7b": Published(
        sizes("falcon_h1", 44, 3072, 12, 12288, 130048, **kv(2), mamba_n_groups=1)
        | _H1
        | {"mamba_d_ssm": 3072, "mamba_n_heads": 24},
        7.59,
        None,
        45056,
    ),
    "falcon-h1-34b": Published(
        sizes("falcon_h1", 72, 5120, 20, 21504, 261120, **kv(4), mamba_n_groups=2)
        | _H1
        | {"mamba_d_ssm": 4096, "mamba_n_heads": 32},
        33.6,
        None,
        147456,
    ),
    # Granite 4.0 cards: H-Tiny 7 B with 1 B; Micro is dense and has attention alone.
    "granite-4.0-h-tiny": Published(
        sizes("granitemoehybrid", 40, 1536, 12, 512, 100352, **kv(4), **TIED)
        | {
            "layer_types": [
                "attention" if i in {5, 15, 25, 35} else "mamba" for i in range(40)
            ],
            "mamba_n_heads": 48,
            "mamba_d_head": 64,
            "mamba_d_state": 128,
            "mamba_n_groups": 1,
            "mamba_d_conv": 4,
            "mamba_expand": 2,
            "num_local_experts": 64,
            "num_experts_per_tok": 6,
            "shared_intermediate_size": 1024,
        },
        6.94,
        None,
        8192,
    ),
    "granite-4.0-micro": Published(
        sizes("granitemoehybrid", 40, 2560, 40, 8192, 100352, **kv(8), **TIED)
        | {
            "layer_types": ["attention"] * 40,
            "num_local_experts": 0,
            "num_experts_per_tok": 0,
            "shared_intermediate_size": 8192,
        },
        3.40,
        None,
        81920,
    ),
}
