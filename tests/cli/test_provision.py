from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Command

STEPS = (
    "phase,batch,tokens,latency_s\nprefill,1,100,0.1\nprefill,1,200,0.2\ndecode,1,100,0.01\n"
)
SCENARIO = """\
name: small
model: llama-3.1-8b
workload: {base: trace.csv}
pools:
  all: {steps: steps.csv, kv_tokens: 4096, max_batch: 8, max_tokens: 512}
slo:
  ttft: {p90: 1 s}
goodput: {ttft: 1 s, tpot: 1 s}
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "steps.csv").write_text(STEPS)
    rows = "".join(f"{0.05 * i},100,5\n" for i in range(40))
    (tmp_path / "trace.csv").write_text("arrival_s,prompt_tokens,output_tokens\n" + rows)
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    quick = SCENARIO.replace("name: small", "name: quick").replace(
        "steps.csv,", "steps.csv, prefill_factor: 0.25,"
    )
    (tmp_path / "quick.yaml").write_text(quick)
    return path


WORDS = ("--goal", "instances", "--most", "12")


def test_answer_with_goodput_and_largest_rate(chipsim: Command, small: Path) -> None:
    ran = chipsim("provision", str(small), *WORDS, "--capacity")
    assert ran.code == 0
    assert "all hold the objective under seed 0; p90 ttft_s binds" in ran.out
    assert "goodput of the first seed:" in ran.out
    assert "the largest rate held:" in ran.out


def test_saving_with_its_interval(chipsim: Command, small: Path) -> None:
    other = str(small.parent / "quick.yaml")
    words = ("provision", other, *WORDS, "--versus", str(small), "--uncertainty", "4")
    found = chipsim(*words, "--block-error", "0.05", "--json").json
    assert found["versus"]["pools"] == {"all": 2}
    assert found["pools"] == {"all": 1}
    assert found["versus"]["saving"] == found["uncertainty"]["saving"] == 0.5
    drawn = found["uncertainty"]
    assert drawn["draws"] == len(drawn["rows"]) == 4
    assert {each["classes"]["all"] for each in drawn["errors"]} == {0.05}
    assert all("state no error: the default" in each["said"] for each in drawn["errors"])
    said = chipsim(*words, "--block-error", "0.05").out
    assert "saving, prices alone" in said
    assert "95 % of the draws save" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--uncertainty", "3"), "--uncertainty: 3 is not allowed; allowed: a power of two"),
        (("--emit", "vllm"), "pools.all.chip: None is not allowed; allowed: a chip, to deploy"),
        (("--emit", "k8s"), "--emit: 'k8s' is not allowed; allowed: dynamo, llm-d, vllm"),
        (("--most", "1", "--emit", "vllm"), "--emit: nothing to write: none of 1 counts"),
        (("--most", "1", "--uncertainty", "4"), "a cluster that holds it"),
    ],
)
def test_what_cannot_be_answered_is_one_line(
    chipsim: Command, small: Path, words: tuple[str, ...], said: str
) -> None:
    ran = chipsim("provision", str(small), *WORDS, *words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_no_cluster_is_an_answer(chipsim: Command, small: Path) -> None:
    ran = chipsim("provision", str(small), *WORDS, "--most", "1")
    assert ran.code == 0
    assert "no cluster holds it: none of 1 counts" in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--inventory", "h100-sxm"), "CHIP:N"),
        (("--inventory", "h100:3", "chat-8b"), "did you mean h100-sxm"),
        (("--inventory", "h100-sxm:3"), "a SCENARIO is required"),
        (("--inventory", "h100-sxm:3", "chat-8b", "--ttft", "1s"), "p90=500ms,p99=2s"),
        (("--inventory", "h100-sxm:3", "chat-8b", "--chunks", "0"), "whole numbers from 1"),
        (("--inventory", "h100-sxm:3", "chat-8b", "--out", "x.pdf"), "--out"),
        (
            ("--inventory", "h100-sxm:1", "--model", "llama-3.1-405b", "--ttft", "p90=1s"),
            "h100-sxm:1 is not enough",
        ),
    ],
)
def test_plans_that_cannot_be_made_are_one_line(
    chipsim: Command, words: tuple[str, ...], said: str
) -> None:
    ran = chipsim("plan", *words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--range", "all=1:2,all=3:3"),
            "--range: all: '3:3' is not allowed; allowed: each pool",
        ),
        (
            ("--out", "counts.xyz"),
            "--out: 'counts.xyz' is not allowed; allowed: a name ending in",
        ),
    ],
)
def test_mistakes_are_told_before_the_search(
    chipsim: Command,
    small: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, str],
    said: str,
) -> None:
    monkeypatch.setattr(
        "chipsim.cluster.search.Search.verdict", lambda *_: pytest.fail("a run")
    )
    ran = chipsim("provision", str(small), *WORDS, *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"chipsim: error: {said}")
