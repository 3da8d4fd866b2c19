"""The search for counts against brute force, and its bounds against runs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from chipsim.cluster.bounds import Bounds, _shared
from chipsim.cluster.capacity import GRID, capacity
from chipsim.cluster.journal import Journal
from chipsim.cluster.provision import provision
from chipsim.cluster.scenario import Scenario
from chipsim.cluster.search import Search
from chipsim.cluster.simulate import Cluster
from chipsim.cluster.verdicts import breaking, judge, limits_of, surely_broken, verdict
from chipsim.errors import ChipsimError, ConfigError

STEPS = """phase,batch,tokens,latency_s
prefill,1,1,0.011
prefill,1,1000,0.11
prefill,1,4000,0.41
decode,1,1,0.0101
decode,1,4000,0.012
decode,64,1,0.02
decode,64,4000,0.08
"""

MOST = 7


def scenario(folder: Path, *, routing: str = "least_tokens", ttft: float = 1.0) -> Scenario:
    """Two pools on measured steps: a run of a few hundred requests takes milliseconds."""
    steps = folder / "steps.csv"
    steps.write_text(STEPS)
    mixed = routing == "mixed_pool"
    pool = {
        "steps": str(steps),
        "kv_tokens": 20_000,
        "block": 1,
        "max_batch": 32,
        "max_tokens": 2048,
        "reserve": "prompt" if mixed else "final",
        "batching": "splitwise" if mixed else "prefill_first",
    }
    return Scenario.build(
        "small",
        name="small",
        model="llama-3.1-8b",
        workload={"base": "azure-conversation", "rate": 10.0, "requests": 400},
        pools={"prefill": {"role": "prefill", **pool}, "decode": {"role": "decode", **pool}},
        routing=routing,
        handoff={
            "bandwidth": 50e9,
            "contention": "none",
            "at": "arrival" if mixed else "prefill_end",
            "retry": 1.0 if mixed else 0.0,
        },
        slo={"ttft": {"p90": ttft, "p99": 2 * ttft}, "tpot": {"p90": 0.05}},
    )


def test_answer_does_not_depend_on_workers(tmp_path: Path) -> None:
    given = scenario(tmp_path, routing="mixed_pool")
    one, two = (
        provision(Search(given, (0, 1), workers=workers), "instances", most=MOST, spare=0.3)
        for workers in (1, 2)
    )
    assert [each.record() for each in one.tried] == [each.record() for each in two.tried]
    assert one.best == two.best


def test_no_cluster_is_an_answer_with_a_reason(tmp_path: Path) -> None:
    answer = provision(Search(scenario(tmp_path, ttft=0.02)), "instances", most=MOST)
    assert answer.best is None
    assert "alone breaks p99 ttft_s" in answer.reason or "alone breaks p90" in answer.reason
    few = provision(Search(scenario(tmp_path)), "instances", most=2)
    assert few.best is None
    assert few.reason.startswith("none of 1 counts")


@pytest.mark.parametrize("routing", ["least_tokens", "mixed_pool"])
def test_bounds_never_refuse_what_holds(tmp_path: Path, routing: str) -> None:
    search = Search(scenario(tmp_path, routing=routing))
    bounds, served = search.bounds[0], search.workloads[0]
    refused = 0
    for counts in itertools.product(range(1, 5), repeat=2):
        instances = dict(zip(search.pools, counts, strict=True))
        said_no = bool(bounds.refuses(instances))
        refused += said_no
        if said_no:
            assert not search.cluster.run(instances=instances, workload=served).holds
    crowded = Bounds(search.cluster, served.at_rate(1000.0))
    assert crowded.refuses({"prefill": 1, "decode": 1})
    assert refused < 16


def test_whether_anything_can_help_is_asked_sooner_or_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After no run in vain, or only at the end: the same answer, and as few runs."""
    answers = []
    for patience in (1, 10**6):
        monkeypatch.setattr("chipsim.cluster.provision.IN_VAIN", patience)
        answers += [
            provision(Search(given), "instances", most=MOST)
            for given in (scenario(tmp_path), scenario(tmp_path, ttft=0.02))
        ]
    for sooner, later in zip(answers[:2], answers[2:], strict=True):
        assert sooner.best == later.best
        assert (sooner.tried, sooner.reason) == (later.tried, later.reason)
    assert answers[1].tried == ()
    assert "alone breaks" in answers[1].reason


def test_a_slow_pool_that_lends_is_no_reason(tmp_path: Path) -> None:
    """Alone, requests decode on slow machines; among others most find those full, and a quick
    one lent."""
    base = scenario(tmp_path, routing="mixed_pool")
    slow = tmp_path / "slow.csv"
    slow.write_text(STEPS.replace("decode,1,1,0.0101", "decode,1,1,0.03")
                    .replace("decode,1,4000,0.012", "decode,1,4000,0.031")
                    .replace("decode,64,1,0.02", "decode,64,1,0.04"))  # fmt: skip
    pools = {name: pool.model_dump(exclude_unset=True) for name, pool in base.pools.items()}
    pools["decode"] |= {"steps": str(slow), "kv_tokens": 8000}
    fields = base.model_dump(exclude_unset=True) | {"pools": pools}
    lent = Scenario.build("lent", **(fields | {"slo": {"tpot": {"p50": 0.016}}}))
    search = Search(lent)
    assert not search.cluster.run(workload=search.workloads[0].at_rate(0.1)).holds
    answer = provision(search, "instances", most=8)
    assert answer.best is not None, answer.reason
    assert answer.best.instances == {"prefill": 5, "decode": 1}
    assert not search.alone_reason()
    never = Scenario.build("never", **(fields | {"slo": {"tpot": {"p50": 0.009}}}))
    said = "a request alone breaks p50 tpot on the quickest machines"
    assert provision(Search(never), "instances", most=4).reason == said


def test_work_bound_is_the_closed_form() -> None:
    # Two workers, each best at one of two jobs of 10 s: 10 s suffice, 9.9 s do not.
    assert _shared([(10.0, 20.0, 10.0), (20.0, 10.0, 10.0)])
    assert not _shared([(10.0, 20.0, 9.9), (20.0, 10.0, 9.9)])
    # One that does only the first job, and one that does both: 1 - 6/10 left of the first.
    assert _shared([(10.0, np.inf, 6.0), (10.0, 5.0, 9.0)])
    assert not _shared([(10.0, np.inf, 6.0), (10.0, 5.0, 8.9)])


def test_breaking_is_numpys_percentile() -> None:
    rng = np.random.default_rng(1)
    for count, share in itertools.product((1, 2, 7, 100, 1001), (50.0, 90.0, 99.0)):
        least = breaking(count, share)
        values = np.zeros(count)
        values[rng.permutation(count)[:least]] = 2.0
        assert np.percentile(values, share) > 1.0


def test_a_run_stopped_early_is_broken_in_the_end(tmp_path: Path) -> None:
    search = Search(scenario(tmp_path))
    served, cluster = search.workloads[0], search.cluster
    said = 0
    for counts in itertools.product((1, 2, 3), repeat=2):
        instances = dict(zip(search.pools, counts, strict=True))
        for share in (0.2, 0.5, 0.9):
            at = float(served.arrival_s[int(share * len(served))])
            run = cluster.run(instances=instances, workload=served, until_s=at)
            if surely_broken(limits_of(cluster, served), run.outcome.requests, at):
                said += 1
                assert not verdict(cluster.run(instances=instances, workload=served)).holds
    assert said


def test_journal_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    path, given = tmp_path / "verdicts.jsonl", scenario(tmp_path)
    first = provision(Search(given, journal=Journal(path)), "instances", most=MOST)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + lines[3][:20])  # killed while it wrote the fourth
    journal = Journal(path)
    assert len(journal) == 3
    again = provision(Search(given, journal=journal), "instances", most=MOST)
    assert again.best == first.best
    keys = [
        json.loads(line)["key"] for line in path.read_bytes().splitlines() if line[-1:] == b"}"
    ]
    assert len(set(keys)) == len(lines)
    assert len(Journal(path)) == len(lines)  # what was cut short stays there, left out


@pytest.mark.parametrize(
    "line", ["no record", "{}", "[1, 2]", '{"key": [1]}x', "[" * 10**5, "phase,batch", "7"]
)
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_file_of_another_kind_is_no_journal(tmp_path: Path, line: str, end: str) -> None:
    path = tmp_path / "verdicts.jsonl"
    path.write_text(line + end)
    with pytest.raises(ChipsimError, match="line 1 is not a record"):
        Journal(path)


def test_verdicts_follow_from_measured_steps_wherever_they_lie(tmp_path: Path) -> None:
    journal, runs = Journal(), []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        search = Search(scenario(tmp_path / name), journal=journal)
        search.verdict((2, 2), 0)
        runs.append(len(journal))
    assert runs == [1, 1]
    (tmp_path / "here" / "steps.csv").write_text(STEPS.replace("0.011", "0.012"))
    given = scenario(tmp_path / "there")
    changed = given.model_dump(exclude_unset=True)
    for pool in changed["pools"].values():
        pool["steps"] = str(tmp_path / "here" / "steps.csv")
    Search(Scenario.build("small", **changed), journal=journal).verdict((2, 2), 0)
    assert len(journal) == 2


def test_largest_rate_holds_and_no_larger_one_of_the_grid(tmp_path: Path) -> None:
    search = Search(scenario(tmp_path))
    counts, served = {"prefill": 3, "decode": 2}, search.workloads[0]
    found = capacity(search.cluster, served, counts)
    assert found.rate_rps is not None
    assert judge(search.cluster, served.at_rate(found.rate_rps), counts).holds
    above = np.arange(found.rate_rps + GRID * found.ruled_out_rps, found.ruled_out_rps,
                      GRID * found.ruled_out_rps)  # fmt: skip
    assert not any(judge(search.cluster, served.at_rate(r), counts).holds for r in above)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"goal": "beauty"}, "goal: 'beauty'"),
        ({"ranges": {"no": (1, 2)}}, "range: 'no'"),
        ({"weights": {"prefill": 1.0}}, "weights"),
        ({"most": 1}, "both phases served"),
        ({"goal": "cost"}, "no price"),
    ],
)
def test_bad_requests_are_one_line(
    tmp_path: Path, fields: dict[str, object], said: str
) -> None:
    search = Search(scenario(tmp_path))
    with pytest.raises(ChipsimError, match=said) as error:
        provision(search, **({"goal": "instances"} | fields))  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_requests_of_the_warm_up_are_served_and_not_judged(tmp_path: Path) -> None:
    given = scenario(tmp_path)
    start = float(np.median(Search(given).workloads[0].arrival_s))
    slo = given.slo.model_copy(update={"warm_up": start})
    search = Search(given.model_copy(update={"slo": slo}))
    counts, served = {"prefill": 2, "decode": 2}, search.workloads[0]
    run = search.cluster.run(instances=counts, workload=served)
    frame = run.frame()
    late = frame[frame["arrival_s"] >= start]
    assert 0 < len(late) < len(frame) == run.counts["finished"]
    for each in run.objectives:
        values = late[each.metric].dropna()
        assert each.reached == pytest.approx(float(np.percentile(values, each.percentile)))
    everything = Search(given).cluster.run(instances=counts, workload=served)
    assert everything.frame().equals(frame)
    assert [e.reached for e in everything.objectives] != [e.reached for e in run.objectives]


def test_a_warm_up_that_nothing_is_judged_after_is_refused(tmp_path: Path) -> None:
    given = scenario(tmp_path)
    slo = given.slo.model_copy(update={"warm_up": 1e6})
    with pytest.raises(ConfigError, match=r"slo\.warm_up: 1000000.* at most the last arrival"):
        provision(Search(given.model_copy(update={"slo": slo})), "instances", most=MOST)
    with pytest.raises(ConfigError, match=r"slo\.warm_up: 1000000.* at most the last arrival"):
        Cluster(given.model_copy(update={"slo": slo})).run()
    with pytest.raises(ConfigError, match=r"warm_up: 5.* 0 with limits on itl"):
        Scenario.build("small", **given.plain() | {"slo": {"itl": {"p99": 1}, "warm_up": 5}})


def test_without_a_limit_there_is_nothing_to_hold(tmp_path: Path) -> None:
    from chipsim.cluster.scenario import SloSpec

    given = scenario(tmp_path).model_copy(update={"slo": SloSpec()})
    with pytest.raises(ConfigError, match="a limit on a percentile"):
        provision(Search(given), "instances")
