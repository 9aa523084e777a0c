"""Time as the crawl knows it: a port, so that tests move it by hand."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Whole milliseconds: `elapsed_ms` never jumps, `wall_ms` counts from the Unix epoch."""

    def elapsed_ms(self) -> int:
        """Since some fixed moment; for intervals."""
        ...

    def wall_ms(self) -> int:
        """Since 1970-01-01T00:00Z; for what people and other programs read."""
        ...

    async def wait(self, event: asyncio.Event, ms: int) -> bool:
        """Until `event` is set or `ms` have passed; tells whether it is set."""
        ...


class SystemClock:
    """The clock of this machine."""

    def elapsed_ms(self) -> int:
        """See Clock."""
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        """See Clock."""
        return time.time_ns() // 1_000_000

    async def wait(self, event: asyncio.Event, ms: int) -> bool:
        """See Clock."""
        try:
            async with asyncio.timeout(ms / 1_000):
                await event.wait()
        except TimeoutError:
            return event.is_set()
        return True
