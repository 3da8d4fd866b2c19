"""Latencies of many operators at once against single estimates: equal in every bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from chipsim.arch_configs import names
from chipsim.chip import Chip
from chipsim.cost.cap import CappedModel
from chipsim.errors import ChipsimError
from chipsim.ops.graph import LATENT, SEQUENCE_GROUPS, Phase, phase_graph, sequence_nodes
from chipsim.ops.model import ModelSpec
from chipsim.ops.operators import Attention, Gemm, Norm, Quantise, Softmax
from chipsim.ops.parallelism import Parallelism
from chipsim.ops.precision import Precision
from chipsim.performance import PerformanceModel
from chipsim.phases import PhaseModel

if TYPE_CHECKING:
    from chipsim.ops.operators import Operator

PHASES = [Phase.prefill(3, 200, 64), Phase.decode(24, 3000), Phase.mixed(100, 28, 7, 900)]
CASES = [
    ("h100-sxm", "ideal", "bf16"),
    ("h100-sxm", "h100-graph", "weights=fp8,activations=fp8,kv=fp8"),
    ("a100-sxm", None, "weights=w2.5,activations=bf16,kv=fp8"),
    ("b200-sxm", None, "weights=nvfp4,activations=nvfp4,kv=fp8"),
    ("tpu-v3", None, "fp32"),
    ("mi210", "llmcompass-tables", "fp16"),
]


def operators(model: PhaseModel) -> list[Operator]:
    return [row.estimate.operator for phase in PHASES for row in model.estimate(phase).rows]


@pytest.mark.parametrize("name", ["bloom-176b", "deepseek-v3.2", "gpt-oss-20b",
                                  "qwen3.5-35b-a3b", "nemotron-3-nano"])  # fmt: skip
@pytest.mark.parametrize(("chip", "execution", "formats"), CASES)
def test_every_operator_of_a_step_takes_as_long_as_alone(
    chip: str, execution: str | None, formats: str, name: str
) -> None:
    model = PerformanceModel(chip, execution)
    phases = PhaseModel(model, name, precision=formats, check_memory=False)
    found = operators(phases)
    alone = [model.estimate(op).latency_s for op in found]
    assert model.latencies(found).tolist() == alone


def test_what_a_block_adds_to_a_launch_is_there() -> None:
    model = PerformanceModel("b200-sxm")
    found: list[Operator] = [
        Gemm("", 64, 1024, 512, 1, "nvfp4", "nvfp4", "bf16"),
        Quantise("", 64, 512, "bf16", "nvfp4"),
        Quantise("", 64, 512, "bf16", "fp8"),
        Softmax("", 4, 10**6, "fp32"),
        Norm("", 4, 10**6, "bf16"),
    ]
    alone = [model.estimate(op).latency_s for op in found]
    assert model.latencies(found).tolist() == alone
    assert model.latencies([]).tolist() == []


def test_under_a_cap_each_has_its_own_clock() -> None:
    model = CappedModel("spad-h100", 450)
    phases = PhaseModel(model, "bloom-176b", "tp=8", check_memory=False)
    found = operators(phases)
    assert model.latencies(found).tolist() == [model.estimate(o).latency_s for o in found]


@pytest.mark.parametrize("operator", [
    Gemm("", 512, 512, 512), Attention("", 1, 8, 8, 128, query=64, context=64),
])  # fmt: skip
def test_no_room_for_a_tile_is_told_as_of_one(operator: Any) -> None:
    model = PerformanceModel(Chip.load("a100-sxm").scaled(sram=0.005), "ideal")
    with pytest.raises(ChipsimError) as alone:
        model.estimate(operator)
    with pytest.raises(ChipsimError) as many:
        model.latencies([Norm("", 8, 8), operator])
    assert str(many.value) == str(alone.value)


def test_more_queries_than_a_kernel_walks_are_refused() -> None:
    long = Attention("", 1, 1, 1, 64, query=2**25, context=2**25)
    with pytest.raises(ChipsimError, match="query"):
        PerformanceModel("a100-sxm").latencies([long])


@pytest.mark.parametrize("name", names("models"))
@pytest.mark.parametrize("phase", PHASES)
def test_nodes_of_sequences_are_those_of_the_graph(name: str, phase: Phase) -> None:
    spec, plan = ModelSpec.load(name), Parallelism()
    for form in LATENT:
        options: dict[str, Any] = {"plan": plan, "latent": form, "precision": Precision()}
        graph = phase_graph(spec, phase, **options)
        wanted = {n: d for n, d in graph.nodes.items() if d["group"] in SEQUENCE_GROUPS}
        assert sequence_nodes(spec, phase, **options) == wanted


def test_forms_of_latent_attention_share_all_other_nodes() -> None:
    spec = ModelSpec.load("deepseek-v3.2")
    rests = []
    for form in LATENT:
        nodes = phase_graph(spec, PHASES[0], latent=form).nodes
        rests.append({n: d for n, d in nodes.items() if d["group"] not in SEQUENCE_GROUPS})
    assert rests[0] == rests[1]
    phases = PhaseModel("h200-sxm", spec, check_memory=False)
    rows = phases.estimate(PHASES[0]).rows
    names = [row.name for row in rows if row.group not in SEQUENCE_GROUPS]
    assert list(phases.token_nodes(PHASES[0])) == names
    assert np.isfinite(phases.performance.latencies(operators(phases))).all()
