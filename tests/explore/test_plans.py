"""Plans of a number of chips: all of them, each as a single estimate has it, ranked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from chipsim import Phase, plans
from chipsim.chip import Chip
from chipsim.errors import ConfigError, InfeasibleError
from chipsim.explore.plans import search_plans
from chipsim.explore.store import load, save
from chipsim.memory import memory_plan
from chipsim.ops.model import ModelSpec
from chipsim.ops.parallelism import Parallelism, valid_plans
from chipsim.ops.precision import Precision
from chipsim.phases import estimate

if TYPE_CHECKING:
    from pathlib import Path

DECODE = Phase.decode(2048, 4096)
FP8 = Precision.parse("fp8")


def rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(name): value for name, value in row.items()} for row in table.to_dict("records")
    ]


def deepseek() -> list[dict[str, Any]]:
    return rows(plans("h200-sxm", "deepseek-v3", 64, DECODE, precision="fp8"))


def test_every_valid_plan_is_there_once() -> None:
    model = ModelSpec.load("deepseek-v3")
    found = deepseek()
    names = [row["plan"] for row in found]
    assert sorted(names) == sorted(plan.text for plan in valid_plans(model, 64, "decode"))
    assert len(set(names)) == len(names)
    assert [row["rank"] for row in found] == list(range(1, len(found) + 1))
    assert {row["tp"] * row["cp"] * row["dp"] * row["pp"] for row in found} == {64}


def test_rows_are_single_estimates() -> None:
    found = deepseek()
    chip, model = Chip.load("h200-sxm"), ModelSpec.load("deepseek-v3")
    for row in (found[0], found[3], found[50], found[-1]):
        single = estimate(
            "h200-sxm", "deepseek-v3", DECODE, row["plan"], precision="fp8", check_memory=False
        )
        assert row["latency_s"] == single.latency_s
        assert row["tokens_per_s_per_chip"] == pytest.approx(2048 / single.latency_s / 64)
        memory = memory_plan(chip, model, Parallelism.parse(row["plan"]), FP8)
        assert row["largest_batch"] == memory.largest_batch(4096)
        assert row["fits"] == (memory.largest_batch(4096) >= 2048)
        assert (row["shortfall_bytes"] == 0.0) == row["fits"]


def test_what_fits_comes_first_and_the_fastest_before_all() -> None:
    found = deepseek()
    keys = [(not row["fits"], row["latency_s"]) for row in found]
    assert keys == sorted(keys)
    assert {row["fits"] for row in found} == {True, False}


def test_attention_by_data_and_experts_over_all_beats_tensor_parallelism() -> None:
    """Why engines run DeepSeek-V3 so: under tp every chip reads the whole latent rows."""
    found = {row["plan"]: row for row in deepseek()}
    data, tensor = found["ep=64,dp=64"], found["tp=64,ep=64"]
    assert data["latency_s"] < tensor["latency_s"] / 2
    assert data["largest_batch"] > 20 * tensor["largest_batch"]


def test_stages_of_61_layers_are_among_the_plans() -> None:
    found = {row["plan"]: row for row in deepseek()}
    assert {row["pp"] for row in found.values()} == {1, 2, 4, 8, 16, 32}
    assert found["pp=4,ep=16,dp=16"]["stage_layers"] == "15,15,16,15"
    assert found["ep=64,dp=64"]["stage_layers"] == "61"


def test_a_small_batch_wants_tensor_parallelism() -> None:
    """One sequence of a dense model: the plan that reads the fewest weights per chip."""
    found = rows(plans("h100-sxm", "llama-3.1-70b", 8, Phase.decode(1, 4096)))
    assert found[0]["plan"] == "tp=8"
    waits = {row["pp"]: round(row["bubble"], 6) for row in found}
    assert waits == {1: 0.0, 2: 0.5, 4: 0.75, 8: 0.875}


def test_prefill_splits_prompts() -> None:
    found = rows(plans("h100-sxm", "llama-3.1-70b", 8, Phase.prefill(1, 8192)))
    assert {row["cp"] for row in found} == {1, 2, 4, 8}
    assert {row["dcp"] for row in found} == {1}
    assert found[0]["cp"] > 1


def test_a_search_is_saved_and_read_back(tmp_path: Path) -> None:
    found = search_plans("h100-sxm", "llama-3.1-8b", 4, Phase.decode(8, 512))
    path = save(found, tmp_path / "plans.csv")
    stored = load(path)
    pd.testing.assert_frame_equal(stored.table, found.frame())
    assert stored.configuration["kind"] == "plans"
    assert stored.configuration["phase"]["context"] == 512


@pytest.mark.parametrize(
    ("chips", "message"),
    [(0, "plans: chips: 0"), (5000, "from 1 to 4096"), (True, "plans: chips"), (2.5, "chips")],
)
def test_bad_numbers_of_chips(chips: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        plans("h100-sxm", "llama-3.1-8b", chips, Phase.decode(1, 16))


def test_refusals_say_what_is_allowed() -> None:
    with pytest.raises(InfeasibleError, match=r"chips: 67 .* splits deepseek-v3 .* as 66, 68$"):
        plans("h200-sxm", "deepseek-v3", 67, Phase.decode(1, 16))
    with pytest.raises(InfeasibleError, match="takes 8 chips; the machine of tpu-v3 has 4"):
        plans("tpu-v3", "llama-3.1-8b", 8, Phase.decode(1, 16), precision="bf16")
    with pytest.raises(ConfigError, match="plans: phase: 'encode'"):
        plans("h100-sxm", "llama-3.1-8b", 8, Phase.encode(1, 16))
