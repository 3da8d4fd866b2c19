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
        ("bfp8", 1.0625), ("fp8-block", 1 + 4 / 16384), ("int4-g128", 0.515625),
        ("int4-g32", 0.5625), ("int8-g64", 1.03125), ("w2.5", 0.3125), ("w3.5", 0.4375),
        ("w1.58", 0.1975), ("w1", 0.125), ("w4.5", 0.5625),
    ],
)  # fmt: skip
def test_bytes_include_the_scales(name: str, size: float) -> None:
    assert get_format(name).bytes == size


def test_the_table_above_is_complete() -> None:
    assert len(FORMATS) == 12


def test_a_seventy_billion_model_in_low_bits() -> None:
    # Llama-2-70B, 68.98 B parameters: 35.6 GB with int4 groups of 128, 13.6 GB ternary
    parameters = 68_976_648_192
    assert parameters * get_format("int4-g128").bytes == pytest.approx(35.57e9, rel=1e-3)
    assert parameters * get_format("w1.58").bytes == pytest.approx(13.62e9, rel=1e-3)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_scales_cost_a_scaling_more(name: str) -> None:
    assert get_format(name).unpack_flops == (2.0 if FORMATS[name].scale_bits else 1.0)


def test_a_latent_row_in_two_formats() -> None:
    # 512 latent in nvfp4 and 64 rotary in fp8: 352 B; all fp8: 576 B
    assert 512 * get_format("nvfp4").bytes + 64 * get_format("fp8").bytes == 352
    assert 576 * get_format("fp8").bytes == 576


@pytest.mark.parametrize(
    "name",
    ["fp17", "", "FP16", None, ["fp16"], "w0", "w33", "w2.", "w-1", "wnan", "int4-g0",
     "int3-g8", "int4-g", "w2.5x", "w\u0662"],
)  # fmt: skip
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


def test_a_weight_only_format_leaves_the_rest_alone() -> None:
    assert Precision.parse("w2.5") == Precision(weights="w2.5")
    assert Precision.parse("int4-g32").activations == "int4-g32"


def test_the_cached_row_may_be_split() -> None:
    split = Precision.parse("kv=nvfp4,kv_rotary=fp8")
    row = 512 * get_format(split.kv).bytes + 64 * get_format(split.rotary).bytes
    assert row == 352
    assert Precision(kv="fp8").rotary == "fp8"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("fp17", "weights"),
        ("weights=fp17", "weights"),
        ("weight=fp8", "weight=fp8"),
        ("weights=fp8,weights=fp8", "weights"),
        ("weights=fp8,bf16", "bf16"),
        ("", "weights"),
        ("activations=w2.5", "activations: 'w2.5' is not allowed; allowed: one of fp32"),
        ("kv=w4", "kv"),
        ("kv_rotary=w4", "kv_rotary"),
        ("accumulate=fp8", "one of fp32, tf32, bf16, fp16"),
        ("weights=w99", "wX (weights only, X bits each)"),
    ],
)
def test_bad_precision_is_one_line(text: str, named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Precision.parse(text)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)
