"""Virtual time for tests, and waiting for a condition in it."""

import asyncio
from collections.abc import Callable

from pageslots.simulate.virtual import START_MS, DeadlockError, VirtualClock, VirtualLoop, run

__all__ = ["START_MS", "DeadlockError", "VirtualClock", "VirtualLoop", "run", "until"]


async def until(
    condition: Callable[[], bool], *, within_seconds: float = 60, step_seconds: float = 0.01
) -> None:
    """Wait until `condition()` holds; AssertionError after `within_seconds` (virtual or real)."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within_seconds
    while not condition():
        assert loop.time() < end, f"not true within {within_seconds} s: {condition}"
        await asyncio.sleep(step_seconds)
