"""Faults and role switches of a scenario as events in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.engine import codes
from chipsim.errors import ConfigError

if TYPE_CHECKING:
    from chipsim.cluster.scenario import FaultSpec, Scenario

MOST_FAULTS = 10**5
"""At random, of all instances together: more would take longer to list than to simulate."""

Timer = tuple[float, int, int, int]
"""Time in seconds, `codes.TIMER`, number of the instance, value."""


def timer_list(
    scenario: Scenario, counts: Mapping[str, int], last_arrival_s: float, seed: int
) -> list[Timer]:
    """Every fault, recovery and switch.

    Parameters
    ----------
    counts : mapping of str to int
        Instances of each pool, in order; they are numbered through.
    last_arrival_s : float
        Random faults stop there, or where the run does.

    Raises
    ------
    ConfigError
        More than `MOST_FAULTS` random faults are to be expected.
    """
    first = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
    rng = np.random.default_rng([seed, 0xFA17])
    found: list[Timer] = []
    until = min(last_arrival_s, scenario.limits.time)
    for place, fault in enumerate(scenario.faults):
        numbers = _instances(fault, counts)
        if fault.mtbf is not None and len(numbers) * until > MOST_FAULTS * (
            fault.mtbf + fault.duration
        ):
            allowed = f"so long that {MOST_FAULTS:,} failures at most befall the pool"
            raise ConfigError(scenario.name, f"faults.{place}.mtbf", fault.mtbf, allowed)
        for number in numbers:
            times = [fault.at] if fault.at is not None else _random(fault, rng, until)
            for at in times:
                found += [
                    (at, codes.FAULT, first[fault.pool] + number, 0),
                    (at + fault.duration, codes.RECOVERY, first[fault.pool] + number, 0),
                ]
    found += [
        (
            switch.at,
            codes.ROLE_SWITCH,
            first[switch.pool] + switch.instance,
            codes.ROLE[switch.role],
        )
        for switch in scenario.switches
        if switch.instance < counts[switch.pool]
    ]
    return sorted(found, key=lambda timer: timer[0])


def _instances(fault: FaultSpec, counts: Mapping[str, int]) -> list[int]:
    if fault.instance is None:
        return list(range(counts[fault.pool]))
    return [fault.instance] if fault.instance < counts[fault.pool] else []


def _random(fault: FaultSpec, rng: np.random.Generator, until: float) -> list[float]:
    """Times of failures: exponential gaps after each recovery."""
    times: list[float] = []
    at = float(rng.exponential(fault.mtbf or 0.0))
    while at < until:
        times.append(at)
        at += fault.duration + float(rng.exponential(fault.mtbf or 0.0))
    return times
