"""Hands changes to any number of watchers, each with a bounded queue.

A watch is a complete list, then changes; a watcher that falls further behind than its queue holds gets
a complete list again, so that a slow reader costs time and never memory. Used by every implementation
of `ObjectApi` and `SlotRuntime` that keeps its truth in this process.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Generic, TypeVar

ChangeT = TypeVar("ChangeT")
SnapshotT = TypeVar("SnapshotT")


class _Watcher(Generic[ChangeT]):
    """One reader: what it has not read yet, or that it must be given everything anew (`gap`)."""

    __slots__ = ("gap", "queue", "ready", "wanted")

    def __init__(self, wanted: Callable[[ChangeT], bool] | None) -> None:
        self.queue: deque[ChangeT] = deque()
        self.gap = True
        self.ready = asyncio.Event()
        self.wanted = wanted


class Feed(Generic[ChangeT]):
    """Changes of one kind of thing, in the order in which they were published.

    `limit`: changes that one watcher may leave unread before it gets a complete list instead.
    """

    def __init__(self, *, limit: int = 4_096) -> None:
        self._limit = limit
        self._watchers: dict[_Watcher[ChangeT], None] = {}  # a dict for its order: same run, same order
        self._closed = False

    def publish(self, change: ChangeT) -> None:
        """Give the change to every watcher that wants it; never waits."""
        for watcher in self._watchers:
            if watcher.gap or (watcher.wanted is not None and not watcher.wanted(change)):
                continue
            if len(watcher.queue) >= self._limit:
                watcher.queue.clear()
                watcher.gap = True
            else:
                watcher.queue.append(change)
            watcher.ready.set()

    def interrupt(self) -> None:
        """Make every watcher lose what it has not read: each gets a complete list next."""
        for watcher in self._watchers:
            watcher.queue.clear()
            watcher.gap = True
            watcher.ready.set()

    def close(self) -> None:
        """End all watches."""
        self._closed = True
        for watcher in self._watchers:
            watcher.ready.set()

    async def watch(
        self, snapshot: Callable[[], SnapshotT], wanted: Callable[[ChangeT], bool] | None = None
    ) -> AsyncGenerator[SnapshotT | ChangeT]:
        """`snapshot()` first and after every gap, then the changes that `wanted` accepts."""
        watcher = _Watcher(wanted)
        self._watchers[watcher] = None
        try:
            while not self._closed:
                if watcher.gap:
                    watcher.gap = False
                    yield snapshot()
                elif watcher.queue:
                    yield watcher.queue.popleft()
                else:
                    watcher.ready.clear()
                    await watcher.ready.wait()  # bounded by the watch itself: it ends with its reader
        finally:
            del self._watchers[watcher]
