"""Prefix caches from the file to the figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from chipsim.cluster.bounds import Bounds
from chipsim.cluster.simulate import Cluster
from chipsim.errors import ChipsimError, ConfigError
from tests.cluster.test_simulate import scenario

if TYPE_CHECKING:
    from pathlib import Path

    from chipsim.cluster.results import Simulation

TRACE = """arrival_s,prompt_tokens,output_tokens,blocks_of_16
0,100,3,1 2 3 4 5 6
5,100,3,1 2 3 4 5 6
9,132,3,1 2 3 4 5 6 7 8
"""


def cached(folder: Path, decode: dict[str, Any] | None = None, **changes: Any) -> Simulation:
    """Two instances of measured steps, the prefilling one with a cache."""
    pool = {
        "steps": "steps.csv",
        "kv_tokens": 4096,
        "max_tokens": 512,
        "max_batch": 8,
        "prefix_cache": "rank",
    }
    prefill = {"role": "prefill", **pool, **changes.pop("prefill", {})}
    pools = {"prefill": prefill, "decode": {"role": "decode", **pool, **(decode or {})}}
    made = scenario(folder, pools=pools, **changes)
    (folder / "trace.csv").write_text(TRACE)
    return Cluster(made).run()


def test_a_summary_tells_what_was_saved(tmp_path: Path) -> None:
    run = cached(tmp_path)
    prefix = run.summary()["prefix"]
    # 6 blocks of 16; a seventh and eighth are new in the last prompt.
    assert (prefix["found_tokens"], prefix["computed_tokens"]) == (192, 140)
    assert prefix["hit_rate"] == pytest.approx(192 / 332)
    assert run.frame()["cached_tokens"].tolist() == [0, 96, 96]
    assert run.times["ttft_s"].tolist() == pytest.approx([0.1, 0.004, 0.036])
    # The decoding rank has them too: only the rest is sent.
    moved = run.times["transfer_s"]
    assert moved / moved[0] == pytest.approx(np.array([100, 4, 36]) / 100)


def test_without_a_cache_nothing_is_told(tmp_path: Path) -> None:
    run = cached(tmp_path, {"prefix_cache": "none"}, prefill={"prefix_cache": "none"})
    assert run.summary()["prefix"] == {}
    assert run.times["ttft_s"].tolist() == pytest.approx([0.1, 0.1, 0.132])


def test_a_tier_has_room_for_what_its_bytes_hold(tmp_path: Path) -> None:
    """Llama-3.1-8B: 128 KiB a token; 26 MB are twelve blocks of 16 tokens, 24 MB are eleven.

    Six fall for the second prompt, six of its eight for the third, before that one's are read.
    """
    for size, loaded in ((26, 96), (24, 80)):
        run = cached(
            tmp_path,
            prefill={
                "kv_tokens": 144,
                "tiers": {"dram": {"capacity": f"{size} MB", "bandwidth": "1 TB/s"}},
            },
            workload="other.csv",
        )
        assert run.prefix["loaded"] == {"pool": 0, "dram": loaded, "ssd": 0, "store": 0}
        assert run.prefix["forgotten"]["rank"] > 0


def test_a_pool_shares_what_its_ranks_have(tmp_path: Path) -> None:
    """128 KiB a token over 10 GB/s: 96 tokens in 1.26 ms, which take 96 ms to compute."""
    both = {"instances": 2, "prefix_cache": "pool"}
    wire = {"handoff": {"bandwidth": "10 GB/s", "descriptors_per_block": 0}}
    run = cached(tmp_path, prefill=both, routing="round_robin", **wire)
    assert run.prefix["loaded"] == {"pool": 96, "dram": 0, "ssd": 0, "store": 0}
    assert run.frame()["loaded_tokens"].tolist() == [0, 96, 0]
    moved = 96 * 2**17 / 10e9
    assert run.times["ttft_s"].tolist() == pytest.approx([0.1, moved + 0.004, 0.036])
    own = cached(tmp_path, prefill=both | {"prefix_cache": "rank"}, routing="round_robin")
    assert own.times["ttft_s"].tolist() == pytest.approx([0.1, 0.1, 0.036])


@pytest.fixture(autouse=True)
def _other_trace(tmp_path: Path) -> None:
    rows = ["0,100,3,1 2 3 4 5 6", "5,140,3,11 12 13 14 15 16 17 18", "9,100,3,1 2 3 4 5 6"]
    text = "arrival_s,prompt_tokens,output_tokens,blocks_of_16\n" + "\n".join(rows) + "\n"
    (tmp_path / "other.csv").write_text(text)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"handoff": {"next_turn": "shared"}},
            "store: None is not allowed; allowed: a store",
        ),
        ({"prefill": {"tiers": {"ssd": {"capacity": "1 TB"}}}}, "ssd.bandwidth"),
        ({"prefill": {"prefix_cache": "all"}}, "prefix_cache"),
        (
            {"prefill": {"prefix_cache": "none", "tiers": {"dram": {"capacity": "1 TB"}}}},
            "pools.prefill.prefix_cache",
        ),
        ({"prefill": {"block": 48}}, "block"),
        ({"model": "nemotron-3-nano"}, "recurrent"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ChipsimError, match=said) as raised:
        cached(tmp_path, **changes)
    assert isinstance(raised.value, ConfigError)
    assert "\n" not in str(raised.value)


def test_bounds_that_a_cache_would_break_are_refused(tmp_path: Path) -> None:
    cluster = cached(tmp_path).cluster
    with pytest.raises(ConfigError, match="prefix_cache"):
        Bounds(cluster, cluster.workload)
