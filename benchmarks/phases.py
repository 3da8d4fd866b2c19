"""Speed of phase estimates and of cuts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, median_seconds
from chipsim import plans
from chipsim.chip import Chip
from chipsim.execution import Execution
from chipsim.explore.cuts import cuts
from chipsim.ops.graph import phase_graph
from chipsim.ops.model import ModelSpec
from chipsim.ops.phase import Phase
from chipsim.ops.plan import Parallelism
from chipsim.performance import PerformanceModel
from chipsim.phases import PhaseModel, estimate

if TYPE_CHECKING:
    from chipsim.estimates import PhaseEstimate

BLOCK = Execution.load("ideal").model_copy(
    update={
        "kernels": Execution.load("ideal").kernels.model_copy(update={"attention": "unfused"})
    }
)
"""Ideal factors and LLMCompass's unfused attention: the same operators as its runs."""
GPT3 = ModelSpec.load("gpt3-175b")


def phases() -> Iterator[Figure]:
    """A phase as LLMCompass was timed on: layers of GPT-3 on its A100."""
    prefill = [Phase.prefill(1, 2048 + i) for i in range(25)]
    yield Figure(
        "GPT-3 prefill, 1 x 2048, cold", _cold(prefill), target=3e-3, llmcompass_s=(254,)
    )
    decode = [Phase.decode(8, 2048 + i) for i in range(25)]
    yield Figure(
        "GPT-3 decode, 8 x 2048, cold", _cold(decode), target=3e-3, llmcompass_s=(28, 32)
    )
    deepseek, plan = ModelSpec.load("deepseek-v3"), Parallelism(dp=64, ep=64)
    graphs = [
        partial(phase_graph, deepseek, Phase.decode(4096 + i, 4096), plan) for i in range(99)
    ]
    yield Figure("DeepSeek-V3 decode graph, 64 chips", median_seconds(graphs), target=5e-4)
    search = partial(
        plans, "h200-sxm", "deepseek-v3", 64, Phase.decode(2048, 4096), precision="fp8"
    )
    search()  # compiles
    yield Figure("DeepSeek-V3, all plans of 64 chips", median_seconds([search] * 5), target=1.0)
    model, again = _model(), decode[0]
    model.estimate(again)
    repeated = median_seconds([lambda: model.estimate(again)] * 1000)
    yield Figure("phase repeated, same model object", repeated, target=50e-6)
    repeated = median_seconds([lambda: _by_name(again)] * 1000)
    yield Figure("phase repeated, by name", repeated, target=50e-6)


CHIP = Chip.load("llmcompass-a100")
"""Read once: a cold shape is one that was not searched, not one whose chip is not read."""


def _model() -> PhaseModel:
    return PhaseModel(
        PerformanceModel(CHIP, BLOCK),
        GPT3,
        "tp=4",
        layers_only=True,
        check_memory=False,
    )


def _by_name(phase: Phase) -> PhaseEstimate:
    return estimate("spad-h100", "bloom-176b", phase, "tp=8", execution="ideal")


def _cold(asked: list[Phase]) -> float:
    """Median of a new model object for each phase, so that no shape is known."""
    return median_seconds([partial(_cold_estimate, phase) for phase in asked])


def _cold_estimate(phase: Phase) -> PhaseEstimate:
    return _model().estimate(phase)


def sweeps() -> Iterator[Figure]:
    """Cuts of 50 points, all in one call."""
    fractions = [1 - i / 60 for i in range(50)]
    spad = partial(cuts, "spad-h100", "bloom-176b", plan="tp=8", execution="ideal")
    bandwidth, cores = {"memory_bandwidth": fractions}, {"cores": fractions}
    largest = partial(spad, batch="max", itl_s=0.05)
    for name, once in (
        ("prefill, memory_bandwidth", partial(spad, Phase.prefill(2, 1024), bandwidth)),
        ("decode, cores", partial(spad, Phase.decode(64, 1024), cores)),
        ("decode, largest batch", partial(largest, Phase.decode(1, 1024), bandwidth)),
    ):
        yield Figure(f"50 cuts: {name}", median_seconds([once] * 5), target=0.2)
