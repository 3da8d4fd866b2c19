"""Which measurements are judged, and why the others are not.

Several frameworks measured the same shapes; each operator and format is judged by one of
them, as its source's README advises. Rows of a framework that this table does not know (a
measurement of one's own) are all judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipsim.validation.silicon.measured import Measurement

KNOWN = ("trtllm", "sglang", "vllm", "nccl", "oneccl",
         "trtllm_custom", "vllm_custom", "sglang_custom")  # fmt: skip
"""Frameworks and libraries of the public tables."""

SOURCES = {
    ("gemm", "bf16"): "trtllm",  # sglang: up to 9.5 % of shapes more than 1.3 x slow
    ("gemm", "fp8"): "sglang",
    ("gemm", "fp8_block"): "sglang",
    ("gemm", "nvfp4"): "sglang",
    ("attention_context", "bf16"): "sglang",  # trtllm: rotary embedding inside
    ("attention_generation", "bf16"): "sglang",
    ("mla_context", "bf16"): "trtllm",
    ("mla_generation", "bf16"): "trtllm",
    ("moe", "bf16"): "trtllm",
    ("collectives", "fp16"): "nccl",
    ("collectives", "int8"): "nccl",
}
"""Judged framework by operator and format."""

OTHER_SOURCES = {("moe", "bf16", "a100_sxm"): "sglang"}
"""Where a system has other rows."""

FALLBACKS = {
    "attention_context": ("triton", "flashinfer", "torch_flow_flashinfer"),
    "attention_generation": ("triton", "flashinfer", "torch_flow_flashinfer"),
}
"""Kernels that a framework falls back to where its main one lacks a shape: judged apart."""


def label(row: Measurement) -> str:
    """Operator in a table of errors: fallback kernels have lines of their own."""
    if row.kernel in FALLBACKS.get(row.operator, ()):
        return f"{row.operator}/{row.kernel}"
    return row.operator


def is_main(row: Measurement) -> bool:
    """Whether a row counts where operators are pooled, and in a fit."""
    return row.kernel not in FALLBACKS.get(row.operator, ())


def chosen(rows: Iterable[Measurement]) -> tuple[list[Measurement], Counter[str]]:
    """Rows to judge, and how many were left out by reason."""
    kept, why = [], Counter[str]()
    for row in rows:
        reason = left_out(row)
        if reason:
            why[f"{row.operator}: {reason}"] += 1
        else:
            kept.append(row)
    return kept, why


def left_out(row: Measurement) -> str:
    """Why a row is not judged; empty: it is."""
    if row.words.get("distribution", "balanced") != "balanced":
        return f"{row.words['distribution']}: the load of the ranks is not in the row"
    if "min_latency" in row.kernel:
        return "min_latency: without the finalising kernel"
    if row.source not in KNOWN:
        return ""
    key = (row.operator, row.dtype)
    if key not in SOURCES:
        return f"{row.dtype}: not judged"
    if row.words.get("kv_dtype", row.dtype) != row.dtype:
        return f"kv_dtype {row.words['kv_dtype']}: not judged"
    source = OTHER_SOURCES.get((*key, row.system), SOURCES[key])
    return "" if row.source == source else f"{row.dtype} of {row.source}: {source} is judged"
