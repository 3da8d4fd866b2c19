"""A measured row as chipsim's operators: what its kernels do, one after the other.

Formats: every product takes X in bf16 and leaves Y in bf16, so a narrower one begins with
the kernel that quantises X. Attention begins with the kernel that appends new keys and
values to the cache. An expert layer is routing, permutation, two products,
activation and the weighted sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from chipsim.ops.formats import get_format
from chipsim.ops.operators import (
    Activation,
    AllGather,
    AllReduce,
    AllToAll,
    Attention,
    Collective,
    Elementwise,
    Gemm,
    GroupedGemm,
    LatentAttention,
    Operator,
    Quantise,
    ReduceScatter,
    Softmax,
)

if TYPE_CHECKING:
    from chipsim.validation.silicon.measured import Measurement

Work = tuple[Operator, ...]

FORMATS = {"fp8_block": "fp8-block"}
"""Formats of a product's operands, where they are not named as the row's."""
FUSED_ROTARY = {("trtllm", "1.0")}
"""Sources, with version, that prepare latent prompts in one kernel: their fixed time is that
of dense attention on the same chip."""
LATENT, ROTARY, NOPE = 512, 64, 128
"""Elements of DeepSeek's cached row and of a head (DeepSeek-V2, 2024)."""
ROUTER = 4
"""Kernels of TensorRT-LLM that pick experts: softmax, selection, weights, and a cast."""
SORTS = 4
"""Kernels that sort routes by expert: local and global sums, merge, and addresses."""
ALIGNS = 2
"""Triton's: count and pad to whole blocks, and sort."""


def work(row: Measurement) -> Work:
    """Operators that a row timed, each run once."""
    return WORK[row.operator](row)


def _gemm(row: Measurement) -> Work:
    m, n, k = (row.sizes[name] for name in ("m", "n", "k"))
    form = FORMATS.get(row.dtype, row.dtype)
    if row.dtype in ("bf16", "fp16"):
        return (Gemm("", m, n, k, 1, form, form, form),)
    product = Gemm("", m, n, k, 1, form, form, "bf16")
    return Quantise("", m, k, "bf16", form), product


def _appended(kv: str, elements: int) -> Elementwise:
    """The kernel that appends keys and values, in bf16, to the cache."""
    return Elementwise("", elements, kv, 2 if get_format(kv).bits == 8 else 1, 1)


def _attention_context(row: Measurement) -> Work:
    size, kv = row.sizes, row.words["kv_dtype"]
    tokens = size["batch"] * size["seq_len"]
    return (
        _appended(kv, tokens * size["kv_heads"] * 2 * size["head_dim"]),
        Attention(
            "",
            size["batch"],
            size["q_heads"],
            size["kv_heads"],
            size["head_dim"],
            query=size["seq_len"],
            context=size["prefix"] + size["seq_len"],
            window=size["window_size"],
            q_format=row.dtype,
            kv_format=kv,
        ),
    )


def _attention_generation(row: Measurement) -> Work:
    """A narrower cache takes queries in its own format, and a kernel that quantises them."""
    size, kv = row.sizes, row.words["kv_dtype"]
    appended = _appended(kv, size["batch"] * size["kv_heads"] * 2 * size["head_dim"])
    attention = Attention(
        "",
        size["batch"],
        size["q_heads"],
        size["kv_heads"],
        size["head_dim"],
        context=size["kv_len"],
        window=size["window_size"],
        q_format=kv,
        kv_format=kv,
    )
    if kv == row.dtype:
        return appended, attention
    queries = size["batch"] * size["q_heads"]
    return appended, Quantise("", queries, size["head_dim"], row.dtype, kv), attention


def _mla_context(row: Measurement) -> Work:
    """Expanded: every head has keys of its own.

    One kernel lays out the lengths of the batch; the rotary kernel turns the rotary part of
    every head's query and writes that of its key, which all heads share; the latent row is
    appended to the cache. `FUSED_ROTARY` does all that in one kernel.
    """
    size = row.sizes
    tokens = size["batch"] * size["seq_len"]
    rotary = Elementwise("", tokens * size["heads"] * ROTARY, row.dtype, 1, 2, 3)
    appended = _appended(row.words["kv_dtype"], tokens * (LATENT + ROTARY))
    before: Work = (Elementwise("", size["batch"], "fp32"), rotary, appended)
    if (row.source, ".".join(row.version.split(".")[:2])) in FUSED_ROTARY:
        before = (rotary,)
    attention = Attention(
        "",
        size["batch"],
        size["heads"],
        size["heads"],
        NOPE + ROTARY,
        NOPE,
        query=size["seq_len"],
        context=size["prefix"] + size["seq_len"],
        q_format=row.dtype,
        kv_format=row.dtype,
    )
    return (*before, attention)


def _mla_generation(row: Measurement) -> Work:
    size = row.sizes
    return (
        _appended(row.words["kv_dtype"], size["batch"] * (LATENT + ROTARY)),
        LatentAttention(
            "",
            size["batch"],
            size["heads"],
            LATENT,
            ROTARY,
            context=size["kv_len"],
            q_format=row.dtype,
            kv_format=row.words["kv_dtype"],
        ),
    )


def _moe(row: Measurement) -> Work:
    """Routes of a rank, spread evenly over as many of its experts as they can reach."""
    if "triton" in row.kernel:
        return _triton_experts(row)
    size = row.sizes
    tokens, hidden = size["tokens"], size["hidden"]
    routes = max(1.0, tokens * size["topk"] / size["ep"])
    up, activation, down = _expert_products(row, routes)
    router = [Softmax("", tokens, size["experts"], "fp32") for _ in range(ROUTER)]
    sorts = [Elementwise("", tokens * size["topk"], "fp32") for _ in range(SORTS)]
    placed = Elementwise("", math.ceil(routes) * hidden, "bf16", scattered=True)
    return (*router, *sorts, placed, up, activation, down, _summed(tokens, hidden, routes))


def _summed(tokens: int, hidden: int, routes: float) -> Elementwise:
    """The weighted sum of what experts made of every token, wherever it lies."""
    reads = math.ceil(routes / tokens)
    return Elementwise("", tokens * hidden, "bf16", reads, scattered=True)


def _triton_experts(row: Measurement) -> Work:
    """SGLang's Triton kernels, which gather rows themselves, as its tables were taken.

    The rank gets the tokens that have an expert on it, each with all its routes; those to
    other ranks are masked, and computed still (aiconfigurator, ``collector/sglang/
    collect_moe.py``: ``build_rank0_workloads``; with 2 to 8 ranks its times are those of one).
    """
    size = row.sizes
    tokens = max(1, math.ceil(size["tokens"] * min(1.0, size["topk"] / size["ep"])))
    routes = tokens * size["topk"]
    align = [Elementwise("", routes, "fp32") for _ in range(ALIGNS)]
    total = _summed(tokens, size["hidden"], float(routes))
    return (*align, *_expert_products(row, float(routes)), total)


def _expert_products(
    row: Measurement, routes: float
) -> tuple[GroupedGemm, Activation, GroupedGemm]:
    size, form = row.sizes, FORMATS.get(row.dtype, row.dtype)
    inner = max(1, size["inter"] // size["tp"])
    touched = min(max(1.0, size["experts"] / size["ep"]), routes)
    gated = "nongated" not in row.kernel
    up, down = (
        GroupedGemm.even("", touched, routes / touched, n, k, form, form, "bf16")
        for n, k in ((inner * (2 if gated else 1), size["hidden"]), (size["hidden"], inner))
    )
    return up, Activation("", math.ceil(routes) * inner, "bf16", "silu", gated), down


COLLECTIVES: dict[str, type[Collective]] = {
    "all_gather": AllGather,
    "all_reduce": AllReduce,
    "alltoall": AllToAll,
    "reduce_scatter": ReduceScatter,
}


def _collectives(row: Measurement) -> Work:
    return (COLLECTIVES[row.words["op"]]("", row.sizes["bytes"], row.sizes["gpus"]),)


WORK: dict[str, Callable[[Measurement], Work]] = {
    "gemm": _gemm,
    "attention_context": _attention_context,
    "attention_generation": _attention_generation,
    "mla_context": _mla_context,
    "mla_generation": _mla_generation,
    "moe": _moe,
    "collectives": _collectives,
}
"""What a row of each file times."""
