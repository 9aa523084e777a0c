"""Drives `bare_worker`: one process with Python, Playwright's driver and the same browser as a slot has."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

READY_SECONDS = 120.0
LOAD_SECONDS = 300.0
END_SECONDS = 20.0


class BareWorker:
    """A running worker."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Root of its process tree."""
        return self._process.pid

    async def load(self, urls: Sequence[str]) -> float:
        """Seconds that it took to load all of them and read their HTML."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"urls": list(urls)}).encode() + b"\n")
        return float((await self.answer(LOAD_SECONDS))["seconds"])

    async def answer(self, seconds: float) -> dict[str, float]:
        """Its next line."""
        assert self._process.stdout is not None
        async with asyncio.timeout(seconds):
            line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("the bare worker ended; see what it wrote above")
        answer: dict[str, float] = json.loads(line)
        return answer

    async def end(self) -> None:
        """Close the browser and wait for the end of the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        async with asyncio.timeout(END_SECONDS):
            await self._process.wait()


@asynccontextmanager
async def bare_worker(chromium: str) -> AsyncIterator[BareWorker]:
    """Start one; inside, its page is ready.

    It must end before a `ProcessRuntime` of this process does: that takes children of other sessions for orphans
    of its slots, and ends them.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        str(Path(__file__).with_name("bare_worker.py")),
        chromium,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # as a slot has: sessions share the CPU between them (autogroup)
    )
    worker = BareWorker(process)
    try:
        await worker.answer(READY_SECONDS)
        yield worker
    finally:
        await worker.end()
