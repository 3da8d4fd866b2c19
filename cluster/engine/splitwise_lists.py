"""Lists of Splitwise's simulator: a machine's requests, and its tasks that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import State


@part
def list_by_arrival(S: State, k: int, r: int) -> None:
    """Into the list of all requests on a machine, in order of arrival."""
    rank, request = S.ranks[k], S.requests[r]
    below = rank.top
    while below >= 0 and S.requests[below].arrival_s > request.arrival_s:
        below = S.requests[below].below
    above = rank.bottom if below < 0 else S.requests[below].above
    request.below, request.above = below, above
    if below < 0:
        rank.bottom = r
    else:
        S.requests[below].above = r
    if above < 0:
        rank.top = r
    else:
        S.requests[above].below = r
    rank.running += 1


@part
def times_passed(S: State, task: int) -> int:
    """Batches that left a task out while it waited."""
    request = S.requests[task >> 1]
    return request.passed_decode if task & 1 else request.passed_prompt


@part
def list_task(S: State, k: int, task: int) -> None:
    """Into the list of waiting tasks, by bisection on (batches passed over, arrival).

    The counts change while tasks wait and the list is not sorted again, so where the
    bisection ends depends on its course: it must be this one.
    """
    rank, tasks = S.ranks[k], S.pending[k]
    passed, arrival = times_passed(S, task), S.requests[task >> 1].arrival_s
    low, high = 0, rank.listed
    while low < high:
        middle = (low + high) // 2
        other = times_passed(S, tasks[middle])
        later = passed == other and arrival < S.requests[tasks[middle] >> 1].arrival_s
        if passed < other or later:
            high = middle
        else:
            low = middle + 1
    for place in range(rank.listed, low, -1):
        tasks[place] = tasks[place - 1]
    tasks[low] = task
    rank.listed += 1
    S.sim[0].most_listed = max(S.sim[0].most_listed, rank.listed)


@part
def unlist_task(S: State, k: int, task: int) -> None:
    """Out of the list of waiting tasks."""
    rank, tasks = S.ranks[k], S.pending[k]
    place = 0
    while tasks[place] != task:
        place += 1
    rank.listed -= 1
    for at in range(place, rank.listed):
        tasks[at] = tasks[at + 1]


@part
def unlink(S: State, first: int, last: int, r: int) -> tuple[int, int]:
    """Take a request out of a linked list; its new first and last."""
    request = S.requests[r]
    if request.prev < 0:
        first = request.next
    else:
        S.requests[request.prev].next = request.next
    if request.next < 0:
        last = request.prev
    else:
        S.requests[request.next].prev = request.prev
    return first, last
