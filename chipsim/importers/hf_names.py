"""Names that published configurations give to one and the same thing."""

from __future__ import annotations

ALIASES: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "n_embed", "d_model"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "kv_heads": (
        "num_key_value_heads",
        "num_kv_heads",
        "n_head_kv",
        "num_query_groups",
        "num_attention_groups",
        "multi_query_group_num",
        "attn_config.kv_n_heads",
    ),
    "head_dim": ("head_dim", "attention_head_dim", "kv_channels"),
    "intermediate": ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "d_ff"),
    "vocabulary": ("vocab_size", "padded_vocab_size"),
    "max_positions": (
        "max_position_embeddings",
        "n_positions",
        "max_sequence_length",
        "max_seq_len",
        "seq_length",
        "model_max_length",
    ),
    "activation": (
        "hidden_act",
        "hidden_activation",
        "activation_function",
        "mlp_hidden_act",
        "activation",
        "ffn_config.ffn_act_fn.name",
    ),
    "dtype": ("torch_dtype", "dtype"),
    "experts": (
        "num_experts",
        "num_local_experts",
        "n_routed_experts",
        "moe_num_experts",
        "ffn_config.moe_num_experts",
    ),
    "top_k": (
        "num_experts_per_tok",
        "num_experts_per_token",
        "experts_per_token",
        "moe_topk",
        "moe_top_k",
        "moe_k",
        "top_k_experts",
        "num_selected_experts",
        "ffn_config.moe_top_k",
    ),
    "bare_top_k": ("top_k",),  # of experts, or of sampling in other files
    "expert_width": (
        "moe_intermediate_size",
        "expert_ffn_hidden_size",
        "moe_ffn_hidden_size",
        "ffn_config.ffn_hidden_size",
    ),
    "shared_experts": (
        "n_shared_experts",
        "num_shared_experts",
        "num_shared_expert",
        "moe_num_shared_experts",
    ),
    "shared_width": (
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "shared_intermediate_size",
        "share_expert_dim",
    ),
    "dense_width": ("intermediate_size_mlp",),
    "dense_first": ("first_k_dense_replace", "num_dense_layers", "n_dense_layers"),
    "window": ("sliding_window", "sliding_window_size", "window_size"),
    "window_heads": (
        "swa_num_attention_heads",
        "num_sliding_attention_heads",
        "attention_other_setting.num_attention_heads",
    ),
    "window_kv_heads": (
        "swa_num_key_value_heads",
        "attention_other_setting.num_attention_groups",
    ),
    "window_head_dim": ("swa_head_dim", "attention_other_setting.head_dim"),
    "window_value_dim": ("swa_v_head_dim",),
    "full_head_dim": ("global_head_dim",),
    "full_kv_heads": ("num_global_key_value_heads",),
    "value_dim": ("v_head_dim",),
    "delta_heads": ("linear_num_value_heads",),
    "kda_heads": ("linear_attn_config.num_heads", "linear_num_heads"),
    "kda_head_dim": ("linear_attn_config.head_dim", "linear_head_dim"),
    "linear_conv": (
        "linear_conv_kernel_dim",
        "linear_attn_config.short_conv_kernel_size",
        "short_conv_kernel_size",
    ),
    "nextn": (
        "num_nextn_predict_layers",
        "mtp_num_hidden_layers",
        "num_mtp_modules",
        "mtp_num_layers",
    ),
    "ssm_heads": ("mamba_num_heads", "mamba_n_heads", "n_mamba_heads"),
    "ssm_head_dim": ("mamba_head_dim", "mamba_d_head", "mamba_headdim"),
    "ssm_state": ("ssm_state_size", "mamba_d_state", "state_size"),
    "ssm_groups": ("n_groups", "mamba_n_groups", "mamba_ngroups"),
    "ssm_conv": ("conv_kernel", "mamba_d_conv"),
    "ssm_conv_bias": ("use_conv_bias", "mamba_conv_bias"),
    "ssm_chunk": ("chunk_size", "mamba_chunk_size"),
    "ssm_dtype": ("mamba_ssm_cache_dtype", "mamba_ssm_dtype"),
}
"""What a key means, and the names that published configurations give it."""

OUTER = (
    "tie_word_embeddings",
    "torch_dtype",
    "dtype",
    "quantization_config",
    "compression_config",
)
"""Keys of a nested language model that may stand outside it."""
