"""The library's workloads, and how a trace is condensed into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml

from chipsim import ChipsimError, Workload, load_workload
from chipsim.arch_configs import names
from chipsim.cluster.arrivals import Arrivals
from chipsim.cluster.condense import as_yaml, condense, explained
from chipsim.cluster.readers import read_trace
from chipsim.cluster.workload_spec import WorkloadSpec
from tests.cluster import traces
from tests.cluster.test_workload import workload

if TYPE_CHECKING:
    from pathlib import Path

# Of the traces, from shared/reference/traces/README.md: mean, P50, P90, P99, max.
PUBLISHED = {
    ("azure-code", "prompt_tokens"): (2047.8, 1469, 5188, 7436, 7437),
    ("azure-code", "output_tokens"): (27.9, 13, 55, 251.5, 1899),
    ("azure-conversation", "prompt_tokens"): (1154.7, 1020, 2734, 4142, 14050),
    ("azure-conversation", "output_tokens"): (211.1, 129, 424, 601, 1000),
}
TRACES = {"azure-code": "azure_code.csv", "azure-conversation": "azure_conv.csv"}


@pytest.fixture(scope="module", params=TRACES)
def drawn(request: pytest.FixtureRequest) -> tuple[str, Workload]:
    """A bundled workload, so long that what is left is the table's own error."""
    return request.param, load_workload(request.param, requests=1_000_000)


@pytest.mark.parametrize("name", names("workloads"))
def test_a_workload_loads_and_names_its_source(name: str) -> None:
    spec = WorkloadSpec.load(name)
    assert spec.name == name
    assert len(spec.source) > 10
    assert spec.description
    assert len(spec.workload()) == spec.requests


def test_the_library_holds_what_is_promised() -> None:
    assert set(names("workloads")) >= {"azure-code", "azure-conversation", "agentic"}


@pytest.mark.parametrize("series", ["prompt_tokens", "output_tokens"])
def test_lengths_are_the_traces_within_a_hundredth(
    drawn: tuple[str, Workload], series: str
) -> None:
    name, made = drawn
    row = next(row for row in made.summary()["rows"] if row["series"] == series)
    found = [row[key] for key in ("mean", "p50", "p90", "p99", "max")]
    assert found == pytest.approx(PUBLISHED[name, series], rel=0.01)


def test_prompt_and_output_go_together_as_in_the_trace(drawn: tuple[str, Workload]) -> None:
    """Mean output of each quarter of the prompts; a copula could not give these."""
    name, made = drawn
    trace = read_trace(traces.reference(TRACES[name]))
    edges = np.quantile(trace.prompt_tokens, [0.25, 0.5, 0.75])
    for part in range(4):
        means = [
            w.output_tokens[np.searchsorted(edges, w.prompt_tokens) == part].mean()
            for w in (made, trace)
        ]
        assert means[0] == pytest.approx(means[1], rel=0.02 if name != "azure-code" else 0.08)


@pytest.mark.parametrize("name", TRACES)
def test_gaps_of_the_trace_are_there_on_request(name: str) -> None:
    made = load_workload(name, requests=1_000_000, arrivals="gaps")
    cv = {"azure-code": 13.152, "azure-conversation": 1.094}[name]
    assert made.summary()["interarrival_cv"] == pytest.approx(cv, rel=0.06)


@pytest.mark.parametrize("name", TRACES)
def test_the_bundled_file_is_its_condensed_trace(name: str) -> None:
    spec, made = WorkloadSpec.load(name), condense(read_trace(traces.reference(TRACES[name])))
    assert made.lengths == spec.lengths
    assert made.arrivals == spec.arrivals
    assert (made.rate, made.requests) == (spec.rate, spec.requests)


def test_agents_are_as_published() -> None:
    """140K-token prompts and 6K new (Prime Inference); uncached over output 15 (KITE)."""
    made = load_workload("agentic", requests=20_000, seed=1)
    summary = made.summary()
    assert made.prompt_tokens.mean() == pytest.approx(140e3, rel=0.05)
    assert 14.64 < summary["uncached_prompt_to_output"] < 16.29
    new = next(row for row in summary["rows"] if row["series"] == "new_prompt_tokens")
    assert new["mean"] == pytest.approx(6e3, rel=0.1)


def test_a_condensed_description_reads_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    prompt = rng.integers(1, 5000, 4000)
    trace = workload(
        4000,
        arrival_s=np.cumsum(rng.exponential(1.0, 4000)),
        prompt_tokens=prompt,
        output_tokens=1 + prompt // 10,
    )
    assert explained(trace, 8) > 0.9
    spec = condense(trace)
    text = as_yaml(spec, "one\ntwo")
    assert text.startswith("# one\n# two\nname: workload\n")
    assert WorkloadSpec.read(yaml.safe_load(text), "x") == spec
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    drawn = load_workload(path, requests=100_000)
    for series in ("prompt_tokens", "output_tokens"):
        mine, theirs = getattr(drawn, series), getattr(trace, series)
        assert np.quantile(mine, 0.5) == pytest.approx(np.quantile(theirs, 0.5), rel=0.02)
        assert mine.mean() == pytest.approx(theirs.mean(), rel=0.02)
    assert np.corrcoef(drawn.prompt_tokens, drawn.output_tokens)[0, 1] > 0.95


def test_a_constant_trace_is_condensed_to_itself() -> None:
    spec = condense(workload(5, prompt_tokens=np.full(5, 9)))
    drawn = spec.changed(requests=50, arrivals=Arrivals(kind="deterministic")).workload()
    assert set(drawn.prompt_tokens) == {9}
    assert set(drawn.output_tokens) == {1}


def test_a_closed_loop_is_not_condensed() -> None:
    with pytest.raises(ChipsimError, match="an open loop"):
        condense(load_workload("agentic", requests=50))


DESCRIPTION: dict[str, Any] = {
    "name": "mine", "source": "a test", "rate": 2.0, "requests": 10,
    "lengths": {"classes": [{"prompt": {"kind": "fixed", "tokens": 5},
                             "output": {"kind": "geometric", "mean": 4}}]},
}  # fmt: skip


def edited(field: str, value: Any) -> dict[str, Any]:
    data = yaml.safe_load(yaml.safe_dump(DESCRIPTION))
    inner, *path = data, *field.split(".")
    for key in path[:-1]:
        inner = inner[int(key) if key.isdecimal() else key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    found: dict[str, Any] = data
    return found


QUANTILES = {"kind": "quantiles"}
BAD: list[tuple[str, Any, str]] = [
    ("rates", 3, "rates: .*no such key"),
    ("rate", ..., "rate: None .*requests/s above 0"),
    ("rate", 0, "rate: 0 .*above 0"),
    ("rate", float("nan"), "rate: nan"),
    ("rate", "fast", "rate: 'fast' .*a number"),
    ("requests", ..., "requests: None .*requests or duration"),
    ("requests", 0, "requests: 0 .*1 or more"),
    ("duration", "9 s", "duration: .*not both"),
    ("duration", 9, "duration: 9 .*with its unit"),
    ("seed", -1, "seed: -1"),
    ("lengths", ..., "lengths: None .*one of lengths, sessions and trace"),
    ("trace", "a.csv", "lengths: 'lengths and trace'"),
    ("arrivals", {"kind": "gamma"}, "cv: None"),
    ("arrivals", {"kind": "pareto"}, "arrivals.kind: 'pareto'"),
    ("arrivals", {"kind": "gamma", "cv": -1}, "arrivals.cv: -1"),
    ("arrivals", {"kind": "diurnal", "swing": 2}, "arrivals.swing: 2 .*at most 1"),
    ("arrivals", {"kind": "diurnal", "hourly": [0, 0]}, "hourly: 0 .*at least one"),
    ("arrivals", {"gaps": {"ratio": [0, 1], "share": [0, 0.5]}}, "share: .*from 0 to 1"),
    ("lengths.classes", [], "lengths.classes"),
    ("lengths.classes.0.share", 0.5, "classes: 0.5 .*add up to 1"),
    ("lengths.classes.0.correlation", 2, "correlation: 2 .*at most 1"),
    ("lengths.classes.0.prompt.kind", "zipf", "prompt: .*fixed, uniform, geometric"),
    ("lengths.classes.0.prompt.tokens", 0, "prompt.tokens: 0 .*1 or more"),
    ("lengths.classes.0.prompt.tokens", 2**40, "prompt.tokens: .*at most"),
    ("lengths.classes.0.output.mean", float("inf"), "output.mean: inf"),
    ("lengths.classes.0.prompt", {"kind": "uniform", "low": 5, "high": 4}, "high: 4"),
    ("lengths.classes.0.prompt", QUANTILES | {"tokens": [1, 2], "share": [1]}, "share"),
    ("lengths.classes.0.prompt", QUANTILES | {"tokens": [2, 1], "share": [0, 1]}, "rise"),
    ("lengths.classes.0.prompt", QUANTILES | {"tokens": [1], "share": [0.5]}, "1 in the"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value", "message"), BAD)
def test_a_bad_description_is_refused_in_one_line(
    tmp_path: Path, field: str, value: Any, message: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(edited(field, value)))
    with pytest.raises(ChipsimError, match=message) as caught:
        load_workload(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("mine.yaml: ")


def test_a_description_finds_the_trace_beside_it(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_text(traces.MOONCAKE)
    spec = {"name": "mine", "source": "a test", "trace": "trace.jsonl", "rate": 10.0}
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(spec))
    made = load_workload(path)
    assert made.name == "mine"
    assert made.rate_rps == pytest.approx(10.0)
    assert load_workload(path, requests=2).prompt_tokens.tolist() == [1100, 1500]
    spec["trace"] = {"path": "trace.jsonl", "resample": "independent"}
    path.write_text(yaml.safe_dump(spec | {"requests": 500}))
    drawn = load_workload(path)
    assert len(drawn) == 500
    assert set(drawn.prompt_tokens) == {1100, 1500, 12}


def test_a_trace_takes_other_arrivals(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(traces.MOONCAKE)
    made = load_workload(path, arrivals="deterministic", rate=4.0)
    assert made.arrival_s.tolist() == [0.0, 0.25, 0.5]
    assert made.block_offsets.tolist() == [0, 3, 6, 7]
    assert load_workload(path, duration_s=1.0).prompt_tokens.tolist() == [1100]
    with pytest.raises(ChipsimError, match=r"requests: 9 .*1 to 3"):
        load_workload(path, requests=9)


def test_a_misspelt_name_is_suggested() -> None:
    with pytest.raises(ChipsimError, match="did you mean azure-code"):
        load_workload("azur-code")
    with pytest.raises(ChipsimError, match=r"none\.csv: no such file"):
        load_workload("none.csv")
    with pytest.raises(ChipsimError, match="none: they read a trace"):
        load_workload("azure-code", format="csv")
