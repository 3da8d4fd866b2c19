"""Dies on a wafer, the share of them that works, and what a good one costs.

A yield model is a distribution of the defect density D over dies: a die of area A works
with probability E[exp(-A D)]. One density is Poisson's model, a triangle Murphy's, an
exponential Seeds's, and a gamma distribution the negative binomial.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.cost.prices import GrossDies, Yield
    from chipsim.cost.ranges import Range

RETICLE_MM2 = 858.0
"""26 mm x 33 mm, what a scanner exposes at once: the largest die."""


@dataclass(frozen=True, slots=True)
class DieCost:
    """One kind of die of a chip.

    Attributes
    ----------
    area_mm2, count : float, int
        Of one die, and how many a chip has.
    gross_dies : float
        On a wafer.
    yield_ : float
        Share that works.
    cost : Range
        Good die, US dollars.
    """

    name: str
    area_mm2: float
    count: int
    process: str
    gross_dies: float
    yield_: float
    cost: Range


def gross_dies(area_mm2: float, rule: GrossDies, where: str = "die") -> float:
    """Dies on a wafer, before yield.

    pi r2 / A - pi d / sqrt(2 A): dies of the area, less those that the edge cuts.

    Raises
    ------
    ConfigError
        Not one die fits the wafer.

    Examples
    --------
    LLMCompass's GA100:

    >>> from chipsim.cost.prices import GrossDies
    >>> round(gross_dies(826.76, GrossDies()), 1)
    62.3
    """
    count = math.pi * rule.diameter**2 / 4 / area_mm2
    if rule.formula == "edge-loss":
        count -= math.pi * rule.diameter / math.sqrt(2 * area_mm2)
    count = math.floor(count) if rule.whole else count
    if count < 1:
        allowed = f"an area of which a {rule.diameter:g} mm wafer holds a die"
        raise ConfigError(where, "die area", f"{area_mm2:.6g} mm2", allowed)
    return count


def check_reticle(where: str, area_mm2: float) -> None:
    """Refuse a die that no scanner exposes at once (`ConfigError`)."""
    if not area_mm2 <= RETICLE_MM2:
        allowed = f"at most {RETICLE_MM2:g} mm2, the reticle; or several dies"
        raise ConfigError(where, "die area", f"{area_mm2:.6g} mm2", allowed)


def die_yield(area_mm2: float, defects: float, model: Yield) -> float:
    """Share of dies of an area without a defect, 0 < y <= 1.

    Parameters
    ----------
    area_mm2 : float
        mm2.
    defects : float
        Mean per mm2.
    model : Yield
        ``poisson`` exp(-AD), ``murphy`` ((1 - exp(-AD)) / AD)^2, ``seeds`` 1 / (1 + AD),
        ``negative-binomial`` (1 + AD / alpha)^-alpha, ``none`` 1, ``fixed`` its value.

    Examples
    --------
    >>> from chipsim.cost.prices import Yield
    >>> round(die_yield(100, 0.001, Yield(model="seeds")), 4)
    0.9091
    """
    fatal = area_mm2 * defects
    if model.model == "fixed":
        return model.value
    if model.model == "none" or fatal == 0.0:
        return 1.0
    if model.model == "poisson":
        return math.exp(-fatal)
    if model.model == "murphy":
        return (-math.expm1(-fatal) / fatal) ** 2
    alpha = 1.0 if model.model == "seeds" else model.alpha
    return float((1 + fatal / alpha) ** -alpha)


def harvested_yield(
    other_mm2: float, core_mm2: float, cores: int, needed: int, defects: float, model: Yield
) -> float:
    """Share of dies whose shared part works, and at least `needed` of `cores` cores.

    Parameters
    ----------
    other_mm2 : float
        Area in which any defect is fatal, mm2.
    core_mm2 : float
        Area of one core, mm2.
    cores, needed : int
        Physical cores, and those that are sold.
    defects : float
        Mean per mm2.
    model : Yield
        The cores of a die share its defect density, so a clustered die loses many.
    """
    if cores <= needed or core_mm2 * defects == 0.0 or model.model in ("none", "fixed"):
        return die_yield(other_mm2 + core_mm2 * cores, defects, model)
    density, weight = _densities(defects, model)
    enough = _at_least(needed, cores, np.exp(-core_mm2 * density))
    return float(weight @ (np.exp(-other_mm2 * density) * enough))


Floats = npt.NDArray[np.float64]


def _densities(mean: float, model: Yield) -> tuple[Floats, Floats]:
    """Nodes and weights of the distribution of the defect density."""
    if model.model == "poisson":
        return np.array([mean]), np.array([1.0])
    if model.model == "murphy":
        x, w = np.polynomial.legendre.leggauss(64)
        half = (x + 1) / 2 * mean
        rising = half / mean * w / 2
        return np.concatenate([half, 2 * mean - half]), np.concatenate([rising, rising])
    from scipy.special import roots_genlaguerre

    alpha = 1.0 if model.model == "seeds" else model.alpha
    if alpha > MOST_CLUSTERED:
        return np.array([mean]), np.array([1.0])
    x, w = roots_genlaguerre(96, alpha - 1)
    return x * mean / alpha, w / w.sum()


MOST_CLUSTERED = 100.0
"""Alpha above which the negative binomial is taken to be its limit, Poisson's model."""


def _at_least(needed: int, cores: int, good: Floats) -> Floats:
    """Chance of at least `needed` of `cores`, each good with a probability."""
    from scipy.stats import binom

    tail: Floats = binom.sf(needed - 1, cores, good)
    return tail
