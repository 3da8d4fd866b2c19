from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chipsim import Phase
from chipsim.phases import estimate

if TYPE_CHECKING:
    from tests.cli.conftest import Command

RESULT = {"latency_s", "bound", "flops", "memory_bytes", "mapping", "lower_bound_s", "parts"}
ON = "--chip spad-h100 --execution ideal"
PHASE = "--chip spad-h100 --model bloom-176b --tp 8"


@pytest.mark.parametrize(
    ("command", "flops"),
    [
        ("gemm -m 3 -n 5 -k 7", 2 * 3 * 5 * 7),
        ("gemm -m 3 -n 5 -k 7 --batch 11", 2 * 3 * 5 * 7 * 11),
        ("gemm -m 64 -n 64 -k 64 --dtype fp8", 2 * 64**3),
        # causal: the 2 queries see 4 and 5 tokens
        (
            "attention --batch 1 --q-heads 4 --kv-heads 2 --head-dim 16 --query 2 --context 5",
            2 * 4 * 32 * 9,
        ),
        (
            "attention --batch 1 --q-heads 4 --head-dim 16 --query 1 --context 5 --window 3",
            2 * 4 * 32 * 3,
        ),
        ("softmax -m 3 -n 5", 10 * 15),
        ("layernorm -m 3 -n 5", 7 * 15),
        ("gelu -m 3 -n 5", 7 * 15),
        ("gelu --elements 15", 7 * 15),
        ("all-reduce --bytes 1e6 --chips 8", 0),
    ],
)
def test_an_operator_has_its_keys_and_its_closed_form(
    chipsim: Command, command: str, flops: int
) -> None:
    result = chipsim(f"estimate {command} {ON} --json").json
    assert result.keys() >= RESULT
    assert result["flops"] == flops
    assert 0 < result["lower_bound_s"] <= result["latency_s"] * (1 + 1e-12)
    text = chipsim(f"estimate {command} {ON}")
    assert text.code == 0
    assert text.out.splitlines()[-1].startswith("chip spad-h100 · ideal machine")


def test_unfused_attention_is_the_sum_of_its_steps(chipsim: Command) -> None:
    shape = "--batch 2 --q-heads 8 --kv-heads 2 --head-dim 64 --query 16 --context 100"
    result = chipsim(f"estimate attention {shape} --unfused {ON} --json").json
    steps = result["operators"]
    assert [step["name"] for step in steps] == ["scores", "softmax", "values"]
    assert math.isclose(result["latency_s"], sum(step["latency_s"] for step in steps))
    assert math.isclose(sum(step["share"] for step in steps), 1)
    # the full rectangle: two products per head, query and token
    products = steps[0]["flops"] + steps[2]["flops"]
    assert products == 2 * 2 * 2 * 8 * 16 * 100 * 64
    assert result.keys() >= RESULT - {"parts"}


def test_bytes_carry_a_unit(chipsim: Command) -> None:
    plain, unit = (
        chipsim("estimate", "all-reduce", "--bytes", size, *f"--chips 8 {ON} --json".split())
        for size in ("29360128", "28 MiB")
    )
    assert plain.json["latency_s"] == unit.json["latency_s"]


@pytest.mark.parametrize(
    ("command", "phase"),
    [
        ("prefill --batch 2 --prompt 1024", Phase.prefill(2, 1024)),
        ("decode --batch 64 --context 1024", Phase.decode(64, 1024)),
    ],
)
def test_a_phase_is_what_python_says(chipsim: Command, command: str, phase: Phase) -> None:
    result = chipsim(f"estimate {command} {PHASE} --json").json
    same = estimate("spad-h100", "bloom-176b", phase, "tp=8")
    assert result["latency_s"] == same.latency_s
    assert result.keys() >= {"latency_s", "bound", "flops", "memory_bytes", "operators"}
    operators = result["operators"]
    assert operators[0].keys() >= {"name", "count", "latency_s", "bound", "share"}
    assert math.isclose(sum(row["latency_s"] for row in operators), same.latency_s)
    assert math.isclose(sum(row["share"] for row in operators), 1)
    assert math.isclose(result["tokens_per_s"], phase.tokens / same.latency_s)


def test_layers_only_and_plan(chipsim: Command) -> None:
    whole = chipsim(f"estimate decode --context 128 {PHASE} --json").json
    plan = PHASE.replace("--tp 8", "--plan tp=8")
    layers = chipsim(f"estimate decode --context 128 {plan} --layers-only --json").json
    names = {row["name"] for row in whole["operators"]}
    left = {row["name"] for row in layers["operators"]}
    assert names - left == {"embedding", "norm_embedding", "norm_final", "lm_head"}
    assert whole["plan"] == layers["plan"] == "tp=8"


def test_a_phase_reads_as_a_table(chipsim: Command) -> None:
    out = chipsim(f"estimate decode --batch 64 --context 1024 {PHASE}").out
    lines = out.splitlines()
    assert lines[0] == "bloom-176b decode, batch 64, context 1024, tp=8, fp16"
    assert max(map(len, lines)) <= 100
    assert "block llmcompass-tables, fitted to" in out
    assert "\x1b" not in out  # no colour into a pipe


def test_execution_switches(chipsim: Command) -> None:
    ideal, tables = (
        chipsim(f"estimate gemm --chip spad-h100 -m 64 -n 64 -k 64 {block} --json").json
        for block in ("--execution ideal", "")
    )
    assert (ideal["execution"], tables["execution"]) == ("ideal", "llmcompass-tables")
    assert ideal["latency_s"] < tables["latency_s"]


@pytest.mark.parametrize(("tp", "fits"), [(8, True), (2, False)])
def test_memory_that_does_not_fit_is_a_result(chipsim: Command, tp: int, fits: bool) -> None:
    arguments = f"memory --chip spad-h100 --model bloom-176b --tp {tp} --context 1024"
    ran = chipsim(f"{arguments} --json")
    assert ran.code == 0
    assert ran.json["fits"] is fits
    assert (ran.json["shortfall_bytes"] > 0) is not fits
    assert (ran.json["largest_batch"] > 0) is fits
    assert ran.json.keys() >= {
        "weights_bytes_per_chip", "kv_bytes_per_token", "kv_tokens", "free_bytes",
    }  # fmt: skip
    assert ("short of" in chipsim(arguments).out) is not fits


def test_memory_share(chipsim: Command) -> None:
    command = "memory --chip spad-h100 --model bloom-176b --tp 8 --share 0.9 --json"
    # SPAD's appendix: 8 x 80 GiB hold 66.4 K tokens
    assert math.isclose(chipsim(command).json["kv_tokens"], 66.4e3, rel_tol=5e-3)


def test_what_no_array_holds_is_said(chipsim: Command) -> None:
    command = "estimate gemm --chip h100-sxm -m 64 -n 64 -k 64 --dtype fp32"
    assert "computed: fp32 on the vector units" in chipsim(command).out
    assert "converted" not in chipsim(command).out


def test_conversions_are_said(chipsim: Command) -> None:
    command = "estimate gemm --chip h100-sxm -m 1 -n 512 -k 512 --precision weights=w2.5"
    assert "converted on the vector units: weights w2.5 -> fp16" in chipsim(command).out
    found = chipsim(f"{command} --json").json
    assert found["conversions"] == ["weights w2.5 -> fp16"]
    plain = chipsim("estimate gemm --chip h100-sxm -m 1 -n 512 -k 512 --json").json
    assert plain["conversions"] == []


def test_memory_offers_to_split_cached_rows(chipsim: Command) -> None:
    command = "memory --chip h200-sxm --model deepseek-v3 --precision fp8 --plan tp=8,ep=8"
    found = chipsim(f"{command} --json").json
    assert found["kv_bytes_per_token"] == 61 * 576
    (note,) = found["notes"]
    assert note.startswith("8 chips hold each cached row whole (35136 B per token and chip); ")
    assert note.endswith("tp=8,ep=8,dcp=8 splits the tokens over them (4392 B)")
    split = chipsim(f"{command},dcp=8 --json").json
    assert split["kv_bytes_per_token"] == 61 * 576 / 8
    assert (split["notes"], split["largest_batch"] > 7 * found["largest_batch"]) == ([], True)


def test_memory_of_windows_and_of_states(chipsim: Command) -> None:
    shown = chipsim("memory --chip h100-sxm --model gpt-oss-120b --tp 8 --context 8192").out
    assert "KV of 8192 tokens" in shown


@pytest.mark.parametrize(
    ("name", "port_s"),
    [
        ("all-reduce", 2 * 7 / 8 * 1e8 / 8 / 50e9),
        ("all-gather", 7 / 8 * 1e8 / 8 / 50e9),
        ("reduce-scatter", 7 / 8 * 1e8 / 8 / 50e9),
        ("all-to-all", 7 / 8 * 1e8 / 50e9),
    ],
)
def test_exchanges_over_machines(chipsim: Command, name: str, port_s: float) -> None:
    """64 chips in 8 machines: nothing is faster than a chip's port of 50 GB/s lets it be."""
    command = f"estimate {name} --chip spad-h100 --chips 64 --bytes 1e8 --execution ideal"
    found = chipsim(f"{command} --json").json
    assert found["mapping"]["machines"] == 8
    assert found["latency_s"] >= max(port_s, found["lower_bound_s"]) * (1 - 1e-12)
    assert found["latency_s"] < 2 * port_s


def test_sending_to_the_next_machine(chipsim: Command) -> None:
    command = "estimate send-recv --chip spad-h100 --execution ideal --chips 2 --bytes 1e8"
    near, far = (chipsim(f"{command} --stride {n} --json").json for n in (1, 8))
    assert math.isclose(far["latency_s"], 1e8 / 50e9)
    assert near["latency_s"] < far["latency_s"] / 7


PLANS = "plans --chip h100-sxm --model llama-3.1-8b --phase decode --batch 32 --context 1024"


def test_plans_are_ranked(chipsim: Command) -> None:
    found = chipsim(f"{PLANS} --chips 4 --json").json
    assert found["chips"] == 4
    assert [row["rank"] for row in found["rows"]] == list(range(1, len(found["rows"]) + 1))
    assert {row["plan"] for row in found["rows"]} >= {"tp=4", "dp=4", "pp=4", "tp=2,dp=2"}
    shown = chipsim(f"{PLANS} --chips 4 --top 2").out
    assert found["rows"][0]["plan"] in shown
    assert "more: --top N" in shown


def test_a_plan_of_stages_says_how_long_they_wait(chipsim: Command) -> None:
    command = "estimate decode --chip h100-sxm --model llama-3.1-8b --context 512 --plan pp=2"
    found = chipsim(f"{command} --json").json
    assert found["plan"] == "pp=2"
    assert found["pipeline"]["bubble"] > 0.49
    assert "bubble" in chipsim(command).out


def test_a_model_brings_its_own_formats(chipsim: Command, tmp_path: Path) -> None:
    library = Path(__file__).parents[2] / "arch_configs/models/llama-3.1-8b.yaml"
    own = "precision:\n  decode: {weights: fp8, activations: bf16, kv: fp8}\n"
    path = tmp_path / "mine.yaml"
    path.write_text(library.read_text(encoding="utf-8") + own, encoding="utf-8")
    text = "weights=fp8,activations=bf16,kv=fp8"
    for command in ("estimate decode", "memory", "plans --chips 1 --phase decode"):
        asked = f"{command} --chip h100-sxm --model {path} --context 512 --json"
        assert chipsim(asked).json["precision"] == text
        assert chipsim(f"{asked} --precision bf16").json["precision"] == "bf16"


def test_attention_follows_the_kernels_of_the_block(chipsim: Command) -> None:
    """Launches of an eager block belong to its kernels, which are apart."""
    ask = "estimate attention --chip a100-sxm --batch 1 --q-heads 1 --head-dim 64 "
    ask += "--query 1 --context 64 --execution a100-eager"
    own = chipsim(f"{ask} --json").json
    assert own["latency_s"] > 3e-5
    assert own["latency_s"] == chipsim(f"{ask} --unfused --json").json["latency_s"]
