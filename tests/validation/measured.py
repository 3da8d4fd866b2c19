"""Small folders of measured operators for tests."""

from __future__ import annotations

from pathlib import Path

from chipsim.validation.silicon.measured import FILES, Measurement, read_measurements

WHO = "system,framework,dtype"
HEADS = "batch,q_heads,kv_heads,head_dim,window_size"
ROWS = {
    "gemm": (
        f"{WHO},m,n,k,latency_s,kernel_source",
        "h100_sxm,trtllm,bfloat16,64,4096,4096,1e-5,torch_flow",
    ),
    "attention_context": (
        f"{WHO},kv_dtype,{HEADS},seq_len,prefix,kernel_source,latency_s",
        "h100_sxm,sglang,bfloat16,bfloat16,2,32,8,128,0,512,0,fa3,5e-5",
    ),
    "attention_generation": (
        f"{WHO},kv_dtype,{HEADS},kv_len,kernel_source,latency_s",
        "h100_sxm,sglang,bfloat16,bfloat16,4,32,8,128,0,1024,fa3,2e-5",
    ),
    "mla_context": (
        f"{WHO},kv_dtype,batch,seq_len,prefix,heads,kernel_source,latency_s",
        "h100_sxm,trtllm,bfloat16,bfloat16,2,512,0,16,default,5e-5",
    ),
    "mla_generation": (
        f"{WHO},kv_dtype,batch,kv_len,heads,kernel_source,latency_s",
        "h100_sxm,trtllm,bfloat16,bfloat16,4,1024,16,default,2e-5",
    ),
    "moe": (
        f"{WHO},kernel_source,tokens,hidden,inter,topk,experts,tp,ep,distribution,latency_s",
        "h100_sxm,trtllm,bfloat16,torch_cutlass,64,2048,1024,4,32,2,4,balanced,1e-4",
    ),
    "collectives": (
        "system,library,dtype,op,gpus,bytes,kernel_source,latency_s",
        "h100_sxm,nccl,half,all_reduce,8,1048576,NCCL,3e-5",
    ),
}
"""Head and one row of every file."""


def folder(path: Path, **rows: str) -> Path:
    """A folder with the files that are named: their head, then these rows (or one's own)."""
    for stem in rows or FILES:
        head, row = ROWS[stem]
        (path / f"{stem}.csv").write_text(f"{head}\n{rows.get(stem, row)}\n")
    return path


def one(path: Path, stem: str, row: str = "") -> Measurement:
    """The measurement of a row (that of `ROWS` unless given)."""
    files = folder(path, **{stem: row or ROWS[stem][1]})
    (found,) = read_measurements(files / f"{stem}.csv")
    return found
