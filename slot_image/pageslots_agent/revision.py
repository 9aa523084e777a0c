"""The number that long polls wait for: it grows with every change that somebody should see."""

import asyncio

PROGRESS_SECONDS = 1.0
"""Progress alone is told at most this often: a fast crawl must not turn polling into streaming."""


class Revision:
    """A counter with waiters. `now`, `bump` at once, `touch` for progress."""

    def __init__(self) -> None:
        self.now = 1
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._last = float("-inf")

    def bump(self) -> None:
        """Something changed that an operator acts on: wake everybody now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.now += 1
        self._last = asyncio.get_running_loop().time()
        self._changed.set()
        self._changed = asyncio.Event()

    def touch(self) -> None:
        """Progress: bump now, or when the last bump is `PROGRESS_SECONDS` old."""
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        due = self._last + PROGRESS_SECONDS
        if due <= loop.time():
            self.bump()
        else:
            self._timer = loop.call_at(due, self._due)

    def _due(self) -> None:
        self._timer = None
        self.bump()

    async def newer_than(self, after: int, *, seconds: float) -> None:
        """Return when the number is not `after` (a larger `after` is of another life), or in time."""
        if self.now != after:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
