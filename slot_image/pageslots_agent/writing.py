"""Writing while crawling: batches are cut between steps of the crawl and written behind its back.

One batch is on its way at a time. While the storage is slow, records wait in memory; when too many do, the
crawl waits too. Nothing is lost by a refusing storage before the attempt's own deadline.
"""

import asyncio

from pageslots.wire import Outcome
from pageslots_agent.clock import Clock
from pageslots_agent.frontier import Frontier
from pageslots_agent.ledger import Ledger
from pageslots_agent.output import PART_MS, PART_RECORDS, Batch, Folder, OutputError


class Writer:
    """The batches of one attempt."""

    def __init__(
        self, folder: Folder, frontier: Frontier, ledger: Ledger, clock: Clock, tasks: asyncio.TaskGroup
    ) -> None:
        self._folder = folder
        self._frontier = frontier
        self._ledger = ledger
        self._clock = clock
        self._tasks = tasks
        self._task: asyncio.Task[None] | None = None
        self._cut_ms = clock.elapsed_ms()
        self.still = asyncio.Lock()
        """Held while a batch is cut, and by whoever changes the frontier over several steps of the loop."""
        self.broken = ""
        """Why a batch could not be written in time; the attempt must end."""

    @property
    def trouble(self) -> str:
        """What the storage refuses, while it does."""
        return self._folder.trouble

    def due_in_ms(self) -> int | None:
        """When a batch should be cut; None when there is nothing to write, or one is on its way."""
        if self._is_busy() or not (self._folder.waiting or self._frontier.changed):
            return None
        if self._folder.waiting >= PART_RECORDS:
            return 0
        return max(0, self._cut_ms + PART_MS - self._clock.elapsed_ms())

    async def cut_if_due(self) -> None:
        """Cut a batch and send it on its way."""
        if self.due_in_ms() == 0:
            batch = await self._cut()
            self._task = self._tasks.create_task(self._write(batch))

    async def room(self, stop: asyncio.Event) -> None:
        """Wait until records may be added again, or until the attempt must end."""
        while self._folder.is_crowded and not (self.broken or stop.is_set()):
            await self.cut_if_due()
            if self._task is not None and self._is_busy():
                stopping = self._tasks.create_task(stop.wait())
                await asyncio.wait({self._task, stopping}, return_when=asyncio.FIRST_COMPLETED)
                stopping.cancel()

    def extend(self, give_up_ms: int) -> None:
        """Go on trying until then."""
        self._folder.give_up_ms = give_up_ms

    def hurry(self, give_up_ms: int) -> None:
        """The attempt ends: write now or never."""
        self._folder.hurry(give_up_ms)

    async def finish(self, outcome: Outcome) -> None:
        """Everything is done: write what is left, and that it is; raises OutputError."""
        await self._written()
        await self._folder.finish(outcome, self._ledger.tally, self._ledger.pages.discovered)

    async def leave(self, *, void: bool) -> None:
        """The attempt ends before everything is done: leave a checkpoint; raises OutputError."""
        await self._written()
        await self._folder.write(await self._cut(void=void))
        if self._ledger.evidence is not None:
            await self._folder.keep_failure(self._ledger.evidence)

    async def _cut(self, *, void: bool = False) -> Batch:
        async with self.still:
            self._cut_ms = self._clock.elapsed_ms()
            return await self._folder.cut(self._frontier, self._ledger.tally, void=void)

    async def _write(self, batch: Batch) -> None:
        try:
            await self._folder.write(batch)
        except OutputError as error:
            self.broken = str(error)

    async def _written(self) -> None:
        if self._task is not None:
            await asyncio.wait({self._task})
        if self.broken:
            raise OutputError(self.broken)

    def _is_busy(self) -> bool:
        return self._task is not None and not self._task.done()
