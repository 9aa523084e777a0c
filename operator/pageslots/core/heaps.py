"""Heaps with lazy deletion, read without changing them: a plan is a pure read.

`in_order` walks a `heapq` list from the smallest item on; k items cost O(k log k), whatever its size.
`Timers` remembers one instant per key and knows which are due.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Generic, Protocol, TypeVar

from pageslots.core.model import EPOCH, Instant


class Sortable(Protocol):
    """Strings, numbers, and tuples of them."""

    def __lt__(self, other: Any, /) -> bool: ...


Key = TypeVar("Key", bound=Sortable)
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
    """One instant per key. Keys must be comparable with each other.

    Asking for what is due at `now` moves it out of the heap: each entry is popped once, however often it is asked for.
    """

    def __init__(self) -> None:
        self._at: dict[Key, Instant] = {}
        self._heap: list[tuple[Instant, Key]] = []
        self._due: set[Key] = set()
        self._now = EPOCH

    def __len__(self) -> int:
        return len(self._at)

    def get(self, key: Key) -> Instant | None:
        """When the key is due; None: never."""
        return self._at.get(key)

    def set(self, key: Key, at: Instant | None) -> None:
        """The key is due at `at` and at no other time (None: never)."""
        if self._at.get(key) == at:
            return
        self._due.discard(key)
        if at is None:
            del self._at[key]
            return
        self._at[key] = at
        if at <= self._now:
            self._due.add(key)
        else:
            heappush(self._heap, (at, key))
            if len(self._heap) > 2 * len(self._at) + 64:
                self._start_over()

    def _start_over(self) -> None:
        self._heap = [(at, key) for key, at in self._at.items()]
        heapify(self._heap)
        self._due.clear()

    def _advance(self, now: Instant) -> None:
        if now < self._now:
            self._start_over()
        self._now = now
        heap = self._heap
        while heap and (heap[0][0] <= now or self._at.get(heap[0][1]) != heap[0][0]):
            at, key = heappop(heap)
            if self._at.get(key) == at:
                self._due.add(key)

    def due(self, now: Instant) -> list[Key]:
        """The keys due at or before `now`, in their own order."""
        self._advance(now)
        return sorted(self._due)

    def next_after(self, now: Instant) -> Instant | None:
        """The earliest instant later than `now`."""
        self._advance(now)
        return self._heap[0][0] if self._heap else None
