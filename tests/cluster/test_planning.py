"""The search over an inventory against brute force, and its parts against counting by hand."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from chipsim.cluster.deployment import Deployment
from chipsim.cluster.inventory import Kind, Owned, parse_inventory
from chipsim.cluster.journal import Journal
from chipsim.cluster.layouts import layouts
from chipsim.cluster.plan_space import STEP, PlanSpace, with_whole_requests
from chipsim.cluster.planning import plan_inventory
from chipsim.cluster.ranking import Ranking, Tuning
from chipsim.cluster.scenario import Scenario
from chipsim.errors import ChipsimError
from chipsim.present.deployment import sketch

CHUNKS, BATCHES = (64, 256), (4, 16)
INVENTORY = (Owned("h100-sxm", 3),)
ONE, BOTH = ("tp=1",), ("tp=1", "tp=2")


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Short requests, so that tables are small."""
    trace = tmp_path_factory.mktemp("plan") / "trace.csv"
    rng = np.random.default_rng(0)
    arrival = np.cumsum(rng.exponential(1 / 40, 400))
    lengths = zip(rng.integers(20, 250, 400), rng.integers(2, 24, 400), strict=True)
    rows = [f"{a},{p},{o}" for a, (p, o) in zip(arrival, lengths, strict=True)]
    trace.write_text("\n".join(["arrival_s,prompt_tokens,output_tokens", *rows]))
    return Scenario.build(
        "short",
        name="short",
        model="llama-3.1-8b",
        workload={"base": str(trace), "rate": 40.0},
        pools={"all": {"chip": "h100-sxm"}},
        slo={"ttft": {"p90": 0.06, "p99": 0.15}, "itl": {"p99": 0.02}},
        goodput={"ttft": 0.1, "tpot": 0.02},
    )


def plan(scenario: Scenario, **fields: Any) -> Ranking:
    given: dict[str, Any] = {
        "chunks": CHUNKS,
        "batches": BATCHES,
        "plans": BOTH,
        "top": 3,
    }
    return plan_inventory(INVENTORY, scenario, **(given | fields))


def search(scenario: Scenario, plans: tuple[str, ...] = BOTH) -> PlanSpace:
    return PlanSpace(INVENTORY, with_whole_requests(scenario), (0,), plans,
                   (CHUNKS, BATCHES), 60.0, Journal())  # fmt: skip


def test_ranking_by_rate_is_that_of_brute_force(scenario: Scenario) -> None:
    found, whole = plan(scenario, chunks=CHUNKS[:1], plans=ONE, top=2), search(scenario, ONE)
    best = {}
    for row in range(len(whole.layouts)):
        held = [
            step
            for tuning in itertools.starmap(Tuning, itertools.product(CHUNKS[:1], BATCHES))
            for step in range(whole.top - 120, whole.top - 10)
            if whole.judged(whole.cluster(row, tuning), step).holds
        ]
        if held:
            best[whole.layouts.text(row)] = whole.rate_of(max(held))
    wanted = sorted(best.values(), reverse=True)[:2]
    assert [row.value for row in found.rows] == pytest.approx(wanted)
    for each in found.rows:
        assert best[each.text] == pytest.approx(each.value)
        assert each.value <= each.bound
        assert each.run.holds
        next_one = whole.workloads[0].at_rate(each.value * STEP)
        assert not each.cluster.run(workload=next_one).holds
    assert found.tried <= found.layouts


def test_ranking_by_latency_is_that_of_brute_force(scenario: Scenario) -> None:
    found, whole = plan(scenario, goal="latency"), search(scenario)
    best: dict[str, float] = {}
    for row in range(len(whole.layouts)):
        for tuning in itertools.starmap(Tuning, itertools.product(CHUNKS, BATCHES)):
            run = whole.cluster(row, tuning).run(workload=whole.workloads[0].at_rate(40.0))
            if run.holds:
                text, mean = whole.layouts.text(row), float(run.times["e2e_s"].mean())
                best[text] = min(mean, best.get(text, np.inf))
    assert {row.text: row.value for row in found.rows} == pytest.approx(
        dict(sorted(best.items(), key=lambda each: each[1])[:3])
    )
    assert all(row.bound <= row.value for row in found.rows)


def test_bounds_of_many_layouts_are_those_of_each(scenario: Scenario) -> None:
    whole = search(scenario)
    counts, names = whole.layouts.counts, list(whole.menu.scenario.pools)
    said = set()
    for step in range(whole.top - 100, whole.top + 5, 15):
        bounds = whole.bounds(whole.workloads[0], step)
        many = bounds.allows(counts)
        each = [
            not bounds.refuses(dict(zip(names, row.tolist(), strict=True))) for row in counts
        ]
        assert many.tolist() == each
        said |= set(each)
    assert said == {True, False}


def test_layouts_are_all_splits_that_use_the_chips() -> None:
    one, two = Kind("a", "tp=1", 1), Kind("a", "tp=2", 2)
    found = layouts([Owned("a", 4)], {"a": [one, two]})
    texts = [found.text(row) for row in range(len(found))]
    assert len(set(texts)) == len(texts)
    assert {text for text in texts if "mixed" in text} == {
        "4 x tp=1 mixed on a",
        "2 x tp=2 mixed on a",
    }
    ones = {text for text in texts if text.count("tp=1") == 2}
    assert ones == {f"{n} x tp=1 prefill + {4 - n} x tp=1 decode on a" for n in (1, 2, 3)}
    both = layouts([Owned("a", 4), Owned("b", 2)], {"a": [one], "b": [Kind("b", "tp=2", 2)]})
    kinds = {both.text(row) for row in range(len(both))}
    assert "4 x tp=1 mixed on a; 1 x tp=2 mixed on b" in kinds
    assert "4 x tp=1 prefill on a; 1 x tp=2 decode on b" in kinds
    assert "1 x tp=1 prefill + 3 x tp=1 decode on a; 1 x tp=2 prefill on b" in kinds
    assert not any("mixed" in text and "decode" in text for text in kinds)


def test_gaps_alone_do_not_hide_a_full_decode_side(scenario: Scenario) -> None:
    assert with_whole_requests(scenario).slo.tpot == scenario.slo.itl
    own = scenario.changed(slo={"ttft": {"p90": 1.0}, "itl": {"p99": 1.0}, "e2e": {"p99": 9.0}})
    assert with_whole_requests(own).slo.tpot == {}


def test_what_cannot_be_answered_is_one_line(scenario: Scenario) -> None:
    for text in ("h100-sxm", "h100-sxm:x", "h100-sxm:0", "h100-sxm:1,h100-sxm:2", ""):
        with pytest.raises(ChipsimError, match="--inventory"):
            parse_inventory(text)
    big = scenario.changed(model="llama-3.1-70b")
    with pytest.raises(
        ChipsimError, match=r"h100-sxm:1 is not enough: llama-3\.1-70b"
    ) as error:
        plan_inventory((Owned("h100-sxm", 1),), big)
    assert "\n" not in str(error.value)
    with pytest.raises(ChipsimError, match="goal"):
        plan(scenario, goal="beauty")
    with pytest.raises(ChipsimError, match="a limit on a percentile"):
        plan(scenario.changed(slo={}))
    none = plan(scenario.changed(slo={"ttft": {"p90": 0.001}}), plans=ONE)
    assert none.rows == ()
    assert none.reason


def test_a_search_goes_on_from_its_journal(scenario: Scenario, tmp_path: Path) -> None:
    kept = tmp_path / "verdicts.jsonl"
    first = plan(scenario, journal=Journal(kept), plans=ONE)
    again = plan(scenario, journal=Journal(kept), plans=ONE)
    assert first.runs > 0
    assert again.runs == 0
    assert again.records() == first.records()


@pytest.mark.parametrize("target", ["dynamo", "llm-d", "vllm"])
def test_a_sketch_is_yaml_with_the_numbers_found(scenario: Scenario, target: str) -> None:
    whole = search(scenario)
    row = next(
        row
        for row in range(len(whole.layouts))
        if whole.layouts.text(row) == "1 x tp=1 prefill + 1 x tp=2 decode on h100-sxm"
    )
    deployment = Deployment.of(whole.cluster(row, Tuning(64, 16)), why=["because"])
    text = sketch(deployment, target)
    assert text.startswith("# A sketch for")
    assert "# Decided by simulation:\n#   because\n" in text
    documents = list(yaml.safe_load_all(text))
    [prefill, decode] = READ[target](documents)
    assert prefill == {"replicas": 1, "gpus": 1, "tp": 1, "tokens": 64, "batch": 16}
    assert decode == {"replicas": 1, "gpus": 2, "tp": 2, "tokens": 64, "batch": 16}
    assert "NixlConnector" in text
    assert "meta-llama/Llama-3.1-8B" in text


def _options(words: list[str]) -> dict[str, str]:
    return dict(zip(words[::2], words[1::2], strict=True))


def _of_options(options: dict[str, Any], replicas: int, gpus: Any) -> dict[str, int]:
    number = {name.removeprefix("--"): value for name, value in options.items()}
    return {
        "replicas": replicas,
        "gpus": int(str(gpus)),
        "tp": int(str(number.get("tensor-parallel-size", 1))),
        "tokens": int(str(number["max-num-batched-tokens"])),
        "batch": int(str(number["max-num-seqs"])),
    }


def _read_dynamo(documents: list[Any]) -> list[dict[str, int]]:
    [graph] = documents
    assert graph["apiVersion"] == "nvidia.com/v1beta1"
    assert graph["kind"] == "DynamoGraphDeployment"
    parts = {part["type"]: part for part in graph["spec"]["components"]}
    assert set(parts) == {"frontend", "prefill", "decode"}
    found = []
    for role in ("prefill", "decode"):
        [main] = parts[role]["podTemplate"]["spec"]["containers"]
        options = _options(main["args"])
        assert options["--disaggregation-mode"] == role
        gpus = main["resources"]["limits"]["nvidia.com/gpu"]
        found.append(_of_options(options, parts[role]["replicas"], gpus))
    return found


def _read_llm_d(documents: list[Any]) -> list[dict[str, int]]:
    [values] = documents
    assert values["modelArtifacts"]["uri"] == "hf://meta-llama/Llama-3.1-8B"
    found = []
    for role in ("prefill", "decode"):
        [main] = values[role]["containers"]
        gpus = main["resources"]["limits"]["nvidia.com/gpu"]
        read = _of_options(_options(main["args"]), values[role]["replicas"], gpus)
        found.append(read | {"tp": values[role]["parallelism"]["tensor"]})
    return found


def _read_vllm(documents: list[Any]) -> list[dict[str, int]]:
    assert len(documents) == 2
    return [
        _of_options(each, 1, each.get("tensor-parallel-size", 1)) for each in documents
    ]  # fmt: skip


READ = {"dynamo": _read_dynamo, "llm-d": _read_llm_d, "vllm": _read_vllm}
