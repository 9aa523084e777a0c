"""Time that jumps: an asyncio event loop in which waiting costs nothing.

When nothing is ready to run, the loop's time moves to its next timer. A day of a pool passes in a second,
and always in the same order. Nothing outside this process can be waited for: no sockets, no threads.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NoReturn, TypeVar

ResultT = TypeVar("ResultT")

START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z: when virtual time begins, unless said otherwise."""


class DeadlockError(RuntimeError):
    """Every task waits, and no timer is set: without an outside world nothing can ever happen again."""


class _TimeJumps(selectors.BaseSelector):
    """A selector that never waits: the time it should have waited is over at once."""

    def __init__(self, advance: Callable[[float], None]) -> None:
        self._advance = advance
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise DeadlockError("every task waits for another one, and no timer is set")
        if timeout > 0:
            self._advance(timeout)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        descriptor = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        self._keys[fileobj] = selectors.SelectorKey(fileobj, descriptor, events, data)
        return self._keys[fileobj]

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose `time()` starts at 0 and moves only from timer to timer."""

    _clock_resolution: float

    def __init__(self) -> None:
        self._virtual_seconds = 0.0
        super().__init__(selector=_TimeJumps(self._advance))
        # Timers closer than this run together; far above the rounding of a float after years of seconds.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._virtual_seconds

    def run_in_executor(self, executor: object, func: object, *args: object) -> NoReturn:
        """Refused: a thread takes real time, and what it does has no place in virtual time."""
        del executor, args
        raise RuntimeError(f"virtual time has no threads to run {func!r} in")

    def _advance(self, seconds: float) -> None:
        self._virtual_seconds += seconds


class VirtualClock:
    """The running virtual loop's time as a `Clock`."""

    __slots__ = ("_start_ms",)

    def __init__(self, start_ms: int = START_MS) -> None:
        self._start_ms = start_ms

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch; outside a virtual loop, the start."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self._start_ms
        assert isinstance(loop, VirtualLoop), "a virtual clock needs a virtual loop: use virtual.run()"
        return self._start_ms + round(loop.time() * 1_000)


def run(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run `main` to its end in virtual time, as `asyncio.run` does in real time. Raises DeadlockError."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
