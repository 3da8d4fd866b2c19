"""Two orders kept in arrays: a binary heap of whole numbers, and a winner tree.

The heap holds one number per entry; what else an entry means is packed into its low bits.
The winner tree answers "which index has the least value" in one look and takes a changed
value in O(log n); ties go to the lowest index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipsim.kernels.jit import hot_part, part

if TYPE_CHECKING:
    from chipsim.cluster.engine.state import Floats, Ints


@part
def heap_push(heap: Ints, size: int, key: int) -> None:
    """Add ``key`` to a heap of ``size`` entries; the caller counts the size."""
    child = size
    while child > 0:
        parent = (child - 1) >> 1
        if heap[parent] <= key:
            break
        heap[child] = heap[parent]
        child = parent
    heap[child] = key


@part
def heap_pop(heap: Ints, size: int) -> int:
    """Take the least entry out of a heap of ``size`` entries."""
    least = heap[0]
    _sift_down(heap, size - 1, 0, heap[size - 1])
    return least


@part
def heap_remove(heap: Ints, size: int, key: int) -> bool:
    """Take ``key`` out, wherever it is: O(size), for what happens rarely."""
    for place in range(size):
        if heap[place] == key:
            last = heap[size - 1]
            if place < size - 1:
                _sift_down(heap, size - 1, place, last)
                if heap[place] == last:
                    heap_push(heap, place, last)
            return True
    return False


@part
def _sift_down(heap: Ints, size: int, place: int, key: int) -> None:
    """Put ``key`` at ``place`` or below it, in a heap of ``size`` entries."""
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = key


@hot_part
def tree_update(tree: Ints, values: Floats, i: int) -> None:
    """Let the tree know that ``values[i]`` changed.

    ``tree`` has ``2 * leaves`` entries, ``leaves`` a power of two; entry ``n`` holds the
    index of the least value below node ``n``, and the children of ``n`` are ``2n, 2n + 1``.
    """
    # Only the brother of each node on the way is read: nothing waits for what was just
    # written. Who wins is a toss-up to the processor, so it is computed, not branched on.
    node, winner, least = (tree.shape[0] >> 1) + i, i, values[i]
    while node > 1:
        brother = tree[node ^ 1]
        other = values[brother]
        lost = (other < least) | ((other == least) & (brother < winner))
        winner += lost * (brother - winner)
        least = min(least, other)
        node >>= 1
        tree[node] = winner


@part
def tree_build(tree: Ints, values: Floats) -> None:
    """Fill the tree from all values; ``values`` has one entry per leaf (infinite: unused)."""
    leaves = tree.shape[0] >> 1
    for leaf in range(leaves):
        tree[leaves + leaf] = leaf
    for node in range(leaves - 1, 0, -1):
        left, right = tree[2 * node], tree[2 * node + 1]
        tree[node] = left if values[left] <= values[right] else right
