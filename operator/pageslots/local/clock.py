"""The time of this machine, as a clock that never steps while the process lives."""

import time


def _elapsed_ns() -> int:
    """Nanoseconds that also count while the machine sleeps, where the system offers it (Linux)."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic_ns() if boot_time is None else time.clock_gettime_ns(boot_time)


class WallClock:
    """Wall-clock time read once, then counted on: setting the system's clock changes no order of events."""

    __slots__ = ("_offset_ns",)

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - _elapsed_ns()

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        return (self._offset_ns + _elapsed_ns()) // 1_000_000
