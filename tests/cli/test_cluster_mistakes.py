"""Clusters that cannot be: of every kind of mistake some, each one line that names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.test_simulate import SCENARIO, STEPS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command, Ran

HEADER = "arrival_s,prompt_tokens,output_tokens\n"
TIER = {"capacity": "1 TB", "bandwidth": "1 GB/s"}
LOOKS = {"every": "1 s", "prefill_tokens": 1, "decode_kv": 0.5}
SWITCH = {"at": "1 s", "pool": "all", "instance": 0, "role": "mixed"}
FAULT = {"pool": "all", "mtbf": "1 h"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "steps.csv").write_text(STEPS)
    (tmp_path / "trace.csv").write_text(HEADER + "0,100,5\n1,100,5\n")
    return tmp_path


def changed(path: str, value: Any) -> dict[str, Any]:
    """The scenario with a value at a path of keys."""
    content: dict[str, Any] = yaml.safe_load(SCENARIO)
    *keys, last = path.split(".")
    place = content
    for key in keys:
        place = place.setdefault(key, {})
    place[last] = value
    return content


def asked(chipsim: Command, folder: Path, content: Any, *more: str) -> Ran:
    path = folder / "s.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return chipsim("simulate", str(path), "--json", *more)


def refused(ran: Ran, said: str) -> None:
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    assert ran.err.startswith("chipsim: error: ")
    assert said in ran.err


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("workload.rate", (0, -1.0, float("nan"), float("inf"), 1e300)),
        ("workload.requests", (0, -1, 1.5, 10**12)),
        ("workload.seed", (-1, 0.5, 10**30)),
        ("seed", (-1, 10**30)),
        ("prompt_limit", (-1, 10**30)),
        ("pools.all.instances", (0, -1, 1.5, 10**9)),
        ("pools.all.kv_tokens", (0, -1, 10**12)),
        ("pools.all.max_batch", (0, float("nan"), 10**9)),
        ("pools.all.mixed_factor", (0, -1, float("inf"))),
        ("pools.all.host_bandwidth", ("0 GB/s", "-1 GB/s", "5 kg", float("nan"))),
        ("pools.all.role", ("cook", "prefill")),
        ("pools.all.prefix_cache", ("all", True)),
        ("pools.all.colour", ("red",)),
        ("pools.all.steps", ("nowhere.csv",)),
        ("pools", ({}, None, [])),
        ("routing", ("nearest",)),
        ("prices", ("nothing",)),
        ("host", ("nothing",)),
        ("expert_load", ("zipf=nan", "much")),
        ("limits.time", ("0 s", "-1 s", "5 kg")),
        ("limits.events", (0, 1.5)),
        ("slo.ttft", ({"90": "1 s"}, {"p101": "1 s"}, {"p90": "0 s"}, {"p90": "1 kg"})),
        ("goodput", ({}, {"ttft": "1 s"})),
        ("handoff.retry", ("-1 s", "1e-9 s")),
    ],
)
def test_a_value_that_cannot_be(
    chipsim: Command, folder: Path, path: str, values: tuple[object, ...]
) -> None:
    for value in values:
        key = "pools" if path.endswith(("instances", "role")) else path.rsplit(".", 1)[-1]
        where = {"steps": "nowhere.csv", "prices": "nothing", "host": "nothing"}
        where |= {"expert_load": "experts"}
        ran = asked(chipsim, folder, changed(path, value))
        refused(ran, where.get(key, key))


@pytest.mark.parametrize(
    ("path", "whole", "wrong"),
    [
        (
            "pools.all.tiers.dram",
            TIER,
            {"capacity": (None, 0, "-1 TB", "1 s", 1e300), "bandwidth": ("0 GB/s", "1 TB")},
        ),
        ("pools.all.tiers.ssd", TIER, {"capacity": (None,), "bandwidth": (None, float("nan"))}),
        (
            "store",
            TIER,
            {"capacity": (None, "0 TB"), "bandwidth": (None, "-1 GB/s"), "x": (1,)},
        ),
        (
            "switching",
            LOOKS,
            {
                "every": (None, "0 s", "1e-300 s", "1 kg", 1),
                "prefill_tokens": (None, -1, float("nan")),
                "decode_kv": (None, -0.1, 1.1),
                "never": (1,),
            },
        ),
        (
            "switches",
            SWITCH,
            {
                "at": (None, "-1 s", float("nan")),
                "pool": (None, "other"),
                "instance": (None, -1, 7, 0.5),
                "role": (None, "cook"),
            },
        ),
        (
            "faults",
            FAULT,
            {
                "pool": (None, "other"),
                "mtbf": (None, "0 h", "-1 h", "1 kg"),
                "at": ("1 s",),
                "duration": ("0 s", "-1 s"),
            },
        ),
    ],
)
def test_a_part_of_a_block_that_is_wrong_or_lacks(
    chipsim: Command,
    folder: Path,
    path: str,
    whole: dict[str, object],
    wrong: dict[str, tuple[object, ...]],
) -> None:
    listed = path in ("switches", "faults")
    for key, values in wrong.items():
        for value in values:
            block = {name: part for name, part in whole.items() if name != key}
            block |= {} if value is None else {key: value}
            content = changed(path, [block] if listed else block)
            content["pools"]["all"]["prefix_cache"] = "rank"
            named = "at" if (key, value) == ("mtbf", None) else key
            refused(asked(chipsim, folder, content), named)
    if path != "faults":
        nothing: tuple[object, ...] = ({}, 5, "on")
        for empty in nothing:
            refused(
                asked(chipsim, folder, changed(path, empty)), path.split(".", maxsplit=1)[0]
            )


def test_times_are_in_hours_and_minutes_too(chipsim: Command, folder: Path) -> None:
    rare = [{"pool": "all", "mtbf": "1 h", "duration": "2 min"}]
    assert asked(chipsim, folder, changed("faults", rare)).json["finished"] == 2


def test_failures_without_end_are_refused(chipsim: Command, folder: Path) -> None:
    (folder / "trace.csv").write_text(HEADER + "0,100,5\n1e12,100,5\n")
    often = [{"pool": "all", "mtbf": "1 ms", "duration": "1 ms"}]
    refused(asked(chipsim, folder, changed("faults", often)), "faults.0.mtbf")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("", "0 rows"),
        ("0,0,5\n1,5,0\n", "at least one with prompt and output tokens"),
        ("-1,100,5\n", "row 1, arrival_s: -1.0"),
        ("nan,100,5\n", "row 1, arrival_s"),
        ("inf,100,5\n", "row 1, arrival_s: inf"),
        ("0,-7,5\n", "row 1, prompt_tokens: -7"),
        ("0,1e30,5\n", "row 1, prompt_tokens: 1e+30"),
        ("0,1.5,5\n", "row 1, prompt_tokens: 1.5"),
        ("0,,5\n", "row 1, prompt_tokens: None"),
        ("0,100\n", "Expected 3 columns, got 2"),
        ("a,b,c\n", "row 1, arrival_s: 'a'"),
        ("0,2147483648,5\n", "requests: prompt[0]: 2147483648"),
    ],
)
def test_a_row_that_cannot_be(chipsim: Command, folder: Path, rows: str, said: str) -> None:
    (folder / "trace.csv").write_text(HEADER + rows)
    refused(asked(chipsim, folder, SCENARIO), said)


@pytest.mark.parametrize(
    ("rows", "served"),
    [
        ("5,100,5\n1,100,5\n", (2, 2, {})),
        ("0,100,5\n" * 3, (3, 3, {})),
        ("0,0,5\n1,100,5\n", (1, 1, {})),
        ("0,5000,5\n1,100,5\n", (2, 1, {"too_large": 1})),
        (f"0,{2**28},5\n1,100,5\n", (2, 1, {"too_large": 1})),
    ],
    ids=["unsorted", "twice", "no tokens", "too large", "far too large"],
)
def test_a_row_that_is_counted(
    chipsim: Command, folder: Path, rows: str, served: tuple[int, int, dict[str, int]]
) -> None:
    (folder / "trace.csv").write_text(HEADER + rows)
    told = asked(chipsim, folder, SCENARIO).json
    assert (told["requests"], told["finished"], told["rejections"]) == served


@pytest.mark.parametrize("option", ["--ttft", "--itl", "--tpot", "--e2e"])
@pytest.mark.parametrize(
    "text", ["", "p90", "p90=", "=1s", "p90=0s", "p90=nan", "p90=1", "p101=1s", "p9=1s,p9=2s"]
)
def test_limits_that_cannot_be(chipsim: Command, option: str, text: str) -> None:
    words = ("plan", "--inventory", "h100-sxm:2", "--model", "llama-3.1-8b", option, text)
    refused(chipsim(*words), option.strip("-"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--inventory", ""), "--inventory"),
        (("--inventory", "h100-sxm"), "CHIP:N"),
        (("--inventory", "h100-sxm:0"), "1 to 4096 chips"),
        (("--inventory", "h100-sxm:1e3"), "CHIP:N"),
        (("--inventory", "h100-sxm:99999999999999999999"), "CHIP:N"),
        (("--inventory", "h100-sxm:1,h100-sxm:1"), "each chip once"),
        (("--inventory", "h100:8"), "did you mean h100-sxm"),
        (("--chunks", ""), "--chunks"),
        (("--chunks", "0"), "--chunks"),
        (("--chunks", "1.5"), "--chunks"),
        (("--chunks", "512,,2048"), "--chunks"),
        (("--batches", "-1"), "--batches"),
        (("--batches", "64,64"), "each number once"),
        (("--seeds", "0,0"), "each number once"),
        (("--seeds", "a"), "--seeds"),
        (("--rate", "0"), "workload.rate"),
        (("--rate", "nan"), "workload.rate"),
        (("--duration", "inf"), "duration_s"),
        (("--duration", "nan"), "duration"),
        (("--goal", "fun"), "goal"),
    ],
)
def test_plans_that_cannot_be(chipsim: Command, options: tuple[str, str], said: str) -> None:
    words = ["--model", "llama-3.1-8b", "--ttft", "p90=1s", *options]
    if "--inventory" not in options:
        words += ["--inventory", "h100-sxm:2"]
    refused(chipsim("plan", *words), said)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--uncertainty", "0"), "a power of two from 2 to 4096"),
        (("--uncertainty", "-1"), "--uncertainty: -1"),
        (("--uncertainty", "1.5"), "'--uncertainty'"),
        (("--block-error", "inf"), "'--block-error'"),
        (("--block-error", "nan"), "'--block-error'"),
        (("--versus", "nothing"), "unknown scenario 'nothing'"),
        (("--range", "other=1:2"), "range: 'other'"),
        (("--range", "mixed=3:2"), "POOL=A:B"),
        (("--seeds", "a"), "--seeds"),
        (("--spare", "nan"), "'--spare'"),
        (("--rate", "0"), "workload.rate"),
        (("--goal", "fun"), "goal"),
        (("--emit", "nothing"), "--emit"),
        (("--out", "x.gif"), "--out"),
    ],
)
def test_provisions_that_cannot_be(
    chipsim: Command, options: tuple[str, str], said: str
) -> None:
    refused(chipsim("provision", "chat-8b", "--requests", "50", *options), said)


def test_a_pool_is_counted_once(chipsim: Command, folder: Path) -> None:
    refused(asked(chipsim, folder, SCENARIO, "--instances", "all=1,all=2"), "each pool once")
