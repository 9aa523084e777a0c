"""Which request runs next, and on which ready slot (DESIGN section 5, "Dispatch").

Requests queue per (country, site). Among queues the highest of (priority times 300 s, plus waited) is next; as both
grow equally with time, their order never changes by itself: it is stored as a key without `now`.
"""

from collections.abc import Iterable
from heapq import heapify, heappop

from pageslots.core.model import SECOND, Instant, Request, RequestUid, Site, SlotUid

PRIORITY_MS = 300 * SECOND
"""What one point of priority is worth in waiting time."""

QueueKey = tuple[int, Instant, RequestUid]
"""Sorts queues: the smallest is next."""

Place = tuple[int, Instant, RequestUid]
"""Sorts requests inside a queue: priority, creation, UID."""


def place(request: Request) -> Place:
    """Where a request stands inside its queue."""
    return (-request.priority, request.created, request.uid)


def runnable_since(request: Request) -> Instant:
    """Since when the request itself asks for nothing but a slot."""
    return max(request.created, request.next_attempt or request.created)


def queue_key(head: Place, since: Instant) -> QueueKey:
    """Where a queue stands among others. `since`: its head became runnable, or the queue's site cooled down."""
    priority, created, uid = head
    return (since + priority * PRIORITY_MS, created, uid)


class WarmSlots:
    """Free ready slots of a country, handed out by warmth.

    Warm for the same site, then for none, then for another one (the longest idle of those). Equal ones by
    number: low numbers stay busy, high ones become idle and close.
    """

    def __init__(self, free: Iterable[tuple[SlotUid, Site | None, Instant, int]]) -> None:
        self._left: set[SlotUid] = set()
        self._by_site: dict[Site | None, list[tuple[int, SlotUid]]] = {}
        self._by_idleness: list[tuple[Instant, int, SlotUid]] = []
        for slot, site, idle_since, number in free:
            self._left.add(slot)
            self._by_site.setdefault(site, []).append((number, slot))
            self._by_idleness.append((idle_since, number, slot))
        for group in self._by_site.values():
            heapify(group)
        heapify(self._by_idleness)

    def __len__(self) -> int:
        return len(self._left)

    def take(self, site: Site) -> SlotUid:
        """The best slot for `site`; IndexError when none is left."""
        slot = self._warm(site)
        if slot is None:
            slot = self._warm(None)
        while slot is None:
            _, _, idle = heappop(self._by_idleness)
            slot = idle if idle in self._left else None
        self._left.discard(slot)
        return slot

    def _warm(self, site: Site | None) -> SlotUid | None:
        group = self._by_site.get(site, [])
        while group:
            _, slot = heappop(group)
            if slot in self._left:
                return slot
        return None
