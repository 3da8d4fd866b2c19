"""Generated arrivals and lengths against closed forms, and what a seed promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from chipsim import ChipsimError
from chipsim.cluster.arrivals import Arrivals, Gaps, arrival_times
from chipsim.cluster.distributions import (
    Fixed,
    Geometric,
    Lognormal,
    Quantiles,
    Think,
    Uniform,
    correlated,
)
from chipsim.cluster.generators import LengthClass, Lengths, generate, resample, streams
from tests.cluster.test_workload import workload

COUNT = 200_000
LENGTHS = Lengths.of(Uniform(low=1, high=1000), Geometric(mean=50.0))
TABLE = Gaps(ratio=(0.0, 0.5, 4.0), share=(0.0, 0.8, 1.0))
ARRIVALS = {
    "poisson": Arrivals(),
    "gamma": Arrivals(kind="gamma", cv=3.0),
    "deterministic": Arrivals(kind="deterministic"),
    "gaps": Arrivals(kind="gaps", gaps=TABLE),
    "sine": Arrivals(kind="diurnal", swing=0.8, period=100.0),
    "hourly": Arrivals(kind="diurnal", hourly=(1.0, 0.0, 5.0), period=90.0),
}


def times(arrivals: Arrivals, rate: float = 2.0, seed: int = 1, **size: Any) -> Any:
    return arrival_times(arrivals, rate, streams(seed, 1)[0], **(size or {"requests": COUNT}))


@pytest.mark.parametrize("name", ARRIVALS)
def test_arrivals_have_the_rate_that_was_asked_for(name: str) -> None:
    at = times(ARRIVALS[name])
    cv = 3.0 if name == "gamma" else 1.5
    assert len(at) / at[-1] == pytest.approx(2.0, rel=5 * cv / COUNT**0.5)
    assert (np.diff(at) >= 0.0).all()


@pytest.mark.parametrize("cv", [0.2, 0.5, 1.0, 2.0, 5.0])
def test_gamma_gaps_have_their_cv_and_distribution(cv: float) -> None:
    gaps = np.diff(times(Arrivals(kind="gamma", cv=cv), rate=3.0))
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.03)
    theory = stats.gamma(cv**-2, scale=cv**2 / 3.0)
    least = 1e-6  # shorter gaps are lost where they are the difference of two large times
    below, longer = theory.cdf(least), gaps[gaps >= least]
    assert 1.0 - len(longer) / len(gaps) == pytest.approx(below, abs=0.01)
    fitted = stats.kstest(longer, lambda x: (theory.cdf(x) - below) / (1.0 - below))
    assert fitted.pvalue > 0.001


def test_poisson_gaps_are_exponential_and_counts_poisson() -> None:
    at = times(Arrivals(), rate=3.0)
    assert stats.kstest(np.diff(at), stats.expon(scale=1 / 3.0).cdf).pvalue > 0.001
    counts = np.bincount(np.floor(at).astype(int))[:-1]
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.03)


def test_equal_gaps_begin_at_once() -> None:
    assert times(ARRIVALS["deterministic"], requests=3).tolist() == [0.0, 0.5, 1.0]
    assert times(ARRIVALS["deterministic"], duration_s=1.5).tolist() == [0.0, 0.5, 1.0]


def test_gaps_of_a_table_have_its_distribution() -> None:
    gaps = np.diff(times(ARRIVALS["gaps"], rate=1.0))
    mean = 0.8 * 0.25 + 0.2 * 2.25  # of the trapezoids
    expected = np.interp([0.4, 0.8, 0.9], TABLE.share, TABLE.ratio) / mean
    assert np.quantile(gaps, [0.4, 0.8, 0.9]) == pytest.approx(expected, rel=0.03)


def test_a_diurnal_rate_follows_its_curve() -> None:
    at = times(ARRIVALS["sine"], duration_s=50_000.0) % 100.0
    counts, edges = np.histogram(at, bins=20)
    middle = (edges[1:] + edges[:-1]) / 2.0
    # the mean of a sine over a bin of a twentieth of the period: sinc(1/20)
    wave = 1.0 + 0.8 * np.sinc(1 / 20) * np.sin(2 * np.pi * middle / 100.0)
    assert counts / counts.mean() == pytest.approx(wave, abs=0.08)
    at = times(ARRIVALS["hourly"], duration_s=50_000.0) % 90.0
    counts, _ = np.histogram(at, bins=3, range=(0.0, 90.0))
    assert counts[1] == 0
    assert counts[2] / counts[0] == pytest.approx(5.0, rel=0.05)


@pytest.mark.parametrize("name", ARRIVALS)
def test_a_longer_run_begins_as_a_shorter_one(name: str) -> None:
    arrivals = ARRIVALS[name]
    long, short = times(arrivals, requests=6000), times(arrivals, requests=50)
    assert np.array_equal(long[:50], short)
    until = times(arrivals, duration_s=float(long[50]))
    assert until.tolist() == pytest.approx(long[:50].tolist(), rel=1e-12)


MOMENTS: list[tuple[Any, float, float]] = [
    (Fixed(tokens=7), 7.0, 0.0),
    (Uniform(low=1, high=100), 50.5, np.sqrt((100**2 - 1) / 12)),
    (Geometric(mean=50.0), 50.0, np.sqrt(50.0 * 49.0)),
    (Geometric(mean=1.0), 1.0, 0.0),
    (Lognormal(mean=2000.0, cv=0.5), 2000.0, 1000.0),
    (
        Quantiles(tokens=(2, 4), share=(0.5, 1.0)),
        2 * 0.5 + 3 * 0.25 + 4 * 0.25,
        np.sqrt(0.6875),
    ),
]


@pytest.mark.parametrize(("distribution", "mean", "std"), MOMENTS)
def test_lengths_have_their_mean_and_deviation(
    distribution: Any, mean: float, std: float
) -> None:
    drawn = distribution.tokens_of(streams(3, 1)[0].random(COUNT))
    assert drawn.mean() == pytest.approx(mean, abs=5 * std / COUNT**0.5 + 1e-12)
    assert drawn.std() == pytest.approx(std, rel=0.03, abs=1e-12)
    assert drawn.min() >= 1


def test_a_memoryless_length_has_its_probabilities() -> None:
    drawn = Geometric(mean=4.0).tokens_of(streams(3, 1)[0].random(COUNT))
    shares = np.bincount(drawn)[1:6] / COUNT
    assert shares == pytest.approx([0.25 * 0.75**k for k in range(5)], abs=0.005)


@given(
    values=st.lists(st.integers(1, 50), min_size=1, max_size=30),
    u=st.lists(st.floats(0.0, 1.0, exclude_max=True), min_size=1, max_size=20),
)
def test_a_full_table_draws_exactly_its_shares(values: list[int], u: list[float]) -> None:
    tokens, counts = np.unique(values, return_counts=True)
    # each number, and the one below it where it is missing: nothing between is drawn
    lines = {
        int(t): float(s) for t, s in zip(tokens, np.cumsum(counts) / len(values), strict=True)
    }
    share, table = 0.0, {}
    for token in range(int(tokens[0]), int(tokens[-1]) + 1):
        share = lines.get(token, share)
        table[token] = share
    table[int(tokens[-1])] = 1.0
    drawn = Quantiles(tokens=tuple(table), share=tuple(table.values())).tokens_of(np.array(u))
    for value, at in zip(drawn, u, strict=True):
        below = table.get(int(value) - 1, 0.0)
        assert below - 1e-9 <= at <= table[int(value)] + 1e-9


@pytest.mark.parametrize("rho", [-0.9, -0.3, 0.0, 0.5, 0.9])
def test_a_copula_has_its_rank_correlation(rho: float) -> None:
    first, second = (stream.random(COUNT) for stream in streams(5, 2))
    mixed = correlated(first, second, rho)
    expected = 6 / np.pi * np.arcsin(rho / 2)
    assert stats.spearmanr(first, mixed)[0] == pytest.approx(expected, abs=0.01)
    assert stats.kstest(mixed, "uniform").pvalue > 0.001


def test_classes_go_together_or_apart() -> None:
    def two(joint: bool) -> Lengths:
        low = LengthClass(share=0.25, prompt=Fixed(tokens=10), output=Fixed(tokens=1))
        high = LengthClass(share=0.75, prompt=Fixed(tokens=20), output=Fixed(tokens=2))
        return Lengths(classes=(low, high), joint=joint)

    prompt, output = two(True).draw(COUNT, streams(1, 1)[0])
    assert np.array_equal(prompt, 10 * output)
    apart, other = two(False).draw(COUNT, streams(1, 1)[0])
    assert np.array_equal(apart, prompt)
    assert (other == 2).mean() == pytest.approx(0.75, abs=0.005)
    assert np.corrcoef(apart, other)[0, 1] == pytest.approx(0.0, abs=0.01)


def test_a_rate_and_a_length_leave_the_requests_as_they_are() -> None:
    slow = generate(1.0, LENGTHS, requests=1000, seed=4)
    fast = generate(10.0, LENGTHS, "deterministic", requests=500, seed=4)
    assert np.array_equal(slow.prompt_tokens[:500], fast.prompt_tokens)
    assert np.array_equal(slow.output_tokens[:500], fast.output_tokens)
    assert slow.seed == 4


def test_seeds_repeat_and_differ() -> None:
    one, again = (generate(1.0, LENGTHS, requests=100, seed=4) for _ in range(2))
    other = generate(1.0, LENGTHS, requests=100, seed=5)
    assert np.array_equal(one.arrival_s, again.arrival_s)
    assert not np.array_equal(one.arrival_s, other.arrival_s)


def test_a_seed_gives_these_requests_everywhere() -> None:
    """PCG64 of numpy and the inverses above: first written on Linux, x86-64, numpy 2."""
    made = generate(1.0, LENGTHS, requests=3, seed=42)
    assert made.prompt_tokens.tolist() == GOLDEN_PROMPTS
    assert made.output_tokens.tolist() == GOLDEN_OUTPUTS
    assert made.arrival_s.tolist() == pytest.approx(GOLDEN_ARRIVALS, rel=1e-12)


GOLDEN_PROMPTS = [596, 836, 474]
GOLDEN_OUTPUTS = [6, 5, 22]
GOLDEN_ARRIVALS = [2.485836973063432, 4.904806091671071, 6.99706952042563]


def test_a_trace_is_drawn_again_jointly_or_not() -> None:
    lengths = np.arange(1, 101)
    trace = workload(100, prompt_tokens=lengths, output_tokens=lengths)
    joint = resample(trace, 2.0, requests=20_000, seed=1)
    apart = resample(trace, 2.0, requests=20_000, seed=1, joint=False)
    assert np.array_equal(joint.prompt_tokens, joint.output_tokens)
    assert np.array_equal(joint.prompt_tokens, apart.prompt_tokens)
    assert abs(np.corrcoef(apart.prompt_tokens, apart.output_tokens)[0, 1]) < 0.03
    assert joint.prompt_tokens.mean() == pytest.approx(50.5, rel=0.02)
    assert joint.rate_rps == pytest.approx(2.0, rel=0.03)


@pytest.mark.parametrize(
    ("kind", "mean", "std"),
    [("fixed", 8.0, 0.0), ("exponential", 8.0, 8.0), ("lognormal", 8.0, 4.0)],
)
def test_think_times_have_their_moments(kind: Any, mean: float, std: float) -> None:
    drawn = Think(kind=kind, mean=8.0, cv=0.5).seconds_of(streams(3, 1)[0].random(COUNT))
    assert drawn.mean() == pytest.approx(mean, abs=5 * std / COUNT**0.5 + 1e-12)
    assert drawn.std() == pytest.approx(std, rel=0.03, abs=1e-12)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"rate": 0.0}, "rate: 0.0"),
    ({"rate": -1.0}, "rate: -1.0"),
    ({"rate": np.nan}, "rate: nan"),
    ({"rate": np.inf}, "rate: inf"),
    ({"requests": 0}, "requests: 0"),
    ({"requests": 10**12}, "requests: 1000000000000"),
    ({"requests": None}, "either requests or a duration"),
    ({"requests": None, "duration_s": -1.0}, "duration: -1.0"),
    ({"requests": None, "duration_s": np.nan}, "duration: nan"),
    ({"requests": None, "duration_s": 1e300}, "at most 1e\\+08 requests"),
    ({"requests": None, "duration_s": 1e-9}, "long enough for one request"),
    ({"seed": -1}, "seed: -1"),
    ({"seed": 0.5}, "seed: 0.5"),
    ({"arrivals": "pareto"}, "kind: 'pareto'"),
    ({"arrivals": "gamma"}, "cv: None"),
    ({"arrivals": "gaps"}, "gaps: None"),
    ({"arrivals": "diurnal"}, "swing: None"),
]


@pytest.mark.parametrize(("changed", "message"), BAD)
def test_what_cannot_be_drawn_is_refused_in_one_line(
    changed: dict[str, Any], message: str
) -> None:
    asked: dict[str, Any] = {"rate": 1.0, "lengths": LENGTHS, "requests": 10} | changed
    with pytest.raises(ChipsimError, match=message) as caught:
        generate(**asked)
    assert "\n" not in str(caught.value)
