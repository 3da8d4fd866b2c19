"""The published configurations that lie beside a checkout, where they do."""

from __future__ import annotations

import pytest

from chipsim.importers import import_huggingface
from tests.importers.files import REFERENCE

# Billions of parameters, all and active, as names, cards and reports have them.
TOLD = {
    "MiniMaxAI--MiniMax-M2.5": (229.0, 10.0),
    "Qwen--Qwen3-0.6B": (0.596, None),
    "Qwen--Qwen3-235B-A22B": (235.0, 22.0),
    "Qwen--Qwen3-30B-A3B": (30.5, 3.3),
    "Qwen--Qwen3-32B": (32.8, None),
    "Qwen--Qwen3-32B-FP8": (32.8, None),
    "Qwen--Qwen3-8B": (8.19, None),
    "Qwen--Qwen3-VL-8B-Instruct": (8.19, None),
    "Qwen--Qwen3.5-27B": (27.0, None),
    "Qwen--Qwen3.5-35B-A3B": (35.0, None),
    "XiaomiMiMo--MiMo-7B-Base": (7.62, None),
    "XiaomiMiMo--MiMo-V2-Flash": (309.0, None),
    "deepseek-ai--DeepSeek-V3": (671.0, 37.0),
    "deepseek-ai--DeepSeek-V3.2": (671.0, None),
    "deepseek-ai--DeepSeek-V4-Flash": (284.0, None),
    "google--gemma-4-26B-A4B": (25.2, 3.8),
    "meta-llama--Llama-4-Scout-17B-16E-Instruct": (108.0, 17.0),
    "meta-llama--Meta-Llama-3.1-405B": (405.85, None),
    "meta-llama--Meta-Llama-3.1-70B": (70.55, None),
    "meta-llama--Meta-Llama-3.1-8B": (8.03, None),
    "mistralai--Mixtral-8x7B-v0.1": (46.70, 12.88),
    "moonshotai--Kimi-K2-Instruct": (1026.0, 32.6),
    "moonshotai--Kimi-K2.5": (1026.0, 32.6),
    "nvidia--DeepSeek-V3.1-NVFP4": (671.0, 37.0),
    "nvidia--Llama-3.1-70B-Instruct-FP8": (70.55, None),
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (31.6, 3.6),
    "nvidia--Nemotron-H-56B-Base-8K": (56.0, None),
    "nvidia--Qwen3-235B-A22B-NVFP4": (235.0, 22.0),
    "openai--gpt-oss-20b": (20.91, 3.61),
    "stepfun-ai--Step-3.7-Flash": (196.0, 11.0),
    "zai-org--GLM-5": (744.0, 40.0),
}

pytestmark = pytest.mark.skipif(
    not REFERENCE.is_dir(), reason="the reference configurations are not beside this checkout"
)


@pytest.mark.parametrize("name", TOLD)
def test_a_reference_file_imports_to_its_published_size(name: str) -> None:
    model = import_huggingface(REFERENCE / f"{name}.json").model
    total, active = TOLD[name]
    assert model.parameters / 1e9 == pytest.approx(total, rel=0.02)
    if active is not None:
        assert model.active_parameters / 1e9 == pytest.approx(active, rel=0.02)


def test_every_reference_file_is_tried() -> None:
    assert {file.stem for file in REFERENCE.glob("*.json")} == set(TOLD)
