"""Models of recurrent layers: published configurations with their published sizes."""

from __future__ import annotations

from tests.importers.published.forms import TIED, Published, kv, sizes

HYBRID = {
    # Nemotron-H (arXiv 2504.03624): 8 B and 56 B; Nemotron 3 report: 31.6 B with 3.6 B,
    # embeddings counted; 120 B with 12 B.
    "nemotron-h-8b": Published(
        sizes("nemotron_h", 52, 4096, 32, 21504, 131072, **kv(8, attention_head_dim=128))
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
        sizes("nemotron_h", 88, 4096, 32, 5376, 131072, **kv(2, head_dim=128))
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
        sizes("granitemoehybrid", 40, 4096, 32, 768, 100352, **kv(8), **TIED)
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
        sizes("bamba", 32, 4096, 32, 14336, 128256, **kv(8))
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
