"""Faults and role switches of a scenario as events in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from chipsim.cluster.engine import codes

if TYPE_CHECKING:
    from chipsim.cluster.scenario import FaultSpec, Scenario

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
        Random faults stop there.
    """
    first = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
    rng = np.random.default_rng([seed, 0xFA17])
    found: list[Timer] = []
    for fault in scenario.faults:
        for number in _instances(fault, counts):
            times = [fault.at] if fault.at is not None else _random(fault, rng, last_arrival_s)
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
