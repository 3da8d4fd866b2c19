"""Bytes of formats, and how precisions are written."""

from __future__ import annotations

import pytest

from chipsim.errors import ConfigError, UnknownNameError
from chipsim.ops.formats import FORMATS, get_format
from chipsim.ops.precision import Precision


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("fp32", 4), ("tf32", 4), ("bf16", 2), ("fp16", 2), ("fp8", 1), ("int8", 1),
        ("int4", 0.515625), ("mxfp8", 1.03125), ("mxfp4", 0.53125), ("nvfp4", 0.5625),
        ("bfp8", 1.0625),
    ],
)  # fmt: skip
def test_bytes_include_the_scales(name: str, size: float) -> None:
    assert get_format(name).bytes == size


def test_the_table_above_is_complete() -> None:
    assert len(FORMATS) == 11


def test_a_latent_row_in_two_formats() -> None:
    # 512 latent in nvfp4 and 64 rotary in fp8: 352 B; all fp8: 576 B
    assert 512 * get_format("nvfp4").bytes + 64 * get_format("fp8").bytes == 352
    assert 576 * get_format("fp8").bytes == 576


@pytest.mark.parametrize("name", ["fp17", "", "FP16", None, ["fp16"]])
def test_unknown_format(name: object) -> None:
    with pytest.raises(UnknownNameError, match="unknown format"):
        get_format(name)  # type: ignore[arg-type]


def test_one_word_sets_all_but_the_sums() -> None:
    fp8 = Precision(weights="fp8", activations="fp8", kv="fp8", accumulate="fp32")
    assert Precision.parse("fp8") == fp8


def test_parts_keep_their_defaults() -> None:
    mixed = Precision.parse("weights=fp8, kv=int8")
    assert (mixed.weights, mixed.activations, mixed.kv) == ("fp8", "fp16", "int8")
    assert hash(mixed) == hash(Precision(weights="fp8", kv="int8"))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("fp17", "weights"),
        ("weights=fp17", "weights"),
        ("weight=fp8", "weight=fp8"),
        ("weights=fp8,weights=fp8", "weights"),
        ("weights=fp8,bf16", "bf16"),
        ("", "weights"),
    ],
)
def test_bad_precision_is_one_line(text: str, named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Precision.parse(text)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)
