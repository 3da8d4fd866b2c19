from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chipsim import load_workload
from chipsim.cluster.readers import read_trace
from tests.cluster import traces

if TYPE_CHECKING:
    from tests.cli.conftest import Command


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.jsonl"
    path.write_text(traces.MOONCAKE)
    return path


def test_json_holds_the_statistics(chipsim: Command) -> None:
    ran = chipsim("workload azure-code --requests 500 --rate 4 --seed 3 --json")
    expected = load_workload("azure-code", requests=500, rate=4.0, seed=3).summary()
    assert ran.json == expected
    assert [row["series"] for row in ran.json["rows"]] == [
        "prompt_tokens", "output_tokens", "interarrival_s",
    ]  # fmt: skip


def test_the_table_fits_a_terminal_and_says_what_was_counted(
    chipsim: Command, tmp_path: Path
) -> None:
    path = tmp_path / "burst.csv"
    path.write_text(traces.BURSTGPT)
    out = chipsim("workload", str(path)).out
    assert "rows with 0 tokens" in out
    assert "burst.csv: 2 requests" in out
    for name in ("agentic", "azure-conversation"):
        out = chipsim(f"workload {name} --requests 300").out
        assert max(len(line) for line in out.splitlines()) <= 100


def test_arrivals_of_another_kind(chipsim: Command) -> None:
    given = chipsim("workload azure-code --requests 4000 --arrivals gamma --cv 2 --json").json
    assert given["interarrival_cv"] == pytest.approx(2.0, rel=0.15)
    even = chipsim("workload azure-code --duration 100s --arrivals deterministic --json").json
    assert even["interarrival_cv"] == pytest.approx(0.0, abs=1e-9)
    assert even["requests"] == 257  # 2.56669 /s for 100 s


@pytest.mark.parametrize("ending", ["csv", "parquet", "json", "html", "yaml"])
def test_out_is_what_its_ending_says(
    chipsim: Command, tmp_path: Path, trace: Path, ending: str
) -> None:
    out = tmp_path / f"out.{ending}"
    ran = chipsim("workload", str(trace), "--spread", "even", "--out", str(out), "--json")
    assert ran.code == 0
    assert ran.json["requests"] == 3
    assert f"wrote {out}" in ran.err
    if ending == "csv":
        again = read_trace(out)
        assert again.arrival_s.tolist() == [0.0, 3.0, 4.5]
        assert again.block_ids.tolist() == [0, 1, 2, 0, 1, 9, 4]
    if ending == "yaml":
        assert (
            chipsim("workload", str(out), "--requests", "50", "--json").json["requests"] == 50
        )
    if ending == "html":
        assert "NaN" not in out.read_text().rsplit("</script>", 2)[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("azur-code", "did you mean azure-code"),
        ("none.csv", "none.csv: no such file"),
        ("azure-code --rate 0", "rate: 0.0 is not allowed"),
        ("azure-code --requests 0", "requests: 0 is not allowed"),
        ("azure-code --seed -1", "seed: -1 is not allowed"),
        ("azure-code --duration 5", "--duration: '5'"),
        ("azure-code --requests 5 --duration 5s", "requests or duration, not both"),
        ("azure-code --arrivals pareto", "--arrivals: 'pareto'"),
        ("azure-code --arrivals poisson --cv 2", "with --arrivals gamma"),
        ("azure-code --spread evenly", "--spread: 'evenly'"),
        ("azure-code --out a.gif", "a name ending in .html"),
        ("agentic --out a.yaml", "an open loop"),
    ],
)
def test_a_bad_request_costs_one_line(chipsim: Command, words: str, message: str) -> None:
    ran = chipsim(f"workload {words}")
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""


def test_a_workload_is_shown(chipsim: Command) -> None:
    shown = chipsim("show", "agentic", "--json").json
    assert shown["kind"] == "workload"
    assert shown["sessions"]["new"]["mean"] == 6000
    assert "8.00 s" in chipsim("show", "agentic").out
