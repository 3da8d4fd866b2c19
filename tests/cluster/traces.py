"""Traces that tests read: small ones in the formats of others, and the reference ones."""

from __future__ import annotations

from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "traces"

AZURE_2023 = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 23:59:59.9799600,4808,10\n"
    "2023-11-17 00:00:00.0319600,3180,8\n"
    "2023-12-01 00:00:00.0319601,110,27\n"
)
AZURE_2024 = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2024-05-10 00:00:00.009930+00:00,2162,5\n"
    "2024-05-10 00:00:00.017335+00:00,2399,6\n"
    "2024-05-10 00:00:01+00:00,76,15\n"
)
BURSTGPT = (
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,ChatGPT,472,18,490,Conversation log\n"
    "45,ChatGPT,1087,0,1087,Conversation log\n"
    "118,GPT-4,417,276,693,API log\n"
)
MOONCAKE = (
    '{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 2]}\n'
    '{"timestamp": 3000, "input_length": 1500, "output_length": 7, "hash_ids": [0, 1, 9]}\n'
    '{"timestamp": 3000, "input_length": 12, "output_length": 1, "hash_ids": [4]}\n'
)
GENERIC = "arrival_s,prompt_tokens,output_tokens,session,priority\n1.5,10,2,7,0\n2.5,20,3,8,1\n"
VLLM = (
    '{"backend": "vllm", "completed": 2, "input_lens": [128, 256, 64], "output_lens": '
    '[32, 64, 0], "start_times": [100.5, 101.0, 102.0], "errors": ["", "", "timeout"]}'
)
LENGTHS = "[[100, 20], [200, 30]]"


def reference(name: str) -> Path:
    """A reference trace; the test is skipped where it is not there."""
    path = REFERENCE / name
    if not path.is_file():
        pytest.skip(f"{name} is not here")
    return path
