"""Closed forms of operators against counting loops and hand-made numbers."""

from __future__ import annotations

import math
import pickle
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipsim.errors import ChipsimError, ConfigError, UnknownNameError
from chipsim.ops.operators import (
    Activation,
    AllReduce,
    Attention,
    Elementwise,
    Gemm,
    Norm,
    Operator,
    Softmax,
    attention_pairs,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (1, 2, 3, 7, 13, 127, 128)
ONE_OF_EACH: list[Operator] = [
    Gemm("gemm", 3, 5, 7),
    Gemm("scores", 3, 5, 7, batch=2, b_is_weight=False),
    Attention("attention", 2, 8, 4, 16, 16, 3, 11),
    Softmax("softmax", 5, 7),
    Norm("norm", 5, 7),
    Activation("gelu", 35),
    Elementwise("residual", 35, reads=2, flops_per_element=1),
    AllReduce("sum", 1024, 8),
]


def seen_pairs(query: int, context: int, causal: bool, window: int) -> int:
    """Count (query, key) pairs one by one: the oracle of `attention_pairs`."""
    count = 0
    for position in range(context - query, context):
        for key in range(context):
            future = causal and key > position
            too_old = window > 0 and key <= position - window
            count += not future and not too_old
    return count


def seen_keys(query: int, context: int, window: int) -> int:
    first = context - query
    return sum(
        any(key <= p and (not window or key > p - window) for p in range(first, context))
        for key in range(context)
    )


@pytest.mark.parametrize(("m", "n", "k"), list(product((1, 3, 128, 257), repeat=3)))
def test_gemm_counts_multiply_accumulates(m: int, n: int, k: int) -> None:
    gemm = Gemm("g", m, n, k, batch=3, a_format="fp16", b_format="fp8", c_format="fp32")
    assert gemm.flops == 2 * 3 * m * n * k
    assert gemm.bytes == 3 * (2 * m * k + k * n + 4 * m * n)


def test_gemv_of_the_case_book() -> None:
    # 1 x 12288 x 12288 fp16: 302,039,040 bytes
    assert Gemm("g", 1, 12288, 12288).bytes == 302_039_040


def test_scales_count_as_bytes() -> None:
    plain = Gemm("g", 1, 32, 64, b_format="fp8").bytes
    scaled = Gemm("g", 1, 32, 64, b_format="mxfp8").bytes
    assert scaled - plain == 32 * 64 / 32


@pytest.mark.parametrize("context", range(1, 14))
def test_causal_and_windowed_pairs_match_a_loop(context: int) -> None:
    for query, window in product(range(1, context + 1), range(context + 3)):
        assert attention_pairs(query, context, True, window) == seen_pairs(
            query, context, True, window
        )
        operator = Attention("a", 1, 1, 1, 1, 1, query, context, window=window)
        assert operator.keys == seen_keys(query, context, window)


@pytest.mark.parametrize("context", [1, 2, 5, 7])
def test_pairs_without_a_mask_match_a_loop(context: int) -> None:
    for query in range(1, context + 1):
        assert attention_pairs(query, context, False) == seen_pairs(query, context, False, 0)


@pytest.mark.parametrize("tokens", [1, 2, 17, 1024, 4099])
def test_causal_prefill_flops(tokens: int) -> None:
    heads, width = 12, 64
    flops = Attention("a", 1, heads, 4, width, width, tokens, tokens).flops
    assert flops == 2 * heads * width * tokens * (tokens + 1)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    st.lists(st.integers(1, 200), min_size=1, max_size=6),
    st.one_of(st.just(0), st.integers(1, 300)),
)
def test_chunks_add_up_to_the_whole(chunks: list[int], window: int) -> None:
    total = sum(chunks)
    ends = [sum(chunks[: i + 1]) for i in range(len(chunks))]
    parts = [
        Attention("a", 3, 8, 2, 32, 32, c, end, window=window).flops
        for c, end in zip(chunks, ends, strict=True)
    ]
    assert sum(parts) == Attention("a", 3, 8, 2, 32, 32, total, total, window=window).flops


def test_decode_moves_kv_heads_not_query_heads() -> None:
    few = Attention("a", 4, 64, 8, 128, 128, 1, 1000)
    many = Attention("a", 4, 64, 64, 128, 128, 1, 1000)
    queries = 4 * 64 * 2 * 128 * 2
    assert few.bytes - queries == 4 * 1000 * 2 * 8 * 128 * 2
    assert many.bytes - queries == 8 * (few.bytes - queries)
    assert few.flops == many.flops == 4 * 64 * 128 * 1000 * 4


def test_fused_attention_never_moves_the_square() -> None:
    one, two = (Attention("a", 1, 8, 8, 64, 64, s, s).bytes for s in (1000, 2000))
    assert two == 2 * one


def test_value_width_may_differ_and_defaults_to_the_keys() -> None:
    wide = Attention("a", 1, 2, 1, 192, 128, 5, 5)
    assert wide.flops == 2 * 2 * (192 + 128) * 15
    assert wide.bytes == 2 * (5 * 2 * 320 + 5 * 320)
    assert Attention("a", 1, 2, 1, 192).value_dim == 192


@pytest.mark.parametrize(("rows", "columns"), list(product(SIZES, (1, 5, 128))))
def test_vector_operators_count_elements(rows: int, columns: int) -> None:
    n = rows * columns
    softmax = Softmax("s", rows, columns, "fp32")
    assert (softmax.flops, softmax.exponentials, softmax.bytes) == (10 * n, 3 * n, 8 * n)
    assert (Norm("n", rows, columns).flops, Norm("n", rows, columns).bytes) == (7 * n, 4 * n)
    assert Norm("n", rows, columns, statistic="rmsnorm").flops == 4 * n
    gelu, silu = Activation("g", n), Activation("s", n, "bf16", "silu", gated=True)
    assert (gelu.flops, gelu.exponentials, gelu.bytes) == (7 * n, n, 4 * n)
    assert (silu.flops, silu.exponentials, silu.bytes) == (4 * n, n, 6 * n)
    assert Activation("r", n, function="relu").exponentials == 0
    residual = Elementwise("r", n, "fp16", 2, 1, 1)
    assert (residual.flops, residual.bytes) == (n, 6 * n)


def test_all_reduce_is_its_bytes() -> None:
    assert AllReduce("r", 1e8, 8).bytes == 1e8
    assert AllReduce("r", 10, 1).flops == 0.0


@pytest.mark.parametrize("operator", ONE_OF_EACH, ids=lambda o: o.name)
def test_operators_are_values(operator: Operator) -> None:
    twin = pickle.loads(pickle.dumps(operator))  # noqa: S301 - our own bytes
    assert twin == operator
    assert hash(twin) == hash(operator)
    assert math.isfinite(operator.flops + operator.bytes + operator.exponentials)
    with pytest.raises((AttributeError, TypeError)):
        operator.name = "other"  # type: ignore[misc]


def test_kinds_are_those_of_execution_blocks() -> None:
    assert [operator.kind for operator in ONE_OF_EACH] == [
        "gemm", "batched_gemm", "attention", "softmax",
        "norm", "activation", "elementwise", "collective",
    ]  # fmt: skip


@pytest.mark.parametrize("bad", [0, -1, 1.5, math.nan, math.inf, True, "8", None, 10**16])
def test_bad_sizes_are_one_line_that_names_the_field(bad: object) -> None:
    calls: dict[str, Callable[[], Operator]] = {
        "m": lambda: Gemm("op", bad, 1, 1),  # type: ignore[arg-type]
        "batch": lambda: Gemm("op", 1, 1, 1, bad),  # type: ignore[arg-type]
        "context": lambda: Attention("op", 1, 1, 1, 1, 1, 1, bad),  # type: ignore[arg-type]
        "rows": lambda: Softmax("op", bad, 1),  # type: ignore[arg-type]
        "columns": lambda: Norm("op", 1, bad),  # type: ignore[arg-type]
        "elements": lambda: Activation("op", bad),  # type: ignore[arg-type]
        "chips": lambda: AllReduce("op", 1, bad),  # type: ignore[arg-type]
    }
    for field, call in calls.items():
        with pytest.raises(ConfigError) as caught:
            call()
        assert caught.value.field == field
        assert str(caught.value).startswith("op: ")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, True, "8", None])
def test_bad_bytes(bad: object) -> None:
    with pytest.raises(ConfigError, match="op: bytes"):
        AllReduce("op", bad, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"q_heads": 6, "kv_heads": 4}, "kv_heads: 4 .* divisor of q_heads 6"),
        ({"query": 5, "context": 4}, "query: 5 .* at most the context 4"),
        ({"causal": False, "window": 3}, "window: 3 .* unless attention is causal"),
        ({"window": -1}, "window: -1"),
        ({"window": True}, "window: True"),
        ({"value_dim": False}, "value_dim: False"),
    ],
)
def test_attention_refuses(fields: dict[str, int], message: str) -> None:
    shape = {"batch": 1, "q_heads": 4, "kv_heads": 4, "head_dim": 8} | fields
    with pytest.raises(ConfigError, match=message):
        Attention("a", **shape)  # type: ignore[arg-type]


def test_cross_attention_may_have_more_queries_than_keys() -> None:
    assert Attention("a", 1, 1, 1, 1, 1, 5, 4, causal=False).pairs == 20


def test_unknown_words() -> None:
    with pytest.raises(UnknownNameError, match="did you mean fp16"):
        Gemm("g", 1, 1, 1, a_format="fp61")
    with pytest.raises(ConfigError, match=r"statistic: .* layernorm, rmsnorm"):
        Norm("n", 1, 1, statistic="batch")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"function: .* relu, silu"):
        Activation("a", 1, function="tanh")  # type: ignore[arg-type]
    with pytest.raises(ChipsimError, match="reads: -1"):
        Elementwise("e", 1, reads=-1)


def test_numpy_integers_are_whole_numbers() -> None:
    np = pytest.importorskip("numpy")
    gemm = Gemm("g", np.int32(70_000), np.int64(70_000), 70_000)
    assert type(gemm.m) is int
    assert gemm.flops == 2.0 * 70_000**3


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.integers(1, 500), st.integers(0, 500), st.integers(0, 400), st.integers(1, 9))
def test_attention_work_never_falls_with_size(
    query: int, prefix: int, window: int, batch: int
) -> None:
    def work(query: int, context: int, batch: int) -> tuple[float, float]:
        operator = Attention("a", batch, 4, 2, 16, 16, query, context, window=window)
        return operator.flops, operator.bytes

    here = work(query, prefix + query, batch)
    for bigger in (
        work(query + 1, prefix + query + 1, batch),
        work(query, prefix + query + 1, batch),
        work(query, prefix + query, batch + 1),
    ):
        assert all(big >= small for big, small in zip(bigger, here, strict=True))
