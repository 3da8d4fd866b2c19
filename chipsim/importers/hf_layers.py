"""Which layer of a model is what: attention of any kind, windowed, recurrent, experts.

Every way in which configurations say so ends in one list with an entry per layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from chipsim.importers.hf_fields import MOST_LAYERS

if TYPE_CHECKING:
    from chipsim.importers.hf_fields import Fields

Kind: TypeAlias = Literal["full", "window", "linear", "none"]
"""What mixes tokens in a layer."""
Block: TypeAlias = Literal["full", "window", "linear", "mlp", "moe"]

WORDS: dict[str, Kind] = {
    "full_attention": "full",
    "attention": "full",
    "indexed_attention": "full",
    "global": "full",
    "global_attention": "full",
    "sliding_attention": "window",
    "sliding_window": "window",
    "chunked_attention": "window",
    "local": "window",
    "local_attention": "window",
    "linear_attention": "linear",
    "mamba": "linear",
    "mamba2": "linear",
    "conv": "linear",
}
"""Words of ``layer_types``."""
BLOCKS: dict[str, Block] = {
    "M": "linear",
    "*": "full",
    "-": "mlp",
    "E": "moe",
    "mamba": "linear",
    "linear_attention": "linear",
    "attention": "full",
    "full_attention": "full",
    "mlp": "mlp",
    "moe": "moe",
}
"""Letters of Nemotron-H's pattern, and the words of its newer list."""
MIXERS: dict[Block, Kind] = {"full": "full", "window": "window", "linear": "linear"}
"""Blocks that mix tokens."""
TYPE_LISTS = ("layer_types", "layers_block_type", "mixer_types", "attention_layers")


def attention_kinds(fields: Fields, layers: int) -> list[Kind]:
    """What mixes tokens in each layer, by the first key that says it."""
    for read in (_by_words, _by_marks, _by_indices, _by_interval, _by_window):
        kinds = read(fields, layers)
        if kinds is not None:
            return kinds
    return ["full"] * layers


def single_blocks(fields: Fields, layers: int) -> list[Block]:
    """The one block of each layer of a model whose layers have one each (Nemotron-H).

    Raises
    ------
    ConfigError
        No pattern, another length than the layers, or an unknown letter.
    """
    name = "hybrid_override_pattern"
    pattern = fields.text(name)
    if pattern is not None:
        words: list[Any] = list(pattern)
    else:
        name = "layers_block_type"
        words = fields.items(name) or []
        if not words:
            raise fields.wrong("hybrid_override_pattern", None, "the key is required")
    fields.one_of(name, words, list(BLOCKS))
    same_length(fields, name, words, layers)
    return [BLOCKS[word] for word in words]


def _by_words(fields: Fields, layers: int) -> list[Kind] | None:
    for name in TYPE_LISTS:
        words = fields.items(name)
        if words is None:
            continue
        fields.one_of(name, words, list(WORDS))
        same_length(fields, name, words, layers)
        return [WORDS[word] for word in words[:layers]]
    return None


def _by_marks(fields: Fields, layers: int) -> list[Kind] | None:
    """Lists of 0 and 1: MiMo marks windows, MiniMax marks softmax attention."""
    meanings: tuple[tuple[str, Kind, Kind], ...] = (
        ("hybrid_layer_pattern", "full", "window"),
        ("attn_type_list", "linear", "full"),
    )
    for name, zero, one in meanings:
        marks = fields.numbers(name, 1)
        if marks is not None:
            same_length(fields, name, marks, layers)
            return [one if mark else zero for mark in marks[:layers]]
    if fields.has("no_rope_layer_interval"):
        return _chunked(fields, layers)
    return None


def _chunked(fields: Fields, layers: int) -> list[Kind]:
    """Llama 4: layers without rotary positions see everything, the others a chunk."""
    if fields.maybe("attention_chunk_size") is None:
        return ["full"] * layers
    rotary = fields.numbers("no_rope_layers", 1)
    if not rotary:
        every = fields.whole("no_rope_layer_interval", MOST_LAYERS)
        return _every(layers, every, "window")
    same_length(fields, "no_rope_layers", rotary, layers)
    return ["window" if marked else "full" for marked in rotary]


def _by_indices(fields: Fields, layers: int) -> list[Kind] | None:
    if (linear := fields.mapping("linear_attn_config")) is not None:  # Kimi Linear
        marked = fields.numbers("linear_attn_config.full_attn_layers")
        if marked is None:
            key = "linear_attn_config.full_attn_layers"
            raise fields.wrong(key, linear.get("full_attn_layers"), "the key is required")
        return _where(layers, {index - 1 for index in marked}, "linear")
    for name in ("attn_layer_indices", "full_attn_idxs"):
        marked = fields.numbers(name)
        if marked is not None:
            return _where(layers, set(marked), "linear")
    return None


def _by_interval(fields: Fields, layers: int) -> list[Kind] | None:
    if (period := fields.maybe("attn_layer_period", MOST_LAYERS)) is not None:  # Jamba
        offset = fields.maybe("attn_layer_offset", MOST_LAYERS, 0) or 0
        return _where(layers, set(range(offset, layers, period)), "linear")
    every = fields.maybe("full_attention_interval", MOST_LAYERS)
    if every is not None:
        return _every(layers, every, "linear")
    key, pattern = fields.find("sliding_window_pattern")
    if not fields.has("window") or pattern is None:
        return None
    if isinstance(pattern, str):  # EXAONE: "LLLG"
        if not pattern or set(pattern) - {"L", "G"}:
            raise fields.wrong(key, pattern, "letters L (window) and G (all)")
        return ["window" if pattern[i % len(pattern)] == "L" else "full" for i in range(layers)]
    return _every(layers, fields.checked(key, pattern, MOST_LAYERS), "window")


def _by_window(fields: Fields, layers: int) -> list[Kind] | None:
    """One window for all layers, or Qwen2's for the last ones."""
    if not fields.has("window") or fields.raw("window") == 0:
        return None
    if fields.has("use_sliding_window"):
        if not fields.flag("use_sliding_window"):
            return None
        first = fields.whole("max_window_layers", MOST_LAYERS, 0)
        return ["window" if i >= first else "full" for i in range(layers)]
    return ["window"] * layers


def expert_layers(fields: Fields, layers: int) -> list[bool]:
    """Whether each layer has routed experts, in a model that has some."""
    for read in (_moe_lists, _moe_from_first, _moe_interleaved):
        marks = read(fields, layers)
        if marks is not None:
            return marks
    return [True] * layers


def _moe_lists(fields: Fields, layers: int) -> list[bool] | None:
    words = fields.items("mlp_layer_types")
    if words is not None:
        fields.one_of("mlp_layer_types", words, ("dense", "sparse", "moe"))
        same_length(fields, "mlp_layer_types", words, layers)
        return [word != "dense" for word in words[:layers]]
    if isinstance(fields.raw("moe_layer_freq"), list):
        marks = fields.numbers("moe_layer_freq", 1) or []
        same_length(fields, "moe_layer_freq", marks, layers)
        return [mark == 1 for mark in marks[:layers]]
    indices = fields.numbers("moe_layers")
    if (text := fields.text("moe_layers_enum")) is not None:  # Step 3: "3,4,5"
        parts = text.split(",")
        if not all(part.strip().isdecimal() for part in parts):
            raise fields.wrong("moe_layers_enum", text, "indices of layers, with commas")
        indices = [int(part) for part in parts]
    return None if indices is None else [i in set(indices) for i in range(layers)]


def _moe_from_first(fields: Fields, layers: int) -> list[bool] | None:
    first = fields.maybe("dense_first", MOST_LAYERS, 0)
    if first is not None and first > layers:
        key, value = fields.find("dense_first")
        raise fields.wrong(key, value, f"at most the {layers} layers")
    if first is None and not fields.has("moe_layer_freq"):
        return None
    every = fields.maybe("moe_layer_freq", MOST_LAYERS) or 1
    return [i >= (first or 0) and i % every == 0 for i in range(layers)]


def _moe_interleaved(fields: Fields, layers: int) -> list[bool] | None:
    if (start := fields.raw("moe_layer_start_index")) is not None:  # ERNIE
        first = fields.checked("moe_layer_start_index", _least(start), MOST_LAYERS, 0)
        last = fields.maybe("moe_layer_end_index", MOST_LAYERS, -1)
        last = layers - 1 if last is None or last < 0 else last
        every = fields.maybe("moe_layer_interval", MOST_LAYERS) or 1
        return [first <= i <= last and (i + 1) % every == 0 for i in range(layers)]
    if (period := fields.maybe("expert_layer_period", MOST_LAYERS)) is not None:
        offset = fields.maybe("expert_layer_offset", MOST_LAYERS, 0) or 0
        return [i % period == offset for i in range(layers)]
    step = fields.maybe("interleave_moe_layer_step", MOST_LAYERS)
    for name in ("decoder_sparse_step", "moe_layer_frequency"):
        step = fields.maybe(name, MOST_LAYERS) if step is None else step
    if step is None:
        return None
    dense = set(fields.numbers("mlp_only_layers") or ())
    return [i not in dense and (i + 1) % step == 0 for i in range(layers)]


def _least(value: Any) -> Any:
    """The smallest of a list (ERNIE gives one per modality), or the value itself."""
    return min(value) if isinstance(value, list) and value else value


def _every(layers: int, every: int, others: Kind) -> list[Kind]:
    return ["full" if (i + 1) % every == 0 else others for i in range(layers)]


def _where(layers: int, full: set[int], others: Kind) -> list[Kind]:
    return ["full" if i in full else others for i in range(layers)]


def same_length(fields: Fields, name: str, values: list[Any], layers: int) -> None:
    """As many entries as layers; those of multi-token prediction may follow."""
    extra = fields.maybe("nextn", MOST_LAYERS, 0) or 0
    if not layers <= len(values) <= layers + extra:
        key = fields.find(name)[0]
        raise fields.wrong(key, f"{len(values)} entries", f"{layers} entries, one per layer")
