"""A folder whose writer is killed: at the chosen step of its work everything stops, as after SIGKILL.

Each write has three moments to die at (before it, with half of it in a temporary file, after it), each deletion
two. After its death the storage does nothing any more.
"""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.fakes.crawls import an_attempt
from tests.fakes.site_tab import FakeTab, HandClock

from pageslots.wire import AttemptReport, AttemptSpec
from pageslots_agent.storage import LocalFolder


class MortalFolder(LocalFolder):
    """Dies at moment `dies_at`, counted from 0; None: lives."""

    def __init__(self, folder: Path, dies_at: int | None, on_death: Callable[[], None]) -> None:
        super().__init__(folder)
        self._left = dies_at
        self._on_death = on_death
        self.is_dead = False

    def put_atomic(self, name: str, chunks: Iterable[bytes]) -> None:
        content = b"".join(chunks)
        self._moment()
        if self._is_fatal():
            (self._folder / ".pageslots-torn").write_bytes(content[: len(content) // 2])
            self._die()
        super().put_atomic(name, [content])
        self._moment()

    def delete(self, name: str) -> None:
        self._moment()
        super().delete(name)
        self._moment()

    def get(self, name: str) -> bytes | None:
        self._refuse_if_dead()
        return super().get(name)

    def list(self) -> list[str]:
        self._refuse_if_dead()
        return super().list()

    def _moment(self) -> None:
        self._refuse_if_dead()
        if self._is_fatal():
            self._die()

    def _is_fatal(self) -> bool:
        if self._left is None:
            return False
        self._left -= 1
        return self._left < 0

    def _die(self) -> None:
        self.is_dead = True
        self._on_death()
        self._refuse_if_dead()

    def _refuse_if_dead(self) -> None:
        if self.is_dead:
            raise OSError("killed")


async def attempt_until_killed(
    spec: AttemptSpec, tab: FakeTab, clock: HandClock, folder: Path, dies_at: int | None
) -> AttemptReport | None:
    """The report of an attempt, or None when it was killed."""
    loop = asyncio.get_running_loop()
    killed = asyncio.Event()
    storage = MortalFolder(folder, dies_at, lambda: loop.call_soon_threadsafe(killed.set))
    running = asyncio.create_task(an_attempt(spec, tab, clock, storage=storage).run())
    death = asyncio.create_task(killed.wait())
    await asyncio.wait({running, death}, return_when=asyncio.FIRST_COMPLETED)
    if not storage.is_dead:
        death.cancel()
        return running.result()
    running.cancel()
    await asyncio.wait({running})
    return None
