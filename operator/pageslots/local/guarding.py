"""Keeps a run's guardian alive while the run lives, and lets it go at the end."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from pageslots.local import guardian
from pageslots.local.processes import POD_MARKER, RUN_MARKER

RESTART_SECONDS = 1.0
"""A guardian that dies is replaced at most this often."""
LEAVE_SECONDS = 10.0


class Guard:
    """A guardian process and the pipe by whose end it knows that the run is over."""

    def __init__(self, run: str, folder: Path, *, grace_seconds: float) -> None:
        self._command = guardian.command(run, folder, grace_seconds)
        self._process: asyncio.subprocess.Process | None = None
        self._pipe: int | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the guardian, while there is one."""
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Start a guardian. OSError."""
        read, write = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=read,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=None,
                env={
                    name: value for name, value in os.environ.items() if name not in (POD_MARKER, RUN_MARKER)
                },
                start_new_session=True,
            )
        except BaseException:
            os.close(write)
            raise
        finally:
            os.close(read)
        self._drop_pipe()
        self._pipe = write

    async def keep(self) -> None:
        """Replace the guardian whenever it ends; until cancelled."""
        while True:
            assert self._process is not None
            await self._process.wait()
            await asyncio.sleep(RESTART_SECONDS)
            with suppress(OSError):  # no room for a process now: again in a second
                await self.start()

    async def leave(self) -> None:
        """Let it find nothing to do, and wait for its end; kill it after LEAVE_SECONDS."""
        self._drop_pipe()
        if self._process is None:
            return
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def _drop_pipe(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
