"""The live table of a run, on a terminal."""

import asyncio
import time
from collections.abc import Mapping

from rich.console import Console
from rich.live import Live
from rich.text import Text

from pageslots.cli.outlet import Outlet
from pageslots.cli.picture import picture
from pageslots.cli.telling import told
from pageslots.control.ports import Level
from pageslots.local.session import RunControl

REFRESH_SECONDS = 0.25
SHARE = 10
"""Of the time, at most one part in `SHARE` goes into drawing, however large the run is."""


class LiveView:
    """A picture that is drawn anew a few times a second; sentences scroll by above it."""

    def __init__(self, console: Console, outlet: Outlet) -> None:
        self._console = console
        self._outlet = outlet
        self._control: RunControl | None = None

    def notice(self, text: str) -> None:
        """A sentence above the picture."""
        self._console.print(Text(text), soft_wrap=True)

    def event(self, level: Level, name: str, fields: Mapping[str, object]) -> None:
        """What went wrong is told; the rest is in the picture."""
        if level == "warning" and (text := told(level, name, fields)):
            self._console.print(Text(text, style="yellow"), soft_wrap=True)

    def attach(self, control: RunControl) -> None:
        """From now on there is something to draw."""
        self._control = control

    async def follow(self) -> None:
        """Draw until cancelled."""
        assert self._control is not None, "attach comes first"
        with Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        ) as live:
            while True:
                begun = time.monotonic()
                if not self._outlet.is_behind:
                    size = self._console.size
                    snapshot = self._control.snapshot()
                    live.update(picture(snapshot, width=size.width, height=size.height), refresh=True)
                took = time.monotonic() - begun
                await asyncio.sleep(max(REFRESH_SECONDS, SHARE * took))
