"""Scenarios, from the file to the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from chipsim.cluster.percentiles import percentiles
from chipsim.cluster.scenario import Scenario
from chipsim.cluster.simulate import Cluster
from chipsim.cluster.timeline import chrome_trace, series
from chipsim.cluster.workload import Workload
from chipsim.errors import ChipsimError, ConfigError

if TYPE_CHECKING:
    from chipsim.cluster.results import Simulation

STEPS = (
    "phase,batch,tokens,latency_s\nprefill,1,100,0.1\nprefill,1,200,0.2\ndecode,1,100,0.01\n"
)


def description(**changes: Any) -> dict[str, Any]:
    """Two instances of measured steps: 1 ms per prompt token, 10 ms per decode step."""
    pool = {"steps": "steps.csv", "kv_tokens": 4096, "max_tokens": 512, "max_batch": 8}
    return {
        "name": "small",
        "model": "llama-3.1-8b",
        "workload": "trace.csv",
        "pools": {
            "prefill": {"role": "prefill", **pool},
            "decode": {"role": "decode", **pool},
        },
        "handoff": {"bandwidth": "1 TB/s", "contention": "none"},
        **changes,
    }


def scenario(folder: Path, **changes: Any) -> Scenario:
    (folder / "steps.csv").write_text(STEPS)
    (folder / "trace.csv").write_text(
        "arrival_s,prompt_tokens,output_tokens\n0,100,3\n5,200,1\n"
    )
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(description(**changes)))
    return Scenario.load(path)


@pytest.fixture
def run(tmp_path: Path) -> Simulation:
    return Cluster(scenario(tmp_path)).run(log_steps=True)


def test_times_are_those_worked_out_by_hand(run: Simulation) -> None:
    # 131,072 B of KV a token (32 layers, 8 heads of 128, K and V, fp16) over 1 TB/s.
    hand_off = 100 * 131_072 / 1e12
    assert run.times["ttft_s"].tolist() == pytest.approx([0.1, 0.2])
    assert run.times["transfer_s"].tolist() == pytest.approx([hand_off, 0.0])
    assert run.times["e2e_s"].tolist() == pytest.approx([0.1 + hand_off + 0.02, 0.2])
    assert run.times["tpot_s"][0] == pytest.approx((hand_off + 0.02) / 2)
    assert run.times["tbt_s"][0] == pytest.approx((hand_off + 0.02) / 3)
    assert np.isnan(run.times["tpot_s"][1])


def test_a_summary_adds_up_and_is_plain(run: Simulation) -> None:
    figures = run.summary()
    json.dumps(figures, allow_nan=False)
    assert figures["requests"] == figures["finished"] == 2
    assert figures["instances"] == {"prefill": 1, "decode": 1}
    assert figures["itl_s"]["max"] == pytest.approx(0.01 + 100 * 131_072 / 1e12)
    assert figures["cost_usd_per_hour"] is None
    assert "no price" in figures["unpriced"]


def test_rows_of_requests(run: Simulation) -> None:
    table = run.frame()
    assert table["status"].tolist() == ["finished", "finished"]
    assert table["prefill_instance"].tolist() == ["prefill-0", "prefill-0"]
    assert table["decode_instance"].tolist() == ["decode-0", ""]
    assert table["output_tokens"].tolist() == [3, 1]


def test_series_hold_the_busy_time(run: Simulation) -> None:
    over_time = series(run, bins=52)
    width = run.outcome.end_s / 52
    busy = over_time[over_time["pool"] == "prefill"]["busy"].sum() * width
    assert busy == pytest.approx(0.3)
    decodes = over_time[over_time["pool"] == "decode"]["decodes"].sum() * width
    assert decodes == pytest.approx(0.02)


def test_a_trace_for_perfetto_has_every_step_and_transfer(run: Simulation) -> None:
    events = chrome_trace(run)["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert [s["name"] for s in slices if s["tid"] == 0] == [
        "prefill",
        "decode",
        "decode",
        "prefill",
    ]
    assert [s["name"] for s in slices if s["tid"] == 1] == ["request 0"]
    assert slices[0]["dur"] == pytest.approx(0.1e6)


def test_series_need_a_log(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="log_steps"):
        series(Cluster(scenario(tmp_path)).run())


def test_objectives_in_seconds_and_as_slowdown(tmp_path: Path) -> None:
    slo = {
        "ttft": {"p50": "1 s", "p100": "150 ms"},
        "slowdown": {"reference": {"steps": "steps.csv"}, "ttft": {"p90": 1.01}},
    }
    small = scenario(tmp_path, slo=slo)
    found = {each.name: each for each in Cluster(small).run().objectives}
    assert found["p50 ttft_s"].holds
    assert found["p50 ttft_s"].reached == pytest.approx(0.15)
    assert not found["p100 ttft_s"].holds
    assert found["p100 ttft_s"].margin == pytest.approx(1 - 0.2 / 0.15)
    assert found["p90 ttft_slowdown"].reached == pytest.approx(1.0)


def test_goodput_counts_what_is_fast_enough(tmp_path: Path) -> None:
    run = Cluster(scenario(tmp_path, goodput={"ttft": "150 ms", "tpot": "1 s"})).run()
    assert run.goodput_rps == pytest.approx(1 / run.duration_s)


def test_more_instances_without_new_tables(tmp_path: Path) -> None:
    cluster = Cluster(scenario(tmp_path))
    together = Workload(np.zeros(8), np.full(8, 400), np.full(8, 2))
    with pytest.raises(ConfigError, match="prompt_tokens"):
        cluster.run(workload=together)
    cluster = Cluster(scenario(tmp_path), together)
    one = cluster.run().times["ttft_s"]
    four = cluster.run(instances={"prefill": 4}).times["ttft_s"]
    assert one.max() == pytest.approx(8 * 0.4)
    assert four.max() == pytest.approx(2 * 0.4)


def test_two_runs_are_the_same(tmp_path: Path) -> None:
    cluster = Cluster(scenario(tmp_path, routing="random"))
    first, second = cluster.run(), cluster.run()
    pd.testing.assert_frame_equal(first.frame(), second.frame())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pools": {"a": {"role": "prefill", "chip": "h100-sxm"}}}, "role decode or mixed"),
        ({"pools": {"a": {"chip": "h100-sxm", "instances": 0}}}, "at least one instance"),
        ({"pools": {"a": {"chip": "h100-sxm", "max_tokns": 3}}}, r"pools\.a\.max_tokns"),
        ({"pools": {"a": {}}}, "a chip, or measured steps"),
        ({"pools": {"a": {"chip": "h100-sxm", "max_batch": 0}}}, r"pools\.a\.max_batch"),
        ({"workload": {"base": "trace.csv", "rate": 0}}, r"workload\.rate"),
        ({"routing": "fastest"}, "routing"),
        ({"faults": [{"pool": "x", "at": "1 s", "instance": 0}]}, r"faults\.0\.pool"),
        ({"slo": {"ttft": {"p101": "1 s"}}}, r"slo\.ttft"),
        ({"handoff": {"bandwidth": "5 GB"}}, r"handoff\.bandwidth"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        scenario(tmp_path, **changes)


def test_a_plan_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    pools = {"all": {"chip": "h100-sxm", "plan": "tp=1"}}
    with pytest.raises(ChipsimError, match="does not fit h100-sxm"):
        Cluster(scenario(tmp_path, model="llama-3.1-70b", pools=pools)).run()


@given(
    st.lists(st.tuples(st.floats(0.0, 10.0), st.integers(1, 9)), min_size=1, max_size=30),
    st.lists(st.floats(0.0, 100.0), min_size=1, max_size=4),
)
def test_weighted_percentiles_are_those_of_the_whole_list(
    pairs: list[tuple[float, int]], shares: list[float]
) -> None:
    values, counts = (np.array(column) for column in zip(*pairs, strict=True))
    wanted = np.percentile(np.repeat(values, counts), shares)
    np.testing.assert_allclose(percentiles(values, shares, counts), wanted, rtol=1e-9)


def test_full_windows_leave_room_for_more_tokens() -> None:
    from chipsim.chip import Chip
    from chipsim.memory import memory_plan
    from chipsim.ops.model import ModelSpec
    from chipsim.ops.plan import Parallelism
    from chipsim.ops.precision import Precision

    model = ModelSpec.load("gpt-oss-20b")
    spec = Scenario.build(
        "windows",
        name="windows",
        model="gpt-oss-20b",
        precision="bf16",
        workload={"base": "azure-conversation", "requests": 50},
        pools={"all": {"chip": "h100-sxm", "max_batch": 16, "max_tokens": 512}},
    )
    cluster = Cluster(spec)
    lengths = cluster.workload.prompt_tokens + cluster.workload.output_tokens
    chip = Chip.load("h100-sxm")
    memory = memory_plan(chip, model, Parallelism(), Precision.parse("bf16"))
    each = memory.stages[0].sequence_bytes(round(lengths.mean())) / lengths.mean()
    held = cluster.capacity("all").kv_blocks * 16
    assert held == pytest.approx(memory.free_bytes / each, rel=0.01)
    assert held > 1.3 * (memory.kv_tokens or 0)
