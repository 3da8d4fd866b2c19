"""Work on threads: in order, what fails is told, and the interpreter is left as it was."""

from __future__ import annotations

import sys

import pytest

from chipsim.cluster.threads import TURN_S, side_by_side


def test_turns_are_short_only_while_threads_work() -> None:
    usual = sys.getswitchinterval()

    def inner(value: int) -> list[float]:
        return side_by_side(lambda _: sys.getswitchinterval(), [value] * 2, 2)

    found = side_by_side(inner, range(5), 2)
    assert found == [[pytest.approx(TURN_S)] * 2] * 5
    assert sys.getswitchinterval() == usual


def test_one_worker_uses_no_thread() -> None:
    usual = sys.getswitchinterval()
    assert side_by_side(lambda _: sys.getswitchinterval(), range(3), 1) == [usual] * 3


def test_what_fails_is_raised_and_turns_are_as_before() -> None:
    usual = sys.getswitchinterval()
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda value: 1 // value, [1, 0], 2)
    assert sys.getswitchinterval() == usual
