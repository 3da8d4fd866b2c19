"""Splitwise's policies: its simulator's runs, and its rules with plain lists."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from chipsim.cli import main
from chipsim.cluster.engine import Requests
from chipsim.errors import ChipsimError
from chipsim.validation import validate
from chipsim.validation.splitwise import (
    MEMORY_BYTES,
    MODELS,
    Setup,
    _through,
    replay_splitwise,
    simulate,
    statistics,
    step_times,
)
from tests.cluster.splitwise_plain import Job, Machine, Sim

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "splitwise"
PACKAGED = Path(__file__).parents[2] / "validation" / "data" / "splitwise"
H, A, CAP = "h100-80gb", "a100-80gb", "h100-80gb-pcap"
MICROSECOND = 1e-6


def largest(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.abs(ours - theirs).max())


def test_every_request_of_the_packaged_runs() -> None:
    for replay in replay_splitwise():
        assert largest(replay.ttft_s, replay.reference_ttft_s) < 2e-9
        assert largest(replay.e2e_s, replay.reference_e2e_s) < 2e-9


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference runs are not here")
def test_every_request_of_the_reference_runs() -> None:
    replays = replay_splitwise(REFERENCE)
    assert [len(replay.ttft_s) for replay in replays] == [238, 230, 9531]
    for replay in replays:
        assert largest(replay.ttft_s, replay.reference_ttft_s) < MICROSECOND
        assert largest(replay.e2e_s, replay.reference_e2e_s) < MICROSECOND


def plain(requests: Requests, setup: Setup) -> tuple[np.ndarray, np.ndarray]:
    """TTFT and E2E by the rules with plain lists."""
    served, times = MODELS[setup.model], step_times(PACKAGED)
    capacity = int((MEMORY_BYTES - served.weights) // served.kv_per_token)
    sim = Sim(setup.token > 0, served.kv_per_token)
    for number in range(setup.prompt + setup.token):
        first = number < setup.prompt
        rows = times[setup.model, setup.prompt_hardware if first else setup.token_hardware]
        prompt_s = _through(rows[0], rows[1], 20_000)
        token_s = _through(rows[0], rows[2], 600)
        tag = "prompt" if first else "token"
        sim.add(Machine(number, tag, capacity, prompt_s.__getitem__, token_s.__getitem__, sim))
    columns = zip(requests.arrival_s, requests.prompt, requests.output, strict=True)
    jobs = [Job(i, float(a), int(p), int(o)) for i, (a, p, o) in enumerate(columns)]
    sim.run(jobs)
    return np.array([job.ttft for job in jobs]), np.array([job.e2e for job in jobs])


def draw(rate: float, seconds: float, prompt: float, output: float, seed: int) -> Requests:
    """Poisson arrivals, log-normal lengths around two medians."""
    rng = np.random.default_rng(seed)
    count = int(rate * seconds)
    return Requests.of(
        np.cumsum(rng.exponential(1 / rate, count)),
        np.clip(rng.lognormal(np.log(prompt), 1.0, count), 1, 8000).astype(int),
        np.clip(rng.lognormal(np.log(output), 0.9, count), 2, 1500).astype(int),
    )


CONVERSATION, CODE = (900, 150), (1700, 15)


@pytest.mark.parametrize(
    ("rate", "lengths", "setup"),
    [
        (40, CONVERSATION, Setup("bloom-176b", 12, 8, H, H)),
        (40, CODE, Setup("bloom-176b", 12, 13, H, A)),
        (60, CONVERSATION, Setup("bloom-176b", 8, 12, H, H)),
        (60, CODE, Setup("bloom-176b", 10, 5, H, CAP)),
        (60, CONVERSATION, Setup("bloom-176b", 6, 4, A, A)),
        (2, CODE, Setup("llama2-70b", 1, 1, H, A)),
        (40, CONVERSATION, Setup("bloom-176b", 10, 0, A, A)),
        (30, CODE, Setup("llama2-70b", 5, 0, H, H)),
    ],
)
def test_rules_with_plain_lists(
    rate: float, lengths: tuple[float, float], setup: Setup
) -> None:
    """Also far beyond what the machines can serve: preemption, starvation, lent machines."""
    requests = draw(rate, 30, *lengths, seed=int(rate) + setup.prompt)
    ttft, e2e = plain(requests, setup)
    outcome = simulate(requests, setup, step_times(PACKAGED))
    got = outcome.requests
    np.testing.assert_allclose(got["first_token_s"] - requests.arrival_s, ttft, atol=1e-9)
    np.testing.assert_allclose(got["finish_s"] - requests.arrival_s, e2e, atol=1e-9)


def test_names_and_summary_tell_the_machines(tmp_path: Path) -> None:
    """What a name leaves open, the one fitting row of summary.csv tells; else it is named."""
    run = (PACKAGED / "requests_splitwise_1P1T_H100_llama2-70b_code_2rps.csv").read_text()
    (tmp_path / "requests_x_llama2-70b.csv").write_text(run)
    with pytest.raises(ChipsimError, match=r"no 40xH100 or 25P15T in its name"):
        replay_splitwise(tmp_path)
    figures = statistics(replay_splitwise(PACKAGED)[1])
    head = "model,scheduler,a100,h100,h100_pcap,prompt_machines,token_machines,requests,"
    row = "llama2-70b,mixed_pool,0,2,0,1,1,230,500682,5409"
    (tmp_path / "summary.csv").write_text(
        f"{head}prompt_tokens,output_tokens,{','.join(figures)}\n"
        f"{row},{','.join(f'{value:.5f}' for value in figures.values())}\n"
    )
    result = validate("splitwise", tmp_path)
    assert result.differences()["max_difference_s"].max() < 1e-5
    summary = result.points[result.points["operator"] == "summary"]
    assert set(summary["shape"]) == set(figures)


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["validate", "splitwise", "--json"])
    record = json.loads(capsys.readouterr().out)
    assert {row["suite"] for row in record["rows"]} == {"splitwise"}
    assert max(row["mape"] for row in record["rows"]) < 1e-7
    assert max(row["max_difference_s"] for row in record["differences"]) < MICROSECOND


def test_no_run_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ChipsimError, match="no run of Splitwise's simulator"):
        replay_splitwise(tmp_path)
    with pytest.raises(ChipsimError, match="no such folder"):
        replay_splitwise(tmp_path / "nowhere")
