"""What a sequence keeps between steps: rows per token, bounded by windows, and states.

`layer_cache` is the one place that knows; memory, hand-off and reports sum it up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from chipsim.ops.formats import get_format
from chipsim.ops.layers import Compressed, Grouped, Latent, Layer, Linear, Scan, ShortConv
from chipsim.ops.parameters import kv_heads_per_chip

if TYPE_CHECKING:
    from chipsim.ops.model import ModelSpec
    from chipsim.ops.precision import Precision

CachePart = Literal["kv", "latent", "rotary", "indexer"]
"""Kinds of cached rows: keys and values; latent and rotary part of MLA; indexer keys."""


@dataclass(frozen=True, slots=True)
class LayerCache:
    """What one layer keeps of one sequence on one chip.

    Attributes
    ----------
    rows : tuple of (CachePart, int)
        Elements that one token adds, by kind.
    window : int
        Tokens that are kept at most (0: all).
    state_bytes : float
        Bytes that do not grow with the sequence: recurrent state and convolution tail.
    also : LayerCache, optional
        Rows of the same layer that another window bounds.
    """

    rows: tuple[tuple[CachePart, int], ...] = ()
    window: int = 0
    state_bytes: float = 0.0
    also: LayerCache | None = None

    @property
    def each(self) -> tuple[LayerCache, ...]:
        """These rows and, where there are some, those that another window bounds."""
        return (self,) if self.also is None else (self, *self.also.each)

    @property
    def elements(self) -> int:
        """Elements that one token adds."""
        return sum(count for part in self.each for _, count in part.rows)

    def row_bytes(self, precision: Precision) -> float:
        """Bytes that one token adds, while no window is full."""
        return sum(part.own_bytes(precision) for part in self.each)

    def own_bytes(self, precision: Precision) -> float:
        """Bytes that one token adds to the rows of this window."""
        return sum(count * part_bytes(precision, part) for part, count in self.rows)

    def bytes(self, precision: Precision, tokens: int) -> float:
        """Bytes of a sequence of ``tokens`` tokens."""
        return sum(
            (min(tokens, part.window) if part.window else tokens) * part.own_bytes(precision)
            + part.state_bytes
            for part in self.each
        )


def layer_cache(layer: Layer, tp: int = 1, activations: str = "fp16") -> LayerCache:
    """Cache of one layer on one of ``tp`` chips.

    KV heads are split, and replicated beyond one per chip; the rows of latent attention
    and of its indexer are whole on every chip; states are split by heads.
    """
    mixer = layer.mixer
    if isinstance(mixer, Grouped):
        state = 0.0 if mixer.beside is None else state_bytes(mixer.beside, tp, activations)
        if mixer.shares_cache:
            return LayerCache(state_bytes=state)
        elements = kv_heads_per_chip(mixer, tp) * (mixer.head_dim + mixer.value_dim)
        return LayerCache((("kv", elements),), mixer.window, state)
    if isinstance(mixer, Latent):
        rows: tuple[tuple[CachePart, int], ...]
        rows = (("latent", mixer.kv_lora_rank), ("rotary", mixer.qk_rope_head_dim))
        if mixer.indexer is not None:
            rows += (("indexer", mixer.indexer.head_dim),)
        return LayerCache(rows)
    if isinstance(mixer, Compressed):
        return _compressed_cache(mixer, activations)
    if isinstance(mixer, Linear | Scan | ShortConv):
        return LayerCache(state_bytes=state_bytes(mixer, tp, activations))
    return LayerCache()


def _compressed_cache(mixer: Compressed, activations: str) -> LayerCache:
    """Whole rows within the window, beside them a row for every ``ratio`` tokens.

    Until as many tokens are there, their keys and gates wait (twice as many where a row is
    made of two neighbours' tokens).
    """
    recent = LayerCache((("kv", mixer.head_dim),), mixer.window)
    if not mixer.ratio:
        return recent
    rows: tuple[tuple[CachePart, int], ...] = (("kv", mixer.head_dim // mixer.ratio),)
    width = mixer.head_dim
    if mixer.indexer is not None:
        rows += (("indexer", mixer.indexer.head_dim // mixer.ratio),)
        width += mixer.indexer.head_dim
    waiting = 2 * mixer.ratio * width * (3 if mixer.overlaps else 1)
    return LayerCache(rows, 0, waiting * get_format(activations).bytes, recent)


def state_bytes(
    mixer: Linear | Scan | ShortConv, tp: int = 1, activations: str = "fp16"
) -> float:
    """Recurrent state and the last inputs of the convolution, of one sequence and chip."""
    heads, state = mixer.heads // tp, 0.0
    channels = heads
    if isinstance(mixer, Linear):
        keys = max(1, mixer.key_heads // tp) * mixer.key_dim
        channels = 2 * keys + heads * mixer.value_dim
        state = heads * mixer.key_dim * mixer.value_dim * get_format(mixer.state_format).bytes
    elif isinstance(mixer, Scan):
        state = heads * mixer.state * get_format(mixer.state_format).bytes
    tail = channels * max(0, mixer.conv - 1) * get_format(activations).bytes
    return state + tail


def part_bytes(precision: Precision, part: CachePart) -> float:
    """Bytes of one cached element of a kind."""
    chosen = getattr(precision, f"kv_{part}", None) or precision.kv
    return get_format(chosen).bytes


def row_elements(model: ModelSpec, tp: int = 1) -> int:
    """Elements that one token adds over all layers, while no window is full."""
    return sum(group.count * layer_cache(group.layer, tp).elements for group in model.groups)


def row_bytes(model: ModelSpec, precision: Precision, tp: int = 1) -> float:
    """Bytes that one token adds over all layers on one chip, while no window is full."""
    return sum(
        group.count * layer_cache(group.layer, tp).row_bytes(precision)
        for group in model.groups
    )


def sequence_bytes(model: ModelSpec, precision: Precision, tokens: int, tp: int = 1) -> float:
    """Bytes of a sequence of ``tokens`` over all layers on one chip: rows and states."""
    return sum(
        group.count
        * layer_cache(group.layer, tp, precision.activations).bytes(precision, tokens)
        for group in model.groups
    )
