"""A run as plain lines: for logs, pipes and terminals that can't draw."""

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from pageslots.cli.outlet import Outlet
from pageslots.cli.picture import FINISHED, sums
from pageslots.cli.telling import finished, told
from pageslots.cli.words import count
from pageslots.control.ports import Level
from pageslots.local.session import RunControl
from pageslots.local.snapshot import RequestRow, Snapshot

LOOK_SECONDS = 0.5
"""How often finished requests are looked for."""
PROGRESS_SECONDS = 5.0
HEARTBEAT_SECONDS = 60.0
"""A line is written at least so often, even when nothing has changed."""
SHARE = 10
"""Of the time, at most one part in `SHARE` goes into looking, however large the run is."""


def _clock() -> str:
    return datetime.now(tz=UTC).astimezone().strftime("%H:%M:%S")


class PlainView:
    """One line for each decision that matters, and for the progress every few seconds."""

    def __init__(self, outlet: Outlet, *, clock: Callable[[], str] = _clock) -> None:
        self._outlet = outlet
        self._clock = clock
        self._control: RunControl | None = None
        self._told: set[str] = set()
        self._progress = ""

    def notice(self, text: str) -> None:
        """A sentence."""
        self._line(text)

    def event(self, level: Level, name: str, fields: Mapping[str, object]) -> None:
        """A decision, if it is one that a person wants to see."""
        if text := told(level, name, fields):
            self._line(text)

    def attach(self, control: RunControl) -> None:
        """From now on there is something to look at."""
        self._control = control

    async def follow(self) -> None:
        """Look until cancelled."""
        assert self._control is not None, "attach comes first"
        next_progress = time.monotonic() + PROGRESS_SECONDS
        heartbeat = time.monotonic() + HEARTBEAT_SECONDS
        while True:
            begun = time.monotonic()
            snapshot = self._control.snapshot()
            self.tell_finished(snapshot.requests)
            if begun >= next_progress:
                next_progress = begun + PROGRESS_SECONDS
                line = progress(snapshot)
                if line != self._progress or begun >= heartbeat:
                    self._progress, heartbeat = line, begun + HEARTBEAT_SECONDS
                    self._line(line)
            await asyncio.sleep(max(LOOK_SECONDS, SHARE * (time.monotonic() - begun)))

    def tell_finished(self, rows: tuple[RequestRow, ...]) -> None:
        """A line for each request that has finished since the last look; called once more at the end."""
        for row in rows:
            if row.state in FINISHED and row.name not in self._told:
                self._told.add(row.name)
                if not row.skipped:
                    self._line(finished(row))

    def _line(self, text: str) -> None:
        self._outlet.write(f"{self._clock()}  {text}\n")


def progress(snapshot: Snapshot) -> str:
    """`31 pages (2.4/s), permits 4/4: 3 Running, 2 Queued (WaitingForSlot 2), 7 Succeeded`."""
    rate = f"{snapshot.pages_per_second:.1f}/s"
    permits = f"permits {snapshot.permits_held}/{snapshot.permits_max}"
    return f"{count(snapshot.pages, 'page')} ({rate}), {permits}: {sums(snapshot.requests)}"
