"""Other dense models: published configurations with their published sizes."""

from __future__ import annotations

from tests.importers.published.forms import Published, kv, sizes

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
    "phi-2": Published(sizes("phi", 32, 2560, 32, 10240, 51200, hidden_act="gelu_new"), 2.780),
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
        sizes("gpt_neox", 44, 6144, 64, 24576, 50432, hidden_act="gelu_fast"), 20.555
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
        sizes("starcoder2", 40, 6144, 48, 24576, 49152, **kv(4), tie_word_embeddings=False)
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
    "command-r-v01": Published(sizes("cohere", 40, 8192, 64, 22528, 256000, **kv(64)), 34.981),
    "olmo-2-7b": Published(sizes("olmo2", 32, 4096, 32, 11008, 100352, **kv(32)), 7.299),
    "glm-4-9b": Published(
        sizes("glm", 40, 4096, 32, 13696, 151552, **kv(2, head_dim=128)), 9.400, None, 40960
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
        sizes("internlm2", 48, 6144, 48, 16384, 92544, **kv(8), bias=False), 19.861
    ),
    "seed-oss-36b": Published(
        sizes("seed_oss", 64, 5120, 80, 27648, 155136, **kv(8, head_dim=128)), 36.151
    ),
}
