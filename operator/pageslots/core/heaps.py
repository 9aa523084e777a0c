"""Heaps with lazy deletion, read without changing them: a plan is a pure read.

`in_order` walks a `heapq` list from the smallest item on; k items cost O(k log k), whatever its size.
`Timers` remembers one instant per key and knows which are due.
"""

from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Generic, TypeVar

from pageslots.core.model import Instant

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


def in_order(heap: list[Item]) -> Iterator[Item]:
    """The heap's items, smallest first."""
    if not heap:
        return
    yield heap[0]  # most readers want no more
    size = len(heap)
    frontier: list[tuple[Any, int]] = [(heap[child], child) for child in (1, 2) if child < size]
    heapify(frontier)
    while frontier:
        item, at = heappop(frontier)
        yield item
        for child in (2 * at + 1, 2 * at + 2):
            if child < size:
                heappush(frontier, (heap[child], child))


class Timers(Generic[Key]):
    """One instant per key. Keys must be comparable with each other."""

    def __init__(self) -> None:
        self._at: dict[Key, Instant] = {}
        self._heap: list[tuple[Instant, Key]] = []

    def __len__(self) -> int:
        return len(self._at)

    def get(self, key: Key) -> Instant | None:
        """When the key is due; None: never."""
        return self._at.get(key)

    def set(self, key: Key, at: Instant | None) -> None:
        """The key is due at `at` and at no other time (None: never)."""
        if self._at.get(key) == at:
            return
        if at is None:
            del self._at[key]
        else:
            self._at[key] = at
            heappush(self._heap, (at, key))
        if len(self._heap) > 2 * len(self._at) + 64:
            self._heap = [(at, key) for key, at in self._at.items()]
            heapify(self._heap)
        self._clean()

    def _clean(self) -> None:
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)

    def due(self, now: Instant) -> list[Key]:
        """The keys due at or before `now`, the longest due first."""
        if not self._heap or self._heap[0][0] > now:
            return []
        found: dict[Key, None] = {}
        for at, key in in_order(self._heap):
            if at > now:
                break
            if self._at.get(key) == at:
                found[key] = None
        return list(found)

    def next_after(self, now: Instant) -> Instant | None:
        """The earliest instant later than `now`."""
        if self._heap and self._heap[0][0] > now:
            return self._heap[0][0]  # the top is always current
        for at, key in in_order(self._heap):
            if at > now and self._at.get(key) == at:
                return at
        return None
