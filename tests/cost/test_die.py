"""Dies of a wafer and their yield, against closed forms, quadrature and enumeration."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from chipsim.cost.die import check_reticle, die_yield, gross_dies, harvested_yield
from chipsim.cost.prices import GrossDies, Yield
from chipsim.errors import ConfigError

MODELS = ["poisson", "murphy", "seeds", "negative-binomial"]
areas = st.floats(1.0, 858.0)
defects = st.floats(1e-6, 0.01)


def model(name: str, alpha: float = 3.0) -> Yield:
    return Yield.build("test", model=name, alpha=alpha)


@pytest.mark.parametrize(
    ("area", "dies"),
    [
        # LLMCompass's dies per wafer, made by running its cost model
        (826.76355498007, 62.31959743878035),
        (477.9291544370755, 117.41606645538614),
        (786.5813173172601, 66.10255201021403),
        (363.07998690760513, 159.70914024155823),
        (666.2387391528027, 80.27774940124769),
    ],
)
def test_dies_per_wafer_are_llmcompass_s(area: float, dies: float) -> None:
    assert gross_dies(area, GrossDies()) == pytest.approx(dies, rel=1e-12)
    assert gross_dies(area, GrossDies(whole=True)) == math.floor(dies)


def test_without_the_edge_the_wafer_s_area_is_shared_out() -> None:
    assert gross_dies(100.0, GrossDies(formula="area")) == pytest.approx(np.pi * 150**2 / 100)


@given(area=areas)
def test_the_formula_is_near_a_count_of_squares_on_the_wafer(area: float) -> None:
    # an independent count: squares whose four corners are on the wafer, grid through its centre
    side = math.sqrt(area)
    steps = np.arange(-math.ceil(150 / side) - 1, math.ceil(150 / side) + 1) * side
    x, y = np.meshgrid(steps, steps)
    inside = np.ones_like(x, dtype=bool)
    for dx in (0.0, side):
        for dy in (0.0, side):
            inside &= (x + dx) ** 2 + (y + dy) ** 2 <= 150.0**2
    assert gross_dies(area, GrossDies()) == pytest.approx(int(inside.sum()), rel=0.15, abs=8)


@given(area=areas, more=st.floats(1.0, 3.0), whole=st.booleans())
def test_a_larger_die_is_never_on_a_wafer_more_often(
    area: float, more: float, whole: bool
) -> None:
    rule = GrossDies(whole=whole)
    assert gross_dies(area * more, rule) <= gross_dies(area, rule)


@pytest.mark.parametrize(
    ("area", "diameter"), [(71_000.0, 300.0), (40_000.0, 300.0), (858.0, 50.0)]
)
def test_a_die_that_no_wafer_holds_is_refused(area: float, diameter: float) -> None:
    with pytest.raises(ConfigError, match=r"die area: '\d+ mm2' is not allowed"):
        gross_dies(area, GrossDies(diameter=diameter))


@pytest.mark.parametrize("area", [858.1, 1600.0, math.inf, math.nan])
def test_a_die_larger_than_the_reticle_is_refused(area: float) -> None:
    with pytest.raises(ConfigError, match="at most 858 mm2, the reticle"):
        check_reticle("mine", area)
    check_reticle("mine", 858.0)


CLOSED: dict[str, Callable[[float], float]] = {
    "poisson": lambda ad: math.exp(-ad),
    "murphy": lambda ad: ((1 - math.exp(-ad)) / ad) ** 2,
    "seeds": lambda ad: 1 / (1 + ad),
    "negative-binomial": lambda ad: (1 + ad / 3) ** -3,
}
DENSITY: dict[str, Callable[[float], float]] = {
    # of the defect density over its mean: what each model is by its definition
    "murphy": stats.triang(0.5, 0, 2).pdf,
    "seeds": stats.expon().pdf,
    "negative-binomial": stats.gamma(3, scale=1 / 3).pdf,
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("ad", [1e-4, 0.01, 0.3, 1.0, 2.5, 8.0])
def test_a_yield_is_its_closed_form(name: str, ad: float) -> None:
    assert die_yield(100.0, ad / 100, model(name)) == pytest.approx(CLOSED[name](ad), rel=1e-9)


@pytest.mark.parametrize("name", sorted(DENSITY))
@pytest.mark.parametrize("ad", [0.1, 1.0, 3.0])
def test_a_yield_is_the_mean_over_its_defect_densities(name: str, ad: float) -> None:
    mean, _ = integrate.quad(
        lambda d: DENSITY[name](d) * math.exp(-ad * d), 0, 60, points=[1, 2], limit=400
    )
    assert die_yield(1.0, ad, model(name)) == pytest.approx(mean, rel=1e-6)


def test_llmcompass_s_yields_are_negative_binomial() -> None:
    # made by running the yield of its supply chain model: alpha 3, 0.0015 per mm2
    found = [die_yield(a, 0.0015, model("negative-binomial")) for a in (826.76355, 477.92915)]
    assert found == pytest.approx([0.35417796, 0.52580333], rel=1e-6)


@pytest.mark.parametrize("name", ["none", "fixed"])
def test_a_model_without_area_is_a_constant(name: str) -> None:
    known = Yield.build("test", model=name, value=0.8 if name == "fixed" else 1.0)
    assert die_yield(800.0, 0.01, known) == (0.8 if name == "fixed" else 1.0)
    assert harvested_yield(100, 5, 100, 90, 0.01, known) == die_yield(800.0, 0.01, known)


@given(name=st.sampled_from(MODELS), area=areas, d=defects, more=st.floats(1.0, 3.0))
def test_yield_falls_with_area_and_with_defects(
    name: str, area: float, d: float, more: float
) -> None:
    whole = die_yield(area, d, model(name))
    assert 0.0 < whole <= 1.0
    assert die_yield(area * more, d, model(name)) <= whole
    assert die_yield(area, d * more, model(name)) <= whole


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("cores", "needed"), [(144, 132), (128, 108), (4, 3), (8, 1)])
def test_harvesting_is_the_sum_over_broken_cores(name: str, cores: int, needed: int) -> None:
    def of_density(d: float) -> float:
        good = math.exp(-3.0 * d)
        enough = sum(
            math.comb(cores, k) * good**k * (1 - good) ** (cores - k)
            for k in range(needed, cores + 1)
        )
        return math.exp(-300.0 * d) * enough

    mean = 0.002
    if name == "poisson":
        expected = of_density(mean)
    else:
        expected, _ = integrate.quad(
            lambda d: DENSITY[name](d) * of_density(d * mean), 0, 60, points=[1, 2], limit=400
        )
    found = harvested_yield(300.0, 3.0, cores, needed, mean, model(name))
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_no_spare_core_is_no_harvest(name: str) -> None:
    whole = harvested_yield(300.0, 3.0, 144, 144, 0.001, model(name))
    assert whole == pytest.approx(die_yield(300.0 + 3.0 * 144, 0.001, model(name)), rel=1e-12)


@given(
    name=st.sampled_from(MODELS),
    spare=st.integers(0, 30),
    d=defects,
    alpha=st.floats(0.3, 200.0),
)
def test_more_spare_cores_never_yield_less(
    name: str, spare: int, d: float, alpha: float
) -> None:
    few = harvested_yield(300.0, 3.0, 132, 132 - spare, d, model(name, alpha))
    more = harvested_yield(300.0, 3.0, 132, 131 - spare, d, model(name, alpha))
    assert 0.0 <= few <= more * (1 + 1e-6) <= 1.000001


def test_a_large_alpha_is_poisson_s_model() -> None:
    arguments = (300.0, 3.0, 144, 132, 0.001)
    near = harvested_yield(*arguments, model("negative-binomial", 1e5))
    assert near == pytest.approx(harvested_yield(*arguments, model("poisson")), rel=1e-3)
