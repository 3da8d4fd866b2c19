"""Llama, Mistral, Phi: published configurations with their published sizes."""

from __future__ import annotations

from tests.importers.published.forms import TIED, Published, kv, sizes

LLAMA = {
    # Llama 2 and 3 papers (arXiv 2307.09288, 2407.21783); sizes of the checkpoints.
    "llama-2-7b": Published(sizes("llama", 32, 4096, 32, 11008, 32000), 6.738, None, 524288),
    "llama-2-70b": Published(
        sizes("llama", 80, 8192, 64, 28672, 32000, **kv(8)), 68.977, None, 327680
    ),
    "llama-3.1-8b": Published(
        sizes("llama", 32, 4096, 32, 14336, 128256, **kv(8)), 8.030, None, 131072
    ),
    "llama-3.1-70b": Published(
        sizes("llama", 80, 8192, 64, 28672, 128256, **kv(8)), 70.554, None, 327680
    ),
    "llama-3.1-405b": Published(
        sizes("llama", 126, 16384, 128, 53248, 128256, **kv(8)), 405.85, None, 516096
    ),
    "llama-3.2-1b": Published(
        sizes("llama", 16, 2048, 32, 8192, 128256, **kv(8, head_dim=64), **TIED), 1.236
    ),
    # Mistral's cards and checkpoints.
    "mistral-7b-v0.3": Published(
        sizes("mistral", 32, 4096, 32, 14336, 32768, **kv(8), sliding_window=None), 7.248
    ),
    "mistral-nemo": Published(
        sizes(
            "mistral", 40, 5120, 32, 14336, 131072, **kv(8, head_dim=128), sliding_window=None
        ),
        12.248,
        None,
        163840,
    ),
    "mixtral-8x7b": Published(
        sizes("mixtral", 32, 4096, 32, 14336, 32000, **kv(8))
        | {"num_local_experts": 8, "num_experts_per_tok": 2},
        46.703,
        12.880,
        131072,
    ),
    "mixtral-8x22b": Published(
        sizes("mixtral", 56, 6144, 48, 16384, 32768, **kv(8))
        | {"num_local_experts": 8, "num_experts_per_tok": 2},
        140.63,
        39.1,
    ),
    # Phi-3 report (arXiv 2404.14219), Phi-4 report (2412.08905), Phi-3.5 card.
    "phi-3-mini": Published(sizes("phi3", 32, 3072, 32, 8192, 32064, **kv(32)), 3.821),
    "phi-4": Published(sizes("phi3", 40, 5120, 40, 17920, 100352, **kv(10)), 14.660),
    "phi-3.5-moe": Published(
        sizes("phimoe", 32, 4096, 32, 6400, 32064, **kv(8), attention_bias=True)
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
            "text_config": sizes("llama4_text", 48, 5120, 40, 8192, 202048, **kv(8))
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
