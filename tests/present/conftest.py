"""Results that several tests draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chipsim import Phase, cuts

if TYPE_CHECKING:
    from chipsim.explore.cuts import CutsResult


@pytest.fixture(scope="session")
def curve() -> CutsResult:
    """Prefill against memory bandwidth, in no order."""
    return cuts(
        "spad-h100", "bloom-176b", Phase.prefill(2, 1024),
        {"memory_bandwidth": [0.6, 1.0, 0.3]}, plan="tp=8",
    )  # fmt: skip


@pytest.fixture(scope="session")
def grid() -> CutsResult:
    """Decode against cores and memory capacity; the smallest memory does not hold it."""
    return cuts(
        "spad-h100", "bloom-176b", Phase.decode(64, 1024),
        {"cores": [1.0, 0.5], "memory_capacity": [1.0, 0.8, 0.5]}, plan="tp=8",
    )  # fmt: skip


@pytest.fixture(scope="session")
def largest() -> CutsResult:
    """The largest batch against memory capacity, the last point without room for one."""
    return cuts(
        "spad-h100", "bloom-176b", Phase.decode(1, 1024),
        {"memory_capacity": [1.0, 0.7, 0.4]}, plan="tp=8", batch="max", itl_s=0.04,
    )  # fmt: skip
