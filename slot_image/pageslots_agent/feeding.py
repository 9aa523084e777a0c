"""From the source of start URLs into the frontier, as much at a time as is needed."""

import asyncio
from collections.abc import Generator
from contextlib import ExitStack, closing
from itertools import islice

from pageslots.wire import AttemptSpec
from pageslots_agent.clock import Clock
from pageslots_agent.frontier import ADMIT_BATCH, Candidate, Frontier
from pageslots_agent.ledger import Ledger
from pageslots_agent.source import Start, starts

ENOUGH = 500
"""Start pages that wait: enough to be fair between their hosts, few enough to checkpoint."""


class Feeder:
    """Keeps the frontier supplied. What was fed is in the tally, so the next attempt goes on behind it."""

    def __init__(self, spec: AttemptSpec, frontier: Frontier, ledger: Ledger, clock: Clock) -> None:
        self._spec = spec
        self._frontier = frontier
        self._ledger = ledger
        self._clock = clock
        self._rows: Generator[Start] | None = None
        self._files = ExitStack()

    async def feed(self) -> None:
        """Admit start pages until enough of them wait, or there are no more; raises SourceError."""
        tally = self._ledger.tally
        while not (tally.sources_done or self._frontier.queued_starts >= ENOUGH or self._frontier.is_spent):
            if self._rows is None:
                self._rows = self._files.enter_context(closing(starts(self._spec, after=tally.next_row)))
            some = list(islice(self._rows, ADMIT_BATCH))
            if not some:
                tally.sources_done = True
                return
            self._frontier.admit(
                Candidate(start.address, input=start.input) for start in some if start.address is not None
            )
            for start in some:
                if start.address is None:
                    self._ledger.refuse_row(start, self._clock.wall_ms())
            tally.next_row = some[-1].row + 1
            await asyncio.sleep(0)

    def close(self) -> None:
        """Close the file."""
        self._files.close()
