"""Counts what passes between a browser and a site, outside of both: TCP connections, byte by byte.

Requests, answers and their headers count, both ways: what a proxy bills.
"""

import asyncio
from types import TracebackType
from typing import Self

_CHUNK = 64 * 1024
QUIET_SECONDS = 1.0
LONGEST_SECONDS = 30.0


class CountingPipe:
    """Listens on a free loopback port and passes everything to `port`: `async with CountingPipe(port)`."""

    def __init__(self, port: int) -> None:
        self.bytes = 0
        self._target = port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def url(self, path: str) -> str:
        """A URL of the site, by way of this pipe."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{path}"

    async def quiet(self) -> int:
        """All bytes so far, once none has come for a second: parts of a page arrive after its load event."""
        loop = asyncio.get_running_loop()
        until = loop.time() + LONGEST_SECONDS
        before = -1
        while self.bytes != before and loop.time() < until:
            before = self.bytes
            await asyncio.sleep(QUIET_SECONDS)
        return self.bytes

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            onward_reader, onward_writer = await asyncio.open_connection("127.0.0.1", self._target)
            try:
                ways = [
                    asyncio.ensure_future(self._pass(reader, onward_writer)),
                    asyncio.ensure_future(self._pass(onward_reader, writer)),
                ]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
            finally:
                onward_writer.close()
        except OSError:
            pass  # one side has closed: that ends a connection
        except asyncio.CancelledError:
            pass  # this pipe ends; nothing comes after this line
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            self.bytes += len(data)
            writer.write(data)
            await writer.drain()
