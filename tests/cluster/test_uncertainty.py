"""Draws against what they are drawn from, and intervals against answers known beforehand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chipsim.chip import Chip
from chipsim.cluster import search as searching
from chipsim.cluster.draws import (
    BlockError,
    Draws,
    chip_key,
    factors,
    price_names,
    priced,
    shares,
    step_names,
)
from chipsim.cluster.journal import Journal
from chipsim.cluster.provision import Provision, provision
from chipsim.cluster.scenario import ReplicaSpec
from chipsim.cluster.search import Search
from chipsim.cluster.uncertainty import Uncertainty, specs, uncertain
from chipsim.cost.chip_cost import chip_cost
from chipsim.cost.prices import PriceBook
from chipsim.errors import ChipsimError
from tests.cluster.test_provision_brute import KINDS, built

WHOLE = {"prefill": {"all": 1.0}, "decode": {"all": 1.0}}


def answer(folder: Path, name: str = "apart", journal: Path | None = None) -> Provision:
    kind = KINDS[name]
    search = Search(built(folder, kind), journal=Journal(journal))
    return provision(search, "instances", most=kind.most)


def error(of: Provision, size: float) -> BlockError:
    [key] = {chip_key(spec) for spec in specs(of).values()}
    return BlockError(key, "steps", {"all": size}, "said")


def drawn(*answers: Provision, size: float = 0.2, **fields: float) -> Uncertainty:
    return uncertain(answers, [error(answers[0], size)], **({"draws": 8} | fields))  # type: ignore[arg-type]


def test_without_errors_every_draw_is_the_answer(tmp_path: Path) -> None:
    one, other = answer(tmp_path), answer(tmp_path, "slowdown")
    found = drawn(one, other, size=0.0)
    assert one.best is not None
    assert other.best is not None
    saved = 1.0 - one.best.goal / other.best.goal
    assert {draw.goals for draw in found.draws} == {(one.best.goal, other.best.goal)}
    assert found.saving == found.saving_by_prices == (saved, saved, saved)
    assert found.saved == saved


def test_a_system_saves_nothing_of_itself(tmp_path: Path) -> None:
    one = answer(tmp_path)
    found = drawn(one, one, size=0.3)
    assert found.saving == (0.0, 0.0, 0.0)
    assert found.real == "no"
    # Times matter all the same: slower steps need more instances.
    assert found.goal.p5 is not None
    assert found.goal.p95 is None or found.goal.p95 > found.goal.p5


def test_each_draw_is_the_whole_search_under_its_steps(tmp_path: Path) -> None:
    one = answer(tmp_path)
    for draw in drawn(one, size=0.25, draws=4).draws:
        [moved] = draw.factors.values()
        pools = {
            name: pool.model_dump(exclude_unset=True)
            | {"prefill_factor": moved.prefill, "decode_factor": moved.decode}
            for name, pool in one.search.scenario.pools.items()
        }
        slower = one.search.scenario.changed(pools=pools)
        whole = provision(Search(slower), "instances", most=24)
        assert draw.goals[0] == (math.inf if whole.best is None else whole.best.goal)


def test_draws_follow_from_their_seed(tmp_path: Path) -> None:
    one = answer(tmp_path)
    assert drawn(one).record() == drawn(one).record()
    assert drawn(one).record() != drawn(one, seed=1).record()


def test_draws_go_on_from_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "verdicts.jsonl"
    first = drawn(answer(tmp_path, journal=kept)).record()

    def refuse(*_: object) -> None:
        pytest.fail("a run that the journal knows")

    monkeypatch.setattr(searching, "judge", refuse)
    assert drawn(answer(tmp_path, journal=kept)).record() == first


def test_factors_are_as_far_off_as_the_block() -> None:
    errors = [BlockError(chip, "b", {"all": 0.1}, "") for chip in ("one", "two")]
    draws = Draws(step_names(errors), 512, 0)
    logs = np.array(
        [
            [math.log(factors(each, WHOLE, draws, n, 0.5).prefill) for each in errors]
            for n in range(512)
        ]
    )
    assert np.abs(logs).mean() == pytest.approx(0.1, rel=0.03)
    assert np.median(logs) == pytest.approx(0.0, abs=0.003)
    assert np.corrcoef(logs.T)[0, 1] == pytest.approx(0.5, abs=0.05)


def test_classes_weigh_by_their_share_and_join_the_phases() -> None:
    each = BlockError("one", "b", {"gemm": 0.1, "collectives": 0.0, "all": 0.3}, "")
    draws = Draws(step_names([each]), 2, 0)
    of = {
        "prefill": {"gemm": 0.5, "collectives": 0.5},
        "decode": {"gemm": 1.0},
    }
    found = factors(each, of, draws, 0, 1.0)
    assert found.prefill == pytest.approx(0.5 * found.decode + 0.5)


def test_shares_of_a_step_are_those_of_its_operators(tmp_path: Path) -> None:
    cluster = answer(tmp_path).search.cluster
    spec = ReplicaSpec(chip="h100-sxm")
    on_chip = replace(cluster.replicas["decode"], chip=Chip.load("h100-sxm"))
    found = shares(spec, on_chip, cluster)
    for step, attention in (
        ("prefill", "attention_context"),
        ("decode", "attention_generation"),
    ):
        assert sum(found[step].values()) == pytest.approx(1.0)
        assert set(found[step]) == {"gemm", attention}  # one chip: nothing to exchange
        assert 0.0 < found[step][attention] < found[step]["gemm"]


def test_drawn_prices_stay_in_the_book() -> None:
    book = PriceBook.load("spad-2025")
    names = price_names(book, "spad")
    assert names.count("spad memory HBM price") == 4  # one draw for the family
    draws = Draws(names, 64, 0)
    totals = np.array(
        [chip_cost("spad-decode", priced(book, "spad", draws, n)).total_usd for n in range(64)]
    )
    low, mid, high = (
        chip_cost("spad-decode", book.with_memory_price("HBM3", price / 2**30)).total_usd
        for price in (6, 9, 12)
    )
    assert low <= totals.min() < totals.max() <= high
    assert np.median(totals) == pytest.approx(mid, rel=0.01)
    # Prefill's memory is GDDR7, which has one price.
    fixed = {
        chip_cost("spad-prefill", priced(book, "spad", draws, n)).total_usd for n in range(4)
    }
    assert len(fixed) == 1


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"draws": 12}, "a power of two"),
        ({"correlation": 2.0}, "0 to 1"),
    ],
)
def test_bad_requests_are_one_line(tmp_path: Path, fields: dict[str, float], said: str) -> None:
    with pytest.raises(ChipsimError, match=said) as found:
        drawn(answer(tmp_path), **fields)
    assert "\n" not in str(found.value)
