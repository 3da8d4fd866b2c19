"""Queues of requests: pairing heaps whose links lie in the requests' own records.

A request waits in at most one queue at a time, so one set of links serves every queue, and
all queues together need no memory of their own. A queue is the index of its first request
(-1: empty). Order: ``k0``, then ``k1``, then the request's index.
Source: Fredman, Sedgewick, Sleator, Tarjan, The pairing heap (Algorithmica 1, 1986).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.kernels.jit import part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import Record, Records

NONE = -1


@part
def _before(a: Record, b: Record, a_index: int, b_index: int) -> bool:
    if a.k0 != b.k0:
        return a.k0 < b.k0
    if a.k1 != b.k1:
        return a.k1 < b.k1
    return a_index < b_index


@part
def _meld(requests: Records, a: int, b: int) -> int:
    """The first of two queues, the other below it."""
    if a < 0:
        return b
    if b < 0:
        return a
    if _before(requests[b], requests[a], b, a):
        a, b = b, a
    first, other = requests[a], requests[b]
    other.next = first.child
    other.prev = a
    if first.child >= 0:
        requests[first.child].prev = b
    first.child = b
    return a


@part
def queue_push(requests: Records, queue: int, r: int, k0: float, k1: float) -> int:
    """Put a request into a queue; the queue's new first request."""
    own = requests[r]
    own.k0, own.k1 = k0, k1
    own.child, own.next, own.prev = NONE, NONE, NONE
    return _meld(requests, queue, r)


@part
def queue_pop(requests: Records, queue: int) -> int:
    """Take the first request out; the queue's new first request."""
    return _meld_children(requests, requests[queue].child)


@part
def queue_remove(requests: Records, queue: int, r: int) -> int:
    """Take any request out of the queue that it is in; the new first request."""
    if r == queue:
        return queue_pop(requests, queue)
    own = requests[r]
    before = requests[own.prev]
    if before.child == r:
        before.child = own.next
    else:
        before.next = own.next
    if own.next >= 0:
        requests[own.next].prev = own.prev
    return _meld(requests, queue, _meld_children(requests, own.child))


@part
def _meld_children(requests: Records, first: int) -> int:
    """Meld siblings two by two, then all from the last to the first."""
    pairs = NONE
    while first >= 0:
        second = requests[first].next
        if second < 0:
            after, melded = NONE, first
        else:
            after, melded = requests[second].next, _meld(requests, first, second)
        requests[melded].next = pairs
        pairs, first = melded, after
    queue = NONE
    while pairs >= 0:
        after = requests[pairs].next
        requests[pairs].next = NONE
        requests[pairs].prev = NONE
        queue = _meld(requests, queue, pairs)
        pairs = after
    return queue
