"""Layers of different widths: the ``block_configs`` of Nemotron's searched models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipsim.importers.hf_attention import Heads, Part
    from chipsim.importers.hf_fields import Fields

ROUNDED_TO = 256
"""Widths of an MLP are whole multiples of this."""


def searched_layers(
    fields: Fields, layers: int, sizes: Heads
) -> tuple[list[Part | None], list[Part | None]] | None:
    """Mixer and MLP of every layer, or None where the layers are not searched ones.

    Raises
    ------
    ConfigError
        Another number of blocks than layers, or one that is replaced by a linear map.
    """
    blocks = fields.items("block_configs")
    if blocks is None:
        return None
    if len(blocks) != layers:
        allowed = f"{layers} entries, one per layer"
        raise fields.wrong("block_configs", f"{len(blocks)} entries", allowed)
    pairs = [_block(fields, index, block, sizes) for index, block in enumerate(blocks)]
    return [mixer for mixer, _ in pairs], [mlp for _, mlp in pairs]


def _block(
    fields: Fields, index: int, block: Any, sizes: Heads
) -> tuple[Part | None, Part | None]:
    path = f"block_configs.{index}"
    attention = _half(fields, f"{path}.attention", block, "attention")
    ffn = _half(fields, f"{path}.ffn", block, "ffn")
    mixer = None if attention.get("no_op") else _attention(fields, path, attention, sizes)
    return mixer, None if ffn.get("no_op") else _ffn(fields, path, ffn)


def _half(fields: Fields, path: str, block: Any, key: str) -> dict[str, Any]:
    part = block.get(key) if isinstance(block, dict) else None
    if not isinstance(part, dict):
        raise fields.wrong(path, part, "a JSON object")
    if part.get("replace_with_linear"):
        allowed = "false: blocks replaced by a linear map are not modelled"
        raise fields.wrong(f"{path}.replace_with_linear", True, allowed)
    return part


def _attention(fields: Fields, path: str, part: dict[str, Any], sizes: Heads) -> Part:
    """Attention whose query heads share key and value heads in groups of a size."""
    key = f"{path}.attention.n_heads_in_group"
    group = fields.checked(key, part.get("n_heads_in_group", 1), sizes.heads)
    if sizes.heads % group:
        raise fields.wrong(key, group, f"a divisor of the {sizes.heads} heads")
    return {"kv_heads": sizes.heads // group}


def _ffn(fields: Fields, path: str, part: dict[str, Any]) -> Part:
    """An MLP of a width, or of a multiple of 2/3 of the hidden size."""
    if part.get("intermediate_size") is not None:
        width = fields.checked(f"{path}.ffn.intermediate_size", part["intermediate_size"])
        return {"kind": "dense", "intermediate": width}
    key, ratio = f"{path}.ffn.ffn_mult", part.get("ffn_mult")
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio < 1000:
        raise fields.wrong(key, ratio, "a number above 0")
    width = int(2 * ratio * fields.whole("hidden") / 3)
    return {"kind": "dense", "intermediate": -(-width // ROUNDED_TO) * ROUNDED_TO}
