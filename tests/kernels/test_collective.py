"""Times of exchanges against transfers laid on ports one by one, and against lower bounds."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipsim.kernels.collective import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    FULLY_CONNECTED,
    HIERARCHICAL,
    REDUCE_SCATTER,
    REDUCING_SWITCH,
    RING,
    SEND_RECV,
    TORUS,
    Sides,
    collective_seconds,
)
from tests.kernels.machines import machine, plain

PURE: dict[str, float] = {
    "link_bandwidth": 4e11, "link_latency": 0.0, "link_header": 0.0,
    "out_bandwidth": 5e10, "out_latency": 0.0, "out_header": 0.0,
}  # fmt: skip
"""Neither latency nor headers: bytes over bandwidth is all there is."""
PATTERNS = (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL)


ONE = Sides(1, 1, 1, 1)
"""No torus."""


def seconds(
    chip: Any,
    pattern: int,
    size: float,
    local: int,
    nodes: int,
    topology: int = 0,
    sides: Sides = ONE,
) -> Any:
    return collective_seconds(chip, pattern, size, local, nodes, topology, sides)[0]


def pairwise(size: float, local: int, nodes: int) -> float:
    """Every pair exchanges its share; the busiest port of any chip decides."""
    near: Counter[int] = Counter()
    far: Counter[int] = Counter()
    chips = local * nodes
    for source in range(chips):
        for target in range(chips):
            if source != target:
                port = near if source // local == target // local else far
                port[source] += 1
    share = size / chips
    busiest_near = max(near.values(), default=0) * share / PURE["link_bandwidth"]
    return max(busiest_near, max(far.values(), default=0) * share / PURE["out_bandwidth"])


def railed(size: float, local: int, nodes: int) -> float:
    """All-to-all by rails: to the neighbour of the right place, then to the right node."""
    near: Counter[int] = Counter()
    far: Counter[int] = Counter()
    for source in range(local * nodes):
        for target in range(local * nodes):
            home, place = source // local * local, target % local
            near[source] += home + place != source
            far[home + place] += target // local != source // local
    share = size / (local * nodes)
    return (
        max(near.values()) * share / PURE["link_bandwidth"]
        + max(far.values()) * share / PURE["out_bandwidth"]
    )


@pytest.mark.parametrize("local", [1, 2, 3, 8])
@pytest.mark.parametrize("nodes", [1, 2, 5, 8])
def test_all_to_all_is_its_busiest_port(local: int, nodes: int) -> None:
    if local * nodes == 1:
        return
    best = min(pairwise(1e8, local, nodes), railed(1e8, local, nodes))
    assert seconds(machine(**PURE), ALL_TO_ALL, 1e8, local, nodes) == pytest.approx(best)


@pytest.mark.parametrize("chips", range(2, 12))
def test_all_to_all_around_a_ring_loads_every_link(chips: int) -> None:
    load: Counter[tuple[int, int]] = Counter()
    for source in range(chips):
        for step in range(1, chips):
            ways = {1, -1} if 2 * step == chips else {1 if 2 * step < chips else -1}
            for way in ways:
                for hop in range(step if way == 1 else chips - step):
                    load[(source + way * hop) % chips, way] += 2 // len(ways)
    # half of the links lead each way; counted in halves of a share
    busiest = max(load.values()) / 2 * (1e8 / chips) / (PURE["link_bandwidth"] / 2)
    found = seconds(machine(**PURE), ALL_TO_ALL, 1e8, chips, 1, RING)
    assert found == pytest.approx(busiest)


def test_two_levels_of_an_all_reduce() -> None:
    """64 chips in 8 machines, 100 MB: 2 (7/8 · 100 MB / 400 GB/s + 7/8 · 12.5 MB / 50 GB/s)."""
    found, algorithm = collective_seconds(machine(**PURE), ALL_REDUCE, 1e8, 8, 8, 0, ONE)
    assert found == pytest.approx(2 * (7 / 8 * 1e8 / 4e11 + 7 / 8 * 1.25e7 / 5e10))
    assert algorithm == HIERARCHICAL
    assert seconds(machine(**PURE), ALL_GATHER, 1e8, 8, 8) == pytest.approx(found / 2)
    assert seconds(machine(**PURE), REDUCE_SCATTER, 1e8, 8, 8) == pytest.approx(found / 2)


def test_few_bytes_take_few_steps() -> None:
    """With 100 bytes and 5 us of latency the direct exchange needs one step, not two."""
    chip = machine(**(PURE | {"out_latency": 5e-6, "link_latency": 5e-6}))
    assert seconds(chip, ALL_GATHER, 100.0, 8, 8) == pytest.approx(5e-6, rel=1e-3)
    assert seconds(chip, ALL_REDUCE, 100.0, 8, 8) == pytest.approx(10e-6, rel=1e-3)


def test_send_and_receive() -> None:
    chip = machine(**PURE)
    assert seconds(chip, SEND_RECV, 1e8, 2, 1) == pytest.approx(1e8 / 4e11)
    assert seconds(chip, SEND_RECV, 1e8, 1, 2) == pytest.approx(1e8 / 5e10)


def test_headers_count() -> None:
    chip = machine(**(PURE | {"out_header": 32.0, "out_payload": 4096.0}))
    assert seconds(chip, SEND_RECV, 40960.0, 1, 2) == pytest.approx((40960 + 320) / 5e10)


@pytest.mark.parametrize("pattern", [*PATTERNS, SEND_RECV])
def test_one_chip_exchanges_nothing(pattern: int) -> None:
    assert seconds(machine(), pattern, 1e8, 1, 1) == 0.0


NCCL = PURE | {"nccl": 1.0, "link_hop": 1e-6, "link_start": 1e-5}
"""The library's factors: 1 us per step, 10 us before the protocol that moves much."""


def test_ring_of_nccl_few_bytes() -> None:
    """LL: seven steps of 1 us to gather over 8 chips, and twice that to reduce and gather."""
    chip = machine(**NCCL)
    assert seconds(chip, ALL_GATHER, 8.0, 8, 1) == pytest.approx(7e-6, rel=1e-3)
    assert seconds(chip, REDUCE_SCATTER, 8.0, 8, 1) == pytest.approx(7e-6, rel=1e-3)
    assert seconds(chip, ALL_REDUCE, 8.0, 8, 1) == pytest.approx(14e-6, rel=1e-3)
    assert seconds(chip, ALL_TO_ALL, 8.0, 8, 1) == pytest.approx(3e-6, rel=1e-3)
    assert seconds(chip, SEND_RECV, 8.0, 2, 1) == pytest.approx(3e-6, rel=1e-3)


def test_ring_of_nccl_many_bytes() -> None:
    """Simple: 1.5 us a step, 10 us before, and (7 + 1/2) / 8 of 1 GB at 400 GB/s."""
    chip = machine(**NCCL)
    moved = 7.5 / 8 * 1e9 / 4e11
    assert seconds(chip, ALL_GATHER, 1e9, 8, 1) == pytest.approx(10e-6 + 10.5e-6 + moved)
    assert seconds(chip, ALL_TO_ALL, 1e9, 8, 1) == pytest.approx(3.5e-6 + 4.5e-6 + moved)
    moved = 14.5 / 8 * 1e9 / 4e11
    assert seconds(chip, ALL_REDUCE, 1e9, 8, 1) == pytest.approx(10e-6 + 21e-6 + moved)
    assert seconds(chip, SEND_RECV, 1e9, 2, 1) == pytest.approx(8e-6 + 1e9 / 4e11)


def test_ring_of_nccl_in_between() -> None:
    """LL128: 0.9 us before, 1 us a step, 0.48 of the links."""
    expected = 0.9e-6 + 7e-6 + 7.5 / 8 * 1e6 / (0.48 * 4e11)
    assert seconds(machine(**NCCL), ALL_GATHER, 1e6, 8, 1) == pytest.approx(expected)


@given(st.sampled_from([*PATTERNS, SEND_RECV]), st.floats(1, 1e10), st.integers(2, 16),
       st.floats(1, 10))  # fmt: skip
def test_nccl_is_never_faster_with_more_bytes_or_slower_with_faster_links(
    pattern: int, size: float, chips: int, factor: float
) -> None:
    before = seconds(machine(**NCCL), pattern, size, chips, 1)
    assert seconds(machine(**NCCL), pattern, size * factor, chips, 1) >= before * (1 - 1e-12)
    for name in ("link_bandwidth", "link_hop", "link_start"):
        share = factor if name == "link_bandwidth" else 1 / factor
        better = machine(**(NCCL | {name: NCCL[name] * share}))
        assert seconds(better, pattern, size, chips, 1) <= before * (1 + 1e-12)


@given(st.sampled_from(PATTERNS), st.floats(1, 1e10), st.integers(2, 16))
def test_nccl_does_not_beat_the_ports(pattern: int, size: float, chips: int) -> None:
    times = 2.0 if pattern == ALL_REDUCE else 1.0
    found = seconds(machine(**NCCL), pattern, size, chips, 1)
    assert found >= times * (chips - 1) / chips * size / PURE["link_bandwidth"]


groups = st.tuples(st.integers(1, 16), st.integers(1, 16)).filter(lambda g: g != (1, 1))


@given(
    st.sampled_from(PATTERNS), st.floats(1, 1e10), groups,
    st.sampled_from([FULLY_CONNECTED, RING]),
)  # fmt: skip
def test_no_exchange_beats_its_ports(
    pattern: int, size: float, group: tuple[int, int], ring: int
) -> None:
    local, nodes = group
    chips = local * nodes
    known = plain()
    found = seconds(machine(), pattern, size, local, nodes, ring)
    times = 2.0 if pattern == ALL_REDUCE else 1.0
    ports = (known.link_bandwidth if local > 1 else 0) + (
        known.out_bandwidth if nodes > 1 else 0
    )
    assert found >= times * (chips - 1) / chips * size / ports * (1 - 1e-12)
    kept_inside = 1 if pattern == ALL_TO_ALL else local
    leaving = times * (nodes - 1) / nodes * size / kept_inside
    assert found >= leaving / known.out_bandwidth * (1 - 1e-12)


@given(
    st.sampled_from([*PATTERNS, SEND_RECV]), st.floats(1, 1e10), groups,
    st.sampled_from([FULLY_CONNECTED, RING]),
    st.sampled_from(["link_bandwidth", "out_bandwidth"]), st.floats(1, 10),
)  # fmt: skip
def test_faster_links_and_fewer_bytes_are_never_slower(
    pattern: int, size: float, group: tuple[int, int], ring: int, name: str, factor: float
) -> None:
    before = seconds(machine(), pattern, size, *group, ring)
    faster = machine(**{name: getattr(plain(), name) * factor})
    assert seconds(faster, pattern, size, *group, ring) <= before * (1 + 1e-12)
    assert seconds(machine(), pattern, size * factor, *group, ring) >= before * (1 - 1e-12)


def torus(*sides: int) -> Sides:
    """All chips of a machine of so many per dimension."""
    x, y, z = (*sides, 1, 1)[:3]
    return Sides(x, y, z, len(sides))


@pytest.mark.parametrize("sides", [(2, 2), (4, 4), (3, 3, 3), (4, 4, 4), (8, 8, 8)])
def test_an_even_torus_reduces_at_all_its_links(sides: tuple[int, ...]) -> None:
    """2 (p - 1)/p S/B with 2 (d - 1) steps along each dimension, where a ring has 2 (p - 1)."""
    chips = prod(sides)
    chip = machine(**(PURE | {"link_latency": 1e-6}))
    ring_bound = 2 * (chips - 1) / chips * 1e8 / 4e11
    steps = sum(2 * (side - 1) for side in sides)
    found = seconds(chip, ALL_REDUCE, 1e8, chips, 1, TORUS, torus(*sides))
    assert found == pytest.approx(ring_bound + steps * 1e-6)
    for pattern in (ALL_GATHER, REDUCE_SCATTER):
        half = seconds(chip, pattern, 1e8, chips, 1, TORUS, torus(*sides))
        assert half == pytest.approx(found / 2)


def test_an_uneven_torus_by_hand() -> None:
    """4 x 2, two halves of S, each dimension at B/2. A half along x first: 3/4 of it, then half
    of the quarter that is left; the other along y first: half of it, then 3/4 of the half.
    The slower of both: 3/4 and then 3/8 of S/B, of a bound of 7/8."""
    found = seconds(machine(**PURE), REDUCE_SCATTER, 1e8, 8, 1, TORUS, torus(4, 2))
    assert found == pytest.approx((3 / 4 + 3 / 8) * 1e8 / 4e11)


def test_a_group_along_one_side_has_the_links_of_that_side() -> None:
    group = Sides(4, 1, 1, 3)
    found = seconds(machine(**PURE), ALL_REDUCE, 1e8, 4, 1, TORUS, group)
    assert found == pytest.approx(2 * 3 / 4 * 1e8 / (4e11 / 3))
    few = machine(**(PURE | {"link_latency": 1e-6}))
    assert seconds(few, ALL_REDUCE, 1e-3, 4, 1, TORUS, group) == pytest.approx(6e-6, rel=1e-3)


@pytest.mark.parametrize("chips", [2, 5, 8])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_torus_of_one_dimension_is_a_ring(pattern: int, chips: int) -> None:
    once = seconds(machine(), pattern, 1e7, chips, 1, TORUS, torus(chips))
    assert once == pytest.approx(seconds(machine(), pattern, 1e7, chips, 1, RING))


@pytest.mark.parametrize("sides", [(2, 2), (4, 2), (3, 5), (4, 4), (3, 2, 4)])
def test_all_to_all_over_a_torus_loads_every_link(sides: tuple[int, ...]) -> None:
    """Shares routed one dimension after the other, the short way; halves where both are."""
    load: Counter[tuple[tuple[int, ...], int, int]] = Counter()
    places = list(product(*map(range, sides)))
    for source, target in product(places, repeat=2):
        at = list(source)
        for axis, side in enumerate(sides):
            step = (target[axis] - at[axis]) % side
            ways = {1, -1} if 2 * step == side else {1 if 2 * step < side else -1}
            for way in ways if step else ():
                here = list(at)
                for _ in range(step if way == 1 else side - step):
                    load[tuple(here), axis, way] += 2 // len(ways)
                    here[axis] = (here[axis] + way) % side
            at[axis] = target[axis]
    chips = prod(sides)
    port = PURE["link_bandwidth"] / len(sides) / 2
    busiest = max(load.values()) / 2 * (1e8 / chips) / port
    found = seconds(machine(**PURE), ALL_TO_ALL, 1e8, chips, 1, TORUS, torus(*sides))
    assert found == pytest.approx(busiest)


@given(
    st.sampled_from(PATTERNS), st.floats(1, 1e10), st.floats(1, 10),
    st.lists(st.integers(1, 9), min_size=2, max_size=3),
)  # fmt: skip
def test_no_torus_beats_its_ports(
    pattern: int, size: float, factor: float, sides: list[int]
) -> None:
    chips = prod(sides)
    found = seconds(machine(), pattern, size, chips, 1, TORUS, torus(*sides))
    times = 2.0 if pattern == ALL_REDUCE else 1.0
    bound = times * (chips - 1) / chips * size / plain().link_bandwidth
    assert found >= bound * (1 - 1e-12)
    more = seconds(machine(), pattern, size * factor, chips, 1, TORUS, torus(*sides))
    assert more >= found * (1 - 1e-12)
    faster = machine(link_bandwidth=plain().link_bandwidth * factor)
    assert seconds(faster, pattern, size, chips, 1, TORUS, torus(*sides)) <= found * (1 + 1e-12)


@pytest.mark.parametrize("chips", [2, 3, 8, 72])
def test_a_switch_that_adds_takes_the_message_once(chips: int) -> None:
    """Up and down at once: S/B instead of 2 (p - 1)/p S/B; the other patterns stay."""
    chip = machine(**PURE)
    least = min(2 * (chips - 1) / chips, 1.0) * 1e8 / 4e11
    assert seconds(chip, ALL_REDUCE, 1e8, chips, 1, REDUCING_SWITCH) == pytest.approx(least)
    for pattern in (ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL):
        found = seconds(chip, pattern, 1e8, chips, 1, REDUCING_SWITCH)
        assert found == seconds(chip, pattern, 1e8, chips, 1, FULLY_CONNECTED)
